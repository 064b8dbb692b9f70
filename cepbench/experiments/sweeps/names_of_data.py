"""The types and attributes of a sweep's data, known before any of it is generated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from cepbench.errors import DatasetError, ExperimentError, at_key, did_you_mean
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.workload import USER, WORKLOAD, user_specs
from cepbench.patterns.times import read_columns
from cepbench.streams.dataset_folder import read_declaration, type_column
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.parquet_layout import open_parquet
from cepbench.streams.synthetic import GeneratedStream

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
        return _names(column.dictionary.to_pylist(), table.schema)
    declaration = read_declaration(path)
    try:
        events = open_parquet(path)
        if declaration is not None:
            types = [name for name, count in declaration.counts.items() if count]
            return _names(types, events.schema)
        column = type_column("")
        if column not in events.schema.names or events.count_rows() > _MANY:
            return _names(None, events.schema)
        found = pc.unique(events.to_table(columns=[column])[column])
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read as Parquet: {error}") from error
    return _names([str(name) for name in found.to_pylist()], events.schema)


def _names(types: Iterable[str] | None, schema: pa.Schema) -> Names:
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
