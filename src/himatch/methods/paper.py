"""The methods of the paper, each a small configuration: which statistic the policy is told, and how it is learned.

=============  ==========================  ===================  =======================================
method         feature Phi                 aggregator           the paper's name
=============  ==========================  ===================  =======================================
``bc``         none                        none                 BC (no-context)
``dt``         reward or any               sum                  DT
``cdt``        any                         histogram            Categorical DT
``moments``    any                         first moments        (Section "Learned Phi", moments)
``goal``       any                         final value          goal-based category of Table him_summary
``bdt``        state                       second transformer   Bi-directional DT
``dt-ae``      learned (auto-encoder)      mean of a window     DT-AE
``dt-cpc``     learned (contrastive)       mean of a window     DT-CPC
``dt-e2e``     learned (end to end)        mean of a window     DT-E2E
``meta-bc``    learned (metric)            mean of the episode  Meta-BC (a policy of single steps)
``focal``      learned (metric)            mean of the episode  FOCAL (an actor-critic of single steps)
=============  ==========================  ===================  =======================================
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from himatch.errors import HimatchError
from himatch.methods.base import Method as Method
from himatch.methods.base import Shape, Stage
from himatch.methods.baselines import FOCAL as FOCAL
from himatch.methods.baselines import MetaBC as MetaBC
from himatch.methods.normalizers import Scaling
from himatch.statistics.bins import MOST_BINS, PAPER_BINS
from himatch.statistics.information import (
    InformationStatistic,
    LearnedStatistic,
    distribution_based,
    full_trajectory,
    goal_based,
    moment_based,
    return_based,
)
from himatch.tasks import Task

Mode = Literal["unsupervised", "joint", "frozen"]
MODES: tuple[Mode, ...] = ("unsupervised", "joint", "frozen")


@dataclass(frozen=True)
class BC(Method):
    """Behavioural cloning: the sequence policy without conditioning."""

    name: ClassVar[str] = "bc"

    def statistic(self, task: Task) -> None:
        """Nothing."""
        return


@dataclass(frozen=True)
class DT(Method):
    """Decision Transformer: conditioned on the sum of the feature to the end of the episode."""

    name: ClassVar[str] = "dt"
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    gamma: float = 1.0
    """Discount of the statistic."""

    def statistic(self, task: Task) -> InformationStatistic:
        """The sum, divided by the horizon."""
        return return_based(task, self.feature, self.gamma)


@dataclass(frozen=True)
class CDT(Method):
    """Categorical Decision Transformer: conditioned on the distribution of the feature over the rest of the episode."""

    name: ClassVar[str] = "cdt"
    scaling: ClassVar[Scaling] = "histogram"
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    gamma: float = 1.0
    """Discount of the statistic."""
    bins: int = PAPER_BINS
    """Bins of the histogram."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.bins <= MOST_BINS:
            raise HimatchError(f"a histogram that tells anything has 2 to {MOST_BINS} bins, got {self.bins}")

    def statistic(self, task: Task) -> InformationStatistic:
        """The histogram."""
        return distribution_based(task, self.feature, self.bins, self.gamma)


@dataclass(frozen=True)
class MomentsDT(Method):
    """Decision Transformer conditioned on the first moments of the feature over the rest of the episode."""

    name: ClassVar[str] = "moments"
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
class GoalDT(Method):
    """Decision Transformer conditioned on the value of the feature at the end of the episode."""

    name: ClassVar[str] = "goal"
    scaling: ClassVar[Scaling] = "standard"
    feature: str = "state"
    """Feature to match: state, x_velocity, obs[3], ...; several joined with commas."""

    def statistic(self, task: Task) -> InformationStatistic:
        """The final value."""
        return goal_based(task, self.feature)


