"""What a sweep measures, as one small object that a file can hold."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as arrow_dataset

from cepbench.errors import DatasetError, ExperimentError
from cepbench.evaluators.detector import PARTIAL_MATCH_LIMIT
from cepbench.experiments.workload import MAX_KLEENE_EVENTS, PATTERN_SETS
from cepbench.planners.registry import PlanGenerator
from cepbench.streams.dataset import read_declaration

#: Selection strategies that a sweep compares, as the pattern language writes them.
STRATEGIES = ("any", "consuming", "strict_contiguity")


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The grid of a sweep, and the data it runs on.

    Its cells: pattern × plan generator × evaluator × strategy × weight of latency × repetition.

    Attributes
    ----------
    data : str
        Path or address of the events in Parquet, as Spark's ingest and generator write them.
    pattern_sets : tuple of str
        Keys of :data:`cepbench.experiments.workload.PATTERN_SETS`.
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
        :func:`cepbench.experiments.workload.draw_workload`. A result must say so.
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
        :func:`cepbench.experiments.measure.measure_pattern`.
    algorithms : tuple of str or None
        Plan generators; all that are registered if None.
    evaluators : tuple of str or None
        See :func:`cepbench.experiments.measure.cells_of`.
    repetitions : int
    seed : int
        Of the workload, the sampled statistics and the plan generators.
    time_selectivity : str
        See :func:`cepbench.planners.generate.plan`.
    partial_match_limit : int
        A run that stores more partial matches ends as a row that says so.
    """

    data: str
    pattern_sets: tuple[str, ...] = tuple(PATTERN_SETS)
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
    algorithms: tuple[str, ...] | None = None
    evaluators: tuple[str, ...] | None = None
    repetitions: int = 3
    seed: int = 0
    time_selectivity: str = "adjacent"
    partial_match_limit: int = PARTIAL_MATCH_LIMIT

    def __post_init__(self) -> None:
        listed = ("pattern_sets", "sizes", "strategies", "alphas", "algorithms", "evaluators")
        for name in listed:
            value = getattr(self, name)
            if isinstance(value, str | float | int):
                raise ExperimentError(
                    f"{name} is {value!r}; it must be a list, such as [{value!r}]"
                )
            if value is not None:
                object.__setattr__(self, name, tuple(value))
                if len(set(value)) < len(value):
                    raise ExperimentError(f"{name} names something twice: {list(value)}")
        for name in ("strategies", "alphas"):
            if not getattr(self, name):
                raise ExperimentError(f"{name} is empty; a sweep needs at least one")
        for strategy in self.strategies:
            if strategy not in STRATEGIES:
                raise ExperimentError(
                    f"unknown strategy {strategy!r} for a sweep; there are {', '.join(STRATEGIES)}"
                )
        for alpha in self.alphas:
            if not (isinstance(alpha, float | int) and 0 <= alpha < math.inf):
                raise ExperimentError(
                    f"alpha {alpha!r} weighs latency; it is a finite number, not negative"
                )
        object.__setattr__(self, "alphas", tuple(map(float, self.alphas)))
        for name in ("patterns", "repetitions"):
            if getattr(self, name) < 1:
                raise ExperimentError(f"{name} is {getattr(self, name)}; it must be at least 1")
        object.__setattr__(self, "data", str(self.data))

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON."""
        listed = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in listed.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; what is not given has its default.

        Raises
        ------
        ExperimentError
            If a key is unknown (naming the nearest known one), ``data`` is missing, or a value
            makes no sense.
        """
        known = [field.name for field in fields(cls)]
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


def identity_of(config: SweepConfig, generators: Sequence[PlanGenerator]) -> dict[str, Any]:
    """The configuration, with what stands behind its names: the data and users' code.

    Two sweeps of equal identity measure the same thing; only then may one go on where the other
    stopped.

    Parameters
    ----------
    config : SweepConfig
    generators : sequence of PlanGenerator
        Those that ``config.algorithms`` names.

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
        "user_generators": {g.name: _hash_of_code(g) for g in generators if not g.is_builtin},
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


def _hash_of_code(generator: PlanGenerator) -> str:
    """Changes when the function is edited; what it calls is not followed."""
    try:
        code = inspect.getsource(generator.function)
    except (OSError, TypeError):  # a function without a file, or no plain function
        code = generator.qualified_name
    text = f"{generator.plans} {generator.max_size} {code}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
