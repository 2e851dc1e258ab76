"""Way-points: a small maze in NumPy, in which no episode goes all the way, and goals that take two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from three_rooms import FOOT, LEFT, OTHER, SPEED, corridors, moved, walk
from untrained import untrained

import himatch as hm
from himatch.errors import HimatchWarning, TargetError
from himatch.policy import Policy
from himatch.rollout.waypoints import AHEAD, GAP, Landmarks, Way, landmarks_of
from himatch.targets import EpisodeReference


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return corridors()


@pytest.fixture(scope="module")
def reference(data: hm.TrajectoryDataset) -> EpisodeReference:
    return EpisodeReference.of(data, "xy")


def played(policy: Policy, starts: np.ndarray, goal: tuple[float, float], conditioning: Any) -> np.ndarray:
    """Which of several robots were at the goal, in a loop of one's own."""
    targets = [f"goal({goal[0]}, {goal[1]})"] * len(starts)
    controller = policy.controller(targets, conditioning=conditioning, limits="off")
    places, there = starts.astype(np.float32), np.zeros(len(starts), bool)
    for _ in range(150):
        places = moved(places, controller.act(places)).astype(np.float32)
        there |= np.linalg.norm(places - goal, axis=1) < 1.0
    return there


def test_it_stitches_what_a_flat_policy_cannot(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = hm.train(
        hm.GCSL("xy"), data, out=tmp_path / "run", preset="cpu", steps=700, width=64, quiet=True, temperature=0.0
    )
    starts = np.array(FOOT) + np.random.default_rng(5).uniform(-0.7, 0.7, (8, 2))
    assert played(policy, starts, OTHER, "waypoints").mean() > 0.9
    assert played(policy, starts, OTHER, "nominal").mean() < 0.3


def test_a_transformer_is_given_them_without_the_steps(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.GoalDT("xy"), data, tmp_path)
    controller = policy.controller("goal(9, 1)", conditioning="waypoints")
    controller.act(np.array(FOOT))
    landmarks = landmarks_of(policy.run.reference())
    way = Way.to(np.array(OTHER, np.float32), landmarks)
    (here,) = landmarks.nearest(np.array([FOOT], np.float32))
    assert controller._player.latest_z is not None
    np.testing.assert_array_equal(controller._player.latest_z[0, 0], way.places[way.point[here]])


def test_landmarks_cover_the_data_and_edges_are_steps_of_it(reference: EpisodeReference) -> None:
    landmarks = Landmarks(reference)
    values = reference.values / reference.spread
    gaps = np.linalg.norm(values[:, None] - landmarks.values[None], axis=2).min(axis=1)
    apart = np.linalg.norm(landmarks.values[:, None] - landmarks.values[None], axis=2)
    radius = apart[apart > 0].min()
    assert gaps.max() <= radius
    assert 20 < len(landmarks.values) < 400
    graph = landmarks.graph.tocoo()
    assert (graph.data >= 1).all()
    assert (graph.data <= GAP).all()
    moved_by = np.linalg.norm((landmarks.values[graph.row] - landmarks.values[graph.col]) * reference.spread, axis=1)
    reach = SPEED * np.sqrt(2) * graph.data + 2 * radius * reference.spread.max()
    assert (moved_by <= reach).all()


def test_ways_lead_to_the_goal_and_shorten(reference: EpisodeReference) -> None:
    landmarks = Landmarks(reference)
    way = Way.to(np.array(OTHER, np.float32), landmarks)
    (start,) = landmarks.nearest(np.array([FOOT], np.float32))
    (last,) = landmarks.nearest(np.array([OTHER], np.float32))
    assert np.isfinite(way.left).all()
    assert way.left[last] == 0
    assert 100 < way.left[start] < 220  # 24 apart, at 0.2 a step and at most 0.28
    at, hops = int(start), 0
    while at != last:
        after = int(way.point[at])
        assert way.left[after] < way.left[at]
        assert way.steps[at] == round(max(1.0, way.left[at] - way.left[after]))
        assert way.steps[at] <= AHEAD or landmarks.graph[at, after] > 0
        at, hops = after, hops + 1
    assert hops >= way.left[start] / max(AHEAD, GAP)
    np.testing.assert_array_equal(way.places[last], np.array(OTHER, np.float32))


def test_a_goal_that_nothing_leads_to_is_noted(tmp_path: Path) -> None:
    """Nobody ever comes to a place where a few episodes of one step are."""
    rng = np.random.default_rng(0)
    episodes = [walk(rng, [FOOT, LEFT], 40) for _ in range(5)]
    places = rng.uniform(8.9, 9.1, (40, 1, 2))
    alone = [hm.Trajectory(place, np.zeros((1, 2)), None, place[0]) for place in places]
    policy = untrained(hm.GCSL("xy"), hm.load_dataset([*episodes, *alone], "three-rooms"), tmp_path)
    with pytest.warns(HimatchWarning, match=r"no training episode leads to goal\(9, 9\)"):
        controller = policy.controller("goal(9, 9)", conditioning="waypoints", limits="off")
    assert controller.act(np.array(FOOT)).shape == (2,)


def test_robots_have_ways_of_their_own_and_change_them(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.GCSL("xy"), data, tmp_path)
    texts = ["goal(9, 1)", "goal(1, 1)"]
    rows = np.array([FOOT, (5.0, 9.0)], np.float32)
    both = policy.controller(texts, conditioning="waypoints")
    alone = [policy.controller(text, conditioning="waypoints") for text in texts]
    for step in range(6):
        if step == 3:
            both.retarget(both.prepare(["goal(1, 9)"], robots=[1]))
            alone[1].retarget("goal(1, 9)")
        if step == 5:
            both.reset([0])
            alone[0].reset()
        actions = both.act(rows)
        for robot, one in enumerate(alone):
            np.testing.assert_allclose(actions[robot], one.act(rows[robot]), atol=2e-6)
            np.testing.assert_array_equal(both._player.latest_z[0, robot], one._player.latest_z[0, 0])
    left = [both._player.latest_z[0, robot, -1] * 150 for robot in (0, 1)]
    assert 1 <= min(left) <= max(left) <= max(AHEAD, GAP)


def test_steps_left_count_down_until_the_next(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    controller = untrained(hm.GCSL("xy"), data, tmp_path).controller("goal(9, 1)", conditioning="waypoints")
    seen = []
    for _ in range(GAP + 5):  # stays where it is
        controller.act(np.array(FOOT))
        seen.append(round(float(controller._player.latest_z[0, 0, -1]) * 150, 3))
    first = int(seen[0])
    assert seen[:first] == list(range(first, 0, -1))
    assert seen[first] == first  # overdue: once more from here


@pytest.mark.parametrize("method", [hm.DT(), hm.BC(), hm.CDT("obs[0]")], ids=lambda m: m.name)
def test_methods_without_goals_are_refused(method: Any, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    if method.name == "dt":
        data = hm.load_dataset([hm.Trajectory(e.observations, e.actions, np.ones(len(e))) for e in data[:6]])
    policy = untrained(method, data, tmp_path)
    with pytest.raises(TargetError, match=r"^waypoints conditioning is for"):
        policy.controller("goal(1)", conditioning="waypoints")


def test_nobody_is_where_an_action_is(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    controller = untrained(hm.GCSL("act[0]"), data, tmp_path).controller("goal(0.5)", conditioning="waypoints")
    with pytest.raises(TargetError, match=r"depends on actions"):
        controller.act(np.array(FOOT))
