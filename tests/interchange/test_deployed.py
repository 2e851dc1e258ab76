"""The z of targets beside an exported model: a loop with NumPy and onnxruntime acts as the controller does."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from document_blocks import blocks
from known_programs import know_programs
from random_episodes import episode
from untrained import untrained

import himatch as hm
from himatch.deployed import ExportedTargets
from himatch.errors import HimatchError, HimatchWarning
from himatch.interchange.facts import facts_of, feature_from, run_hash
from himatch.interchange.graph import PolicyGraph, inputs_of, outputs_of
from himatch.interchange.ztables import z_file, z_tables
from himatch.methods import Method
from himatch.methods.normalizers import Normalizers
from himatch.policy import Policy
from himatch.rollout import CONDITIONINGS
from himatch.runs.run import Run
from himatch.statistics.features import resolve_feature

pytest.importorskip("onnxruntime")  # extras; make test has them
pytest.importorskip("onnxscript")

pytestmark = pytest.mark.filterwarnings("ignore:.*lies (where no|beyond every) training episode")


OF_DISTRIBUTIONS = tuple(c for c in CONDITIONINGS if c != "waypoints")  # those of a CDT


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng, 30, level=i / 5) for i in range(6)], "hopper")


def documented() -> Callable[..., Any]:
    """The loop of docs/interchange.md."""
    (code,) = [b.code for b in blocks("docs/interchange.md") if "ExportedTargets(" in b.code]
    assert len(code.strip().splitlines()) <= 30
    return lambda **names: exec(code, names)


class Log:
    """A robot that replays a log, whatever it is made to do."""

    def __init__(self, episode: hm.Trajectory) -> None:
        self.episode, self.actions = episode, list[Any]()

    def reset(self) -> Any:
        self.actions.clear()
        return self.episode.observations[0]

    def step(self, action: Any) -> tuple[Any, float, bool]:
        self.actions.append(action.copy())
        step = len(self.actions)
        assert self.episode.rewards is not None
        ended = step == len(self.episode)
        return self.episode.observations[min(step, len(self.episode) - 1)], float(self.episode.rewards[step - 1]), ended


class Untraced:
    """Stands in for onnxruntime: the graph before it is traced, which takes seconds and is tested elsewhere."""

    def __init__(self, policy: Policy) -> None:
        self.ports, self.graph = inputs_of(policy), PolicyGraph(policy)

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=port.name, shape=["batch", *port.shape]) for port in self.ports]

    def run(self, names: list[str], given: dict[str, Any]) -> list[Any]:
        assert names == ["action"]
        with torch.no_grad():
            found = self.graph(*(torch.from_numpy(given[port.name]) for port in self.ports))
        return [(found[0] if isinstance(found, tuple) else found).numpy()]


def check(policy: Policy, target: Any, conditionings: tuple[str, ...], data: hm.TrajectoryDataset, path: Path) -> None:
    assert data[2].rewards is not None
    for conditioning in conditionings:
        robot = Log(data[2])
        documented()(robot=robot, path=str(path), target=1, conditioning=conditioning)
        controller = policy.controller(target, conditioning=conditioning)  # type: ignore[arg-type]
        for step, action in enumerate(robot.actions):
            reward = float(data[2].rewards[step - 1]) if step else None
            expected = controller.act(data[2].observations[step], reward)
            np.testing.assert_allclose(action, expected, atol=1e-5)
        assert step + 1 == len(data[2])


@pytest.mark.parametrize(
    ("method", "target", "conditionings", "traced"),
    [
        (hm.CDT("x_velocity", bins=7), "normal(0.5,0.3)", OF_DISTRIBUTIONS, True),
        (hm.CDT("x_velocity", bins=7, z="counts"), None, OF_DISTRIBUTIONS, False),
        (hm.CDT("x_velocity,act[1]", bins=5), None, OF_DISTRIBUTIONS, False),
        (hm.DT(), "return(40)", ("nominal", "remaining", "rehearsed"), False),
        (hm.MomentsDT("x_velocity", order=4), None, ("nominal", "remaining", "rehearsed"), False),
        (hm.GoalDT("obs[3]"), None, ("nominal", "remaining", "rehearsed"), False),
        (hm.GCSL("x_velocity"), "goal(0.5, within=9)", ("nominal", "rehearsed"), False),
        (hm.UDRL(), "return(30, within=25)", ("nominal", "remaining", "rehearsed"), False),
        (hm.BDT(m=2, target_window=4, look_ahead=3), None, ("nominal",), True),
        (hm.BDT(m=2, codes="pseudocode"), None, ("nominal",), False),
        (hm.MetaBC(m=2, encoder=(8,)), None, ("nominal",), False),
        (hm.BC(), None, ("nominal",), False),
    ],
    ids=lambda x: x.name if isinstance(x, Method) else "",
)
def test_the_loop_of_the_docs_acts_as_the_controller(
    method: Method,
    target: str | None,
    conditionings: tuple[str, ...],
    traced: bool,
    data: hm.TrajectoryDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = untrained(method, data, tmp_path, layers=1)
    wanted = data[5][:20] if target is None else target
    if "rehearsed" in conditionings:
        know_programs(policy, [data[0], wanted])
    if traced:
        hm.export_onnx(policy, tmp_path / "policy.onnx", targets=[data[0], wanted])
    else:
        np.savez(tmp_path / "policy.z.npz", **z_tables(policy, [data[0], wanted], facts(policy)))
        monkeypatch.setattr("onnxruntime.InferenceSession", lambda path: Untraced(policy))
    check(policy, wanted, conditionings, data, tmp_path / "policy.onnx")
    assert ExportedTargets(tmp_path / "policy.z.npz").about["conditionings"] == list(conditionings)


@pytest.mark.parametrize("head", ["gaussian", "squashed"])
def test_the_loop_of_the_docs_samples_as_the_controller(
    head: str,
    data: hm.TrajectoryDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sample_by: Callable[[Any], None],
) -> None:
    """By the same noise; its seed in the loop is 0."""
    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path, layers=1, head=head)
    policy.temperature = 0.3
    np.savez(tmp_path / "policy.z.npz", **z_tables(policy, [data[0], "normal(0.5,0.3)"], facts(policy)))
    monkeypatch.setattr("onnxruntime.InferenceSession", lambda path: Untraced(policy))
    sample_by(np.random.default_rng(0).standard_normal((len(data[2]), 3), np.float32))
    check(policy, "normal(0.5,0.3)", ("remaining",), data, tmp_path / "policy.onnx")


def test_noise_is_standard_normal_and_each_robots_own(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.BC(), data, tmp_path, head="gaussian")
    policy.temperature = 0.85
    np.savez(tmp_path / "z.npz", **z_tables(policy, [data[0]], facts(policy)))

    def drawn(targets: ExportedTargets, steps: int = 9) -> Any:
        return np.array([targets.inputs(step)["noise"] for step in range(steps)])

    first = ExportedTargets(tmp_path / "z.npz")
    robots = [first, first.another(), first.another()]
    many = [drawn(robot, 2000) for robot in robots]
    assert many[0].shape == (2000, 3)
    assert many[0].dtype == np.float32
    np.testing.assert_allclose(np.corrcoef(np.concatenate(many, axis=1).T), np.eye(9), atol=0.1)
    np.testing.assert_allclose([noise.std() for noise in many], 1.0, atol=0.05)
    first.reset()
    assert not np.isin(drawn(first), many[0]).any()  # another episode, other numbers
    again = ExportedTargets(tmp_path / "z.npz", noise=0)
    np.testing.assert_array_equal(drawn(again), many[0][:9])
    np.testing.assert_array_equal(drawn(again.another()), many[1][:9])
    assert not np.isin(drawn(ExportedTargets(tmp_path / "z.npz", noise=1)), many[0]).any()
    policy.temperature = 0.0
    np.savez(tmp_path / "mean.npz", **z_tables(policy, [data[0]], facts(policy)))
    assert ExportedTargets(tmp_path / "mean.npz").inputs(0) == {}


def test_a_target_in_mid_episode_and_by_name(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path)
    np.savez(tmp_path / "z.npz", **z_tables(policy, ["normal(0.5,0.3)", "point(1)"], facts(policy)))
    targets = ExportedTargets(tmp_path / "z.npz", "point(1)", "remaining")
    controller = policy.controller("point(1)", conditioning="remaining")
    for step, row in enumerate(data[2].observations[:9]):
        if step == 4:
            targets.retarget(0)
            controller.retarget("normal(0.5,0.3)")
        action = controller.act(row)
        assert controller._player._z is not None
        np.testing.assert_allclose(targets.inputs(step)["z"], controller._player._z[0, 0], atol=1e-7)
        targets.achieved(row, action)
    targets.reset()
    np.testing.assert_array_equal(targets.inputs(0)["z"], ExportedTargets(tmp_path / "z.npz").inputs(0)["z"])


@pytest.mark.parametrize("conditioning", OF_DISTRIBUTIONS)
def test_targets_that_follow_one_another(conditioning: str, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path)
    texts = ["normal(0.5,0.3) for 3 then point(1) for 3 then point(-1)", "point(1) for 2 then normal(0.5,0.3)"]
    know_programs(policy, texts)
    np.savez(tmp_path / "z.npz", **z_tables(policy, texts, facts(policy)))
    targets = ExportedTargets(tmp_path / "z.npz", texts[0], conditioning)
    assert targets.about["z_format"] == 2
    controller = policy.controller(texts[0], conditioning=conditioning)  # type: ignore[arg-type]
    for step, row in enumerate(data[2].observations[:12]):
        if step == 8:
            targets.retarget(1)
            controller.retarget(texts[1])
        action = controller.act(row)
        assert controller._player._z is not None
        # A controller counts a step when the next begins, and so the last one before a retarget in the new part.
        slack = 1e-7 if step < 8 or conditioning != "remaining" else 1e-3
        np.testing.assert_allclose(targets.inputs(step)["z"], controller._player._z[0, 0], atol=slack)
        targets.achieved(row, action)
    targets.reset()
    again = ExportedTargets(tmp_path / "z.npz", texts[1], conditioning)
    np.testing.assert_array_equal(targets.inputs(0)["z"], again.inputs(0)["z"])


class Session:
    """In place of onnxruntime's: acts as controllers do, and compares what it is given with what they are given."""

    def __init__(self, controllers: list[Any]) -> None:
        self.controllers = controllers

    def get_inputs(self) -> list[Any]:
        shapes = {"states": (5, 11), "actions": (5, 3), "z": (5, 7), "step": ()}
        return [SimpleNamespace(name=name, shape=("batch", *shape)) for name, shape in shapes.items()]

    def run(self, _: list[str], given: dict[str, Any]) -> tuple[Any]:
        actions = [one.act(row[-1]) for one, row in zip(self.controllers, given["states"], strict=True)]
        for one, z, step in zip(self.controllers, given["z"], given["step"], strict=True):
            np.testing.assert_allclose(z[-1], one._player._z[0, 0], atol=1e-7)
            assert step == one._player.clock[0, 0] - 1
        return (np.array(actions),)


