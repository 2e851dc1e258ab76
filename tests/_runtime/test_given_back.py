from __future__ import annotations

import os
from pathlib import Path

import pytest

from himatch._runtime import memory
from himatch._runtime.memory import give_back

BLOCK = 8192  # bytes, from the C library's heap
BLOCKS = 8192
KEPT = 64  # of so many one: pages between two of them are not the heap's end


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(memory._trim() is None, reason="this C library returns pages by itself, or never")
def test_what_was_freed_between_things_that_stay_goes_back() -> None:
    blocks = [bytes([number % 251 + 1]) * BLOCK for number in range(BLOCKS)]
    full = resident()
    kept = blocks[KEPT - 1 :: KEPT]
    blocks.clear()
    give_back()
    assert full - resident() > 0.75 * BLOCK * BLOCKS
    assert [block[0] for block in kept[:3]] == [(number * KEPT - 1) % 251 + 1 for number in (1, 2, 3)]


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    memory._trim.cache_clear()
    monkeypatch.setattr("sys.platform", "darwin")
    try:
        assert memory._trim() is None
        give_back()
    finally:
        memory._trim.cache_clear()
