from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from random_episodes import episode
from scipy.optimize import minimize

import himatch as hm
from himatch.divergences import wasserstein_bins, wasserstein_joint, wasserstein_samples
from himatch.errors import DataError, TargetError
from himatch.statistics.features import Coordinates, Function, resolve_feature
from himatch.targets import Samples
from himatch.targets.mixture import (
    _coarse,
    _compressed,
    _expanded,
    nearest_binned_mixture,
    nearest_joint_mixture,
    nearest_mixture,
)


@pytest.fixture
def reference(hopper: hm.TrajectoryDataset) -> hm.EpisodeReference:
    return hm.EpisodeReference.of(hopper, resolve_feature("x_velocity", hopper.task), horizon=1000)


def test_an_episode_is_its_own_nearest(reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset) -> None:
    for i in (0, 7, 19):
        target = hm.demo(hopper[i])
        nearest = reference.nearest(target)
        assert nearest.episode == i
        assert nearest.distance == pytest.approx(0, abs=1e-9)
        assert reference.mixture(target).w1 == pytest.approx(0, abs=1e-7)
        assert reference.support(target).inside


def test_a_pool_of_episodes_is_a_mixture(reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset) -> None:
    """Steps of two episodes pooled are reached exactly by sharing time between them, and by neither alone."""
    pooled = Samples(np.concatenate([hopper[0].observations[:, 5], hopper[19].observations[:, 5]]))
    mixture = reference.mixture(pooled)
    assert mixture.w1 == pytest.approx(0, abs=1e-7)
    assert sum(mixture.weights.values()) == pytest.approx(1.0)
    assert reference.nearest(pooled).distance > 0.5


def test_the_program_beats_every_other_mixture() -> None:
    """Against random mixtures and a general-purpose optimiser started from the best of them."""
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(12, 0.3), size=6)
    wanted = rng.dirichlet(np.full(12, 0.3))
    ours = nearest_binned_mixture(histograms[:, None], wanted[None], np.array([0.5]))
    _beats_every_other(ours, lambda weights: float(wasserstein_bins(weights @ histograms, wanted, 0.5)), rng)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
@pytest.mark.parametrize("outlier", [None, 9999.0, 1e12])
def test_the_program_of_samples_beats_every_other_mixture(outlier: float | None, unit: float) -> None:
    """Its distance is the exact one of samples, in any unit, with and without a bad reading."""
    rng = np.random.default_rng(2)
    lengths = np.array([20, 30, 25, 40, 20, 30])
    values = np.repeat(rng.normal(0, 1, 6), lengths) + rng.normal(0, 0.4, lengths.sum())
    if outlier is not None:
        values[70] = outlier
    values, wanted = unit * values, unit * rng.normal(0, 1.5, 50)

    def distance(weights: np.ndarray) -> float:
        return wasserstein_samples(values, wanted, np.repeat(weights / lengths, lengths)) / unit

    _beats_every_other(nearest_mixture(values, lengths, wanted), distance, rng, tries=300, slack=2e-3)


def test_all_episodes_are_asked_though_a_program_begins_with_some() -> None:
    """Of 600 the one that is wanted is none of those that it begins with."""
    lengths = np.full(600, 10)
    values = np.repeat(np.arange(600.0), 10)
    for wanted in (5, 301, 598):
        assert nearest_mixture(values, lengths, np.full(7, float(wanted)))[wanted] == pytest.approx(1.0)


def test_cells_are_cut_where_rare_episodes_differ() -> None:
    """Nearly all values are 0; one episode sweeps from 1 to 9, whose mean is that of the target, and one is at 10."""
    lengths = np.full(400, 50)
    values = np.zeros((400, 50))
    values[7], values[9] = np.linspace(1, 9, 50), 10.0
    weights = nearest_mixture(values.ravel(), lengths, np.repeat([0.0, 10.0], 50))
    assert weights[9] == pytest.approx(0.5)
    assert weights[7] == pytest.approx(0.0)


