"""DT-X: sequence policies conditioned on the mean code of a target window, and how the encoder of states is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from himatch._runtime.shapes import Float, shaped
from himatch.errors import HimatchError
from himatch.methods.base import Agent, Stage
from himatch.methods.batch import Batch, Dims
from himatch.methods.dtx.network import Autoencoder, ContrastiveEncoder, SummedEncoder
from himatch.methods.learned import CodeAgent, LearnedMethod
from himatch.networks.transformer import ModelConfig

Mode = Literal["unsupervised", "joint", "frozen"]
MODES: tuple[Mode, ...] = ("unsupervised", "joint", "frozen")


@dataclass(frozen=True)
class EncoderMethod(LearnedMethod):
    """DT-X: an encoder of single states, summed over target states; ``codes`` says over which.

    Sums are divided by the size of the window, which keeps the size of a code independent of it.
    """

    hidden: tuple[int, ...] = (128, 128)
    """Units of the encoder's hidden layers."""
    encoder: ClassVar[type[SummedEncoder]] = SummedEncoder


@dataclass(frozen=True)
class DTE2E(EncoderMethod):
    """DT-E2E: conditioned on codes of a state encoder that is trained by the policy's loss alone."""

    name: ClassVar[str] = "dt-e2e"
    system: ClassVar[str] = "DT-X, one-shot imitation (Furuta et al. 2022)"
    conditioned_on: ClassVar[str] = "the mean of learned features of a demonstration's next states (end to end)"

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """A sequence policy and an encoder a model."""
        return EncoderAgent(self, config, dims, seeds)


@dataclass(frozen=True)
class UnsupervisedMethod(EncoderMethod):
    """The encoder has a loss of its own.

    ``unsupervised``: it is trained by that alone, beside the policy; ``joint``: by both, its own weighted by
    ``coefficient``; ``frozen``: before the policy, for ``pretrain_steps``.
    """

    mode: Mode = "unsupervised"
    """How the encoder is trained: by its own loss beside the policy, by both losses, or before the policy."""
    coefficient: float = 0.1
    """Weight of the encoder's own loss in joint mode."""
    pretrain_steps: int = 10_000
    """Steps that the encoder is trained before it is frozen, in frozen mode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in MODES:
            raise HimatchError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.pretrain_steps < 1:
            raise HimatchError(f"pretraining needs at least one step, got {self.pretrain_steps}")
        if not 0 <= self.coefficient < float("inf"):
            raise HimatchError(f"the coefficient must be finite and not negative, got {self.coefficient}")

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """A sequence policy, an encoder and what trains it, a model."""
        return UnsupervisedAgent(self, config, dims, seeds)

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The encoder first, where it is frozen."""
        return (Stage("codes", self.pretrain_steps, batch_size),) if self.mode == "frozen" else ()

    def scaled(self, steps: int, usual: int) -> UnsupervisedMethod:
        """Pretraining scales with the training."""
        return replace(self, pretrain_steps=max(1, round(self.pretrain_steps * steps / usual)))


@dataclass(frozen=True)
class DTAE(UnsupervisedMethod):
    """DT-AE: conditioned on codes of an auto-encoder of states."""

    name: ClassVar[str] = "dt-ae"
    system: ClassVar[str] = "DT-X, one-shot imitation (Furuta et al. 2022)"
    conditioned_on: ClassVar[str] = "the mean of learned features of a demonstration's next states (auto-encoder)"
    encoder: ClassVar[type[SummedEncoder]] = Autoencoder


@dataclass(frozen=True)
class DTCPC(UnsupervisedMethod):
    """DT-CPC: conditioned on codes of a contrastive state encoder (CURL)."""

    name: ClassVar[str] = "dt-cpc"
    system: ClassVar[str] = "DT-X, one-shot imitation (Furuta et al. 2022)"
    conditioned_on: ClassVar[str] = "the mean of learned features of a demonstration's next states (contrastive)"
    encoder: ClassVar[type[SummedEncoder]] = ContrastiveEncoder


class EncoderAgent(CodeAgent):
    """A sequence policy and an encoder of states, trained by the policy's loss."""

    method: EncoderMethod
    codes: SummedEncoder

    def __init__(self, method: EncoderMethod, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, dims, seeds)
        self.codes.prepare()

    def add_networks(self) -> None:
        """The encoder."""
        method, stack = self.method, len(self.seeds)
        self.codes = method.encoder(stack, self.dims.observation, method.m, self.spec.target_states, method.hidden)


class UnsupervisedAgent(EncoderAgent):
    """The encoder is trained by a loss of its own, alone or beside the policy's."""

    method: UnsupervisedMethod

    def z(self, batch: Batch) -> Tensor | None:
        """The codes; the policy's loss reaches the encoder in ``joint`` mode alone."""
        z = super().z(batch)
        return z if z is None or self.method.mode == "joint" else z.detach()

    @shaped
    def training_losses(self, batch: Batch) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"]]:
        """The clone's loss, with that of the encoder beside it."""
        cloning = self.losses(batch)
        if self.method.mode == "frozen":
            return cloning, cloning
        weight = self.method.coefficient if self.method.mode == "joint" else 1.0
        return cloning + weight * self.part_losses("codes", batch), cloning

    @shaped
    def part_losses(self, part: str, batch: Batch) -> Float[Tensor, " K"]:
        """The encoder's own loss, on one state of every window, each time another place in it.

        The first states of windows alone would never be the last ones of an episode, where things fall.
        """
        window = torch.arange(batch.states.shape[1], device=batch.states.device)
        return self.codes.unsupervised_loss(batch.states[:, window, window % batch.states.shape[2]])

    @torch.no_grad()
    def after_step(self) -> None:
        """The momentum encoder follows, where there is one."""
        self.codes.after_step()
