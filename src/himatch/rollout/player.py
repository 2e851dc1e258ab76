"""A policy that acts in many rollouts at once, each under its own target."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from himatch.errors import HimatchWarning
from himatch.policy.agent import Agent, Batch
from himatch.policy.normalizers import Normalizers
from himatch.rollout.conditioning import Feed
from himatch.rollout.context import RolloutContext


class Player:
    """K seeds acting in B rollouts each. Observations and actions are raw, ``(K, B, ...)``, on the policy's device.

    On a GPU the forward pass, with the shift of the context, is one recorded graph.
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
        self._observations = torch.zeros(stack, batch, widths.observation, device=device)
        self._z: Tensor | None = None
        self._targets: Tensor | None = None
        self._actions: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._record = device.type == "cuda"

    def reset(self) -> None:
        """Begin again at step 0."""
        self.step = 0
        self.context.reset()
        self.feed.reset()

    @torch.no_grad()
    def act(self, observations: Tensor) -> Tensor:
        """What each rollout does now; it becomes part of its context."""
        self._observations.copy_(observations)
        self._z = _into(self._z, self.feed.z(self.step))
        self._targets = _into(self._targets, self.feed.targets(self.step))
        self.step += 1
        if self._record:
            self._capture()
        if self._graph is None:
            self._actions = self._forward()
        else:
            self._graph.replay()
        assert self._actions is not None
        return self._actions

    def _forward(self) -> Tensor:
        normalize, context = self.normalizers, self.context
        z = None if self._z is None else normalize.z(self._z)
        context.push(normalize.states(self._observations), z)
        targets = None if self._targets is None else normalize.states(self._targets)
        outputs = self.agent(Batch(context.states, context.actions, context.times, context.z, targets))
        chosen = self.agent.policy.action(outputs.index_select(2, context.place)[:, :, 0])
        context.put_actions(chosen)
        return normalize.raw_actions(chosen)

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
