"""Positions of selected events of Parquet among all its events, in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from cepbench.errors import StreamError


def whole_positions(
    dataset: ds.Dataset,
    rows: ds.Expression,
    *,
    type: str,
    time: str,
    keys: Sequence[str],
) -> np.ndarray:
    """Positions of the selected rows among all rows, in order of arrival.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    rows : Expression
        The selection, over types and times.
    type, time : str
        The columns that it reads.
    keys : sequence of str
        Columns that order the rows, see :func:`arrival_order`, where each folder has all events of
        its times, as months have; empty for the order of files and rows.

    Returns
    -------
    ndarray of int64
        One per selected row; increasing.

    Raises
    ------
    StreamError
        If a row has no time, so that positions are undefined.
    """
    chosen = {fragment.path for fragment in dataset.get_fragments(filter=rows)}
    columns = list(dict.fromkeys([type, time, *keys]))
    place = f"place of {type}, {time}"  # longer than the names of the columns
    found = [np.empty(0, np.int64)]
    before = 0
    for fragments in _folders(dataset) if keys else [[its] for its in dataset.get_fragments()]:
        # Months without selected rows are usually excluded by the names of their folders.
        if any(fragment.path in chosen for fragment in fragments):
            part = ds.FileSystemDataset(
                fragments, dataset.schema, dataset.format, dataset.filesystem
            )
            table = part.to_table(columns=columns)
            if table.column(time).null_count:
                raise StreamError(
                    f"an event has no timestamp in column {time!r}, so positions in the whole "
                    "stream are undefined; read it without positions"
                )
            places = np.arange(len(table))
            if keys:
                places[arrival_order(table, keys)] = np.arange(len(table))
            kept = table.append_column(place, pa.array(places)).filter(rows).column(place)
            found.append(before + np.sort(kept.to_numpy()))
        before += sum(fragment.count_rows() for fragment in fragments)
    return np.concatenate(found)


def arrival_order(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """The permutation that sorts by time, then by another column or by row.

    Parameters
    ----------
    table : pyarrow.Table, n rows
    keys : sequence of str
        The time column, and optionally one of integers.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    moments = table.column(keys[0]).cast(pa.int64()).to_numpy()
    if keys[1:]:
        sequence = table.column(keys[1]).cast(pa.int64()).to_numpy()
        both = _as_one(moments, sequence)
        if both is None:
            return np.lexsort((sequence, moments))
        order = np.argsort(both)
        ranks = both[order]
        if np.all(ranks[1:] > ranks[:-1]):
            return order
        moments = both
    # Files are sorted runs, which a stable sort merges quickly.
    return np.argsort(moments, kind="stable")


def _as_one(moments: np.ndarray, sequence: np.ndarray) -> np.ndarray | None:
    """Integers in the order of both keys, which one sort orders; None if they exceed 64 bits."""
    if not len(moments):
        return moments
    first, least = int(moments.min()), int(sequence.min())
    span = int(sequence.max()) - least + 1
    if (int(moments.max()) - first + 1) * span >= 2**63:
        return None
    both = moments - first
    both *= span
    both += sequence
    both -= least
    return both


def _folders(dataset: ds.Dataset) -> list[list[ds.Fragment]]:
    """The files of each folder, by the names of folders."""
    folders: dict[Path, list[ds.Fragment]] = {}
    for fragment in dataset.get_fragments():
        folders.setdefault(Path(fragment.path).parent, []).append(fragment)
    return [folders[name] for name in sorted(folders)]
