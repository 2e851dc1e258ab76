"""Reward-conditioned policies (Kumar, Peng and Levine 2019), offline: RCP-R and RCP-A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from himatch._runtime.shapes import Float, shaped
from himatch.errors import HimatchError
from himatch.methods.base import Agent, Settings, Stage
from himatch.methods.batch import Batch, Dims
from himatch.methods.rcp.network import AdvantagePolicy
from himatch.methods.single_state import SingleStateAgent, SingleStateMethod, presets
from himatch.networks.single_step import StepPolicy
from himatch.networks.transformer import ModelConfig
from himatch.statistics.information import InformationStatistic, return_based
from himatch.tasks import Task

Given = Literal["return", "advantage"]
VALUE = "policy.usual"


@dataclass(frozen=True)
class RCP(SingleStateMethod):
    """Reward-conditioned policy: behavioural cloning of single steps, given the return of the rest or its advantage.

    Steps are weighted by exp(Z / beta), Z in units of its spread: the exponentially tilted distribution of targets.
    """

    name: ClassVar[str] = "rcp"
    system: ClassVar[str] = "reward-conditioned policies (Kumar et al. 2019)"
    conditioned_on: ClassVar[str] = "the sum of the feature over the rest, or how far it is above V(s)"
    suits: ClassVar[str] = "return(R)"
    matches: ClassVar[Literal["return"]] = "return"
    presets: ClassVar[Mapping[str, Settings]] = presets({"width": 200, "learning_rate": 5e-4})
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    gamma: float = 1.0
    """Discount of the sum."""
    scale: float | None = None
    """What the sum is divided by; the task's horizon where left out."""
    given: Given = "return"
    """What the policy is conditioned on: the return of the rest (RCP-R), or its advantage over V(s) (RCP-A)."""
    beta: float = 1.0
    """Temperature of the weights exp(Z / beta); a large one weighs all steps the same."""
    value_steps: int | None = None
    """Steps that V is trained before it is frozen; as many as the policy by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given not in get_args(Given):
            raise HimatchError(f"given is return or advantage, got {self.given!r}")
        if not self.beta > 0:
            raise HimatchError(f"beta must be above 0, got {self.beta}")
        if self.value_steps is not None and self.value_steps < 1:
            raise HimatchError(f"V is trained for at least one step, got {self.value_steps}")

    def statistic(self, task: Task) -> InformationStatistic:
        """The sum of the rest."""
        return return_based(task, self.feature, self.gamma, self.scale)

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """V first, where there is one."""
        return (Stage(VALUE, self.value_steps or steps, batch_size),) if self.given == "advantage" else ()

    def scaled(self, steps: int, usual: int) -> RCP:
        """V's training scales with the policy's, if it has a length of its own."""
        if self.value_steps is None:
            return self
        return replace(self, value_steps=max(1, round(self.value_steps * steps / usual)))

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """Fully connected policies, with V where it is needed."""
        return RCPAgent(self, config, dims, seeds)


class RCPAgent(SingleStateAgent):
    """K policies whose loss is tilted towards what went well."""

    method: RCP

    def make_policy(self, hidden: tuple[int, ...]) -> StepPolicy:
        """One of returns or of advantages."""
        if self.method.given == "return":
            return super().make_policy(hidden)
        dims, config = self.dims, self.config
        sizes = (len(self.seeds), dims.observation, dims.action, dims.z)
        return AdvantagePolicy(*sizes, hidden, config.dropout, config.head)

    @shaped
    def part_losses(self, part: str, batch: Batch) -> Float[Tensor, " K"]:
        """That of V."""
        assert isinstance(self.policy, AdvantagePolicy)
        assert batch.z is not None
        return self.policy.usual.loss(batch.z, batch.states)

    @shaped
    def losses(self, batch: Batch) -> Float[Tensor, " K"]:
        """Behavioural cloning, every step weighted by its share of exp(Z / beta) in the batch."""
        cost = self.policy.loss(self(batch), batch.actions)[:, :, 0]
        return (cost * self.weights(batch)).sum(1)

    @torch.no_grad()
    @shaped
    def weights(self, batch: Batch) -> Float[Tensor, "K B"]:
        """Of every step, for each model together one; of several features the mean of their Z decides."""
        assert batch.z is not None
        z = batch.z
        if isinstance(self.policy, AdvantagePolicy):
            z = self.policy.usual.advantage(z, batch.states)
        return (z[:, :, 0].mean(-1) / self.method.beta).softmax(1)