@pytest.mark.parametrize("kind", ["none", "one", "mark", "many"])
@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_no_episode_alone_is_nearer_than_the_mixture(kind: str, fenced: bool, seed: int) -> None:
    """As both are judged, with and without outliers, whatever these do to the bins."""
    rng = np.random.default_rng(seed)
    episodes = []
    for number in range(40):
        x = rng.uniform(0.3, 2.0) + rng.normal(0, 0.2, 60)
        if kind == "one" and number == 3:
            x[30] = 9999.0
        elif kind == "mark":
            x[rng.random(60) < 0.12] = -999.0
        elif kind == "many":
            x[rng.choice(60, 3)] = rng.normal(0, 5000, 3)
        episodes.append(hm.Trajectory(x[:, None].astype(np.float32), np.zeros((60, 1), np.float32)))
    reference = hm.EpisodeReference.of(episodes, Coordinates("x", (0,)), fenced=fenced)
    for text in ("normal(1,0.2)", "0.5*normal(0.5,0.1)+0.5*normal(1.5,0.1)", "uniform(0,2)", "point(3)"):
        values, mixture = hm.parse_target(text).compared(reference.frame), reference.mixture(text)
        alone = [wasserstein_samples(reference.episode(number), values) for number in range(40)]
        assert mixture.w1 <= min(alone) + 2e-3
        assert reference.nearest(text).distance == pytest.approx(min(alone))


def test_the_joint_program_beats_every_other_mixture() -> None:
    """Its distance is POT's, between the cells of the mixture and the target's."""
    rng = np.random.default_rng(1)
    lengths = np.array([20, 30, 25, 40, 20, 30])
    cells = np.concatenate([rng.integers(0, 6, 2) + rng.integers(0, 4, (n, 2)) for n in lengths])
    wanted, scale = rng.integers(0, 9, (50, 2)), np.array([0.5, 2.0])
    owner = np.repeat(np.arange(6), lengths)

    def distance(weights: np.ndarray) -> float:
        return wasserstein_joint(cells * scale, wanted * scale, (weights / lengths)[owner], np.ones(50))

    ours = nearest_joint_mixture(cells, lengths, wanted, scale)
    _beats_every_other(ours, distance, rng, tries=300)


def _beats_every_other(
    ours: np.ndarray,
    distance: Callable[[np.ndarray], float],
    rng: np.random.Generator,
    tries: int = 3000,
    slack: float = 1e-9,
) -> None:
    assert ours.sum() == pytest.approx(1.0)
    best = min(rng.dirichlet(np.ones(6), size=tries), key=distance)
    polished = minimize(
        lambda x: distance(np.abs(x) / np.abs(x).sum()), best, method="Nelder-Mead", options={"maxiter": tries}
    )
    assert distance(ours) <= polished.fun + slack
    assert distance(ours) < distance(best) + slack


def test_a_mixture_of_several_features_is_found_jointly() -> None:
    """Ten episodes with y = x and ten with y = 1 - x have the same marginals; the target is one of the second kind."""
    rng = np.random.default_rng(0)
    episodes = []
    for number in range(20):
        x = rng.random(100).astype(np.float32)
        both = np.stack([x, x if number < 10 else 1 - x], axis=1)
        episodes.append(hm.Trajectory(both, np.zeros((100, 1), np.float32)))
    reference = hm.EpisodeReference.of(episodes, Coordinates("xy", (0, 1)))
    x = rng.random(200)
    target = Samples(np.stack([x, 1 - x], axis=1))
    mixture = reference.mixture(target)
    assert min(mixture.weights) >= 10
    assert mixture.w1 < 0.1
    assert {episode for episode, _ in reference.schedule(target, 100)} <= set(range(10, 20))


