"""Upside-down reinforcement learning (Schmidhuber 2019; Srivastava et al. 2019), offline: any stretch was a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from himatch.errors import HimatchError
from himatch.methods.base import Settings
from himatch.methods.batch import BatchSpec
from himatch.methods.hindsight import Hindsight, Relabelling, check_relabelling
from himatch.methods.single_state import SingleStateMethod, presets
from himatch.statistics.aggregators import TimedSum
from himatch.statistics.information import InformationStatistic, command_based
from himatch.tasks import Task


@dataclass(frozen=True)
class UDRL(SingleStateMethod):
    """Upside-down RL: behavioural cloning of single steps, given a command: a return, and the steps to earn it in.

    The command of a step is what was earned from there to a later step of its episode, drawn anew whenever the step is
    trained on.
    """

    name: ClassVar[str] = "udrl"
    system: ClassVar[str] = "upside-down RL (Srivastava et al. 2019)"
    conditioned_on: ClassVar[str] = "a sum of the feature, and the steps in which it is earned"
    suits: ClassVar[str] = "return(R), return(R, within=N)"
    matches: ClassVar[Literal["return"]] = "return"
    presets: ClassVar[Mapping[str, Settings]] = presets({"width": 256, "learning_rate": 1e-3})
    feature: str = "reward"
    """Feature to match: reward, x_velocity, obs[3], ...; several joined with commas."""
    relabel: Literal["final", "uniform", "geometric"] = "uniform"
    """Where the stretch of a command ends: at the episode's end, anywhere, or a geometric number of steps ahead."""
    relabel_gamma: float = 0.99
    """Of geometric relabelling: stretches have 1 / (1 - gamma) steps on average."""

    def __post_init__(self) -> None:
        super().__post_init__()
        relabel: Relabelling = self.relabel
        if relabel == "random":
            raise HimatchError("what was earned elsewhere is no command; relabel is final, uniform or geometric")
        check_relabelling(relabel, self.relabel_gamma)

    def statistic(self, task: Task) -> InformationStatistic:
        """The sum of the rest, and its steps."""
        return command_based(task, self.feature)

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Single steps, relabelled unless their stretch is the whole rest."""
        hindsight = None if self.relabel == "final" else Hindsight(self.relabel, TimedSum, self.relabel_gamma)
        return BatchSpec(1, hindsight=hindsight)
