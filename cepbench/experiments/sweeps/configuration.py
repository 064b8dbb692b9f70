"""The configuration of a sweep, its checks and its identity."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as arrow_dataset

from cepbench.arguments import choice, elements, flag, folded, number, shown, text, whole
from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.engines.runs.protocol import Evaluator
from cepbench.errors import (
    AdaptationError,
    DatasetError,
    ExperimentError,
    PatternError,
    PlanError,
    PlanGeneratorError,
    at_key,
    did_you_mean,
)
from cepbench.experiments.sweeps.cells import NO_SHARING
from cepbench.experiments.sweeps.grid import POLICY_GENERATOR, Grid
from cepbench.experiments.sweeps.reached_code import reached_code
from cepbench.experiments.sweeps.workload import MAX_KLEENE_EVENTS, PATTERN_SETS, PREDICATES
from cepbench.patterns.model import ANY, STRATEGIES
from cepbench.patterns.parse import parse
from cepbench.planning.costs.models import COST_MODELS, UserCost, cost_from
from cepbench.planning.costs.problem import TIME_SELECTIVITIES
from cepbench.planning.planners.registry import (
    PLAN_GENERATORS,
    PlanGenerator,
    find_generator,
    fixed_plan,
)
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.kinds import PLAN_KINDS
from cepbench.planning.plans.model import Plan
from cepbench.planning.workloads.model import Workload
from cepbench.registry import Registry
from cepbench.streams.dataset_folder import read_declaration

#: What a run does with matches.
OUTPUTS = ("count", "matches", "arrow")

#: Fields added later. Their defaults are left out of a sweep's identity, so that earlier sweeps keep
#: their folders.
_LATER = (
    "streams", "windows", "options", "cost", "user_patterns", "least_rate", "most_rate",
    "predicates", "selectivities", "duration", "regimes", "plans", "orders_in_trees",
    "stream_windows", "outputs", "policies", "batch_size", "methods", "sharing", "user_workloads",
    "planners", "seconds",
)  # fmt: skip
#: Fields about plans of single patterns, which neither methods nor planners of workloads have.
_OF_PATTERNS = (
    "pattern_sets", "regimes", "strategies", "cost", "alphas", "latency", "share_equal_plans",
    "generators", "plans", "policies", "orders_in_trees",
)  # fmt: skip
#: Fields about matches, which methods have none of.
_OF_MATCHES = ("batch_size", "evaluators", "options", "outputs", "planners")
#: Fields that a regime may set.
OF_REGIMES = (
    "pattern_sets", "sizes", "patterns", "max_partial_matches", "max_kleene_events", "least_rate",
    "most_rate", "predicates", "selectivities", "duration",
)  # fmt: skip
#: Keys of a policy.
OF_POLICIES = ("policy", "generator", "cost", "threshold", "gain")
#: Fields with several values, and the fields with a single one that they replace.
SEVERAL = {"streams": "data", "windows": "window"}
#: Keys as they were when folders were first named by them.
_FIRST_NAMES = {"generators": "algorithms"}

#: Names of streams and patterns become names of files.
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def check_keys(given: Iterable[Any], known: Sequence[str]) -> None:
    """Raise an ExperimentError with the nearest known key if a key is unknown."""
    for key in given:
        if key not in known:
            raise ExperimentError(
                f"unknown key {key!r}; keys are {', '.join(known)}"
                f"{did_you_mean(str(key), known, cutoff=0.0)}",
                (str(key),),
            )


#: (value, name of the field) → the value as it is stored; raises an ExperimentError.
_Check = Callable[[Any, str], Any]


def _table(value: Any, name: str, of: str, example: str) -> dict[str, Any]:
    """A mapping, or pairs of keys and values, as a dict; keys that name something, ``of``, are checked."""
    table: dict[str, Any] | None = None
    if not isinstance(value, str):  # dict("") is empty
        with suppress(TypeError, ValueError):
            table = dict(value)
    if table is None:
        raise ExperimentError(f"{name} must be a table such as {example}, not {shown(value)}")
    for key in table if of else ():
        if not (isinstance(key, str) and _FILE_NAME.fullmatch(key)):
            raise ExperimentError(
                f"{of} {key!r}: a {of}'s name has only letters, digits, - and _", (str(key),)
            )
    return table


def _table_of(check: _Check, of: str, example: str) -> _Check:
    """The check of a table by names whose values pass ``check``; gives pairs."""

    def checked(value: Any, name: str) -> tuple[tuple[str, Any], ...]:
        found = []
        for key, given in _table(value, name, of, example).items():
            with at_key(key):
                found.append((key, check(given, f"{of} {key!r}")))
        return tuple(found)

    return checked


def _json_of(
    check: Callable[[Mapping[str, Any]], object], example: str, *, sort_keys: bool = False
) -> _Check:
    """The check of a table, also as JSON, that passes ``check``; gives JSON."""

    def checked(value: Any, name: str) -> str:
        table = value
        if isinstance(value, str):
            with suppress(ValueError):
                table = json.loads(value)
        if not isinstance(table, Mapping):
            raise ExperimentError(f"{name} must be a table such as {example}, not {shown(value)}")
        try:
            check(table)
        except (AdaptationError, PlanError, PlanGeneratorError) as error:
            raise ExperimentError(f"{name}: {error}") from error
        return json.dumps(dict(table), sort_keys=sort_keys)

    return checked


def _list_of(check: _Check, example: str, *, least: int = 0) -> _Check:
    """The check of a list without duplicates whose elements pass ``check``; gives a tuple."""

    def checked(value: Any, name: str) -> tuple[Any, ...]:
        given = elements(value, name, example, ExperimentError)
        found = tuple(check(one, f"each of {name}") for one in given)
        if len(set(found)) < len(found):
            raise ExperimentError(f"{name} names something twice: {given}")
        if len(found) < least:
            raise ExperimentError(f"{name} is empty; a sweep needs at least one")
        return found

    return checked


def _unless_none(check: _Check) -> _Check:
    return lambda value, name: None if value is None else check(value, name)


def _bound(value: Any, name: str) -> float:
    """A number or infinity, unconverted: 5 and 5.0 give different names of folders."""
    if value != math.inf:
        number(value, name, ExperimentError, least=0.0)
    return value


def time_text(value: Any, name: str) -> str:
    """A window as the pattern language writes it; an ExperimentError if it is none."""
    try:
        parse(f"PATTERN SEQ(A a) WITHIN {value}")
    except PatternError:
        raise ExperimentError(
            f'{name} must be a time such as "20 minutes", not {shown(value)}'
        ) from None
    return str(value)


def _options(value: Any, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Options of each evaluator as JSON objects, one for each combination of listed values."""
    found = {}
    for evaluator, given in _table(value, name, "", "{tree = {batch_size = 64}}").items():
        with at_key(evaluator):
            several = _combinations(given) if isinstance(given, Mapping) else given
            if not isinstance(several, list | tuple) or not several:
                raise ExperimentError(
                    f"options of {evaluator!r}: {given!r} must be a table, such as "
                    "{batch_size = [64, 1024]}, or a list of tables"
                )
            checked = _json_of(lambda table: None, "{batch_size = 64}", sort_keys=True)
            found[evaluator] = _list_of(checked, "")(several, f"options of {evaluator!r}")
    return tuple(found.items())


