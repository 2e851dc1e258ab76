"""A trial is ``policy.match`` step by step, and takes another target in the middle."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from known_programs import know_programs
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchWarning, TargetError
from himatch.evaluation import Trial, begin_trial, play
from himatch.policy import Policy
from himatch.rollout import Conditioning
from himatch.targets import Target

SLOW, FAST = "normal(0.2,0.1)", "normal(0.9,0.2)"
EPISODES = 3


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(12)), "hopper")


@pytest.fixture(scope="module")
def policy(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path_factory.mktemp("cdt"), seeds=(0, 5))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Untrained Hoppers fall at once, far from any target."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        yield


def begun(policy: Policy, target: str | Target, conditioning: Conditioning = "nominal") -> Trial:
    wanted = policy.target(target)
    how = {"feature": policy.feature, "episodes": EPISODES, "conditioning": conditioning, "seed": 4}
    return begin_trial(policy.run, policy.agent, wanted, temperature=policy.temperature, **how)  # type: ignore[arg-type]


def stepped(trial: Trial, steps: int) -> Trial:
    with trial.threads():
        for _ in range(steps):
            trial.step()
    return trial


def z_of_next_step(trial: Trial) -> np.ndarray:
    """What the policy is conditioned on then, ``(K, E, k)``."""
    found = stepped(trial, 1).player.latest_z
    assert found is not None
    return found.numpy().copy()


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_it_scores_as_match_does(policy: Policy, conditioning: Conditioning) -> None:
    trial = begun(policy, SLOW, conditioning)
    made: list[int] = []
    play(trial, made.append)
    trial.close()
    (found,) = trial.results()[0]
    wanted = policy.match(SLOW, episodes=EPISODES, conditioning=conditioning, seed=4)
    assert found.as_json() == wanted.as_json()
    np.testing.assert_array_equal(found.lengths, wanted.lengths)
    assert made == list(range(1, int(wanted.lengths.max()) + 1))


def test_what_it_scores_so_far_is_what_was_played_so_far(policy: Policy) -> None:
    trial = stepped(begun(policy, SLOW), 4)
    (early,) = trial.results(final=False)[0]
    play(trial)
    (late,) = trial.results()[0]
    np.testing.assert_array_equal(early.lengths, np.minimum(late.lengths, 4))
    np.testing.assert_array_equal(early.features[1][2], late.features[1][2][:4])
    assert early.w1 != late.w1
    assert early.played < late.played


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_another_target_at_once_is_the_target(policy: Policy, conditioning: Conditioning) -> None:
    trial = begun(policy, SLOW, conditioning)
    trial.retarget(policy.target(FAST))
    play(trial)
    assert trial.since == 0
    wanted = policy.match(FAST, episodes=EPISODES, conditioning=conditioning, seed=4)
    assert trial.results()[0][0].as_json() == wanted.as_json()


@pytest.mark.parametrize("conditioning", ["nominal", "remaining"])
def test_another_target_in_the_middle_follows_the_one_before(policy: Policy, conditioning: Conditioning) -> None:
    """From there on z is that of the two in sequence; what the first one lacks is not made up for."""
    trial = stepped(begun(policy, SLOW, conditioning), 3)
    trial.retarget(policy.target(FAST))
    assert trial.since == 3
    both = stepped(begun(policy, f"{SLOW} for 3 then {FAST}", conditioning), 3)
    np.testing.assert_allclose(z_of_next_step(trial), z_of_next_step(both), atol=1e-6)
    trial.retarget(policy.target(SLOW))
    three = stepped(begun(policy, f"{SLOW} for 3 then {FAST} for 1 then {SLOW}", conditioning), 4)
    np.testing.assert_allclose(z_of_next_step(trial), z_of_next_step(three), atol=1e-6)
    (result,) = trial.results()[0]
    assert result.target.name == f"{SLOW} for 3 then {FAST} for 1 then {SLOW}"
    assert [len(stretch.values) for stretch in result.stretches][:2] == [3, 1]


def test_a_program_is_the_new_targets_own_for_every_seed(policy: Policy, data: hm.TrajectoryDataset) -> None:
    know_programs(policy, [data[0], data[4]])
    trial = stepped(begun(policy, policy.target(data[0]), "rehearsed"), 7)  # where programs come to their targets
    trial.retarget(policy.target(data[4]))
    alone = stepped(begun(policy, policy.target(data[4]), "rehearsed"), 7)
    np.testing.assert_array_equal(z_of_next_step(trial), z_of_next_step(alone))


def test_a_shorter_target_ends_it_and_a_longer_one_goes_on(policy: Policy) -> None:
    trial = stepped(begun(policy, f"{SLOW} for 6"), 4)
    assert trial.ongoing.longest == 6
    trial.retarget(policy.target(f"{FAST} for 900"))
    assert trial.ongoing.longest == 904
    play(trial)
    (result,) = trial.results()[0]
    assert result.lengths.max() > 6
    ended = stepped(begun(policy, SLOW), 4)
    ended.retarget(policy.target(f"{FAST} for 1"))
    play(ended)
    assert ended.results()[0][0].lengths.max() == 5


def test_a_return_is_one_of_the_whole_episode(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.DT(), data, tmp_path)
    trial = stepped(begun(policy, "return(20)"), 3)
    trial.retarget(policy.target("return(30)"))
    assert (trial.since, trial.targets[0].name) == (0, "return(30)")
    whole = stepped(begun(policy, "return(30)"), 3)
    np.testing.assert_allclose(z_of_next_step(trial), z_of_next_step(whole))


def test_a_target_that_cannot_be_leaves_everything_as_it_was(policy: Policy) -> None:
    trial, other = (stepped(begun(policy, SLOW), 3) for _ in range(2))
    with pytest.raises(TargetError):
        trial.retarget(policy.target("joint(normal(1,1), normal(2,1))"))
    with pytest.raises(TargetError):
        trial.retarget(policy.target(f"{FAST} for 999 then {FAST}"))
    play(trial)
    play(other)
    assert trial.results()[0][0].as_json() == other.results()[0][0].as_json()


def test_the_present_part_is_all_of_a_target_that_is_itself_a_sequence(policy: Policy) -> None:
    trial = stepped(begun(policy, SLOW), 3)
    trial.retarget(policy.target(f"{FAST} for 2 then {SLOW}"))
    frame = policy.reference().frame
    wanted = policy.target(f"{SLOW} for 3 then ({FAST} for 2 then {SLOW})").values(frame)
    np.testing.assert_array_equal(trial.present.values(frame), wanted[3:])
    trial = stepped(trial, 1)
    trial.retarget(policy.target(FAST))
    assert trial.targets[0].name == f"{SLOW} for 3 then ({FAST} for 2 then {SLOW}) for 1 then {FAST}"
