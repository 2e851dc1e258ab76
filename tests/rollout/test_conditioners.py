"""Conditioners: nominal and remaining against definitions written out in NumPy, and demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import himatch as hm
from himatch.errors import TargetError
from himatch.methods import Method
from himatch.methods.batch import Dims
from himatch.methods.codes import CODES, CodesName
from himatch.methods.conditioner import Conditioner
from himatch.methods.normalizers import Normalizers
from himatch.networks.transformer import ModelConfig
from himatch.rollout import Conditioning, make_conditioner
from himatch.runs.folder import RunFolder
from himatch.runs.run import Run
from himatch.statistics.aggregators import (
    BestTask,
    DiscountedSum,
    FinalValue,
    Histogram,
    Moments,
    TimedSum,
    TimedValue,
)
from himatch.statistics.features import resolve_feature
from himatch.statistics.information import InformationStatistic, Statistic
from himatch.targets import Frame, Samples, Target

FEATURE = resolve_feature("x_velocity", hm.get_task("hopper"))
BINS = hm.Bins((-2.0,), (3.0,), 5)
AGGREGATORS = {
    "histogram": Histogram(5, low=(-2.0,), high=(3.0,)),
    "sum": DiscountedSum(scale=10.0),
    "mean": Moments(1, center=(0.7,)),
    "moments": Moments(4, center=(0.7,)),
    "goal": FinalValue(),
    "goal in time": TimedValue(scale=10.0),
    "sum in time": TimedSum(scale=10.0),
    "best task": BestTask(),
}
ADDITIVE = ("histogram", "sum", "sum in time", "mean", "moments")
every = pytest.mark.parametrize("name", AGGREGATORS)
additive = pytest.mark.parametrize("name", ADDITIVE)
values = st.integers(1, 12).flatmap(
    lambda steps: arrays(np.float32, (steps, 1), elements=st.integers(-12, 16).map(lambda i: i / 4))
)


class Rows(Target):
    """These values, whatever the horizon."""

    name = "rows"

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def values(self, frame: Frame) -> np.ndarray:
        return self.rows


def clock(step: int) -> torch.Tensor:
    """All rollouts are at this step."""
    return torch.tensor([[step]])


def made(
    conditioning: Conditioning,
    method: Method,
    targets: Sequence[Target],
    target_of: np.ndarray,
    statistic: Statistic | None = None,
    frame: Frame | None = None,
) -> Conditioner:
    """The conditioner of a policy that nobody trained, as rollouts make it."""
    hopper, one = hm.get_task("hopper"), torch.ones(())
    known = method.statistic(hopper) if statistic is None else statistic
    agent = method.build(ModelConfig(context=5, width=8, layers=1), Dims(11, 3, 2, 1000), (0,))
    normalizers = Normalizers(0 * one, one, 0 * one, one, reward_std=one)
    run = Run(RunFolder("nowhere"), {}, hopper, known, normalizers)
    if frame is not None:
        run.add_reference(hm.EpisodeReference.empty(frame))
    return make_conditioner(conditioning, run, agent, targets, target_of)


def conditioner_of(
    conditioning: Conditioning, name: str, targets: list[np.ndarray], target_of: np.ndarray | None = None
) -> Conditioner:
    chosen = np.zeros((1, 1), np.int64) if target_of is None else target_of
    statistic, frame = InformationStatistic(FEATURE, AGGREGATORS[name]), Frame(FEATURE, BINS, 1000)
    return made(conditioning, hm.CDT("x_velocity"), [Rows(target) for target in targets], chosen, statistic, frame)


def z_of(conditioner: Conditioner, steps: int, achieved: np.ndarray | None = None) -> np.ndarray:
    """Rows ``(steps, K, B, k)``, with what each step achieved ``(steps, d)`` or ``(steps, K, B, d)`` reported."""
    rows = []
    for step in range(steps):
        z = conditioner.z(clock(step))
        assert z is not None
        rows.append(z.numpy().copy())
        if achieved is not None:
            phi = np.broadcast_to(achieved[step], (*rows[-1].shape[:2], achieved.shape[-1]))
            conditioner.achieved(phi)
    return np.array(rows)


# -- nominal ----------------------------------------------------------------------------------------------------


@every
@given(target=values)
def test_nominal_is_the_targets_own_statistic_and_holds_its_last_row(name: str, target: np.ndarray) -> None:
    rows = z_of(conditioner_of("nominal", name, [target]), len(target) + 4)[:, 0, 0]
    expected = AGGREGATORS[name](target)
    np.testing.assert_array_equal(rows[: len(target)], expected)
    np.testing.assert_array_equal(rows[len(target) :], np.repeat(expected[-1:], 4, axis=0))


@every
def test_targets_of_different_lengths_side_by_side(name: str) -> None:
    rng = np.random.default_rng(0)
    targets = [rng.normal(size=(steps, 1)).astype(np.float32) for steps in (3, 8, 5)]
    target_of = np.array([[0, 1, 2, 1], [2, 2, 0, 1]])
    conditionings: tuple[Conditioning, ...] = ("nominal", "remaining")
    for conditioning in conditionings[: 2 if name in ADDITIVE else 1]:
        achieved = rng.normal(size=(10, 2, 4, 1)).astype(np.float32) if conditioning == "remaining" else None
        together = z_of(conditioner_of(conditioning, name, targets, target_of), 10, achieved)
        for place in np.ndindex(2, 4):
            own = None if achieved is None else achieved[:, place[0], place[1]]
            alone = z_of(conditioner_of(conditioning, name, [targets[target_of[place]]]), 10, own)
            np.testing.assert_array_equal(together[:, place[0], place[1]], alone[:, 0, 0])


# -- remaining -----------------------------------------------------------------------------------------------------


def remaining(name: str, target: np.ndarray, achieved: np.ndarray) -> np.ndarray:
    """The statistic of what remains of a target after some steps, by definition, ``(k,)``."""
    aggregator = AGGREGATORS[name]
    steps = len(target)
    if isinstance(aggregator, Histogram):
        wanted = BINS.histogram(target)[0]
        counts = BINS.histogram(achieved)[0] * len(achieved) if len(achieved) else np.zeros(BINS.count)
        rest = np.maximum(0.0, steps * wanted - np.round(counts))
        rest[rest < 1e-9] = 0.0
        return rest / rest.sum() if rest.sum() > 0 else wanted
    if isinstance(aggregator, DiscountedSum):
        return (target.sum(0, dtype=np.float64) - achieved.sum(0, dtype=np.float64)) / aggregator.scale
    if isinstance(aggregator, TimedSum):
        rest = target.sum(0, dtype=np.float64) - achieved.sum(0, dtype=np.float64)
        return np.append(rest, max(0, steps - len(achieved))) / aggregator.scale
    if isinstance(aggregator, Moments):
        left = steps - len(achieved)
        if left <= 0:
            return aggregator(target)[0]
        x, y = target.astype(np.float64), achieved.astype(np.float64)
        raw = [((x**p).sum(0) - (y**p).sum(0)) / left for p in range(1, 5)]
        mean = raw[0]
        central = [
            raw[1] - mean**2,
            raw[2] - 3 * mean * raw[1] + 2 * mean**3,
            raw[3] - 4 * mean * raw[2] + 6 * mean**2 * raw[1] - 3 * mean**4,
        ]
        rooted = [np.sqrt(max(central[0], 0)), np.cbrt(central[1]), max(central[2], 0) ** 0.25]
        return np.concatenate([mean, *(np.atleast_1d(m) for m in rooted)])[: aggregator.order]
    raise AssertionError(name)


@additive
@given(target=values, achieved=values)
def test_remaining_is_what_remains(name: str, target: np.ndarray, achieved: np.ndarray) -> None:
    rows = z_of(conditioner_of("remaining", name, [target]), len(achieved), achieved)[:, 0, 0]
    for step, row in enumerate(rows):
        expected = remaining(name, target, achieved[:step])
        # Roots magnify the rounding of a moment that is zero.
        np.testing.assert_allclose(row, expected, atol=2e-3 if name == "moments" else 1e-5)


@additive
@given(target=values)
def test_remaining_is_nominal_while_the_target_is_achieved(name: str, target: np.ndarray) -> None:
    steps = len(target)
    remaining = z_of(conditioner_of("remaining", name, [target]), steps, target)
    nominal = z_of(conditioner_of("nominal", name, [target]), steps)
    np.testing.assert_allclose(remaining, nominal, atol=2e-3 if name == "moments" else 1e-5)


@additive
def test_remaining_is_nominal_over_a_whole_episode(name: str) -> None:
    """A thousand subtractions do not pile up rounding: the last steps get what they should."""
    target = np.random.default_rng(0).normal(1.0, 0.5, (1000, 1)).astype(np.float32) + 3
    remaining = z_of(conditioner_of("remaining", name, [target]), 1000, target)
    expected = z_of(conditioner_of("nominal", name, [target]), 1000)
    np.testing.assert_allclose(remaining[..., :2], expected[..., :2], atol=1e-4)
    np.testing.assert_allclose(remaining, expected, atol=2e-2)  # roots of third and fourth moments magnify rounding


def test_remaining_begins_anew_after_a_reset() -> None:
    target = np.array([[0.5], [1.5], [2.5]], np.float32)
    for name in ("histogram", "sum", "moments"):
        conditioner = conditioner_of("remaining", name, [target])
        first = z_of(conditioner, 3, target[::-1].copy())
        conditioner.reset()
        np.testing.assert_array_equal(z_of(conditioner, 3, target[::-1].copy()), first)


def test_an_exhausted_histogram_gives_the_whole_target() -> None:
    target = np.array([[0.5], [1.5]], np.float32)
    rows = z_of(
        conditioner_of("remaining", "histogram", [target]), 4, np.array([[0.5], [1.5], [1.5], [1.5]], np.float32)
    )
    np.testing.assert_allclose(rows[:, 0, 0], [[0, 0, 0.5, 0.5, 0], [0, 0, 0, 1, 0], *[[0, 0, 0.5, 0.5, 0]] * 2])


def test_histograms_of_two_features_remain_separately() -> None:
    statistic = InformationStatistic(
        resolve_feature("x_velocity,z_velocity", hm.get_task("hopper")), Histogram(2, low=(0.0, 0.0), high=(2.0, 2.0))
    )
    target = np.array([[0.5, 0.5], [0.5, 1.5]], np.float32)
    conditioner = made(
        "remaining",
        hm.CDT("x_velocity,z_velocity"),
        [Rows(target)],
        np.zeros((1, 1), np.int64),
        statistic,
        Frame(statistic.feature, hm.Bins((0, 0), (2, 2), 2), 2),
    )
    rows = z_of(conditioner, 2, np.array([[1.5, 1.5]] * 2, np.float32))[:, 0, 0]
    np.testing.assert_allclose(rows, [[1, 0, 0.5, 0.5], [1, 0, 1, 0]])


@pytest.mark.parametrize("name", ["histogram", "sum", "moments"])
def test_remaining_needs_gamma_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGGREGATORS, "discounted", type(AGGREGATORS[name])(gamma=0.9))
    with pytest.raises(TargetError, match="gamma 1"):
        conditioner_of("remaining", "discounted", [np.ones((3, 1), np.float32)])


def test_a_goal_stays_what_it_is() -> None:
    goal = np.array([[3.0], [1.0], [2.0]], np.float32)
    for conditioning in ("nominal", "remaining"):
        conditioner = conditioner_of(conditioning, "goal", [goal])  # type: ignore[arg-type]
        np.testing.assert_array_equal(z_of(conditioner, 3, np.ones((3, 1), np.float32))[:, 0, 0], 2.0)


@pytest.mark.parametrize("name", sorted(set(AGGREGATORS) - {*ADDITIVE, "goal"}))
def test_remaining_refuses_what_has_no_total(name: str) -> None:
    kind = AGGREGATORS[name].kind
    with pytest.raises(
        TargetError, match=f"^remaining conditioning takes .* statistic '{kind}' has none; use nominal$"
    ):
        conditioner_of("remaining", name, [np.ones((3, 1), np.float32)])


@dataclass(frozen=True)
class Signs:
    """An aggregator of somebody's own, counted as it says: how many steps are above and below zero."""

    kind: ClassVar[str] = "signs"

    def fit(self, features: object) -> Signs:
        return self

    def width(self, dimensions: int) -> int:
        return 2 * dimensions

    def contributions(self, phi: np.ndarray) -> np.ndarray:
        return np.concatenate([phi > 0, phi < 0], axis=1).astype(np.float64)

    def of_total(self, total: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return total / np.where(steps > 0, steps, np.nan)

    def __call__(self, phi: np.ndarray) -> np.ndarray:
        rest = np.cumsum(self.contributions(phi)[::-1], axis=0)[::-1]
        return self.of_total(rest, np.arange(len(phi), 0, -1)[:, None]).astype(np.float32)


def test_remaining_uses_an_aggregator_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGGREGATORS, "own", Signs())
    target = np.array([[1.0], [-1.0], [1.0], [0.0]], np.float32)
    rows = z_of(conditioner_of("remaining", "own", [target]), 5, np.array([[-1], [-1], [1], [1], [1]], np.float32))[
        :, 0, 0
    ]
    whole = [0.5, 0.25]  # given again once nothing is left
    np.testing.assert_allclose(rows, [whole, [2 / 3, 0.0], [1.0, -0.5], [1.0, -1.0], whole], atol=1e-6)


