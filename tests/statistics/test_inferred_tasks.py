"""Relabelling with tasks: SciPy's percentiles and log-sum-exp, tasks that are known, and what must not matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp, softmax
from scipy.stats import percentileofscore

import himatch as hm
from himatch.errors import DataError, HimatchError
from himatch.statistics.aggregators import HighestRankedTask, LikeliestTask
from himatch.statistics.aggregators.inferred_task import LEVELS, InferredTask, candidates
from himatch.statistics.features import resolve_feature
from himatch.statistics.labels import LabelledTask
from himatch.statistics.rewards import REWARDS
from himatch.tasks import Task

KINDS: tuple[type[InferredTask], ...] = (LikeliestTask, HighestRankedTask)
TASK = Task("line", 40, 1, 1, -1.0, 1.0, features={"x": 0})
both = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
seeds = st.integers(0, 2**32 - 1)


def walkers(rng: np.random.Generator, count: int, steps: int = 16, noise: float = 0.2) -> list[np.ndarray]:
    """Each keeps a value of its own between 0 and 3, more or less."""
    return [(rng.uniform(0, 3) + noise * rng.normal(size=(steps, 1))).astype(np.float32) for _ in range(count)]


def returns(phi: np.ndarray, psi: np.ndarray, gamma: float) -> np.ndarray:
    """Of the whole, under every task: written out."""
    weights = gamma ** np.arange(len(phi))
    return np.array([-(weights * np.abs(phi[:, 0] - one)).sum() for one in psi])


# -- the partition function -----------------------------------------------------------------------------------------


@given(seeds, st.sampled_from([0.1, 1.0, 30.0]), st.sampled_from([1.0, 0.9]))
def test_the_likeliest_task_is_the_mode_of_the_posterior(seed: int, unit: float, gamma: float) -> None:
    """exp(R) over the mean exp(R) of all training episodes, as SciPy adds them up."""
    episodes = walkers(np.random.default_rng(seed), 12)
    fitted = LikeliestTask(gamma, count=9, temperature=unit).fit(episodes)
    psi = np.array(fitted.tasks)[:, 0]
    earned = np.stack([returns(phi, psi, gamma) for phi in episodes]) / unit
    log_z = logsumexp(earned, axis=0) - np.log(len(episodes))
    for phi, own in zip(episodes, earned, strict=True):
        posterior = softmax(own - log_z)
        chosen = int(np.abs(psi - fitted(phi)[0, 0]).argmin())
        assert posterior[chosen] >= posterior.max() * (1 - 1e-3)


@pytest.fixture
def gifts() -> Iterator[str]:
    """Rewards with a gift: some tasks pay everybody, whatever he does."""
    REWARDS["gifts"] = lambda phi, psi: REWARDS["distance"](phi, psi) + 10.0 * (psi.T < 0.5)
    yield "gifts"
    del REWARDS["gifts"]


@both
def test_an_easy_task_does_not_take_everything(kind: Any, gifts: str) -> None:
    """What everybody earns says nothing of anybody: returns alone would relabel all with an easy task."""
    rng = np.random.default_rng(0)
    steady = [np.full((8, 1), value, np.float32) for value in rng.uniform(0, 1, 40)]
    plain, gifted = kind(count=9).fit(steady), kind(count=9, rewards=gifts).fit(steady)
    psi = np.array(gifted.tasks)
    by_return = [psi[REWARDS[gifts](phi.astype(np.float64), psi).sum(axis=0).argmax(), 0] for phi in steady]
    assert max(by_return) < 0.5
    same = [(plain(phi) == gifted(phi)).all() for phi in steady]
    assert np.mean(same) > 0.9
    found = np.array([gifted(phi)[0, 0] for phi in steady])
    assert np.corrcoef(found, [phi[0, 0] for phi in steady])[0, 1] > 0.97


# -- percentiles ----------------------------------------------------------------------------------------------------


@given(seeds, st.integers(30, 80))
def test_ranks_are_percentiles(seed: int, count: int) -> None:
    """SciPy's, to the distance of two levels; at the levels themselves to the step of one episode."""
    rng = np.random.default_rng(seed)
    earned = rng.normal(size=(count, 3))
    kind = HighestRankedTask()
    known = kind.summary(earned, 1.0)
    ranks = kind.goodness(earned, np.repeat(known[None], count, axis=0))
    for column in range(3):
        exact = np.array([percentileofscore(earned[:, column], x, kind="mean") for x in earned[:, column]]) / 100
        above = np.searchsorted(LEVELS, exact)
        gap = np.array([LEVELS[min(i, len(LEVELS) - 1)] - LEVELS[max(i - 1, 0)] for i in above])
        assert (np.abs(ranks[:, column] - exact) <= gap + 1 / count + 1e-3).all()
        order = np.argsort(earned[:, column])
        assert (np.diff(ranks[order, column]) > 0).all()
    at = np.stack([np.quantile(earned, level, axis=0) for level in LEVELS])
    found = kind.goodness(at, np.repeat(known[None], len(LEVELS), axis=0))
    np.testing.assert_allclose(found, np.repeat(np.array(LEVELS)[:, None], 3, axis=1), atol=1e-3)


