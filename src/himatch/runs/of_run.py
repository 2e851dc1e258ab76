"""What whoever holds a run says of it: task, statistic, columns, training episodes as targets see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from himatch.data import TrajectoryDataset
from himatch.methods.normalizers import Normalizers
from himatch.runs.run import Run
from himatch.statistics.information import Statistic
from himatch.targets import EpisodeReference, Target, TargetLike
from himatch.tasks import Task


class OfRun:
    """Holds a ``run`` and answers for it."""

    run: Run

    @property
    def task(self) -> Task:
        """The task it was trained on."""
        return self.run.task

    @property
    def statistic(self) -> Statistic:
        """What it is conditioned on."""
        return self.run.statistic

    @property
    def normalizers(self) -> Normalizers:
        """The maps from raw numbers to what the networks see."""
        return self.run.normalizers

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of every number of an observation; ``obs[0]`` and so on where the data had none."""
        return self.run.columns

    @property
    def rate(self) -> float | None:
        """Steps in a second of the data, in Hz; ``None`` where it does not say."""
        return self.run.rate

    @property
    def units(self) -> dict[str, str]:
        """The units of columns, by name, as far as the data has them."""
        return self.run.units

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.folder.path

    @property
    def description(self) -> dict[str, Any]:
        """What the run folder says of itself."""
        return self.run.description

    @property
    def held_out(self) -> TrajectoryDataset | None:
        """The episodes that were kept out of training, if any."""
        return self.run.held_out

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of every held-out episode."""
        return self.run.groups

    def target(self, target: TargetLike) -> Target:
        """Whatever ``match`` takes, as a target; in expressions ``heldout(i)`` is a held-out episode of the run."""
        return self.run.target(target)

    @property
    def feature(self) -> str:
        """What rollouts are scored on unless another feature is named."""
        return self.run.feature

    def reference(self, feature: str | None = None) -> EpisodeReference:
        """The training episodes as targets of a feature see them: bins, support, episode mixtures."""
        return self.run.reference(feature)

    def add_reference(self, reference: EpisodeReference) -> None:
        """Score rollouts on a feature that the run folder holds nothing about, by its name."""
        self.run.add_reference(reference)