@dataclass(frozen=True)
class LearnedMethod(Method):
    """Conditioned on a code of m numbers that a network makes from a window of target states.

    By default the window starts ``look_ahead`` steps after the present or less, drawn at random in training, and at the
    present at run time, and one code serves the whole context: a code that sees the very next states would teach the
    policy inverse dynamics. ``literal`` is the paper's reading instead: the code at t sees t, t + 1, ...
    """

    m: int = 16
    """Size of the code."""
    target_window: int = 20
    """Target states that a code is made from."""
    look_ahead: int = 100
    """Steps ahead that the target window starts at most, in training."""
    literal: bool = False
    """The paper's literal reading: the code at t sees t, t + 1, ..."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m < 1:
            raise HimatchError(f"the code needs at least one dimension, got m = {self.m}")
        if self.target_window < 1:
            raise HimatchError(f"the target window needs at least one step, got {self.target_window}")
        if self.look_ahead < 0:
            raise HimatchError(f"the look-ahead cannot be negative, got {self.look_ahead}")

    def statistic(self, task: Task) -> LearnedStatistic:
        """The trajectory itself, as a code."""
        return full_trajectory(self.m)

    def codes_and_states(self, context: int) -> tuple[int, int]:
        """How many codes a context needs, and from how many target states they are made."""
        return (context, context + self.target_window - 1) if self.literal else (1, self.target_window)

    def shape(self, context: int, action: int) -> Shape:
        """Windows with the target states that their codes are made from."""
        _, states = self.codes_and_states(context)
        return Shape(context, states, 0 if self.literal else self.look_ahead, self.literal)


@dataclass(frozen=True)
class BDT(LearnedMethod):
    """Bi-directional Decision Transformer: conditioned on codes of an anti-causal transformer over target states."""

    name: ClassVar[str] = "bdt"


@dataclass(frozen=True)
class EncoderMethod(LearnedMethod):
    """DT-X: an encoder of single states, averaged over the target window.

    The paper sums; the mean keeps the size of a code independent of the window.
    """

    hidden: tuple[int, ...] = (128, 128)
    """Units of the encoder's hidden layers."""


@dataclass(frozen=True)
class DTE2E(EncoderMethod):
    """DT-E2E: conditioned on codes of a state encoder that learns from the policy's loss alone."""

    name: ClassVar[str] = "dt-e2e"


@dataclass(frozen=True)
class UnsupervisedMethod(EncoderMethod):
    """The encoder learns from a loss of its own.

    ``unsupervised``: from that alone, beside the policy; ``joint``: from both, the former weighted by ``coefficient``;
    ``frozen``: before the policy, for ``pretrain_steps``, and is fixed afterwards.
    """

    mode: Mode = "unsupervised"
    """How the encoder learns: from its own loss beside the policy, from both losses, or before the policy."""
    coefficient: float = 0.1
    """Weight of the encoder's own loss in joint mode."""
    pretrain_steps: int = 10_000
    """Steps that the encoder is trained before it is frozen, in frozen mode."""
    kind: ClassVar[Literal["ae", "cpc"]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in MODES:
            raise HimatchError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.pretrain_steps < 1:
            raise HimatchError(f"pretraining needs at least one step, got {self.pretrain_steps}")
        if not 0 <= self.coefficient < float("inf"):
            raise HimatchError(f"the coefficient must be finite and not negative, got {self.coefficient}")

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The encoder first, where it is frozen."""
        return (Stage("codes", self.pretrain_steps, batch_size),) if self.mode == "frozen" else ()


@dataclass(frozen=True)
class DTAE(UnsupervisedMethod):
    """DT-AE: conditioned on codes of an auto-encoder of states."""

    name: ClassVar[str] = "dt-ae"
    kind: ClassVar[Literal["ae", "cpc"]] = "ae"


@dataclass(frozen=True)
class DTCPC(UnsupervisedMethod):
    """DT-CPC: conditioned on codes of a contrastive state encoder (CURL)."""

    name: ClassVar[str] = "dt-cpc"
    kind: ClassVar[Literal["ae", "cpc"]] = "cpc"


METHODS: dict[str, type[Method]] = {
    cls.name: cls for cls in (BC, DT, CDT, MomentsDT, GoalDT, BDT, DTAE, DTCPC, DTE2E, MetaBC, FOCAL)
}
"""Every method by name."""


def make_method(name: str, **settings: Any) -> Method:
    """The method of that name; settings it does not have are refused by name."""
    if name not in METHODS:
        raise HimatchError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
    known = [f.name for f in fields(METHODS[name])]
    for setting in settings:
        if setting not in known:
            raise HimatchError(f"method {name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
    return METHODS[name](**settings)


def method_spec(method: Method) -> dict[str, Any]:
    """Plain JSON values for a checkpoint."""
    return {"name": method.name, **{f.name: getattr(method, f.name) for f in fields(method)}}


def method_from_spec(spec: dict[str, Any]) -> Method:
    """The method that a checkpoint describes."""
    settings = dict(spec)
    return make_method(settings.pop("name"), **settings)
