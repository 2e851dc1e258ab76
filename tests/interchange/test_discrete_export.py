"""Exported policies choose as the policy does, and say the number of what they chose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from grid_world import ACTIONS, STEPS, grid, task, walks
from untrained import untrained

import himatch as hm
from himatch.deployed import ExportedTargets
from himatch.interchange.graph import PolicyGraph, inputs_of, outputs_of
from himatch.interchange.parity import windows_of
from himatch.methods import METHODS
from himatch.rollout.scoring import actions_on

__all__ = ["grid"]


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(walks(12), task())


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.chooses])
def test_the_graph_chooses_as_the_policy(
    name: str, temperature: float, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    if name == "multi-task":  # whose labels are numbers
        data = hm.load_dataset([replace(episode, label=None) for episode in data], data.task)
    policy = untrained(hm.make_method(name), data, tmp_path, head=None)
    policy.temperature = temperature
    inputs = windows_of(policy, data[3], data[8])
    assert ("noise" in inputs) == (temperature > 0)
    with torch.no_grad():
        found = PolicyGraph(policy)(*(torch.from_numpy(inputs[port.name]) for port in inputs_of(policy)))
    assert isinstance(found, tuple)
    noise = np.float32(temperature) * inputs["noise"] if temperature else None
    expected = actions_on(policy.run, policy.agent, data[3], data[8], noise, temperature)[0]
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], ACTIONS.numbers(expected))
    assert [tuple(x.shape[1:]) for x in found] == [port.shape for port in outputs_of(policy)]


def test_a_robot_acts_as_the_controller(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """The controller computes the last token alone, and counts its own actions; here numbers are handed over."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    policy = untrained(hm.DT("act[1]"), data, tmp_path / "run", head=None, tokens="triples")
    policy.temperature = 0.0
    found = hm.export_onnx(policy, tmp_path / "p.onnx", targets=["return(1)"])
    assert found.random < 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "p.onnx", providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["discrete"]) == {"count": 5, "start": 1}
    assert about["head"] == "categorical"
    exported = ExportedTargets(tmp_path / "p.z.npz", conditioning="remaining")
    controller = policy.controller("return(1)", conditioning="remaining")
    windows: dict[str, Any] = {
        i.name: np.zeros((1, *i.shape[1:]), np.float32) for i in session.get_inputs() if i.name != "step"
    }
    for step, seen in enumerate(data[4].observations):
        present = {"states": seen, "actions": np.zeros(5), "z": exported.inputs(step)["z"]}
        for name, row in present.items():
            windows[name] = np.roll(windows[name], -1, axis=1)
            windows[name][0, -1] = row
        rows, numbers = session.run(["action", "number"], {**windows, "step": np.array([step])})
        assert numbers[0] == ACTIONS.numbers(rows[0]) == controller.act(seen)
        windows["actions"][0, -1] = rows[0]
        exported.achieved(action=int(numbers[0]))
    with pytest.raises(ValueError, match="the action is a number from 1 to 5, got 0"):
        exported.achieved(action=0)
    windows["states"][0, -1, 0] = np.nan
    rows, numbers = session.run(["action", "number"], {**windows, "step": np.array([STEPS])})
    assert np.isnan(rows).all()
    assert numbers.tolist() == [ACTIONS.start - 1]


def test_hugging_faces_model_has_no_discrete_actions(tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match="Hugging Face's Decision Transformer has continuous ones"):
        hm.import_hugging_face(tmp_path, tmp_path / "run", task=task())


def test_a_bundle_samples_as_its_run(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    from himatch.interchange.bundle import bundle

    hm.train(
        hm.CDT("x"), data, out=tmp_path / "run", split="random", preset="cpu", steps=4, width=16, layers=1, quiet=True
    )
    bundled = bundle(tmp_path / "run", tmp_path / "bundle", episodes=1)
    assert (bundled.temperature, bundled.task.discrete) == (1.0, ACTIONS)
