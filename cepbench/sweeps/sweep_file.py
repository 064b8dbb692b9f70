"""A sweep as a small file in TOML, with profiles; the sweeps of studies are such files too.

TOML because Python reads it without another package, numbers and texts differ in it, a pattern may
stand over several lines as it is, and comments may say why.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cepbench.datasets.opening import open_dataset
from cepbench.errors import CepbenchError, DatasetError, ExperimentError, did_you_mean
from cepbench.planners.registry import default_generators
from cepbench.streams.nasdaq_files import KIND
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.sweeps.cells import Cell
from cepbench.sweeps.configuration import SEVERAL, SweepConfig
from cepbench.sweeps.user_patterns import library_patterns

#: Study -> folder of its sweep files. Those of the package are found by where they lie, so that
#: reading one loads no study; :func:`cepbench.studies.registry.register` adds those of others.
SWEEP_FOLDERS: dict[str, Path] = {
    folder.parent.name: folder
    for folder in sorted((Path(__file__).parents[1] / "studies").glob("*/sweeps"))
}

#: The profile of a file that has one of this name, unless another one is asked for.
DEFAULT_PROFILE = "quick"

#: Keys that a file has beside the fields of SweepConfig.
_ABOUT = ("title", "description")

#: The keys of a sweep, in a file's usual order; a profile and a change may set all of them.
KEYS = (
    *_ABOUT,
    *(field.name for field in fields(SweepConfig)),
)  # fmt: skip

#: Keys of how patterns are drawn, without any meaning where none are.
_OF_DRAWING = ("sizes", "patterns", "window", "attribute", "max_partial_matches",
               "max_kleene_events")  # fmt: skip

#: Parameters of a stream that is generated for the sweep, the first two of which it must have.
_STREAM = ("identifiers", "days", "seed", "least_rate", "most_rate", "drift", "segment_minutes")


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep file, read in one of its profiles.

    Attributes
    ----------
    name : str
        The stem of the file; results lie in a folder of this name.
    path : Path
        Of the file.
    title, description : str
    profile : str or None
        None for a file without profiles.
    profiles : tuple of str
        All that the file has.
    data : mapping of str to (str or mapping)
        By the names of the streams, ``""`` for a single one: path or name of a data set; or
        parameters of a stream that is generated in the style of NASDAQ prices, see
        :class:`cepbench.streams.nasdaq_style.NasdaqStyle`, from the seed of the sweep unless they
        have one.
    values : mapping of str to object
        The other fields of :class:`SweepConfig`, by their names there.
    """

    name: str
    path: Path
    title: str
    description: str
    profile: str | None
    profiles: tuple[str, ...]
    data: Mapping[str, str | Mapping[str, Any]]
    values: Mapping[str, Any]

    @property
    def seed(self) -> int:
        """Of the workload, and of generated streams."""
        return self.config("").seed

    @property
    def stream(self) -> Mapping[str, Any] | None:
        """Parameters of the one stream to generate; None if it is there already, or if several."""
        single = self.data.get("")
        return single if isinstance(single, Mapping) else None

    @property
    def generated(self) -> dict[str, NasdaqStyle]:
        """The streams to generate, by name; what is named by a text is there already."""
        return {
            name: NasdaqStyle(**{"seed": self.seed, **given})
            for name, given in self.data.items()
            if not isinstance(given, str)
        }

    def config(self, data: str | Path | Mapping[str, str | Path]) -> SweepConfig:
        """The configuration, on data that lies at this path; or at these, by stream."""
        if set(self.data) == {""}:
            path = data[""] if isinstance(data, Mapping) else data
            return SweepConfig.from_dict({**self.values, "data": path})
        paths = data if isinstance(data, Mapping) else dict.fromkeys(self.data, data)
        return SweepConfig.from_dict({**self.values, "streams": paths})

    def cells(self) -> list[Cell]:
        """What is run for each pattern on each stream; see :class:`cepbench.sweeps.grid.Grid`.

        Raises
        ------
        ExperimentError
            If a plan generator or evaluator is unknown, or two of them do not fit.
        """
        config = self.config("")
        try:
            return config.grid(
                default_generators() if config.generators is None else config.generators
            ).cells()
        except CepbenchError as error:
            raise ExperimentError(f"{self.path}: {error}") from error

    def describe(self) -> str:
        """Title, data, patterns and the grid, a line each."""
        config = self.config("")
        drawn = len(config.pattern_sets) * len(config.sizes) * config.patterns
        sizes = ", ".join(map(str, config.sizes))
        patterns = [
            f"{drawn} drawn ({', '.join(config.pattern_sets)}; sizes {sizes})" if drawn else "",
            f"{len(config.user_patterns)} user-defined" if config.user_patterns else "",
        ]
        profile = f", profile {self.profile}" if self.profile else ""
        generators = config.generators or ("those of the default set",)
        lines = [
            f"{self.name}{profile}: {self.title}",
            *(
                f"  {f'stream {name}' if name else 'data':<11} {_described(given)}"
                for name, given in self.data.items()
            ),
            f"  patterns    {' and '.join(filter(None, patterns))}",
            *([f"  windows     {', '.join(config.windows)}"] if config.windows else []),
            f"  generators  {', '.join(generators)}",
            *(
                f"  options     {evaluator}: {', '.join(several)}"
                for evaluator, several in config.options
            ),
            f"  strategies  {', '.join(config.strategies)}",
            f"  alphas      {', '.join(f'{alpha:g}' for alpha in config.alphas)}",
            f"  repetitions {config.repetitions}",
        ]
        return "\n".join(lines)


