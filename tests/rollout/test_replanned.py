"""Plans over logged stretches, and plans that are made again from what is left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_episodes import episode
from untrained import untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning, TargetError
from himatch.methods.conditioner import Conditioner
from himatch.policy import Policy
from himatch.rollout import Plans
from himatch.rollout.conditioners import of_statistic
from himatch.rollout.plans import Mixer
from himatch.rollout.programs import Entries
from himatch.rollout.replanned import Replanned
from himatch.statistics.aggregators import Histogram
from himatch.statistics.features import resolve_feature
from himatch.statistics.information import InformationStatistic
from himatch.targets import Samples, Target

FEATURE = resolve_feature("x_velocity", hm.get_task("hopper"))
STEPS, WAIT = 60, 60.0
BINS = hm.Bins((-0.625,), (4.375,), 20)  # every level lies in the middle of one
LEVELS = (0.0, 1.0, 2.0, 3.0, 4.0)


def levels(*speeds: float) -> hm.EpisodeReference:
    """An episode at each speed, with a little noise."""
    rng = np.random.default_rng(0)
    logged = [hm.Trajectory(x + rng.normal(0, 0.02, (STEPS, 11)), np.zeros((STEPS, 3))) for x in speeds]
    return hm.EpisodeReference.of(logged, FEATURE, BINS, STEPS)


REFERENCE = levels(*LEVELS)
STATISTIC = InformationStatistic(FEATURE, Histogram(20, low=BINS.low, high=BINS.high))
expressions = st.lists(st.integers(0, 16), min_size=1, max_size=3).map(
    lambda speeds: hm.parse_target("+".join(f"normal({x / 4},0.2)" for x in speeds))
)


def planned(target: Target, plans: Plans, rollouts: int = 1) -> Conditioner:
    chosen = torch.zeros((1, rollouts), dtype=torch.int64)
    return of_statistic("planned", STATISTIC, [target], REFERENCE.frame, chosen, REFERENCE, plans)


def rows(conditioner: Conditioner, achieved: Callable[[int], list[float]] | None = None) -> np.ndarray:
    """``(steps, rollouts, bins)``, with what every rollout achieves at a step."""
    found = []
    for step in range(STEPS):
        z = conditioner.z(torch.tensor([[step]]))
        assert z is not None
        found.append(z[0].numpy().copy())
        if achieved is not None:
            conditioner.achieved(np.array(achieved(step), np.float32)[None, :, None])
    return np.array(found)


def speed(z: np.ndarray) -> np.ndarray:
    """The mean of what is conditioned on."""
    means: np.ndarray = z @ REFERENCE.frame.bins.centers[0]
    return means


# -- stretches ------------------------------------------------------------------------------------------------------


@given(expressions, st.sampled_from([5, 10, 20]))
def test_a_plan_of_stretches_is_whole_and_conditions_on_distributions(target: Target, steps: int) -> None:
    program = Mixer(REFERENCE, steps).program(target)
    assert sum(part.steps for part in program) == STEPS
    assert all(part.steps > 0 for part in program)
    z = rows(planned(target, Plans(stretches=steps)))[:, 0]
    assert (z >= 0).all()
    np.testing.assert_allclose(z.sum(1), 1.0, atol=1e-6)
    entries, first = Entries(STATISTIC, REFERENCE), 0
    for part in program:  # a part holds the distribution over its stretch
        values = entries.values(part.entry)
        assert len(values) == steps
        held = REFERENCE.frame.bins.histogram(values)[0]
        np.testing.assert_allclose(z[first : first + part.steps], np.tile(held, (part.steps, 1)), atol=1e-6)
        first += part.steps


def test_stretches_reach_what_no_episode_is() -> None:
    """Episodes that speed up: only a stretch of them is slow, and the plan goes there first."""
    logged = [hm.Trajectory(np.repeat(np.r_[np.zeros(20), np.full(40, x)], 11).reshape(60, 11), np.zeros((60, 3)))
              for x in (2.0, 4.0)]  # fmt: skip
    reference = hm.EpisodeReference.of(logged, FEATURE, BINS, STEPS)
    mixer = Mixer(reference, 10)
    entries = Entries(STATISTIC, reference)
    means = [float(entries.values(part.entry).mean()) for part in mixer.program(hm.parse_target("point(0)"))]
    assert means == [0.0]
    both = mixer.program(hm.parse_target("0.5*point(0)+0.5*point(4)"))
    assert [(float(entries.values(part.entry).mean()), part.steps) for part in both] == [(0.0, 30), (4.0, 30)]


def test_a_target_in_time_has_its_order() -> None:
    both = Samples(np.concatenate([np.full(30, 3.0), np.full(30, 1.0)]))
    for text, order in (("point(3) for 30 then point(1)", (3, 1)), ("point(1) for 30 then point(3)", (1, 3))):
        means = speed(rows(planned(hm.parse_target(text), Plans(stretches=10)))[:, 0])
        np.testing.assert_allclose(means[[5, 45]], order, atol=0.15)
    assert speed(rows(planned(both, Plans(stretches=10)))[:, 0])[0] == pytest.approx(1.0, abs=0.15)  # the slowest first


# -- planning again -------------------------------------------------------------------------------------------------


@given(expressions, st.sampled_from([None, 10]))
def test_planned_again_with_nothing_achieved_is_the_plan(target: Target, stretches: int | None) -> None:
    once = Entries(STATISTIC, REFERENCE).laid_out(Mixer(REFERENCE, stretches).program(target), target)
    again = planned(target, Plans(stretches, replan=7), rollouts=2)
    np.testing.assert_array_equal(rows(again), np.stack([once, once], 1))
    rows(again, lambda _: [4.0, 4.0])
    again.reset()
    np.testing.assert_array_equal(rows(again), np.stack([once, once], 1))


@pytest.mark.parametrize("stretches", [None, 10])
def test_planned_again_follows_what_is_left(stretches: int | None) -> None:
    """One rollout does what its plan says. The other is fast from the start, so it has to be slow in the end."""
    target = hm.parse_target("0.5*point(1)+0.5*point(3)")
    plan = rows(planned(target, Plans(stretches)))[:, 0]
    found = rows(planned(target, Plans(stretches, 10), 2), lambda step: [float(speed(plan)[step]), 3.0])
    np.testing.assert_allclose(speed(found[:, 0]), speed(plan), atol=0.05)
    np.testing.assert_allclose(speed(found[30:, 1]), 1.0, atol=0.1)


def test_what_was_overdone_is_not_done_again() -> None:
    """Too much of 4 already: as if less than nothing of it were left."""
    target = hm.parse_target("0.8*point(1)+0.2*point(4)")
    found = rows(planned(target, Plans(replan=5)), lambda step: [4.0 if step < 30 else 1.0])
    np.testing.assert_allclose(speed(found[15:, 0]), 1.0, atol=0.1)


def test_targets_that_follow_one_another_are_planned_again_each_by_itself() -> None:
    """What the first lacks when its time is over is not made up for."""
    target = hm.parse_target("0.5*point(1)+0.5*point(2) for 30 then point(4)")
    found = speed(rows(planned(target, Plans(replan=5), 1), lambda step: [2.0])[:, 0])
    np.testing.assert_allclose(found[20:30], 1.0, atol=0.1)
    np.testing.assert_allclose(found[30:], 4.0, atol=0.1)


def test_two_features() -> None:
    rng = np.random.default_rng(0)
    feature = resolve_feature("x_velocity,z_velocity", hm.get_task("hopper"))
    logged = [hm.Trajectory(x + rng.normal(0, 0.02, (STEPS, 11)), np.zeros((STEPS, 3))) for x in LEVELS]
    reference = hm.EpisodeReference.of(logged, feature, hm.Bins(BINS.low * 2, BINS.high * 2, 20), STEPS)
    target = hm.parse_target("joint(normal(2,0.1),normal(2,0.1))")
    (part,) = Mixer(reference, 10).program(target)
    assert part.entry.startswith("episode(2)[")


def test_an_episode_that_has_ended_is_not_followed() -> None:
    logged = [hm.Trajectory(np.full((n, 11), x), np.zeros((n, 3))) for n, x in ((20, 0.0), (60, 1.0), (60, 3.0))]
    mixer = Mixer(hm.EpisodeReference.of(logged, FEATURE, BINS, STEPS))
    slow = hm.parse_target("point(0)")
    lacks = mixer.frame.bins.histogram(slow.values(mixer.frame)) * 20
    assert [mixer.entries[entry] for entry, _ in mixer.shared_out(lacks, 20, 40, STEPS)] == ["episode(1)"]
    assert {part.entry for part in mixer.program(slow)} == {"episode(0)", "episode(1)"}


# -- in a controller ------------------------------------------------------------------------------------------------


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    rng = np.random.default_rng(0)
    data = hm.load_dataset([episode(rng, 30, level=i / 5) for i in range(6)], "hopper")
    return untrained(hm.CDT("x_velocity"), data, tmp_path)


@pytest.mark.parametrize("stretches", [None, 5])
def test_a_controller_plans_beside_its_loop(
    stretches: int | None, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning waits until the loop has made its steps; were it in the loop, neither would end."""
    begun, may_end, threads, shared_out = threading.Event(), threading.Event(), set[int](), Mixer.shared_out
    settings = {"conditioning": "planned", "stretches": stretches}
    controller = policy.controller("normal(0.5,0.2)", replan=4, **settings)  # type: ignore[arg-type]
    undisturbed = policy.controller("normal(0.5,0.2)", replan=900, **settings)  # type: ignore[arg-type]

    def slowly(self: Mixer, *given: object) -> list[tuple[int, int]]:
        threads.add(threading.get_ident())
        begun.set()
        assert may_end.wait(WAIT)
        found: list[tuple[int, int]] = shared_out(self, *given)  # type: ignore[arg-type]
        return [((entry + 1) % len(self.entries), steps) for entry, steps in found]  # certainly another plan

    monkeypatch.setattr(Mixer, "shared_out", slowly)
    observations = np.random.default_rng(1).normal(0, 0.3, (40, 11)).astype(np.float32)
    for row in observations[:12]:  # under the old plan still, though a new one is due three times
        np.testing.assert_array_equal(controller.act(row), undisturbed.act(row))
    assert begun.wait(WAIT)
    replanned = controller._player.conditioner
    assert isinstance(replanned, Replanned)
    may_end.set()
    assert replanned._asked is not None
    replanned._asked.result(WAIT)
    differs = [not np.array_equal(controller.act(row), undisturbed.act(row)) for row in observations[12:15]]
    assert any(differs)
    assert threading.get_ident() not in threads


