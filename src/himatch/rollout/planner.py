"""Targets made ready for a controller: all that takes time, apart from the loop that must not wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from himatch.data import TrajectoryDataset
from himatch.errors import HimatchError, TargetError
from himatch.methods import Agent
from himatch.methods.conditioner import Conditioner
from himatch.rollout.checks import check_target, note_bounds, note_deadline, note_outside
from himatch.rollout.conditioners import Conditioning, make_conditioner
from himatch.rollout.environment import environment_name
from himatch.rollout.plans import EPISODES, Plans
from himatch.runs.programs import Circumstances
from himatch.runs.run import Run
from himatch.targets import Target, TargetLike
from himatch.types import Trajectory


@dataclass(frozen=True, eq=False)
class Prepared:
    """Targets of some robots with their z tables; ``controller.retarget(prepared)`` only swaps these in."""

    targets: tuple[Target, ...]
    robots: NDArray[np.int64]
    conditioner: Conditioner
    planner: Planner


class Planner:
    """Parses and checks targets and makes their conditioner; it changes nothing that a controller's loop reads."""

    def __init__(
        self,
        run: Run,
        agent: Agent,
        parse: Callable[[TargetLike], Target],
        conditioning: Conditioning,
        temperature: float,
        plans: Plans = EPISODES,
    ) -> None:
        self._run, self._agent, self._parse = run, agent, parse
        self._now = Circumstances(temperature, environment_name(run, None), agent.digests())
        self.conditioning, self._plans = conditioning, plans

    def prepare(self, given: TargetLike | Sequence[TargetLike], robots: NDArray[np.int64]) -> Prepared:
        """For these robots; each has a target of its own, since each has its own clock."""
        targets = self._one_each(given, len(robots))
        numbers = np.arange(len(targets))[None]
        conditioner = (
            make_conditioner(
                self.conditioning, self._run, self._agent, targets, numbers, self._now, self._plans, beside=True
            )
            if targets
            else Conditioner()
        )
        return Prepared(tuple(targets), robots, conditioner, self)

    def note_outside(self, targets: Sequence[Target]) -> None:
        """Warn of targets that the data does not cover, and of bounds that nothing keeps."""
        for target in {id(target): target for target in targets}.values():
            if self.conditioning != "rehearsed":  # whose programs were chosen with them in view
                note_bounds(target)
            note_deadline(self._run, target)
        if self._run.statistic.matched is not None:
            for target in {id(target): target for target in targets}.values():
                note_outside(target, None, self._run.reference())

    def _one_each(self, given: TargetLike | Sequence[TargetLike], robots: int) -> list[Target]:
        """A target for each robot: the same for all, or one of several."""
        several = several_targets(given)
        if several is None:
            return [self._checked(given)] * robots  # type: ignore[arg-type]
        if len(several) != robots:
            raise HimatchError(f"{len(several)} targets for {robots} robot(s); give one, or one for each")
        return [self._checked(one) for one in several]

    def _checked(self, given: TargetLike) -> Target:
        target = self._parse(given)
        check_target(self._run, self._agent.dims, target)
        return target


def several_targets(given: TargetLike | Sequence[TargetLike]) -> list[Target | Trajectory | str] | None:
    """The targets where these are several; numbers are samples of one."""
    if isinstance(given, TrajectoryDataset):
        raise TargetError(
            f"{given.name} is a dataset of {len(given)} episodes; a target is an expression, an episode (dataset[0]), "
            "numbers or a Target, and several are a list, one for each robot"
        )
    if isinstance(given, str) or not isinstance(given, Sequence):
        return None
    targets = [one for one in given if isinstance(one, (Target, Trajectory, str))]
    return targets if targets and len(targets) == len(given) else None
