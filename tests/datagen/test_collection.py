"""Other people's policies: functions, experts and Stable-Baselines3 agents, and what is wrong with some of them."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import himatch as hm
from himatch.datagen import collect_dataset, make_dataset
from himatch.datagen.stable_baselines import load_sb3_policy
from himatch.tasks import registry

POLICIES = """
import numpy as np

def still(observations):
    return np.zeros((len(observations), 3))

def wild(observations):
    return np.where(observations[:, :3] > 0, 1.5, 0.25)

def nan(observations):
    actions = np.zeros((len(observations), 3))
    actions[-1, 1] = np.nan
    return actions

def wide(observations):
    return np.zeros((len(observations), 4))

def one(observations):
    return np.zeros(3)

def words(observations):
    return [["up"] * 3] * len(observations)

def fails(observations):
    raise ZeroDivisionError("no legs\\nat all")

gravity = 9.81
"""


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    path = tmp_path / "policies.py"
    path.write_text(POLICIES)
    return path


def collect(task: str, policy: Any, out: Path, **settings: Any) -> hm.TrajectoryDataset:
    return collect_dataset(task, policy, out, quiet=True, **settings)


# -- functions ------------------------------------------------------------------------------------------------------


def test_a_function_of_a_file(policies: Path, tmp_path: Path) -> None:
    made = collect("hopper", f"{policies}:still", tmp_path / "still-v0", episodes=5, slots=2, label="fall")
    read = hm.load_dataset(tmp_path / "still-v0")
    assert read.content_hash == made.content_hash
    assert read.labels == ("fall",) * 5
    assert read.terminated.all()
    assert not read.actions.any()
    facts = json.loads((tmp_path / "still-v0" / "data" / "metadata.json").read_text())["himatch"]["collected"]
    assert facts["policy"] == "policies.py:still"
    assert facts["returns"]["max"] == pytest.approx(read.returns.max())


def test_slots_do_not_change_the_episodes(policies: Path, tmp_path: Path) -> None:
    hashes = {
        collect("hopper", f"{policies}:still", tmp_path / f"{n}-v0", episodes=5, slots=n).content_hash
        for n in (1, 3, 9)
    }
    assert len(hashes) == 1


def test_a_function_sees_only_simulations_that_play(tmp_path: Path) -> None:
    seen: list[int] = []

    def policy(observations: np.ndarray) -> np.ndarray:
        seen.append(len(observations))
        return np.zeros((len(observations), 3))

    dataset = collect("hopper", policy, tmp_path / "set-v0", episodes=3, slots=3)
    assert sum(seen) == dataset.steps
    assert seen[0] == 3
    assert seen[-1] < 3


def test_a_function_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_hopping_policies.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"] + [p for p in __import__("sys").path if p])
    assert len(collect("hopper", "my_hopping_policies:still", tmp_path / "set-v0", episodes=2)) == 2


def test_actions_outside_the_range_are_clipped_with_a_note(policies: Path, tmp_path: Path) -> None:
    with pytest.warns(hm.HimatchWarning, match=r"of the action values of policies.py:wild were clipped to the range"):
        dataset = collect("hopper", f"{policies}:wild", tmp_path / "set-v0", episodes=2)
    assert set(np.unique(dataset.actions)) == {0.25, 1.0}


def test_an_environment_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    hm.register_task("pendulum", env_id="Pendulum-v1", horizon=30, features={"speed": 2})
    dataset = collect("pendulum", lambda seen: 2 * np.sin(seen[:, :1]), tmp_path / "set-v0", episodes=4, slots=3)
    assert dataset.lengths.tolist() == [30] * 4
    env = gymnasium.make("Pendulum-v1")
    first, _ = env.reset(seed=hm_seed(tmp_path / "set-v0"))
    np.testing.assert_array_equal(dataset[0].observations[0], first)
    env.close()


def test_an_environment_registered_as_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium takes classes but cannot write them into a file; the id must do."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.envs.registration.registry))

    class Still(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return np.zeros(1, np.float32), 0.0, False, False, {}

    gymnasium.register("Still-v3", Still, max_episode_steps=4)
    hm.register_task("still", env_id="Still-v3")
    collect("still", lambda seen: np.zeros((len(seen), 1)), tmp_path / "still-v0", episodes=2)
    again = hm.load_dataset(tmp_path / "still-v0")
    assert (again.env_id, again.task.name, again.lengths.tolist()) == ("Still-v3", "still", [4, 4])


def hm_seed(folder: Path) -> int:
    import h5py

    with h5py.File(folder / "data" / "main_data.hdf5") as file:
        return int(file["episode_0"].attrs["seed"])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("FILE:nan", r"policies.py:nan returned NaN or infinity in episode 1, step 0"),
        ("FILE:wide", r"returned shape \(2, 4\) for 2 observations; task hopper needs \(2, 3\)"),
        ("FILE:one", r"returned shape \(3,\) for 2 observations"),
        ("FILE:words", r"policies.py:words failed: ValueError"),
        ("FILE:fails", r"policies.py:fails failed: ZeroDivisionError: no legs$"),
        ("FILE:gravity", r"gravity is not a function but of type float"),
        ("FILE:walk", r"has no function 'walk'; it has: still, wild, nan"),
        ("nowhere.py:walk", r"--policy nowhere.py:walk: no such file"),
        ("no_such_module:walk", r"--policy no_such_module:walk: no such module"),
        ("walk", r"cannot understand the policy 'walk'; write sb3:AGENT.zip"),
        ("sb3:", r"cannot understand"),
        ("sb3:nowhere.zip", r"nowhere.zip: there is no such file"),
    ],
)
def test_bad_policies_are_refused(policies: Path, tmp_path: Path, policy: str, message: str) -> None:
    with pytest.raises(hm.HimatchError, match=message):
        collect("hopper", policy.replace("FILE", str(policies)), tmp_path / "sets" / "set-v0", episodes=2)
    assert not (tmp_path / "sets").exists() or list((tmp_path / "sets").iterdir()) == []


def test_a_file_that_cannot_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_thing\n")
    with pytest.raises(hm.HimatchError, match=r"--policy .*broken.py:f failed: No module named 'no_such_thing'"):
        collect("hopper", f"{tmp_path / 'broken.py'}:f", tmp_path / "set-v0")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(hm.HimatchError, match="failed: ZeroDivisionError"):
        collect("hopper", f"{tmp_path / 'broken.py'}:f", tmp_path / "set-v0")
    (tmp_path / "broken.py").write_text("import sys\nsys.exit()\n")
    with pytest.raises(hm.HimatchError, match=r"calls sys.exit\(None\)"):
        collect("hopper", f"{tmp_path / 'broken.py'}:f", tmp_path / "set-v0")


def test_a_file_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "hopping_gains.py").write_text("GAIN = 0.5\n")
    (tmp_path / "hopping.py").write_text(
        "import numpy as np\n"
        "from hopping_gains import GAIN\n"
        "def steady(observations):\n"
        "    return np.full((len(observations), 3), GAIN)\n"
    )
    dataset = collect("hopper", f"{tmp_path / 'hopping.py'}:steady", tmp_path / "set-v0", episodes=1)
    assert (dataset.actions == 0.5).all()


class Narrow(gymnasium.Env[Any, Any]):
    """Closes itself, as one is to see."""

    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    closed = 0

    def close(self) -> None:
        type(self).closed += 1


@pytest.mark.parametrize("wrong", ["width", "out"])
def test_simulations_are_closed_when_collecting_is_refused(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.envs.registration.registry))
    monkeypatch.setattr(Narrow, "closed", 0)
    gymnasium.register("Narrow-v0", Narrow, disable_env_checker=True, order_enforce=False)
    task = hm.Task("narrow", 4, 2 if wrong == "width" else 1, 1, env_id="Narrow-v0")
    if wrong == "out":
        (tmp_path / "set-v0").touch()
    complaint = "observations have 1 numbers, task narrow has 2" if wrong == "width" else "exists already"
    with pytest.raises(hm.HimatchError, match=complaint):
        collect_dataset(task, lambda seen: seen, tmp_path / "set-v0", episodes=3, slots=3, quiet=True)
    assert Narrow.closed == (3 if wrong == "width" else 0)  # the folder is looked at before any is made


def test_a_function_in_memory_cannot_be_made_deterministic(tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match="a function decides for itself"):
        collect("hopper", lambda seen: seen, tmp_path / "set-v0", deterministic=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "episodes must be at least 1"),
        ({"slots": 0}, "slots must be at least 1"),
        ({"seed": -2}, "seed must be 0 or more"),
        ({"deterministic": True}, "a function decides for itself"),
        ({"vecnormalize": "x.pkl"}, "belongs to a Stable-Baselines3 agent"),
    ],
)
def test_bad_settings_are_refused(policies: Path, tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(hm.HimatchError, match=message):
        collect("hopper", f"{policies}:still", tmp_path / "set-v0", **{"episodes": 1, **settings})
    assert not (tmp_path / "set-v0").exists()


def test_tasks_without_an_environment_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    hm.register_task("rig", horizon=5)
    with pytest.raises(hm.HimatchError, match="task rig has no environment"):
        collect("rig", lambda seen: seen, tmp_path / "set-v0")


# -- experts --------------------------------------------------------------------------------------------------------


def test_an_expert_plays_as_in_a_made_dataset(bundled: Path, tmp_path: Path) -> None:
    made = make_dataset("hopper-medium", tmp_path / "made-v0", episodes=4, seed=2, quiet=True)
    collected = collect("hopper", "expert:hopper-medium", tmp_path / "collected-v0", episodes=4, seed=2)
    assert collected.content_hash == made.content_hash


def test_an_expert_without_noise(bundled: Path, tmp_path: Path) -> None:
    dataset = collect("cheetah-vel", "expert:cheetah-vel-3.0", tmp_path / "set-v0", episodes=2, deterministic=True)
    expected = hm.load_expert("cheetah-vel-3.0").act(np.array(dataset.observations))
    np.testing.assert_allclose(dataset.actions, expected, atol=2e-5)
    assert dataset.returns.max() < -300  # hardly moving, it is punished for 3 m/s and not for the default of 1


def test_experts_of_another_task_or_unknown_are_refused(bundled: Path, tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match="ant-medium was made for 27 observations, task hopper has 11"):
        collect("hopper", "expert:ant-medium", tmp_path / "set-v0", episodes=1)
    with pytest.raises(hm.HimatchError, match="no expert called 'hopper-genius'"):
        collect("hopper", "expert:hopper-genius", tmp_path / "set-v0", episodes=1)


# -- Stable-Baselines3 ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained agents of every algorithm, and a VecNormalize file, in RL Zoo's layout."""
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    folder = tmp_path_factory.mktemp("zoo")
    (folder / "Hopper-v5").mkdir()
    venv = VecNormalize(DummyVecEnv([lambda: gymnasium.make("Hopper-v5")]))
    venv.seed(0)
    venv.reset()
    for _ in range(30):
        venv.step([venv.action_space.sample()])
    venv.save(str(folder / "Hopper-v5" / "vecnormalize.pkl"))

    def tiny() -> dict[str, Any]:
        return {"policy_kwargs": {"net_arch": [8]}, "seed": 1, "device": "cpu"}

    for name in ("SAC", "TD3", "DDPG"):
        getattr(sb3, name)("MlpPolicy", venv, buffer_size=10, **tiny()).save(folder / f"{name}.zip")
    sb3.PPO("MlpPolicy", venv, n_steps=8, batch_size=8, **tiny()).save(folder / "PPO.zip")
    sb3.A2C("MlpPolicy", venv, use_sde=True, **tiny()).save(folder / "A2C.zip")
    venv.close()
    return folder


