"""Targets that no episode shows: where they lie, and that a seed gives the same ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import himatch as hm
from himatch.reproduce.suites import SUITES
from himatch.reproduce.targets import suite_targets
from himatch.reproduce.unseen import APART, KINDS, LEAST, PARTS, REPORTED_SEED, drawn
from himatch.statistics.features import Coordinates
from himatch.targets import Frame
from himatch.tasks import get_task

TASK = get_task("hopper")
RNG = np.random.default_rng(0)
VALUES = np.concatenate([RNG.normal(1, 0.2, 5000), RNG.normal(4, 0.2, 5000)]).astype(np.float32)[:, None]
LOW, HIGH = np.quantile(VALUES, (0.02, 0.98))
WIDTH = HIGH - LOW


@pytest.fixture(scope="module")
def targets() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, text in drawn(VALUES, TASK, 40, 5):
        found[kind].append(text)
    return found


def frame() -> Frame:
    return Frame(Coordinates("x_velocity", (5,)), hm.Bins((0.0,), (5.0,)), TASK.horizon)


def test_a_seed_gives_the_same_targets_and_more_begin_with_these(targets: dict[str, list[str]]) -> None:
    again = drawn(VALUES, TASK, 3, 5)
    assert [kind for kind, _ in again] == [kind for kind in KINDS for _ in range(3)]
    assert [text for _, text in again] == [text for some in targets.values() for text in some[:3]]
    others = [drawn(VALUES, TASK, 3, seed) for seed in (0, 1, REPORTED_SEED)]
    others.append(drawn(VALUES, get_task("walker2d"), 3, 5))
    assert all(not set(other) & set(again) for other in others)


def test_targets_lie_in_the_range_of_the_data(targets: dict[str, list[str]]) -> None:
    for kind, texts in targets.items():
        assert len(set(texts)) > 30
        for text in texts:
            values = hm.parse_target(text).values(frame())
            assert len(values) == TASK.horizon
            assert LOW - 0.15 * WIDTH < np.median(values) < HIGH + 0.15 * WIDTH, (kind, text)


def test_narrow_gaussians_lie_between_behaviours(targets: dict[str, list[str]]) -> None:
    means = [float(text[len("normal(") :].split(",")[0]) for text in targets["narrow"]]
    assert all(np.mean(np.abs(VALUES - mean) < 0.08 * WIDTH) < 0.16 for mean in means)
    assert np.ptp(means) > 0.4 * WIDTH


def test_modes_are_three_and_apart_and_orders_are_in_time(targets: dict[str, list[str]]) -> None:
    for kind in ("three modes", "in order"):
        for text in targets[kind]:
            means = [float(part.split(",")[0]) for part in text.split("normal(")[1:]]
            assert np.diff(np.sort(means)).min() > (APART - 0.01) * WIDTH
            assert len(means) == 3 or (kind, len(means)) == ("in order", 2)
    for text in targets["in order"]:
        parts = hm.parse_target(text).stretches(frame())
        lengths = [len(part.values(frame())) for part in parts]
        assert sum(lengths) == TASK.horizon
        assert min(lengths) >= LEAST * TASK.horizon // PARTS


def test_the_suite_draws_three_of_each_kind_from_the_training_episodes() -> None:
    def episode(speed: float) -> hm.Trajectory:
        observations = np.zeros((50, 11), np.float32)
        observations[:, 5] = np.linspace(0, speed, 50)
        return hm.Trajectory(observations, np.zeros((50, 3), np.float32), np.zeros(50, np.float32))

    data = hm.load_dataset([episode(2.0), episode(1.0), episode(90.0)], "hopper")
    split = hm.Split(data[:2], data[2:], ("expert",), np.array([0, 1]), np.array([2]))
    found = suite_targets(SUITES["unseen"], "hopper", split, 1, lambda: pytest.fail("nobody asked"))
    assert Counter(place.group for place in found) == dict.fromkeys(KINDS, 3)
    values = np.concatenate([episode.observations[:, [5]] for episode in split.train])
    assert [place.target.name for place in found] == [
        hm.parse_target(text).name for _, text in drawn(values, TASK, 3, 1)
    ]
