"""Lengths of time as users pass them: a number, a text such as ``20 minutes``, or a window."""

from __future__ import annotations

from cepbench.arguments import decimal, shown
from cepbench.errors import CepbenchError, EvaluationError, PatternError
from cepbench.patterns.model import Window
from cepbench.patterns.parse import parse


def window_of(
    given: float | str | Window, unit: str, what: str, error: type[CepbenchError]
) -> Window:
    """A length of time as a window.

    A text has a number and a unit of the pattern language; a plain number is in ``unit``. The
    message names the argument by ``what``.

    Raises CepbenchError, of the type ``error``, if the length is invalid.
    """
    if isinstance(given, Window):
        return given
    try:
        if isinstance(given, str):
            return parse("PATTERN SEQ(A a) WITHIN W", W=given).window
        return Window(decimal(given, what, error), unit)
    except CepbenchError as reason:
        line = str(reason).splitlines()[0]
        why = f" ({line.rpartition(': ')[2]})" if isinstance(reason, PatternError) else ""
        raise error(
            f"{what} = {shown(given)} is not a length of time; give a number of {unit}, or a text "
            f"such as '20 minutes' or '500 units'{why}"
        ) from None


def slack_of(given: float | str | Window, window: Window) -> int:
    """By how much events may be late, in ticks of the timestamps that a window has.

    Raises EvaluationError if it is no length of time, or of another kind than the window.
    """
    unit = "seconds" if window.is_datetime else "units"
    slack = window_of(given, unit, "slack", EvaluationError)
    if slack.is_datetime != window.is_datetime:
        raise EvaluationError(
            f"slack = {slack} is of another kind than the window WITHIN {window}; give a number of "
            f"{unit}"
        )
    return slack.length
