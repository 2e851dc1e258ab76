"""The plan of a training: everything that is decided before its first step, decided once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from himatch._runtime.devices import find_device
from himatch._runtime.settings import whole
from himatch.data import Split, TrajectoryDataset, check_split
from himatch.data.packed import mapped_array
from himatch.data.split import set_aside
from himatch.errors import DataError, HimatchError, note
from himatch.methods import Method, check_method, method_spec
from himatch.methods.base import Stage
from himatch.methods.batch import BatchSpec, Dims
from himatch.methods.normalizers import Normalizers, ZScale
from himatch.networks.transformer import ModelConfig
from himatch.runs.description import describe, plain_spec, stored_method, stored_model
from himatch.runs.fingerprint import check_fingerprint, write_fingerprint
from himatch.runs.folder import RunFolder, Weights
from himatch.runs.references import write_references
from himatch.statistics.bins import Bins
from himatch.statistics.features import Feature, feature_names, of_each, resolve_feature
from himatch.statistics.fences import fences
from himatch.statistics.information import Statistic
from himatch.targets import EpisodeReference
from himatch.targets.reference import usual_of_labels
from himatch.tasks import Task, get_task
from himatch.training.config import TrainConfig, configure
from himatch.training.draws import Tasks
from himatch.training.metrics import check_trackers
from himatch.training.start import Scales, Start, find_start
from himatch.types import Array, StepRows

BinRange = Literal["usual", "all"]
BIN_RANGES: tuple[BinRange, ...] = ("usual", "all")
NOTED = 3  # columns with extreme values that are named
MOST_SEEDS = 2**63  # that PyTorch takes
VALIDATION_EPISODES = 20  # at most; never more than a twentieth of the training episodes
SELECTING_EPISODES = 10  # fewer select no checkpoint: the one they prefer may hardly use its conditioning yet
REFERENCE_STEPS = 10_000_000  # of the episodes that a run keeps for its targets, at most
MOST_LABELS = 100  # that a run keeps; with more they are numbers of episodes rather than labels
VALIDATED, LATEST = "lowest validation loss", "the last ones"  # what selects the best weights
OF_STEPS = ("horizon", "action_low", "action_high")  # what of a task decides how a step is read


@dataclass(frozen=True)
class Plan:
    """One training: the method, the data it sees, the settings, and where the run lies.

    ``split.train`` are all training episodes; ``trained_on`` and ``validation`` are the two parts of it. Windows are
    sampled from ``trained_on`` alone, and so are the scale and the support of z. Bin ranges, and what normalises
    states, actions and rewards, come from ``split.train``, validation included.
    """

    method: Method
    model: ModelConfig
    config: TrainConfig
    seeds: tuple[int, ...]
    device: torch.device
    trackers: tuple[str, ...]
    folder: RunFolder
    split: Split
    trained_on: TrajectoryDataset
    validation: TrajectoryDataset
    statistic: Statistic
    dims: Dims
    bin_range: BinRange = "usual"
    continued: bool = False
    """Whether a run is gone on with; else one begins."""
    start: Start | None = None
    """The run whose weights are the first ones, if any."""

    @property
    def spec(self) -> BatchSpec:
        """What batches hold."""
        return self.method.batch_spec(self.model.context, self.dims.action)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is trained, in order; the policy last."""
        steps, batch_size = self.config.steps, self.config.batch_size
        return (*self.method.stages(steps, batch_size), Stage(None, steps, batch_size))

    @property
    def selection(self) -> str:
        """What selects the best weights."""
        if not self.method.validated:
            return LATEST
        count = int((self.validation.lengths >= self.spec.context).sum())
        if count >= SELECTING_EPISODES:
            return VALIDATED
        return f"{LATEST}: {count} validation episodes are too few to choose by"

    # -- data ---------------------------------------------------------------------------------------------------

    @contextmanager
    def relabelled(self) -> Iterator[tuple[StepRows | None, Array | None]]:
        """Z of training and validation episodes, where it can be computed before training.

        Beside mapped data it is computed when it is read, where that is cheap, and else it is mapped too. With
        hindsight windows are relabelled when they are cut, and in place of z is what that needs of every step.
        """
        hindsight = self.spec.hindsight is not None
        relabel = partial(self.statistic.relabel, hindsight=hindsight)
        validation = relabel(self.validation) if len(self.validation) else None
        if not self.trained_on.mapped or self.statistic.matched is None:
            yield relabel(self.trained_on), validation
            return
        # In the run folder, where there is room: a temporary one may be in memory, which such data does not fit into.
        place, shape = self.folder.z_file, (self.trained_on.steps, self.dims.z)
        try:
            z = None if hindsight else self.statistic.on_demand(self.trained_on, partial(mapped_array, place))
            if z is None:
                z = relabel(self.trained_on, out=mapped_array(place, shape))
            yield z, validation
        finally:
            place.unlink(missing_ok=True)

    def normalizers(self, z: StepRows | None) -> Normalizers:
        """The maps from raw numbers to what the networks see; ``z`` is that of ``trained_on``."""
        scale = ZScale()
        if z is not None:
            scale = self.method.z_scale(z, self.statistic, self.trained_on.lengths, self.dims.horizon)
        fitted = Normalizers.fit(self.split.train, scale, rewarded=self.spec.tasks)
        if self.start is not None and self.start.keeps:
            return self.start.normalizers(fitted, self.split.train)
        if still := fitted.state_std.isinf().nonzero().flatten().tolist():
            called = self.split.train.observation_names or tuple(f"obs[{i}]" for i in range(self.dims.observation))
            names = ", ".join(called[i] for i in still)
            note(f"{names} never changed in the training episodes, so the policy does not look at it")
        return fitted

    # -- the run folder -----------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """The description of the run."""
        train = asdict(self.config)
        found = describe(
            self.method, self.model, train, self.dims, self.seeds, self.selection, self.statistic, self.split
        )
        if labels := _labels(self.split.train.labels):
            found["data"]["labels"] = labels
        if self.extremes:
            found["data"]["extremes"] = self.extremes
        if self.start is not None:
            found["start"] = dict(self.start.record)
        return found

    def write(self, normalizers: Normalizers) -> None:
        """Write what does not change during training; the description last."""
        self._note_extremes()
        references = self._references()
        if self.statistic.binned:
            note_few_bins(references[0])
        write_references(self.folder, references)
        write_fingerprint(self.folder, self.split.train, [one.frame.feature.name for one in references])
        self.folder.write_normalizers(normalizers.tensors())
        if len(self.split.held_out):
            self.folder.write_held_out(self.split.held_out)
        description = self.describe()
        if self.statistic.matched is not None and (known := description["data"].get("labels")):
            for name, facts in usual_of_labels(references[0], self.referenced.labels).items():
                known[name] |= facts
        self.folder.write_description(description, self.split.train.source)

    def _note_extremes(self) -> None:
        """Warn of readings that are trained on though nobody may have meant them."""
        found = self.split.train.extremes()
        without = ", and bins end before them" if self.statistic.binned and self.bin_range == "usual" else ""
        for column in found[:NOTED]:
            note(
                f"{column}; it is trained on with them{without} (himatch data inspect shows them, --drop-extremes "
                "leaves such episodes out)"
            )
        if len(found) > NOTED:
            note(f"{len(found) - NOTED} more columns have extreme values (himatch data inspect)")

    @cached_property
    def extremes(self) -> list[dict[str, Any]]:
        """Of the matched feature, every column with extreme values: how many, the farthest, and the usual range."""
        feature, train = self.statistic.matched, self.split.train
        if feature is None:
            return []
        values = np.concatenate(list(of_each(feature, train[:: -(-train.steps // REFERENCE_STEPS)])))
        found, (low, high) = [], fences(values)
        for name, column, least, most in zip(feature.names(len(low)), values.T, low, high, strict=True):
            beyond = column[(column < least) | (column > most)]
            if len(beyond):
                farthest = beyond[np.abs(beyond - (least + most) / 2).argmax()]
                numbers = {"farthest": float(farthest), "low": float(least), "high": float(most)}
                found.append({"name": name, "count": len(beyond), **numbers})
        return found

    def _references(self) -> list[EpisodeReference]:
        """What rollouts may be scored on: the matched feature, or for policies that match none every named one."""
        train = self.split.train
        if self.statistic.matched is not None:
            return [self._reference(self.statistic.matched)]
        found = []
        for name in feature_names(train.task, has_rewards=train.has_rewards):
            try:
                found.append(self._reference(resolve_feature(name, train.task)))
            except DataError as reason:  # it was not chosen by anybody
                note(f"rollouts cannot be scored on {name}: {reason}")
        return found

    def _reference(self, feature: Feature) -> EpisodeReference:
        """The training episodes as targets of this feature see them; of very many, evenly spaced ones."""
        everything, chosen, bins = self.split.train, self.referenced, self.statistic.bins
        fenced = self.bin_range == "usual"
        if len(chosen) < len(everything):
            bins = bins or Bins.fit(of_each(feature, everything), fenced=fenced)
        return EpisodeReference.of(chosen, feature, bins, self.dims.horizon, fenced=fenced)

    @property
    def referenced(self) -> TrajectoryDataset:
        """The training episodes that references hold."""
        every = -(-self.split.train.steps // REFERENCE_STEPS)
        return self.split.train[::every]


def make_plan(
    method: Method,
    read: Callable[[], Split],
    *,
    out: str | Path,
    preset: str | None = None,
    seed: int = 0,
    seeds: int = 1,
    resume: bool = False,
    device: str | None = None,
    trackers: str | Sequence[str] = (),
    split: str | None = None,
    task: str | Task | None = None,
    more_features: bool = False,
    bin_range: BinRange = "usual",
    start: str | Path | None = None,
    start_weights: Weights = "last",
    normalizers: Scales | None = None,
    **overrides: Any,
) -> Plan:
    """Plan a training. Settings that cannot be are refused before ``read`` is called for the data.

    ``split`` and ``task`` are only checked here: what they say is in what ``read`` returns. With ``more_features`` the
    data may name features that the task does not, by its columns. With ``start`` the model is that run's, and the
    preset is one of training alone.
    """
    check_method(method)
    folder = RunFolder(out)
    started = find_start(folder, start, start_weights, normalizers, resume=resume)
    if started is not None:
        overrides = {**started.model, **{name: value for name, value in overrides.items() if value is not None}}
    model, config = configure(preset or default_preset(device), method, **overrides)
    first, count = whole("seed", seed), whole("seeds", seeds)
    if count < 1 or first < 0:
        raise HimatchError(f"seeds must be at least 1 and the first one not negative, got {count} from {first}")
    if first + count > MOST_SEEDS:
        raise HimatchError(f"seeds must be below {MOST_SEEDS}, got {count} from {first}")
    where, numbers = find_device(device), tuple(range(first, first + count))
    names = (trackers,) if isinstance(trackers, str) else tuple(trackers)
    check_trackers(names)
    if split is not None:
        check_split(split)
    if task is not None:
        known = get_task(task)
        if not more_features:
            method.statistic(known)  # which refuses a feature that the task does not have
    if started is not None and not folder.begun:
        started.check(method, model, numbers)
    folder.check_free(resume=resume)
    if bin_range not in BIN_RANGES:
        raise HimatchError(f"bin_range is {' or '.join(BIN_RANGES)}, got {bin_range!r}")
    split_data = read()
    model = with_head(model, method, split_data.train, asked=overrides.get("head"))
    return _with_data(method, split_data, model, config, numbers, where, names, folder, bin_range, started)


def with_head(model: ModelConfig, method: Method, data: TrajectoryDataset, *, asked: str | None) -> ModelConfig:
    """The model with a categorical head where actions are discrete; a head for other actions is refused."""
    if data.discrete is None:
        if model.head == "categorical":
            raise HimatchError(f"a categorical head chooses among discrete actions, and those of {data.name} are not")
        return model
    if not method.chooses:
        raise HimatchError(
            f"{method.name} is for continuous actions, and those of {data.name} are {data.discrete}; behavioural "
            "cloning takes them, with a demonstration meta-bc"
        )
    if asked not in (None, "categorical"):
        raise HimatchError(
            f"the actions of {data.name} are {data.discrete}, for which a {asked} head makes no sense; leave --head out"
        )
    return replace(model, head="categorical")


def default_preset(device: str | None) -> str:
    """``fast`` where a GPU trains, else ``cpu``."""
    return "fast" if find_device(device).type == "cuda" else "cpu"


def _with_data(
    method: Method,
    split: Split,
    model: ModelConfig,
    config: TrainConfig,
    seeds: tuple[int, ...],
    device: torch.device,
    trackers: tuple[str, ...],
    folder: RunFolder,
    bin_range: BinRange,
    start: Start | None = None,
) -> Plan:
    """Compare a run that is resumed with the data, fit the statistic and set a validation slice aside."""
    everything = split.train
    continued = folder.saved
    if continued:
        check_same(folder, method, split, model, config, seeds)
    if len(everything) == 0:
        raise DataError("there are no training episodes")
    if everything.lengths.max() < model.context:
        raise DataError(
            f"the context of {model.context} steps is longer than every episode (the longest has "
            f"{everything.lengths.max()}); choose a smaller --context"
        )
    if method.batch_spec(model.context, everything.action_width).tasks:
        _check_tasks(method, everything)
    fresh = method.statistic(everything.task)
    if bin_range == "all":
        fresh = fresh.from_minimum_to_maximum()
    if start is None:
        statistic = fresh.fit(everything)
    else:
        start.check_data(everything)
        statistic = start.statistic(everything.task, fresh, everything)
    trained_on, validation = everything, everything[:0]
    chosen = min(VALIDATION_EPISODES, len(everything) // 20)
    if chosen:
        trained_on, validation = set_aside(split, chosen)
    horizon = max(everything.task.horizon, int(everything.lengths.max())) if start is None else start.horizon
    z = statistic.width_on(everything[0])
    dims = Dims(everything.observation_width, everything.action_width, z, horizon)
    parts = (split, trained_on, validation, statistic, dims, bin_range, continued, start)
    return Plan(method, model, config, seeds, device, trackers, folder, *parts)


def _labels(labels: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    """How many training episodes have each label; nothing where nearly every one differs."""
    counts = Counter(label for label in labels if label is not None)
    if len(counts) > MOST_LABELS:
        return {}
    return {str(name): {"episodes": count} for name, count in counts.items()}


def note_few_bins(reference: EpisodeReference) -> None:
    """Warn before hours are spent: a histogram with all data in one bin or two hardly tells targets apart."""
    bins, names = reference.frame.bins, reference.frame.feature.names(reference.frame.bins.dimensions)
    for d, (name, used, values) in enumerate(zip(names, reference.occupied.tolist(), reference.values.T, strict=True)):
        # A constant feature is warned of where the statistic is fitted; one of two values needs no more than two bins.
        if used <= 2 < len(np.unique(values)):
            low, high = np.quantile(values, (0.01, 0.99))
            note(
                f"the training data of {name} occupies {used} of {bins.count} bins: 98 % of it lies from {low:.4g} to "
                f"{high:.4g}, and the bins span {bins.low[d]:.4g} to {bins.high[d]:.4g}, so a histogram hardly tells "
                "targets apart; mend or cut the outliers, or match another feature"
            )


def check_same(
    folder: RunFolder, method: Method, split: Split, model: ModelConfig, config: TrainConfig, seeds: tuple[int, ...]
) -> None:
    """Refuse a run folder that was trained in another way or on other data."""
    stored = folder.description()
    wanted = {**method_spec(method), **asdict(model), **asdict(config), "seeds": list(seeds)}
    wanted |= {name: getattr(split.train.task, name) for name in OF_STEPS}
    model_before, method_before = asdict(stored_model(folder, stored)), plain_spec(stored_method(folder, stored))
    try:
        before, now = stored["data"]["hash"], split.train.content_hash
        found = {**method_before, **model_before, **stored["train"], "seeds": stored["seeds"]}
        found |= {name: stored["task"][name] for name in OF_STEPS}
    except (KeyError, TypeError) as reason:
        raise folder.incomplete(reason) from None
    if before != now:
        raise DataError(
            f"{folder} was trained on other data (sha256 {before[:12]}, now {now[:12]}); give the same source and "
            "split, or choose another folder"
        )
    differing = [
        f"{name} {found.get(name)}, now {value}"
        for name, value in json.loads(json.dumps(wanted)).items()
        if found.get(name) != value
    ]
    if differing:
        raise DataError(f"{folder} was started with other settings ({'; '.join(differing)}); choose another folder")
    check_fingerprint(folder, split.train.task)


def _check_tasks(method: Method, train: TrajectoryDataset) -> None:
    """Refuse data that a method of tasks can make nothing of."""
    if not train.has_rewards:
        raise DataError(f"{method.name} reads rewards and {train.source} has none; train another method")
    if len(Tasks(train.labels)) < 2:
        raise DataError(
            f"{method.name} learns to tell tasks apart and the {len(train)} training episodes are all of one; "
            "give data of several labels, or of several episodes without any"
        )