def test_among_equal_ranks_the_reward_decides() -> None:
    """The first episode is the best of all at both tasks, the second beyond all at both."""
    kind = HighestRankedTask()
    known = kind.summary(np.array([[-1.0, -3.0], [-2.0, -4.0], [-5.0, -5.0]]), 1.0)
    rows = np.array([[-1.0, -3.0], [-0.5, -0.4], [-5.0, -4.0], [-2.0, -4.0]])
    found = kind.goodness(rows, np.repeat(known[None], len(rows), axis=0))
    assert found.argmax(axis=1).tolist() == [0, 1, 1, 0]
    same = kind.summary(np.full((5, 1), 7.0), 1.0)
    below, at = kind.goodness(np.array([[6.0], [7.0]]), np.repeat(same[None], 2, axis=0))[:, 0]
    assert np.isfinite([below, at]).all()
    assert below < at


# -- both -----------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("rewards", REWARDS)
def test_tasks_that_were_served_are_found_again(kind: Any, rewards: str) -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(np.linspace(0, 3, 31), 6)
    episodes = [(v + (0.05 + 0.1 * v) * rng.normal(size=(60, 1))).astype(np.float32) for v in values]
    fitted = kind(rewards=rewards).fit(episodes)
    found = np.array([fitted(phi)[:, 0] for phi in episodes])
    assert np.abs(found[:, 0] - values).mean() < 0.06
    assert np.abs(found[:, :50] - values[:, None]).mean() < 0.1
    unseen = np.full((60, 1), 1.25, np.float32)
    assert abs(fitted(unseen)[0, 0] - 1.25) < 0.11


@both
@given(seed=seeds, moved=st.integers(-20, 20), scale=st.sampled_from([0.5, 2.0, 8.0]))
def test_units_and_origin_of_a_feature_do_not_matter(kind: Any, seed: int, moved: int, scale: float) -> None:
    episodes = walkers(np.random.default_rng(seed), 25, steps=7)
    other = [(phi * scale + moved).astype(np.float32) for phi in episodes]
    plain, changed = kind().fit(episodes), kind(**{"temperature": scale} if kind is LikeliestTask else {}).fit(other)
    wanted = np.array(plain.tasks) * scale + moved
    np.testing.assert_allclose(np.array(changed.tasks), wanted, rtol=1e-5, atol=1e-4 * scale)
    found, again = (np.concatenate([of(phi) for phi in some]) for of, some in ((plain, episodes), (changed, other)))
    assert np.isclose(again, found * scale + moved, atol=1e-3 * scale).mean() > 0.95  # near ties fall either way


@both
def test_short_rests_are_compared_with_short_rests(kind: Any) -> None:
    """The last step of every episode is perfect for some task; that makes it no better at it than other last steps."""
    rng = np.random.default_rng(1)
    episodes = walkers(rng, 60, steps=50, noise=0.5)
    fitted = kind().fit(episodes)
    assert fitted.lengths == (1, 2, 4, 8, 16, 32, 50)
    z = np.array([fitted(phi)[:, 0] for phi in episodes])
    medians = np.array([np.median(phi) for phi in episodes])
    assert np.abs(z[:, :25] - medians[:, None]).mean() < 0.2
    last = np.array([phi[-1, 0] for phi in episodes])
    inside = (last > fitted.tasks[0][0]) & (last < fitted.tasks[-1][0])
    assert np.abs(z[:, -1] - last)[inside].max() < 0.12


