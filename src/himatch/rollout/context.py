"""The last N steps of many rollouts, as the policy reads them."""

from __future__ import annotations

import torch
from torch import Tensor

from himatch.nn.graphs import Undo, remembered


class RolloutContext:
    """Windows ``(K, B, N, ...)`` that move along with the rollouts; all of them are at the same step.

    For t < N the tokens stand at positions 0..t and position t is read; afterwards everything moves one place back and
    the last position is read. Which of the two it is lies on the device, so that one recorded graph serves every step.
    """

    def __init__(
        self, stack: int, batch: int, context: int, observation: int, action: int, z: int, device: torch.device
    ) -> None:
        def room(*shape: int) -> Tensor:
            return torch.zeros(stack, batch, context, *shape, device=device)

        self.context = context
        self.states, self.actions = room(observation), room(action)
        self.z = room(z) if z else None
        self.times = torch.zeros(stack, batch, context, dtype=torch.int64, device=device)
        self.place = torch.zeros(1, dtype=torch.int64, device=device)
        self._step = torch.full((1,), -1, dtype=torch.int64, device=device)
        self._order = torch.arange(context, device=device)
        self._windows = [self.states, self.actions, self.times, *([] if self.z is None else [self.z])]

    def reset(self) -> None:
        """Begin again at step 0, in place."""
        for window in self._windows:
            window.zero_()  # a number that is no number would pass through a weight of zero
        self._step.fill_(-1)

    def remember(self) -> Undo:
        """What brings back the present state, in place."""
        return remembered(*self._windows, self.place, self._step)

    def push(self, states: Tensor, z: Tensor | None) -> None:
        """Take in what is seen and told at a new step, ``(K, B, ...)``; its action is not known yet."""
        self._step.add_(1)
        self.place.copy_(self._step.clamp(max=self.context - 1))
        source = (self._order + (self._step >= self.context)).clamp(max=self.context - 1)
        for window in self._windows:
            window.copy_(window.index_select(2, source))
        self.states.index_copy_(2, self.place, states.unsqueeze(2))
        self.times.index_copy_(2, self.place, self._step.expand(*self.times.shape[:2], 1))
        if self.z is not None and z is not None:
            self.z.index_copy_(2, self.place, z.unsqueeze(2))

    def put_actions(self, actions: Tensor) -> None:
        """What was done at the newest step, ``(K, B, act)``."""
        self.actions.index_copy_(2, self.place, actions.unsqueeze(2))
