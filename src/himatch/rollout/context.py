"""The last N steps of many rollouts, as the policy reads them."""

from __future__ import annotations

import torch
from torch import Tensor

from himatch._runtime.graphs import Undo, restore_point
from himatch._runtime.shapes import Float, Int, shaped
from himatch.methods.batch import BatchSpec
from himatch.methods.conditioner import ALL, Some
from himatch.methods.window import cut


class RolloutContext:
    """Windows ``(K, B, N, ...)`` that move along with the rollouts.

    ``clock`` is the step that comes next, ``(1, 1)`` for rollouts in step, ``(K, B)`` for those that are ``apart``.
    For t < N the tokens stand at positions 0..t and position t is read; afterwards everything moves one place back and
    the last position is read. Which of the two it is lies on the device, so that one CUDA graph serves every step.
    """

    def __init__(
        self,
        stack: int,
        batch: int,
        context: int,
        observation: int,
        action: int,
        z: int,
        device: torch.device,
        *,
        apart: bool = False,
    ) -> None:
        self.context = context
        # One tensor moves quicker than three.
        self._window = torch.zeros(stack, batch, context, observation + action + z, device=device)
        self.states, self.actions = self._window[..., :observation], self._window[..., observation:][..., :action]
        self.z = self._window[..., observation + action :] if z else None
        self.clock = torch.zeros((stack, batch) if apart else (1, 1), dtype=torch.int64, device=device)
        self._place = self.clock[..., None, None]  # of the last token
        self._spec = BatchSpec(context)
        self._order = torch.arange(context, device=device)
        self._rows = torch.arange(stack * batch * context, device=device).view(stack, batch, context)
        self._moves_at = torch.full((context,), context, device=device)
        self._moves_at[-1] = torch.iinfo(torch.int64).max  # nothing comes after the last place

    @property
    @shaped
    def times(self) -> Int[Tensor, "K B N"]:
        """The step of every position; beyond the last token they mean nothing."""
        times, _ = cut(self._spec, self.clock, self._order, self._order)
        return times.expand(*self.states.shape[:2], -1)

    def reset(self, rollouts: Some = ALL) -> None:
        """Begin again at step 0, in place; some of the rollouts only where they are apart."""
        self._window[:, rollouts] = 0.0  # a number that is no number would pass through a weight of zero
        self.clock[:, rollouts] = 0

    def snapshot(self) -> Undo:
        """What brings back the present state, in place."""
        return restore_point(self._window, self.clock)

    @shaped
    def push(self, states: Float[Tensor, "K B obs"], z: Float[Tensor, "K B k"] | None) -> None:
        """Append a step's observation and z; its action is not known yet."""
        source = self._rows + (self.clock.unsqueeze(-1) >= self._moves_at)
        rows = self._window.view(-1, self._window.shape[3])
        rows.copy_(rows.index_select(0, source.view(-1)))
        self._place = self.clock.clamp(max=self.context - 1)[..., None, None]
        self._put(self.states, states)
        if self.z is not None and z is not None:
            self._put(self.z, z)

    @shaped
    def put_actions(self, actions: Float[Tensor, "K B act"]) -> None:
        """Append the step's action, which ends it."""
        self._put(self.actions, actions)
        self.clock.add_(1)

    @shaped
    def last(self, rows: Float[Tensor, "K B N outputs"]) -> Float[Tensor, "K B outputs"]:
        """What stands at the present step."""
        return rows.take_along_dim(self._place, 2)[:, :, 0]

    def _put(self, window: Float[Tensor, "K B N width"], rows: Float[Tensor, "K B width"]) -> None:
        window.scatter_(2, self._place.expand(*rows.shape[:2], 1, rows.shape[2]), rows.unsqueeze(2))
