"""The paper's baselines: policies of single steps that are told the embedding of one demonstration.

A task is what an episode's label names, and otherwise the episode itself. An encoder of (s, a, r) steps learns to tell
tasks apart (the distance metric of Li et al. 2021, FOCAL) and is fixed; then the policy learns, conditioned on the
embedding of an episode of the same task, the mean over its steps. At run time that episode is the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from himatch.errors import HimatchError
from himatch.methods.base import Method, Shape, Stage
from himatch.statistics.information import LearnedStatistic, full_trajectory
from himatch.tasks import Task

ANY_EPISODE = 2**31 - 2  # the largest of the random numbers that pick an episode of a task


@dataclass(frozen=True)
class TaskMethod(Method):
    """What Meta-BC and FOCAL share: the encoder.

    It is trained for ``pretrain_steps`` (as many as the policy, unless given) on ``tasks`` tasks at a time, each of
    which shows two contexts of ``context_steps`` random steps.
    """

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

    def shape(self, context: int, action: int) -> Shape:
        """Single steps with an episode of the same task."""
        return Shape(1, look_ahead=ANY_EPISODE, tasks=True)

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The encoder first."""
        batch = 2 * self.tasks * self.context_steps
        return (Stage("encoder", self.pretrain_steps or steps, batch, self.context_steps),)


@dataclass(frozen=True)
class MetaBC(TaskMethod):
    """Meta-BC: behavioural cloning of single steps, conditioned on the embedding of one demonstration."""

    name: ClassVar[str] = "meta-bc"
    unused: ClassVar[tuple[str, ...]] = ("context", "heads", "tokens")


@dataclass(frozen=True)
class FOCAL(TaskMethod):
    """FOCAL: an offline actor-critic of single steps, conditioned on the embedding of one demonstration.

    It maximises each task's reward without leaving its behaviour: BRAC (Wu et al. 2019) with a value penalty.
    The weight of the penalty, ``alpha`` at first, follows what keeps the divergence from a learned behaviour policy at
    ``target_divergence``, in nats. ``averaging`` is how far target critics move towards the critics in a step.
    """

    name: ClassVar[str] = "focal"
    unused: ClassVar[tuple[str, ...]] = ("context", "heads", "tokens", "dropout", "head")
    validated: ClassVar[bool] = False  # the better it gets, the less it need do what the data did
    discount: float = 0.99
    """Discount of rewards."""
    averaging: float = 0.005
    """How far target critics move towards the critics in a step."""
    alpha: float = 10.0
    """Initial weight of the divergence from the data's behaviour."""
    target_divergence: float = 0.05
    """How far the policy may go from the data's behaviour, in nats."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.discount < 1.0:
            raise HimatchError(f"the discount must be at least 0 and below 1, got {self.discount}")
        if not 0.0 < self.averaging <= 1.0:
            raise HimatchError(f"averaging must be above 0 and at most 1, got {self.averaging}")
        for name in ("alpha", "target_divergence"):
            if not getattr(self, name) > 0.0:
                raise HimatchError(f"{name} must be above 0, got {getattr(self, name)}")

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The encoder, then a clone of the behaviour that it tells apart."""
        return (*super().stages(steps, batch_size), Stage("behaviour", self.pretrain_steps or steps, batch_size))

    def shape(self, context: int, action: int) -> Shape:
        """Transitions, with noise for an action at either end."""
        return Shape(1, look_ahead=ANY_EPISODE, tasks=True, transitions=True, noise=2 * action)
