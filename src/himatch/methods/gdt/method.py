"""Sequence policies conditioned on a fixed statistic: which one, how it is scaled, and the agent they share.

===========  =============  =============  ========================================
method       feature Phi    aggregator     the paper's name
===========  =============  =============  ========================================
``bc``       none           none           BC (no-context)
``dt``       reward or any  sum            DT
``cdt``      any            histogram      Categorical DT
``moments``  any            first moments  (Section "Learned Phi", moments)
``goal``     any            final value    goal-based category of Table him_summary
===========  =============  =============  ========================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.errors import HimatchError
from himatch.methods.base import Agent, Method, Port, Settings
from himatch.methods.batch import BatchSpec, Dims
from himatch.methods.conditioner import Conditioner
from himatch.methods.hindsight import Relabelling, check_relabelling, goal_hindsight
from himatch.methods.normalizers import Normalizers, ZScale, usual_moments
from himatch.methods.support import fit_support
from himatch.networks.transformer import ModelConfig, SequencePolicy, initialize
from himatch.statistics.bins import MOST_BINS, PAPER_BINS
from himatch.statistics.information import (
    InformationStatistic,
    LearnedStatistic,
    Statistic,
    distribution_based,
    goal_based,
    moment_based,
    return_based,
)
from himatch.targets import Target
from himatch.tasks import Task
from himatch.types import StepRows

_LEAN = {"context": 5, "dropout": 0.0, "tokens": "states", "head": "gaussian"}
_QUICK = {"learning_rate": 1e-3, "schedule": "linear"}
_LARGE = {"activation": "gelu", "heads": 4}
_SMALL = {"layers": 2, "width": 64}

Scaling = Literal["none", "standard", "histogram"]


@dataclass(frozen=True)
class SequenceMethod(Method):
    """What all methods share whose policy is a transformer over (z, s, a).

    ``paper`` is Table dt_hyper; ``fast`` a stochastic policy in a minute of one GPU, ``cpu`` a smaller one in two
    minutes of two cores. What each choice brings is in ``docs/fidelity.md``.
    ``scaling`` is how z is scaled before the network sees it: not at all, to unit spread (statistics in feature units),
    or, for histograms of b bins, by the square root of b, so that the flat one has length one. Unscaled, a histogram is
    a short vector beside the state, and the policy learns to do without it.
    """

    presets: ClassVar[Mapping[str, Settings]] = {
        "paper": {},
        "fast": {**_LEAN, **_QUICK, **_LARGE, "steps": 15_000, "batch_size": 256, "warmup": 500},
        "cpu": {**_LEAN, **_QUICK, **_SMALL, "steps": 14_000, "batch_size": 64, "warmup": 350},
    }
    scaling: ClassVar[Scaling] = "none"

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """Stacked sequence policies."""
        return SequenceAgent(self, config, dims, seeds)

    def z_scale(self, z: StepRows, statistic: Statistic, lengths: NDArray[np.int64], horizon: int) -> ZScale:
        """As ``scaling`` says; histograms are also clipped to the training support at run time."""
        if self.scaling == "standard":
            return ZScale(*usual_moments(z))
        if self.scaling == "histogram":
            bins = 1 if statistic.bins is None else statistic.bins.count
            mean, std = torch.zeros(z.shape[1]), torch.full((z.shape[1],), bins**-0.5)
            return ZScale(mean, std, fit_support(z, lengths, bins, horizon))
        return ZScale()


@dataclass(frozen=True)
class BC(SequenceMethod):
    """Behavioural cloning: the sequence policy without conditioning."""

    name: ClassVar[str] = "bc"
    system: ClassVar[str] = "behavioural cloning, the control of all others"
    conditioned_on: ClassVar[str] = "nothing"
    suits: ClassVar[str] = "any, to be compared with"

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """Sequence policies without z."""
        return ClonedAgent(self, config, dims, seeds)

    def statistic(self, task: Task) -> LearnedStatistic:
        """None."""
        return LearnedStatistic(0)


@dataclass(frozen=True)
class DT(SequenceMethod):
    """Decision Transformer: conditioned on the sum of the feature to the end of the episode."""

    name: ClassVar[str] = "dt"
    system: ClassVar[str] = "Decision Transformer (Chen et al. 2021)"
    conditioned_on: ClassVar[str] = "the sum of the feature over the rest"
    suits: ClassVar[str] = "return(R), return(R, within=N)"
    matches: ClassVar[Literal["return"]] = "return"
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    gamma: float = 1.0
    """Discount of the statistic."""
    scale: float | None = None
    """What the sum is divided by; the task's horizon where left out, 1000 in the authors' code."""

    def statistic(self, task: Task) -> InformationStatistic:
        """The sum, divided by ``scale``."""
        return return_based(task, self.feature, self.gamma, self.scale)


@dataclass(frozen=True)
class CDT(SequenceMethod):
    """Categorical Decision Transformer: conditioned on the distribution of the feature over the rest of the episode."""

    name: ClassVar[str] = "cdt"
    system: ClassVar[str] = "Categorical DT (Furuta et al. 2022)"
    conditioned_on: ClassVar[str] = "the distribution of the feature over the rest"
    scaling: ClassVar[Scaling] = "histogram"
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    gamma: float = 1.0
    """Discount of the statistic."""
    bins: int = PAPER_BINS
    """Bins of the histogram."""
    z: Literal["histogram", "counts"] = "histogram"
    """Shares in the bins (the paper), or counts, which also say how much time is left (its authors' code)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.z not in ("histogram", "counts"):
            raise HimatchError(f"z is a histogram or counts, got {self.z!r}")
        if not 2 <= self.bins <= MOST_BINS:
            raise HimatchError(f"a histogram that tells anything has 2 to {MOST_BINS} bins, got {self.bins}")

    def statistic(self, task: Task) -> InformationStatistic:
        """The histogram, or counts."""
        return distribution_based(task, self.feature, self.bins, self.gamma, counts=self.z == "counts")


@dataclass(frozen=True)
class MomentsDT(SequenceMethod):
    """Decision Transformer conditioned on the first moments of the feature over the rest of the episode."""

    name: ClassVar[str] = "moments"
    system: ClassVar[str] = "DT with moments (Furuta et al. 2022)"
    conditioned_on: ClassVar[str] = "mean, deviation and higher moments of the feature over the rest"
    scaling: ClassVar[Scaling] = "standard"
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    gamma: float = 1.0
    """Discount of the statistic."""
    order: int = 2
    """Highest moment: 1 the mean, 2 also the standard deviation, ..."""

    def statistic(self, task: Task) -> InformationStatistic:
        """Mean, standard deviation, ..."""
        return moment_based(task, self.feature, self.order, self.gamma)


@dataclass(frozen=True)
class GoalDT(SequenceMethod):
    """Decision Transformer conditioned on the value of the feature at the end of the episode."""

    name: ClassVar[str] = "goal"
    system: ClassVar[str] = "the goal-based category: HER's statistic, learning from play"
    conditioned_on: ClassVar[str] = "the last value of the feature, or a later one"
    suits: ClassVar[str] = "goal(X), goal(X, within=N)"
    scaling: ClassVar[Scaling] = "standard"
    matches: ClassVar[Literal["goal"]] = "goal"
    feature: str = "state"
    """Feature to match: state, x_velocity, obs[3], ...; several joined with commas."""
    relabel: Relabelling = "final"
    """Which step is the goal: the last, any later one, one a geometric number of steps ahead, or one of any episode."""
    relabel_gamma: float = 0.99
    """Of geometric relabelling: goals are 1 / (1 - gamma) steps ahead on average."""
    steps_left: bool = False
    """Whether the policy is given the steps until the goal, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_relabelling(self.relabel, self.relabel_gamma)

    def statistic(self, task: Task) -> InformationStatistic:
        """The final value."""
        return goal_based(task, self.feature, timed=self.steps_left)

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Windows of N steps, relabelled unless the goal is the last value."""
        return BatchSpec(context, hindsight=goal_hindsight(self.relabel, self.relabel_gamma, timed=self.steps_left))


class SequenceAgent(Agent):
    """K sequence policies conditioned on z as it was relabelled; the losses of :class:`Agent` are theirs."""

    def __init__(self, method: Method, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, dims, seeds)
        self.policy = SequencePolicy(config, dims.observation, dims.action, dims.z, dims.horizon, len(seeds))
        self.add_networks()
        initialize(self, seeds)

    def add_networks(self) -> None:
        """Networks beside the policy, which are drawn after it."""


class ClonedAgent(SequenceAgent):
    """K sequence policies without z."""

    def conditioner(self, targets: Sequence[Target], normalizers: Normalizers, target_of: Tensor) -> Conditioner:
        """Nothing to condition on."""
        return Conditioner()

    def port(self, statistic: Statistic) -> Port | None:
        """Nothing to hand over."""
        return None
