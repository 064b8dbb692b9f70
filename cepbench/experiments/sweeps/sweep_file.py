"""Sweep files: TOML with profiles; the sweeps of studies are such files too.

TOML, since Python reads it without another package, it distinguishes numbers from texts, and it has
multi-line texts and comments.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from cepbench.arguments import choice, shown, whole
from cepbench.errors import CepbenchError, DatasetError, ExperimentError, at_key, did_you_mean
from cepbench.experiments.sweeps.cells import Cell
from cepbench.experiments.sweeps.configuration import (
    SEVERAL,
    SweepConfig,
    check_keys,
    evaluators_of,
    time_text,
)
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.workload import USER, WORKLOAD, user_specs
from cepbench.files import user_path
from cepbench.patterns.times import read_columns
from cepbench.planning.costs.models import cost_from
from cepbench.planning.planners.registry import default_generators, find_generator
from cepbench.streams.dataset_folder import read_declaration, type_column
from cepbench.streams.datasets.catalogue import folders
from cepbench.streams.datasets.library import read_library
from cepbench.streams.datasets.opening import open_dataset
from cepbench.streams.generated import GENERATED, parameters_of, stream_of
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.parquet_layout import open_parquet
from cepbench.streams.synthetic import GeneratedStream

#: Study -> folder of its sweep files. Those of the package are found by their path, so that reading
#: one loads no study; :func:`cepbench.experiments.studies.registry.register` adds others.
SWEEP_FOLDERS: dict[str, Path] = {
    folder.parent.name: folder
    for folder in sorted((Path(__file__).parents[1] / "studies").glob("*/sweeps"))
}

#: Name of the profile that is read by default, if a file has it.
DEFAULT_PROFILE = "quick"

#: Of a user's sweep that names none: seconds for which the runs of each plan are repeated, since ratios
#: of shorter runs are noise.
USER_SECONDS = 0.3

#: Keys of sweeps without plans of single patterns, which could be equal.
_WITHOUT_PLANS = ("methods", "planners", "user_workloads")

#: Keys that a file has beside the fields of SweepConfig.
_ABOUT = ("title", "description")
#: Of a stream that is generated, beside its parameters: the window of every pattern on it.
_WINDOW = "window"
#: Parameters that all generated streams share.
_DEFAULTS = "stream_defaults"

#: The keys of a sweep file; a profile and a change may set each. Windows of streams are in theirs.
KEYS = (
    *_ABOUT,
    _DEFAULTS,
    *(each.name for each in fields(SweepConfig) if each.name != "stream_windows"),
)

#: Keys that have no meaning where no patterns are drawn.
_OF_DRAWING = ("sizes", "patterns", "window", "attribute", "max_partial_matches",
               "max_kleene_events", "least_rate", "most_rate", "predicates", "selectivities",
               "regimes")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep file, read in one of its profiles."""

    #: The stem of the file; results lie in a folder of this name.
    name: str
    #: Of the file.
    path: Path
    title: str
    description: str
    #: None for a file without profiles.
    profile: str | None
    #: All that the file has.
    profiles: tuple[str, ...]
    #: By the names of the streams, ``""`` for a single one: path or name of a data set, or the
    #: parameters of a generated stream and its ``kind``, one of
    #: :data:`cepbench.streams.generated.GENERATED`, by default ``nasdaq-style``; its seed is by
    #: default that of the sweep.
    data: Mapping[str, str | Mapping[str, Any]]
    #: The other fields of :class:`SweepConfig`, by their names there.
    values: Mapping[str, Any]
    #: The table that a key is in, by default none; None for a key that is not the file's.
    tables: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Of the workload, and of generated streams."""
        return self.config("").seed

    @property
    def stream(self) -> Mapping[str, Any] | None:
        """Parameters of a single generated stream, else None."""
        single = self.data.get("")
        return single if isinstance(single, Mapping) else None

    @property
    def generated(self) -> dict[str, GeneratedStream]:
        """The streams to generate, by name."""
        seed = self.seed
        return {
            name: _generated(given, seed)
            for name, given in self.data.items()
            if not isinstance(given, str)
        }

    def config(self, data: str | Path | Mapping[str, str | Path]) -> SweepConfig:
        """The configuration on data at this path, or at these by stream."""
        paths = data if isinstance(data, Mapping) else dict.fromkeys(self.data, data)
        its = {"data": paths[""]} if "" in self.data else {"streams": paths}
        return SweepConfig.from_dict({**self.values, **its})

    def cells(self) -> list[Cell]:
        """The cells of each pattern on each stream; see :class:`cepbench.experiments.sweeps.grid.Grid`.

        An ExperimentError if a plan generator or evaluator is unknown, or a plan fits no evaluator.
        """
        try:
            return self._grid().cells()
        except CepbenchError as error:
            raise ExperimentError(f"{self.path}: {error}") from error

    def _grid(self) -> Grid:
        config = self.config("")
        return config.grid(default_generators() if config.generators is None else config.generators)

    def check(self, root: str | Path) -> None:
        """Check everything that the file names: nothing is generated, and no Spark started.

        ``root``: folder of generated streams.

        An ExperimentError with file, line and key, if a plan generator, evaluator, option, cost or
        data set is unknown, a plan fits no evaluator, nothing is to be run, or the data has no type
        or attribute that a pattern names.
        """
        config, grid = self.config(""), self._grid()
        with self._located():
            with _about("generators"):
                _check_once([find_generator(name).name for name in config.generators or ()])
            with _about("evaluators"):
                _check_once([entry.name for entry in evaluators_of(config)])
            with _about("sharing"):
                grid.aggregations()
            with _about("options"):
                grid.checked_options()
            with _about("cost"):
                cost = cost_from(config.cost)
            with _about("alphas"):
                for alpha in config.alphas:
                    cost_from(cost, alpha)
            with _about("generators" if config.evaluators is None else "evaluators"):
                if not grid.cells():
                    raise ExperimentError("nothing is named that the sweep could run")
            found, generated = [], self.generated
            for name, data in self.data.items():
                with _about(*(("streams", name) if name else ("data",))):
                    path = _path_of(data, self.path.parent, root, config.seed)
                    found.append(names_of(path, generated.get(name)))
            check_names(config, found)

    def _located(self) -> AbstractContextManager[None]:
        return _located(self.path, _read(self.path)[0], self.tables)

    def describe(self) -> str:
        """Title, data, patterns and the grid, a line each."""
        config = self.config("")
        patterns = [
            *(_drawn(name, part) for name, part in config.workloads.items() if part.pattern_sets),
            *([f"{len(config.user_patterns)} user-defined"] if config.user_patterns else []),
            *(f"workload {name}" for name, _ in config.user_workloads),
        ]
        names = ("methods", "sharing") if config.methods else ("strategies", "alphas", "outputs")
        usual = ["those of the default set"]
        generators = usual if config.generators is None else config.generators
        lines = [
            *(
                (f"stream {name}" if name else "data", _described(given))
                for name, given in self.data.items()
            ),
            *(("patterns" if number == 0 else " ", text) for number, text in enumerate(patterns)),
            ("windows", _listed(config.windows)),
            *(("windows", f"{window} on {name}") for name, window in config.stream_windows),
            ("generators", _listed(generators)),
            ("plans", _listed(dict(config.plans))),
            ("policies", _listed(dict(config.policies))),
            *(("options", f"{name}: {_listed(several)}") for name, several in config.options),
            ("planners", _listed(config.planners)),
            *((name, _listed(getattr(config, name))) for name in names),
            ("repetitions", str(config.repetitions)),
        ]
        profile = f", profile {self.profile}" if self.profile else ""
        return "\n".join(
            [
                f"{self.name}{profile}: {self.title}",
                *(f"  {name:<11} {text}" for name, text in lines if text),
            ]
        )


@contextmanager
def _about(*keys: str) -> Iterator[None]:
    """Say of errors raised inside that they are about the value of a key."""
    try:
        yield
    except ExperimentError as error:
        error.keys = (*keys, *error.keys)
        raise
    except CepbenchError as error:
        raise ExperimentError(f"{keys[0]}: {error}", keys) from error


def _check_once(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ExperimentError(f"{name} is named twice, in other letters")


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(f"{its:g}" if isinstance(its, float) else str(its) for its in values)


def _drawn(regime: str, config: SweepConfig) -> str:
    """The patterns that a regime draws, or a sweep without regimes."""
    number = len(config.pattern_sets) * len(config.sizes) * config.patterns
    sizes = ", ".join(map(str, config.sizes))
    named = f"{regime}: " if regime else ""
    return f"{named}{number} drawn ({', '.join(config.pattern_sets)}; sizes {sizes})"


def _described(data: str | Mapping[str, Any]) -> str:
    if isinstance(data, str):
        return data
    required = GENERATED[_kind(data)].required
    sizes = [f"{data[name]} {name}" for name in required]
    more = [f"{name} {value}" for name, value in data.items() if name not in (*required, "kind")]
    return f"a generated {_kind(data)} stream of {', '.join([*sizes, *more])}"


def _kind(stream: Mapping[str, Any]) -> str:
    return str(stream.get("kind", NasdaqStyle.kind))


def _generated(stream: Mapping[str, Any], seed: int) -> GeneratedStream:
    parameters = {name: value for name, value in stream.items() if name != "kind"}
    return stream_of(_kind(stream), {"seed": seed, **parameters})


def read_sweep(
    source: str | Path, *, profile: str | None = None, changes: Mapping[str, Any] | None = None
) -> Sweep:
    """Read a sweep from a file, or a study's sweep by its name.

    An ExperimentError with file, line and key: if there is no such file, it is not TOML, a key is
    unknown (with the nearest known one) or a value is invalid; for a pattern with its name and the
    place in its text.

    Parameters
    ----------
    source
        A file in TOML, or one of the names in :func:`named_sweeps`, with or without the study. A
        file that is no study's measures each plan for :data:`USER_SECONDS` unless it names seconds
        or repetitions, and equal plans once unless it says otherwise.
    profile
        A table ``[profile.<name>]`` of the file, whose keys replace the file's other keys. By
        default ``quick`` if there is one, else none.
    changes
        Keys of :data:`KEYS` with values that replace those of file, profile and regimes.

    Examples
    --------
    >>> sweep = read_sweep("latency", profile="quick", changes={"patterns": 4})
    >>> sweep.config("data").alphas
    (0.0, 0.5, 1.0, 10.0, 100.0)
    """
    path = find_sweep(source)
    changes = changes or {}
    check_keys(changes, KEYS)
    text, content = _read(path)
    with _located(path, text):
        profiles = content.pop("profile", {})
        if not (isinstance(profiles, dict) and all(isinstance(p, dict) for p in profiles.values())):
            raise ExperimentError("profiles are tables, such as [profile.quick]", ("profile",))
        check_keys(content, (*KEYS, "profile"))
        for name, keys in profiles.items():
            with at_key("profile"), at_key(name):
                check_keys(keys, KEYS)
    chosen = _chosen_profile(profile, profiles, path)
    of_profile = profiles[chosen] if chosen else {}
    values: dict[str, Any] = {}
    for layer in (content, of_profile, changes):
        for several, single in SEVERAL.items():  # either takes the place of the other
            if layer.keys() & {several, single}:
                values = {key: values[key] for key in values.keys() - {several, single}}
        values |= layer
    if isinstance(values.get("regimes"), Mapping) and "regimes" not in changes:
        # A change holds in every regime.
        values["regimes"] = {
            name: {key: value for key, value in table.items() if key not in changes}
            if isinstance(table, Mapping)
            else table
            for name, table in values["regimes"].items()
        }
    if path.resolve() not in {file.resolve() for file in named_sweeps().values()}:
        defaults: dict[str, Any] = {}
        if "repetitions" not in values:
            defaults["seconds"] = USER_SECONDS
        if not values.keys() & {*_WITHOUT_PLANS}:
            defaults["share_equal_plans"] = True
        values = {**defaults, **values}
    tables = dict.fromkeys(of_profile, ("profile", str(chosen))) | dict.fromkeys(changes)
    with _located(path, text, tables):
        described = {key: values.pop(key, "") for key in _ABOUT}
        for key, about in described.items():
            if not isinstance(about, str):
                raise ExperimentError(f"{key} must be a text, not {about!r}", (key,))
        data = _data_of(values)
        if data and isinstance(values.get("user_patterns"), list):
            with at_key("user_patterns"):
                first = next(iter(data.values()))
                values["user_patterns"] = _library_patterns(values["user_patterns"], first)
        config = SweepConfig.from_dict(values)
        for key in _OF_DRAWING:
            if key in values and not config.pattern_sets:
                raise ExperimentError(
                    f"{key} is about patterns that are drawn, and this sweep draws none: name "
                    "pattern_sets as well, or leave it out",
                    (key,),
                )
    return Sweep(
        name=path.stem,
        path=path,
        title=described["title"].strip() or path.stem,
        description=described["description"].strip(),
        profile=chosen,
        profiles=tuple(profiles),
        data=data,
        values={key: value for key, value in values.items() if key not in ("data", "streams")},
        tables=tables,
    )


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ExperimentError(
            f"{path} is no text in UTF-8, as TOML must be: {error}; save it in that encoding"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path} is no TOML: {error}") from error


def find_sweep(source: str | Path) -> Path:
    """The file of a sweep, from its path or the name of a study's sweep.

    An ExperimentError if there is none, or several studies have one of that name.
    """
    path = user_path(source)
    if path.is_file():
        return path
    named = named_sweeps()
    found = [name for name in named if str(source) in (name, name.partition("/")[2])]
    if len(found) == 1:
        return named[found[0]]
    if found:
        raise ExperimentError(
            f"several studies have a sweep {str(source)!r}; name one of {', '.join(found)}"
        )
    if path.suffix == ".toml":
        raise ExperimentError(f"there is no file {path}; is the path right?")
    short = [name.partition("/")[2] for name in named]
    raise ExperimentError(
        f"unknown sweep {str(source)!r}: it is neither a file nor a name; names are "
        f"{', '.join(named)}{did_you_mean(str(source), [*short, *named], cutoff=0.5)}"
    )


def named_sweeps() -> dict[str, Path]:
    """``study/name`` -> file of the sweeps of all studies."""
    return {
        f"{study}/{path.stem}": path
        for study, folder in SWEEP_FOLDERS.items()
        for path in sorted(folder.glob("*.toml"))
    }


def changes_of(texts: Iterable[str] | None) -> dict[str, Any]:
    """The values by their keys, as :func:`change_of`; an ExperimentError if a key is changed twice."""
    found = [change_of(text) for text in texts or ()]
    for place, (key, _) in enumerate(found):
        if key in dict(found[:place]):
            raise ExperimentError(f"--set {key}: it is given twice; give it once")
    return dict(found)


def change_of(text: str) -> tuple[str, Any]:
    """A key and its value from ``KEY=VALUE``, the value as a sweep file writes it.

    An ExperimentError if it is not of that form.
    """
    key, sign, value = text.partition("=")
    try:
        return key.strip(), tomllib.loads(f"value = {value if sign else ''}")["value"]
    except tomllib.TOMLDecodeError:
        raise ExperimentError(
            f"--set {text}: it must be FIELD=VALUE with a value as in a sweep file, such as "
            "patterns=10, 'pattern_sets=[\"sequence\"]' or 'window=\"5 minutes\"'"
        ) from None


@contextmanager
def _located(
    path: Path, text: str, tables: Mapping[str, tuple[str, ...] | None] = MappingProxyType({})
) -> Iterator[None]:
    """Prefix errors with the file and the line of the key at fault; see :attr:`Sweep.tables`."""
    try:
        yield
    except ExperimentError as error:
        table = tables.get(error.keys[0], ()) if error.keys else ()
        if table is None:
            raise
        line = _line_of((*table, *error.keys), text)
        raise ExperimentError(f"{path}{f', line {line}' if line else ''}: {error}") from error


_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_LINE = re.compile(rf"\s*(\[\[?)?\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*(?(1)\]|=)")


def _line_of(keys: tuple[str, ...], text: str) -> int | None:
    """The line of a key, or of the innermost table around it that has a line of its own."""
    lines = []
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _LINE.match(line):
            named = tuple(key.strip("\"'") for key in re.findall(_KEY, found[2]))
            lines.append((number, named if found[1] else table + named))
            table = named if found[1] else table
    for depth in range(len(keys), 0, -1):
        for number, path in lines:
            if path[:depth] == keys[:depth]:
                return number
    return None


def _data_of(values: dict[str, Any]) -> dict[str, str | Mapping[str, Any]]:
    """Each stream's data by its name, ``""`` for a single one; leaves a path for each in values."""
    found: dict[str, str | Mapping[str, Any]] = {}
    defaults = values.pop(_DEFAULTS, {})
    if not isinstance(defaults, Mapping):
        raise ExperimentError(
            f"{_DEFAULTS} must be a table of parameters of streams, not {defaults!r}", (_DEFAULTS,)
        )
    if "data" in values:
        with at_key("data"):
            found[""] = _checked_data(values["data"], "data", defaults)
        values["data"] = "x"
    if "streams" in values:
        streams = values["streams"]
        with at_key("streams"):
            if not (isinstance(streams, Mapping) and streams):
                raise ExperimentError(
                    f"streams must be tables of data sets, such as [streams.small] with "
                    f"identifiers = 12 and days = 1, not {streams!r}"
                )
            windows = {}
            for name, data in streams.items():
                window = None
                if isinstance(data, Mapping) and _WINDOW in data:
                    with at_key(name), at_key(_WINDOW):
                        window = time_text(data[_WINDOW], f"the window of {name}")
                    data = {key: value for key, value in data.items() if key != _WINDOW}
                with at_key(name):
                    for each, of_seed in _by_seed(name, data, defaults).items():
                        found[each] = _checked_data(of_seed, f"stream {name!r}", defaults)
                        if window is not None:
                            windows[each] = window
        values["streams"] = dict.fromkeys(found, "x")
        if windows:
            values["stream_windows"] = windows
    return found


