"""All errors that cepbench raises deliberately, in one hierarchy.

A message has the location (line and column, row, file, key), the problem, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

#: Limits in characters of a line and of a whole message: messages quote user input of any length.
_LONGEST_LINE, _LONGEST_MESSAGE = 700, 10_000

#: Limit in characters of a quoted line of pattern text.
_SHOWN = 100


def shortened(text: str, longest: int) -> str:
    """``text``, or its beginning and end if it is longer than ``longest`` characters."""
    if len(text) <= longest:
        return text
    # The advice is at the end of a message.
    end = longest // 3
    return f"{text[: longest - end - 3]} … {text[-end:]}"


class CepbenchError(Exception):
    """Base class of all errors of cepbench.

    The message has location, problem, and what to do. Long lines are shortened in the middle, and lone
    surrogates, which cannot be printed, are escaped.
    """

    def __init__(self, message: object = "") -> None:
        lines = (shortened(line, _LONGEST_LINE) for line in str(message).split("\n"))
        printable = "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8")
        super().__init__(shortened(printable, _LONGEST_MESSAGE))


class PatternError(CepbenchError):
    """A pattern text or pattern object is not usable.

    Of a ``text``, ``length`` characters from ``line`` and ``column`` on (both from 1) are at fault; of a
    pattern object the ``culprit``, a variable or clause.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        line: int | None = None,
        column: int | None = None,
        length: int = 1,
        culprit: object = None,
    ) -> None:
        self.culprit = culprit
        self.line = line
        self.column = column
        self.offending = ""
        if text is not None and line is not None and column is not None:
            lines = text.splitlines() or [""]
            shown = lines[min(line, len(lines)) - 1].expandtabs(1)
            self.offending = shown[column - 1 : column - 1 + length]
            message = shortened(" ".join(message.splitlines()), _LONGEST_LINE - 50)
            message = f"line {line}, column {column}: {message}\n{_marked(shown, column, length)}"
        super().__init__(message)


def _marked(line: str, column: int, length: int) -> str:
    """The line, or the part around the column, and a marker below."""
    begin, end = 0, len(line)
    if end > _SHOWN:
        begin = min(max(0, column - 1 - _SHOWN // 3), end - _SHOWN // 3)
        end = min(end, begin + _SHOWN)
    # One character for each unprintable one, so that the marker is in the right column.
    shown = "".join(c if c.isprintable() else "\ufffd" for c in line[begin:end])
    before, after = "… " * (begin > 0), " …" * (end < len(line))
    marker = " " * (len(before) + column - 1 - begin) + "^" * min(max(1, length), end - column + 2)
    return f"  {before}{shown}{after}\n  {marker}"


class PatternSyntaxError(PatternError):
    """The text does not follow the grammar of the pattern language."""


class PatternNameError(PatternError):
    """A variable or parameter does not exist, or is declared twice."""


class UnsupportedPatternError(PatternError):
    """The pattern is well formed but cannot be planned or evaluated."""


class PatternOperatorError(PatternError):
    """NOT, KL or an element of a Kleene set has no meaning where it is used."""


class UnsatisfiablePatternError(PatternError):
    """The pattern can have no match, whatever the stream."""


class HierarchyError(CepbenchError):
    """A concept hierarchy is invalid, or does not have a name."""


class StreamError(CepbenchError):
    """An event stream breaks the rules of a stream.

    ``row`` is the first offending position, ``column`` the name of a column that is missing.
    """

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        self.row, self.column = row, column
        super().__init__(message)


class MissingTypeWarning(UserWarning):
    """A pattern has an item of a type that no event of the stream has: it binds nothing."""


class StatisticsError(CepbenchError):
    """Statistics are missing, contradictory or out of range."""


class PlanError(CepbenchError):
    """A plan does not fit its pattern: not a permutation, or not a tree over its variables."""


class PlanGeneratorError(CepbenchError):
    """A plan generator is unknown, registered twice, refuses the problem, or returned no plan."""


class PlanningRefusedError(PlanGeneratorError):
    """A plan generator does not support a problem, or its size; neither is invalid."""


class EvaluationError(CepbenchError):
    """An evaluator cannot run or continue."""


class UnsupportedTaskError(EvaluationError):
    """An evaluator does not declare the requested capability; the message names those that do."""


class PartialMatchLimitError(EvaluationError):
    """More partial matches are stored than the caller allowed."""


class FailedStateError(EvaluationError):
    """A detector or aggregator failed in the middle of a push; go on from its last snapshot."""


class SnapshotError(EvaluationError):
    """A detector's snapshot cannot be restored here."""


class AdaptationError(CepbenchError):
    """An adaptation policy is unknown, registered twice or fails, or an argument is invalid."""


class QueryError(CepbenchError):
    """A query cannot be written as asked: an unknown dialect or output, or a missing name."""


class DatasetError(CepbenchError):
    """A data set or source file is missing, unreadable, or not what its declaration says."""


class SparkSetupError(CepbenchError):
    """Spark cannot be started: no usable Java, or a setting it does not know."""


class ExperimentError(CepbenchError):
    """An experiment's configuration or results table is not usable.

    ``keys`` is the path of the faulty value in a configuration, such as ``("options", "tree")``.
    """

    def __init__(self, message: object = "", keys: tuple[str, ...] = ()) -> None:
        self.keys = keys
        super().__init__(message)


@contextmanager
def at_key(key: str) -> Iterator[None]:
    """Prefix the ``keys`` of an :class:`ExperimentError` that is raised inside."""
    try:
        yield
    except ExperimentError as error:
        error.keys = (key, *error.keys)
        raise


@contextmanager
def errors_at(where: str) -> Iterator[None]:
    """Add where they arose to errors, if it is not empty."""
    try:
        yield
    except CepbenchError as error:
        if where:
            error.args = (f"{where}: {error}", *error.args[1:])
        raise


def errors_naming(query: str) -> AbstractContextManager[None]:
    """Add the name of a workload's query to errors about it; a pattern is a query without a name."""
    return errors_at(query and f"query {query!r}")


@contextmanager
def failures_of(what: str, error: type[CepbenchError]) -> Iterator[None]:
    """Name what a user defined in its errors, of which ``sys.exit`` is one: it ends nothing but its run."""
    try:
        yield
    except CepbenchError:
        raise
    except (Exception, SystemExit) as failure:
        raise error(f"{what} failed: {failure!r}") from failure


class CaseError(ExperimentError):
    """A file of conformance cases is broken; the message names file, case and key."""


class CannotSayError(CepbenchError):
    """An outside engine cannot say the matches of a case; the message says why."""


class NotInstalledError(CannotSayError):
    """An outside engine is not here; the message ends with the line that installs it."""


class ReportError(CepbenchError):
    """A notebook or report cannot be run or rendered."""


def suggest(name: object, known: Iterable[object], *, cutoff: float = 0.6) -> str | None:
    """The known name nearest to an unknown one, or None, as for an object that is not a str.

    ``cutoff`` is the minimum similarity, from 0 (always a name) to 1 (equal).
    """
    if not isinstance(name, str):
        return None
    # Comparing two names takes time proportional to the product of their lengths.
    texts = [text for text in map(str, known) if len(text) <= 200]
    return next(iter(difflib.get_close_matches(name[:200], texts, n=1, cutoff=cutoff)), None)


def did_you_mean(name: object, known: Iterable[object], *, cutoff: float = 0.6) -> str:
    """The end of a message about an unknown name: the result of :func:`suggest`, if any."""
    near = suggest(name, known, cutoff=cutoff)
    return "" if near is None else f"; did you mean {near!r}?"