def test_the_joint_distance_counts_every_feature_in_its_spread() -> None:
    """The same data in millimetres has the same distances."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(100, 2)).astype(np.float32) + number / 5 for number in range(10)]
    wanted = rng.normal(size=(100, 2)) + 1.0

    def distance(scale: np.ndarray) -> float:
        episodes = [hm.Trajectory((scale * r).astype(np.float32), np.zeros((100, 1), np.float32)) for r in rows]
        return hm.EpisodeReference.of(episodes, Coordinates("xy", (0, 1))).mixture(Samples(scale * wanted)).w1

    assert distance(np.array([1.0, 1000.0])) == pytest.approx(distance(np.ones(2)), rel=0.02)


@pytest.mark.parametrize("outlier", [9999.0, -9999.0, 1e30, -1e30])
def test_an_outlier_does_not_make_all_joint_distances_alike(outlier: float) -> None:
    """However it stretches the bins, the mixture found is as near as without it, and a far target is as far."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(level, 0.2, (60, 2)).astype(np.float32) for level in np.linspace(0, 2, 30)]
    near = Samples(np.concatenate([rng.normal(0.5, 0.2, (50, 2)), rng.normal(1.5, 0.2, (50, 2))]))
    far = Samples(rng.normal(4.0, 0.2, (100, 2)))

    def reference() -> hm.EpisodeReference:
        episodes = [hm.Trajectory(x, np.zeros((60, 1), np.float32)) for x in rows]
        return hm.EpisodeReference.of(episodes, Coordinates("xy", (0, 1)), fenced=False)

    clean = reference()
    rows[0][7, 0] = outlier
    dirty = reference()
    assert dirty.spread == pytest.approx(clean.spread, rel=0.02)
    for target in (near, far):
        assert dirty.mixture(target).w1 == pytest.approx(clean.mixture(target).w1, abs=0.02)


def test_many_outliers_leave_the_joint_program_its_cells() -> None:
    """Were cells so wide that outliers everywhere occupy few of them, all others would be in one."""
    rng = np.random.default_rng(0)
    cells, wanted = rng.integers(0, 30, (20_000, 2)), rng.integers(3, 13, (500, 2))
    _, _, before, _ = _coarse(cells, wanted)
    cells[::7] = rng.integers(-500_000, 500_000, (2858, 2))
    _, _, step, band = _coarse(cells, wanted)
    assert step <= before + 2
    far = np.array([[-3 * 10**5, 12], [10**9, 2**60]])
    assert _expanded(_compressed(far, *band), *band) == pytest.approx(far, rel=0.1)


def test_the_mixture_of_a_target_beyond_all_bins_is_as_far_as_its_samples() -> None:
    rng = np.random.default_rng(0)
    episodes = [hm.Trajectory(rng.random((50, 1), np.float32), np.zeros((50, 1), np.float32)) for _ in range(4)]
    reference = hm.EpisodeReference.of(episodes, Coordinates("x", (0,)))
    assert 99.0 < reference.mixture("point(100)").w1 < 100.0
    assert reference.mixture("point(100)").binned < 1.0


def test_mixture_is_never_worse_than_the_nearest_episode(reference: hm.EpisodeReference) -> None:
    for text in ("normal(1,0.5)", "0.5*normal(0,0.2)+0.5*normal(4,0.2)", "uniform(0,3)"):
        target = hm.parse_target(text)
        assert reference.mixture(target).w1 <= reference.nearest(target).distance + 1e-9


def test_a_schedule_is_over_with_every_episode_before_it_ends() -> None:
    """Slow episodes that are short are of use only as long as they last."""
    rng, steps = np.random.default_rng(0), 800
    shorter_when_slower = [episode(rng, 40 * (i + 1), level=i / 5) for i in range(20)]
    reference = hm.EpisodeReference.of(shorter_when_slower, resolve_feature("x_velocity", hm.get_task("hopper")))
    lasting = np.where(reference.lengths < steps, 0.9 * reference.lengths, steps)  # the end of a fall is no behaviour
    for text in ("normal(0,0.5)", "0.5*normal(0,0.3)+0.5*normal(3.5,0.3)", "uniform(0,4)"):
        target = hm.parse_target(text)
        parts = reference.schedule(target, steps)
        assert sum(share for _, share in parts) == pytest.approx(1.0)
        ends = steps * np.cumsum([share for _, share in parts])
        for (number, _), end in zip(parts, ends, strict=True):
            assert end <= lasting[number] + 1e-6
        mixed = sum(share * reference.histograms[number] for number, share in parts)
        wanted, widths = target.histogram(reference.frame), reference.frame.bins.widths
        assert wasserstein_bins(mixed, wanted, widths)[0] >= reference.mixture(target).w1 - 1e-9
    slow = hm.parse_target("normal(0,0.5)")
    assert len(reference.schedule(slow, steps)) > len(reference.mixture(slow).weights)


