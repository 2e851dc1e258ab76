"""Has a feature become another since training? A run keeps what its features were on a stretch of an episode.

Features that are functions are stored by name only, so a run would be conditioned on whatever has that name now.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from himatch.data import TrajectoryDataset
from himatch.errors import DataError
from himatch.runs.folder import RunFolder
from himatch.statistics.features import resolve_feature
from himatch.tasks import Task
from himatch.types import Array, Trajectory

STEPS = 64
TOLERANCE = 1e-5  # relative: machines round differently
SMALLEST = 1e-6  # of the largest value: what is near zero may be the rest of a difference
_VALUES = "values/"


def write_fingerprint(folder: RunFolder, train: TrajectoryDataset, features: Iterable[str]) -> None:
    """Keep the first steps of a training episode and the values of these features on them."""
    episode = train[0]
    rewards = None if episode.rewards is None else episode.rewards[:STEPS].copy()
    stretch = Trajectory(episode.observations[:STEPS].copy(), episode.actions[:STEPS].copy(), rewards)
    arrays = {"observations": stretch.observations, "actions": stretch.actions}
    if rewards is not None:
        arrays["rewards"] = rewards
    for name in dict.fromkeys(part.strip() for joined in features for part in joined.split(",")):
        try:
            arrays[_VALUES + name] = resolve_feature(name, train.task)(stretch)
        except DataError:  # it needs whole episodes; this one is not watched
            continue
    folder.write_fingerprint({name: torch.from_numpy(np.array(a)) for name, a in arrays.items()})


def check_fingerprint(folder: RunFolder, task: Task) -> None:
    """Refuse a run of which a feature has changed: its name, the first step that differs and both values."""
    stored = folder.fingerprint()
    if stored is None:
        return
    arrays = {name: tensor.numpy() for name, tensor in stored.items()}
    stretch = Trajectory(arrays["observations"], arrays["actions"], arrays.get("rewards"))
    for key, before in arrays.items():
        if key.startswith(_VALUES):
            name = key.removeprefix(_VALUES)
            try:
                now = resolve_feature(name, task)(stretch)
            except DataError as reason:
                raise _changed(folder, name, str(reason)) from reason
            _compare(folder, name, before, now)


def _compare(folder: RunFolder, name: str, before: Array, now: Array) -> None:
    if before.shape != now.shape:
        raise _changed(folder, name, f"it was {before.shape[1]} numbers a step, now it is {now.shape[1]}")
    slack = SMALLEST * float(np.abs(before).max(initial=0.0))
    differing = np.argwhere(~np.isclose(now, before, rtol=TOLERANCE, atol=slack))
    if len(differing):
        step, column = differing[0]
        was, is_now = before[step, column], now[step, column]
        raise _changed(folder, name, f"at step {step} of a stored stretch it was {was:g}, now it is {is_now:g}")


def _changed(folder: RunFolder, name: str, how: str) -> DataError:
    return DataError(
        f"{folder} was trained with another feature {name!r} ({how}); register the task with the function that it was "
        "trained with, or train again"
    )
