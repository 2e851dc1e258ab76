"""Bounds of a target: rollouts are scored on them, and conditioned on nothing of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import Run
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import ExpressionError, HimatchWarning, TargetError, TaskError
from himatch.evaluation.bounds import Measured, score_bound
from himatch.policy import Policy
from himatch.statistics.features import Function, resolve_feature
from himatch.targets import Bound, Bounded


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(12)), "hopper")


@pytest.fixture(scope="module")
def policy(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path_factory.mktemp("cdt"), seeds=(0, 5))


@pytest.fixture(scope="module")
def joint(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    policy = untrained(hm.CDT("x_velocity,height", bins=5), data, tmp_path_factory.mktemp("joint"))
    weights = {name: tensor[0] for name, tensor in policy.agent.state_dict().items()}
    policy.run.folder.write_weights(0, "last", weights)
    return policy


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*lies where no training episode goes", HimatchWarning)
        yield


# Two seeds with two rollouts each; the height is the first number.
HEIGHTS = [[[1.5, 1.0], [0.5]], [[0.0, -1.0], [2.0, 2.0]]]
PLAYED = [
    [hm.Trajectory(np.tile(np.array(h)[:, None], (1, 11)), np.zeros((len(h), 3))) for h in seed] for seed in HEIGHTS
]


def test_a_bound_that_never_holds_is_held_none_of_the_time() -> None:
    """Seed 0 has 1.5, 1 and 0.5, so 2.5, 3 and 3.5 to 4; seed 1 has 4, 5, 2 and 2."""
    score = score_bound(Bound("height", 4.0), Measured(PLAYED), hm.get_task("hopper"))
    np.testing.assert_array_equal(score.held_per_seed, [0, 0])
    np.testing.assert_allclose(score.violation_per_seed, [3.0, 3.25])
    assert (score.held, score.violation) == (0.0, 3.125)
    assert str(score) == "height > 4 held 0% of the time, mean violation 3.12"


def test_shares_are_of_the_played_time() -> None:
    score = score_bound(Bound("height", 0.0, 1.0, (False, False)), Measured(PLAYED), hm.get_task("hopper"))
    np.testing.assert_allclose(score.held_per_seed, [2 / 3, 1 / 4])
    np.testing.assert_allclose(score.violation_per_seed, [0.5 / 3, 3 / 4])


def test_no_feature_is_computed_twice() -> None:
    calls: list[int] = []

    def both(observations: np.ndarray, actions: np.ndarray, rewards: np.ndarray | None) -> np.ndarray:
        calls.append(len(observations))
        return observations[:, 0]

    measured, height = Measured(PLAYED), Function("height", both)
    first, again = measured.of(height), measured.of(height)
    assert first is again
    assert calls == [2, 1, 2, 2]
    measured = Measured(PLAYED)
    together = measured.of(resolve_feature("x_velocity,height", "hopper"))
    alone = measured.of(height)
    assert len(calls) == 4
    np.testing.assert_array_equal(alone[1][0], together[1][0][:, [1]])


def test_a_match_with_bounds(policy: Policy) -> None:
    plain = policy.match("normal(0.3,0.2)", episodes=2)
    result = policy.match("height > 0.9 & x_velocity ~ normal(0.3,0.2) & obs[1] <= 0 & x_velocity < 0.2", episodes=2)
    for k, e in np.ndindex(2, 2):  # nothing of the bounds conditions the policy
        np.testing.assert_array_equal(result.features[k][e], plain.features[k][e])
    assert result.w1 == plain.w1
    assert plain.bounds == ()
    assert [str(score.bound) for score in result.bounds] == ["height > 0.9", "obs[1] <= 0", "x_velocity < 0.2"]
    rows = result.pooled(1)
    assert result.bounds[2].held_per_seed[1] == pytest.approx((rows < 0.2).mean())
    assert result.bounds[2].violation_per_seed[1] == pytest.approx(np.maximum(rows - 0.2, 0).mean(), abs=1e-6)
    seen = result.example.observations
    alone = policy.only(0).match(result.target, episodes=1)
    assert alone.bounds[0].held == pytest.approx((seen[:, 0] > 0.9).mean(), abs=1e-6)
    stored = json.loads(json.dumps(result.as_json()))["bounds"]
    assert [row["bound"] for row in stored] == ["height > 0.9", "obs[1] <= 0", "x_velocity < 0.2"]
    assert stored[0]["held"] == result.bounds[0].held
    assert stored[0]["violation_per_seed"] == result.bounds[0].violation_per_seed.tolist()
    for text in (repr(result), result._repr_html_().replace("&gt;", ">")):
        assert f"{result.bounds[0]}" in text


def test_returns_have_bounds_too(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    result = untrained(hm.DT(), data, tmp_path).match("reward ~ return(20) & height < 0", episodes=1)
    assert result.target.matches == "return"
    assert result.bounds[0].held == 0.0
    assert result.bounds[0].violation == pytest.approx(result.example.observations[:, 0].mean(), rel=1e-5)


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_features_by_name_in_any_order(conditioning: str, joint: Policy) -> None:
    texts = ["height ~ normal(1.2,0.1)", "x_velocity ~ normal(0.3,0.2) for 5 then normal(0,0.1)"]
    results = [
        joint.match(" & ".join(order), episodes=1, conditioning=conditioning)  # type: ignore[arg-type]
        for order in (texts, texts[::-1])
    ]
    assert results[0].w1 == results[1].w1
    np.testing.assert_array_equal(results[0].features[0][0], results[1].features[0][0])
    assert results[0].values[:, 1].mean() == pytest.approx(1.2, abs=0.02)


def test_what_cannot_be_is_refused(policy: Policy, joint: Policy) -> None:
    with pytest.raises(TargetError, match=r"^what is matched here is x_velocity, .*'height' is not among them"):
        policy.match("height ~ normal(1,1)", episodes=1)
    with pytest.raises(TargetError, match=r"^what is matched here is x_velocity, height, .*'height' is missing"):
        joint.match("x_velocity ~ normal(1,1) & height > 1", episodes=1)
    with pytest.raises(ExpressionError, match=r"no feature 'hight'.* did you mean height"):
        policy.match("normal(1,1) & hight > 1", episodes=1)
    with pytest.raises(TaskError, match="no feature 'hight'"):
        policy.match(Bounded(hm.parse_target("normal(1,1)"), (Bound("hight", 1.0),)), episodes=1)


def test_a_controller_notes_that_it_keeps_no_bounds(policy: Policy, data: hm.TrajectoryDataset) -> None:
    with pytest.warns(HimatchWarning, match=r"not conditioned on bounds \(height > 1\), and nothing keeps them"):
        controller = policy.controller("x_velocity ~ normal(0.3,0.2) & height > 1")
    plain = policy.controller("normal(0.3,0.2)")
    np.testing.assert_array_equal(controller.act(data[0].observations[0]), plain.act(data[0].observations[0]))


def test_on_the_command_line(joint: Policy, run: Run, tmp_path: Path) -> None:
    target = "height ~ normal(1.2,0.1) & x_velocity ~ normal(0.3,0.2) & obs[3] < -100 & height > 0"
    code, out, _ = run("match", joint.folder, "--target", target, "--episodes", 1)
    assert code == 0
    said = " ".join(out.split())
    assert "obs[3] < -100 held 0% of the time, mean violation 1" in said
    assert "height > 0 held 100% of the time, mean violation 0 " in said
    assert said.index("W1") < said.index("held 0%") < said.index("sum of rewards")
    (tmp_path / "mine.txt").write_text(f"mine | {target}\n")
    code, out, _ = run(
        "evaluate", joint.folder, "--targets", tmp_path / "mine.txt", "--episodes", 1, "--out", tmp_path / "e.json"
    )
    assert code == 0
    assert "obs[3] < -100 held 0%" in out
    assert json.loads((tmp_path / "e.json").read_text())["targets"][0]["bounds"][0]["held"] == 0.0
    code, _, err = run("match", joint.folder, "--target", "pitch ~ normal(1,1)", "--episodes", 1)
    assert code == 2
    assert "'pitch' is not among them" in " ".join(err.split())
