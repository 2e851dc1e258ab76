"""The targets of each suite, from its split and task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from himatch.benchmark.suites import HELD_OUT_VELOCITIES, SYNTHETIC, Suite
from himatch.data import Split, TrajectoryDataset, label_split, paper_split
from himatch.errors import HimatchError
from himatch.matching.evaluation import SHIFTS
from himatch.targets import Demonstration, Patched, Shifted, Synthetic, Target, parse_target
from himatch.types import Trajectory

SHUFFLE_SEED = 0
PER_VELOCITY = 10
UNIMODAL, PATCHWORKS = 5, 10


@dataclass(frozen=True)
class Asked:
    """A target with its place in a table."""

    target: Target
    group: str
    shift: float | None = None
    ordering: str | None = None


def split_dataset(dataset: TrajectoryDataset, kind: str) -> Split:
    """What is trained on and what is held out."""
    if kind == "paper":
        return paper_split(dataset)
    if kind == "velocities":
        return label_split(dataset, HELD_OUT_VELOCITIES, PER_VELOCITY)
    import numpy as np

    return Split(dataset, dataset[:0], (), np.arange(len(dataset)), np.arange(0))


def suite_targets(suite: Suite, task: str, split: Split, additional: Callable[[], TrajectoryDataset]) -> list[Asked]:
    """All targets of a suite; ``additional`` makes episodes beside the dataset, where a suite needs some."""
    if suite.targets == "synthetic":
        return _synthetic(task)
    if suite.targets == "patchwork":
        return _patchwork(additional())
    held_out = [Asked(_demo(episode, group, i), group) for i, (episode, group) in enumerate(_held_out(split))]
    if suite.targets == "shift":
        return [replace(a, target=Shifted(a.target, s), shift=float(s)) for a in held_out for s in SHIFTS]
    return held_out


def _held_out(split: Split) -> list[tuple[Trajectory, str]]:
    return list(zip(split.held_out, split.groups, strict=True))


def _demo(episode: Trajectory, group: str, number: int) -> Demonstration:
    return Demonstration(episode, f"{group} {number + 1}")


def _synthetic(task: str) -> list[Asked]:
    if task not in SYNTHETIC:
        raise HimatchError(f"the paper has no synthetic targets for {task}; it has some for {', '.join(SYNTHETIC)}")
    listed = [parse_target(text) for text in SYNTHETIC[task]]
    asked = [Asked(target, "synthetic", ordering="listed") for target in listed]
    for target in listed:
        assert isinstance(target, Synthetic)
        shuffled = replace(target, shuffled=True, seed=SHUFFLE_SEED)
        asked.append(Asked(shuffled, "synthetic (shuffled)", ordering="shuffled"))
    return asked


def _patchwork(extra: TrajectoryDataset) -> list[Asked]:
    """Ten additional episodes of each behaviour: five of each alone, and ten that switch half-way."""
    run = [Demonstration(e, f"run {i + 1}") for i, e in enumerate(extra.filter(lambda e: e.label == "run"))]
    flip = [Demonstration(e, f"backflip {i + 1}") for i, e in enumerate(extra.filter(lambda e: e.label == "backflip"))]
    alone = [Asked(target, "uni-modal") for target in (*run[:UNIMODAL], *flip[:UNIMODAL])]
    pairs = zip(run[:PATCHWORKS], flip[:PATCHWORKS], strict=True)
    return alone + [Asked(Patched(first, second, 500), "bi-modal") for first, second in pairs]