# -- rollouts apart ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditioning", ["nominal", "remaining"])
@additive
@given(data=st.data())
def test_each_rollout_by_its_own_clock(name: str, conditioning: Conditioning, data: st.DataObject) -> None:
    """Begun again one by one, every rollout gets the z that it would get alone."""
    targets = [data.draw(values) for _ in range(3)]
    together = conditioner_of(conditioning, name, targets, np.arange(3)[None])
    alone = [conditioner_of(conditioning, name, [target]) for target in targets]
    steps = np.zeros(3, np.int64)
    for _ in range(12):
        begun = np.flatnonzero(data.draw(st.tuples(*[st.booleans()] * 3)))
        together.reset(begun)
        steps[begun] = 0
        z = together.z(torch.from_numpy(steps[None]))
        assert z is not None
        phi = data.draw(arrays(np.float32, (1, 3, 1), elements=st.integers(-12, 16).map(lambda i: i / 4)))
        going = np.flatnonzero(data.draw(st.tuples(*[st.booleans()] * 3)))
        for rollout, conditioner in enumerate(alone):
            if rollout in begun:
                conditioner.reset()
            own = conditioner.z(clock(int(steps[rollout])))
            assert own is not None
            np.testing.assert_array_equal(z[0, rollout], own[0, 0])
            if rollout in going:
                conditioner.achieved(phi[:, [rollout]])
        together.achieved(phi[:, going], going)
        steps[going] += 1


