"""BDT: a sequence policy and the anti-causal transformer that makes its codes, trained together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from himatch.methods.base import Agent
from himatch.methods.batch import Dims
from himatch.methods.bdt.network import AntiCausalAggregator, TimedAggregator
from himatch.methods.learned import CodeAgent, LearnedMethod
from himatch.networks.transformer import STD, ModelConfig


@dataclass(frozen=True)
class BDT(LearnedMethod):
    """Bi-directional Decision Transformer: conditioned on codes of an anti-causal transformer over target states."""

    name: ClassVar[str] = "bdt"
    system: ClassVar[str] = "Bi-directional DT (Furuta et al. 2022)"
    conditioned_on: ClassVar[str] = "a code of a demonstration's next states"

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """Two transformers a model."""
        return BDTAgent(self, config, dims, seeds)


class BDTAgent(CodeAgent):
    """The second transformer is as large as the policy's."""

    def add_networks(self) -> None:
        """The anti-causal transformer."""
        config, timed = self.config, self.method.choice.timed
        made = TimedAggregator if timed else AntiCausalAggregator
        self.codes = made(
            len(self.seeds),
            self.dims.observation,
            self.method.m,
            self.dims.horizon if timed else self.spec.target_states,
            config.width,
            config.layers,
            config.heads,
            config.dropout,
            config.time_std if timed else STD,
        )
