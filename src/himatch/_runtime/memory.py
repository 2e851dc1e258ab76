"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Return all pages that nothing lies on, in some milliseconds, where the C library can (glibc).

    By itself it returns those at the end of its heaps alone. What came and went between things that stay remains with
    the process, and of work of many sizes, in one thread after another, there is ever more.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
