"""Multi-task behavioural cloning: pi(a | s, psi), psi the parameter of a task, offline.

==============  ===================================================================================================
method          psi of a step
==============  ===================================================================================================
``multi-task``  that of the episode's own task, by its label: no hindsight
``hipi``        the likeliest under inverse RL, ``argmax R_psi - log Z(psi)`` (HIPI-BC)
``gh``          the one under which the return has the highest percentile (generalized hindsight's relabelling, AIR)
==============  ===================================================================================================

R is the return of the rest of the episode under the reward r_psi(phi) of a family (:mod:`himatch.statistics.rewards`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from himatch.methods.base import Settings
from himatch.methods.single_state import SingleStateMethod, presets
from himatch.statistics.aggregators import HighestRankedTask, LikeliestTask
from himatch.statistics.features import resolve_feature
from himatch.statistics.information import InformationStatistic
from himatch.statistics.labels import LabelledTask
from himatch.tasks import Task


@dataclass(frozen=True)
class MultiTask(SingleStateMethod):
    """Multi-task behavioural cloning: single steps, given the task that the label of their episode names.

    Labels are numbers, what the task asks the feature to be: the target velocity of cheetah-vel. An episode without a
    label has the mean of the feature over the rest.
    """

    name: ClassVar[str] = "multi-task"
    system: ClassVar[str] = "multi-task behavioural cloning, the control of hipi and gh"
    conditioned_on: ClassVar[str] = "the task of the episode's own label"
    suits: ClassVar[str] = "task(X), labelled episodes"
    presets: ClassVar[Mapping[str, Settings]] = presets({"width": 256, "learning_rate": 1e-3})
    feature: str = "reward"
    """Feature that tasks are about: x_velocity, obs[3], ...; of several, labels are numbers with commas."""

    def statistic(self, task: Task) -> LabelledTask:
        """The label's."""
        return LabelledTask(resolve_feature(self.feature, task))


@dataclass(frozen=True)
class HIPI(SingleStateMethod):
    """HIPI-BC: behavioural cloning of single steps, given the task that the rest of their episode most likely served.

    Inverse RL with the partition function: the return under a task counts beside what episodes usually earn under it.
    """

    name: ClassVar[str] = "hipi"
    system: ClassVar[str] = "HIPI-BC (Eysenbach et al. 2020)"
    conditioned_on: ClassVar[str] = "the task that the rest most likely served, by inverse RL"
    suits: ClassVar[str] = "task(X), and distributions and episodes by the task they serve"
    presets: ClassVar[Mapping[str, Settings]] = presets({"width": 256, "learning_rate": 1e-3})
    feature: str = "reward"
    """Feature that rewards are of: x_velocity, obs[3], ...; several joined with commas."""
    rewards: str = "distance"
    """Family of rewards: less the distance of the feature from psi, or less its square."""
    candidates: int = 31
    """Tasks that are compared, spread over what training episodes do."""
    gamma: float = 1.0
    """Discount of the return."""
    unit: float = 1.0
    """Of returns in exp(R / unit): what is less counts little."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._aggregator()  # which refuses settings that cannot be

    def statistic(self, task: Task) -> InformationStatistic:
        """The likeliest task."""
        return InformationStatistic(resolve_feature(self.feature, task), self._aggregator())

    def _aggregator(self) -> LikeliestTask:
        return LikeliestTask(self.gamma, self.rewards, self.candidates, temperature=self.unit)


@dataclass(frozen=True)
class GH(SingleStateMethod):
    """Generalized hindsight with BC: cloning of single steps, given the task at which their episode was among the best.

    The task under which the return of the rest has the highest percentile among training episodes.
    """

    name: ClassVar[str] = "gh"
    system: ClassVar[str] = "generalized hindsight's relabelling (Li et al. 2020), with BC"
    conditioned_on: ClassVar[str] = "the task at which the rest was among the best, by percentile"
    suits: ClassVar[str] = "task(X), and distributions and episodes by the task they serve"
    presets: ClassVar[Mapping[str, Settings]] = presets({"width": 256, "learning_rate": 1e-3})
    feature: str = "reward"
    """Feature that rewards are of: x_velocity, obs[3], ...; several joined with commas."""
    rewards: str = "distance"
    """Family of rewards: less the distance of the feature from psi, or less its square."""
    candidates: int = 31
    """Tasks that are compared, spread over what training episodes do."""
    gamma: float = 1.0
    """Discount of the return."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._aggregator()

    def statistic(self, task: Task) -> InformationStatistic:
        """The highest-ranked task."""
        return InformationStatistic(resolve_feature(self.feature, task), self._aggregator())

    def _aggregator(self) -> HighestRankedTask:
        return HighestRankedTask(self.gamma, self.rewards, self.candidates)
