from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import himatch as hm
import himatch.simulation
from himatch.errors import HimatchError, TaskError
from himatch.tasks import import_tasks, registry, task_of_environment
from himatch.tasks.locomotion import LOCOMOTION
from himatch.tasks.spaces import environment_facts


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))


@pytest.mark.parametrize("task", LOCOMOTION, ids=lambda task: task.name)
def test_the_papers_tasks_say_what_gymnasium_says(task: hm.Task) -> None:
    assert task.env_id is not None
    facts = environment_facts(task.env_id, task.env_kwargs)
    assert facts.observation_width == task.observation_width
    assert facts.action_width == task.action_width
    assert facts.horizon == task.horizon
    assert set(facts.action_low or ()) == {task.action_low}
    assert set(facts.action_high or ()) == {task.action_high}
    assert facts.rate == task.rate


@pytest.mark.parametrize("task", LOCOMOTION, ids=lambda task: task.name)
def test_velocity_features_are_the_root_velocities(task: hm.Task) -> None:
    """The named coordinates against MuJoCo's own state, after some random steps."""
    assert task.env_id is not None
    env = gymnasium.make(task.env_id, **task.env_kwargs)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(20):
        observation, *_ = env.step(env.action_space.sample())
    velocity = env.unwrapped.data.qvel  # type: ignore[attr-defined]
    position = env.unwrapped.data.qpos  # type: ignore[attr-defined]
    expected = {"x_velocity": velocity[0], "z_velocity": velocity[2] if task.name == "ant" else velocity[1]}
    expected["height"] = position[2] if task.name == "ant" else position[1]
    if task.name == "ant":
        expected["y_velocity"] = velocity[1]
    else:
        expected["pitch"] = position[2]
    if task.name == "halfcheetah":
        expected["pitch_rate"] = velocity[2]
    for name, value in expected.items():
        coordinate = task.features[name]
        assert isinstance(coordinate, int)
        np.testing.assert_allclose(observation[coordinate], np.clip(value, -10, 10), atol=1e-9)
    env.close()


def test_reference_returns_give_the_d4rl_score() -> None:
    task = hm.get_task("hopper")
    assert task.normalized_return(-20.272305) == 0.0
    assert task.normalized_return(3234.3) == pytest.approx(100.0)
    assert hm.Task("logs", 10).normalized_return(3.0) is None


def test_a_task_of_ones_own_reads_the_environment() -> None:
    task = hm.register_task("pendulum", env_id="Pendulum-v1", features={"speed": 2})
    assert (task.observation_width, task.action_width, task.horizon) == (3, 1, 200)
    assert (task.action_low, task.action_high) == (-2.0, 2.0)
    assert task.rate == 20
    assert hm.register_task("slow", env_id="Pendulum-v1", rate=5).rate == 5
    with pytest.raises(TaskError, match="the rate is a positive number of steps a second, got 0"):
        hm.Task("logs", 10, rate=0)
    assert hm.get_task("pendulum") is task
    assert task_of_environment("Pendulum-v0") is task


def test_reading_the_environment_is_quiet_and_writes_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hm.register_task("cheetah", env_id="HalfCheetah-v5").observation_width == 17
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_logs_of_a_robot_need_no_environment_and_no_widths() -> None:
    task = hm.register_task("arm", horizon=300, features={"speed": lambda obs, act, rew: abs(obs[:, 1])})
    data = hm.load_dataset({"observations": -np.ones((6, 2)), "actions": np.ones((6, 1)), "lengths": [2, 4]}, "arm")
    assert data.task is task
    np.testing.assert_array_equal(hm.resolve_feature("speed", task)(data[0]), np.ones((2, 1)))


