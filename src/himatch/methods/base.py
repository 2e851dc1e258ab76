"""What every method says about itself, and what it wants batches to be cut to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from himatch._runtime.settings import make_plain, shown
from himatch.errors import HimatchError
from himatch.methods.normalizers import Scaling
from himatch.statistics.information import InformationStatistic, LearnedStatistic
from himatch.tasks import Task


@dataclass(frozen=True)
class Shape:
    """What a batch is cut to: the context N, and the states and the look-ahead of a learned statistic's target.

    ``literal`` targets start with the window; others start at its last step plus the look-ahead. ``tasks`` asks for
    rewards, the numbers of tasks and, once episodes are embedded, the embedding of an episode of the same task;
    ``transitions`` for what follows a step, with ``noise`` random numbers beside it.
    """

    context: int
    target_states: int = 0
    look_ahead: int = 0
    literal: bool = False
    tasks: bool = False
    transitions: bool = False
    noise: int = 0


class Stage(NamedTuple):
    """Something that is trained before the policy and fixed then: which part of the agent, how long, on what batches.

    ``context_steps`` windows in a row are of one task each; 0 asks for any windows.
    """

    part: str
    steps: int
    batch_size: int
    context_steps: int = 0


@dataclass(frozen=True)
class Method:
    """What every method says about itself.

    ``scaling`` is how z is scaled before the network sees it: not at all, to unit spread (statistics in feature units),
    or, for histograms of b bins, by the square root of b, so that the flat one has length one. Unscaled, a histogram is
    a short vector beside the state, and the policy learns to do without it.
    """

    name: ClassVar[str]
    scaling: ClassVar[Scaling] = "none"
    validated: ClassVar[bool] = True
    """Whether the weights that validated best are the best; else the last ones are."""
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

    def statistic(self, task: Task) -> InformationStatistic | LearnedStatistic | None:
        """What the policy is told; ``None`` for no context."""
        raise TypeError(f"{type(self).__name__} is not a method")

    def shape(self, context: int, action: int) -> Shape:
        """What batches are cut to, for policies of that context and action width."""
        return Shape(context)

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """What goes before a training of so many steps on such batches."""
        return ()
