"""Meta-BC: a policy of single steps, conditioned on the embedding of one demonstration.

A task is what an episode's label names, and otherwise the episode itself. An encoder of (s, a, r) steps learns to tell
tasks apart (the distance metric of Li et al. 2021, FOCAL) and is frozen; then the policy is trained, conditioned on the
embedding of an episode of the same task, the mean over its steps. At run time that episode is the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from himatch._runtime.shapes import Float, Int, shaped
from himatch.errors import HimatchError
from himatch.methods.base import Agent, Method, Port, Settings, Stage
from himatch.methods.batch import Batch, BatchSpec, Dims
from himatch.methods.conditioner import ALL, Conditioner, Some, demonstrated
from himatch.methods.metabc.network import TaskEncoder, metric_loss
from himatch.methods.normalizers import Normalizers
from himatch.networks.single_step import StepPolicy
from himatch.networks.transformer import ModelConfig, initialize
from himatch.statistics.information import LearnedStatistic, Statistic, full_trajectory
from himatch.targets import Target
from himatch.tasks import Task
from himatch.types import Trajectory

ANY_EPISODE = 2**31 - 2  # the largest of the random numbers that select an episode of a task
BLOCK = 65_536  # steps embedded together, about

_SINGLE_STEPS = {"context": 1, "layers": 3, "width": 256, "dropout": 0.0}
_ADAM = {"batch_size": 256, "warmup": 0, "weight_decay": 0.0, "clip": 10.0}  # the batch is Appendix B's
_QUICK = {"learning_rate": 1e-3, "schedule": "cosine"}


@dataclass(frozen=True)
class TaskMethod(Method):
    """What Meta-BC and FOCAL share: the encoder, and a policy that sees single steps, whatever the context.

    It is trained for ``pretrain_steps`` (as many as the policy, unless given) on ``tasks`` tasks at a time, each of
    which shows two contexts of ``context_steps`` random steps.
    """

    imitates: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Settings]] = {
        "paper": {**_SINGLE_STEPS, **_ADAM, "steps": 100_000, "learning_rate": 3e-4},
        "fast": {**_SINGLE_STEPS, **_ADAM, **_QUICK, "steps": 30_000},
        "cpu": {**_SINGLE_STEPS, **_ADAM, **_QUICK, "layers": 2, "width": 128, "steps": 6_000, "batch_size": 128},
    }
    fixed: ClassVar[Settings] = {"context": 1}
    m: int = 20
    """Size of the embedding."""
    encoder: tuple[int, ...] = (200, 200, 200)
    """Units of the encoder's hidden layers."""
    tasks: int = 16
    """Tasks that the encoder compares in a step."""
    context_steps: int = 16
    """Steps of a task that the encoder sees at a time."""
    pretrain_steps: int | None = None
    """Steps that the encoder is trained before it is frozen; as many as the policy by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m < 1:
            raise HimatchError(f"the embedding needs at least one dimension, got m = {self.m}")
        if not self.encoder or min(self.encoder) < 1:
            raise HimatchError(f"the encoder needs hidden layers of at least one unit, got {self.encoder}")
        if self.tasks < 2 or self.context_steps < 1:
            raise HimatchError(
                f"the encoder compares two tasks of one step at least, got {self.tasks} of {self.context_steps}"
            )
        if self.pretrain_steps is not None and self.pretrain_steps < 1:
            raise HimatchError(f"pretraining needs at least one step, got {self.pretrain_steps}")

    def statistic(self, task: Task) -> LearnedStatistic:
        """The mean embedding of an episode's steps."""
        return full_trajectory(self.m)

    def meaning(self, statistic: Statistic) -> str:
        """An embedding."""
        return "the embedding of a demonstration"

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Single steps with an episode of the same task."""
        return BatchSpec(1, look_ahead=ANY_EPISODE, tasks=True)

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The encoder first."""
        batch = 2 * self.tasks * self.context_steps
        return (Stage("encoder", self.pretrain_steps or steps, batch, self.context_steps),)

    def scaled(self, steps: int, usual: int) -> TaskMethod:
        """Pretraining that has a length of its own scales with the training."""
        if self.pretrain_steps is None:
            return self
        return replace(self, pretrain_steps=max(1, round(self.pretrain_steps * steps / usual)))


@dataclass(frozen=True)
class MetaBC(TaskMethod):
    """Meta-BC: behavioural cloning of single steps, conditioned on the embedding of one demonstration."""

    name: ClassVar[str] = "meta-bc"
    system: ClassVar[str] = "Meta-BC, a baseline of the paper"
    conditioned_on: ClassVar[str] = "the embedding of a whole demonstration"
    unused: ClassVar[tuple[str, ...]] = ("context", "heads", "tokens", "activation")
    presets: ClassVar[Mapping[str, Settings]] = {
        **TaskMethod.presets,
        "fast": {**TaskMethod.presets["fast"], "schedule": "linear", "head": "gaussian"},
        "cpu": {**TaskMethod.presets["cpu"], "head": "gaussian"},
    }

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """An encoder and a policy a model."""
        return MetaBCAgent(self, config, dims, seeds)


