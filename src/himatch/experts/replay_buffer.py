"""The replay buffer of a stack of agents, on the training device."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Experience(NamedTuple):
    """Transitions; leading axes ``(K, E)`` as they are collected, ``(K, B)`` as they are drawn."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    next_observations: Tensor
    terminated: Tensor


class ReplayBuffer:
    """A ring of rows, each one simultaneous step of all K x E simulations."""

    def __init__(
        self, rows: int, agents: int, copies: int, observation: int, action: int, device: torch.device
    ) -> None:
        def room(*width: int) -> Tensor:
            return torch.zeros(rows, agents, copies, *width, device=device)

        self.rows, self.agents, self.copies = rows, agents, copies
        self.stored = Experience(room(observation), room(action), room(), room(observation), room())
        self.filled = torch.zeros((), device=device)  # on the device: a CUDA graph reads it
        self.steps = 0

    def add(self, step: Experience) -> None:
        """Put one row in the place of the oldest."""
        for ring, values in zip(self.stored, step, strict=True):
            ring[self.steps % self.rows].copy_(values, non_blocking=True)
        self.steps += 1
        self.filled.fill_(float(min(self.steps, self.rows)))

    def draw(self, batch: int) -> Experience:
        """``batch`` transitions for each agent, from its own."""
        device = self.filled.device
        row = (torch.rand(self.agents, batch, device=device, dtype=torch.float64) * self.filled).long()
        copy = torch.randint(self.copies, (self.agents, batch), device=device)
        agent = torch.arange(self.agents, device=device).unsqueeze(1)
        flat = (row * self.agents + agent) * self.copies + copy
        return Experience._make(ring.flatten(0, 2)[flat] for ring in self.stored)
