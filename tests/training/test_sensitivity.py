"""Sensitivity is kept with a run, and a policy that ignores its conditioning is loudly warned of."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchWarning
from himatch.evaluation.sensitivity import in_words

TINY = {"preset": "cpu", "steps": 4, "width": 16, "layers": 1, "context": 3, "batch_size": 8, "quiet": True}
TOLD = hm.Task(name="told", horizon=20, observation_width=2, action_width=1, action_low=-1.0, action_high=1.0)

pytestmark = pytest.mark.usefixtures("whole_ends")


def told_apart(count: int = 40) -> hm.TrajectoryDataset:
    """Episodes whose actions only their own futures tell: the second observation, 20 steps late."""
    rng, episodes = np.random.default_rng(0), []
    for number in range(count):
        level = -0.8 if number % 2 else 0.8
        observations = np.stack([rng.normal(size=20), np.full(20, 0.0)], 1)
        observations[-1, 1] = level
        episodes.append(hm.Trajectory(observations, np.full((20, 1), level), None, None, False))
    return hm.load_dataset(episodes, TOLD)


def test_every_training_keeps_the_sensitivity_of_each_seed(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", seeds=2, **TINY)
    kept = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert len(kept.pop("sha256")) == 64
    assert kept["on"] == "training"  # twenty episodes leave one for validation, which has no other
    assert len(kept["sensitivity"]) == len(kept["action_error"]) == 2
    assert hm.load(tmp_path / "run").run.scores == policy.run.scores == kept


def test_a_policy_that_ignores_its_conditioning_is_loudly_warned_of(
    hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    said = r"THIS POLICY IGNORES ITS CONDITIONING: sensitivity .* of seed 0 .*trained for 4 steps; train longer"
    with pytest.warns(HimatchWarning, match=said):
        hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", **TINY)


def test_a_policy_that_heeds_its_conditioning_is_not(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings = {**TINY, "steps": 150, "batch_size": 32}
        policy = hm.train(hm.GoalDT("obs[1]"), told_apart(), out=tmp_path / "run", **settings)
    assert policy.run.scores is not None
    assert in_words(policy.run.scores["sensitivity"][0]) == "strong"


def test_match_reminds_of_it(tmp_path: Path) -> None:
    data = hm.load_dataset(fallen_hoppers(range(6)), "hopper")
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path / "run")
    policy.run.write_scores({"on": "training", "episodes": 6, "sensitivity": [1.01], "action_error": [0.1]})
    with pytest.warns(HimatchWarning, match=r"ignores its conditioning \(sensitivity 1.01 of seed 0\)"):
        policy.match(data[0], episodes=1)


def test_outliers_that_leave_two_bins_are_noted_before_training(tmp_path: Path) -> None:
    data = list(told_apart())
    stretched = [hm.Trajectory(e.observations * [[1.0, 1.0]], e.actions, None, None, False) for e in data]
    stretched[3].observations.flags.writeable = True
    stretched[3].observations[5, 0] = 1e6
    with pytest.warns(HimatchWarning) as caught:
        untrained(hm.CDT("obs[0]"), hm.load_dataset(stretched, TOLD), tmp_path / "run", bin_range="all")
    said = " ".join(str(one.message) for one in caught)
    assert re.search(r"occupies 2 of 31 bins.*span .* to 1e\+06.*mend or cut the outliers", said)


def test_a_feature_of_two_values_needs_no_more_than_two_bins(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        untrained(hm.CDT("act[0]"), told_apart(), tmp_path / "run")


def test_no_binned_distance_where_bins_tell_nothing_apart(tmp_path: Path) -> None:
    """All training values in one bin: the paper's W1 would be zero for any target."""
    data = hm.load_dataset(fallen_hoppers(range(6)), hm.get_task("hopper"))
    still = hm.Task(**{**vars(data.task), "name": "still", "features": {"alive": lambda obs, act, rew: obs[:, 0] * 0}})
    with pytest.warns(HimatchWarning, match="the same at every step"):
        policy = untrained(hm.CDT("alive"), hm.load_dataset(list(data), still), tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        result = policy.match("normal(5,0.1)", episodes=1)
    assert np.isnan(result.binned)
    assert result.w1 == pytest.approx(5.0, abs=0.1)
    assert result.as_json()["w1_binned"] is None
    json.dumps(result.as_json(), allow_nan=False)


@pytest.mark.parametrize(("sensitivity", "word"), [(1.0, "ignores"), (1.2, "weak"), (3.0, "strong")])
def test_sensitivity_in_words(sensitivity: float, word: str) -> None:
    assert in_words(sensitivity) == word
