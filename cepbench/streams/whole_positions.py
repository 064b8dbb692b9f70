"""Where some events of Parquet stand among all of them, in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from cepbench.errors import StreamError
from cepbench.streams.dataset import MONTH

#: A name that no column of anybody has.
_PLACE = "cepbench: place in order of arrival"


def whole_positions(
    dataset: ds.Dataset,
    rows: ds.Expression,
    *,
    type: str,
    time: str,
    keys: Sequence[str],
    by_month: bool,
) -> np.ndarray:
    """Where the chosen rows stand among all of them, in order of arrival.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    rows : Expression
        Of types, times and months: which rows are chosen.
    type, time : str
        Columns that it reads.
    keys : sequence of str
        Columns that order the rows, see :func:`arrival_order`; none if they lie in order.
    by_month : bool
        Whether the months of folders follow one another, and so can be read one by one.

    Returns
    -------
    ndarray of int64
        Growing, one a chosen row.

    Raises
    ------
    StreamError
        If a row has no time, so that nobody knows where it stands.
    """
    chosen = {fragment.path for fragment in dataset.get_fragments(filter=rows)}
    read = {type, time, MONTH, *keys}
    columns = [name for name in dataset.schema.names if name in read]
    found = [np.empty(0, np.int64)]
    before = 0
    for fragments in _months(dataset) if by_month else [list(dataset.get_fragments())]:
        # The name of its folder is often enough to see that a month has none.
        if any(fragment.path in chosen for fragment in fragments):
            part = ds.FileSystemDataset(
                fragments, dataset.schema, dataset.format, dataset.filesystem
            )
            table = part.to_table(columns=columns)
            if table.column(time).null_count:
                raise StreamError(
                    f"some event has no timestamp in column {time!r}, so that positions in the "
                    "whole stream are not known; read it without positions"
                )
            places = np.arange(len(table))
            if keys:
                places[arrival_order(table, keys)] = np.arange(len(table))
            kept = table.append_column(_PLACE, pa.array(places)).filter(rows).column(_PLACE)
            found.append(before + np.sort(kept.to_numpy()))
        before += sum(fragment.count_rows() for fragment in fragments)
    return np.concatenate(found)


def arrival_order(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """The permutation that sorts by time, and equal times by another column or as they lie.

    Parameters
    ----------
    table : pyarrow.Table, n rows
    keys : sequence of str
        The column with the time, then maybe one of integers.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    # Files are sorted runs, which a stable sort merges; it leaves few equal times, if any, to the
    # slower sort by two keys.
    moments = table.column(keys[0]).cast(pa.int64()).to_numpy()
    order = np.argsort(moments, kind="stable")
    for key in keys[1:]:
        sequence = table.column(key).to_numpy()
        tied = np.diff(moments[order]) == 0
        if np.any(tied & (np.diff(sequence[order]) < 0)):
            order = np.lexsort((sequence, moments))
    return order


def _months(dataset: ds.Dataset) -> list[list[ds.Fragment]]:
    """The files of each month, earliest first; all together if there are no months."""
    months: dict[str, list[ds.Fragment]] = {}
    cut = MONTH in dataset.schema.names
    for fragment in dataset.get_fragments():
        months.setdefault(Path(fragment.path).parent.name if cut else "", []).append(fragment)
    return [months[name] for name in sorted(months)]
