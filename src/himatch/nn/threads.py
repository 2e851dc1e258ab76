"""How many cores PyTorch's operations take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Operations of this thread on one core: quicker where they are small, and the same numbers on every machine.

    Threads that help with operations also wait for more of them by spinning, on cores that others could use.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
