"""Garbage collection goes on after what it waited for, and only where it had been on."""

from __future__ import annotations

import gc

import pytest

from cepbench.kernels.garbage import collecting_later


@pytest.mark.parametrize("is_on", [True, False])
def test_collection_waits(is_on: bool) -> None:
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError), collecting_later():
            1 / gc.isenabled()
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()
