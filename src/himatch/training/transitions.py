"""Transitions: the state after a step, and whether the episode continues from there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Float, Int, shaped
from himatch.data import TrajectoryDataset
from himatch.types import Array


class Transitions:
    """The transition at every row of a dataset, ``(steps,)``.

    ``row`` is where the next state lies: among the observations or, past their end, among ``finals`` (E, obs), what was
    seen after an episode's last action. ``continues`` is zero where the episode terminated; a time limit is not an end.
    ``known`` is False where the log stops without either, so that the next state is not known.
    """

    def __init__(self, dataset: TrajectoryDataset) -> None:
        lengths, terminated = dataset.lengths, dataset.terminated
        steps, ends = int(lengths.sum()), np.cumsum(lengths) - 1
        self.finals: Array = dataset.final_observations
        self.row = np.arange(1, steps + 1)
        self.row[ends] = steps + np.arange(len(lengths))
        self.continues = np.ones(steps, dtype=np.float32)
        self.continues[ends[terminated]] = 0.0
        self.known = np.ones(steps, dtype=bool)
        self.known[ends] = terminated | dataset.has_final

    @shaped
    def observations(
        self,
        rows: Int[NDArray[np.int64], "K B N"],
        packed: Float[Array, "_ obs"],
        packed_rows: Int[NDArray[np.int64], "K B N"],
    ) -> Float[Array, "K B N obs"]:
        """The next states of some rows of the dataset, which are ``packed_rows`` of the packed observations."""
        next_rows, steps = self.row[rows], len(self.row)
        inside = next_rows < steps
        found: Array = packed[packed_rows + inside]
        found[~inside] = self.finals[next_rows[~inside] - steps]
        return found
