"""A warm start: a training whose first weights are another run's, on new or more logs.

Only the policy is trained. What a method pretrains and freezes, such as an encoder, stays as the other run left it:
training it anew would change what the policy's z mean, and the policy would have to begin again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from himatch.data import TrajectoryDataset
from himatch.errors import DataError, HimatchError, note
from himatch.methods import Method, method_spec
from himatch.methods.base import Agent
from himatch.methods.normalizers import Normalizers
from himatch.networks.transformer import ModelConfig
from himatch.rollout.episodes import note_rate, other_units
from himatch.runs.finder import find_run
from himatch.runs.folder import WEIGHTS, RunFolder, Weights
from himatch.runs.run import Run
from himatch.statistics.features import of_each
from himatch.statistics.information import InformationStatistic, Statistic
from himatch.tasks import Task
from himatch.training.draws import CHUNK

Scales = Literal["keep", "refit"]
SCALES: tuple[Scales, ...] = get_args(Scales)
FAR = 10.0  # standard deviations: what lies further out is nothing the networks have seen
RARE = 0.01  # of the steps; less is not worth a note
_BLOCK = 262_144  # rows read together


@dataclass(frozen=True)
class Start:
    """The run that a training starts from. ``record`` is what the new run says of it."""

    run: Run
    weights: Weights
    record: Mapping[str, Any]

    @property
    def keeps(self) -> bool:
        """Whether normalizers and bins are the other run's."""
        return bool(self.record["normalizers"] == "keep")

    @property
    def drawn(self) -> int:
        """Chunks of random windows that were drawn before; runs of earlier versions drew the first ones again."""
        return int(self.record.get("draws", 0))

    @property
    def model(self) -> dict[str, Any]:
        """Size and form of its policy."""
        return dict(self.run.description["model"])

    @property
    def horizon(self) -> int:
        """Times that its policy knows."""
        return int(self.run.description["widths"]["horizon"])

    @classmethod
    def read(cls, run: str | Path, weights: Weights, scales: Scales) -> Start:
        """Read what is needed of a run, and what is to be remembered of it."""
        if weights not in WEIGHTS:
            raise HimatchError(f"weights to start from are {' or '.join(WEIGHTS)}, got {weights!r}")
        found = Run.read(find_run(run))
        data = found.description["data"]
        record = {
            "run": found.folder.path.resolve().name,
            "weights": weights,
            "seeds": list(found.seeds),
            "steps": [found.folder.weights_step(seed, weights) for seed in found.seeds],
            "digest": _digest(found, weights),
            "draws": _drawn(found, weights),
            "normalizers": scales,
            "data": {key: data.get(key) for key in ("source", "hash", "episodes", "steps")},
            "start": found.description.get("start"),
        }
        return cls(found, weights, record)

    # -- what must be the same ----------------------------------------------------------------------------------

    def check(self, method: Method, model: ModelConfig, seeds: Sequence[int]) -> None:
        """Refuse another method, another model, or seeds that are neither its own nor copies of its only one."""
        before = {**method_spec(self.run.method), **self.model}
        if before.get("name") != method.name:
            raise HimatchError(
                f"{self.run.folder} was trained with {before.get('name')}, and a {method.name} cannot start from it: "
                f"only the same method goes on (himatch train {before.get('name')} --start ...)"
            )
        now = {**method_spec(method), **asdict(model)}
        if differing := [
            f"{key} {before.get(key)}, here {now[key]}" for key in now if _json(before.get(key)) != _json(now[key])
        ]:
            raise HimatchError(
                f"{self.run.folder} cannot be started from: it has {'; '.join(differing)}; give its settings"
            )
        missing = [str(seed) for seed in seeds if seed not in self.run.seeds]
        if missing and len(self.run.seeds) > 1:
            known = ", ".join(map(str, self.run.seeds))
            raise HimatchError(
                f"{self.run.folder} has the seeds {known} and not {', '.join(missing)}; start from those, or from a "
                "run of one seed, which any number may start from"
            )
        if method.stages(1, 1) and not self.keeps:
            raise HimatchError(
                f"normalizers cannot be refitted for {method.name}: a part of it is frozen and reads what the old ones "
                "give; use --normalizers keep"
            )

    def check_data(self, data: TrajectoryDataset) -> None:
        """Refuse data with other columns or units, or with longer episodes than the policy knows times of."""
        stored = self.run.description["data"].get("columns") or {}
        widths = self.run.description["widths"]
        for what, width, names in (
            ("observation", data.observation_width, data.observation_names),
            ("action", data.action_width, data.action_names),
        ):
            before = tuple(stored.get(f"{what}s") or ())
            if width != widths[what]:
                raise DataError(f"{self.run.folder} reads {what}s of {widths[what]} numbers, {data.source} has {width}")
            if before and names and before != tuple(names):
                place = next(i for i, pair in enumerate(zip(before, names, strict=True)) if pair[0] != pair[1])
                raise DataError(
                    f"{self.run.folder} reads {what} {place} as {before[place]!r}, {data.source} has {names[place]!r} "
                    "there; the columns must have the same names and order"
                )
        if data.discrete != self.run.task.discrete:
            was, is_now = ("continuous" if d is None else d for d in (self.run.task.discrete, data.discrete))
            raise DataError(f"the actions of {self.run.folder} are {was}, those of {data.source} {is_now}")
        if differing := other_units(self.run, data.units):
            raise DataError(f"{data.source} measures {'; '.join(differing)} as {self.run.folder} does; convert it")
        note_rate(self.run, data.rate, data.source)
        longest = max(data.task.horizon, int(data.lengths.max()))
        if longest > self.horizon:
            raise DataError(
                f"{self.run.folder} knows episodes of up to {self.horizon} steps, and {data.source} (task "
                f"{data.task.name}) has up to {longest}; cut them, or register the task with that horizon"
            )

    # -- what is taken over -------------------------------------------------------------------------------------

    def statistic(self, task: Task, fresh: Statistic, train: TrajectoryDataset) -> Statistic:
        """The other run's, with its bins, where these are kept; else ``fresh``, fitted on the new data."""
        stored = self.run.description.get("statistic")
        if not self.keeps:
            return fresh.fit(train)
        kept = fresh if stored is None else InformationStatistic.from_spec(stored, task)
        _note_beyond_bins(kept, train, self.run.folder)
        return kept

    def normalizers(self, fitted: Normalizers, train: TrajectoryDataset) -> Normalizers:
        """The other run's; the support of z is that of the new data, and so clips nothing that training has shown."""
        kept = self.run.normalizers.to(fitted.state_mean.device)
        _note_far_states(kept, train, self.run.folder)
        wider = {
            name: end(getattr(kept, name), getattr(fitted, name)) for name, end in _ENDS.items() if _has(kept, name)
        }
        return replace(kept, support=fitted.support, **wider)

    def load_into(self, agent: Agent) -> None:
        """Its weights: those of the same seed, or of its only one."""
        seeds = self.run.seeds
        places = [seeds.index(seed) if seed in seeds else 0 for seed in agent.seeds]
        stored = self.run.agent(self.weights).state_dict()
        agent.load_state_dict({name: tensor[places] for name, tensor in stored.items()})


