"""The events of a short chunk of a SEQ, each by a scan of those in the window."""

from __future__ import annotations

from cepbench.engines.sequence_counts.kernels.order_statistics.closing import closes_row
from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    BARS_LAST,
    BARS_MIDDLE,
    CLOSED,
    CLOSES,
    FIRST,
    LAST,
    MIDDLE,
    OPEN_FIRST,
    OPEN_MIDDLE,
    PEAK,
    STORED,
    add_to,
    behind_barred,
    behind_timestamp,
    passes_with,
    report_matches,
    weight_of,
)
from cepbench.kernels.jit import njit_in_place

#: The bits of a middle event, which is open with the first one alone.
_OPEN = MIDDLE | CLOSED


@njit_in_place
def count_by_scans(plan, table, bounds, totals, found, out, partition, low, first, behind):
    """Process the events of a chunk, each by a scan of those in the window; returns the first row in the window."""
    times, items, numbers = table.times, table.items, table.numbers
    while first < behind:
        now, last = times[first], behind_timestamp(table, first, behind)
        while low < first and times[low] < now - plan.window:
            expired, low = low, low + 1
            totals[partition, STORED] -= items[expired] & plan.kept != 0
            if plan.is_alone and plan.goes_on and items[expired] & MIDDLE:
                its = weight_of(plan, table, MIDDLE, expired)
                add_to(totals, partition, its * numbers[1, expired])
            if items[expired] & FIRST:
                weight = weight_of(plan, table, FIRST, expired)
                later = behind_timestamp(table, expired, first)
                for row in range(later, behind_barred(plan, table, later, first)):
                    if items[row] & MIDDLE and passes_with(plan, table, 0, expired, row):
                        its = weight * weight_of(plan, table, MIDDLE, row)
                        if plan.goes_on:
                            add_to(totals, partition, its * numbers[1, row])
                        elif plan.counts_window:
                            add_to(totals, partition, -its)
                        numbers[0, row] -= weight
        for row in range(first, last):
            number = 0
            if items[row] & LAST:
                for other in range(max(low, bounds[OPEN_MIDDLE]), first):
                    if items[other] & _OPEN == MIDDLE and passes_with(plan, table, 1, row, other):
                        number += weight_of(plan, table, MIDDLE, other) * numbers[0, other]
                number *= weight_of(plan, table, LAST, row)
            if items[row] & MIDDLE:
                ending = int(plan.is_alone)
                for other in range(max(low, bounds[OPEN_FIRST]), first):
                    if items[other] & FIRST and passes_with(plan, table, 0, other, row):
                        ending += weight_of(plan, table, FIRST, other)
                numbers[0, row] = ending
                if plan.items == 2:
                    number = weight_of(plan, table, MIDDLE, row) * ending
            report_matches(plan, table, totals, found, out, partition, row, number)
        if now < table.until:
            bars = 0
            for row in range(first, last):
                bars |= items[row]
                if plan.goes_on and items[row] & LAST:
                    for other in range(max(low, bounds[OPEN_MIDDLE]), first):
                        if items[other] & _OPEN == MIDDLE and passes_with(
                            plan, table, 1, row, other
                        ):
                            numbers[1, other] -= weight_of(plan, table, LAST, row)
                totals[partition, STORED] += items[row] & plan.kept != 0
            totals[partition, PEAK] = max(totals[partition, PEAK], totals[partition, STORED])
            if bars & CLOSES:
                for row in range(first, last):
                    for other in range(max(low, bounds[OPEN_MIDDLE]), first):
                        if items[row] & CLOSES and closes_row(plan, table, row, other):
                            items[other] |= CLOSED
            if bars & BARS_LAST:
                bounds[OPEN_MIDDLE] = first
            if bars & BARS_MIDDLE:
                bounds[OPEN_FIRST] = first
        first = last
    return low