@pytest.mark.parametrize("name", ["SAC", "TD3", "PPO", "A2C", "DDPG"])
def test_an_sb3_agent_acts_on_normalised_observations(zoo: Path, tmp_path: Path, name: str) -> None:
    import stable_baselines3 as sb3

    dataset = collect("hopper", f"sb3:{zoo / name}.zip", tmp_path / "set-v0", episodes=3, deterministic=True)
    facts = json.loads((tmp_path / "set-v0" / "data" / "metadata.json").read_text())
    assert facts["algorithm_name"] == name
    assert facts["himatch"]["collected"]["normalized"]
    normalizer = pickle.loads((zoo / "Hopper-v5" / "vecnormalize.pkl").read_bytes())
    model = getattr(sb3, name).load(zoo / f"{name}.zip", device="cpu")
    expected, _ = model.predict(normalizer.normalize_obs(np.array(dataset.observations)), deterministic=True)
    np.testing.assert_allclose(dataset.actions, expected, atol=1e-4)
    raw, _ = model.predict(np.array(dataset.observations), deterministic=True)
    assert np.abs(dataset.actions - raw).max() > 1e-3


@pytest.mark.parametrize("name", ["SAC", "A2C"])
def test_sb3_samples_follow_the_seed(zoo: Path, tmp_path: Path, name: str) -> None:
    import torch

    before = torch.random.get_rng_state()
    first, again, other = (
        collect("hopper", f"sb3:{zoo / name}.zip", tmp_path / f"{i}-v0", episodes=2, seed=seed)
        for i, seed in enumerate((4, 4, 5))
    )
    assert first.content_hash == again.content_hash != other.content_hash
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_normalizer_is_found_or_named(zoo: Path, tmp_path: Path) -> None:
    alone = tmp_path / "agents" / "SAC.zip"
    alone.parent.mkdir()
    alone.write_bytes((zoo / "SAC.zip").read_bytes())
    assert load_sb3_policy(alone).normalizer is None
    assert load_sb3_policy(alone, zoo / "Hopper-v5" / "vecnormalize.pkl").normalizer is not None
    (alone.parent / "vecnormalize.pkl").write_bytes((zoo / "Hopper-v5" / "vecnormalize.pkl").read_bytes())
    assert load_sb3_policy(alone).normalizer is not None


