"""Which episodes are trained on and which are kept as targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.data.dataset import TrajectoryDataset
from himatch.data.twins import leaks, listed_pairs, near_leaks
from himatch.data.wording import counted
from himatch.errors import DataError, note

PER_GROUP, A_TENTH = 5, 0.1  # what the paper's split and a random one hold out
COPIES, NEARLY = "copies", "nearly copies (rounded, with noise, or a few steps shorter)"


@dataclass(frozen=True)
class Split:
    """Training and held-out episodes; unpacks as ``train, held_out = split``.

    ``groups`` names the group of every held-out episode ("expert", "medium", a label); ``train_index`` and
    ``held_out_index`` are positions in the dataset that was split.
    """

    train: TrajectoryDataset
    held_out: TrajectoryDataset
    groups: tuple[str, ...]
    train_index: NDArray[np.int64]
    held_out_index: NDArray[np.int64]
    name: str | None = None
    """What :func:`named_split` calls it; none for one of your own."""
    made: bool = False
    """Whether himatch made it, and so has left nearly equal episodes out already."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        counted = (("held_out", "groups"), ("train", "train_index"), ("held_out", "held_out_index"))
        for part, named in counted:
            episodes, others = len(getattr(self, part)), len(getattr(self, named))
            if episodes != others:
                raise DataError(f"a split has {episodes} episodes in {part} but {others} in {named}; name each once")
        trained_on = self.train.holds(self.held_out)
        if trained_on.any():
            raise DataError(
                f"{trained_on.sum()} of {len(trained_on)} held-out episodes are in train too, the first of them "
                f"held_out[{trained_on.argmax()}]; take them out of train"
            )
        if pairs := leaks(self.train, self.held_out):
            raise DataError(_take_out(pairs, COPIES))
        if not self.made and (pairs := near_leaks(self.train, self.held_out)):
            note(_take_out(pairs, NEARLY))

    def __iter__(self) -> Iterator[TrajectoryDataset]:
        yield self.train
        yield self.held_out

    def group(self, name: str) -> TrajectoryDataset:
        """The held-out episodes of one group."""
        return self.held_out[np.array([group == name for group in self.groups], dtype=bool)]


def paper_split(dataset: TrajectoryDataset, per_group: int = PER_GROUP) -> Split:
    """The paper's split: the best five episodes ("expert") and the five around the median ("medium") are held out.

    Episodes are sorted by return, ties by their place in the dataset; medium are ranks n//2 - 2 to n//2 + 2.
    """
    n, before = len(dataset), per_group // 2
    if per_group < 1:
        raise DataError(f"a held-out group needs at least one episode, got {per_group}")
    fewest = 4 * per_group - 2 * before - 1
    if n < fewest:
        raise DataError(
            f"the paper's split holds out {2 * per_group} episodes and needs at least {fewest}, "
            f"{dataset.source} has {n}; split at random or not at all (--split random, --split none)"
        )
    if not dataset.has_rewards:
        raise DataError(
            f"the paper's split sorts by return and {dataset.source} has no rewards; split at random (--split random)"
        )
    ranked = ranked_groups(dataset.returns, per_group)
    held_out = np.concatenate([ranked["best"], ranked["middle"]])
    groups = ("expert",) * per_group + ("medium",) * per_group
    return _split(dataset, held_out, groups, name="paper" if per_group == PER_GROUP else None)


def ranked_groups(values: ArrayLike, size: int = PER_GROUP) -> dict[str, NDArray[np.int64]]:
    """The best, middle and worst ``size`` of all ``values``, as positions from low to high; ties by their place.

    They are apart where there are 3 ``size`` values; of fewer the groups share some.
    """
    order = np.argsort(np.asarray(values), kind="stable")
    middle = max(len(order) // 2 - size // 2, 0)
    return {"best": order[-size:], "middle": order[middle : middle + size], "worst": order[:size]}


def named_split(dataset: TrajectoryDataset, name: str) -> Split:
    """``paper``, ``none``, ``random`` (a tenth) or ``label:A,B`` (all episodes with these labels)."""
    check_split(name)
    kind, _, labels = name.partition(":")
    if kind == "label":
        return label_split(dataset, [label.strip() for label in labels.split(",")])
    made: dict[str, Callable[[TrajectoryDataset], Split]]
    made = {"paper": paper_split, "random": random_split, "none": lambda whole: _split(whole, [], (), name="none")}
    return made[name](dataset)


def check_split(name: str) -> None:
    """Refuse what is no name of a split."""
    if not isinstance(name, str) or not re.fullmatch("paper|random|none|label:.+", name):
        raise DataError(f"split must be paper, random, label:A,B or none, got {name!r}")


def random_split(dataset: TrajectoryDataset, held_out: float = A_TENTH, seed: int = 0) -> Split:
    """Hold out a random part of the episodes, the same for the same seed."""
    count = round(len(dataset) * held_out) if 0 < held_out < 1 else 0
    if not 0 < count < len(dataset):
        raise DataError(f"cannot hold out {held_out:g} of {len(dataset)} episodes; both parts need at least one")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(dataset))[:count])
    return _split(dataset, chosen, ("random",) * count, name="random" if (held_out, seed) == (A_TENTH, 0) else None)


