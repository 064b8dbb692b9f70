"""Matches that are kept as rows of other matches and the events that they add, copied when asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from cepbench.engines.reuse.kernels.columns import gathered
from cepbench.engines.runs.matches import BranchMatches, Column


class KeptMatches(ABC):
    """The matches of a query, over the variables ``names``."""

    def __init__(self, names: Sequence[str], number: int) -> None:
        self.names = tuple(names)
        self._number = number

    def __len__(self) -> int:
        return self._number

    @abstractmethod
    def copied(self, dtype: type[np.integer]) -> np.ndarray:
        """A copy of the positions, shape (variables, matches)."""

    @cached_property
    def table(self) -> np.ndarray:
        """Positions, int32, shape (variables, matches), made when asked for."""
        return self.copied(np.int32)

    def taken(self, which: np.ndarray) -> ListedMatches:
        """The matches of a mask, or of some numbers."""
        return ListedMatches(self.names, np.ascontiguousarray(self.table[:, which]))

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of some of the matches each, by default all together."""
        return [tuple(self.copied(np.int64))]

    @property
    def nbytes(self) -> int:
        """Bytes, without those of sources."""
        return self._held_bytes() + (self.table.nbytes if "table" in self.__dict__ else 0)

    def _held_bytes(self) -> int:
        """Bytes besides those of the table."""
        return 0


class ExtendedMatches(KeptMatches):
    """Matches of a source, with events of more variables.

    Each extends the match of the source whose number is in ``rows``, int32 (matches,); ``own`` has
    the positions of the new variables' events, int32 (matches,); ``renamed`` maps others to the
    source's.
    """

    def __init__(
        self,
        names: Sequence[str],
        own: Mapping[str, np.ndarray],
        source: KeptMatches,
        rows: np.ndarray,
        renamed: Mapping[str, str],
    ) -> None:
        super().__init__(names, len(rows))
        self._own, self._source, self._rows = dict(own), source, rows
        self._places = np.array(
            [source.names.index(renamed[name]) if name in renamed else -1 for name in names],
            np.int64,
        )

    def copied(self, dtype: type[np.integer]) -> np.ndarray:
        found = np.empty((len(self.names), len(self)), dtype)
        gathered(self._source.table, self._places, self._rows, found)
        for name, positions in self._own.items():
            found[self.names.index(name)] = positions
        return found

    def _held_bytes(self) -> int:
        return self._rows.nbytes + sum(its.nbytes for its in self._own.values())


class ListedMatches(KeptMatches):
    """Matches that are no rows of others, as positions, int32, shape (variables, matches)."""

    def __init__(self, names: Sequence[str], table: np.ndarray) -> None:
        super().__init__(names, table.shape[1])
        # A cached property is set by its name.
        self.table = table

    def copied(self, dtype: type[np.integer]) -> np.ndarray:
        return self.table.astype(dtype)


class FoundMatches(KeptMatches):
    """Matches as an evaluator found them, without Kleene variables."""

    def __init__(self, found: BranchMatches) -> None:
        super().__init__(found.names, len(found))
        self._found = found

    def copied(self, dtype: type[np.integer]) -> np.ndarray:
        table = np.empty((len(self.names), len(self)), dtype)
        begin = 0
        for chunk in self.chunks():
            end = begin + len(chunk[0])
            for row, column in zip(table, chunk, strict=True):
                row[begin:end] = column
            begin = end
        return table

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of some of the matches each, as found."""
        return [tuple(map(np.asarray, chunk)) for chunk in self._found.chunks]

    def _held_bytes(self) -> int:
        return sum(column.nbytes for chunk in self.chunks() for column in chunk)


class ProjectedMatches(KeptMatches):
    """All matches of a source, without some of its variables; ``images`` are those of the others."""

    def __init__(self, names: Sequence[str], source: KeptMatches, images: Sequence[str]) -> None:
        super().__init__(names, len(source))
        self._source = source
        self._columns = [source.names.index(image) for image in images]

    def copied(self, dtype: type[np.integer]) -> np.ndarray:
        return np.ascontiguousarray(self._source.table[self._columns], dtype)

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of the source."""
        return [tuple(chunk[k] for k in self._columns) for chunk in self._source.chunks()]


class UnitedMatches(KeptMatches):
    """Matches of one query, kept in several parts."""

    def __init__(self, parts: Sequence[KeptMatches]) -> None:
        super().__init__(parts[0].names, sum(map(len, parts)))
        self._parts = tuple(parts)

    def copied(self, dtype: type[np.integer]) -> np.ndarray:
        return np.concatenate([part.table for part in self._parts], axis=1, dtype=dtype)

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of each part."""
        return [chunk for part in self._parts for chunk in part.chunks()]

    def _held_bytes(self) -> int:
        return sum(part.nbytes for part in self._parts)


class CopiedWhenAsked(BranchMatches):
    """Kept matches as columns."""

    def __init__(self, matches: KeptMatches) -> None:
        self.names = matches.names
        self._matches = matches

    def __len__(self) -> int:
        return len(self._matches)

    @cached_property
    def chunks(self) -> list[tuple[Column, ...]]:  # type: ignore[override]
        """The positions, copied once."""
        return [*self._matches.chunks()]
