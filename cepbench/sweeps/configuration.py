"""What a sweep measures, as one small object that a file can hold."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as arrow_dataset

from cepbench.costs.problem import TIME_SELECTIVITIES
from cepbench.errors import DatasetError, ExperimentError, PatternError, did_you_mean
from cepbench.evaluators.protocol import Evaluator
from cepbench.evaluators.registry import evaluator_for
from cepbench.evaluators.tasks import PARTIAL_MATCH_LIMIT
from cepbench.patterns.parse import parse
from cepbench.planners.registry import PlanGenerator
from cepbench.streams.dataset_folder import read_declaration
from cepbench.sweeps.grid import Grid
from cepbench.sweeps.user_patterns import checked_patterns
from cepbench.sweeps.workload import MAX_KLEENE_EVENTS, PATTERN_SETS

#: Selection strategies that a sweep compares, as the pattern language writes them.
STRATEGIES = ("any", "consuming", "strict_contiguity")

_WHOLE, _NUMBER, _SWITCH, _TEXT = (
    (int, "a whole number"), (int | float, "a number"), (bool, "true or false"), (str, "a text"),
)  # fmt: skip
_LISTED = (
    "pattern_sets", "sizes", "windows", "strategies", "alphas", "generators", "evaluators",
)  # fmt: skip
#: What the value of a field has to be, where it is a single one.
_KINDS: Mapping[str, tuple[Any, str]] = {
    **dict.fromkeys(("patterns", "repetitions", "seed", "partial_match_limit"), _WHOLE),
    **dict.fromkeys(("max_partial_matches", "max_kleene_events"), _NUMBER),
    **dict.fromkeys(("latency", "share_equal_plans"), _SWITCH),
    **dict.fromkeys(("window", "attribute", "cost", "time_selectivity"), _TEXT),
}
_LEAST = {"patterns": 1, "repetitions": 1, "partial_match_limit": 1, "seed": 0}

#: Fields that came later, with their defaults, of which a sweep's identity says nothing: so a sweep
#: from before keeps its folder.
_LATER: Mapping[str, Any] = {
    "streams": {}, "windows": [], "options": {}, "cost": "throughput", "user_patterns": {},
}  # fmt: skip
#: Fields of several, and those of a single one that they stand in place of.
SEVERAL = {"streams": "data", "windows": "window"}
#: Keys under which a sweep's folder was first named.
_FIRST_NAMES = {"generators": "algorithms"}

#: Names of streams become names of files.
_STREAM_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The grid of a sweep, and the data it runs on.

    Its cells: pattern × stream × window × plan generator × evaluator × its options × strategy ×
    weight of latency × repetition.

    Attributes
    ----------
    data : str
        Path or address of the events in Parquet, as Spark's ingest and generator write them; empty
        if there are ``streams``.
    streams : tuple of (str, str)
        Several data sets instead, by names of letters, digits, - and _; a mapping does as well.
        Every pattern runs on each: patterns are drawn from the types that all of them have, and
        bounds on the work hold on all of them.
    pattern_sets : tuple of str
        Keys of :data:`cepbench.sweeps.workload.PATTERN_SETS`; by default all of them, or
        none if there are ``user_patterns``.
    sizes : tuple of int
        Numbers of participating events.
    patterns : int
        Patterns of each size in each set.
    window : str
        The text after WITHIN of the patterns that are drawn.
    windows : tuple of str
        Several instead. Every pattern runs under each, a user-defined one too.
    attribute : str
        What the patterns' predicates compare.
    max_partial_matches : float or None
        Keeps patterns out whose plans may hold more partial matches; see
        :func:`cepbench.sweeps.workload.draw_workload`. A result must say so.
    max_kleene_events : float
        Most expected events per window of the identifier under KL; see there.
    strategies : tuple of str
        Selection strategies, of :data:`STRATEGIES`. Contiguity is meant among the events that a
        pattern runs on, those of its own types.
    cost : str
        What plans should cost little of, a name in ``cep.COST_MODELS``.
    alphas : tuple of float
        Weights of the latency in the cost that plans are made for; see
        :func:`cepbench.planners.generate.plan`.
    latency : bool
        Whether to measure detection latency, in a run after each run for throughput.
    share_equal_plans : bool
        Whether equal plans of several generators run once; see
        :func:`cepbench.sweeps.measure.measure_pattern`.
    generators : tuple of str or None
        Plan generators; all that are registered if None.
    evaluators : tuple of str or None
        See :class:`cepbench.sweeps.grid.Grid`.
    options : tuple of (str, tuple of str)
        Evaluator -> the options that it runs with one after the other, each a JSON object. A
        mapping of evaluators to lists of options does as well, and a mapping of evaluators to a
        table of options in which a list stands for one value after the other.
    repetitions : int
    seed : int
        Of the workload, the sampled statistics and the plan generators.
    time_selectivity : str
        See :func:`cepbench.planners.generate.plan`.
    partial_match_limit : int
        A run that stores more partial matches ends as a row that says so.
    user_patterns : tuple of (str, str)
        Names and texts of user-defined patterns; see
        :func:`cepbench.sweeps.user_patterns.checked_patterns`. A mapping does as well.
    """

    data: str = ""
    streams: tuple[tuple[str, str], ...] = ()
    pattern_sets: tuple[str, ...] = field(default=None)  # type: ignore[arg-type]
    sizes: tuple[int, ...] = (3, 4, 5, 6, 7)
    patterns: int = 100
    window: str = "20 minutes"
    windows: tuple[str, ...] = ()
    attribute: str = "difference"
    max_partial_matches: float | None = None
    max_kleene_events: float = MAX_KLEENE_EVENTS
    strategies: tuple[str, ...] = ("any",)
    cost: str = "throughput"
    alphas: tuple[float, ...] = (0.0,)
    latency: bool = False
    share_equal_plans: bool = False
    generators: tuple[str, ...] | None = None
    evaluators: tuple[str, ...] | None = None
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    repetitions: int = 3
    seed: int = 0
    time_selectivity: str = "adjacent"
    partial_match_limit: int = PARTIAL_MATCH_LIMIT
    user_patterns: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        user = checked_patterns(self.user_patterns)
        settled: dict[str, Any] = {
            "data": str(self.data),
            "streams": _checked_streams(self.streams),
            "options": _checked_options(self.options),
            "user_patterns": user,
        }
        if getattr(self, "pattern_sets", None) is None:
            settled["pattern_sets"] = () if user else tuple(PATTERN_SETS)
        if self.max_partial_matches == math.inf:  # as a file writes that there is no bound
            settled["max_partial_matches"] = None
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        for name in _LISTED:
            object.__setattr__(self, name, _checked_list(name, getattr(self, name)))
        _check_kinds(self)
        _check_values(self)
        object.__setattr__(self, "alphas", tuple(map(float, self.alphas)))

    @property
    def data_of(self) -> dict[str, str]:
        """Path of the data of each stream by its name; of a single one under ``""``."""
        return dict(self.streams) or {"": self.data}

    def grid(self, generators: Sequence[str | PlanGenerator]) -> Grid:
        """The cells of each pattern on each stream."""
        shared = {each.name for each in fields(Grid)} & {each.name for each in fields(self)}
        values = {name: getattr(self, name) for name in shared}
        return Grid(
            **values
            | {
                "generators": generators,
                "options": dict(self.options),
                "windows": self.windows or ("",),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON; some of them only if they say anything."""
        listed = {each.name: getattr(self, each.name) for each in fields(self)}
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in listed.items()}
        values["streams"], values["user_patterns"] = dict(self.streams), dict(self.user_patterns)
        values["options"] = {
            name: [json.loads(text) for text in several] for name, several in self.options
        }
        for several, single in SEVERAL.items():
            if values[several]:
                del values[single]
        return {k: v for k, v in values.items() if k not in _LATER or v != _LATER[k]}

    def folder_name(self, sweep: str) -> str:
        """The name of a sweep's folder of results, such as ``types-f964d09a``.

        Another configuration has another name. Where the data lies is no part of it.
        """
        text = json.dumps(
            {_FIRST_NAMES.get(k, k): v for k, v in _without_places(self).items()}, sort_keys=True
        )
        return f"{sweep}-{zlib.crc32(text.encode()):08x}"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; what is not given has its default.

        Raises
        ------
        ExperimentError
            If a key is unknown (naming the nearest known one), ``data`` is missing, or a value
            makes no sense.
        """
        known = [each.name for each in fields(cls)]
        for key in values:
            if key not in known:
                raise ExperimentError(
                    f"unknown key {key!r} in a sweep{did_you_mean(str(key), known, cutoff=0.0)} "
                    f"Keys are {', '.join(known)}"
                )
        for several, single in SEVERAL.items():
            if values.get(several) and values.get(single):
                raise ExperimentError(f"a sweep has {single} or {several}, not both")
        if "data" not in values and not values.get("streams"):
            raise ExperimentError(
                "a sweep needs 'data', the path of the events in Parquet, or 'streams', several "
                "of them by name"
            )
        return cls(**values)


def _checked_list(name: str, value: Any) -> tuple[Any, ...] | None:
    """The value of a field that is a list, as a tuple."""
    if value is None and name in ("generators", "evaluators"):
        return None
    if not isinstance(value, list | tuple):
        raise ExperimentError(f"{name} is {value!r}; it must be a list, such as [{value!r}]")
    if any(value[k] in value[:k] for k in range(len(value))):
        raise ExperimentError(f"{name} names something twice: {list(value)}")
    return tuple(value)


def _checked_streams(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping | tuple | list):
        raise ExperimentError(f"streams is {value!r}; it must be a table of names and data sets")
    streams = dict(value)
    for name in streams:
        if not (isinstance(name, str) and _STREAM_NAME.fullmatch(name)):
            raise ExperimentError(
                f"stream {name!r}: a stream's name has only letters, digits, - and _"
            )
    return tuple((name, str(data)) for name, data in streams.items())


def _checked_options(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Options of each evaluator as JSON objects, a table of lists taken apart."""
    if not isinstance(value, Mapping | tuple | list):
        raise ExperimentError(
            f"options is {value!r}; it must be a table of evaluators, such as [options.tree]"
        )
    found = {}
    for evaluator, given in dict(value).items():
        several = _each_of(given) if isinstance(given, Mapping) else given
        if not isinstance(several, list | tuple) or not several:
            raise ExperimentError(
                f"options of {evaluator!r}: {given!r} must be a table, such as "
                "{batch_size = [64, 1024]}, or a list of tables"
            )
        tables = [json.loads(one) if isinstance(one, str) else one for one in several]
        for table in tables:
            if not isinstance(table, Mapping):
                raise ExperimentError(f"options of {evaluator!r}: {table!r} must be a table")
        texts = [json.dumps(dict(table), sort_keys=True) for table in tables]
        found[evaluator] = _checked_list(f"options of {evaluator!r}", texts) or ()
    return tuple(found.items())


def _each_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table of options for each combination of the values that are lists."""
    values = [value if isinstance(value, list | tuple) else [value] for value in table.values()]
    return [dict(zip(table, chosen, strict=True)) for chosen in itertools.product(*values)]


def _check_kinds(config: SweepConfig) -> None:
    for name, (kind, words) in _KINDS.items():
        value = getattr(config, name)
        if value is None and name == "max_partial_matches":
            continue
        # To Python a truth value is a whole number.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ExperimentError(f"{name} is {value!r}; it must be {words}")


def _check_values(config: SweepConfig) -> None:
    for size in config.sizes:
        if not isinstance(size, int) or size < 2:
            raise ExperimentError(f"sizes has {size!r}; sizes are whole numbers from 2 on")
    for name, known in {"strategies": STRATEGIES, "pattern_sets": PATTERN_SETS}.items():
        what = {"strategies": "strategy", "pattern_sets": "pattern set"}[name]
        for value in getattr(config, name):
            if value not in known:
                raise ExperimentError(
                    f"unknown {what} {value!r} for a sweep; there are {', '.join(known)}"
                )
    if not (config.pattern_sets and config.sizes) and not config.user_patterns:
        raise ExperimentError(
            "the sweep has no patterns: name pattern_sets and sizes, or user_patterns"
        )
    for name in ("strategies", "alphas"):
        if not getattr(config, name):
            raise ExperimentError(f"{name} is empty; a sweep needs at least one")
    for alpha in config.alphas:
        if not (isinstance(alpha, float | int) and 0 <= alpha < math.inf):
            raise ExperimentError(
                f"alpha {alpha!r} weighs latency; it is a finite number, not negative"
            )
    for name, least in _LEAST.items():
        if getattr(config, name) < least:
            raise ExperimentError(f"{name} is {getattr(config, name)}; it must be at least {least}")
    if config.time_selectivity not in TIME_SELECTIVITIES:
        raise ExperimentError(
            f"unknown time_selectivity {config.time_selectivity!r}; "
            f"there are {', '.join(TIME_SELECTIVITIES)}"
        )
    for name, window in [("window", config.window), *(("windows", w) for w in config.windows)]:
        try:
            parse(f"PATTERN SEQ(A a) WITHIN {window}")
        except PatternError:
            raise ExperimentError(
                f'{name} is {window!r}; it must be a time such as "20 minutes"'
            ) from None


def _without_places(config: SweepConfig) -> dict[str, Any]:
    """The configuration with the bare names of its data, which may lie anywhere."""
    if config.streams:
        named = {name: Path(path).name for name, path in config.streams}
        return {**config.to_dict(), "streams": named}
    return {**config.to_dict(), "data": Path(config.data).name}


def identity_of(config: SweepConfig, generators: Sequence[PlanGenerator]) -> dict[str, Any]:
    """The configuration, with what stands behind its names: the data and user-defined code.

    Two sweeps of equal identity measure the same thing; only then may one resume the other.

    Parameters
    ----------
    config : SweepConfig
    generators : sequence of PlanGenerator
        Those that ``config.generators`` names.

    Returns
    -------
    dict
        The keys of :meth:`SweepConfig.to_dict`, with the bare name of the data, which may lie
        anywhere; ``data_made_from``, what the data set declares about itself (of other Parquet,
        its size), of several streams by name; ``user_generators`` and, if there are any,
        ``user_evaluators``, a short hash of each one's code by name.

    Raises
    ------
    DatasetError
        If there is no data set, or one that was never finished.
    """
    evaluators = {e.name: hash_of_code(e) for e in evaluators_of(config) if not e.is_builtin}
    return {
        **_without_places(config),
        "data_made_from": (
            {name: _origin(path) for name, path in config.streams}
            if config.streams
            else _origin(config.data)
        ),
        "user_generators": {g.name: hash_of_code(g) for g in generators if not g.is_builtin},
        **({"user_evaluators": evaluators} if evaluators else {}),
    }


def evaluators_of(config: SweepConfig) -> list[Evaluator]:
    """The evaluators that a sweep names."""
    return [evaluator_for(name) for name in config.evaluators or ()]


def _origin(path: str) -> dict[str, Any]:
    declaration = read_declaration(path)
    if declaration is not None:
        return {"kind": declaration.kind, **declaration.parameters, "events": declaration.events}
    try:
        data = arrow_dataset.dataset(path, format="parquet")
        sizes = [entry.size for entry in data.filesystem.get_file_info(data.files)]
        return {"kind": "parquet", "events": data.count_rows(), "bytes": sum(sizes)}
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read as Parquet: {error}") from error


def hash_of_code(part: PlanGenerator | Evaluator) -> str:
    """Changes when a user-defined function is edited, or anything else in its file.

    Of a function from a notebook its own text counts; what it calls is not followed there.
    """
    function = part.function
    named = function if hasattr(function, "__qualname__") else type(function)
    try:
        file = Path(inspect.getsourcefile(named) or "")
        code = inspect.getsource(named)
    except (OSError, TypeError):  # a function without a file, or no plain function
        file, code = Path(), part.qualified_name
    around = file.read_text(encoding="utf-8") if file.is_file() else ""
    declared = f"{part.kind} {part.max_size}" if isinstance(part, PlanGenerator) else part.name
    text = f"{declared} {code} {around}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
