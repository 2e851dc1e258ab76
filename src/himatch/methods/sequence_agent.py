"""The Generalized Decision Transformer: a sequence policy and, for learned statistics, what makes its codes."""

from __future__ import annotations

import torch
from torch import Tensor

from himatch.methods.agent import Agent, Batch, Widths
from himatch.methods.paper import BDT, EncoderMethod, LearnedMethod, Method, UnsupervisedMethod
from himatch.networks.codes import AntiCausalAggregator, SummedEncoder
from himatch.networks.transformer import ModelConfig, SequencePolicy, initialize


class SequenceAgent(Agent):
    """K sequence policies and, for learned statistics, K networks that make their codes."""

    def __init__(self, method: Method, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, widths, seeds)
        stack = len(seeds)
        self.policy = SequencePolicy(config, widths.observation, widths.action, widths.z, widths.horizon, stack)
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

    def z(self, batch: Batch) -> Tensor | None:
        """What the policy is told: as relabelled, or as the networks make it."""
        if self.codes is None:
            return batch.z
        assert batch.targets is not None
        z: Tensor = self.codes(batch.targets, self.code_count)
        detached = isinstance(self.method, UnsupervisedMethod) and self.method.mode != "joint"
        return z.detach() if detached else z

    def training_losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The clone's loss, with that of an encoder beside it."""
        cloning = self.losses(batch)
        if isinstance(self.method, UnsupervisedMethod) and self.method.mode != "frozen":
            weight = self.method.coefficient if self.method.mode == "joint" else 1.0
            return cloning + weight * self.part_losses("codes", batch), cloning
        return cloning, cloning

    def part_losses(self, part: str, batch: Batch) -> Tensor:
        """The encoder's own loss, ``(K,)``, on one state of every window, each time another place in it.

        The first states of windows alone would never be the last ones of an episode, where things fall.
        """
        assert isinstance(self.codes, SummedEncoder)
        window = torch.arange(batch.states.shape[1], device=batch.states.device)
        return self.codes.unsupervised_loss(batch.states[:, window, window % batch.states.shape[2]])

    @torch.no_grad()
    def after_step(self) -> None:
        """CPC's momentum encoder follows."""
        if isinstance(self.codes, SummedEncoder):
            self.codes.follow()
