"""Goal-conditioned supervised learning (Ghosh et al. 2021), offline: every state that was reached later was a goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from himatch.methods.base import Settings
from himatch.methods.batch import BatchSpec
from himatch.methods.hindsight import Relabelling, check_relabelling, goal_hindsight
from himatch.methods.single_state import SingleStateMethod, presets
from himatch.statistics.information import InformationStatistic, goal_based
from himatch.tasks import Task


@dataclass(frozen=True)
class GCSL(SingleStateMethod):
    """Goal-conditioned supervised learning: behavioural cloning of single steps, given a goal and the steps until then.

    The goal of a step is the feature at a later step of its episode, drawn anew whenever the step is trained on.
    """

    name: ClassVar[str] = "gcsl"
    system: ClassVar[str] = "goal-conditioned supervised learning (Ghosh et al. 2021)"
    conditioned_on: ClassVar[str] = "a later value of the feature, and the steps until then"
    suits: ClassVar[str] = "goal(X), goal(X, within=N)"
    matches: ClassVar[Literal["goal"]] = "goal"
    presets: ClassVar[Mapping[str, Settings]] = presets({"width": 400, "learning_rate": 5e-4})
    feature: str = "state"
    """Feature that goals are of: state, x_velocity, obs[3], ...; several joined with commas."""
    relabel: Relabelling = "uniform"
    """Which later step is the goal: any, one a geometric number of steps ahead, the last, or one of any episode."""
    relabel_gamma: float = 0.99
    """Of geometric relabelling: goals are 1 / (1 - gamma) steps ahead on average."""
    steps_left: bool = True
    """Whether the policy is given the steps until the goal, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_relabelling(self.relabel, self.relabel_gamma)

    def statistic(self, task: Task) -> InformationStatistic:
        """The last value, and the steps until then."""
        return goal_based(task, self.feature, timed=self.steps_left)

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Single steps, relabelled unless the goal is the last value."""
        return BatchSpec(1, hindsight=goal_hindsight(self.relabel, self.relabel_gamma, timed=self.steps_left))
