"""A sweep as a small file in TOML, with profiles; the sweeps of studies are such files too.

TOML because Python reads it without another package, a number and a text are told apart in it, a
pattern may stand over several lines as it is, and comments may say why.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepbench.datasets.opening import open_dataset
from cepbench.errors import CepbenchError, DatasetError, ExperimentError
from cepbench.sweeps.configuration import SweepConfig
from cepbench.sweeps.user_patterns import library_patterns

if TYPE_CHECKING:
    from cepbench.sweeps.cells import Cell

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

#: Parameters of a stream that is generated for the sweep.
_STREAM = ("identifiers", "days")


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
    data : str or mapping of str to int
        Path or name of a data set; or ``identifiers`` and ``days`` of a stream that is generated
        in the style of NASDAQ prices, from the seed of the sweep.
    values : mapping of str to object
        The other fields of :class:`SweepConfig`, by their names there.
    """

    name: str
    path: Path
    title: str
    description: str
    profile: str | None
    profiles: tuple[str, ...]
    data: str | Mapping[str, int]
    values: Mapping[str, Any]

    @property
    def seed(self) -> int:
        """Of the workload, and of a generated stream."""
        return self.config("").seed

    @property
    def stream(self) -> Mapping[str, int] | None:
        """Parameters of the stream to generate; None if the data is there already."""
        return None if isinstance(self.data, str) else self.data

    def config(self, data: str | Path) -> SweepConfig:
        """The configuration, on data that lies at this path."""
        return SweepConfig.from_dict({**self.values, "data": data})

    def cells(self) -> list[Cell]:
        """What is run for each pattern; see :func:`cepbench.sweeps.measure.cells_of`.

        Raises
        ------
        ExperimentError
            If a plan generator or evaluator is unknown, or two of them do not fit.
        """
        # Loads the evaluators, which listing and reading files have no use for.
        from cepbench.planners.registry import default_generators
        from cepbench.sweeps.measure import cells_of

        config = self.config("")
        try:
            return cells_of(
                default_generators() if config.generators is None else config.generators,
                config.evaluators,
                config.repetitions,
                config.strategies,
                config.alphas,
            )
        except CepbenchError as error:
            raise ExperimentError(f"{self.path}: {error}") from error

    def describe(self) -> str:
        """Title, data, patterns and the grid, a line each."""
        config = self.config("")
        data = self.data
        if not isinstance(data, str):
            data = (
                f"a generated stream of {data['identifiers']} identifiers over {data['days']} days"
            )
        drawn = len(config.pattern_sets) * len(config.sizes) * config.patterns
        sizes = ", ".join(map(str, config.sizes))
        patterns = [
            f"{drawn} drawn ({', '.join(config.pattern_sets)}; sizes {sizes})" if drawn else "",
            f"{len(config.own_patterns)} of its own" if config.own_patterns else "",
        ]
        profile = f", profile {self.profile}" if self.profile else ""
        generators = config.generators or ("those of the default set",)
        lines = [
            f"{self.name}{profile}: {self.title}",
            f"  data        {data}",
            f"  patterns    {' and '.join(filter(None, patterns))}",
            f"  generators  {', '.join(generators)}",
            f"  strategies  {', '.join(config.strategies)}",
            f"  alphas      {', '.join(f'{alpha:g}' for alpha in config.alphas)}",
            f"  repetitions {config.repetitions}",
        ]
        return "\n".join(lines)


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
    values = {**content, **of_profile, **(changes or {})}
    # Where each value stands: the caller's own stand nowhere in the file.
    tables = {key: f"profile.{chosen}" if key in of_profile else "" for key in values}
    places = {key: table for key, table in tables.items() if key not in (changes or {})}
    if "data" not in values:
        raise ExperimentError(
            f"{path} names no data: write the name of a data set, a path, or such as "
            "data = {identifiers = 120, days = 10} for a stream that is generated"
        )
    if isinstance(values.get("own_patterns"), list):
        try:
            values["own_patterns"] = library_patterns(values["own_patterns"], values["data"])
        except ExperimentError as error:
            raise file.told("own_patterns", places, str(error)) from error
    _check(file, values, places)
    own = values.get("own_patterns") and not values.get("pattern_sets")
    for key in _OF_DRAWING:
        if own and key in values:
            raise file.told(
                key, places, f"{key} is about patterns that are drawn, and this sweep draws none: "
                "name pattern_sets as well, or leave it out",
            )  # fmt: skip
    described = {key: str(values.pop(key, "")).strip() for key in _ABOUT}
    data = values.pop("data")
    return Sweep(
        name=path.stem,
        path=path,
        title=described["title"] or path.stem,
        description=described["description"],
        profile=chosen,
        profiles=tuple(profiles),
        data=dict(data) if isinstance(data, Mapping) else str(data),
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
    near = difflib.get_close_matches(str(source), [*short, *named], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ExperimentError(
        f"unknown sweep {str(source)!r}: it is neither a file nor a name; {hint}"
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
    """A sweep file, for telling where something in it is wrong."""

    path: Path
    text: str

    def error(self, key: str, table: str, message: str) -> ExperimentError:
        """An error about a key of a table; the table of all that stands in none is ``""``."""
        line = self._line_of(key, table)
        return ExperimentError(f"{self.path}{f', line {line}' if line else ''}: {message}")

    def told(self, key: str, places: Mapping[str, str], message: str) -> ExperimentError:
        """An error about a key that stands in one of these tables, or was set by the caller."""
        if key not in places:
            return ExperimentError(message)
        if key == "own_patterns":
            name = re.match(r"pattern '([^']+)'", message)
            inside = f"{places[key]}.{key}".lstrip(".")
            if name and self._line_of(name[1], inside):
                return self.error(name[1], inside, message)
        return self.error(key, places[key], message)

    def _line_of(self, key: str, table: str) -> int | None:
        here = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[([^\]]+)\]\s*(#.*)?$", line)
            if header:
                here = re.sub(r"[\s\"']", "", header[1])
                if not table and here.partition(".")[0] == key:
                    return number
                if table and here == f"{table}.{key}":
                    return number
            elif here == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
                return number
        return None


def _check(file: _File, values: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Refuse values that make no sense, naming the key and where it stands."""
    for key in _ABOUT:
        if not isinstance(values.get(key, ""), str):
            raise file.told(key, places, f"{key} is {values[key]!r}; it must be a text")
    wrong = _wrong_data(values["data"])
    if wrong:
        raise file.told("data", places, wrong)
    of_config = {key: value for key, value in values.items() if key not in (*_ABOUT, "data")}
    try:
        _config_of(of_config)
    except ExperimentError as whole:
        for key, value in of_config.items():
            try:
                _config_of({key: value})
            except ExperimentError as error:
                raise file.told(key, places, str(error)) from error
        # No value is wrong by itself: they do not go together.
        raise ExperimentError(f"{file.path}: {whole}") from whole


def _config_of(values: Mapping[str, Any]) -> SweepConfig:
    return SweepConfig.from_dict({"data": "", **values})


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
    for name in _STREAM:
        number = value.get(name)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            return f"data: {name} is {number!r}; it must be a whole number from 1 on"
    return None


def _chosen_profile(asked: str | None, profiles: Mapping[str, Any], path: Path) -> str | None:
    if asked is None:
        return DEFAULT_PROFILE if DEFAULT_PROFILE in profiles else None
    if asked in profiles:
        return asked
    if not profiles:
        raise ExperimentError(f"{path} has no profiles; leave {asked!r} out")
    raise ExperimentError(
        f"unknown profile {asked!r}: {path} has {' and '.join(profiles)}; "
        f"did you mean {difflib.get_close_matches(asked, profiles, n=1, cutoff=0.0)[0]!r}?"
    )


def _unknown(key: Any, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)[0]
    return f"unknown key {key!r}; did you mean {near!r}? Keys are {', '.join(known)}"


def data_folder(root: str | Path, stream: Mapping[str, int], seed: int) -> Path:
    """Where the stream of these parameters is kept below a folder of data."""
    return Path(root) / f"nasdaq-style-{stream['identifiers']}-{stream['days']}-{seed}"


def data_path(sweep: Sweep, root: str | Path) -> Path:
    """Where the data of a sweep lies; a stream to generate need not be there yet.

    Parameters
    ----------
    sweep : Sweep
    root : path
        Folder for generated streams, which all sweeps share.

    Returns
    -------
    Path
        Of Parquet. A relative path in a sweep file is meant from the working directory or, if
        there is nothing, from the folder of the file.

    Raises
    ------
    DatasetError
        If there is no such data set or path, it cannot be made, or it is no Parquet.
    """
    if sweep.stream is not None:
        return data_folder(root, sweep.stream, sweep.seed)
    named = Path(str(sweep.data)).expanduser()
    found = next((path for path in (named, sweep.path.parent / named) if path.exists()), None)
    if found is None:
        found = open_dataset(str(sweep.data)).path
    if found.is_file() and found.suffix != ".parquet":
        raise DatasetError(
            f"{found} is no Parquet, and a sweep reads nothing else; make Parquet of it by "
            "`cepbench data ingest`"
        )
    return found


def sweep_folder(root: str | Path, experiment: str, config: SweepConfig) -> Path:
    """Where the results of a sweep are kept below a folder of data.

    Named by the configuration: another one is another sweep, an equal one goes on. Where the data
    lies is no part of the name.
    """
    text = json.dumps({**config.to_dict(), "data": Path(config.data).name}, sort_keys=True)
    return Path(root) / "sweeps" / f"{experiment}-{zlib.crc32(text.encode()):08x}"