def _by_seed(name: str, data: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A stream by its name; one with a list of seeds as a stream of each, such as ``small-seed0``."""
    seeds = {**defaults, **data}.get("seed") if isinstance(data, Mapping) else None
    if not isinstance(seeds, list):
        return {name: data}
    with at_key("seed"):
        listed = [whole(seed, "each seed", ExperimentError, least=0) for seed in seeds]
        if not listed or len(set(listed)) < len(listed):
            raise ExperimentError(f"seed lists different seeds, at least one, not {shown(seeds)}")
    return {f"{name}-seed{seed}": {**data, "seed": seed} for seed in listed}


def _checked_data(value: Any, name: str, defaults: Mapping[str, Any]) -> str | Mapping[str, Any]:
    """The name or path of a data set, or the parameters of a stream to generate."""
    if isinstance(value, str | Path) and str(value):
        return str(value)
    if not isinstance(value, Mapping):
        raise ExperimentError(
            f"{name} must be the name of a data set, a path, or such as "
            f"{{identifiers = 120, days = 10}}, not {value!r}"
        )
    stream = {**defaults, **value}
    try:
        check_keys(stream, ["kind", *parameters_of(_kind(stream))])
        _generated(stream, seed=0)
    except DatasetError as error:
        raise ExperimentError(f"{name}: {error}") from error
    return stream


def _library_patterns(names: Sequence[Any], data: Any) -> dict[str, str]:
    """Patterns by name from the library of a data set, or of generated streams."""
    known = folders()
    named = data.strip("/").partition("/")[0] if isinstance(data, str) else _kind(data)
    if named not in known:
        raise ExperimentError(
            f"user_patterns names patterns of a library, and {data!r} is no data set of the "
            "catalogue; write their texts, as in [user_patterns] and then name = 'PATTERN …'"
        )
    library = read_library(known[named], named)
    try:
        return {str(name): library.entry(str(name)).plain_text for name in names}
    except DatasetError as error:
        raise ExperimentError(error) from error


def _chosen_profile(asked: str | None, profiles: Mapping[str, Any], path: Path) -> str | None:
    if asked is None:
        return DEFAULT_PROFILE if DEFAULT_PROFILE in profiles else None
    if not profiles:
        raise ExperimentError(f"{path} has no profiles; leave {asked!r} out")
    return choice(asked, f"the profile of {path}", profiles, ExperimentError)


def data_folder(root: str | Path, stream: Mapping[str, Any], seed: int) -> Path:
    """The folder of a generated stream with these parameters, within a folder of data."""
    return user_path(root) / _generated(stream, seed).name


def data_paths(sweep: Sweep, root: str | Path) -> dict[str, Path]:
    """The path of each stream of a sweep; a stream to be generated need not exist yet.

    Parquet by the stream's name, ``""`` for a single one. Relative paths in a sweep file are
    relative to the working directory or, if there is no such path, to the file's folder.

    ``root``: folder for generated streams, which all sweeps share.

    A DatasetError if there is no such data set or path, it cannot be made, or it is not Parquet.
    """
    seed = sweep.seed
    folder = sweep.path.parent
    return {name: _path_of(data, folder, root, seed) for name, data in sweep.data.items()}


def _path_of(data: str | Mapping[str, Any], folder: Path, root: str | Path, seed: int) -> Path:
    return _named(data, folder) if isinstance(data, str) else data_folder(root, data, seed)


def _named(data: str, folder: Path) -> Path:
    """A path relative to the working directory or to ``folder``, or a data set by its name."""
    named = user_path(data)
    found = next((path for path in (named, folder / named) if path.exists()), None)
    if found is None:
        found = open_dataset(data).path
    if found.is_file() and found.suffix != ".parquet":
        raise DatasetError(
            f"{found} is no Parquet, and a sweep reads nothing else; convert it by "
            "`cepbench data ingest`"
        )
    return found


def sweep_folder(root: str | Path, experiment: str, config: SweepConfig) -> Path:
    """The folder of a sweep's results within a folder of data, named by the configuration.

    Equal configurations share and resume a folder; the location of the data is not part of it.
    """
    return user_path(root) / "sweeps" / config.folder_name(experiment)


#: Parameters of generated streams that decide how many events there are, but not of what types; and
#: values for which there are few.
_FEW = {"events": 1_000, "days": 1}

#: Events whose types are not read for this.
_MANY = 10_000_000


@dataclass(frozen=True, slots=True)
class Names:
    """Names in events."""

    #: Types and the concepts above them; None if too many events would have to be read.
    types: frozenset[str] | None
    #: Attributes, and the columns of time and type.
    columns: tuple[str, ...]


def names_of(path: Path, stream: GeneratedStream | None) -> Names:
    """The names in data at a path, or in a stream that will be generated there.

    A DatasetError if the data cannot be read.
    """
    if stream is not None and not path.exists():
        few = {each.name for each in fields(cast(Any, stream))} & _FEW.keys()
        few_events = replace(cast(Any, stream), **{name: _FEW[name] for name in few})
        table = few_events.table(*next(iter(few_events.files().values())))
        column = table[type_column(stream.kind)].combine_chunks()
        return _names_in(column.dictionary.to_pylist(), table.schema)
    declaration = read_declaration(path)
    try:
        events = open_parquet(path)
        if declaration is not None:
            types = [name for name, count in declaration.counts.items() if count]
            return _names_in(types, events.schema)
        column = type_column("")
        if column not in events.schema.names or events.count_rows() > _MANY:
            return _names_in(None, events.schema)
        found = pc.unique(events.to_table(columns=[column])[column])
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read as Parquet: {error}") from error
    return _names_in([str(name) for name in found.to_pylist()], events.schema)


def _names_in(types: Iterable[str] | None, schema: pa.Schema) -> Names:
    hierarchy = hierarchy_of_schema(schema)
    concepts = hierarchy.names if hierarchy else ()
    return Names(None if types is None else frozenset([*types, *concepts]), tuple(schema.names))


def check_names(config: SweepConfig, names: Iterable[Names]) -> None:
    """Check that the data of every stream has the types and attributes that patterns name.

    An ExperimentError with the key and the nearest name.
    """
    for each in names:
        drawn = [part for part in config.workloads.values() if part.pattern_sets]
        if drawn:
            with at_key("attribute"):
                _check_attributes([config.attribute], each, "patterns that are drawn")
        largest = max((size for part in drawn for size in part.sizes), default=0)
        if each.types is not None and largest > len(each.types):
            raise ExperimentError(
                f"pattern size {largest}: the data has only {len(each.types)} types", ("sizes",)
            )
        for key, what, of, texts in (
            ("user_patterns", "pattern", USER, config.user_patterns),
            ("user_workloads", "workload", WORKLOAD, config.user_workloads),
        ):
            for name, text in texts:
                with at_key(key), at_key(name):
                    (spec,) = user_specs([(name, text)], each.types, config.seed, of)
                    for pattern in spec.patterns:
                        _check_attributes(
                            read_columns(pattern.attributes), each, f"{what} {name!r}"
                        )


def _check_attributes(wanted: Iterable[str], names: Names, what: str) -> None:
    for name in wanted:
        if name not in names.columns:
            raise ExperimentError(
                f"{what}: the data has no attribute {name!r}; there are "
                f"{', '.join(names.columns)}{did_you_mean(name, names.columns)}"
            )
