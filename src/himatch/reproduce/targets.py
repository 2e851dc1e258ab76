"""The targets of each suite, from its split and task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from himatch.data import Split, TrajectoryDataset, label_split, load_dataset, named_split
from himatch.datagen.cache import cached_dataset
from himatch.errors import HimatchError
from himatch.evaluation.evaluation import SHIFTS
from himatch.reproduce.jobs import Job, Options
from himatch.reproduce.suite import Suite
from himatch.reproduce.suites import HELD_OUT_VELOCITIES, SYNTHETIC
from himatch.reproduce.unseen import drawn
from himatch.statistics.features import of_each, resolve_feature
from himatch.targets import Demonstration, Goal, Return, Shifted, Synthetic, Target, parse_target
from himatch.tasks import get_task
from himatch.types import Trajectory, concatenate

SHUFFLE_SEED = 0
PER_VELOCITY = 10
ADDITIONAL = 5  # episodes of each behaviour that zvel's targets are made of
ADDITIONAL_SEED = 1_000_003  # of episodes beside the dataset
BEHAVIOURS = ("run", "backflip")
UNSEEN_OF_A_KIND = 3
GOALS_WITHIN = (50, 200)  # steps


@dataclass(frozen=True)
class SuiteTarget:
    """A target with its place in a table."""

    target: Target
    group: str
    shift: float | None = None
    ordering: str | None = None
    moved_from: Target | None = None
    """What it was before it was moved: its episode and that episode's return are the same."""
    expert: float | None = None
    """The return that rollouts' are held against, where the target is no episode."""

    @property
    def held_against(self) -> float | None:
        """The return that rollouts' are held against: that of the target's episode, or the expert's."""
        episode = (self.moved_from or self.target).demonstration()
        return self.expert if episode is None or episode.rewards is None else episode.total_reward


def additional_episodes(job: Job, options: Options) -> TrajectoryDataset:
    """Episodes beside those of a job's dataset."""
    extra = cached_dataset(
        job.dataset, options.cache, episodes=2 * ADDITIONAL, seed=ADDITIONAL_SEED, threads=options.threads, quiet=True
    )
    return load_dataset(extra)


def split_dataset(dataset: TrajectoryDataset, kind: str) -> Split:
    """What is trained on and what is held out."""
    if kind == "velocities":
        return label_split(dataset, HELD_OUT_VELOCITIES, PER_VELOCITY)
    return named_split(dataset, "none" if kind == "all" else kind)


def suite_targets(
    suite: Suite, task: str, split: Split, seed: int, additional: Callable[[], TrajectoryDataset]
) -> list[SuiteTarget]:
    """All targets of a suite: some are drawn from a ``seed``, some are episodes beside the dataset, ``additional``."""
    if suite.targets == "synthetic":
        return _synthetic(task)
    if suite.targets == "patchwork":
        return _patchwork(additional())
    if suite.targets == "unseen":
        return _unseen(task, suite.features[0], split, seed)
    if suite.targets == "best":
        return _best(split)
    if suite.targets == "goals":
        return _goals(task, suite.features[0], split)
    pairs = enumerate(zip(split.held_out, split.groups, strict=True))
    held_out = [SuiteTarget(Demonstration.held_out(episode, group, i), group) for i, (episode, group) in pairs]
    if suite.targets == "shift":
        return [
            replace(a, target=Shifted(a.target, s), shift=float(s), moved_from=a.target)
            for a in held_out
            for s in SHIFTS
        ]
    return held_out


def _synthetic(task: str) -> list[SuiteTarget]:
    if task not in SYNTHETIC:
        raise HimatchError(f"the paper has no synthetic targets for {task}; it has some for {', '.join(SYNTHETIC)}")
    listed = [parse_target(text) for text in SYNTHETIC[task]]
    targets = [SuiteTarget(target, "synthetic", ordering="listed") for target in listed]
    for target in listed:
        assert isinstance(target, Synthetic)
        shuffled = replace(target, shuffled=True, seed=SHUFFLE_SEED)
        targets.append(SuiteTarget(shuffled, "synthetic (shuffled)", ordering="shuffled"))
    return targets


def _unseen(task: str, feature: str, split: Split, seed: int) -> list[SuiteTarget]:
    known = get_task(task)
    values = np.concatenate(list(of_each(resolve_feature(feature, known), split.train)))
    return [SuiteTarget(parse_target(text), kind) for kind, text in drawn(values, known, UNSEEN_OF_A_KIND, seed)]


def _best(split: Split) -> list[SuiteTarget]:
    """Returns that training episodes show can be earned; the better half of a medium-expert set are its expert's."""
    ranked = np.sort(split.train.returns)[::-1].astype(np.float64)
    expert = float(ranked[: -(-len(ranked) // 2)].mean())
    asked = {"best": ranked[0], "best tenth": ranked[: -(-len(ranked) // 10)].mean(), "expert": expert}
    return [SuiteTarget(Return((float(f"{total:.6g}"),)), name, expert=expert) for name, total in asked.items()]


def _goals(task: str, feature: str, split: Split) -> list[SuiteTarget]:
    """Where held-out episodes are after so many steps, to be reached in as many."""
    phi = resolve_feature(feature, get_task(task))
    return [
        SuiteTarget(Goal(tuple(float(f"{x:.6g}") for x in phi(episode)[steps - 1]), within=steps), group)
        for episode, group in zip(split.held_out, split.groups, strict=True)
        for steps in GOALS_WITHIN
        if steps <= len(episode)
    ]


def _patchwork(extra: TrajectoryDataset) -> list[SuiteTarget]:
    """Five additional episodes of each behaviour, and their halves joined, each once: ten that run and then flip."""
    run, flip = ([episode for episode in extra if episode.label == label][:ADDITIONAL] for label in BEHAVIOURS)
    alone = [
        SuiteTarget(Demonstration(episode, f"{episode.label} {number}"), "uni-modal")
        for behaviour in (run, flip)
        for number, episode in enumerate(behaviour, 1)
    ]
    halves = {"first": (_early, _late), "second": (_late, _early)}
    joined = [
        SuiteTarget(Demonstration(concatenate(one(first), other(second)), f"{which} half of run {number}"), "bi-modal")
        for which, (one, other) in halves.items()
        for number, (first, second) in enumerate(zip(run, flip, strict=True), 1)
    ]
    return alone + joined


def _early(episode: Trajectory) -> Trajectory:
    return episode[: len(episode) // 2]


def _late(episode: Trajectory) -> Trajectory:
    return episode[len(episode) // 2 :]