def find_start(
    folder: RunFolder, start: str | Path | None, weights: Weights, scales: Scales | None, *, resume: bool
) -> Start | None:
    """What a training starts from; one that goes on has everything in its own folder and needs the other no more."""
    if scales is not None and scales not in SCALES:
        raise HimatchError(f"normalizers are {' or '.join(SCALES)}, got {scales!r}")
    record = folder.description().get("start") if resume and folder.begun else None
    if resume and folder.saved:
        if record is None:
            if start is not None:
                raise DataError(f"{folder} did not start from another run; leave out --start, or choose another folder")
        elif scales not in (None, record["normalizers"]):
            raise DataError(f"{folder} was started with --normalizers {record['normalizers']}; choose another folder")
        return None if record is None else Start(Run.read(folder.path), "last", record)
    if start is None:
        if record is not None:
            raise DataError(f"{folder} was stopped before anything was saved; name its --start again, {record['run']}")
        if scales is not None:
            raise HimatchError("normalizers says what becomes of another run's; name that run (--start RUN)")
        return None
    return Start.read(start, weights, scales or "keep")


_ENDS = {"state_low": torch.minimum, "state_high": torch.maximum}
"""Ranges of training, where normalizers have them: they grow by what the new data shows."""


def _has(normalizers: Normalizers, name: str) -> bool:
    return getattr(normalizers, name, None) is not None


def _note_beyond_bins(statistic: Statistic, train: TrajectoryDataset, folder: RunFolder) -> None:
    bins, feature = statistic.bins, statistic.matched
    if bins is None or feature is None:
        return
    low, high = np.array(bins.low), np.array(bins.high)
    beyond = sum(int(((phi < low) | (phi > high)).any(axis=1).sum()) for phi in of_each(feature, train))
    if beyond > RARE * train.steps:
        note(
            f"{beyond / train.steps:.0%} of the new data lies outside the bins of {folder} ({feature.name} from "
            f"{', '.join(f'{a:.4g} to {b:.4g}' for a, b in zip(bins.low, bins.high, strict=True))}) and counts in the "
            "end bins; --normalizers refit fits bins to the new data"
        )


def _note_far_states(kept: Normalizers, train: TrajectoryDataset, folder: RunFolder) -> None:
    mean, std = (tensor.cpu().numpy() for tensor in (kept.state_mean, kept.state_std))
    far, still = np.zeros(len(mean), np.int64), np.zeros(len(mean), bool)
    for block in train.blocks(train.packed.observations, _BLOCK):
        far += (np.abs(block - mean) > FAR * std).sum(axis=0)
        still |= np.isinf(std) & (np.abs(block - mean) > 1e-6).any(axis=0)
    names = train.observation_names or tuple(f"obs[{i}]" for i in range(len(mean)))
    if (far > RARE * train.steps).any():
        said = ", ".join(names[i] for i in np.flatnonzero(far > RARE * train.steps))
        note(f"new data of {said} lies far outside what {folder} was trained on; --normalizers refit scales it anew")
    if still.any():
        said = ", ".join(names[i] for i in np.flatnonzero(still))
        note(f"{said} never changed for {folder}, so the policy does not look at it; --normalizers refit mends that")


def _drawn(run: Run, weights: Weights) -> int:
    """Chunks of random windows that these weights have seen: who goes on draws others."""
    before = (run.description.get("start") or {}).get("draws", 0)
    whole = (run.description.get("train") or {}).get("steps", 0)  # where the weights do not say
    steps = [run.folder.weights_step(seed, weights) for seed in run.seeds]
    return int(before) + max(-(-(whole if step is None else step) // CHUNK) for step in steps)


def _digest(run: Run, weights: Weights) -> str:
    """Of the weights of all seeds, names and numbers."""
    digest = hashlib.sha256()
    for seed in run.seeds:
        for name, tensor in sorted(run.folder.weights(seed, weights).items()):
            digest.update(f"{seed}/{name}".encode())
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
