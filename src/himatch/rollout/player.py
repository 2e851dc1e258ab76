"""A policy that acts in many rollouts at once, each under its own target."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.graphs import Recorded
from himatch._runtime.threads import one_thread
from himatch.methods.agent import Agent
from himatch.methods.normalizers import Normalizers
from himatch.networks.last_token import NewestStep, newest_step
from himatch.rollout.conditioning import Feed
from himatch.rollout.context import ALL, RolloutContext, Some


class Player:
    """K seeds acting in B rollouts each. Observations and actions are raw, ``(K, B, ...)``.

    On a GPU the forward pass, with the shift of the context, is one recorded graph, and an action is overwritten by the
    next. On a CPU only what the newest step needs is computed, for the rollouts that go on. A Gaussian head acts by the
    chance of ``seed``, with ``temperature`` times the spread that it learned. Rollouts that are ``apart`` can begin
    again one by one; others are in step, which is quicker for many of them.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        feed: Feed,
        batch: int,
        seed: int = 0,
        temperature: float = 0.0,
        *,
        apart: bool = False,
    ) -> None:
        self.agent, self.normalizers, self.feed = agent, normalizers, feed
        widths, stack = agent.widths, len(agent.seeds)
        device = normalizers.state_mean.device
        z_width = 0 if agent.codes is not None else widths.z
        self.context = RolloutContext(
            stack, batch, agent.config.context, widths.observation, widths.action, z_width, device, apart=apart
        )
        self.device = device
        self._times = self.clock.view(-1) if self.clock.numel() == 1 else self.clock  # one for all is quicker
        self._everyone = np.arange(stack * batch)
        self._models = torch.arange(stack, device=device).unsqueeze(1)
        self._newest = newest_step(agent.policy) if device.type == "cpu" else None
        # What a step reads, in tensors that keep their place in memory, which a recorded graph needs.
        self._observations = torch.zeros(stack, batch, widths.observation, device=device)
        told = feed.z(self.clock), feed.targets(self.clock)
        self._z, self._targets = (None if now is None else now.clone() for now in told)
        self._noise, self._chance = None, torch.Generator(device)
        self._temperature = temperature
        if agent.policy.sampled and temperature > 0.0:
            self._noise = torch.zeros(stack, batch, widths.action, device=device)
            self._chance.manual_seed(seed)
        self._active: NDArray[np.bool_] | None = None
        self._forward = Recorded(self._one_step, device, remember=self.context.remember, purpose="rollouts")

    @property
    def clock(self) -> Tensor:
        """The step that comes next, ``(K, B)``, or ``(1, 1)`` for rollouts in step."""
        return self.context.clock

    def reset(self, rollouts: Some = ALL) -> None:
        """Begin again at step 0."""
        self.context.reset(rollouts)
        self.feed.reset(rollouts)

    def threads(self) -> AbstractContextManager[None]:
        """For a loop over many steps: cores are left to those who share the newest step among them."""
        return nullcontext() if self._newest is None else one_thread()

    @torch.no_grad()
    def act(self, observations: Tensor, active: NDArray[np.bool_] | None = None) -> Tensor:
        """What each rollout does now, on the policy's device; it becomes part of its context.

        ``active``, ``(K * B,)``, says which rollouts go on; what the others do is not meant for anything.
        """
        self._observations.copy_(observations, non_blocking=True)
        told = (self._z, self.feed.z(self.clock)), (self._targets, self.feed.targets(self.clock))
        for buffer, now in told:
            if buffer is not None and now is not None:
                buffer.copy_(now)
        if self._noise is not None:
            self._noise.normal_(std=self._temperature, generator=self._chance)
        self._active = active
        return self._forward()

    @torch.no_grad()
    def _one_step(self) -> Tensor:
        normalize, context = self.normalizers, self.context
        told = None if self._z is None else normalize.told(self._z, self._times)
        context.push(normalize.states(self._observations), told)
        z = context.z if self._targets is None else self._codes(self._targets)
        if self._newest is None:
            outputs = context.newest(self.agent.policy(z, context.states, context.actions, context.times))
        else:
            outputs = self._outputs(self._newest, z)
        chosen = self.agent.policy.action(outputs, self._noise)
        context.put_actions(chosen)
        return normalize.raw_actions(chosen)

    def _outputs(self, newest: NewestStep, z: Tensor | None) -> Tensor:
        """Head outputs at the newest step, ``(K, B, ...)``, computed together for all rollouts that are at one step."""
        going = self._everyone if self._active is None else np.flatnonzero(self._active)
        clock = self.clock.numpy().ravel()
        if len(clock) == 1:  # in step
            return self._at(newest, z, int(clock[0]), going)
        steps = clock[going]
        parts = [self._at(newest, z, step, going[steps == step]) for step in np.unique(steps).tolist()]
        return reduce(torch.add, parts)  # each is zero where the others are not

    def _at(self, newest: NewestStep, z: Tensor | None, step: int, rows: NDArray[np.int64]) -> Tensor:
        """The same for these rollouts, which are all at one step; zero for the others."""
        context = self.context
        known = min(step + 1, context.context)
        told = None if z is None else z[:, :, :known]
        states, actions = context.states[:, :, :known], context.actions[:, :, :known]
        return newest(told, states, actions, torch.arange(step + 1 - known, step + 1), torch.from_numpy(rows))

    def _codes(self, targets: Tensor) -> Tensor:
        """What a learned statistic tells every rollout, ``(K, B, codes, m)``: one code a target serves all of its."""
        codes, owner = self.agent.codes, self.feed.target
        assert codes is not None
        assert owner is not None
        windows = self.normalizers.states(targets).expand(len(self._models), *targets.shape)
        told: Tensor = codes(windows, self.agent.code_count)[self._models, owner]
        return told