@pytest.mark.parametrize("env_id", ["Blackjack-v1", "FrozenLake-v1"])
def test_discrete_and_tuple_observations_are_refused(env_id: str) -> None:
    with pytest.raises(TaskError, match="continuous vectors only"):
        hm.register_task("discrete", env_id=env_id, horizon=10)


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8), "pixels"),
        (gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)}), "a Dict space"),
        (gymnasium.spaces.Box(0, 5, (4,), np.int64), "integers"),
    ],
)
def test_other_spaces_are_refused_by_name(space: gymnasium.Space[object], kind: str) -> None:
    from himatch.tasks.spaces import vector_width

    with pytest.raises(TaskError, match=kind):
        vector_width(space, "the observation")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "two words"}, "one word"),
        ({"horizon": 0}, "horizon"),
        ({"observation_width": 0}, "width"),
        ({"action_low": -1.0}, "both"),
        ({"action_low": 1.0, "action_high": -1.0}, "below"),
        ({"action_low": -np.inf, "action_high": np.inf}, "finite"),
        ({"action_width": 3, "action_low": [-1, -1], "action_high": [1, 1]}, "2 numbers for 3"),
        ({"features": {"reward": 1}}, "cannot name a feature"),
        ({"features": {"a,b": 1}}, "cannot name a feature"),
        ({"observation_width": 4, "features": {"x": 4}}, "coordinate"),
        ({"features": {"x": ()}}, r"names coordinate \(none\)"),
        ({"observation_width": 4, "features": {"x": np.array([0, 4])}}, r"names coordinate \[4\] of 4"),
        ({"observation_width": 4, "features": {"x": slice(2, 6)}}, r"names coordinate \[4, 5\] of 4"),
        ({"features": {"x": "obs[1]"}}, r"feature 'x' cannot be 'obs\[1\]'; give a coordinate .* or a function"),
        ({"features": {"x": 1.5}}, "feature 'x' cannot be 1.5; give"),
        ({"features": {"x": [True, False]}}, r"feature 'x' cannot be \[True, False\]; give"),
        ({"features": {"x": [[0, 1]]}}, "cannot be"),
        ({"features": {"x": None}}, "cannot be None"),
        ({"features": {"x": slice(1, None)}}, r"cannot be slice\(1, None, None\)"),  # of how many?
        ({"features": {"x": slice(0, 4, 0)}}, "cannot be slice"),
    ],
)
def test_inconsistent_tasks_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        hm.Task(**{"name": "t", "horizon": 10, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (np.int64(3), 3),
        (np.array(3), 3),
        ([1, 2], (1, 2)),
        (np.array([0, 1]), (0, 1)),
        (range(2), (0, 1)),
        (slice(0, 2), (0, 1)),
        (slice(np.int64(2)), (0, 1)),
        (slice(1, None, 2), (1, 3)),
        (slice(-2, None), (2, 3)),
        (slice(0, -2), (0, 1)),
    ],
    ids=str,
)
def test_coordinates_may_be_written_as_numpy_has_them(source: Any, kept: int | tuple[int, ...]) -> None:
    task = hm.Task("t", 10, 4, features={"x": source})
    assert task.features["x"] == kept
    json.dumps(dict(task.features))  # as runs keep them
    seen = np.arange(8.0).reshape(2, 4)
    wanted = seen[:, source].reshape(2, -1)
    np.testing.assert_array_equal(hm.resolve_feature("x", task)(hm.Trajectory(seen, np.zeros((2, 1)))), wanted)


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(TaskError, match="halfcheetah, hopper, walker2d, ant"):
        hm.get_task("hoper")
    with pytest.raises(TaskError, match="cannot make 'NoSuchEnv-v3'"):
        hm.register_task("x", env_id="NoSuchEnv-v3", horizon=3)
    with pytest.raises(TaskError, match="horizon"):
        hm.register_task("x")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"nonsense": 1}, r"Pendulum-v1 does not take the settings {'nonsense': 1}: .*; or give observation_width"),
        ({"render_mode": "film"}, "render_mode|render mode"),
    ],
)
def test_an_environment_that_cannot_be_made_is_one_line(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(TaskError, match=complaint):
        hm.register_task("x", env_id="Pendulum-v1", env_kwargs=settings)


def test_an_environment_that_fails_by_itself_is_not_blamed_on_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise TypeError("no motor")

    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.envs.registration.registry))
    gymnasium.register("Broken-v0", broken)
    with pytest.raises(TaskError, match="the environment of Broken-v0 cannot be made: TypeError"):
        hm.register_task("x", env_id="Broken-v0")


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("Hopper-v5", "Hopper"),
        ("himatch/CheetahVel-v0", "himatch/CheetahVel"),
        ("Robot-vision", "Robot-vision"),
        ("Robot-vision-v12", "Robot-vision"),
        ("Robot", "Robot"),
    ],
)
def test_the_name_of_an_environment_is_what_its_versions_share(env_id: str, name: str) -> None:
    assert registry.environment_name(env_id) == name


