"""A policy that acts in many rollouts at once, each conditioned on its own target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.graphs import make_step
from himatch._runtime.products import wide_products
from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch._runtime.threads import one_thread
from himatch.methods import Agent
from himatch.methods.conditioner import ALL, Conditioner, Some
from himatch.methods.normalizers import Normalizers
from himatch.networks.last_token import LastToken, last_token
from himatch.rollout.context import RolloutContext


class Player:
    """K seeds acting in B rollouts each. Observations and actions are raw, ``(K, B, ...)``.

    On a GPU the forward pass, with the shift of the context, is one CUDA graph, and an action is overwritten by the
    next. On a CPU only the last token is computed, for the rollouts that go on. A stochastic head samples actions at a
    ``temperature``, from ``seed``: of a Gaussian it is a factor of the standard deviation. Rollouts that are ``apart``
    can begin again one by one; others are in step, which is quicker for many of them.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        conditioner: Conditioner,
        batch: int,
        seed: int = 0,
        temperature: float = 0.0,
        *,
        apart: bool = False,
    ) -> None:
        self.agent, self.normalizers, self.conditioner = agent, normalizers, conditioner
        dims, stack = agent.dims, len(agent.seeds)
        device = normalizers.state_mean.device
        z = 0 if agent.codes_of_states else dims.z
        self.context = RolloutContext(
            stack, batch, agent.config.context, dims.observation, dims.action, z, device, apart=apart
        )
        self.device = device
        self._times = self.clock.view(-1) if self.clock.numel() == 1 else self.clock  # one for all is quicker
        self._everyone = np.arange(stack * batch)
        self._models = torch.arange(stack, device=device).unsqueeze(1)
        self._last_token = last_token(agent.policy) if device.type == "cpu" else None
        # What a step reads, in tensors that keep their place in memory, which a CUDA graph needs.
        self._observations = torch.zeros(stack, batch, dims.observation, device=device)
        self._first = self._first_rollouts(conditioner.target_of)
        now = conditioner.z(self.clock), self._present_target_states()
        self._z, self._target_states = (None if tensor is None else tensor.clone() for tensor in now)
        self._noise, self._generator = None, torch.Generator(device)
        self._temperature = temperature
        if agent.policy.stochastic and temperature > 0.0:
            self._noise = torch.zeros(stack, batch, dims.action, device=device)
            self._generator.manual_seed(seed)
        self._active: NDArray[np.bool_] | None = None
        # A player that holds a method of its own is a cycle: its tensors would lie in memory until Python looks for
        # some, which it does by the number of objects and not by their bytes. A captured step is no such method.
        self._forward: Callable[[], Tensor] | None = None
        if device.type == "cuda":
            self._forward = make_step(self._one_step, device, snapshot=self.context.snapshot, purpose="rollouts")

    @property
    def clock(self) -> Tensor:
        """The step that comes next, ``(K, B)``, or ``(1, 1)`` for rollouts in step."""
        return self.context.clock

    @property
    def latest_z(self) -> Tensor | None:
        """The z of the latest step, ``(K, B, k)``, as the conditioner gave it; the next step writes over it."""
        return self._z

    def reset(self, rollouts: Some = ALL) -> None:
        """Begin again at step 0."""
        self.context.reset(rollouts)
        self.conditioner.reset(rollouts)

    @contextmanager
    def threads(self) -> Iterator[None]:
        """For a loop over many steps: cores are left to those who share the last token among them."""
        if self._last_token is None:
            yield
        else:
            with one_thread(), wide_products():
                yield

    @torch.no_grad()
    @shaped
    def act(
        self, observations: Float[Tensor, "K B obs"], active: Bool[NDArray[np.bool_], " K*B"] | None = None
    ) -> Float[Tensor, "K B act"]:
        """What each rollout does now, on the policy's device; it becomes part of its context.

        ``active`` says which rollouts go on; what the others do is not meant for anything.
        """
        self._observations.copy_(observations, non_blocking=True)
        if self.conditioner.wants_states:
            self.conditioner.seen(observations.float().cpu().numpy(), self.agent.dims.action)
        wanted = self.conditioner.z(self.clock), self._present_target_states()
        for buffer, now in zip((self._z, self._target_states), wanted, strict=True):
            if buffer is not None and now is not None:
                buffer.copy_(now)
        if self._noise is not None:
            self._noise.normal_(std=self._temperature, generator=self._generator)
        self._active = active
        return self._one_step() if self._forward is None else self._forward()

    @torch.no_grad()
    def _one_step(self) -> Tensor:
        normalize, context = self.normalizers, self.context
        context.push(
            normalize.states(self._observations),
            None if self._z is None else normalize.clipped_z(self._z, self._times),
        )
        z = context.z if self._target_states is None else self._codes(self._target_states)
        if self._last_token is None:
            outputs = context.last(self.agent.policy(z, context.states, context.actions, context.times))
        else:
            outputs = self._outputs(self._last_token, z)
        chosen = self.agent.policy.action(outputs, self._noise, self._temperature)
        context.put_actions(chosen)
        return normalize.raw_actions(chosen)

    @shaped
    def _outputs(self, last: LastToken, z: Float[Tensor, "K B codes k"] | None) -> Float[Tensor, "K B outputs"]:
        """Head outputs at the present step; rollouts at the same step are computed together."""
        going = self._everyone if self._active is None else np.flatnonzero(self._active)
        clock = self.clock.numpy().ravel()
        if len(clock) == 1:  # in step
            return self._at(last, z, int(clock[0]), going)
        steps = clock[going]
        parts = [self._at(last, z, step, going[steps == step]) for step in np.unique(steps).tolist()]
        return reduce(torch.add, parts)  # each is zero where the others are not

    def _at(self, last: LastToken, z: Tensor | None, step: int, rows: NDArray[np.int64]) -> Tensor:
        """The same for these rollouts, which are all at one step; zero for the others."""
        context = self.context
        known = min(step + 1, context.context)
        codes = None if z is None else z[:, :, :known]
        states, actions = context.states[:, :, :known], context.actions[:, :, :known]
        return last(codes, states, actions, torch.arange(step + 1 - known, step + 1), torch.from_numpy(rows))

    # -- codes of target states -----------------------------------------------------------------------------------

    @staticmethod
    def _first_rollouts(target_of: Tensor | None) -> tuple[Tensor, Tensor] | None:
        """The number of every target and the first rollout that follows it, ``(n,)`` each; its clock serves all."""
        if target_of is None:
            return None
        numbers = torch.arange(int(target_of.max()) + 1, device=target_of.device)
        return numbers, (target_of[0] == numbers.unsqueeze(1)).int().argmax(1)

    @shaped
    def _present_target_states(self) -> Float[Tensor, "n S obs"] | None:
        """States of every target that codes are made from at this step."""
        if self._first is None or self.conditioner.target_of is None:
            return None
        return self.conditioner.target_states(self._first[0], self._target_clock())

    def _target_clock(self) -> Int[Tensor, " n"]:
        """The step at which every target is."""
        assert self._first is not None
        assert self.conditioner.target_of is not None
        return self.clock.expand_as(self.conditioner.target_of)[0, self._first[1]]

    @shaped
    def _codes(self, target_states: Float[Tensor, "n S obs"]) -> Float[Tensor, "K B codes m"]:
        """The codes of every rollout: one target's serve all of its rollouts."""
        assert self.conditioner.target_of is not None
        windows = self.normalizers.states(target_states).expand(len(self._models), *target_states.shape)
        codes = self.agent.encode(windows, self._target_clock().unsqueeze(0))
        return codes[self._models, self.conditioner.target_of]
