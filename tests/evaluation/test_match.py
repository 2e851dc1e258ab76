"""``policy.match``: a perfect replay scores zero, scores are SciPy's and POT's, many at once are each on its own."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import ot
import pytest
import torch
from random_episodes import episode
from scipy.stats import energy_distance, wasserstein_distance
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.evaluation import match as matching
from himatch.evaluation import trial
from himatch.policy import Policy
from himatch.rollout import Player
from himatch.simulation import EVALUATION_SEED
from himatch.statistics.features import Coordinates
from himatch.targets import Frame, Samples, Shifted


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset([*fallen_hoppers(range(12)), *fallen_hoppers(range(20, 32), 0.2)], "hopper")


@pytest.fixture(scope="module")
def policy(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path_factory.mktemp("cdt"), seeds=(0, 5))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Targets here are too few draws to lie inside so little data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        yield


# -- what a score is worth --------------------------------------------------------------------------------------


def replaying(episodes: list[hm.Trajectory]) -> type[Player]:
    """A stand-in for the player of ``match`` that repeats the actions of one episode for each rollout of a seed."""

    class Replay(Player):
        step = 0

        def act(self, observations: torch.Tensor, active: np.ndarray | None = None) -> torch.Tensor:
            rows = [e.actions[min(self.step, len(e) - 1)] for e in episodes]
            self.step += 1
            return torch.tensor(np.array(rows)).expand(observations.shape[0], -1, -1)

    return Replay


def test_a_perfect_replay_scores_zero_and_an_untrained_policy_does_not(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rollout i of ``match`` starts from the evaluation seed i, and so did the episodes that are replayed."""
    episodes = fallen_hoppers(range(EVALUATION_SEED, EVALUATION_SEED + 3))
    alone = hm.demo(episodes[0])
    pooled = Samples(np.concatenate([e.observations[:, [5]] for e in episodes]))
    unrelated = policy.match(pooled, episodes=3)
    for target, count in ((alone, 1), (pooled, 3)):
        monkeypatch.setattr(trial, "Player", replaying(episodes[:count]))
        result = policy.match(target, episodes=count)
        assert result.w1 == pytest.approx(0.0, abs=1e-12)
        assert result.energy == pytest.approx(0.0, abs=1e-6)
        np.testing.assert_allclose(result.returns, [[e.total_reward for e in episodes[:count]]] * 2)
        np.testing.assert_array_equal(result.lengths, [[len(e) for e in episodes[:count]]] * 2)
        assert result.terminated.all()
        shifted = policy.match(Shifted(target, 3), episodes=count)
        edge = 3 * policy.reference().frame.bins.widths[0]
        assert 0.5 * edge < shifted.w1 < 1.01 * edge
    assert unrelated.w1 > 0.1


def test_w1_and_energy_are_scipys(policy: Policy, data: hm.TrajectoryDataset) -> None:
    result = policy.match(data[20], episodes=4)
    bins = result.frame.bins
    centres = bins.centers[0]
    target = centres[bins.indices(data[20].observations[:, [5]])[:, 0]]
    for seed in range(2):
        rows = np.concatenate([result.features[seed][e] for e in range(4)])
        exact = data[20].observations[:, 5]
        assert result.w1_per_seed[seed] == pytest.approx(wasserstein_distance(rows[:, 0], exact), abs=1e-6)
        assert result.energy_per_seed[seed] == pytest.approx(energy_distance(rows[:, 0], exact), abs=1e-6)
        rolled = centres[bins.indices(rows)[:, 0]]
        assert result.binned_per_seed[seed] == pytest.approx(wasserstein_distance(rolled, target), abs=1e-9)
    assert result.w1 == pytest.approx(result.w1_per_seed.mean())
    assert result.error == result.w1
    np.testing.assert_array_equal(result.values, data[20].observations[:, [5]])