def test_import_of_a_file_registers_its_tasks(tmp_path: Path) -> None:
    path = tmp_path / "my_tasks.py"
    path.write_text("import himatch\nhimatch.register_task('mine', horizon=7)\n")
    import_tasks(str(path))
    assert hm.get_task("mine").horizon == 7
    for missing in ("nowhere.py", "no_such_module_at_all"):
        with pytest.raises(HimatchError, match=f"^--import {missing}: no such"):
            import_tasks(missing)


def test_a_file_is_a_module_that_gymnasium_and_its_neighbours_find(tmp_path: Path) -> None:
    (tmp_path / "winch.py").write_text(
        "import gymnasium, himatch\n"
        "from winch_parts import Base\n"
        "class Winch(Base):\n"
        "    pass\n"
        "gymnasium.register('Winch-v0', 'winch:Winch', max_episode_steps=12)\n"
        "himatch.register_task('winch', env_id='Winch-v0')\n"
    )
    (tmp_path / "winch_parts.py").write_text(
        "import gymnasium\n"
        "class Base(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(-1, 1, (4,))\n"
        "    action_space = gymnasium.spaces.Box(-1, 1, (2,))\n"
    )
    try:
        import_tasks(str(tmp_path / "winch.py"))
    finally:
        gymnasium.registry.pop("Winch-v0", None)
    assert hm.get_task("winch").horizon == 12


@pytest.mark.parametrize("name", ["counted.py", "json.py", "two.dots.py", "some words.py"])
def test_a_file_runs_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("from pathlib import Path\nPath('runs').open('xb').close()\n")
    for way in (name, str(tmp_path / name), f"./{name}"):
        import_tasks(way)  # a second run would find the file there
    assert (tmp_path / "runs").exists()
    assert json.loads("3") == 3
    assert importlib.import_module("json") is json


def test_a_file_that_was_changed_is_not_taken_for_the_one_that_ran(tmp_path: Path) -> None:
    path = tmp_path / "changing_tasks.py"
    path.write_text("import himatch\nhimatch.register_task('changing', horizon=7)\n")
    import_tasks(str(path))
    path.write_text("import himatch\nhimatch.register_task('changing', horizon=8)\n")
    with pytest.raises(HimatchError, match=r"changing_tasks\.py: the file has changed since it was imported"):
        import_tasks(str(path))


def test_a_module_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks_here.py").write_text("import himatch\nhimatch.register_task('here', horizon=7)\n")
    import_tasks("tasks_here")
    assert hm.get_task("here").horizon == 7


def test_files_of_one_name_in_two_folders_both_run(tmp_path: Path) -> None:
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_name.py").write_text(f"import himatch\nhimatch.register_task({name!r}, horizon=7)\n")
        import_tasks(str(tmp_path / name / "same_name.py"))
        assert hm.get_task(name).horizon == 7


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("import sys\nsys.exit(3)", r"calls sys.exit\(3\)"),
        ("raise RuntimeError('no\\nway')", "failed: RuntimeError: no$"),
        ("raise KeyError", "failed: KeyError$"),
        ("def", "failed: SyntaxError: "),
        ("import no_such_neighbour", "failed: No module named 'no_such_neighbour'"),
    ],
)
@pytest.mark.parametrize("name", ["failing.py", "json.py"])
def test_a_file_that_fails_is_one_line_and_can_be_mended(
    name: str, content: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(HimatchError, match=complaint) as caught:
        import_tasks(str(tmp_path / name))
    assert len(str(caught.value).splitlines()) == 1
    (tmp_path / name).write_text("import himatch\nhimatch.register_task('mended', horizon=7)\n")
    import_tasks(str(tmp_path / name))
    assert hm.get_task("mended").horizon == 7


@pytest.mark.parametrize("of_environment", [False, True])
def test_tasks_come_from_entry_points(of_environment: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        def load(self) -> hm.Task:
            return hm.Task("plugged", 9, env_id="Plug-v1")

    monkeypatch.setattr(registry, "_entry_points_loaded", False)
    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()] if group == "himatch.tasks" else [])
    found = task_of_environment("Plug-v0") if of_environment else hm.get_task("plugged")
    assert found is not None
    assert found.horizon == 9
    assert "plugged" in hm.task_names()