@both
def test_episodes_of_different_lengths(kind: Any) -> None:
    rng = np.random.default_rng(2)
    episodes = [phi[: rng.integers(5, 40)] for phi in walkers(rng, 50, steps=40)]
    fitted = kind().fit(episodes)
    longest = sorted((len(phi) for phi in episodes), reverse=True)[19]
    assert fitted.lengths[-1] == longest
    for phi in episodes:
        assert abs(float(fitted(phi)[0, 0]) - float(np.median(phi))) < 0.35


@given(arrays(np.float64, st.tuples(st.integers(3, 40), st.integers(2, 3)), elements=st.integers(-9, 9).map(float)))
def test_candidates_of_several_features_are_medians_far_apart(middles: np.ndarray) -> None:
    found = candidates(middles, 8)
    assert 1 <= len(found) <= 8
    apart = np.linalg.norm(found[:, None] - found, axis=2) + 99 * np.eye(len(found))
    assert apart.min() > 0
    assert (found >= middles.min(axis=0) - 1e-6).all()
    assert (found <= middles.max(axis=0) + 1e-6).all()


@both
def test_two_features(kind: Any) -> None:
    rng = np.random.default_rng(3)
    corners = np.array([[0, 0], [0, 2], [2, 0], [2, 2]], dtype=np.float32)
    owner = np.repeat(np.arange(4), 12)
    episodes = [(corners[i] + 0.1 * rng.normal(size=(20, 2))).astype(np.float32) for i in owner]
    fitted = kind(count=12).fit(episodes)
    for i, phi in zip(owner, episodes, strict=True):
        np.testing.assert_allclose(fitted(phi)[0], corners[i], atol=0.3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LikeliestTask(rewards="mystery"), "unknown rewards 'mystery'; known are distance, square"),
        (lambda: HighestRankedTask(count=1), "needs two candidates at least, got 1"),
        (lambda: LikeliestTask(temperature=0.0), "temperature of returns must be above 0"),
        (lambda: LikeliestTask()(np.zeros((3, 1), np.float32)), "no candidate tasks yet; fit it"),
        (lambda: HighestRankedTask().fit([]), "cannot be inferred from an empty dataset"),
        (lambda: hm.HIPI(unit=-1.0), "temperature of returns"),
        (lambda: hm.GH(gamma=0.0), "discount gamma"),
        (lambda: hm.HIPI(rewards="linear"), "unknown rewards 'linear'"),
    ],
)
def test_what_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(HimatchError, match=message):
        make()


# -- labels ---------------------------------------------------------------------------------------------------------


def labelled(*labels: str | None) -> hm.TrajectoryDataset:
    steps = np.zeros((4, 1), np.float32)
    return hm.load_dataset([hm.Trajectory(steps + i, steps, label=label) for i, label in enumerate(labels)], TASK)


def test_labels_are_parameters() -> None:
    statistic = LabelledTask(resolve_feature("x", TASK))
    data = labelled("0.5", "-2", "1e1")
    np.testing.assert_array_equal(statistic.fit(data).relabel(data)[:, 0], np.repeat([0.5, -2.0, 10.0], 4))
    np.testing.assert_allclose(statistic.of_values(np.arange(4, dtype=np.float32)[:, None])[:, 0], [1.5, 2, 2.5, 3])
    mixed = statistic.relabel(labelled("7", None))
    np.testing.assert_array_equal(mixed[:4], 7.0)
    np.testing.assert_array_equal(mixed[4:], 1.0)  # what it did
    for label in ("run", "1,2", "nan", ""):
        with pytest.raises(DataError, match=f"a number each.*that of episode 1 is '{label}'"):
            statistic.fit(labelled("0.5", label))
    two = LabelledTask(resolve_feature("x,act[0]", TASK))
    np.testing.assert_array_equal(two.relabel(labelled("1,2"))[0], [1.0, 2.0])
    with pytest.raises(DataError, match="2 numbers with commas between them each"):
        two.fit(labelled("1"))