@pytest.mark.parametrize("conditioning", ["nominal", "remaining"])
@additive
def test_another_target_as_if_it_had_been_the_target_from_the_beginning(name: str, conditioning: Conditioning) -> None:
    rng = np.random.default_rng(0)
    first, second = (
        [rng.normal(size=(steps, 1)).astype(np.float32) for steps in lengths] for lengths in ((3, 9), (7,))
    )
    changed = conditioner_of(conditioning, name, first, np.arange(2)[None])
    other = conditioner_of(conditioning, name, [first[0], second[0]], np.arange(2)[None])
    for step in range(10):
        if step == 4:
            changed.take(conditioner_of(conditioning, name, second), np.array([1]))
        found, expected = changed.z(clock(step)), other.z(clock(step))
        assert found is not None
        assert expected is not None
        np.testing.assert_array_equal(found[0, 0], expected[0, 0])
        assert np.array_equal(found[0, 1], expected[0, 1]) == (step >= 4)
        for conditioner in (changed, other):
            conditioner.achieved(np.full((1, 2, 1), step / 4 - 1, np.float32))


def test_a_target_that_is_given_several_times_is_computed_once() -> None:
    class Counted(Rows):
        computed = 0

        def values(self, frame: Frame) -> np.ndarray:
            self.computed += 1
            return super().values(frame)

    target = Counted(np.ones((3, 1), np.float32))
    statistic, frame = InformationStatistic(FEATURE, AGGREGATORS["sum"]), Frame(FEATURE, BINS, 1000)
    made("nominal", hm.DT(), [target] * 4, np.arange(4)[None], statistic, frame)
    assert target.computed == 1


