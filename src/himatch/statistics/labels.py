"""The task that an episode's label names, in numbers: multi-task behavioural cloning without any relabelling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import DataError
from himatch.statistics.aggregators import Moments
from himatch.statistics.features import Feature
from himatch.statistics.information import EpisodeSet, Statistic
from himatch.types import Array, Trajectory


@dataclass(frozen=True)
class LabelledTask(Statistic):
    """The label of an episode as the parameter of its task: what the task asks ``feature`` to be, in its units.

    The same at every step. Where there is no label it is the mean of the feature over the rest: what that served.
    """

    feature: Feature

    @property
    def matched(self) -> Feature:
        """The feature."""
        return self.feature

    @property
    def kind(self) -> str:
        """The task of a label."""
        return "label"

    @property
    def tasked(self) -> bool:
        """It is nothing else."""
        return True

    @property
    def meaning(self) -> str:
        """In words."""
        name = self.feature.name
        return f"what the task asks {name} to be, as the episode's label says, or else the mean of {name} over the rest"

    def of_task(self, parameter: Array) -> Array:
        """The parameter itself."""
        return parameter

    def named_by(self, label: str | None) -> Array | None:
        """Its numbers, where it has no other words."""
        try:
            found = np.array([float(word) for word in (label or "").split(",")], dtype=np.float32)
        except ValueError:
            return None
        return found if np.isfinite(found).all() else None

    def width_on(self, episode: Trajectory) -> int:
        """A parameter is as wide as the feature."""
        return int(self.feature(episode).shape[1])

    def fit(self, episodes: Iterable[Trajectory]) -> LabelledTask:
        """Nothing to learn; refuses labels that are no parameters."""
        for number, episode in enumerate(episodes):
            self._z(number, episode)
        return self

    @shaped
    def of_values(self, values: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """The mean of the rest: nobody said which task these serve."""
        return Moments(1)(values)

    def relabel(self, episodes: EpisodeSet, out: Array | None = None, *, hindsight: bool = False) -> Array:
        """The parameter at every step of every episode; into ``out`` where given."""
        z = np.empty((episodes.steps, self.width_on(next(iter(episodes)))), np.float32) if out is None else out
        row = 0
        for number, episode in enumerate(episodes):
            z[row : row + len(episode)] = self._z(number, episode)
            row += len(episode)
        return z

    def _z(self, number: int, episode: Trajectory) -> Array:
        """That of every step of an episode, or the one row that serves all of them."""
        phi = self.feature(episode)
        if episode.label is None:
            return self.of_values(phi)
        found, width = self.named_by(episode.label), phi.shape[1]
        if found is None or len(found) != width:
            wanted = "a number" if width == 1 else f"{width} numbers with commas between them"
            raise DataError(
                f"labels name the tasks here: {wanted} each, what the task asks {self.feature.name} to be; that of "
                f"episode {number} is {episode.label!r}; hipi and gh infer tasks from what episodes did, meta-bc takes "
                "any labels"
            )
        return found[None]
