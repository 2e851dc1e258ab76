"""An agent: the sequence policy together with whatever makes its z, for K seeds at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from himatch.nn.codes import AntiCausalAggregator, SummedEncoder
from himatch.nn.policy import ModelConfig, SequencePolicy, initialize
from himatch.policy.methods import BDT, EncoderMethod, LearnedMethod, Method, UnsupervisedMethod


class Batch(NamedTuple):
    """Windows for K models: states (K, B, N, obs) and actions (K, B, N, act) normalised, times (K, B, N).

    ``z`` (K, B, N, k) for fixed statistics, ``targets`` (K, B, S, obs) for learned ones, ``mask`` (K, B, N) where some
    windows are longer than their episode.
    """

    states: Tensor
    actions: Tensor
    times: Tensor
    z: Tensor | None = None
    targets: Tensor | None = None
    mask: Tensor | None = None


@dataclass(frozen=True)
class Widths:
    """The numbers that size an agent: observation, action, z (0 for none) and the horizon of its time embedding."""

    observation: int
    action: int
    z: int
    horizon: int


class Agent(nn.Module):
    """K policies and, for learned statistics, K networks that make their codes."""

    def __init__(self, method: Method, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> None:
        super().__init__()
        self.method, self.config, self.widths, self.seeds = method, config, widths, seeds
        stack = len(seeds)
        self.policy = SequencePolicy(config, widths.observation, widths.action, widths.z, widths.horizon, stack)
        self.codes: AntiCausalAggregator | SummedEncoder | None = None
        self.code_count = 0
        if isinstance(method, LearnedMethod):
            self.code_count, states = method.codes_and_states(config.context)
            if isinstance(method, BDT):
                self.codes = AntiCausalAggregator(
                    stack,
                    widths.observation,
                    method.m,
                    states,
                    config.width,
                    config.layers,
                    config.heads,
                    config.dropout,
                )
            elif isinstance(method, EncoderMethod):
                kind = method.kind if isinstance(method, UnsupervisedMethod) else None
                self.codes = SummedEncoder(
                    stack, widths.observation, method.m, method.target_window, method.hidden, kind
                )
        initialize(self, seeds)
        if isinstance(self.codes, SummedEncoder) and self.codes.unsupervised == "cpc":
            self.codes.key_encoder.load_state_dict(self.codes.encoder.state_dict())

    def forward(self, batch: Batch) -> Tensor:
        """Head outputs for every step of a batch, ``(K, B, N, ...)``."""
        outputs: Tensor = self.policy(self.z(batch), batch.states, batch.actions, batch.times)
        return outputs

    def z(self, batch: Batch) -> Tensor | None:
        """What the policy is told: as relabelled, or as the networks make it."""
        if self.codes is None:
            return batch.z
        assert batch.targets is not None
        z: Tensor = self.codes(batch.targets, self.code_count)
        detached = isinstance(self.method, UnsupervisedMethod) and self.method.mode != "joint"
        return z.detach() if detached else z

    def losses(self, batch: Batch) -> Tensor:
        """Behavioural-cloning loss of each model, ``(K,)``."""
        cost = self.policy.loss(self(batch), batch.actions)
        if batch.mask is None:
            return cost.mean((1, 2))
        return (cost * batch.mask).sum((1, 2)) / batch.mask.sum((1, 2))

    def training_losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What is minimised and what is reported, ``(K,)`` each."""
        cloning = self.losses(batch)
        if isinstance(self.method, UnsupervisedMethod) and self.method.mode != "frozen":
            weight = self.method.coefficient if self.method.mode == "joint" else 1.0
            return cloning + weight * self.unsupervised_losses(batch), cloning
        return cloning, cloning

    def unsupervised_losses(self, batch: Batch) -> Tensor:
        """The encoder's own loss, ``(K,)``, on the first state of every window."""
        assert isinstance(self.codes, SummedEncoder)
        return self.codes.unsupervised_loss(batch.states[:, :, 0])

    @torch.no_grad()
    def after_step(self) -> None:
        """What follows an optimiser step (CPC's momentum encoder)."""
        if isinstance(self.codes, SummedEncoder):
            self.codes.follow()
