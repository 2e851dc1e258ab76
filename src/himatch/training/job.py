"""What is decided before the first step, and what of it goes into the run folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.files import entry, write_json
from himatch._runtime.tensors import versions
from himatch.data import Split, TrajectoryDataset, random_split, write_minari
from himatch.data.packed import mapped_array
from himatch.errors import DataError, note
from himatch.methods import CDT, Method
from himatch.methods.agent import Widths
from himatch.methods.base import Shape
from himatch.methods.normalizers import Normalizers
from himatch.methods.paper import method_spec
from himatch.methods.support import fit_familiar
from himatch.runs import folder as files
from himatch.runs.references import read_reference, write_references
from himatch.statistics.aggregators import Histogram
from himatch.statistics.bins import Bins
from himatch.statistics.features import Feature, feature_names, resolve_feature
from himatch.statistics.information import InformationStatistic, LearnedStatistic
from himatch.targets import EpisodeReference
from himatch.training.config import Preset
from himatch.training.draws import Tasks
from himatch.types import Array

VALIDATION_EPISODES = 20  # at most; never more than a twentieth of the training episodes
CHOOSING_EPISODES = 10  # fewer choose no weights: what they find best may hardly have begun to listen
VALIDATED, LATEST = "lowest validation loss", "the last ones"  # what chooses the best weights
STEPS = ("horizon", "action_low", "action_high")  # what of a task decides how a step is read
Z = ".z.npy"  # in the run folder while training goes on


@dataclass(frozen=True)
class Job:
    """One training: the method, the data it sees, the settings, and where the run lies.

    ``train`` and ``validation`` are the training side of ``split``. Bin ranges and what normalises states, actions and
    rewards come from both; what normalises z, and knows which z are familiar, from ``train`` alone.
    """

    method: Method
    split: Split
    train: TrajectoryDataset
    validation: TrajectoryDataset
    config: Preset
    seeds: tuple[int, ...]
    folder: Path
    statistic: InformationStatistic | LearnedStatistic | None
    widths: Widths

    @classmethod
    def prepare(cls, method: Method, split: Split, config: Preset, seeds: tuple[int, ...], folder: Path) -> Job:
        """Fit the statistic and set a validation slice aside."""
        everything = split.train
        if len(everything) == 0:
            raise DataError("there are no training episodes")
        if everything.lengths.max() < config.model.context:
            raise DataError(
                f"the context of {config.model.context} steps is longer than every episode (the longest has "
                f"{everything.lengths.max()}); choose a smaller --context"
            )
        if method.shape(config.model.context, everything.action_width).tasks:
            _check_tasks(method, everything)
        statistic = method.statistic(everything.task)
        if isinstance(statistic, InformationStatistic):
            statistic = statistic.fit(everything)
            z_width = statistic(everything[0]).shape[1]
        else:
            z_width = 0 if statistic is None else statistic.width
        train, validation = everything, everything[:0]
        chosen = min(VALIDATION_EPISODES, len(everything) // 20)
        if chosen:
            train, validation = random_split(everything, chosen / len(everything))
        horizon = max(everything.task.horizon, int(everything.lengths.max()))
        widths = Widths(everything.observation_width, everything.action_width, z_width, horizon)
        return cls(method, split, train, validation, config, seeds, folder, statistic, widths)

    @property
    def choice(self) -> str:
        """Which weights are taken for the best, and why."""
        if not self.method.validated:
            return LATEST
        count = int((self.validation.lengths >= self.shape.context).sum())
        if count >= CHOOSING_EPISODES:
            return VALIDATED
        return f"{LATEST}: {count} validation episodes are too few to choose by"

    @property
    def shape(self) -> Shape:
        """What batches are cut to."""
        return self.method.shape(self.config.model.context, self.widths.action)

    @contextmanager
    def relabelled(self) -> Iterator[tuple[Array | None, Array | None]]:
        """Z of training and validation episodes; beside mapped data it is mapped too."""
        if not isinstance(self.statistic, InformationStatistic):
            yield None, None
            return
        validation = self.statistic.relabel(self.validation) if len(self.validation) else None
        if not self.train.mapped:
            yield self.statistic.relabel(self.train), validation
            return
        # In the run folder, where there is room: a temporary one may be in memory, which such data does not fit into.
        place, shape = self.folder / Z, (self.train.steps, self.widths.z)
        try:
            mapped = mapped_array(place, shape)
            yield self.statistic.relabel(self.train, out=mapped), validation
        finally:
            place.unlink(missing_ok=True)

    def normalizers(self, z: Array | None) -> Normalizers:
        """What maps raw numbers to what the networks see; ``z`` is that of ``train``."""
        bins = self.method.bins if isinstance(self.method, CDT) else 1
        fitted = Normalizers.fit(self.split.train, z, self.method.scaling, bins, rewarded=self.shape.tasks)
        if still := fitted.state_std.isinf().nonzero().flatten().tolist():
            called = self.split.train.observation_names or tuple(f"obs[{i}]" for i in range(self.widths.observation))
            names = ", ".join(called[i] for i in still)
            note(f"{names} never changed in the training episodes, so the policy does not look at it")
        if z is None or self.method.scaling != "histogram":
            return fitted
        return replace(fitted, familiar=fit_familiar(z, self.train.lengths, bins, self.widths.horizon))

    # -- the run folder -----------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """The content of ``run.json``."""
        split = self.split
        description = {
            "method": method_spec(self.method),
            "model": asdict(self.config.model),
            "train": asdict(self.config.train),
            "widths": asdict(self.widths),
            "seeds": list(self.seeds),
            "best": self.choice,
            "task": files.task_spec(split.train.task),
            "statistic": self.statistic.spec() if isinstance(self.statistic, InformationStatistic) else None,
            "data": {
                "source": split.train.name,
                "env_id": split.train.env_id,
                "hash": split.train.content_hash,
                "episodes": len(split.train),
                "steps": split.train.steps,
                "columns": {"observations": split.train.observation_names, "actions": split.train.action_names},
            },
            "split": {
                "name": split.name,
                "groups": list(split.groups),
                "train": split.train_index.tolist(),
                "held_out": split.held_out_index.tolist(),
            },
            "versions": versions(),
        }
        plain: dict[str, Any] = json.loads(json.dumps(description))
        return plain

    def write(self) -> None:
        """Write what does not change during training; the description last, since its presence makes a run folder."""
        write_references(self.folder, self._references())
        if len(self.split.held_out):
            write_minari(self.split.held_out, self.folder / files.HELD_OUT, overwrite=True)
        write_json(self.folder / files.RUN, self.describe())

    def _references(self) -> list[EpisodeReference]:
        """What rollouts may be scored on: the matched feature, or for policies that match none every named one."""
        train = self.split.train
        if isinstance(self.statistic, InformationStatistic):
            return [self._reference(self.statistic.feature)]
        found = []
        for name in feature_names(train.task, has_rewards=train.has_rewards):
            try:
                found.append(self._reference(resolve_feature(name, train.task)))
            except DataError as reason:  # nobody has asked for it
                note(f"rollouts cannot be scored on {name}: {reason}")
        return found

    def _reference(self, feature: Feature) -> EpisodeReference:
        """The training episodes as targets of this feature see them."""
        bins: Bins | None = None
        if isinstance(self.statistic, InformationStatistic) and isinstance(self.statistic.aggregator, Histogram):
            bins = self.statistic.aggregator.bins
        return EpisodeReference.of(self.split.train, feature, bins, self.widths.horizon)

    def check_feature(self) -> None:
        """Refuse to go on with a run whose feature has become another: its range over the episodes gives it away."""
        if not isinstance(self.statistic, InformationStatistic):
            return
        name, now = self.statistic.feature.name, self._reference(self.statistic.feature).context.bins
        before = read_reference(self.folder, name, self.split.train.task).context.bins
        if before.dimensions != now.dimensions or not np.allclose([before.low, before.high], [now.low, now.high]):
            raise DataError(
                f"{self.folder} was trained with another feature {name!r} (its function has changed); choose another "
                "folder"
            )


def check_same(folder: Path, method: Method, split: Split, config: Preset, seeds: tuple[int, ...]) -> None:
    """Refuse a run folder that was trained in another way or on other data."""
    stored = files.read_run(folder)
    wanted = {**method_spec(method), **asdict(config.model), **asdict(config.train), "seeds": list(seeds)}
    wanted |= {name: getattr(split.train.task, name) for name in STEPS}
    where = str(folder / files.RUN)
    before, now = entry(stored, str, where, "data", "hash"), split.train.content_hash
    told = {
        key: value for part in ("method", "model", "train") for key, value in entry(stored, dict, where, part).items()
    }
    told |= {"seeds": entry(stored, list, where, "seeds")}
    told |= {name: entry(stored, object, where, "task", name) for name in STEPS}
    if before != now:
        raise DataError(
            f"{folder} was trained on other data (sha256 {before[:12]}, now {now[:12]}); give the same source and "
            "split, or choose another folder"
        )
    differing = [
        f"{name} {told.get(name)}, now {value}"
        for name, value in json.loads(json.dumps(wanted)).items()
        if told.get(name) != value
    ]
    if differing:
        raise DataError(f"{folder} was started with other settings ({'; '.join(differing)}); choose another folder")


def _check_tasks(method: Method, train: TrajectoryDataset) -> None:
    """Refuse data that a method of tasks can make nothing of."""
    if not train.has_rewards:
        raise DataError(f"{method.name} reads rewards and {train.source} has none; train another method")
    if len(Tasks(train.labels)) < 2:
        raise DataError(
            f"{method.name} learns to tell tasks apart and the {len(train)} training episodes are all of one; "
            "give data of several labels, or of several episodes without any"
        )