def test_an_agent_for_another_task_is_refused(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match=r"PPO.zip was made for 11 observations, task ant has 27"):
        collect("ant", f"sb3:{zoo / 'PPO.zip'}", tmp_path / "set-v0", episodes=1)


def test_damaged_agents_are_refused(zoo: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.zip"
    whole = (zoo / "PPO.zip").read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(hm.HimatchError, match=r"bad.zip: cannot be read, the file is damaged"):
        load_sb3_policy(bad)
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("weights", "1")
    with pytest.raises(hm.HimatchError, match="no Stable-Baselines3 agent"):
        load_sb3_policy(bad)
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(hm.HimatchError, match="no algorithm of Stable-Baselines3 loads it"):
        load_sb3_policy(bad)


def test_damaged_normalizers_are_refused(zoo: Path, tmp_path: Path) -> None:
    bad = tmp_path / "norm.pkl"
    for content, message in ((b"junk", "damaged"), (pickle.dumps([1]), "holds a list, not a VecNormalize")):
        bad.write_bytes(content)
        with pytest.raises(hm.HimatchError, match=message):
            load_sb3_policy(zoo / "PPO.zip", bad)
    with pytest.raises(hm.HimatchError, match="there is no such file"):
        load_sb3_policy(zoo / "PPO.zip", tmp_path / "nowhere.pkl")


def test_without_stable_baselines_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent.zip").touch()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(hm.HimatchError, match=r"himatch\[sb3\]"):
        load_sb3_policy(tmp_path / "agent.zip")


def test_a_policy_that_leaves_is_told_as_one_that_fails(tmp_path: Path) -> None:
    def leaves(observations: np.ndarray) -> np.ndarray:
        raise SystemExit(7)

    with pytest.raises(hm.HimatchError, match="the policy leaves failed: SystemExit: 7"):
        hm.collect_dataset("hopper", leaves, tmp_path / "set-v0", episodes=1, quiet=True)