# -- the rest ---------------------------------------------------------------------------------------------------


def test_unknown_conditioning() -> None:
    with pytest.raises(TargetError, match="nominal, remaining, planned, rehearsed, waypoints, got 'loop'"):
        conditioner_of("loop", "sum", [np.ones((3, 1), np.float32)])  # type: ignore[arg-type]


def test_policies_without_statistic_are_conditioned_on_nothing() -> None:
    conditioner = made("nominal", hm.BC(), [Samples(np.ones(3))], np.zeros((1, 2), int))
    assert conditioner.z(clock(0)) is None
    assert conditioner.target_states(torch.zeros(1, dtype=torch.int64), clock(0)) is None
    assert not conditioner.wants_features


@pytest.mark.parametrize("method", [hm.BC(), hm.BDT(), hm.DTAE(), hm.MetaBC(), hm.FOCAL()], ids=lambda m: m.name)
@pytest.mark.parametrize("conditioning", ["remaining", "planned"])
def test_a_conditioning_that_would_be_ignored_is_refused(conditioning: Conditioning, method: hm.methods.Method) -> None:
    shown, target_of = hm.Trajectory(np.zeros((4, 11)), np.zeros((4, 3)), np.zeros(4)), np.zeros((1, 1), int)
    with pytest.raises(
        TargetError,
        match=rf"^{conditioning} .* conditioned on a statistic of a feature, and {method.name} is not; use nominal$",
    ):
        made(conditioning, method, [hm.demo(shown)], target_of)


