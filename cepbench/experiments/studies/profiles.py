"""Profiles, and the one that measures nothing: results of another machine, which the package has."""

from __future__ import annotations

#: Those that measure, in most studies.
PROFILES = ("quick", "full")

#: The name of that one, and the profile that measured its results.
REFERENCE, MEASURED_AS = "reference", "full"


def sizes_in(profile: str) -> str:
    """The profile whose sizes a profile has."""
    return MEASURED_AS if profile == REFERENCE else profile
