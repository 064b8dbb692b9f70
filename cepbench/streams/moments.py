"""Moments that users give: with a time zone, or without one in UTC, as all times of streams are."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

#: How a text of ISO 8601 begins. Others pandas completes with the day on which it is called, or takes for
#: months before days.
_YEAR = re.compile(r"\d{4}(-\d\d|\d{4}|$)")


def moment(given: Any) -> pd.Timestamp:
    """A moment in UTC, without a zone, in nanoseconds.

    A TypeError or ValueError if pandas takes it for no moment, a text is not in ISO 8601 with its day, or
    it is out of range.
    """
    if isinstance(given, str) and not _YEAR.match(given):
        raise ValueError(f"{given!r} does not begin with a year, as 2008-01-02 12:00 does")
    stamp = pd.Timestamp(given)
    if pd.isna(stamp):
        raise ValueError("NaT is no moment")
    if stamp.tz is not None:
        stamp = stamp.tz_convert("UTC").tz_localize(None)
    return stamp.as_unit("ns")


def nanoseconds(given: Any) -> int:
    """A :func:`moment` in nanoseconds since 1970, with the same errors."""
    return int(moment(given).value)
