"""A policy that acts in many rollouts at once, each under its own target."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.nn.graphs import Recorded
from himatch.nn.newest import newest_step
from himatch.nn.threads import one_thread
from himatch.policy.agent import Agent
from himatch.policy.normalizers import Normalizers
from himatch.rollout.conditioning import Feed
from himatch.rollout.context import RolloutContext


class Player:
    """K seeds acting in B rollouts each. Observations and actions are raw, ``(K, B, ...)``.

    On a GPU the forward pass, with the shift of the context, is one recorded graph, and an action is overwritten by the
    next. On a CPU only what the newest step needs is computed, for the rollouts that go on. A Gaussian head acts by the
    chance of ``seed``, with ``temperature`` times the spread that it learned.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        feed: Feed,
        batch: int,
        seed: int = 0,
        temperature: float = 0.0,
    ) -> None:
        self.agent, self.normalizers, self.feed = agent, normalizers, feed
        widths, stack = agent.widths, len(agent.seeds)
        device = normalizers.state_mean.device
        z_width = 0 if agent.codes is not None else widths.z
        self.context = RolloutContext(
            stack, batch, agent.config.context, widths.observation, widths.action, z_width, device
        )
        self.step = 0
        self.device = device
        self._everyone = torch.arange(stack * batch)
        self._models = torch.arange(stack, device=device).unsqueeze(1)
        self._newest = newest_step(agent.policy) if device.type == "cpu" else None
        # What a step reads, in tensors that keep their place in memory, which a recorded graph needs.
        self._observations = torch.zeros(stack, batch, widths.observation, device=device)
        self._z, self._targets = (None if told is None else told.clone() for told in (feed.z(0), feed.targets(0)))
        self._time = torch.zeros(1, dtype=torch.int64, device=device)
        self._noise, self._chance = None, torch.Generator(device)
        self._temperature = temperature
        if agent.policy.sampled and temperature > 0.0:
            self._noise = torch.zeros(stack, batch, widths.action, device=device)
            self._chance.manual_seed(seed)
        self._active: NDArray[np.bool_] | None = None
        self._forward = Recorded(self._one_step, device, remember=self.context.remember, purpose="rollouts")

    def reset(self) -> None:
        """Begin again at step 0."""
        self.step = 0
        self.context.reset()
        self.feed.reset()

    def threads(self) -> AbstractContextManager[None]:
        """For a loop over many steps: cores are left to those who share the newest step among them."""
        return nullcontext() if self._newest is None else one_thread()

    @torch.no_grad()
    def act(self, observations: Tensor, active: NDArray[np.bool_] | None = None) -> Tensor:
        """What each rollout does now, on the policy's device; it becomes part of its context.

        ``active``, ``(K * B,)``, says which rollouts go on; what the others do is not meant for anything.
        """
        self._observations.copy_(observations, non_blocking=True)
        told = (self._z, self.feed.z(self.step)), (self._targets, self.feed.targets(self.step))
        for buffer, now in told:
            if buffer is not None and now is not None:
                buffer.copy_(now)
        if self._noise is not None:
            self._noise.normal_(std=self._temperature, generator=self._chance)
        self._time.fill_(self.step)
        self._active = active
        actions = self._forward()
        self.step += 1
        return actions

    @torch.no_grad()
    def _one_step(self) -> Tensor:
        normalize, context = self.normalizers, self.context
        told_z = None if self._z is None else normalize.told(self._z, self._time)
        context.push(normalize.states(self._observations), told_z)
        z = context.z if self._targets is None else self._codes(self._targets)
        if self._newest is None:
            outputs = self.agent.policy(z, context.states, context.actions, context.times)
            outputs = outputs.index_select(2, context.place)[:, :, 0]
        else:
            rows = self._everyone if self._active is None else torch.from_numpy(np.flatnonzero(self._active))
            known = slice(min(self.step + 1, context.context))
            told = None if z is None else z[:, :, known]
            states, actions, times = (
                context.states[:, :, known],
                context.actions[:, :, known],
                context.times[0, 0, known],
            )
            outputs = self._newest(told, states, actions, times, rows)
        chosen = self.agent.policy.action(outputs, self._noise)
        context.put_actions(chosen)
        return normalize.raw_actions(chosen)

    def _codes(self, targets: Tensor) -> Tensor:
        """What a learned statistic tells every rollout, ``(K, B, codes, m)``: one code a target serves all of its."""
        codes, owner = self.agent.codes, self.feed.target
        assert codes is not None
        assert owner is not None
        windows = self.normalizers.states(targets).expand(len(self._models), *targets.shape)
        told: Tensor = codes(windows, self.agent.code_count)[self._models, owner]
        return told
