"""A selection of packed episodes, as far as those who look for faults in it are concerned: a dataset is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from himatch.data.packed import Packed
from himatch.types import Array


class Selection(Protocol):
    """Some episodes of packed ones; :class:`himatch.data.TrajectoryDataset` says what each part means."""

    @property
    def packed(self) -> Packed:
        """All episodes."""

    @property
    def packed_episodes(self) -> NDArray[np.int64]:
        """Which of them."""

    @property
    def steps(self) -> int:
        """Steps of the selection."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of every episode."""

    @property
    def shifts(self) -> NDArray[np.int64]:
        """From rows of the selection to rows of ``packed``."""

    def __len__(self) -> int:
        """Number of episodes."""

    def blocks(self, array: Array, size: int) -> Iterator[Array]:
        """Rows of an array, a block at a time."""

    def episode_name(self, number: int) -> str:
        """An episode for a message."""
