"""What measures read: for each mapped row the row that a reference names, and values of aggregates."""

from __future__ import annotations

from cepbench.engines.row_patterns.kernels.search import extended
from cepbench.kernels.clauses import aggregated
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def navigate(found, variables, bounds, bits, reference, is_final, before, rows, mapped):
    """Write for each mapped row the one that a reference names; -1 if there is none.

    ``variables``: int64 (mapped rows,). ``bounds``: int64 (matches, 2), the partition of each match.
    ``reference``: whether from the first row, offset, shift. ``before``: int64 (mapped rows,), for use in
    between. ``mapped``: int64 (mapped rows,), the number of the mapped row from which the shift counts.
    """
    begin = 0
    from_first, offset, shift = reference
    for match in range(len(found.starts)):
        last = kept = -1
        seen = 0
        end = found.ends[match]
        for number in range(begin, end):
            if bits >> variables[number] & 1:
                before[number] = last
                last = number
                if seen == offset:
                    kept = number
                seen += 1
            its = kept
            if not from_first:
                its, left = last, offset
                while its >= 0 and left > 0:
                    its = before[its]
                    left -= 1
            mapped[number], rows[number] = its, -1
            if its >= 0:
                row = found.starts[match] + its - begin + shift
                rows[number] = row if bounds[match, 0] <= row < bounds[match, 1] else -1
        if is_final:
            for number in range(begin, end):
                rows[number], mapped[number] = rows[end - 1], mapped[end - 1]
        begin = end


@njit_in_place
def total(found, variables, bits, function, values, is_final, totals):
    """Write for each mapped row the aggregate over the rows of some variables until there.

    ``values``: float64 (rows,), or without any to count the rows. ``totals``: float64 (mapped rows,).
    """
    begin = 0
    for match in range(len(found.starts)):
        count, so_far = 0, 0.0
        end = found.ends[match]
        for number in range(begin, end):
            if bits >> variables[number] & 1:
                value = 0.0
                if len(values) > 0:
                    value = values[found.starts[match] + number - begin]
                if value == value:
                    so_far = extended(function, count, so_far, value)
                    count += 1
            totals[number] = aggregated(function, count, so_far, so_far, so_far)
        if is_final:
            for number in range(begin, end):
                totals[number] = totals[end - 1]
        begin = end