def test_features_may_be_read_at_the_next_state(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Each of a rollout's values is the next one's at s_t, and the last is that of the state it ended in."""
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path, seeds=(0, 1))
    policy.add_reference(hm.EpisodeReference.of(data, "reward"))
    targets, features = [data[20], data[3]], ("x_velocity", "reward")
    usual, later = (
        policy.match_features(targets, episodes=3, features=features, recorded_at=at) for at in ("t", "t+1")
    )
    for one, other in zip(usual[0], later[0], strict=True):
        for k in range(2):
            for before, after in zip(one.features[k], other.features[k], strict=True):
                assert len(before) == len(after)
                np.testing.assert_array_equal(before[1:], after[:-1])
        final = one.example.final_observation
        assert final is not None
        assert other.features[0][0][-1] == final[5]
        np.testing.assert_array_equal(one.values, other.values)  # the target's stay at s_t
        assert one.w1 != other.w1
    for one, other in zip(usual[1], later[1], strict=True):  # a reward is of its step
        np.testing.assert_array_equal(one.w1_per_seed, other.w1_per_seed)


def test_joint_w1_is_optimal_transport_between_cells(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity,z_velocity", bins=7), data, tmp_path)
    result = policy.match(data[20], episodes=2)
    bins = result.frame.bins

    def cells(rows: np.ndarray) -> np.ndarray:
        return np.array(bins.low) + (bins.indices(rows) + 0.5) * bins.widths

    rolled, target = cells(result.pooled(0)), cells(data[20].observations[:, 5:7])
    expected = ot.emd2(ot.unif(len(rolled)), ot.unif(len(target)), ot.dist(rolled, target, metric="euclidean"))
    assert result.binned == pytest.approx(expected, abs=1e-9)
    assert result.features[0][0].shape[1] == 2
    every = np.concatenate([e.observations[:, 5:7] for e in data])
    low, high = np.quantile(every, [0.01, 0.99], axis=0)
    np.testing.assert_allclose(result.spread, high - low, rtol=1e-5)
    rolled, target = result.pooled(0), data[20].observations[:, 5:7]
    np.testing.assert_allclose(
        result.marginal, [wasserstein_distance(rolled[:, i], target[:, i]) for i in range(2)], rtol=1e-4
    )
    cost = ot.dist(rolled / result.spread, target / result.spread, metric="euclidean")
    exact = ot.emd2(ot.unif(len(rolled)), ot.unif(len(target)), cost)
    cell = float(np.linalg.norm(bins.widths / result.spread))
    assert abs(result.w1 - exact) <= cell  # either sample lies within half a cell of its centre


def test_returns_and_goals_are_scored_as_asked(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    dt = untrained(hm.DT(), data, tmp_path / "dt", seeds=(0, 1))
    result = dt.match("return(20)", episodes=3)
    assert result.mixture is None
    np.testing.assert_allclose(result.error_per_seed, np.abs(result.returns - 20).mean(1), atol=1e-4)
    assert result.error == pytest.approx(result.error_per_seed.mean())
    goal = untrained(hm.GoalDT("height"), data, tmp_path / "goal").match("goal(1.1)", episodes=3)
    missed = np.abs([phi[-1, 0] - 1.1 for phi in goal.features[0]])
    assert goal.error == pytest.approx(missed.mean(), abs=1e-5)
    assert goal.as_json()["error_std"] == pytest.approx(missed.std(), abs=1e-5)
    assert "error" in repr(goal)
    assert "W1" not in repr(goal)


def test_half_above_and_half_below_is_no_hit() -> None:
    result = made(hm.parse_target("goal(0.5)"), [np.array([[0.0], [0.014]]), np.array([[0.0], [0.986]])])
    assert result.error == pytest.approx(0.486)


def test_a_target_beyond_all_bins_is_as_far_as_it_is() -> None:
    """The bins of z end with the training data; the distance does not."""
    result = made(hm.parse_target("point(100)"), [np.linspace(0, 10, 50)[:, None]], steps=50)
    assert result.w1 == pytest.approx(95.0)
    assert result.binned < 10
    edges = result.picture.values.edges  # type: ignore[union-attr]
    assert edges[0, -1] >= 100


def test_time_that_was_not_played_is_charged() -> None:
    """A rollout that falls after a fifth of the time, and until then did just what the target says."""
    result = made(hm.parse_target("point(5)"), [np.full((10, 1), 5.0)], steps=50)
    assert result.w1 == 0.0
    assert result.played == pytest.approx(0.2)
    assert result.charged == pytest.approx(0.8 * 9.8)
    assert result.as_json()["played"] == result.played


def test_a_fall_that_ends_at_the_goal_is_no_hit() -> None:
    """What it would have ended at is not known, so the time that is missing costs the spread."""
    on_goal, at_five = np.full((10, 1), 5.0), np.full((50, 1), 5.5)
    result = made(hm.parse_target("goal(5)"), [on_goal, at_five], steps=50)
    assert result.error == pytest.approx(0.25)
    assert result.charged == pytest.approx((0.8 * 9.8 + 0.5) / 2)
    assert result.ended_early == 0.5
    for text in (repr(result), result.picture.score, result._repr_html_()):
        assert "0.25 ± 0.25" in text
        assert "60%" in text
        assert "4.17" in text
    assert result.as_json()["charged"] == result.charged
    whole = made(hm.parse_target("goal(5)"), [at_five], steps=50)
    assert (whole.charged, whole.ended_early) == (whole.error, 0.0)
    assert "charged" not in repr(whole)
    assert "charged" not in whole.picture.score


def test_a_return_is_whole_when_the_episode_ends() -> None:
    result = made(hm.parse_target("return(50)"), [np.full((10, 1), 5.0)], steps=50)
    assert (result.error, result.charged) == (0.0, 0.0)
    assert "played 20%, ended early" in repr(result)
    assert "ended early" in result.picture.score


def test_a_distribution_that_was_played_in_part_says_what_that_costs() -> None:
    result = made(hm.parse_target("point(5)"), [np.full((10, 1), 5.0)], steps=50)
    for text in (repr(result), result.picture.score):
        assert "played 20%, charged 7.84" in text
    whole = made(hm.parse_target("point(5)"), [np.full((50, 1), 5.0)], steps=50)
    assert "played 100%" in repr(whole)
    assert "charged" not in repr(whole) + whole.picture.score


def test_joint_distances_say_their_unit(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity,z_velocity", bins=5), data, tmp_path)
    found = policy.evaluate([("logged", data[3])], episodes=1)
    result = found.results[0]
    for text in (repr(result), repr(found), found._repr_html_(), result.picture.score):
        assert "joint W1" in text
        assert ", in spreads" in text
    for html in (found._repr_html_(), result._repr_html_()):
        assert "W1 is joint, in spreads of each feature" in html
        assert f"x_velocity {result.marginal[0]:.3g}" in html


def made(target: hm.Target, rollouts: list[np.ndarray], steps: int = 2) -> hm.MatchResult:
    """A result of rollouts that are given; training had values from 0 to 10, spread from 0.1 to 9.9."""
    frame = Frame(Coordinates("x", (0,)), hm.Bins((0.0,), (10.0,)), steps)
    phi = tuple(rows.astype(np.float32) for rows in rollouts)
    lengths = np.array([[len(rows) for rows in phi]])
    example = hm.Trajectory(phi[0], np.zeros((len(phi[0]), 1), np.float32))
    return hm.MatchResult(
        target,
        frame,
        "nominal",
        (0,),
        (phi,),
        np.zeros(lengths.shape),
        lengths,
        np.zeros(lengths.shape, bool),
        example,
        np.array([9.8]),
    )


def test_rollouts_that_share_a_target_out_do_not_match_it_within_an_episode() -> None:
    """Half of them run at 2, half at 6: together they are the target, each by itself is 2 off on average."""
    target = hm.parse_target("0.5*point(2)+0.5*point(6)")
    result = made(target, [np.full((50, 1), 2.0), np.full((50, 1), 6.0)], steps=50)
    assert result.w1 == pytest.approx(0.0)
    assert result.within_episode == pytest.approx(2.0)
    both = np.repeat([[6.0], [2.0]], 25, axis=0)
    result = made(target, [both, both], steps=50)
    assert result.within_episode == result.w1 == pytest.approx(0.0)
    assert result.as_json()["within_episode_per_seed"] == result.within_episode_per_seed.tolist()


def test_the_order_of_targets_is_seen_in_order_and_within_an_episode_only() -> None:
    slow, fast = np.full((20, 1), 2.0), np.full((30, 1), 6.0)
    for rollout, apart in (([slow, fast], 0.0), ([fast, slow], 0.4 * 4 + 0.6 * 4 / 3 * 2)):
        result = made(hm.parse_target("point(2) for 20 then point(6)"), [np.concatenate(rollout)] * 2, steps=50)
        assert result.w1 == pytest.approx(0.0)
        assert result.in_order == pytest.approx(apart)
        assert result.within_episode == pytest.approx(apart)
        assert result.as_json()["in_order_per_seed"] == pytest.approx([apart])
    fell = made(hm.parse_target("point(2) for 20 then point(6)"), [slow, np.concatenate([slow, fast + 1])], steps=50)
    assert fell.in_order == pytest.approx((40 * 0.0 + 30 * 1.0) / 70)  # what was not played is charged, not measured


def test_of_a_single_target_the_distance_in_order_is_w1() -> None:
    result = made(hm.parse_target("normal(5,1)"), [np.linspace(0, 9, 30)[:, None]], steps=50)
    assert result.in_order == result.w1 == pytest.approx(result.within_episode)
    assert "in_order" not in result.as_json()
    goal = made(hm.parse_target("goal(5)"), [np.full((50, 1), 5.5)], steps=50)
    assert goal.as_json()["within_episode"] is None


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_targets_that_follow_one_another_are_matched(conditioning: str, policy: Policy, tmp_path: Path) -> None:
    target = "normal(0.3,0.2) for 6 then normal(-0.2,0.1) for 5"
    result = policy.match(target, episodes=2, conditioning=conditioning)  # type: ignore[arg-type]
    assert result.target.name == target
    assert result.steps == 11 >= result.lengths.max()
    first, second = (result.target.values(result.frame)[part] for part in (slice(6), slice(6, 11)))
    for played, found in zip(result.features, result.in_order_per_seed, strict=True):
        parts = [np.concatenate([phi[:6] for phi in played]), np.concatenate([phi[6:11] for phi in played])]
        apart = [wasserstein_distance(p[:, 0], w[:, 0]) for p, w in zip(parts, (first, second), strict=True) if len(p)]
        assert found == pytest.approx(np.average(apart, weights=[len(p) for p in parts if len(p)]))
    expected = wasserstein_distance(result.pooled(0)[:, 0], result.target.values(result.frame)[:, 0])
    assert result.w1_per_seed[0] == pytest.approx(expected, abs=1e-6)
    assert result.picture.course.target is not None  # the grey line of a target in time
    assert result.plot(tmp_path / "match.png").stat().st_size > 1000


# -- many at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_targets_and_seeds_at_once_are_each_on_its_own(
    conditioning: str, policy: Policy, data: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = [data[20][:11], "normal(0.3,0.2)", data[3][:7]]
    horizons = (11, 1000, 7)
    steps: list[tuple[int, int]] = []
    together = policy.match_all(
        targets,
        episodes=2,
        conditioning=conditioning,  # type: ignore[arg-type]
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == [*((i + 1, 1000) for i in range(len(steps) - 1)), (len(steps) - 1,) * 2]  # all have fallen by then
    monkeypatch.setattr(matching, "AT_ONCE", 1)  # every target in a batch of its own
    in_turn = policy.match_all(targets, episodes=2, conditioning=conditioning)  # type: ignore[arg-type]
    for place, (result, other, longest) in enumerate(zip(together, in_turn, horizons, strict=True)):
        assert result.conditioning == conditioning
        assert result.lengths.max() <= longest
        for number, seed in enumerate(policy.seeds):
            alone = policy.only(seed).match(targets[place], episodes=2, conditioning=conditioning)  # type: ignore[arg-type]
            for e in range(2):
                first = min(8, len(result.features[number][e]))  # rounding grows where feet touch the ground
                for same in (alone.features[0][e], other.features[number][e]):
                    np.testing.assert_allclose(result.features[number][e][:first], same[:first], atol=1e-3)


def test_initial_states_are_the_seeds_and_nobody_elses(policy: Policy, data: hm.TrajectoryDataset) -> None:
    first, again, other = (policy.match(data[20], episodes=2, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.example.observations, again.example.observations)
    assert not np.array_equal(first.example.observations[0], other.example.observations[0])
    env = gymnasium.make("Hopper-v5")
    seen, _ = env.reset(seed=EVALUATION_SEED)
    np.testing.assert_allclose(first.example.observations[0], seen.astype(np.float32))
    for seed in range(2):  # every policy and target starts there
        np.testing.assert_array_equal(first.features[seed][0][0], seen[[5]].astype(np.float32))


def test_targets_longer_than_the_horizon_end_with_it(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    short = hm.load_dataset(list(data), replace(hm.get_task("hopper"), name="short-hopper", horizon=40))
    policy = untrained(hm.CDT("x_velocity"), short, tmp_path)
    long = hm.demo(episode(np.random.default_rng(0), 300, level=0.2))
    with pytest.warns(
        HimatchWarning, match=r"^demonstration lasts 300 steps, .* horizon of short-hopper, 40, .*\[:40\]"
    ):
        result = policy.match(long, episodes=3)
    assert result.lengths.max() <= 40
    assert len(result.values) == 300


# -- environments -----------------------------------------------------------------------------------------------


def test_another_environment_by_id_function_or_instance(policy: Policy, data: hm.TrajectoryDataset) -> None:
    expected = policy.match(data[20][:9], episodes=2)
    with gymnasium.make("Hopper-v5") as env:
        for given in ("Hopper-v5", lambda: gymnasium.make("Hopper-v5"), env, env.unwrapped):
            found = policy.match(data[20][:9], episodes=2, env=given)
            np.testing.assert_allclose(found.features[0][1], expected.features[0][1], atol=1e-4)
    with pytest.raises(HimatchError, match=r"17 observations and 6 actions.*11 and 3"):
        policy.match(data[20], env="Walker2d-v5")


def test_ants_see_the_numbers_they_were_trained_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ants = hm.load_dataset([episode(rng, 12, 27, 8) for _ in range(4)], "ant")
    policy = untrained(hm.CDT("x_velocity"), ants, tmp_path)
    plain = policy.match(ants[0], episodes=2)
    longer = policy.match(ants[0], episodes=2, env=lambda: gymnasium.make("Ant-v5"))  # 105 numbers
    np.testing.assert_allclose(longer.features[0][0], plain.features[0][0], atol=1e-4)
    assert longer.example.observations.shape[1] == 27


def test_plotting(policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    result = policy.match(data[20], episodes=1)
    assert result.plot(tmp_path / "match.png").stat().st_size > 5000
    assert "W1" in repr(result)
    for name in ("match.xyz", "match"):
        with pytest.raises(HimatchError, match="a picture must end in"):
            result.plot(tmp_path / name)


# -- results as data --------------------------------------------------------------------------------------------


def test_results_and_evaluations_as_plain_numbers(policy: Policy, data: hm.TrajectoryDataset) -> None:
    found = hm.evaluate(policy, [("logged", data[3]), ("drawn", "normal(0.3,0.1)")], episodes=2, seed=1)
    first = found.results[0]
    whole = json.loads(json.dumps(found.as_json()))
    assert whole["targets"][0] == {
        **json.loads(json.dumps(first.as_json())),
        "group": "logged",
        "episodes": 2,
        "seed": 1,
    }
    assert first.as_json()["w1_per_seed"] == first.w1_per_seed.tolist()
    assert list(found.summary) == ["logged", "drawn", "total"]
    assert found.summary == whole["summary"]
    assert found.summary["logged"]["mean"] == pytest.approx(first.w1)
    assert found.summary["logged"]["played"] == pytest.approx(first.played)
    assert found.summary["logged"]["charged"] == pytest.approx(first.charged)
    total = found.summary["total"]
    assert total["charged"] == pytest.approx(np.mean([result.charged for result in found.results]))
    assert repr(found).startswith(f"Evaluation({policy.folder}, 2 targets, mean W1: logged {first.w1:.3f} (played ")
    assert f"charged {total['charged']:.3f})" in repr(found)
    assert f"charged {total['charged']:.3f})" in found._repr_html_()