def label_split(dataset: TrajectoryDataset, held_out: str | Iterable[object], per_label: int | None = None) -> Split:
    """Keep all episodes with these labels out of training; the first ``per_label`` of each become targets.

    Labels are text; a number stands for the label that is written like it.
    """
    several = [held_out] if isinstance(held_out, str) else held_out
    wanted, labels = tuple(dict.fromkeys(map(str, several))), dataset.labels
    missing = [label for label in wanted if label not in labels]
    if missing:
        known = ", ".join(sorted({label for label in labels if label is not None})) or "none"
        raise DataError(f"no episode of {dataset.source} is labelled {missing[0]!r}; labels: {known}")
    chosen = [i for label in wanted for i in [j for j, other in enumerate(labels) if other == label][:per_label]]
    train = [i for i, label in enumerate(labels) if label not in wanted]
    if not train:
        raise DataError("every episode carries a held-out label; nothing is left to train on")
    name = f"label:{','.join(wanted)}" if per_label is None else None
    return _split(dataset, chosen, tuple(str(labels[i]) for i in chosen), train, name)


def _split(
    dataset: TrajectoryDataset,
    held_out: ArrayLike,
    groups: tuple[str, ...],
    train: ArrayLike | None = None,
    name: str | None = None,
) -> Split:
    chosen = np.asarray(held_out, dtype=np.int64)
    rest = np.setdiff1d(np.arange(len(dataset)), chosen) if train is None else np.asarray(train, dtype=np.int64)
    rest = _without_copies(dataset, before := rest, chosen, "held-out ones", dataset.episode_name)
    if len(before) and not len(rest):
        named = listed_pairs(
            [(int(before[i]), int(chosen[j])) for i, j in leaks(dataset[before], dataset[chosen])], dataset.episode_name
        )
        raise DataError(f"all training episodes are copies of held-out ones ({named}); nothing is left to train on")
    return Split(dataset[rest], dataset[chosen], groups, rest, chosen, name, made=True)


def set_aside(split: Split, count: int) -> tuple[TrajectoryDataset, TrajectoryDataset]:
    """What is left of the training episodes without ``count`` random ones, which validate, and these."""
    everything, numbers = split.train, split.train_index
    chosen = np.sort(np.random.default_rng(0).permutation(len(everything))[:count])
    rest = np.setdiff1d(np.arange(len(everything)), chosen)

    def name(i: int) -> str:  # as the dataset that was split counts it
        return everything.packed.places.episode(int(everything.packed_episodes[i]), int(numbers[i]))

    rest = _without_copies(everything, rest, chosen, "validation episodes", name)
    return (everything[rest], everything[chosen]) if len(rest) else (everything, everything[:0])


def _without_copies(
    dataset: TrajectoryDataset,
    rest: NDArray[np.int64],
    chosen: NDArray[np.int64],
    called: str,
    name: Callable[[int], str],
) -> NDArray[np.int64]:
    """The ``rest`` without copies of the ``chosen`` episodes; a note says which."""
    for find, kind in ((leaks, COPIES), (near_leaks, NEARLY)):
        pairs = [(int(rest[i]), int(chosen[j])) for i, j in find(dataset[rest], dataset[chosen])]
        if not pairs:
            continue
        named = listed_pairs(pairs, name)
        if len(pairs) < len(rest):
            are = f"{counted(len(pairs), 'episode')} {'is' if len(pairs) == 1 else 'are'}"
            note(f"{dataset.source}: {are} {kind} of {called} and left out of training: the same are {named}")
        elif kind == NEARLY:  # which is no more than suspicious
            note(f"{dataset.source}: all training episodes are {kind} of {called}: the same are {named}")
            continue
        rest = np.setdiff1d(rest, [i for i, _ in pairs])
    return rest


def _take_out(pairs: Sequence[tuple[int, int]], kind: str) -> str:
    """That a split of one's own has such on both sides."""
    are = f"{counted(len(pairs), 'training episode')} {'is' if len(pairs) == 1 else 'are'}"
    i, j = pairs[0]
    return f"{are} {kind} of held-out ones, the first of them train[{i}] of held_out[{j}]; take them out of train"
