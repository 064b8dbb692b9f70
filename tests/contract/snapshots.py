"""Snapshots changed on purpose, with a digest that fits them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from cepbench.engines.runs.snapshot import digest_of

Snapshot = dict[str, np.ndarray]


def with_digest(snapshot: Snapshot) -> Snapshot:
    """The same arrays with the digest of just these."""
    arrays = {name: array for name, array in snapshot.items() if name != "digest"}
    return {**arrays, "digest": digest_of(arrays)}


def header_of(snapshot: Snapshot) -> dict[str, Any]:
    return dict(json.loads(snapshot["header"].tobytes()))


def with_header(snapshot: Snapshot, header: Mapping[str, Any]) -> Snapshot:
    written = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return with_digest(snapshot | {"header": written})