class TaskAgent(Agent):
    """The encoder, which is trained first and then frozen.

    In single precision: the networks are small, and values that are learned from one another do not survive rounding.
    """

    method: TaskMethod
    precision: ClassVar[torch.dtype] = torch.float32

    def __init__(self, method: TaskMethod, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, dims, seeds)
        self.encoder = TaskEncoder(len(seeds), dims.observation, dims.action, method.m, method.encoder)

    @shaped
    def part_losses(self, part: str, batch: Batch) -> Float[Tensor, " K"]:
        """The metric loss between contexts; a context is ``context_steps`` windows of a task in a row."""
        assert batch.rewards is not None
        assert batch.tasks is not None
        steps = self.encoder(batch.states[:, :, 0], batch.actions[:, :, 0], batch.rewards[:, :, 0])
        contexts = steps.unflatten(1, (-1, self.method.context_steps)).mean(2)
        return metric_loss(contexts, batch.tasks[:, :: self.method.context_steps])

    @torch.no_grad()
    @shaped
    def embed(self, normalizers: Normalizers, episodes: Sequence[Trajectory]) -> Float[Tensor, "K E m"]:
        """Mean embedding of each episode's steps."""
        device, found = normalizers.state_mean.device, []
        for block in _blocks(self._checked(episodes)):
            rows = [np.concatenate([part[i] for part in block]) for i in range(3)]
            states, actions, rewards = (torch.from_numpy(array).to(device) for array in rows)
            raw = Batch(states, actions, states, rewards=rewards)
            steps = normalizers(raw)
            assert steps.rewards is not None
            inputs = (x.expand(len(self.seeds), *x.shape) for x in (steps.states, steps.actions, steps.rewards))
            codes = self.encoder(*inputs).double().split([len(part[0]) for part in block], dim=1)
            found += [code.mean(1) for code in codes]
        return torch.stack(found, dim=1).float()

    def _checked(self, episodes: Sequence[Trajectory]) -> Iterator[Trajectory]:
        """Episodes, refused where they have other steps than the encoder reads."""
        wanted = (self.dims.observation, self.dims.action)
        for number, episode in enumerate(episodes):
            found = (episode.observations.shape[1], episode.actions.shape[1])
            if found != wanted:
                raise HimatchError(f"episode {number} has steps of {found} numbers, this policy reads {wanted}")
            if episode.rewards is None:
                raise HimatchError(f"{self.method.name} reads rewards, and episode {number} of the targets has none")
            yield episode

    def finish(self, part: str, codes: Float[Tensor, "K E m"] | None) -> None:
        """Once the encoder is trained, give the training episodes' embeddings unit size."""
        if part == "encoder" and codes is not None:
            self.encoder.rescale(codes)

    def conditioner(self, targets: Sequence[Target], normalizers: Normalizers, target_of: Tensor) -> Conditioner:
        """Embeddings of the demonstrations."""
        return Embedded(self.embed(normalizers, [demonstrated(target) for target in targets]), target_of)

    def port(self, statistic: Statistic) -> Port:
        """The embedding as z."""
        meaning = "embedding of the whole target episode, the same at every step: himatch's policy.embed([episode])"
        return Port("z", (self.config.context, self.dims.z), meaning)


class Embedded(Conditioner):
    """Embeddings of whole demonstrations: each rollout gets its target's at every step."""

    @shaped
    def __init__(self, codes: Float[Tensor, "K n m"], target_of: Int[Tensor, "#K B"]) -> None:
        self.target_of = target_of
        models = torch.arange(len(codes), device=target_of.device).unsqueeze(1)
        self.codes = codes.to(target_of.device)[models, target_of]

    @shaped
    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B m"]:
        """The same at every step."""
        return self.codes

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Its embeddings in place of theirs."""
        assert isinstance(other, Embedded)
        self.codes[:, rollouts] = other.codes


class MetaBCAgent(TaskAgent):
    """Meta-BC: the policy is a behavioural clone. Layers and width of the model's configuration are the policy's."""

    def __init__(self, method: TaskMethod, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, dims, seeds)
        hidden = (config.width,) * config.layers
        self.policy = StepPolicy(
            len(seeds), dims.observation, dims.action, method.m, hidden, config.dropout, config.head
        )
        initialize(self, seeds)


Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def _blocks(episodes: Iterable[Trajectory]) -> Iterator[list[Arrays]]:
    """Observations, actions and rewards of several episodes at a time."""
    block: list[Arrays] = []
    for episode in episodes:
        assert episode.rewards is not None
        block.append((episode.observations, episode.actions, episode.rewards))
        if sum(len(part[2]) for part in block) >= BLOCK:
            yield block
            block = []
    if block:
        yield block