def test_an_answer_that_comes_after_the_episode_is_not_for_the_next(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, shared_out = threading.Event(), Mixer.shared_out

    def slowly(self: Mixer, *given: object) -> list[tuple[int, int]]:
        assert may_end.wait(WAIT)
        return [(entry + 1, steps) for entry, steps in shared_out(self, *given)]  # type: ignore[arg-type]

    controller = policy.controller("normal(0.1,0.2)", conditioning="planned", replan=2)
    fresh = policy.controller("normal(0.1,0.2)", conditioning="planned", replan=900)
    monkeypatch.setattr(Mixer, "shared_out", slowly)
    row = np.zeros(11, np.float32)
    for _ in range(3):
        controller.act(row)
    controller.reset()
    replanned = controller._player.conditioner
    assert isinstance(replanned, Replanned)
    assert replanned._asked is not None
    may_end.set()
    replanned._asked.result(WAIT)
    np.testing.assert_array_equal(controller.act(row), fresh.act(row))


def test_where_planning_fails_the_old_plan_goes_on(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def fails(self: Mixer, *given: object) -> list[tuple[int, int]]:
        assert may_end.wait(WAIT)
        raise HimatchError("no such luck")

    controller = policy.controller("normal(0.1,0.2)", conditioning="planned", replan=2)
    fresh = policy.controller("normal(0.1,0.2)", conditioning="planned", replan=900)
    monkeypatch.setattr(Mixer, "shared_out", fails)
    row, replanned = np.zeros(11, np.float32), controller._player.conditioner
    for _ in range(3):
        np.testing.assert_array_equal(controller.act(row), fresh.act(row))
    assert isinstance(replanned, Replanned)
    assert replanned._asked is not None
    may_end.set()
    assert replanned._asked.exception(WAIT) is not None
    with pytest.warns(HimatchWarning, match="could not be made again, and the one before goes on: no such luck"):
        np.testing.assert_array_equal(controller.act(row), fresh.act(row))


def test_another_target_in_mid_episode_is_planned_again_too(policy: Policy) -> None:
    controller = policy.controller(["normal(0.1,0.2)", "normal(0.3,0.2)"], conditioning="planned", replan=3)
    rows = np.zeros((2, 11), np.float32)
    for step in range(12):
        if step == 5:
            controller.retarget("normal(0.9,0.1) for 40 then normal(0.2,0.1)", robots=[1])
        assert np.isfinite(controller.act(rows)).all()
    controller.reset(robots=[0])
    assert controller.act(rows).shape == (2, 3)


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stretches": 0}, "stretches is a number of steps, 1 or more, got 0"),
        ({"replan": -1}, "replan is a number of steps, 1 or more, got -1"),
        ({"replan": 1.5}, "replan must be a whole number"),
        ({"stretches": 5, "conditioning": "nominal"}, "stretches is for planned conditioning, not for nominal"),
        ({"replan": 5, "conditioning": "rehearsed"}, "replan is for planned conditioning, not for rehearsed"),
        ({"stretches": 500}, "there are no stretches of 500 steps: the longest training episode has 30"),
    ],
)
def test_bad_plans(settings: dict[str, object], message: str, policy: Policy) -> None:
    given = {"conditioning": "planned", **settings}
    with pytest.raises(HimatchError, match=message):
        policy.controller("normal(0.1,0.2)", **given)  # type: ignore[arg-type]
    with pytest.raises(HimatchError, match=message):
        policy.match("normal(0.1,0.2)", episodes=1, **given)  # type: ignore[arg-type]


def test_counts_have_no_stretches(tmp_path: Path) -> None:
    counting = untrained(hm.CDT("x_velocity", z="counts"), hm.load_dataset(_logged(), "hopper"), tmp_path / "counts")
    with pytest.raises(TargetError, match="this policy is conditioned on counts"):
        counting.controller("normal(0.1,0.2)", conditioning="planned", stretches=5)


def _logged() -> list[hm.Trajectory]:
    rng = np.random.default_rng(0)
    return [episode(rng, 30, level=i / 5) for i in range(3)]
