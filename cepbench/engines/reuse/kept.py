"""Matches that are kept as rows of other matches and the events that they add, copied when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from cepbench.engines.reuse.kernels.columns import gathered
from cepbench.engines.runs.matches import BranchMatches, Column


class KeptMatches:
    """The matches of a query.

    Parameters
    ----------
    names : sequence of str
        The variables.
    own : mapping of str to int32 array, shape (matches,)
        Positions of the events of the variables that the source does not have.
    source : KeptMatches
        The matches that these extend.
    rows : int32 array, shape (matches,)
        The number of the match of the source that each extends.
    renamed : mapping of str to str
        Variable → variable of the source.
    """

    def __init__(
        self,
        names: Sequence[str],
        own: Mapping[str, np.ndarray],
        source: KeptMatches,
        rows: np.ndarray,
        renamed: Mapping[str, str],
    ) -> None:
        self.names = tuple(names)
        self._own, self._source, self._rows = dict(own), source, rows
        self._places = np.array(
            [source.names.index(renamed[name]) if name in renamed else -1 for name in names],
            np.int64,
        )

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def table(self) -> np.ndarray:
        """Positions, int32, shape (variables, matches)."""
        return self._copied(np.int32)

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of some of the matches each, all together."""
        return [self.columns()]

    def columns(self) -> tuple[np.ndarray, ...]:
        """Positions of each variable, int64, shape (matches,)."""
        return tuple(self._copied(np.int64))

    def _copied(self, dtype: type[np.integer]) -> np.ndarray:
        found = np.empty((len(self.names), len(self)), dtype)
        gathered(self._source.table, self._places, self._rows, found)
        for name, positions in self._own.items():
            found[self.names.index(name)] = positions
        return found

    @property
    def nbytes(self) -> int:
        """Bytes, without those of the source."""
        copied = self.table.nbytes if "table" in self.__dict__ else 0
        return self._rows.nbytes + sum(its.nbytes for its in self._own.values()) + copied


class ListedMatches(KeptMatches):
    """Matches that are no rows of others, as positions, int32, shape (variables, matches)."""

    def __init__(self, names: Sequence[str], table: np.ndarray) -> None:
        self.names = tuple(names)
        # A cached property is set by its name.
        self.table = table

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def _copied(self, dtype: type[np.integer]) -> np.ndarray:
        return self.table.astype(dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the positions."""
        return self.table.nbytes


class FoundMatches(ListedMatches):
    """Matches as an evaluator found them, without Kleene variables; the table is a copy, made when
    asked for.
    """

    def __init__(self, found: BranchMatches) -> None:
        self.names = found.names
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    @cached_property
    def table(self) -> np.ndarray:
        """Positions, int32, shape (variables, matches)."""
        table = np.empty((len(self.names), len(self)), np.int32)
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

    @property
    def nbytes(self) -> int:
        """Bytes of the positions."""
        found = sum(column.nbytes for chunk in self.chunks() for column in chunk)
        return found + (self.table.nbytes if "table" in self.__dict__ else 0)


class ProjectedMatches(ListedMatches):
    """All matches of a source, without some of its variables; ``images`` are those of the others."""

    def __init__(self, names: Sequence[str], source: KeptMatches, images: Sequence[str]) -> None:
        self.names = tuple(names)
        self._source = source
        self._columns = [source.names.index(image) for image in images]

    def __len__(self) -> int:
        return len(self._source)

    @cached_property
    def table(self) -> np.ndarray:
        """Positions, int32, shape (variables, matches)."""
        return np.ascontiguousarray(self._source.table[self._columns])

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of the source."""
        return [tuple(chunk[k] for k in self._columns) for chunk in self._source.chunks()]

    @property
    def nbytes(self) -> int:
        """Bytes, without those of the source."""
        return self.table.nbytes if "table" in self.__dict__ else 0


class UnitedMatches(ListedMatches):
    """Matches of one query, kept in several parts."""

    def __init__(self, parts: Sequence[KeptMatches]) -> None:
        self.names = parts[0].names
        self._parts = tuple(parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @cached_property
    def table(self) -> np.ndarray:
        """Positions, int32, shape (variables, matches)."""
        return np.concatenate([part.table for part in self._parts], axis=1)

    def chunks(self) -> list[tuple[np.ndarray, ...]]:
        """The columns of each part."""
        return [chunk for part in self._parts for chunk in part.chunks()]

    @property
    def nbytes(self) -> int:
        """Bytes, without those of sources."""
        copied = self.table.nbytes if "table" in self.__dict__ else 0
        return sum(part.nbytes for part in self._parts) + copied


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
