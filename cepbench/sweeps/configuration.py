"""What a sweep measures, as one small object that a file can hold."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as arrow_dataset

from cepbench.costs.problem import TIME_SELECTIVITIES
from cepbench.errors import DatasetError, ExperimentError, PatternError
from cepbench.evaluators.detector import PARTIAL_MATCH_LIMIT
from cepbench.patterns.parse import parse
from cepbench.planners.registry import PlanGenerator
from cepbench.streams.dataset_folder import read_declaration
from cepbench.sweeps.user_patterns import checked_patterns
from cepbench.sweeps.workload import MAX_KLEENE_EVENTS, PATTERN_SETS

#: Selection strategies that a sweep compares, as the pattern language writes them.
STRATEGIES = ("any", "consuming", "strict_contiguity")

_WHOLE, _NUMBER, _SWITCH, _TEXT = (
    (int, "a whole number"), (int | float, "a number"), (bool, "true or false"), (str, "a text"),
)  # fmt: skip
_LISTED = ("pattern_sets", "sizes", "strategies", "alphas", "generators", "evaluators")
#: What the value of a field has to be, where it is a single one.
_KINDS: Mapping[str, tuple[Any, str]] = {
    **dict.fromkeys(("patterns", "repetitions", "seed", "partial_match_limit"), _WHOLE),
    **dict.fromkeys(("max_partial_matches", "max_kleene_events"), _NUMBER),
    **dict.fromkeys(("latency", "share_equal_plans"), _SWITCH),
    **dict.fromkeys(("window", "attribute", "time_selectivity"), _TEXT),
}
_LEAST = {"patterns": 1, "repetitions": 1, "partial_match_limit": 1, "seed": 0}


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The grid of a sweep, and the data it runs on.

    Its cells: pattern × plan generator × evaluator × strategy × weight of latency × repetition.

    Attributes
    ----------
    data : str
        Path or address of the events in Parquet, as Spark's ingest and generator write them.
    pattern_sets : tuple of str
        Keys of :data:`cepbench.sweeps.workload.PATTERN_SETS`; by default all of them, or
        none if there are ``own_patterns``.
    sizes : tuple of int
        Numbers of participating events.
    patterns : int
        Patterns of each size in each set.
    window : str
        The text after WITHIN.
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
        See :func:`cepbench.sweeps.measure.cells_of`.
    repetitions : int
    seed : int
        Of the workload, the sampled statistics and the plan generators.
    time_selectivity : str
        See :func:`cepbench.planners.generate.plan`.
    partial_match_limit : int
        A run that stores more partial matches ends as a row that says so.
    own_patterns : tuple of (str, str)
        Names and texts of further patterns; see
        :func:`cepbench.sweeps.user_patterns.checked_patterns`. A mapping does as well.
    """

    data: str
    pattern_sets: tuple[str, ...] = field(default=None)  # type: ignore[arg-type]
    sizes: tuple[int, ...] = (3, 4, 5, 6, 7)
    patterns: int = 100
    window: str = "20 minutes"
    attribute: str = "difference"
    max_partial_matches: float | None = None
    max_kleene_events: float = MAX_KLEENE_EVENTS
    strategies: tuple[str, ...] = ("any",)
    alphas: tuple[float, ...] = (0.0,)
    latency: bool = False
    share_equal_plans: bool = False
    generators: tuple[str, ...] | None = None
    evaluators: tuple[str, ...] | None = None
    repetitions: int = 3
    seed: int = 0
    time_selectivity: str = "adjacent"
    partial_match_limit: int = PARTIAL_MATCH_LIMIT
    own_patterns: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        own = checked_patterns(self.own_patterns)
        settled: dict[str, Any] = {"data": str(self.data), "own_patterns": own}
        if getattr(self, "pattern_sets", None) is None:
            settled["pattern_sets"] = () if own else tuple(PATTERN_SETS)
        if self.max_partial_matches == math.inf:  # as a file writes that there is no bound
            settled["max_partial_matches"] = None
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        for name in _LISTED:
            object.__setattr__(self, name, _checked_list(name, getattr(self, name)))
        _check_kinds(self)
        _check_values(self)
        object.__setattr__(self, "alphas", tuple(map(float, self.alphas)))

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON; ``own_patterns`` only if there are any."""
        listed = asdict(self)
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in listed.items()}
        own = dict(values.pop("own_patterns"))
        # Sweeps from before there were own patterns go on, in the same folders.
        return {**values, "own_patterns": own} if own else values

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
                near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)
                raise ExperimentError(
                    f"unknown key {key!r} in a sweep; did you mean {near[0]!r}? "
                    f"Keys are {', '.join(known)}"
                )
        if "data" not in values:
            raise ExperimentError("a sweep needs 'data', the path of the events in Parquet")
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
    if not (config.pattern_sets and config.sizes) and not config.own_patterns:
        raise ExperimentError(
            "the sweep has no patterns: name pattern_sets and sizes, or own_patterns"
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
    try:
        parse(f"PATTERN SEQ(A a) WITHIN {config.window}")
    except PatternError:
        raise ExperimentError(
            f'window is {config.window!r}; it must be a time such as "20 minutes"'
        ) from None


def identity_of(config: SweepConfig, generators: Sequence[PlanGenerator]) -> dict[str, Any]:
    """The configuration, with what stands behind its names: the data and users' code.

    Two sweeps of equal identity measure the same thing; only then may one go on where the other
    stopped.

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
        its size); and ``user_generators``, a short hash of each
        one's code by name.

    Raises
    ------
    DatasetError
        If there is no data set, or one that was never finished.
    """
    return {
        **config.to_dict(),
        "data": Path(config.data).name,
        "data_made_from": _origin(config.data),
        "user_generators": {g.name: hash_of_code(g) for g in generators if not g.is_builtin},
    }


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


def hash_of_code(generator: PlanGenerator) -> str:
    """Changes when a user's function is edited, or anything else in the file that it stands in.

    Of a function from a notebook its own text counts; what it calls is not followed there.
    """
    function = generator.function
    named = function if hasattr(function, "__qualname__") else type(function)
    try:
        file = Path(inspect.getsourcefile(named) or "")
        code = inspect.getsource(named)
    except (OSError, TypeError):  # a function without a file, or no plain function
        file, code = Path(), generator.qualified_name
    around = file.read_text(encoding="utf-8") if file.is_file() else ""
    text = f"{generator.kind} {generator.max_size} {code} {around}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
