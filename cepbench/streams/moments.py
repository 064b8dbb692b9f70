"""Moments that users give: with a time zone, or without one in UTC, as all times of streams are."""

from __future__ import annotations

from typing import Any

import pandas as pd


def nanoseconds(moment: Any) -> int:
    """A moment in nanoseconds since 1970.

    A TypeError or ValueError if pandas takes it for no moment, or it is out of range.
    """
    stamp = pd.Timestamp(moment)
    if pd.isna(stamp):
        raise ValueError("NaT is no moment")
    if stamp.tz is not None:
        stamp = stamp.tz_convert("UTC").tz_localize(None)
    return int(stamp.as_unit("ns").value)
