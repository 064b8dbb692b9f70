"""What synthetic streams share: checks of their parameters, declaration, division into files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from cepbench.arguments import whole
from cepbench.errors import DatasetError


def parameter(check: Callable[..., Any], default: Any = MISSING, **bounds: Any) -> Any:
    """A parameter of a stream: how :mod:`cepbench.arguments` checks it, and its default.

    A default that is callable makes one.
    """
    made = {"default_factory" if callable(default) else "default": default}
    return field(**made, metadata={"check": partial(check, error=DatasetError, **bounds)})


@dataclass(frozen=True)
class GeneratedStream:
    """A synthetic stream; a frozen dataclass of its parameters, checked on construction.

    Each event, day or person has random numbers of its own, so equal parameters give equal events,
    whoever writes which file: a loop or Spark tasks
    (:func:`cepbench.streams.generated.make_stream`). A DatasetError if a parameter is out of range.
    """

    #: Of the data sets that are generated, such as ``nasdaq-style``.
    kind: ClassVar[str]
    #: Parameters that have to be given, those that decide the size.
    required: ClassVar[tuple[str, ...]] = ("events",)
    #: To be incremented with every change of the arithmetic, which outdates stored data.
    arithmetic: ClassVar[int | None] = 1
    #: How many of what the first required parameter counts are in a file.
    per_file: ClassVar[int] = 400_000

    def __post_init__(self) -> None:
        for each in fields(self):
            value = each.metadata["check"](getattr(self, each.name), each.name)
            object.__setattr__(self, each.name, value)

    @property
    def name(self) -> str:
        """Of a folder beside those of other streams, different for other parameters."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        if any(isinstance(its, Mapping) for its in values.values()):
            text = json.dumps(self.parameters, sort_keys=True)
            values = {
                "size": self.size,
                "seed": values["seed"],
                "": f"{zlib.crc32(text.encode()):08x}",
            }
        return "-".join(map(str, (self.kind, *values.values())))

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the events, ready for JSON."""
        its = {each.name: getattr(self, each.name) for each in fields(self)}
        return its if self.arithmetic is None else {**its, "arithmetic": self.arithmetic}

    @property
    def notes(self) -> dict[str, str]:
        """Further information for the declaration."""
        return {}

    @property
    def size(self) -> int:
        """The value of the first required parameter."""
        return int(getattr(self, self.required[0]))

    @property
    def expected(self) -> float:
        """The expected number of events."""
        return float(self.size)

    def files(self) -> Mapping[str, tuple[Any, ...]]:
        """Path of each file below the folder of the data set -> its arguments of :meth:`table`."""
        return {
            f"part-{place:05d}.parquet": (first, min(first + self.per_file, self.size))
            for place, first in enumerate(range(0, self.size, self.per_file))
        }

    def table(self, *part: Any) -> pa.Table:
        """The events of a part, with a dictionary of all types in :func:`type_column`, and ``ts``."""
        raise NotImplementedError


#: The seed of a stream.
SEED: partial[Any] = partial(parameter, whole, 0, least=0)


def names_of(codes: np.ndarray, names: Iterable[str]) -> pa.DictionaryArray:
    """A column of texts by their codes."""
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(names))


def drawn_from(bits: np.ndarray, least: int, most: int) -> np.ndarray:
    """Random bits, uint64, as whole numbers from ``least`` to ``most``; int64 of the same shape."""
    return least + (bits % np.uint64(most - least + 1)).astype(np.int64)
