"""How long work took: by the clock, and of all cores of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Spent:
    """Filled in when the work ends."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Spent]:
    """Measure what is done inside; processes that it starts (compilers) are not in the CPU's seconds."""
    spent = Spent()
    began, before = time.perf_counter(), time.process_time()
    yield spent
    spent.seconds = time.perf_counter() - began
    spent.cpu_seconds = time.process_time() - before