def test_demonstrations_follow_the_targets_clock() -> None:
    rng = np.random.default_rng(0)
    demos = [hm.Trajectory(rng.normal(size=(steps, 11)), np.zeros((steps, 3))) for steps in (4, 9)]
    target_of = np.array([[1, 0, 1]])
    for codes, count, start in (("look-ahead", 3, 0), ("pseudocode", 5, -4), ("public", 5, 0)):
        method = hm.BDT(m=2, target_window=3, codes=codes)  # type: ignore[arg-type]
        conditioner = made("nominal", method, [hm.demo(d) for d in demos], target_of)
        assert count == method.batch_spec(5, 3).target_states
        for step in range(12):
            windows = conditioner.target_states(torch.arange(2), clock(step)[0])
            assert windows is not None
            for window, demo in zip(windows, demos, strict=True):
                states = demo.observations
                expected = states[np.clip(step + start + np.arange(count), 0, len(states) - 1)]
                np.testing.assert_array_equal(window.numpy(), expected)
        assert conditioner.target_of is not None
        np.testing.assert_array_equal(conditioner.target_of.numpy(), target_of)
    with pytest.raises(TargetError, match="imitates demonstrations"):
        made("nominal", hm.BDT(), [Samples(np.ones(3))], target_of)


@pytest.mark.parametrize("codes", CODES)
def test_demonstrations_by_the_clock_of_each_rollout(codes: CodesName) -> None:
    rng = np.random.default_rng(0)
    demos = [hm.demo(hm.Trajectory(rng.normal(size=(steps, 11)), np.zeros((steps, 3)))) for steps in (4, 9)]
    method = hm.BDT(m=2, target_window=3, codes=codes)

    def imitating(*targets: hm.Target) -> Conditioner:
        return made("nominal", method, targets, np.arange(len(targets))[None])

    together = imitating(demos[0], demos[0], demos[1])
    together.take(imitating(demos[1]), np.array([1]))
    steps = np.array([7, 2, 5])
    found = together.target_states(torch.arange(3), torch.from_numpy(steps))
    assert found is not None
    for window, demo, step in zip(found, (demos[0], demos[1], demos[1]), steps, strict=True):
        expected = imitating(demo).target_states(torch.zeros(1, dtype=torch.int64), torch.tensor([step]))
        assert expected is not None
        np.testing.assert_array_equal(window, expected[0])