@pytest.mark.parametrize("conditioning", OF_DISTRIBUTIONS)
def test_several_robots_from_one_file(conditioning: Any, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Each with its own target, its own count, and at its own step: the second begins anew while the others go on."""
    policy, wanted = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path), [data[0], data[5]]
    know_programs(policy, wanted)
    np.savez(tmp_path / "z.npz", **z_tables(policy, wanted, facts(policy)))
    targets = ExportedTargets(tmp_path / "z.npz", 1, conditioning)
    session = Session([policy.controller(wanted[i], conditioning=conditioning) for i in (0, 1, 0)])
    (code,) = [b.code for b in blocks("docs/interchange.md") if "targets.another(" in b.code]
    names: dict[str, Any] = {"np": np, "session": session, "targets": targets}
    exec(code, names)
    before, steps = targets.inputs(0)["z"], [0, 0, 0]
    for row in range(12):
        if row == 7:
            steps[1] = 0
            names["each"][1].reset()
            session.controllers[1].reset()
        seen = [data[robot].observations[row] for robot in (2, 3, 4)]
        for robot, action in enumerate(names["act"](seen, steps)):
            names["each"][robot].achieved(seen[robot], action)
            steps[robot] += 1
    np.testing.assert_array_equal(targets.inputs(0)["z"], before)  # the others' steps are not its


def facts(policy: Policy) -> dict[str, Any]:
    return facts_of(policy, inputs_of(policy), outputs_of(policy), 0.5, clamped=False)


def test_what_it_refuses(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    task = replace(hm.get_task("hopper"), features={"double": lambda obs, act, rew: 2 * obs[:, 5]})
    policy = untrained(hm.CDT("double"), hm.load_dataset(list(data), task), tmp_path)
    np.savez(tmp_path / "z.npz", **z_tables(policy, "normal(1,0.6)", facts(policy)))
    targets = ExportedTargets(tmp_path / "z.npz", conditioning="remaining")
    with pytest.raises(ValueError, match=r"double is a function of your own; hand over its value: achieved\(phi=...\)"):
        targets.achieved(data[0].observations[0])
    targets.achieved(phi=2 * data[0].observations[0, 5])
    with pytest.raises(ValueError, match=r"no target 'point\(3\)' in the file; it has 0 normal\(1,0.6\)"):
        targets.retarget("point(3)")
    with pytest.raises(ValueError, match="nominal, remaining, planned conditioning, not 'ajar'"):
        ExportedTargets(tmp_path / "z.npz", conditioning="ajar")
    rewarded = untrained(hm.DT(), data, tmp_path / "dt")
    np.savez(tmp_path / "dt.npz", **z_tables(rewarded, ["return(40)"], facts(rewarded)))
    with pytest.raises(ValueError, match="remaining conditioning on reward needs the reward"):
        ExportedTargets(tmp_path / "dt.npz", conditioning="remaining").achieved(data[0].observations[0])
    other = hm.demo(episode(np.random.default_rng(0), 5, 27, 3))
    with pytest.raises(HimatchError, match="shows observations of 27"):
        hm.export_onnx(rewarded, tmp_path / "policy.onnx", targets=[other])
    assert not (tmp_path / "policy.onnx").exists()


@pytest.fixture
def remaining(data: hm.TrajectoryDataset, tmp_path: Path) -> Path:
    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path)
    np.savez(tmp_path / "z.npz", **z_tables(policy, ["normal(1,0.05)", "point(1)"], facts(policy)))
    return tmp_path / "z.npz"


def test_targets_by_number_and_name(remaining: Path) -> None:
    for target in (5, 2, -1, True, 0.0, None, "normal(1,0.06)", "normal (1,0.05"):
        with pytest.raises(ValueError, match=r"there is no target .* it has 0 normal\(1,0.05\), 1 point\(1\)$"):
            ExportedTargets(remaining, target)  # type: ignore[arg-type]
    targets = ExportedTargets(remaining, 1)
    with pytest.raises(ValueError, match="there is no target 9"):
        targets.retarget(9)
    expected = ExportedTargets(remaining, 0).inputs(0)["z"]
    for name in ("normal(1,0.05)", "normal(1.0, 5e-2)", " normal( 1. ,.05 ) "):
        targets.retarget(1)
        targets.retarget(name)
        np.testing.assert_array_equal(targets.inputs(0)["z"], expected)
    with pytest.raises(ValueError, match="the step is a whole number from 0 up"):
        targets.inputs(-1)


def test_steps_that_cannot_be_counted(remaining: Path, data: hm.TrajectoryDataset) -> None:
    targets = ExportedTargets(remaining, conditioning="remaining")
    row, action, before = data[0].observations[0], data[0].actions[0], targets.inputs(0)["z"]
    broken = row.copy()
    broken[5] = np.nan
    cases: list[tuple[dict[str, Any], str]] = [
        ({"observation": row[:10]}, r"the observation must be 11 numbers, got an array of shape \(10,\)"),
        ({"observation": row, "action": action[:1]}, r"the action must be 3 numbers, got an array of shape \(1,\)"),
        ({"observation": broken}, "the observation holds NaN or infinity; what was achieved cannot be counted"),
        ({"observation": "high"}, "the observation must be 11 numbers, got 'high'"),
        ({"phi": [1.0, 2.0]}, r"phi must be 1 numbers, got an array of shape \(2,\)"),
        ({"phi": np.inf}, "phi holds NaN"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            targets.achieved(**given)
    np.testing.assert_array_equal(targets.inputs(0)["z"], before)
    targets.achieved(row, action, np.nan)  # a reward that nobody needs


def test_damaged_files_are_one_line(remaining: Path, tmp_path: Path) -> None:
    content, path = remaining.read_bytes(), tmp_path / "damaged.z.npz"
    rng = np.random.default_rng(0)
    damaged = [content[:n] for n in rng.integers(0, len(content), 20)] + [b"", b"onnx", b"PK" * 50]
    for damage in damaged:
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=r"damaged.z.npz is damaged, or no file that himatch export") as raised:
            ExportedTargets(path)
        assert "\n" not in str(raised.value)
    for place in rng.integers(0, len(content), 100):  # a bit may lie where nothing is
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        with contextlib.suppress(ValueError):
            ExportedTargets(path, conditioning="remaining").inputs(0)
    with np.load(remaining) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "total-1"}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="is damaged, or no file"):
        ExportedTargets(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(ValueError, match="is damaged, or no file"):
        ExportedTargets(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError, match="himatch export --target writes it beside the model"):
        ExportedTargets(tmp_path / "none.z.npz")


def test_a_target_that_the_data_does_not_cover_is_noted(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path)
    with pytest.warns(HimatchWarning, match=r"100% of normal\(90,1\) lies where no training episode goes"):
        z_tables(policy, "normal(90,1)", facts(policy))


def test_it_needs_numpy_alone() -> None:
    code = "import sys, himatch.deployed; print([m for m in ('torch', 'scipy', 'himatch.errors') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    source = Path(sys.modules["himatch.deployed"].__file__ or "").read_text()
    assert not re.search(r"^\s*(from|import) himatch", source, re.MULTILINE)  # a copy of the file is enough


# -- what the model says, and its limits --------------------------------------------------------------------------


def test_what_the_model_says_of_itself(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    import onnxruntime

    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path, layers=1)
    names = [f"sensor {i}" for i in range(11)]
    policy.description["data"] |= {
        "columns": {"observations": names, "actions": ["a", "b", "c"]},
        "rate": 50.0,
        "units": {"sensor 3": "rad/s"},
    }
    hm.export_onnx(policy, tmp_path / "policy.onnx", targets=["point(1)"], margin=0.25)
    model = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    about = model.get_modelmeta().custom_metadata_map
    parsed = {name: json.loads(about[name]) for name in ("columns", "action_columns", "units", "rate", "limits", "z")}
    assert parsed["columns"] == names
    assert parsed["action_columns"] == ["a", "b", "c"]
    assert parsed["units"] == {"sensor 3": "rad/s"}
    assert parsed["rate"] == 50.0
    limits = policy.controller(data[0], margin=0.25).limits
    np.testing.assert_array_equal(np.float32(parsed["limits"]["low"]), limits.low)
    np.testing.assert_array_equal(np.float32(parsed["limits"]["high"]), limits.high)
    assert (parsed["limits"]["margin"], parsed["limits"]["clamped"]) == (0.25, False)
    assert parsed["z"]["feature"] == "x_velocity"
    assert parsed["z"]["feature_from"] == [["observation", 5]]
    assert policy.statistic.bins is not None
    np.testing.assert_array_equal(parsed["z"]["edges"], policy.statistic.bins.edges)
    assert json.loads(about["action_range"]) == {"low": [-1.0] * 3, "high": [1.0] * 3}
    assert (about["head"], json.loads(about["temperature"])) == ("deterministic", None)
    assert about["run_hash"] == run_hash(policy)
    assert len(about["run_hash"]) == 64
    stored = ExportedTargets(z_file(tmp_path / "policy.onnx")).about
    assert {**parsed, "run_hash": about["run_hash"]}.items() <= stored.items()


def test_the_hash_is_that_of_the_weights(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.BC(), data, tmp_path, seeds=(2, 7))
    hashes = [run_hash(policy.only(seed)) for seed in (2, 7, 2)]
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.parametrize("clamp", [True, False])
def test_a_model_that_clamps_and_lets_nothing_pass_that_is_not_finite(
    clamp: bool, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    """One test, because the export takes most of its time."""
    policy = untrained(hm.BC(), data, tmp_path, layers=1)
    hm.export_onnx(policy, tmp_path / "policy.onnx", targets=[data[0]], clamp=clamp)
    assert ExportedTargets(tmp_path / "policy.z.npz").about["limits"]["clamped"] is clamp
    check_clamping(clamp, policy, data, tmp_path)
    check_finite(data, tmp_path)


def check_clamping(clamp: bool, policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    rows = data[2].observations.copy()
    rows[::3, 8] = 9999.0
    robot = Log(replace(data[2], observations=rows))
    documented()(robot=robot, path=str(tmp_path / "policy.onnx"), target=0, conditioning="nominal")
    controller = policy.controller(data[0], limits="clamp" if clamp else "off")
    for row, action in zip(rows, robot.actions, strict=True):
        np.testing.assert_allclose(action, controller.act(row), atol=1e-5)


def check_finite(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    import onnxruntime

    model = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    states = np.repeat(data[2].observations[None, :5], 3, axis=0)
    states[1, -1, 8], states[2, 2, 3] = np.inf, np.nan
    windows = {"states": states, "actions": np.zeros((3, 5, 3), np.float32)}
    (late,) = model.run(["action"], {**windows, "step": np.array([9, 9, 9])})
    np.testing.assert_array_equal(np.isnan(late).all(axis=1), [False, True, True])
    (early,) = model.run(["action"], {**windows, "step": np.array([0, 0, 0])})  # the last row alone is of this episode
    np.testing.assert_array_equal(np.isnan(early).all(axis=1), [False, True, False])
    assert np.isfinite(late[0]).all()
    broken = failing(data[2], 3)
    with pytest.raises(ValueError, match="step 3: the observation holds NaN or infinity"):
        documented()(robot=broken, path=str(tmp_path / "policy.onnx"), target=0, conditioning="nominal")
    assert len(broken.actions) == 3


def failing(episode: hm.Trajectory, step: int) -> Log:
    """A robot one of whose sensors fails at a step."""

    class Failing(Log):
        def step(self, action: Any) -> tuple[Any, float, bool]:
            observation, reward, ended = super().step(action)
            return observation * (np.nan if len(self.actions) == step else 1.0), reward, ended

    return Failing(episode)


def test_nothing_to_clamp_to(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.BC(), data, tmp_path)
    tensors = {name: t for name, t in policy.normalizers.tensors().items() if name not in ("state_low", "state_high")}
    run = policy.run
    older = Policy(Run(run.folder, run.description, run.task, run.statistic, Normalizers.of(tensors)), policy.agent)
    with pytest.raises(HimatchError, match="nothing to clamp to; export without clamp, or train again"):
        hm.export_onnx(older, tmp_path / "policy.onnx", clamp=True)
    assert facts(older)["limits"] is None


def test_where_features_lie() -> None:
    found = {name: feature_from(resolve_feature(name, "hopper"), 3) for name in ("reward", "state", "act[1],obs[2]")}
    assert found == {
        "reward": [["reward", 0]],
        "state": [["observation", 0], ["observation", 1], ["observation", 2]],
        "act[1],obs[2]": [["action", 1], ["observation", 2]],
    }
