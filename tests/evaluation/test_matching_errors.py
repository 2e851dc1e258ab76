"""What cannot be matched is said in one line; what lies outside the data is noted, with what comes nearest."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from random_episodes import episode
from run_files import describe_anew, normalize_anew
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.models import BUNDLED
from himatch.policy import Policy
from himatch.runs.folder import RunFolder


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(12)), "hopper")


@pytest.fixture(scope="module")
def policy(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path_factory.mktemp("cdt"), seeds=(0, 5))


def test_bad_input_is_said_in_one_line(policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    walker = episode(np.random.default_rng(0), 20, 17, 6)
    imitator = untrained(hm.BDT(m=2, target_window=4), data, tmp_path / "bdt")
    dt = untrained(hm.DT(), data, tmp_path / "dt")
    for call, message in (
        (lambda: policy.match(np.zeros((5, 2))), "2 columns, the feature x_velocity has 1"),
        (lambda: policy.match("joint(normal(0,1),normal(0,1))"), "describes 2 features"),
        (lambda: policy.match("return(1,2)"), "gives 2 numbers"),
        (lambda: policy.match(walker), "shows observations of 17 numbers.*sees 11"),
        (lambda: imitator.match(walker), "shows observations of 17 numbers.*sees 11"),
        (lambda: imitator.match("normal(0,1)"), "imitates demonstrations"),
        (lambda: imitator.controller("normal(0,1)"), "imitates demonstrations"),
        (lambda: dt.match("return(10)", conditioning="planned"), "lays out histograms"),
        (lambda: policy.match("return(3)", conditioning="planned"), "not a distribution"),
        (
            lambda: policy.match("normal(0,1)", conditioning="shut"),
            "nominal, remaining, planned, rehearsed, waypoints, got 'shut'",
        ),
        (lambda: policy.match("normal(0,1)", episodes=0), "at least one episode"),
        (lambda: policy.match("normal(0,1)", seed=-1), "must be 0 or more, got -1"),
        (lambda: policy.match("normal(0,1)", episodes=1.5), "episodes must be a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: policy.match("normal(0,1)", seed=0.5), "seed must be a whole number, got 0.5"),  # type: ignore[arg-type]
        (lambda: policy.match_all([]), "no target"),
        (lambda: policy.match_all("normal(0,1)"), "list of targets; a single one goes to match"),
        (lambda: policy.match_all(data[0]), "list of targets; a single one goes to match"),  # type: ignore[arg-type]
        (lambda: policy.match("heldout(9)"), r"no heldout\(9\) \(character 9 of"),
        (lambda: policy.match("normal(0,1)", feature="height"), r"nothing about the feature 'height' \(only x_vel"),
        (lambda: policy.match("normal(0,1)", feature="hight"), "task hopper has no feature 'hight'; it has .*height"),
        (lambda: policy.match("normal(0;1)"), r"\^"),
        (lambda: policy.match(data[2], env="Hopper-v99"), "cannot make 'Hopper-v99'"),
        (lambda: policy.match(data[2], env=3), r"a gymnasium\.Env \(no vector of them\), not int"),  # type: ignore[arg-type]
        (lambda: policy.controller("normal(0,1)", batch=1.5), "batch must be a whole number"),  # type: ignore[arg-type]
        (lambda: policy.controller("normal(0,1)", noise="a"), "noise must be a whole number"),  # type: ignore[arg-type]
        (lambda: policy.actions(walker), r"steps of \(17, 6\) numbers, this policy reads \(11, 3\)"),
        (lambda: policy.actions(data[0], walker), "shows observations of 17 numbers.*sees 11"),
        (lambda: imitator.actions(data[0], "normal(0,1)"), "imitates demonstrations"),
        (lambda: policy.score(data[0]), r"list of episodes .*, not Trajectory\("),  # type: ignore[arg-type]
        (lambda: policy.score(policy.held_out), "list of episodes .*, not None"),  # type: ignore[arg-type]
        (lambda: hm.evaluate(policy, ["normal(0,1)"]), "pairs of a group and a target"),  # type: ignore[list-item]
        (lambda: policy.only(3), "has the seeds 0, 5, not 3"),
    ):
        with pytest.raises(HimatchError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value) or "^" in str(caught.value)


def test_weights_are_the_best_or_the_last() -> None:
    with pytest.raises(HimatchError, match=r"^weights are best or last, got 'first'$"):
        hm.load("hopper-cdt", weights="first")  # type: ignore[arg-type]


def test_a_task_without_environment_cannot_be_rolled_out(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    task = hm.Task("logs", 1000, 11, 3, -1.0, 1.0, features={"x_velocity": 5})
    logs = hm.load_dataset([hm.Trajectory(e.observations, e.actions) for e in data], task)
    policy = untrained(hm.CDT("x_velocity"), logs, tmp_path)
    with pytest.raises(HimatchError, match=r"logs has no environment.*policy.controller"):
        policy.match(logs[2])
    assert policy.match(logs[2], env="Hopper-v5", episodes=1).lengths.shape == (1, 1)


def test_a_feature_the_run_does_not_hold_can_be_handed_over(policy: Policy, data: hm.TrajectoryDataset) -> None:
    one = policy.only(0)
    one.add_reference(hm.EpisodeReference.of(data, "height"))
    result = one.match(data[2], episodes=2, feature="height")
    np.testing.assert_array_equal(result.values, data[2].observations[:, [0]])
    np.testing.assert_array_equal(result.features[0][0], result.example.observations[:, [0]])


@pytest.mark.parametrize(
    ("method", "target", "message"),
    [
        (hm.CDT("x_velocity"), "normal(40,1)", r"100% of normal\(40,1\).* from -.*nearest mixture of them is \d"),
        (hm.DT(), "return(1e6)", r"return\(1e\+06\) lies beyond.*nearest achievable is return\(\d"),
        (hm.GoalDT("height"), "goal(9)", r"goal\(9\) lies beyond.*nearest achievable is goal\(1\."),
    ],
)
def test_a_target_outside_the_data_is_noted_once(
    method: hm.methods.Method, target: str, message: str, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = untrained(method, data, tmp_path, seeds=(0, 1))
    with pytest.warns(HimatchWarning, match=message) as caught:
        result = policy.match(target, episodes=2)
    said = [str(warning.message) for warning in caught]
    assert len([text for text in said if "beyond the bins" not in text and "ended after" not in text]) == 1
    assert result.outside > 0


@pytest.mark.parametrize(
    ("method", "target", "noted"),
    [
        (hm.DT(), "return(5, within=12)", True),
        (hm.GoalDT("height"), "goal(1.2, within=12)", True),
        (hm.UDRL(), "return(5, within=12)", False),
        (hm.GCSL("height"), "goal(1.2, within=12)", False),
        (hm.GCSL("height", steps_left=False), "goal(1.2, within=12)", True),
        (hm.CDT(), "return(5, within=12)", False),  # a histogram of what each step earns
        (hm.BC(), "return(5, within=12)", False),
    ],
)
@pytest.mark.filterwarnings("ignore:.*lies beyond every training episode")
def test_a_deadline_that_changes_nothing_is_noted(
    method: hm.methods.Method, target: str, noted: bool, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    """Rollouts end with it all the same, and the score is of their steps."""
    policy = untrained(method, data, tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = policy.match(target, episodes=1, feature="reward" if method.name == "bc" else None)
        policy.controller(target)
    said = [str(w.message) for w in caught if "not conditioned on the time that is left" in str(w.message)]
    assert len(said) == 2 * noted
    assert not said or f"{target} is to it as if it had 1000 steps, and its rollouts end after 12;" in said[0]
    assert result.steps == 12
    assert result.lengths.max() <= 12
    assert result.reached.shape == (1, 1, 1)


def test_what_hardly_lies_outside_is_not_worth_a_word(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path)
    assert 0 < policy.match("shuffled(0.99*point(0)+0.01*point(40), 0)", episodes=1).outside < 0.05


def test_rollouts_that_end_at_once_are_noted(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path)
    with pytest.warns(HimatchWarning, match=r"rollouts for point\(0\) ended after \d\S* steps.*less than 10% of the"):
        result = policy.match("point(0)", episodes=2)
    assert result.lengths.mean() < 100


def test_too_many_rollouts_are_one_line(policy: Policy, data: hm.TrajectoryDataset) -> None:
    with pytest.raises(HimatchError, match=r"^100000000 episodes .* too many; ask for \d+ at most$"):
        policy.match(data[0], episodes=100_000_000)


def test_an_environment_that_is_copied_is_said_to_be(policy: Policy, data: hm.TrajectoryDataset) -> None:
    env = gymnasium.make("Hopper-v5")
    with pytest.warns(HimatchWarning, match="new copies of Hopper-v5"):
        policy.match(data[0], episodes=1, env=env)


class Noisy(gymnasium.ObservationWrapper):  # type: ignore[type-arg]
    """As people write them: it does not record what it was made with."""

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation


@pytest.mark.filterwarnings("ignore:rollouts play new copies")
def test_an_environment_that_cannot_be_copied_says_what_to_hand_over(
    policy: Policy, data: hm.TrajectoryDataset
) -> None:
    def make() -> gymnasium.Env:  # type: ignore[type-arg]
        return Noisy(gymnasium.make("Hopper-v5"))

    with pytest.raises(HimatchError, match=r"^no copy of Hopper-v5 .*hand over a function that makes it: env=lambda"):
        policy.match(data[0], episodes=1, env=make())
    assert policy.match(data[0], episodes=1, env=make).lengths.shape == (2, 1)


@pytest.mark.parametrize("temperature", [-0.1, np.inf, np.nan, "warm", None])
def test_a_temperature_is_a_number_from_0_up(temperature: object, policy: Policy) -> None:
    before = policy.temperature
    with pytest.raises(HimatchError, match=r"^the temperature must be a number from 0 up, got"):
        policy.temperature = temperature  # type: ignore[assignment]
    assert policy.temperature == before


def test_normalizers_that_miss_something_are_one_line(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED / "hopper-cdt", tmp_path / "run")
    whole = RunFolder(tmp_path / "run").normalizers()
    for missing in ("support.to", "state_mean"):
        normalize_anew(tmp_path / "run", {name: tensor for name, tensor in whole.items() if name != missing})
        with pytest.raises(HimatchError, match=r"run: its normalizers are incomplete or from another version"):
            hm.load(tmp_path / "run")


@pytest.mark.parametrize("temperature", ["warm", [1.0], None])
def test_a_temperature_that_is_none_is_one_line(temperature: object, tmp_path: Path) -> None:
    run = Path(shutil.copytree(BUNDLED / "hopper-cdt", tmp_path / "run"))
    describe_anew(run, temperature=temperature)
    with pytest.raises(HimatchError, match=r"run\.json: incomplete or from another version"):
        hm.load(run)
