"""How many cores PyTorch's operations take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch


@dataclass
class _Users:
    """Threads that are on one core now, how often each of them has asked for it, and how many cores others have."""

    entries: Counter[int] = field(default_factory=Counter)
    cores: int = 1
    lock: threading.Lock = field(default_factory=threading.Lock)


_users = _Users()


@contextmanager
def one_thread() -> Iterator[None]:
    """Operations of this thread on one core: quicker where they are small, and the same numbers on every machine.

    Threads that help with operations also wait for more of them by spinning, on cores that others could use. PyTorch
    keeps the number for each thread, and starts new threads with what any of them has said last: what is put back is
    therefore what it was when nobody was in here.
    """
    me = threading.get_ident()
    with _users.lock:
        now = torch.get_num_threads()  # also makes a new thread's number its own, before it is changed
        if not _users.entries:
            _users.cores = now
        _users.entries[me] += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _users.lock:
            _users.entries[me] -= 1
            if not _users.entries[me]:
                del _users.entries[me]
                torch.set_num_threads(_users.cores)
