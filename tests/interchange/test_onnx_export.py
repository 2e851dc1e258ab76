"""Exported policies act as the policy does: in PyTorch for every method, in onnxruntime for every form of the graph."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from random_episodes import episode
from untrained import untrained

import himatch as hm
from himatch.errors import HimatchError
from himatch.interchange import onnx, parity
from himatch.interchange.graph import PolicyGraph, inputs_of, outputs_of
from himatch.interchange.parity import check_parity, windows_of
from himatch.rollout.scoring import actions_on

METHODS: dict[str, tuple[hm.methods.Method, dict[str, Any]]] = {
    "bc": (hm.BC(), {"heads": 2, "layers": 1}),
    "dt": (hm.DT(), {"tokens": "triples", "layers": 1}),
    "cdt": (hm.CDT("x_velocity,z_velocity", bins=5), {"tokens": "pairs", "head": "gaussian", "heads": 2, "layers": 1}),
    "moments": (hm.MomentsDT("x_velocity"), {"context": 1, "tokens": "states", "head": "squashed"}),
    "goal": (hm.GoalDT(), {"tokens": "triples"}),
    "bdt": (hm.BDT(m=2, target_window=4), {}),
    "bdt public": (hm.BDT(m=2, codes="public", public_mask=True, public_start=True), {"tokens": "triples"}),
    "dt-ae": (hm.DTAE(m=2, target_window=4), {"layers": 1}),
    "dt-cpc": (hm.DTCPC(m=2, codes="pseudocode"), {}),
    "dt-e2e": (hm.DTE2E(m=3, target_window=3), {"tokens": "triples"}),
    "meta-bc": (hm.MetaBC(m=3), {"layers": 1}),
    "focal": (hm.FOCAL(m=3), {"layers": 1}),
    "gcsl": (hm.GCSL("x_velocity"), {"head": "gaussian"}),
    "udrl": (hm.UDRL(), {"layers": 1}),
    "rcp": (hm.RCP(given="advantage"), {"layers": 1}),
    "multi-task": (hm.MultiTask("x_velocity"), {"layers": 1}),
    "hipi": (hm.HIPI("x_velocity,z_velocity", candidates=5), {"head": "gaussian"}),
    "gh": (hm.GH("x_velocity"), {"layers": 1}),
}


def test_every_method_is_here() -> None:
    assert {method.name for method, _ in METHODS.values()} == set(hm.methods.METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_the_graph_acts_as_the_policy(name: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    method, form = METHODS[name]
    policy = untrained(method, hopper, tmp_path, seeds=(2, 7), **form).only(7)
    policy.temperature = 0.85
    inputs = windows_of(policy, hopper[3], hopper[8])
    ports = inputs_of(policy)
    assert {port.name: port.shape for port in ports} == {key: array.shape[1:] for key, array in inputs.items()}
    with torch.no_grad():
        found = PolicyGraph(policy)(*(torch.from_numpy(inputs[port.name]) for port in ports))
    action, *codes = found if isinstance(found, tuple) else (found,)
    np.testing.assert_allclose(action, expected_of(policy, inputs, hopper[3], hopper[8]), atol=1e-5)
    assert [tuple(x.shape[1:]) for x in (action, *codes)] == [port.shape for port in outputs_of(policy)]


def expected_of(
    policy: hm.Policy, inputs: dict[str, NDArray[Any]], episode: hm.Trajectory, target: hm.Trajectory
) -> NDArray[np.float32]:
    """What the policy itself does at every step of an episode, by the same noise where it samples."""
    noise = np.float32(policy.temperature) * inputs["noise"] if "noise" in inputs else None
    return actions_on(policy.run, policy.agent, episode, target, noise)[0]


def session_of(path: Path) -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")  # extras; make test has them
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def robot(session: Any) -> Callable[[int, dict[str, NDArray[np.float32]]], NDArray[np.float32]]:
    """A loop that knows nothing but the file: rows shift, the present one comes last."""
    windows = {i.name: np.full((1, *i.shape[1:]), 7, np.float32) for i in session.get_inputs() if i.name != "step"}

    def act(step: int, present: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        for name, row in present.items():
            if name in ("target_states", "noise"):
                windows[name][0] = row
            else:
                windows[name] = np.concatenate([windows[name][:, 1:], row.reshape(1, 1, -1)], axis=1)
        windows["actions"] = np.concatenate([windows["actions"][:, 1:], np.zeros((1, 1, 3), np.float32)], axis=1)
        (action,) = session.run(["action"], {**windows, "step": np.array([step])})
        windows["actions"][0, -1] = action[0]
        return np.asarray(action[0])

    return act


@pytest.mark.parametrize(
    "name", ["dt", "cdt", "moments", "bdt public", "dt-ae", "dt-cpc", "meta-bc", "focal", "gcsl", "rcp"]
)
def test_onnxruntime_acts_as_the_controller(
    name: str, hopper: hm.TrajectoryDataset, tmp_path: Path, sample_by: Callable[[Any], None]
) -> None:
    """The controller keeps its own context and computes the last token alone: nothing here is shared with the file.

    BC does so in test_deployed.py.
    """
    method, form = METHODS[name]
    policy = untrained(method, hopper, tmp_path, seeds=(2, 7), **form)
    policy.temperature = 0.85
    pytest.importorskip("onnxscript")
    found = hm.export_onnx(policy, tmp_path / "policy.onnx", seed=7)
    assert 0 < found.random < 1e-5
    assert found.kept is None
    act = robot(session_of(tmp_path / "policy.onnx"))
    target, rng = hopper[5], np.random.default_rng(0)
    controller = policy.controller(target, seed=7)
    noise = np.random.default_rng(1).standard_normal((99, 3), np.float32)
    sampled = policy.agent.policy.stochastic
    sample_by(noise)
    drawn = iter(noise)
    for _ in range(2):  # the second episode finds the first one's rows in the windows
        controller.reset()
        for step in range(2 * policy.context + 2):
            present = {"states": rng.normal(size=11).astype(np.float32)}
            if sampled:
                present["noise"] = next(drawn)
            if isinstance(policy.statistic, hm.InformationStatistic):
                present["z"] = policy.statistic(target)[min(step, len(target) - 1)]
            elif name in ("meta-bc", "focal"):
                present["z"] = policy.only(7).embed([target])[0, 0].numpy()
            elif policy.agent.codes_of_states:
                times = step + policy.agent.spec.rollout_start + np.arange(session_shape(policy, "target_states")[0])
                present["target_states"] = target.observations[np.maximum(times, 0)]
                if step == 0 and name == "bdt public":
                    present["target_states"] = present["target_states"][::-1, ::-1]
            np.testing.assert_allclose(act(step, present), controller.act(present["states"]), atol=1e-4)


def session_shape(policy: hm.Policy, name: str) -> tuple[int, ...]:
    return next(port.shape for port in inputs_of(policy) if port.name == name)


def test_what_the_file_says_and_takes(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path, seeds=(2, 7), layers=1)
    path = tmp_path / "somewhere" / "policy.onnx"
    hm.export_onnx(policy, path)
    assert [p.name for p in path.parent.iterdir()] == ["policy.onnx"]  # weights and all
    session = session_of(path)
    shapes = {i.name: i.shape for i in session.get_inputs()}
    assert shapes == {"z": ["batch", 5, 31], "states": ["batch", 5, 11], "actions": ["batch", 5, 3], "step": ["batch"]}
    about = session.get_modelmeta().custom_metadata_map
    assert (about["task"], about["seed"], about["context"]) == ("hopper", "2", "5")
    assert about["himatch_version"] == hm.__version__
    assert about["data_hash"] == hopper.content_hash
    assert json.loads(about["method"])["name"] == "cdt"
    aggregator = json.loads(about["statistic"])["aggregator"]
    velocities = hopper.observations[:, 5]
    np.testing.assert_allclose((*aggregator["low"], *aggregator["high"]), (velocities.min(), velocities.max()))
    meanings = {port["name"]: port["meaning"] for port in json.loads(about["inputs"])}
    assert set(meanings) == set(shapes)
    assert "5 is x_velocity" in meanings["states"]
    assert f"31 equal bins from {velocities.min():.9g}" in meanings["z"]
    # Any number of robots, each at a step of its own, also past the horizon.
    inputs = windows_of(policy.only(2), hopper[9], hopper[9])
    together = session.run(["action"], inputs)[0]
    for i in (0, 3, 17):
        alone = session.run(["action"], {name: array[i : i + 1] for name, array in inputs.items()})[0]
        np.testing.assert_allclose(alone[0], together[i], atol=1e-5)
    late = [session.run(["action"], inputs | {"step": inputs["step"] + far})[0] for far in (2000, 5000)]
    np.testing.assert_array_equal(*late)


@pytest.mark.parametrize("head", ["gaussian", "squashed"])
def test_a_stochastic_policy_samples(head: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """One test for each form, because the export takes most of its time."""
    pytest.importorskip("onnxscript")
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path, layers=1, head=head)
    policy.temperature = 0.4
    path = tmp_path / "policy.onnx"
    assert hm.export_onnx(policy, path).random < 1e-5
    session = session_of(path)
    check_what_it_says(session, head)
    check_noise_counts(session, policy, hopper)
    check_distribution(session, policy, hopper)
    policy.temperature = 0.5  # not what is in the file
    with pytest.raises(HimatchError, match="onnxruntime does not agree with himatch"):
        check_parity(policy, path)


def check_what_it_says(session: Any, head: str) -> None:
    assert {i.name: i.shape for i in session.get_inputs()}["noise"] == ["batch", 3]
    about = session.get_modelmeta().custom_metadata_map
    assert (about["head"], json.loads(about["temperature"])) == (head, 0.4)
    (meaning,) = [port["meaning"] for port in json.loads(about["inputs"]) if port["name"] == "noise"]
    assert "standard normal" in meaning
    assert json.loads(about["outputs"])[0]["meaning"].startswith("raw, sampled action of hopper")


def check_noise_counts(session: Any, policy: hm.Policy, data: hm.TrajectoryDataset) -> None:
    """Zeros give the mean action, and what is sampled by other numbers lies to the side that their signs say."""
    inputs = windows_of(policy, data[3], data[8])
    (sampled,) = session.run(["action"], inputs)
    (mean,) = session.run(["action"], inputs | {"noise": np.zeros_like(inputs["noise"])})
    np.testing.assert_allclose(sampled, expected_of(policy, inputs, data[3], data[8]), atol=1e-5)
    np.testing.assert_allclose(mean, policy.actions(data[3], data[8])[0], atol=1e-5)
    apart = np.abs(sampled - mean) > 1e-3
    assert apart.mean() > 0.5
    np.testing.assert_array_equal(np.sign(sampled - mean)[apart], np.sign(inputs["noise"])[apart])


def check_distribution(session: Any, policy: hm.Policy, data: hm.TrajectoryDataset, robots: int = 4000) -> None:
    """Many robots that see the same, each with noise of its own, beside as many of a controller."""
    inputs = {
        name: np.repeat(array[:1], robots, axis=0) for name, array in windows_of(policy, data[3], data[8]).items()
    }
    noise = np.random.default_rng(2).standard_normal((robots, 3), np.float32)
    (exported,) = session.run(["action"], inputs | {"noise": noise})
    own = policy.controller(data[8], batch=robots).act(np.repeat(data[3].observations[:1], robots, axis=0))
    assert (own.std(axis=0) > 0.1).any()
    error = 5 * own.std(axis=0).max() * np.sqrt(2 / robots)
    np.testing.assert_allclose(exported.mean(axis=0), own.mean(axis=0), atol=error)
    np.testing.assert_allclose(exported.std(axis=0), own.std(axis=0), atol=error)


def test_at_temperature_zero_there_is_no_noise(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    policy = untrained(hm.BC(), hopper, tmp_path, layers=1, head="gaussian")
    policy.temperature = 0.0
    hm.export_onnx(policy, tmp_path / "policy.onnx")
    session = session_of(tmp_path / "policy.onnx")
    assert [i.name for i in session.get_inputs()] == ["states", "actions", "step"]
    about = session.get_modelmeta().custom_metadata_map
    assert (about["head"], json.loads(about["temperature"])) == ("gaussian", 0.0)
    assert json.loads(about["outputs"])[0]["meaning"].startswith("raw, mean action of hopper")
    (action,) = session.run(["action"], windows_of(policy, hopper[3], hopper[3]))
    np.testing.assert_allclose(action, policy.actions(hopper[3])[0], atol=1e-5)


def test_a_file_that_differs_is_not_written(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript")
    policy = untrained(hm.BC(), hopper, tmp_path, seeds=(2, 7), layers=1)
    path = tmp_path / "policy.onnx"
    trace, traced = onnx._trace, list[Any]()
    monkeypatch.setattr(onnx, "_trace", lambda *given: traced.append(trace(*given)) or traced[0])
    hm.export_onnx(policy, path, seed=2)
    assert check_parity(policy.only(2), path).random < 1e-5
    with pytest.raises(HimatchError, match="onnxruntime does not agree with himatch: largest difference"):
        check_parity(policy.only(7), path)
    monkeypatch.setattr(parity, "TOLERANCE", 0.0)
    monkeypatch.setattr(onnx, "_trace", lambda *_: traced[0])  # the same seed; to trace it again takes seconds
    with pytest.raises(HimatchError, match="no file was written"):
        hm.export_onnx(policy, tmp_path / "other" / "policy.onnx")
    assert not list((tmp_path / "other").iterdir())


def test_episodes_that_the_run_keeps_are_compared_too(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    rng = np.random.default_rng(0)
    data = hm.load_dataset([episode(rng, 40, level=i / 5) for i in range(20)], "hopper")
    small: dict[str, Any] = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "quiet": True}
    policy = hm.train(hm.DT(), hm.paper_split(data), out=tmp_path / "run", **small)
    found = hm.export_onnx(policy, tmp_path / "policy.onnx")
    assert found.kept is not None
    assert found.windows == 3 * (3 * policy.context + 5) + 3 * 40
    assert "on the run's own episodes" in str(found)


def test_what_cannot_be_exported(hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = untrained(hm.BC(), hopper, tmp_path, seeds=(2, 7), layers=1)
    with pytest.raises(HimatchError, match=r"choose it with policy\.only"):
        PolicyGraph(policy)
    for module in ("onnx", "onnxruntime", "onnxscript"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(HimatchError, match=r'pip install "himatch\[onnx\]"'):
                hm.export_onnx(policy, tmp_path / "policy.onnx")
    pytest.importorskip("onnxscript")
    with pytest.raises(HimatchError, match="has the seeds 2, 7, not 3"):
        hm.export_onnx(policy, tmp_path / "policy.onnx", seed=3)
