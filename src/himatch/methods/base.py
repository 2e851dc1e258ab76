"""The contract of a method: what it is conditioned on, which batches it needs, its networks, losses and stages.

A method is a folder beside this file. Its configuration is a frozen dataclass that subclasses :class:`Method`, whose
``build`` makes the :class:`Agent`: the networks and their losses. Nothing outside ``methods/`` asks which it has. To
add one, copy a folder, rename its classes and their ``name``, and register them (:mod:`himatch.methods.registry`).
What a batch holds is in ``batch.py``, what a window is in ``window.py``, the contract of conditioners in
``conditioner.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from himatch._runtime.settings import make_plain, shown
from himatch._runtime.shapes import Float, Int, shaped
from himatch.errors import HimatchError
from himatch.methods.batch import Batch, BatchSpec, Dims
from himatch.methods.conditioner import Conditioner
from himatch.methods.normalizers import Normalizers, ZScale
from himatch.networks.heads import PolicyNetwork
from himatch.networks.transformer import ModelConfig
from himatch.statistics.information import Statistic
from himatch.targets import Target
from himatch.tasks import Task
from himatch.types import StepRows, Trajectory


class Stage(NamedTuple):
    """A stretch of training: a part of the agent that is trained and then frozen, or last of all the policy.

    ``part`` is the submodule to train, ``None`` for everything that is not frozen. ``context_steps`` windows in a row
    are of one task each; 0: windows are drawn one by one.
    """

    part: str | None
    steps: int
    batch_size: int
    context_steps: int = 0


class Port(NamedTuple):
    """An input or output of an exported policy: ``shape`` without the batch, and what the numbers mean."""

    name: str
    shape: tuple[int, ...]
    meaning: str


class Agent(nn.Module):
    """K policies of one method, stacked, with whatever makes their z; by itself a behavioural clone given z.

    Losses are pure functions of parameters and batch. A subclass makes ``policy`` and overrides what it does otherwise.
    """

    policy: PolicyNetwork
    precision: ClassVar[torch.dtype] = torch.bfloat16
    """What a GPU computes in."""
    codes_of_states: bool = False
    """Whether z is made from target states, by :meth:`encode`."""

    def __init__(self, method: Method, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__()
        self.method, self.config, self.dims, self.seeds = method, config, dims, seeds
        self.spec = method.batch_spec(config.context, dims.action)

    def digests(self) -> dict[str, str]:
        """A checksum of every seed's weights: what was found out about others says nothing of these."""
        state = {name: tensor.cpu() for name, tensor in sorted(self.state_dict().items())}
        found = {}
        for place, seed in enumerate(self.seeds):
            digest = hashlib.sha256()
            for name, tensor in state.items():
                digest.update(name.encode())
                digest.update(tensor[place].contiguous().numpy().tobytes())
            found[str(seed)] = digest.hexdigest()[:16]
        return found

    # -- training -----------------------------------------------------------------------------------------------

    @shaped
    def forward(self, batch: Batch) -> Float[Tensor, "K B N outputs"]:
        """Head outputs for every step of a batch."""
        outputs: Tensor = self.policy(self.z(batch), batch.states, batch.actions, batch.times)
        return outputs

    def z(self, batch: Batch) -> Tensor | None:
        """What the policy is conditioned on."""
        return batch.z

    @shaped
    def losses(self, batch: Batch) -> Float[Tensor, " K"]:
        """Behavioural-cloning loss of each model."""
        cost = self.policy.loss(self(batch), batch.actions)
        if batch.mask is None:
            return cost.mean((1, 2))
        return (cost * batch.mask).sum((1, 2)) / batch.mask.sum((1, 2))

    @shaped
    def training_losses(self, batch: Batch) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"]]:
        """What is minimised and what is reported, of each model."""
        cloning = self.losses(batch)
        return cloning, cloning

    @torch.no_grad()
    def after_step(self) -> None:
        """What follows an optimiser step."""

    def report(self, batch: Batch) -> dict[str, Tensor]:
        """Metrics on validation windows, ``(K,)`` each; the lowest ``validation`` selects the checkpoint."""
        return {"validation": self.losses(batch)}

    # -- stages -------------------------------------------------------------------------------------------------

    def part_losses(self, part: str, batch: Batch) -> Float[Tensor, " K"]:
        """What trains a part by itself, of each model."""
        raise TypeError(f"{type(self).__name__} trains no {part} by itself")

    def freeze(self, part: str) -> None:
        """Keep a part as it is from now on."""
        self.get_submodule(part).requires_grad_(False)

    def finish(self, part: str, codes: Float[Tensor, "K E m"] | None) -> None:
        """What follows once a part is trained; ``codes`` are the training episodes' embeddings."""

    # -- conditioning -------------------------------------------------------------------------------------------

    def embed(self, normalizers: Normalizers, episodes: Sequence[Trajectory]) -> Float[Tensor, "K E m"] | None:
        """Embeddings of whole episodes, where the policy is conditioned on such."""
        return None

    def encode(
        self, target_states: Float[Tensor, "K n S obs"], now: Int[Tensor, "#K n"]
    ) -> Float[Tensor, "K n codes m"]:
        """Codes of normalised target states for rollouts at these steps."""
        raise TypeError(f"{type(self).__name__} makes no codes")

    def conditioner(self, targets: Sequence[Target], normalizers: Normalizers, target_of: Tensor) -> Conditioner | None:
        """A conditioner of the method's own; ``target_of`` ``(K, B)`` says which target each rollout follows.

        ``None``: z is a statistic of the target's feature, and the generic conditioners (``himatch.rollout``) give it.
        """
        return None

    # -- export -------------------------------------------------------------------------------------------------

    def port(self, statistic: Statistic) -> Port | None:
        """What an exported policy is conditioned on; ``None`` for nothing."""
        return Port("z", (self.config.context, self.dims.z), f"{self.method.meaning(statistic)}; latest last")


Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """The configuration of a method: what travels in a run folder beside the weights."""

    name: ClassVar[str]
    validated: ClassVar[bool] = True
    """Whether validation selects the checkpoint that ``best`` means; else it is the last one."""
    imitates: ClassVar[bool] = False
    """Whether a target must be a demonstration."""
    chooses: ClassVar[bool] = True
    """Whether its policies can have discrete actions."""
    matches: ClassVar[Literal["distribution", "return", "goal"]] = "distribution"
    """The kind of target that says most to it."""
    system: ClassVar[str] = ""
    """The system of the literature that it stands for, for ``himatch methods``."""
    conditioned_on: ClassVar[str] = ""
    """What its policy is conditioned on, in a few words."""
    suits: ClassVar[str] = ""
    """Targets that suit it, as expressions; where left out, what ``matches`` and ``imitates`` say."""
    presets: ClassVar[Mapping[str, Settings]] = {"paper": {}, "fast": {}, "cpu": {}}
    """Settings of the model and of training that differ from the defaults (Table dt_hyper), by preset."""
    fixed: ClassVar[Settings] = {}
    """Settings that are what they are, whatever is given."""
    unused: ClassVar[tuple[str, ...]] = ()
    """Settings of the model's configuration that mean nothing to the method: its command has no flags for them."""

    def __post_init__(self) -> None:
        feature = getattr(self, "feature", "")
        if not isinstance(feature, str):
            raise HimatchError(
                f"feature must be a name, or several joined with commas, got {shown(feature)}; a function of your own "
                "is named in the task (register_task)"
            )
        make_plain(self)

    @classmethod
    def current(cls, stored: Settings) -> Settings:
        """Settings that a run folder holds, as this version calls them."""
        return stored

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """K untrained models, each drawn from its own seed."""
        raise TypeError(f"{type(self).__name__} is not a method")

    def statistic(self, task: Task) -> Statistic:
        """What the policy is conditioned on."""
        raise TypeError(f"{type(self).__name__} is not a method")

    def meaning(self, statistic: Statistic) -> str:
        """What the policy is conditioned on, in words."""
        return str(getattr(statistic, "meaning", "nothing"))

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """What batches hold, for policies of that context and action size."""
        return BatchSpec(context)

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """What is trained before the policy, for a training of so many steps on such batches."""
        return ()

    def scaled(self, steps: int, usual: int) -> Method:
        """The method with the steps of its own stages scaled as those of a training from ``usual`` to ``steps``."""
        return self

    def z_scale(self, z: StepRows, statistic: Statistic, lengths: NDArray[np.int64], horizon: int) -> ZScale:
        """How z is scaled before the network sees it, from z of all training steps ``(steps, k)``; not at all."""
        return ZScale()