def test_episodes_as_long_as_the_target_are_scheduled_slowest_first(
    reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset
) -> None:
    target = hm.parse_target("0.5*normal(0,0.3)+0.5*normal(3.5,0.3)")
    parts = reference.schedule(target, int(reference.lengths.min()))
    assert dict(parts) == pytest.approx(reference.mixture(target).weights)
    speeds = [hopper[number].observations[:, 5].mean() for number, _ in parts]
    assert speeds == sorted(speeds)


def test_parts_of_a_target_in_time_come_in_its_order() -> None:
    """Fast and then slow is not slow and then fast; a distribution of the same values has no order."""
    rng, task = np.random.default_rng(0), hm.get_task("hopper")
    episodes = [episode(rng, 200, level=level) for level in (0.0, 0.5, 6.0, 6.5)]
    reference = hm.EpisodeReference.of(episodes, resolve_feature("x_velocity", task))
    slow, fast = hm.demo(episode(rng, 200, level=0.2)), hm.demo(episode(rng, 200, level=6.2))

    def order(target: hm.Target) -> list[bool]:
        """Which parts are of fast episodes."""
        return [number >= 2 for number, _ in reference.schedule(target, 200)]

    for target in (hm.targets.Patched(fast, slow, 100), hm.targets.Shifted(hm.targets.Patched(fast, slow, 100), 1.0)):
        assert order(target) == sorted(order(target), reverse=True)
        assert len(set(order(target))) == 2
    in_order = order(hm.targets.Patched(slow, fast, 100))
    assert in_order == sorted(in_order)
    pooled = order(Samples(hm.targets.Patched(fast, slow, 100).values(reference.frame)))
    assert pooled == sorted(pooled)
    assert len(set(pooled)) == 2


def test_support(reference: hm.EpisodeReference) -> None:
    far = reference.support(hm.parse_target("normal(50,1)"))
    assert not far.inside
    assert far.outside == 1.0
    half = reference.support(hm.parse_target("0.5*normal(2,0.1)+0.5*point(50)"))
    assert half.outside == pytest.approx(0.5)


def test_returns_and_goals(reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset) -> None:
    totals = np.array([t.observations[:, 5].sum(dtype=np.float64) for t in hopper])
    inside = hm.parse_target(f"return({totals[4]})")
    assert reference.nearest(inside).episode == 4
    assert reference.support(inside).inside
    assert not reference.support(hm.parse_target("return(1e6)")).inside
    goal = hm.parse_target(f"goal({hopper[6].observations[-1, 5]})")
    assert reference.nearest(goal).episode == 6
    assert not reference.support(hm.parse_target("goal(-70)")).inside
    with pytest.raises(TargetError, match="not a distribution"):
        reference.mixture(inside)


def test_what_was_seen_of_a_deadline_is_of_first_steps(hopper: hm.TrajectoryDataset) -> None:
    """Episodes have 20 to 39 steps, and a deadline of 25 is that of a part of them."""
    reference = hm.EpisodeReference.of(hopper, "x_velocity")
    phi = [reference.episode(number)[:25] for number in range(len(hopper))]
    goal, total = hm.parse_target("goal(0.5, within=25)"), hm.parse_target("return(9, within=25)")
    np.testing.assert_array_equal(reference.seen(goal), [rows[-1] for rows in phi])
    np.testing.assert_allclose(reference.seen(total), [rows.sum(axis=0, dtype=np.float64) for rows in phi])
    assert reference.seen(hm.parse_target("goal(0.5)")) is reference.finals
    most = float(reference.seen(total).max())
    assert most < reference.totals.max()
    assert reference.support(f"return({most:.6f}, within=25)").inside
    assert not reference.support(f"return({reference.totals.max():.6f}, within=25)").inside
    gaps = np.abs(reference.seen(total)[:, 0] - 9.0)
    assert reference.nearest(total).episode == gaps.argmin()
    assert reference.nearest(total).distance == pytest.approx(gaps.min(), rel=1e-4)


