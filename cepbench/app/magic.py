"""``%%cep``: a cell whose text is a pattern.

The options are read with :mod:`argparse`, which people know from a shell; ``%%cep?`` shows
:data:`USAGE`.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from cepbench.datasets.dataset import Dataset
from cepbench.datasets.opening import open_dataset
from cepbench.errors import CepbenchError, suggest
from cepbench.evaluators.evaluate import evaluate
from cepbench.explainer.explain import explain
from cepbench.figures.offline import use_offline_charts
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planners.generate import plan
from cepbench.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream

USAGE = """\
Find a pattern in a stream. The cell is the pattern's text; its first line has the options.

    %%cep --data nasdaq-style/sample
    PATTERN SEQ(CSCO a, MSFT b) WHERE a.difference < b.difference
    WITHIN 20 minutes

    --data NAME      a variable that holds a stream or a data set, or a data set's name as
                     cep.open_dataset takes it; may be left out once it was given
    --generator NAME the plan generator, by default DP-B
    --evaluator NAME by default the one made for the generator's plans
    --into NAME      assign the result to this variable; without it, it is in _

What is shown, by default the matches:

    --count          only count them: metrics, without matches
    --explain        the plan's nodes, what was estimated there and what happened
    --plan           the plan alone; nothing is run
    --pattern        the pattern alone; needs no data

    --seed N         of statistics and of generators that draw at random, by default 0

In the pattern, :name stands for a variable of the notebook that holds a number or a text:
WHERE a.price > :limit.
"""

#: Key of the shell's namespace under which the last stream is kept: ``--data`` may be left out.
_LAST = "_cep_data"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are messages, and do not end the kernel."""

    def error(self, message: str) -> NoReturn:
        raise CepbenchError(f"%%cep: {message}; %%cep? shows what there is")


def _parser() -> _Parser:
    parser = _Parser(prog="%%cep", add_help=False, allow_abbrev=False)
    for name in ("data", "evaluator", "into"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--generator", default="DP-B")
    parser.add_argument("--seed", type=int, default=0)
    shown = parser.add_mutually_exclusive_group()
    for name in ("count", "explain", "plan", "pattern"):
        shown.add_argument(f"--{name}", action="store_true")
    return parser


def cep(line: str, cell: str | None = None) -> Any:
    """Run a cell; see :data:`USAGE`, which is the magic's docstring in IPython."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    assert shell is not None  # a magic is called by a shell
    if cell is None:
        raise UsageError("%cep is for whole cells: begin the cell with %%cep. %%cep? shows how")
    return run_cell(line, cell, shell)


cep.__doc__ = USAGE


def run_cell(line: str, cell: str, shell: InteractiveShell) -> Any:
    """What the cell gives; an error is shown, and ends the cell as any other does.

    Parameters
    ----------
    line, cell : str
    shell : InteractiveShell
        Its variables are data sets and parameters, and get the result.

    Raises
    ------
    UsageError
        With the message of the error; IPython shows it without a traceback, and stops running
        the notebook.
    """
    try:
        options = _parser().parse_args(_words(line))
        result = _result(options, cell, shell.user_ns)
    except CepbenchError as error:
        raise UsageError(str(error)) from None
    if options.into is not None:
        shell.push({options.into: result})
    return result


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise CepbenchError(f"%%cep: {error} in {line.strip()!r}") from None


def _result(options: argparse.Namespace, cell: str, names: dict[str, Any]) -> Any:
    if options.into is not None and not options.into.isidentifier():
        raise CepbenchError(f"%%cep: --into {options.into!r} is no name of a variable")
    pattern = parse(cell, _parameters(cell, names))
    if options.pattern:
        return pattern
    matches_are_kept = not (options.count or options.plan or options.explain)
    stream = _stream(options.data, pattern, names, matches_are_kept)
    statistics = measure_statistics(pattern, stream, seed=options.seed)
    found = plan(pattern, statistics, options.generator, seed=options.seed)
    if options.plan:
        return found
    if options.explain:
        return explain(pattern, found, statistics, stream, evaluator=options.evaluator)
    output = "count" if options.count else "matches"
    result = evaluate(pattern, stream, found, evaluator=options.evaluator, output=output)
    # Who names a data set never sees the part of it that is read.
    return result if isinstance(names[_LAST], EventStream) else result.in_whole_stream(stream)


def _parameters(cell: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook's numbers and texts that the cell may mean by ``:name``."""
    return {
        name: value
        for name, value in names.items()
        if f":{name}" in cell and isinstance(value, int | float | str)
    }


def _stream(
    name: str | None, pattern: Pattern, names: dict[str, Any], positions: bool
) -> EventStream:
    """The stream of a variable or of a data set; the one from before if none is named.

    With ``positions`` it knows where its events stand in the whole data set.
    """
    if name is None:
        if _LAST not in names:
            raise CepbenchError(
                "%%cep: no data; give --data a variable that holds a stream, or a data set "
                "such as nasdaq-style/sample"
            )
        source = names[_LAST]
    elif name in names:
        source = names[name]
        if not isinstance(source, EventStream | Dataset):
            raise CepbenchError(
                f"%%cep: --data {name}, but that variable is {type(source).__name__}; it must hold "
                "a stream, as cep.EventStream.from_pandas makes it, or a data set"
            )
    elif "/" not in name and (near := _near(name, names)):
        raise CepbenchError(
            f"%%cep: --data {name}: there is no such variable; did you mean {near}?"
        )
    else:
        source = open_dataset(name)
    names[_LAST] = source
    if isinstance(source, EventStream):
        return source
    if pattern.strategy.name.endswith("contiguity"):  # neighbours among all events
        return source.stream()
    return source.stream(pattern, positions=positions)


def _near(name: str, names: Mapping[str, Any]) -> str | None:
    """A variable of a similar name that holds a stream or a data set."""
    own = [key for key, value in names.items() if isinstance(value, EventStream | Dataset)]
    return suggest(name, own)


def load(shell: InteractiveShell) -> None:
    """Register the magic, and charts that need no network; ``%load_ext cepbench`` does."""
    use_offline_charts()
    shell.register_magic_function(cep, "line_cell", "cep")  # type: ignore[arg-type]
