"""Batches: what they hold, and how large everything in them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from himatch.methods.hindsight import Hindsight


@dataclass(frozen=True)
class Dims:
    """The sizes of an agent: observation, action, z (0 for none) and the horizon of its time embedding."""

    observation: int
    action: int
    z: int
    horizon: int


@dataclass(frozen=True)
class BatchSpec:
    """What a batch holds: N steps of context and, for learned codes, the target states they are made from.

    Target states start at the window's last step plus ``target_start`` and a look-ahead, drawn from 0 to
    ``look_ahead``; at run time at the present step plus ``rollout_start``. ``tasks`` adds rewards, task numbers and,
    once episodes are embedded, the embedding of an episode of the same task; ``transitions`` adds what follows a step,
    with ``noise`` standard normal numbers beside it. With ``hindsight`` z is made when a window is cut, from a later
    step of the episode that is drawn for it.
    """

    context: int
    target_states: int = 0
    look_ahead: int = 0
    target_start: int = 0
    rollout_start: int = 0
    tasks: bool = False
    transitions: bool = False
    noise: int = 0
    hindsight: Hindsight | None = None

    def draw_ahead(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """A random number for each window: a look-ahead, or what selects a later step or another episode."""
        if self.hindsight is not None:
            return self.hindsight.draw(rng, shape)
        return rng.integers(self.look_ahead + 1, size=shape)


class Batch(NamedTuple):
    """Windows for K models: states (K, B, N, obs) and actions (K, B, N, act) normalised, times (K, B, N).

    ``z`` (K, B, N, k), or (K, B, 1, k) where one serves the whole window; ``target_states`` (K, B, S, obs) for learned
    codes, with ``target_times`` (K, B, S), or at run time ``now`` (K, B), the present step; ``mask`` (K, B, N) where
    some windows are longer than their episode. ``rewards`` (K, B, N) in units of their spread, ``tasks`` (K, B) numbers
    of the windows' tasks; for transitions ``next_states`` (K, B, N, obs), ``continues`` (K, B, N), zero where the
    episode terminated, and ``noise`` (K, B, n), standard normal.
    """

    states: Tensor
    actions: Tensor
    times: Tensor
    z: Tensor | None = None
    target_states: Tensor | None = None
    target_times: Tensor | None = None
    now: Tensor | None = None
    mask: Tensor | None = None
    rewards: Tensor | None = None
    tasks: Tensor | None = None
    next_states: Tensor | None = None
    continues: Tensor | None = None
    noise: Tensor | None = None
