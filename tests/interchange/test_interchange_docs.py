"""What docs/interchange.md shows is executed: the file steers a robot as the controller does, without himatch."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from document_blocks import ROOT, blocks
from numpy.typing import NDArray
from untrained import fallen_hoppers, untrained

import himatch as hm

pytest.importorskip("onnxruntime")  # extras; make test has them
pytest.importorskip("onnxscript")

PAGE = "docs/interchange.md"
DOCS = ROOT / PAGE


class Robot:
    """A simulated one, which keeps a log."""

    def __init__(self) -> None:
        self.env = gymnasium.make("Hopper-v5")
        self.seen: list[NDArray[np.float64]] = []
        self.rewards: list[float] = []
        self.actions: list[NDArray[np.float32]] = []

    def reset(self) -> NDArray[np.float64]:
        self.seen.append(self.env.reset(seed=3)[0])
        return self.seen[-1]

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float64], float, bool]:
        seen, reward, terminated, truncated, _ = self.env.step(action)
        self.seen.append(seen)
        self.rewards.append(float(reward))
        self.actions.append(action)
        return seen, float(reward), terminated or truncated


def programs() -> list[str]:
    return [block.code for block in blocks(PAGE) if block.language == "python"]


@pytest.mark.filterwarnings("ignore:.*lies beyond every training episode")
def test_the_loop_steers_as_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = hm.load_dataset(fallen_hoppers(range(8), 0.3), "hopper")
    policy = untrained(hm.DT(), data, tmp_path / "run", layers=1)
    hm.export_onnx(policy, "policy.onnx")
    names: dict[str, object] = {}
    setup, loop = programs()[:2]
    exec(setup, names)
    for _ in range(2):  # nothing has to be cleared between episodes
        robot = Robot()
        exec(loop, names | {"robot": robot})
        assert len(robot.actions) > policy.context + 2
        controller = policy.controller("return(3000)", conditioning="remaining", limits="off")
        for step, action in enumerate(robot.actions):
            reward = None if step == 0 else robot.rewards[step - 1]
            np.testing.assert_allclose(action, controller.act(robot.seen[step], reward), atol=2e-4)


def test_the_loop_samples_as_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample_by: Callable[[Any], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = hm.load_dataset(fallen_hoppers(range(8), 0.3), "hopper")
    policy = untrained(hm.BC(), data, tmp_path / "run", layers=1, head="gaussian")
    hm.export_onnx(policy, "policy.onnx")
    names: dict[str, Any] = {}
    exec(programs()[0], names)
    controller = policy.controller(data[2])
    sample_by(np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32))
    for step, observation in enumerate(data[3].observations[:9]):
        action = names["act"](step, states=observation)
        np.testing.assert_allclose(action, controller.act(observation), atol=1e-4)


def test_the_loop_imitates_as_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = hm.load_dataset(fallen_hoppers(range(8), 0.3), "hopper")
    policy = untrained(hm.BDT(m=2, target_window=4), data, tmp_path / "run", layers=1)
    hm.export_onnx(policy, "policy.onnx")
    names: dict[str, object] = {}
    exec(programs()[0], names)
    (call,) = re.findall(r"`(act\(step, states=.*?)`", DOCS.read_text())
    demo, controller = data[2].observations, policy.controller(data[2])
    known = names | {"demo": demo, "T": len(demo), "S": 4}
    for step, observation in enumerate(data[3].observations[:9]):
        action = eval(call, known | {"step": step, "observation": observation})
        np.testing.assert_allclose(action, controller.act(observation), atol=1e-4)


def test_the_loop_needs_nothing_of_himatch() -> None:
    code = (
        programs()[0].partition("session =")[0]
        + "import sys; print('torch' in sys.modules or 'himatch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_distribution_by_hand_is_himatchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = hm.load_dataset(fallen_hoppers(range(8), 0.3), "hopper")
    policy = untrained(hm.CDT("x_velocity", bins=7), data, tmp_path / "run", layers=1)
    hm.export_onnx(policy, "policy.onnx")
    setup, *_, by_hand = programs()  # test_deployed.py executes those between
    names: dict[str, Any] = {}
    exec(setup, names)
    exec(by_hand, names)
    assert isinstance(policy.statistic, hm.InformationStatistic)
    np.testing.assert_allclose(names["z"], policy.statistic.aggregator(names["samples"][:, None])[0], atol=1e-6)


def test_the_settings_it_speaks_of_exist() -> None:
    from himatch.cli.interchange import ImportWeights

    named = set(re.findall(r"`--([a-z-]+)", DOCS.read_text().partition("# Hugging Face's")[2]))
    known = {name.replace("_", "-") for name in ImportWeights.__dataclass_fields__}
    assert named - {"conditioning"} <= known
