"""A policy that acts in many rollouts at once, each under its own target."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.errors import HimatchWarning
from himatch.policy.agent import Agent
from himatch.policy.normalizers import Normalizers
from himatch.rollout.conditioning import Feed
from himatch.rollout.context import RolloutContext
from himatch.rollout.newest import NewestStep


class Player:
    """K seeds acting in B rollouts each. Observations and actions are raw, ``(K, B, ...)``, on the policy's device.

    On a GPU the forward pass, with the shift of the context, is one recorded graph. On a CPU only what the newest step
    needs is computed, for the rollouts that go on.
    """

    def __init__(self, agent: Agent, normalizers: Normalizers, feed: Feed, batch: int) -> None:
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
        self._observations = torch.zeros(stack, batch, widths.observation, device=device)
        self._z: Tensor | None = None
        self._targets: Tensor | None = None
        self._actions: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._record = device.type == "cuda"
        self._newest = NewestStep(agent.policy) if device.type == "cpu" else None

    def reset(self) -> None:
        """Begin again at step 0."""
        self.step = 0
        self.context.reset()
        self.feed.reset()

    @torch.no_grad()
    def act(self, observations: Tensor, active: NDArray[np.bool_] | None = None) -> Tensor:
        """What each rollout does now; it becomes part of its context.

        ``active``, ``(K * B,)``, says which rollouts go on; what the others do is not meant for anything.
        """
        self._observations.copy_(observations)
        self._z = _into(self._z, self.feed.z(self.step))
        self._targets = _into(self._targets, self.feed.targets(self.step))
        if self._record:
            self._capture()
        if self._graph is None:
            self._actions = self._forward(active)
        else:
            self._graph.replay()
        self.step += 1
        assert self._actions is not None
        return self._actions

    def _forward(self, active: NDArray[np.bool_] | None = None) -> Tensor:
        normalize, context = self.normalizers, self.context
        context.push(normalize.states(self._observations), None if self._z is None else normalize.z(self._z))
        z = context.z if self._targets is None else self._codes(self._targets)
        if self._newest is None:
            outputs = self.agent.policy(z, context.states, context.actions, context.times)
            outputs = outputs.index_select(2, context.place)[:, :, 0]
        else:
            rows = self._everyone if active is None else torch.from_numpy(np.flatnonzero(active))
            outputs = self._newest(context, z, min(self.step, context.context - 1), rows)
        chosen = self.agent.policy.action(outputs)
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

    def _capture(self) -> None:
        """Record the forward pass; where that is not possible it runs as it is."""
        self._record = False
        first = self.context._step.clone()
        try:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):
                    self._forward()
                    self.context._step.copy_(first)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._actions = self._forward()
            self._graph = graph
        except Exception as reason:  # whatever a driver on a user's machine may say
            torch.cuda.synchronize()
            detail = (str(reason).strip() or type(reason).__name__).splitlines()[0][:160]
            warnings.warn(f"no CUDA graph for rollouts here, they run without ({detail})", HimatchWarning, 2)
        self.context._step.copy_(first)


def _into(buffer: Tensor | None, values: Tensor | None) -> Tensor | None:
    """The values in a buffer that keeps its place in memory, which a recorded graph needs."""
    if values is None or buffer is None:
        return None if values is None else values.clone()
    return buffer.copy_(values)
