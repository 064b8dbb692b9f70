"""Moments that users give: with a time zone, or without one in UTC, as all times of streams are."""

from __future__ import annotations

from typing import Any

import pandas as pd


def utc(moment: Any) -> pd.Timestamp:
    """A moment in UTC, without its zone.

    Raises
    ------
    TypeError, ValueError
        If pandas takes it for no moment.
    """
    stamp = pd.Timestamp(moment)
    return stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)


def nanoseconds(moment: Any) -> int:
    """A moment in nanoseconds since 1970.

    Raises
    ------
    TypeError, ValueError
        If pandas takes it for no moment, or it is out of range.
    """
    return int(utc(moment).as_unit("ns").value)
