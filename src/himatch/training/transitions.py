"""Transitions: the state after a step, and whether the episode continues from there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.data import TrajectoryDataset
from himatch.types import Array


class Transitions:
    """What is known of the ends of episodes, ``(E,)``; before its end a step is followed by the next row.

    ``finals`` (E, obs) is what was seen after an episode's last action. ``terminated`` says where an episode does not
    continue; a time limit is not an end. ``followed`` is False where the log stops without either, so that the next
    state is not known.
    """

    def __init__(self, dataset: TrajectoryDataset) -> None:
        self.finals: Array = dataset.final_observations
        self.terminated = dataset.terminated
        self.followed = self.terminated | dataset.has_final

    @shaped
    def observations(
        self,
        episode: Int[NDArray[np.int64], "K B"],
        ends: Bool[NDArray[np.bool_], "K B N"],
        packed: Float[Array, "_ obs"],
        packed_rows: Int[NDArray[np.int64], "K B N"],
    ) -> Float[Array, "K B N obs"]:
        """The states after these rows of the packed observations, of which some are the ends of their episodes."""
        found: Array = packed[packed_rows + ~ends]
        found[ends] = self.finals[np.broadcast_to(episode[..., None], ends.shape)[ends]]
        return found

    @shaped
    def continues(
        self, episode: Int[NDArray[np.int64], "K B"], ends: Bool[NDArray[np.bool_], "K B N"]
    ) -> Float[Array, "K B N"]:
        """Zero where the episode terminated, else one."""
        return 1.0 - (ends & self.terminated[episode][..., None]).astype(np.float32)
