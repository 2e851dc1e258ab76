"""What is trained on in a round: all of the logged episodes, and the newest of the policy's own rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from himatch.data import Split, TrajectoryDataset, load_dataset
from himatch.data.packed import concatenate_packed
from himatch.errors import DataError, HimatchError, note
from himatch.runs.run import Run


def logged_split(run: Run, data: TrajectoryDataset | Split | str | Path | None) -> Split:
    """The logged episodes that a run was trained on, with the same ones held out; other data is refused."""
    if isinstance(data, Split):
        split = data
    else:
        split = _split_as_stored(run, data if isinstance(data, TrajectoryDataset) else _read(run, data))
    stored = run.description["data"]
    if split.train.content_hash == stored["hash"]:
        return split
    same_size = (len(split.train), split.train.steps) == (stored.get("episodes"), stored.get("steps"))
    found = f"{split.train.source} is not what {run.folder} was trained on (sha256 {stored['hash'][:12]}, here "
    found += f"{split.train.content_hash[:12]})"
    if not same_size:
        raise DataError(f"{found}; give the same source (--data SOURCE)")
    note(f"{found}, but of the same size: the same recipe on another machine, perhaps; training goes on with it")
    return split


def _read(run: Run, source: str | Path | None) -> TrajectoryDataset:
    known = run.folder.logs or run.description["data"].get("source")
    try:
        return load_dataset(known if source is None else source, run.task)
    except HimatchError as reason:
        if source is not None:
            raise
        raise DataError(
            f"the logs that {run.folder} was trained on are needed, too; say where they are (--data SOURCE): {reason}"
        ) from None


def _split_as_stored(run: Run, dataset: TrajectoryDataset) -> Split:
    stored = run.description["split"]
    train, held_out = (np.array(stored.get(name, []), dtype=np.int64) for name in ("train", "held_out"))
    if not len(train):
        raise DataError(f"{run.folder} does not say which episodes it was trained on; train it with this himatch")
    if max(train.max(), held_out.max(initial=0)) >= len(dataset):
        raise DataError(
            f"{dataset.source} has {len(dataset)} episodes, {run.folder} was trained on more; give the same source "
            "(--data SOURCE)"
        )
    groups = tuple(stored["groups"])
    return Split(dataset[train], dataset[held_out], groups, train, held_out, stored.get("name"), made=True)


def with_rollouts(split: Split, rollouts: Sequence[TrajectoryDataset], most: int) -> Split:
    """The split with the newest ``most`` episodes of the rollouts, the latest ones last, in its training part.

    They have no labels: for methods of tasks every rollout is a task of its own, whatever it was commanded to do.
    """
    newest: list[TrajectoryDataset] = []
    for dataset in reversed(rollouts):
        room = most - sum(map(len, newest))
        if room > 0:
            newest.insert(0, dataset[max(0, len(dataset) - room) :])
    if not newest:
        return split
    train = split.train
    packed, numbers, count = [train.packed], [train.packed_episodes], len(train.packed.lengths)
    for dataset in newest:
        own = replace(dataset.packed, labels=(None,) * len(dataset.packed.lengths))
        packed.append(own if train.has_rewards else replace(own, rewards=None))
        numbers.append(count + dataset.packed_episodes)
        count += len(own.lengths)
    new = sum(map(len, newest))
    everything = TrajectoryDataset(
        concatenate_packed(packed),
        train.task,
        source=f"{train.source}+{new} rollouts",
        env_id=train.env_id,
        episodes=np.concatenate(numbers),
    )
    after = max(split.train_index.max(initial=-1), split.held_out_index.max(initial=-1)) + 1
    index = np.concatenate([split.train_index, after + np.arange(new)])
    return Split(everything, split.held_out, split.groups, index, split.held_out_index, None, made=True)