def _combinations(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table of options for each combination of the values that are lists."""
    values = [value if isinstance(value, list | tuple) else [value] for value in table.values()]
    return [dict(zip(table, chosen, strict=True)) for chosen in itertools.product(*values)]


def _pattern(value: Any, name: str) -> str:
    """The text of a pattern in normal form."""
    if not isinstance(value, str):
        raise ExperimentError(f"{name} must be a text, PATTERN … WITHIN …, not {shown(value)}")
    try:
        # A text block begins with a line break; the lines of an error are those of the pattern.
        pattern = parse(value.strip())
    except PatternError as error:
        raise ExperimentError(f"{name}: {error}") from error
    if pattern.strategy != ANY:
        raise ExperimentError(
            f"{name} names a STRATEGY; leave it out, and name it in strategies, "
            "which every pattern of the sweep runs under"
        )
    return str(pattern)


def _workload(value: Any, name: str) -> str:
    """The text of a workload in normal form, a line for each query."""
    try:
        return str(Workload.parse(value))
    except PatternError as error:
        raise ExperimentError(f"{name}: {error}") from error


def _strategy(value: Any, name: str) -> str:
    """A strategy as the pattern language writes it, ``partition_contiguity(symbol)`` too."""
    written = text(value, name, ExperimentError)
    choice(written.partition("(")[0], name, STRATEGIES, ExperimentError)
    try:
        parse(f"PATTERN SEQ(A a) STRATEGY {written} WITHIN 1 units")
    except PatternError as error:
        raise ExperimentError(f"{name}: {error}") from error
    return written


def _least_rate(value: Any, name: str) -> float | tuple[tuple[str, float], ...] | None:
    """One rate, or one for each pattern set."""
    if isinstance(value, Mapping | tuple | list):
        table = _table(value, name, "", "{sequence = 8.0}")
        for key in table:
            choice(key, f"each key of {name}", PATTERN_SETS, ExperimentError)
        return tuple((key, _rate(table[key], f"{name} of {key}")) for key in table)
    return None if value is None else _rate(value, name)


def _selectivities(value: Any, name: str) -> tuple[float, float]:
    check = partial(number, error=ExperimentError, above=0.0, most=1.0)
    bounds = tuple(
        check(one, name) for one in elements(value, name, "[0.002, 0.88]", ExperimentError)
    )
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise ExperimentError(
            f"{name} must be a minimum and a maximum, such as [0.002, 0.88], not {shown(value)}"
        )
    return bounds[0], bounds[1]


def _built_in(registry: Registry[Any], fits: Callable[[Any], bool] = bool) -> list[str]:
    """The names of entries that workers know, too."""
    return [its.name for its in registry.values() if its.is_builtin and fits(its)]


def _check_policy(table: Mapping[str, Any]) -> None:
    check_keys(table, OF_POLICIES)
    choice(table.get("policy"), "policy", _built_in(ADAPTATION_POLICIES), AdaptationError)
    find_generator(table.get("generator", POLICY_GENERATOR))
    if "cost" in table:
        choice(table["cost"], "cost", _built_in(COST_MODELS), PlanGeneratorError)
    for name in table.keys() & {"threshold", "gain"}:
        number(table[name], name, AdaptationError, least=0.0)


def _plan(table: Mapping[str, Any]) -> Plan:
    if len(table) != 1:
        raise PlanError(f"a plan is one shape under its kind, as in {_A_PLAN}")
    ((kind, shape),) = table.items()
    return PLAN_KINDS[choice(kind, "the kind of a plan", PLAN_KINDS, PlanError)].plan(shape)


_A_PLAN, _A_POLICY = '{tree = [["a", "b"], "c"]}', '{policy = "threshold"}'
_A_REGIME = "{least_rate = 8.0}"
_rate = partial(number, error=ExperimentError, least=0.0)
_positive = partial(whole, error=ExperimentError, least=1)
_text = partial(text, error=ExperimentError)
_flag = partial(flag, error=ExperimentError)
_names = _unless_none(_list_of(_text, '["tree"]'))


def _one_of(known: Collection[str]) -> _Check:
    return partial(choice, known=known, error=ExperimentError)


def _one_built_in(
    registry: Registry[Any], *others: str, fits: Callable[[Any], bool] = bool
) -> _Check:
    """The check of an entry's name, or one of the others."""
    return lambda value, name: choice(
        value, name, [*others, *_built_in(registry, fits)], ExperimentError
    )


def _field(check: _Check, default: Any) -> Any:
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The grid of a sweep, and the data it runs on.

    Its cells: pattern × stream × window × plan generator × evaluator × its options × strategy ×
    weight of latency × output × repetition; with ``methods``, pattern or workload × stream × window ×
    method × sharing × repetition; with ``planners``, workload × stream × window × planner ×
    evaluator × its options × output × repetition.

    Fields that :class:`cepbench.experiments.sweeps.grid.Grid` and
    :func:`cepbench.experiments.sweeps.workload.draw_workload` have, too, are described there; tables are also
    given as mappings, and stored as pairs.
    """

    #: Path or address of the events in Parquet, as Spark's ingest and generator write them; empty
    #: if there are ``streams``.
    data: str = _field(lambda value, name: str(value), "")
    #: Several data sets instead, by names of letters, digits, - and _. Every pattern runs on each:
    #: patterns are drawn from the types that all streams have, and bounds on the work hold on all.
    streams: tuple[tuple[str, str], ...] = _field(
        _table_of(lambda value, name: str(value), "stream", '{small = "one/data/set"}'), ()
    )
    #: By default all, or none if there are ``user_patterns``.
    pattern_sets: tuple[str, ...] = _field(
        _unless_none(_list_of(_one_of(PATTERN_SETS), '["sequence"]')), None
    )
    sizes: tuple[int, ...] = _field(
        _list_of(partial(whole, error=ExperimentError, least=2), "[3, 4]"), (3, 4, 5, 6, 7)
    )
    patterns: int = _field(_positive, 100)
    window: str = _field(time_text, "20 minutes")
    #: Several instead of ``window``. Every pattern runs under each, a user-defined one too.
    windows: tuple[str, ...] = _field(_list_of(time_text, '["20 minutes"]'), ())
    #: Instead of ``windows``, the window that every pattern has on a stream, by its name.
    stream_windows: tuple[tuple[str, str], ...] = _field(
        _table_of(time_text, "the window of stream", '{small = "1000 units"}'), ()
    )
    attribute: str = _field(_text, "difference")
    #: Excludes patterns whose plans may hold more partial matches. Results must state it.
    max_partial_matches: float | None = _field(_unless_none(_bound), None)
    max_kleene_events: float = _field(_bound, MAX_KLEENE_EVENTS)
    #: Contiguity is relative to the events that a pattern runs on, those of its own types.
    strategies: tuple[str, ...] = _field(_list_of(_strategy, '["any"]', least=1), ("any",))
    #: A name in ``cep.COST_MODELS``.
    cost: str = _field(_text, "throughput")
    alphas: tuple[float, ...] = _field(
        _list_of(partial(number, error=ExperimentError, least=0.0), "[0.0, 0.5]", least=1), (0.0,)
    )
    latency: bool = _field(_flag, False)
    share_equal_plans: bool = _field(_flag, False)
    #: Plan generators; all that are registered if None, or none if there are ``plans`` or
    #: ``policies``.
    generators: tuple[str, ...] | None = _field(_names, None)
    #: Plans beside those that are generated, by name: each a JSON object with the shape of the plan
    #: under its kind, such as ``{"tree": [["a", "b"], "c"]}``. A pattern with other variables
    #: refuses the plan.
    plans: tuple[tuple[str, str], ...] = _field(
        _table_of(_json_of(_plan, _A_PLAN), "plan", f"{{left-deep = {_A_PLAN}}}"), ()
    )
    #: Adaptive runs beside those of plans, by name: each a JSON object with the built-in ``policy``
    #: and, optionally, ``generator``, ``threshold`` and ``gain`` of :func:`cepbench.adapt`.
    #: Statistics of the whole stream are unknown to them.
    policies: tuple[tuple[str, str], ...] = _field(
        _table_of(_json_of(_check_policy, _A_POLICY), "policy", f"{{adaptive = {_A_POLICY}}}"), ()
    )
    batch_size: int = _field(partial(whole, error=ExperimentError, least=0), 0)
    evaluators: tuple[str, ...] | None = _field(_names, None)
    orders_in_trees: bool = _field(_flag, True)
    #: Also a mapping of evaluators to lists of options, or to a table of options in which a list
    #: stands for one value after the other.
    options: tuple[tuple[str, tuple[str, ...]], ...] = _field(_options, ())
    repetitions: int = _field(_positive, 3)
    #: Runs of each plan follow in turn until they took so many seconds together.
    seconds: float = _field(partial(number, error=ExperimentError, least=0.0), 0.0)
    #: Of the workload, the sampled statistics and the plan generators.
    seed: int = _field(partial(whole, error=ExperimentError, least=0), 0)
    time_selectivity: str = _field(_one_of(TIME_SELECTIVITIES), "adjacent")
    partial_match_limit: int = _field(_positive, PARTIAL_MATCH_LIMIT)
    outputs: tuple[str, ...] = _field(_list_of(_one_of(OUTPUTS), '["count"]', least=1), ("count",))
    #: Names and texts of user-defined patterns, without STRATEGY. With AGG if there are
    #: ``methods``.
    user_patterns: tuple[tuple[str, str], ...] = _field(
        _table_of(_pattern, "pattern", '{rise = "PATTERN … WITHIN …"}'), ()
    )
    least_rate: float | tuple[tuple[str, float], ...] | None = _field(_least_rate, None)
    most_rate: float | None = _field(_unless_none(_rate), None)
    predicates: str = _field(_one_of(PREDICATES), "n/2")
    selectivities: tuple[float, float] | None = _field(_unless_none(_selectivities), None)
    #: A time such as ``2 days``: patterns run on this much of the stream, from the first event of
    #: their types on. Statistics are those of the whole stream. Empty for all of it.
    duration: str = _field(lambda value, name: time_text(value, name) if value != "" else "", "")
    #: Several workloads in one sweep, by name: each a JSON object with the fields of
    #: :data:`OF_REGIMES` that differ in it. The column ``regime`` of the results has the name.
    regimes: tuple[tuple[str, str], ...] = _field(
        _table_of(
            _json_of(partial(check_keys, known=OF_REGIMES), _A_REGIME, sort_keys=True),
            "regime",
            f"{{dense = {_A_REGIME}}}",
        ),
        (),
    )
    #: ``methods``, ``planners``: built-in ones.
    methods: tuple[str, ...] = _field(_list_of(_one_built_in(AGGREGATORS), '["a-seq"]'), ())
    sharing: tuple[str, ...] = _field(
        _list_of(_one_built_in(WORKLOAD_PLANNERS, NO_SHARING), '["none", "PRETREE"]', least=1),
        (NO_SHARING,),
    )
    #: Names and texts of workloads, ``Q1 = PATTERN …`` for each query, with AGG if there are
    #: ``methods``.
    user_workloads: tuple[tuple[str, str], ...] = _field(
        _table_of(_workload, "workload", '{trades = "Q1 = PATTERN … WITHIN …"}'), ()
    )
    planners: tuple[str, ...] = _field(
        _list_of(
            _one_built_in(WORKLOAD_PLANNERS, fits=lambda its: its.shares == "matches"), '["CHASE"]'
        ),
        (),
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            with at_key(each.name):
                value = each.metadata["check"](getattr(self, each.name), each.name)
            object.__setattr__(self, each.name, value)
        self._check_methods()
        if getattr(self, "pattern_sets", None) is None:
            written = self.user_patterns or self.methods or self.planners
            sets = () if written else tuple(PATTERN_SETS)
            object.__setattr__(self, "pattern_sets", sets)
        others = self.plans or self.policies or self.methods or self.planners
        if others and self.generators is None:
            object.__setattr__(self, "generators", ())
        generators = {*map(folded, PLAN_GENERATORS)}
        for of, key in (("plan", "plans"), ("policy", "policies")):
            for name in dict(getattr(self, key)):
                if folded(name) in generators:
                    wrong = f"{of} {name!r}: a plan generator has this name"
                    raise ExperimentError(wrong, (key, name))
        for name in dict(self.plans).keys() & dict(self.policies).keys():
            raise ExperimentError(f"policy {name!r}: a plan has this name", ("policies", name))
        if self.max_partial_matches == math.inf:
            object.__setattr__(self, "max_partial_matches", None)
        written = self.user_patterns or self.user_workloads
        wanted = "user_patterns" if self.methods else "pattern_sets and sizes, or user_patterns"
        if not (self.pattern_sets and self.sizes) and not written:
            raise ExperimentError(
                f"the sweep has no patterns: name {'user_workloads' if self.planners else wanted}"
            )
        least = (
            dict(self.least_rate) if isinstance(self.least_rate, tuple) else {"": self.least_rate}
        )
        for rate in least.values():
            if rate is not None and self.most_rate is not None and rate > self.most_rate:
                raise ExperimentError(
                    f"least_rate is {rate:g} and most_rate {self.most_rate:g}: no identifier has both",
                    ("least_rate",),
                )
        for name in dict(self.regimes):
            with at_key("regimes"), at_key(name):
                self.in_regime(name)

    def _check_methods(self) -> None:
        """Check that the sweep is of plans, of methods and patterns with AGG, or of planners."""
        if not self.methods and self.sharing != (NO_SHARING,):
            raise ExperimentError(
                "sharing is about aggregation methods; name them in methods", ("sharing",)
            )
        if self.user_workloads and not (self.methods or self.planners):
            raise ExperimentError(
                "user_workloads run by planners, or by aggregation methods; name them in planners or "
                "in methods",
                ("user_workloads",),
            )
        if self.methods:
            self._check_absent((*_OF_PATTERNS, *_OF_MATCHES), "plans, and methods run none")
        elif self.planners:
            wrong = "single patterns, and planners are of workloads"
            self._check_absent((*_OF_PATTERNS, "user_patterns"), wrong)
        if self.user_patterns and self.sharing != (NO_SHARING,):
            raise ExperimentError(
                "sharing is between the queries of user_workloads; leave it out, or user_patterns",
                ("sharing",),
            )
        named = [(("user_patterns", key), parse(query)) for key, query in self.user_patterns]
        for key, queries in self.user_workloads:
            patterns = Workload.parse(queries).patterns.values()
            named += [(("user_workloads", key), pattern) for pattern in patterns]
        for keys, pattern in named:
            if bool(pattern.aggregates) != bool(self.methods):
                problem = "no AGG; add it, or leave methods out"
                if not self.methods:
                    problem = "AGG, which plans do not run; leave it out, or name methods"
                raise ExperimentError(f"{keys[1]!r} of {keys[0]} has {problem}", keys)

    def _check_absent(self, names: Sequence[str], wrong: str) -> None:
        for name in names:
            given = getattr(self, name)
            if given != _default(self, name) and given != ():
                raise ExperimentError(f"{name} is about {wrong}; a sweep has either", (name,))

    @property
    def workloads(self) -> dict[str, Self]:
        """The configuration of each regime by its name; of a sweep without any under ``""``."""
        return {name: self.in_regime(name) for name, _ in self.regimes} or {"": self}

    def in_regime(self, name: str) -> Self:
        """The configuration with the changes of a regime; unchanged if the name is empty."""
        if not name:
            return self
        return replace(self, regimes=(), **json.loads(dict(self.regimes)[name]))

    @property
    def data_of(self) -> dict[str, str]:
        """Path of the data of each stream by its name; of a single one under ``""``."""
        return dict(self.streams) or {"": self.data}

    def windows_on(self, stream: str) -> tuple[str, ...]:
        """The windows of every pattern on a stream; ``""`` is its own."""
        of_stream = dict(self.stream_windows).get(stream)
        return (of_stream,) if of_stream else self.windows or ("",)

    def grid(self, generators: Sequence[str | PlanGenerator], stream: str = "") -> Grid:
        """The cells of each pattern on a stream; ``plans`` come after the generators."""
        fixed = [fixed_plan(name, _plan(json.loads(given))) for name, given in self.plans]
        shared = {each.name for each in fields(Grid)} & {each.name for each in fields(self)}
        values = {name: getattr(self, name) for name in shared}
        return Grid(
            **values
            | {
                "generators": [*generators, *fixed],
                "policies": {name: json.loads(given) for name, given in self.policies},
                "options": dict(self.options),
                "windows": self.windows_on(stream),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON; later fields only if they are not the default."""
        listed = {each.name: getattr(self, each.name) for each in fields(self)}
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in listed.items()}
        for name in ("streams", "user_patterns", "user_workloads", "stream_windows"):
            values[name] = dict(getattr(self, name))
        if isinstance(self.least_rate, tuple):
            values["least_rate"] = dict(self.least_rate)
        for name in ("regimes", "plans", "policies"):
            values[name] = {key: json.loads(given) for key, given in getattr(self, name)}
        values["options"] = {
            name: [json.loads(one) for one in several] for name, several in self.options
        }
        for several, single in SEVERAL.items():
            if values[several]:
                del values[single]
        usual = {name for name in _LATER if getattr(self, name) == _default(self, name)}
        return {name: value for name, value in values.items() if name not in usual}

    def folder_name(self, sweep: str) -> str:
        """The name of a sweep's folder of results, such as ``types-f964d09a``.

        It is determined by the configuration without the location of the data.
        """
        named = json.dumps(
            {_FIRST_NAMES.get(k, k): v for k, v in _without_places(self).items()}, sort_keys=True
        )
        return f"{sweep}-{zlib.crc32(named.encode()):08x}"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; missing fields have their defaults.

        An ExperimentError if a key is unknown (with the nearest known one), ``data`` is missing, or
        a value is invalid.
        """
        check_keys(values, [each.name for each in fields(cls)])
        for several, single in SEVERAL.items():
            if values.get(several) and values.get(single):
                raise ExperimentError(f"a sweep has {single} or {several}, not both", (several,))
        if "data" not in values and not values.get("streams"):
            raise ExperimentError(
                "the sweep names no data: it needs 'data', a data set or path, or 'streams', "
                "several by name"
            )
        return cls(**values)


def _default(config: SweepConfig, name: str) -> Any:
    return next(each.default for each in fields(config) if each.name == name)


def _without_places(config: SweepConfig) -> dict[str, Any]:
    """The configuration with the names of its data in place of paths."""
    if config.streams:
        named = {name: Path(path).name for name, path in config.streams}
        return {**config.to_dict(), "streams": named}
    return {**config.to_dict(), "data": Path(config.data).name}


def identity_of(config: SweepConfig, generators: Sequence[PlanGenerator]) -> dict[str, Any]:
    """The configuration together with its data and user-defined code.

    A sweep resumes another one only if their identities are equal.

    Its keys are those of :meth:`SweepConfig.to_dict`, with the name of the data in place of its path;
    ``data_made_from``, the declaration of the data set (of other Parquet, its size), of several
    streams by name; ``user_generators`` and, if there are any, ``user_evaluators``, a short hash of
    each one's code by name; ``user_cost``, that of a user-defined cost model.

    ``generators``: those that ``config.generators`` names.

    A DatasetError if there is no data set, or an incomplete one.
    """
    evaluators = {e.name: hash_of_code(e) for e in evaluators_of(config) if not e.is_builtin}
    cost = cost_from(config.cost)
    return {
        **_without_places(config),
        "data_made_from": (
            {name: _origin(path) for name, path in config.streams}
            if config.streams
            else _origin(config.data)
        ),
        "user_generators": {g.name: hash_of_code(g) for g in generators if not g.is_builtin},
        **({"user_evaluators": evaluators} if evaluators else {}),
        **({"user_cost": hash_of_code(cost)} if isinstance(cost, UserCost) else {}),
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


def hash_of_code(part: PlanGenerator | Evaluator | UserCost) -> str:
    """A hash that changes when a user-defined function, or what it reaches in its file, is edited.

    See :func:`cepbench.experiments.sweeps.reached_code.reached_code`. Of a function from a notebook only its own text
    counts, not the functions that it calls.
    """
    function = part.function
    # What a partial, a bound method, an object or a closure holds may be set anywhere in the file.
    held = isinstance(function, partial) or inspect.ismethod(function)
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    held |= not hasattr(function, "__qualname__")
    named = function if hasattr(function, "__qualname__") else type(function)
    try:
        file = Path(inspect.getsourcefile(named) or "")
        lines, first = inspect.getsourcelines(named)
        code = "".join(lines)
    except (OSError, TypeError):  # a function without a file, or no plain function
        file, first, code = Path(), 0, f"{named.__module__}.{named.__qualname__}"
    around = file.read_text(encoding="utf-8") if file.is_file() else ""
    if not (held or "<locals>" in named.__qualname__):
        around = reached_code(around, first)
    match part:
        case PlanGenerator():
            declared = f"{part.kind} {part.max_size}"
        case UserCost():
            declared = f"{part.of} {part.in_logs}"
        case _:
            declared = part.name
    return hashlib.sha256(f"{declared} {code} {around}".encode()).hexdigest()[:16]