def test_several_features_are_scored_jointly(hopper: hm.TrajectoryDataset) -> None:
    feature = resolve_feature("x_velocity,z_velocity", hopper.task)
    reference = hm.EpisodeReference.of(hopper, feature, horizon=200)
    target = hm.parse_target("joint(normal(1,0.5), normal(1,0.5))")
    mixture = reference.mixture(target)
    bins = reference.frame.bins
    rows = [(hopper[e].observations[:, 5:7], share) for e, share in mixture.weights.items()]
    mass = np.concatenate([np.full(len(x), share / len(x)) for x, share in rows])
    values, played = target.values(reference.frame), np.concatenate([x for x, _ in rows])
    low, high = np.quantile(np.concatenate([e.observations[:, 5:7] for e in hopper]), [0.01, 0.99], axis=0)
    points, wanted = (np.floor((x - bins.low) / bins.widths) * bins.widths / (high - low) for x in (played, values))
    assert mixture.w1 == pytest.approx(wasserstein_joint(points, wanted, mass), abs=2e-3)  # float32 at a bin's edge
    points, wanted = (bins.indices(x) * bins.widths for x in (played, values))
    assert mixture.binned == pytest.approx(wasserstein_joint(points, wanted, mass), abs=1e-9)


def test_samples_of_several_features_are_measured_as_rollouts_are(hopper: hm.TrajectoryDataset) -> None:
    """All of them, though only as many as the horizon has steps are told."""
    feature = resolve_feature("x_velocity,z_velocity", hopper.task)
    reference = hm.EpisodeReference.of(hopper, feature, horizon=10)
    samples = np.random.default_rng(0).normal(1.0, 0.5, (3000, 2))
    samples[1] = 90.0  # none of the told ones
    target, bins = Samples(samples), reference.frame.bins
    mixture = reference.mixture(target)
    rows = [(hopper[e].observations[:, 5:7], share) for e, share in mixture.weights.items()]
    points = np.concatenate([np.array(bins.low) + (bins.indices(x) + 0.5) * bins.widths for x, _ in rows])
    mass = np.concatenate([np.full(len(x), share / len(x)) for x, share in rows])
    cells, weights = bins.joint(samples)
    assert mixture.binned == pytest.approx(wasserstein_joint(points, cells, mass, weights), abs=1e-9)
    assert (target.values(reference.frame) < 90.0).all()
    assert reference.support(target).outside >= 1 / 3000


def test_a_feature_that_is_no_number_is_told_with_its_episode(hopper: hm.TrajectoryDataset) -> None:
    bad = Function("bad", lambda obs, act, rew: np.where(obs[:, 0] == hopper[3].observations[2, 0], np.nan, 1.0))
    with pytest.raises(DataError, match=r"^feature 'bad' returned NaN or infinity at step 2 of episode 3$"):
        hm.EpisodeReference.of(hopper, bad)


def test_a_dataset_knows_features_by_name_and_the_horizon(hopper: hm.TrajectoryDataset) -> None:
    named = hm.EpisodeReference.of(hopper, "x_velocity")
    assert named.frame.feature == resolve_feature("x_velocity", "hopper")
    assert named.frame.horizon == hopper.task.horizon > hopper.lengths.max()
    assert hm.EpisodeReference.of(list(hopper), named.frame.feature).frame.horizon == hopper.lengths.max()
    with pytest.raises(hm.HimatchError, match=r"^which feature 'x_velocity' is .* hand over a dataset"):
        hm.EpisodeReference.of(list(hopper), "x_velocity")


def test_a_reference_takes_what_match_takes(reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset) -> None:
    for asked in ("normal(1,0.5)", hopper[3], [0.5, 1.0, 1.5], "return(20)"):
        target = hm.as_target(asked)  # type: ignore[arg-type]
        assert reference.support(asked) == reference.support(target)  # type: ignore[arg-type]
        assert reference.nearest(asked) == reference.nearest(target)  # type: ignore[arg-type]
    assert reference.mixture("normal(1,0.5)") == reference.mixture(hm.parse_target("normal(1,0.5)"))
