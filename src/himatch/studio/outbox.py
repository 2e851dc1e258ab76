"""What waits to be sent to a browser: of pictures and numbers that change only the latest, of answers all in order."""

from __future__ import annotations

import threading
from collections.abc import Callable

Payload = str | bytes


class Outbox:
    """Filled by a simulation, emptied by whoever sends; neither waits for the other.

    ``deliver`` is called, from the thread that puts, whenever there is something.
    """

    def __init__(self, deliver: Callable[[], None]) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._waiting: list[tuple[str | None, Payload]] = []

    def put(self, payload: Payload, latest: str | None = None) -> None:
        """Send this after what waits; of the same ``latest`` an earlier one that still waits is dropped."""
        with self._lock:
            if latest is not None:
                self._waiting = [one for one in self._waiting if one[0] != latest]
            self._waiting.append((latest, payload))
        self._deliver()

    def drop(self) -> None:
        """Forget pictures and numbers that wait: they are of something that is over."""
        with self._lock:
            self._waiting = [one for one in self._waiting if one[0] is None]

    def take(self) -> Payload | None:
        """What is next."""
        with self._lock:
            return self._waiting.pop(0)[1] if self._waiting else None

    @property
    def latest(self) -> Payload | None:
        """What was put last, of what waits."""
        with self._lock:
            return self._waiting[-1][1] if self._waiting else None

    def __len__(self) -> int:
        return len(self._waiting)
