"""The rest of the trajectory itself: full imitation, and what learned aggregators read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import HimatchError
from himatch.types import Array


@dataclass(frozen=True)
class Window:
    """``z_t = (phi_t, ..., phi_{t+length-1})`` flattened; past the end the last row repeats.

    With ``length`` the horizon this is the whole remaining trajectory, the statistic of one-shot imitation.
    """

    kind: ClassVar[str] = "window"
    length: int = 20

    def __post_init__(self) -> None:
        if self.length < 1:
            raise HimatchError(f"a window needs at least one step, got {self.length}")

    def fit(self, features: Iterable[Array]) -> Window:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """All rows of the window."""
        return dimensions * self.length

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T {self.length}*d"]:
        """Windows that start at every step."""
        return self.windows(phi).reshape(len(phi), -1)

    @shaped
    def windows(self, phi: Float[Array, "T d"]) -> Float[Array, "T {self.length} d"]:
        """The same, not flattened."""
        rows = np.arange(len(phi))[:, None] + np.arange(self.length)
        windows: Array = phi[np.minimum(rows, len(phi) - 1)]
        return windows