# -- targets that follow one another --------------------------------------------------------------------------------


def following(conditioning: Conditioning, text: str, achieved: np.ndarray | None = None) -> np.ndarray:
    """The histogram at every step of eight, ``(8, bins)``."""
    statistic, frame = InformationStatistic(FEATURE, AGGREGATORS["histogram"]), Frame(FEATURE, BINS, 8)
    one = np.zeros((1, 1), np.int64)
    made_of = made(conditioning, hm.CDT("x_velocity"), [hm.parse_target(text)], one, statistic, frame)
    return z_of(made_of, 8, achieved)[:, 0, 0]


@pytest.mark.parametrize("conditioning", ["nominal", "remaining"])
def test_the_order_of_targets_that_follow_one_another_matters(conditioning: Conditioning) -> None:
    """What was achieved is neither: so nothing of a total would be taken away, and both orders would be the same."""
    achieved = np.full((8, 1), -1.5, np.float32)
    first = following(conditioning, "point(0.5) for 4 then point(1.5)", achieved)
    second = following(conditioning, "point(1.5) for 4 then point(0.5)", achieved)
    np.testing.assert_allclose(first[0], second[0])
    np.testing.assert_allclose(first[4:], [[0, 0, 0, 1, 0]] * 4)
    np.testing.assert_allclose(second[4:], [[0, 0, 1, 0, 0]] * 4)


def test_what_remains_of_a_stretch_is_made_up_for_in_it_alone() -> None:
    """Of point(0.5) for 2 nothing was done, of point(1.5) two steps too early."""
    achieved = np.array([[1.5]] * 2 + [[2.5]] + [[1.5]] * 5, np.float32)
    rows = following("remaining", "point(0.5) for 2 then 0.5*point(1.5)+0.5*point(2.5)", achieved)
    np.testing.assert_allclose(rows[1], [0, 0, 2 / 7, 2 / 7, 3 / 7], atol=1e-6)
    np.testing.assert_allclose(rows[2], [0, 0, 0, 0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(rows[3], [0, 0, 0, 3 / 5, 2 / 5], atol=1e-6)


@pytest.mark.parametrize("start", [2, 5])
def test_another_target_in_mid_episode_is_in_the_stretch_of_its_own_clock(start: int) -> None:
    statistic, frame = InformationStatistic(FEATURE, AGGREGATORS["histogram"]), Frame(FEATURE, BINS, 8)
    one = np.zeros((1, 1), np.int64)
    old, new = (
        made("remaining", hm.CDT("x_velocity"), [hm.parse_target(text)], one, statistic, frame)
        for text in ("point(2.5) for 1 then point(-1.5)", "point(0.5) for 4 then point(1.5)")
    )
    achieved = np.full((8, 1), -0.5, np.float32)
    z_of(old, start, achieved)
    old.take(new, np.array([0]))
    rows = z_of(old, 8 - start, achieved[start:])[:, 0, 0]
    np.testing.assert_allclose(rows[max(0, 4 - start) :], [[0, 0, 0, 1, 0]] * (8 - max(start, 4)))
    if start < 4:
        np.testing.assert_allclose(rows[0], [0, 0, 0.5, 0.5, 0])
