"""What training, rollouts and checkpoints know of an agent; what the agents of the methods differ in is their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from himatch.methods.base import Method
from himatch.methods.normalizers import Normalizers
from himatch.networks.codes import AntiCausalAggregator, SummedEncoder
from himatch.networks.heads import PolicyNetwork
from himatch.networks.transformer import ModelConfig
from himatch.types import Trajectory


class Batch(NamedTuple):
    """Windows for K models: states (K, B, N, obs) and actions (K, B, N, act) normalised, times (K, B, N).

    ``z`` (K, B, N, k), or (K, B, 1, k) where one serves the whole window; ``targets`` (K, B, S, obs) for learned
    statistics; ``mask`` (K, B, N) where some windows are longer than their episode. ``rewards`` (K, B, N) in units of
    their spread, ``tasks`` (K, B) numbers of the windows' tasks; for transitions ``next_states`` (K, B, N, obs),
    ``goes_on`` (K, B, N), zero where the episode terminated, and ``noise`` (K, B, n), standard normal.
    """

    states: Tensor
    actions: Tensor
    times: Tensor
    z: Tensor | None = None
    targets: Tensor | None = None
    mask: Tensor | None = None
    rewards: Tensor | None = None
    tasks: Tensor | None = None
    next_states: Tensor | None = None
    goes_on: Tensor | None = None
    noise: Tensor | None = None


@dataclass(frozen=True)
class Widths:
    """The numbers that size an agent: observation, action, z (0 for none) and the horizon of its time embedding."""

    observation: int
    action: int
    z: int
    horizon: int


class Agent(nn.Module):
    """K policies with whatever makes what they are told; by itself told statistics, and a behavioural clone.

    A kind of agent makes ``policy`` and overrides what it does differently; :func:`himatch.methods.making.make_agent`
    chooses the kind.
    """

    policy: PolicyNetwork
    codes: AntiCausalAggregator | SummedEncoder | None
    """What makes a code of target states at every step, and how many codes a context needs."""
    code_count: int
    precision: ClassVar[torch.dtype] = torch.bfloat16
    """What a GPU computes in."""

    def __init__(self, method: Method, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> None:
        super().__init__()
        self.method, self.config, self.widths, self.seeds = method, config, widths, seeds
        self.codes, self.code_count = None, 0

    # -- training -----------------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Tensor:
        """Head outputs for every step of a batch, ``(K, B, N, ...)``."""
        outputs: Tensor = self.policy(self.z(batch), batch.states, batch.actions, batch.times)
        return outputs

    def z(self, batch: Batch) -> Tensor | None:
        """What the policy is told."""
        return batch.z

    def losses(self, batch: Batch) -> Tensor:
        """Behavioural-cloning loss of each model, ``(K,)``."""
        cost = self.policy.loss(self(batch), batch.actions)
        if batch.mask is None:
            return cost.mean((1, 2))
        return (cost * batch.mask).sum((1, 2)) / batch.mask.sum((1, 2))

    def training_losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What is minimised and what is reported, ``(K,)`` each."""
        cloning = self.losses(batch)
        return cloning, cloning

    @torch.no_grad()
    def after_step(self) -> None:
        """What follows an optimiser step."""

    def report(self, batch: Batch) -> dict[str, Tensor]:
        """What a look at validation windows tells, ``(K,)`` each; the least ``validation`` picks the best weights."""
        return {"validation": self.losses(batch)}

    # -- parts that are trained before the rest, and fixed then (the method's stages) ---------------------------

    def part_losses(self, part: str, batch: Batch) -> Tensor:
        """What trains a part by itself, ``(K,)``."""
        raise TypeError(f"{type(self).__name__} trains no {part} by itself")

    def fix(self, part: str) -> None:
        """Keep a part as it is from now on."""
        self.get_submodule(part).requires_grad_(False)

    # -- embeddings of whole episodes ---------------------------------------------------------------------------

    def embed(self, normalizers: Normalizers, episodes: Sequence[Trajectory]) -> Tensor | None:
        """What the policy is told of whole episodes, ``(K, E, m)``, where it is told such a thing."""
        return None

    def settle(self, part: str, codes: Tensor | None) -> None:
        """What follows once a part is learned; ``codes`` are the training episodes' embeddings, ``(K, E, m)``."""