def _described(data: str | Mapping[str, Any]) -> str:
    if isinstance(data, str):
        return data
    more = [f"{name} {data[name]:g}" for name in _STREAM[2:] if name in data]
    size = f"{data['identifiers']} identifiers over {data['days']} days"
    return f"a generated stream of {', '.join([size, *more])}"


def read_sweep(
    source: str | Path,
    *,
    profile: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Sweep:
    """Read a sweep from a file, or that of a study by its name.

    Parameters
    ----------
    source : path or str
        A file in TOML, or one of the names in :func:`named_sweeps`, with or without the study.
    profile : str, optional
        A table ``[profile.<name>]`` of the file, whose keys replace those outside of it. By
        default ``quick`` if there is one, else none.
    changes : mapping, optional
        Keys of :data:`KEYS` to set otherwise, whatever file and profile say.

    Raises
    ------
    ExperimentError
        Naming the file, the key and, where it can be found, the line: if there is no such file,
        it is no TOML, a key is unknown (with the nearest known one) or a value makes no sense; for
        a pattern its name and the place in its text.

    Examples
    --------
    >>> sweep = read_sweep("latency", profile="quick", changes={"patterns": 4})
    >>> sweep.config("data").alphas
    (0.0, 0.5, 1.0)
    """
    path = find_sweep(source)
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ExperimentError(
            f"{path} is no text in UTF-8, as TOML must be: {error}; save it in that encoding"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path} is no TOML: {error}") from error
    file = _File(path, text)
    profiles = content.pop("profile", {})
    if not (isinstance(profiles, dict) and all(isinstance(p, dict) for p in profiles.values())):
        raise file.error("profile", "", "profiles are tables, such as [profile.quick]")
    for table, keys in {"": content, **{f"profile.{n}": p for n, p in profiles.items()}}.items():
        for key in keys:
            if key not in KEYS:
                known = KEYS if table else (*KEYS, "profile")
                raise file.error(key, table, _unknown(key, known))
    for key in changes or {}:
        if key not in KEYS:
            raise ExperimentError(_unknown(key, KEYS))
    chosen = _chosen_profile(profile, profiles, path)
    of_profile = profiles[chosen] if chosen else {}
    values: dict[str, Any] = {}
    for layer in (content, of_profile, changes or {}):
        for several, single in SEVERAL.items():  # either takes the place of the other
            if layer.keys() & {several, single}:
                values = {key: values[key] for key in values.keys() - {several, single}}
        values |= layer
    # Where each value stands: the caller's own stand nowhere in the file.
    tables = {key: f"profile.{chosen}" if key in of_profile else "" for key in values}
    places = {key: table for key, table in tables.items() if key not in (changes or {})}
    if not values.keys() & {"data", "streams"}:
        raise ExperimentError(
            f"{path} names no data: write the name of a data set, a path, or such as "
            "data = {identifiers = 120, days = 10} for a stream that is generated"
        )
    data = _checked_data(file, values, places)
    if isinstance(values.get("user_patterns"), list):
        try:
            named = next(iter(data.values()))
            values["user_patterns"] = library_patterns(values["user_patterns"], named)
        except ExperimentError as error:
            raise file.error_at("user_patterns", places, str(error)) from error
    _check(file, values, data, places)
    drawn = values.get("pattern_sets") or not values.get("user_patterns")
    for key in _OF_DRAWING:
        if not drawn and key in values:
            raise file.error_at(
                key, places, f"{key} is about patterns that are drawn, and this sweep draws none: "
                "name pattern_sets as well, or leave it out",
            )  # fmt: skip
    described = {key: str(values.pop(key, "")).strip() for key in _ABOUT}
    return Sweep(
        name=path.stem,
        path=path,
        title=described["title"] or path.stem,
        description=described["description"],
        profile=chosen,
        profiles=tuple(profiles),
        data=data,
        values=dict(values),
    )


def find_sweep(source: str | Path) -> Path:
    """The file of a sweep that is named by its path or, if it is a study's, by its name.

    Raises
    ------
    ExperimentError
        If there is none, or several studies have one of that name.
    """
    path = Path(source)
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
    hint = did_you_mean(str(source), [*short, *named], cutoff=0.5) or ";"
    raise ExperimentError(
        f"unknown sweep {str(source)!r}: it is neither a file nor a name{hint} "
        f"Names are {', '.join(named)}"
    )


def named_sweeps() -> dict[str, Path]:
    """``study/name`` -> file of the sweeps of all studies."""
    return {
        f"{study}/{path.stem}": path
        for study, folder in SWEEP_FOLDERS.items()
        for path in sorted(folder.glob("*.toml"))
    }


def change_of(text: str) -> tuple[str, Any]:
    """A key and its value from ``KEY=VALUE``, the value as a sweep file writes it.

    Raises
    ------
    ExperimentError
        If it is not of that form.
    """
    key, sign, value = text.partition("=")
    try:
        return key.strip(), tomllib.loads(f"value = {value if sign else ''}")["value"]
    except tomllib.TOMLDecodeError:
        raise ExperimentError(
            f"--set {text}: it must be FIELD=VALUE with a value as in a sweep file, such as "
            "patterns=10, 'pattern_sets=[\"sequence\"]' or 'window=\"5 minutes\"'"
        ) from None


@dataclass(frozen=True, slots=True)
class _File:
    """A sweep file, for errors that say where in it something is wrong."""

    path: Path
    text: str

    def error(self, key: str, table: str, message: str) -> ExperimentError:
        """An error about a key of a table; the table of all that stands in none is ``""``."""
        line = self._line_of(key, table)
        return ExperimentError(f"{self.path}{f', line {line}' if line else ''}: {message}")

    def error_at(self, key: str, places: Mapping[str, str], message: str) -> ExperimentError:
        """An error about a key that stands in one of these tables, or was set by the caller."""
        if key not in places:
            return ExperimentError(message)
        # What a pattern, a stream or an evaluator is called is a key of a table of its own.
        inner = re.match(r"(?:pattern|stream|options of) '([^']+)'", message)
        table = f"{places[key]}.{key}".lstrip(".")
        if inner and self._line_of(inner[1], table):
            return self.error(inner[1], table, message)
        return self.error(key, places[key], message)

    def _line_of(self, key: str, table: str) -> int | None:
        here = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[\[?([^\[\]]+)\]?\]\s*(#.*)?$", line)
            if header:
                here = re.sub(r"[\s\"']", "", header[1])
                if not table and here.partition(".")[0] == key:
                    return number
                if table and here == f"{table}.{key}":
                    return number
            elif here == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
                return number
        return None


def _check(
    file: _File, values: Mapping[str, Any], data: Mapping[str, Any], places: Mapping[str, str]
) -> None:
    """Refuse values that make no sense, naming the key and where it stands."""
    for key in _ABOUT:
        if not isinstance(values.get(key, ""), str):
            raise file.error_at(key, places, f"{key} is {values[key]!r}; it must be a text")
    of_config = {key: value for key, value in values.items() if key not in _ABOUT}
    streams = {"streams": dict.fromkeys(data, "x")} if "" not in data else {}
    try:
        _config_of({**of_config, **streams})
    except ExperimentError as whole:
        for key, value in {**of_config, **streams}.items():
            try:
                _config_of({key: value})
            except ExperimentError as error:
                raise file.error_at(key, places, str(error)) from error
        # No value is wrong by itself: they do not go together.
        raise ExperimentError(f"{file.path}: {whole}") from whole


def _config_of(values: Mapping[str, Any]) -> SweepConfig:
    return SweepConfig.from_dict({"data": "", **values})


def _checked_data(
    file: _File, values: dict[str, Any], places: Mapping[str, str]
) -> dict[str, str | Mapping[str, Any]]:
    """Each stream's data by its name, taken out of the values; a single one's under ``""``."""
    key = "streams" if "streams" in values else "data"
    given = values.pop(key)
    if "data" in values:
        raise file.error_at(key, places, "a sweep has data or streams, not both")
    if key == "streams" and not (isinstance(given, Mapping) and given):
        raise file.error_at(
            key, places, f"streams is {given!r}; it must be tables of data sets, such as "
            "[streams.small] with identifiers = 12 and days = 1",
        )  # fmt: skip
    found: dict[str, str | Mapping[str, Any]] = {}
    for name, data in given.items() if key == "streams" else [("", given)]:
        wrong = _wrong_data(data)
        if wrong:
            raise file.error_at(key, places, f"stream {name!r}: {wrong}" if name else wrong)
        found[name] = data if isinstance(data, Mapping) else str(data)
    return found


def _wrong_data(value: Any) -> str | None:
    """What is wrong with the data that a sweep names; None if nothing is."""
    if isinstance(value, str | Path) and str(value):
        return None
    if not isinstance(value, Mapping):
        return (
            f"data is {value!r}; it must be the name of a data set, a path, or such as "
            "{identifiers = 120, days = 10}"
        )
    for name in value:
        if name not in _STREAM:
            return f"data: {_unknown(name, _STREAM)}"
    for name in _STREAM[:2]:
        if name not in value:
            return f"data: {name} is missing; it must be a whole number from 1 on"
    try:
        NasdaqStyle(**value)
    except DatasetError as error:
        return f"data: {error}"
    return None


def _chosen_profile(asked: str | None, profiles: Mapping[str, Any], path: Path) -> str | None:
    if asked is None:
        return DEFAULT_PROFILE if DEFAULT_PROFILE in profiles else None
    if asked in profiles:
        return asked
    if not profiles:
        raise ExperimentError(f"{path} has no profiles; leave {asked!r} out")
    raise ExperimentError(
        f"unknown profile {asked!r}: {path} has {' and '.join(profiles)}"
        f"{did_you_mean(asked, profiles, cutoff=0.0)}"
    )


def _unknown(key: Any, known: tuple[str, ...]) -> str:
    hint = did_you_mean(str(key), known, cutoff=0.0)
    return f"unknown key {key!r}{hint} Keys are {', '.join(known)}"


def data_folder(root: str | Path, stream: Mapping[str, Any], seed: int) -> Path:
    """Where the stream of these parameters is kept below a folder of data."""
    style = NasdaqStyle(**{"seed": seed, **stream})
    unusual = "".join(f"-{name.replace('_', '-')}-{v:g}" for name, v in style.unusual.items())
    name = f"{KIND}-{style.identifiers}-{style.days}-{style.seed}{unusual}"
    return Path(root) / name


def data_paths(sweep: Sweep, root: str | Path) -> dict[str, Path]:
    """Where the data of each stream of a sweep lies, or will lie once it is generated.

    Parameters
    ----------
    sweep : Sweep
    root : path
        Folder for generated streams, which all sweeps share.

    Returns
    -------
    dict of str to Path
        Parquet by the stream's name, ``""`` for a single one. A relative path in a sweep file is
        meant from the working directory or, if there is nothing, from the folder of the file.

    Raises
    ------
    DatasetError
        If there is no such data set or path, it cannot be made, or it is no Parquet.
    """
    return {
        name: _named(data, sweep.path.parent)
        if isinstance(data, str)
        else data_folder(root, data, sweep.seed)
        for name, data in sweep.data.items()
    }


def _named(data: str, folder: Path) -> Path:
    """A path, from here or from the folder of the sweep's file, or a data set of the catalogue."""
    named = Path(data).expanduser()
    found = next((path for path in (named, folder / named) if path.exists()), None)
    if found is None:
        found = open_dataset(data).path
    if found.is_file() and found.suffix != ".parquet":
        raise DatasetError(
            f"{found} is no Parquet, and a sweep reads nothing else; make Parquet of it by "
            "`cepbench data ingest`"
        )
    return found


def sweep_folder(root: str | Path, experiment: str, config: SweepConfig) -> Path:
    """Where the results of a sweep are kept below a folder of data.

    Named by the configuration: another one is another sweep, an equal one resumes. Where the data
    lies is no part of the name.
    """
    return Path(root) / "sweeps" / config.folder_name(experiment)
