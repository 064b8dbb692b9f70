"""``%%cep``: a cell whose text is a pattern.

Options have the syntax of a shell; ``%%cep?`` shows :data:`USAGE`.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from cepbench.arguments import named_values
from cepbench.engines.aggregation.aggregate import AggregateResult, aggregate
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.planned import generator_or_automaton
from cepbench.engines.runs.result import Result
from cepbench.errors import CepbenchError, did_you_mean
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.match_recognize import read_match_recognize
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import MATCH_RECOGNIZE, parse
from cepbench.patterns.row_counterpart import counterpart, has_counterpart
from cepbench.patterns.row_pattern import RowPattern
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.model import WORDS_AND_COMMENTS, Workload
from cepbench.presentation.explainer.explain import explain
from cepbench.presentation.exploration.value_series import value_series
from cepbench.presentation.figures.offline import use_offline_charts
from cepbench.streams.datasets.dataset import Dataset
from cepbench.streams.datasets.opening import open_dataset
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import under_one_hierarchy
from cepbench.streams.given import events_from, is_frame

USAGE = """\
Find a pattern in a stream, or aggregate its matches. The cell is the pattern's text; its first line has the options.

    %%cep --data nasdaq-style/sample
    PATTERN SEQ(CSCO a, MSFT b) WHERE a.difference < b.difference
    WITHIN 20 minutes

    --data NAME      a variable with a stream, a table (pandas, Polars, Arrow) or a data set, or the
                     name of a data set as in cep.open_dataset; by default the data of the previous
                     cell. Or a variable with a Spark DataFrame, in slices: the matches are one
    --columns TYPE,TIME
                     columns of a table or a Spark DataFrame, by default symbol,ts
    --generator NAME the plan generator, by default DP-B, for an evaluator of orders
                     alone DP-LD
    --evaluator NAME by default the one for the kind of the plan; with AGG that of two-step
    --option NAME=VALUE
                     an option of the evaluator; may be repeated
    --into NAME      assign the result to this variable; otherwise it is in _
    --dialect NAME   the cell is as a paper prints it: zstream, sase+, a-seq or e-cube; or SQL with
                     match_recognize, whose rows are the result. With --generator, --evaluator, --plan or
                     --explain it is the pattern that says the same, if there is one; else --explain shows
                     what runs the query, and which clause has no counterpart
    --within LENGTH  the window of queries of a dialect that have none

Several queries, each on lines that begin with its name, Q1 = PATTERN ..., reuse each other's matches:

    --planner NAME   what decides which, by default CHASE
    --hierarchy NAME a variable with a cep.ConceptHierarchy; by default that of the data. Also of
                     one pattern

The result, by default the matches:

    --count          metrics only, without matches
    --explain        the plan node by node, estimated and measured; of several queries by query
    --plan           the plan; nothing is run
    --pattern        the pattern, or the workload; needs no data
    --explore        of several queries the cube, with roll-up and drill-down

Of a pattern with AGG the values, below a chart of them, or the pattern:

    --method NAME    by default the fastest in cep.AGGREGATORS that can
    --emit WHEN      trigger (the default) or change, as in cep.aggregate
    --scope MATCHES  window (the default), trigger or stream

    --seed N         seed of statistics and of randomized generators, by default 0

In the pattern, :name is the value of a variable of the notebook, a number or a text:
WHERE a.price > :limit.
"""

#: Name in the shell's namespace of the data of the previous cell, the default of ``--data``.
_LAST = "_cep_data"


#: Options of patterns with AGG, of all others, and of several queries.
_OF_VALUES = ("method", "emit", "scope")
_OF_MATCHES = ("generator", "option", "count", "explain", "plan")
_OF_WORKLOADS = ("planner", "explore")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions and do not end the kernel."""

    def error(self, message: str) -> NoReturn:
        raise CepbenchError(f"%%cep: {message}; %%cep? shows the options")


def _parser() -> _Parser:
    parser = _Parser(prog="%%cep", add_help=False, allow_abbrev=False)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    for name in (
        "data", "columns", "generator", "evaluator", "into", "dialect", "within", "planner",
        "hierarchy", *_OF_VALUES,
    ):  # fmt: skip
        parser.add_argument(f"--{name}")
    shown = parser.add_mutually_exclusive_group()
    for name in ("count", "explain", "plan", "pattern", "explore"):
        shown.add_argument(f"--{name}", action="store_true")
    return parser


