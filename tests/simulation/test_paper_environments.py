"""The paper's two cheetahs."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import himatch as hm
from himatch.data.reader import task_of_name
from himatch.simulation import make_simulator, register_environments
from himatch.tasks import task_of_environment


@pytest.fixture(autouse=True)
def registered() -> None:
    """Gymnasium knows them, whichever test comes first."""
    register_environments()


@pytest.mark.parametrize("env_id", ["himatch/CheetahVel-v0", "himatch/BackflipCheetah-v0"])
def test_gymnasiums_checker_is_content(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*(infinity|render mode)", UserWarning)  # true of HalfCheetah too
        check_env(gymnasium.make(env_id).unwrapped, skip_render_check=True)


def test_the_rewards_are_the_papers() -> None:
    velocity = gymnasium.make("himatch/CheetahVel-v0", velocity=2.0)
    flip = gymnasium.make("himatch/BackflipCheetah-v0")
    for env in (velocity, flip):
        env.reset(seed=0)
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 6)):
        state = flip.unwrapped.data  # type: ignore[attr-defined]
        x, z, pitch = state.qpos[:3]
        _, reward, terminated, _, info = velocity.step(action)
        assert reward == pytest.approx(-abs(info["x_velocity"] - 2.0) - 0.05 * np.sum(action**2))
        assert not terminated
        _, reward, terminated, _, info = flip.step(action)
        rates = (state.qpos[:3] - [x, z, pitch]) / 0.05
        np.testing.assert_allclose([info["x_velocity"], info["z_velocity"], info["pitch_rate"]], rates)
        assert reward == pytest.approx(abs(rates[0]) + abs(rates[2]) - 0.1 * np.sum(action**2))
        assert reward == pytest.approx(info["reward_behaviour"] + info["reward_ctrl"])
        assert not terminated
    copy = pickle.loads(pickle.dumps(velocity.unwrapped))
    assert copy.velocity == 2.0


def test_turns_of_one_direction_can_be_paid_for_alone() -> None:
    back = gymnasium.make("himatch/BackflipCheetah-v0", direction=-1.0)
    back.reset(seed=0)
    paid = []
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 6)):
        _, reward, _, _, info = back.step(action)
        paid.append(reward)
        assert info["reward_behaviour"] == pytest.approx(-info["pitch_rate"])
    assert min(paid) < 0.0 < max(paid)
    assert pickle.loads(pickle.dumps(back.unwrapped)).direction == -1.0


def test_the_tasks_know_their_environments() -> None:
    for name, env_id, horizon in (
        ("cheetah-vel", "himatch/CheetahVel-v0", 200),
        ("backflip", "himatch/BackflipCheetah-v0", 1000),
    ):
        task = hm.get_task(name)
        assert (task.env_id, task.horizon) == (env_id, horizon)
        assert gymnasium.spec(env_id).max_episode_steps == horizon
        assert task.features == hm.get_task("halfcheetah").features
        assert task_of_environment(env_id) is task
        assert task_of_name(Path(f"{name}-expert.npz")) is task
    assert task_of_name(Path("halfcheetah-medium-v2.hdf5")) is hm.get_task("halfcheetah")
    found = task_of_environment("HalfCheetah-v2")
    assert found is not None
    assert found.name == "halfcheetah"
    simulator = make_simulator("cheetah-vel", 1)
    simulator.reset([0])
    steps = 0
    while simulator.active.all():
        simulator.step(np.zeros((1, 6)))
        steps += 1
    assert steps == 200


def test_importing_registers_once_and_loads_neither_torch_nor_mujoco() -> None:
    register_environments()  # a second time: no warning, which would be an error here
    code = "import sys, himatch.simulation; print('torch' in sys.modules, 'mujoco' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]
