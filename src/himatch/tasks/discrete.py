"""Discrete actions: numbers outside, one-hot rows between data and head; here one becomes the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import TaskError
from himatch.types import Array

MOST = 1024  # actions; one-hot rows of more would fill memory with zeros


@dataclass(frozen=True)
class Discrete:
    """``count`` actions, numbered from ``start``, one of which is taken at a step."""

    count: int
    start: int = 0

    def __post_init__(self) -> None:
        for name in ("count", "start"):
            try:
                if isinstance(value := getattr(self, name), (bool, np.bool_)):
                    raise TypeError
                object.__setattr__(self, name, index(value))
            except TypeError:
                raise TaskError(f"the {name} of discrete actions is a whole number, got {value!r}") from None
        if not 2 <= self.count <= MOST:
            raise TaskError(f"discrete actions are 2 to {MOST} to choose from, got {self.count}")

    @classmethod
    def of(cls, given: int | Discrete | Mapping[str, Any]) -> Discrete:
        """From how many there are, or what a file holds."""
        if isinstance(given, Discrete):
            return given
        return cls(given["count"], given["start"]) if isinstance(given, Mapping) else cls(given)

    @property
    def last(self) -> int:
        """The greatest number."""
        return self.start + self.count - 1

    def __str__(self) -> str:
        return f"{self.count} discrete ones ({self.start} to {self.last})"

    def known(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these are numbers of actions."""
        found: NDArray[np.bool_] = (numbers == np.round(numbers)) & (numbers >= self.start) & (numbers <= self.last)
        return found

    def rows(self, numbers: ArrayLike) -> Array:
        """Numbers ``(...)`` as one-hot rows ``(..., count)``."""
        given = np.asarray(numbers)
        bad = given[~self.known(given)] if given.dtype.kind in "iufb" else given.ravel()
        if bad.size:
            raise TaskError(f"{bad.flat[0]!s} is none of the actions, which are {self}")
        rows: Array = np.eye(self.count, dtype=np.float32)[given.astype(np.int64) - self.start]
        return rows

    def numbers(self, rows: ArrayLike) -> NDArray[np.int64]:
        """The numbers ``(...)`` that one-hot rows ``(..., count)`` stand for."""
        places: NDArray[np.int64] = np.asarray(np.asarray(rows).argmax(axis=-1), np.int64)
        return places + self.start

    def as_rows(self, actions: ArrayLike, steps: int) -> Array | None:
        """One-hot rows ``(steps, count)`` of what may be rows or numbers, ``(steps,)`` or ``(steps, 1)``.

        ``None`` of another shape.
        """
        given = np.asarray(actions)
        if given.shape == (steps, self.count):
            return given.astype(np.float32)
        return self.rows(given.reshape(steps)) if given.shape in ((steps,), (steps, 1)) else None