def cep(line: str, cell: str) -> Any:
    """Run a cell; see :data:`USAGE`, which is the magic's docstring in IPython."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    assert shell is not None  # a magic is called by a shell
    try:
        options = _parser().parse_args(_words(line))
        result = _result(options, cell, shell.user_ns)
    except CepbenchError as error:
        # IPython shows a UsageError without a traceback, and stops running the notebook.
        raise UsageError(str(error)) from None
    if options.into is not None:
        shell.push({options.into: result})
    return result


cep.__doc__ = USAGE


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise CepbenchError(f"%%cep: {error} in {line.strip()!r}") from None


def _result(options: argparse.Namespace, cell: str, names: dict[str, Any]) -> Any:
    if options.into is not None and (not options.into.isidentifier() or iskeyword(options.into)):
        raise CepbenchError(f"%%cep: --into {options.into!r} is not a name of a variable")
    its_options = named_values(options.option, "%%cep: --option", CepbenchError)
    hierarchy = _hierarchy(options.hierarchy, names)
    printed = {"dialect": options.dialect, "within": options.within}
    # The notebook's values that the cell refers to.
    words = WORDS_AND_COMMENTS.finditer(cell)
    asked = [its[0] for its in words if cell[its.start() - 1 : its.start()] == ":"]
    parameters = {name: names[name] for name in asked if name in names}
    rows = read_match_recognize(cell) if options.dialect == MATCH_RECOGNIZE else None
    planned = options.generator or options.evaluator or options.plan
    if rows is not None and not planned and not (options.explain and has_counterpart(rows)):
        return _of_rows(options, rows, names)
    if rows is None and Workload.names_queries(cell, options.dialect):
        workload = Workload.parse(cell, parameters, hierarchy=hierarchy, **printed)
        if options.pattern:
            return workload
        _refuse(options, _OF_VALUES, "one pattern with AGG")
        return _of_queries(options, workload, its_options, names)
    pattern = parse(cell, parameters, **printed) if rows is None else counterpart(rows)
    if hierarchy is not None:
        pattern = pattern.with_hierarchy(hierarchy)
    if options.pattern:
        return pattern
    _refuse(options, _OF_WORKLOADS, "several queries, Q1 = PATTERN …")
    source = names.get(options.data or _LAST)
    on_spark = type(source).__module__.startswith("pyspark.")  # without importing it
    if on_spark:
        names[_LAST] = source
        _refuse(options, ("option", "explain"), "streams, not for Spark DataFrames")
    elif not is_frame(source):
        _refuse(options, ("columns",), "DataFrames and Arrow tables")
    if pattern.aggregates:
        _refuse(options, _OF_MATCHES, "patterns without AGG")
        return _values(options, pattern, names, source if on_spark else None)
    _refuse(options, _OF_VALUES, "patterns with AGG")
    if on_spark:
        return _on_spark(options, pattern, source)
    shows_matches = not (options.count or options.plan or options.explain)
    stream = _stream(options, pattern, names, positions=shows_matches)
    pattern, stream = under_one_hierarchy(pattern, stream)
    statistics = None
    used, found = None, None
    if options.plan or options.explain or options.evaluator or options.generator:
        used, found = generator_or_automaton(pattern, options.evaluator, options.generator)
    if used is not None:
        statistics = measure_statistics(pattern, stream, seed=options.seed)
        found = plan(pattern, statistics, used, seed=options.seed)
    result = _matches(options, pattern, found, statistics, stream, its_options)
    # Of a data set only a part may be read; positions are those in the whole.
    if isinstance(result, Result) and not isinstance(names[_LAST], EventStream):
        return result.in_whole_stream(stream)
    return result


def _of_rows(options: argparse.Namespace, rows: RowPattern, names: dict[str, Any]) -> Any:
    """The rows of SQL, or what is asked for instead."""
    _refuse(options, ("option", "hierarchy", "within", *_OF_VALUES, *_OF_WORKLOADS), "patterns")
    if options.pattern:
        return rows
    if options.explain:
        return explain(rows, stream=_stream(options, None, names))
    result = evaluate(rows, _stream(options, None, names))
    return result.metrics if options.count else result


def _matches(
    options: argparse.Namespace,
    asked: Any,
    found: Any,
    statistics: Any,
    stream: EventStream,
    its_options: Mapping[str, Any],
) -> Any:
    """The matches of one pattern or several by a plan, the plan, or its explanation."""
    if options.plan:
        return found
    how: dict[str, Any] = {"evaluator": options.evaluator, "options": its_options}
    if options.explain:
        return explain(asked, found, statistics, stream, **how)
    return evaluate(asked, stream, found, output="count" if options.count else "matches", **how)


def _on_spark(options: argparse.Namespace, pattern: Pattern, df: Any) -> Any:
    """The matches of a Spark DataFrame, or what is asked for instead."""
    from cepbench.spark.detection import detect  # loads Spark
    from cepbench.spark.planning import plan as plan_on_spark

    generator, columns = options.generator, _columns(options)
    if options.plan:
        return plan_on_spark(df, pattern, generator, **columns, seed=options.seed)
    return detect(
        df, pattern, **columns, generator=generator, evaluator=options.evaluator,
        output="count" if options.count else "matches",
    )  # fmt: skip


def _columns(options: argparse.Namespace) -> dict[str, Any]:
    its_type, comma, time = (options.columns or "symbol,ts").partition(",")
    if not comma:
        raise CepbenchError(f"%%cep: --columns {its_type} is one column; give two, symbol,ts")
    return {"type": its_type.strip(), "time": time.strip()}


def _refuse(options: argparse.Namespace, names: Sequence[str], of: str) -> None:
    """Raise if an option is given that is not for this cell."""
    for name in names:
        if vars(options)[name]:
            raise CepbenchError(f"%%cep: --{name} is for {of}; leave it out")


def _hierarchy(name: str | None, names: Mapping[str, Any]) -> ConceptHierarchy | None:
    if name is None:
        return None
    found = names.get(name)
    if not isinstance(found, ConceptHierarchy):
        known = [key for key, value in names.items() if isinstance(value, ConceptHierarchy)]
        raise CepbenchError(
            f"%%cep: --hierarchy {name}: there is no such variable with a cep.ConceptHierarchy"
            f"{did_you_mean(name, known)}"
        )
    return found


def _of_queries(
    options: argparse.Namespace,
    workload: Workload,
    its_options: Mapping[str, Any],
    names: dict[str, Any],
) -> Any:
    """The matches of several queries, or what is asked for instead."""
    # Positions of several results are those in the whole data.
    stream = _stream(options, None, names)
    if workload.hierarchy is None:
        workload = workload.with_hierarchy(stream.hierarchy)
    else:
        stream = stream.with_hierarchy(workload.hierarchy)
    if options.explore:
        from cepbench.presentation.app.app import explore  # loads the widgets

        return explore(workload, stream, seed=options.seed)
    if all(pattern.aggregates for pattern in workload.patterns.values()):
        _refuse(options, (*_OF_MATCHES, *_OF_WORKLOADS), "queries without AGG")
        return aggregate(workload, stream, evaluator=options.evaluator)
    statistics = measure_statistics(workload, stream, seed=options.seed)
    found = plan_workload(
        workload, statistics, options.planner or "CHASE", generator=options.generator, delays=True,
        seed=options.seed, evaluator=options.evaluator,
    )  # fmt: skip
    return _matches(options, workload, found, statistics, stream, its_options)


def _values(
    options: argparse.Namespace, pattern: Pattern, names: dict[str, Any], df: Any
) -> AggregateResult:
    """The values of AGG, of a Spark DataFrame if there is one; shows their chart."""
    given = {name: vars(options)[name] for name in ("emit", "scope") if vars(options)[name]}
    given["evaluator"] = options.evaluator
    if df is not None:
        from cepbench.spark.aggregation import aggregate as aggregate_on_spark  # loads Spark

        result = aggregate_on_spark(df, pattern, options.method, **_columns(options), **given)
    else:
        # Values may change at events of other types.
        own_types = pattern if options.emit != "change" else None
        stream = _stream(options, own_types, names, positions=True)
        result = aggregate(pattern, stream, options.method, **given)
    if len(result.values):
        display(value_series(result))
    if df is not None or isinstance(names[_LAST], EventStream):
        return result
    return result.in_whole_stream(stream)


def _stream(
    options: argparse.Namespace,
    pattern: Pattern | None,
    names: dict[str, Any],
    *,
    positions: bool = False,
) -> EventStream:
    """The stream of a variable, a table or a data set; without ``--data`` that of the previous cell.

    Of a data set only the events of the pattern's types, unless contiguity needs all, or there is
    no ``pattern``. With ``positions`` it has the positions of its events in the whole data set.
    """
    name = options.data
    if name is None:
        if _LAST not in names:
            raise CepbenchError(
                "%%cep: no data; give --data the name of a variable with a stream, or of a data set "
                "such as nasdaq-style/sample"
            )
        source = names[_LAST]
    elif name in names:
        source = names[name]
        if is_frame(source):
            source = events_from(source, **_columns(options))
        elif not isinstance(source, EventStream | Dataset):
            raise CepbenchError(
                f"%%cep: --data {name}, but that variable is {type(source).__name__}; it must hold "
                "a stream, a DataFrame, an Arrow table or a data set"
            )
    elif "/" not in name and (near := did_you_mean(name, _sources(names))):
        raise CepbenchError(f"%%cep: --data {name}: there is no such variable{near}")
    else:
        source = open_dataset(name)
    names[_LAST] = source
    if isinstance(source, EventStream):
        return source
    # Neighbours are those among all events.
    if pattern is None or pattern.strategy.name.endswith("contiguity"):
        return source.stream()
    return source.stream(pattern, positions=positions)


def _sources(names: Mapping[str, Any]) -> list[str]:
    """Names of the variables that hold a stream, a table or a data set."""
    return [
        name
        for name, value in names.items()
        if isinstance(value, EventStream | Dataset) or is_frame(value)
    ]


def load(shell: InteractiveShell) -> None:
    """Register the magic, and offline charts; called by ``%load_ext cepbench``."""
    use_offline_charts()
    shell.register_magic_function(cep, "cell", "cep")  # type: ignore[arg-type]
