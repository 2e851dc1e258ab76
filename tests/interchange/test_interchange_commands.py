"""``himatch export``, ``push`` and ``import`` as a user runs them, and runs from the Hub where a run is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Run
from local_hub import LocalHub
from untrained import fallen_hoppers

import himatch as hm
from himatch.deployed import ExportedTargets
from himatch.errors import HimatchWarning
from himatch.models import model_names

SMALL: dict[str, Any] = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "quiet": True}


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(16)), "hopper")


@pytest.fixture(scope="module")
def trained(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interchange") / "run"
    return hm.train(hm.CDT("x_velocity"), hm.paper_split(data), out=folder, seeds=2, **SMALL).folder


def test_export_prints_the_largest_difference(trained: Path, run: Run) -> None:
    pytest.importorskip("onnxscript")
    code, out, err = run("export", trained, "--format", "onnx", "--seed", 1)
    assert (code, err) == (0, "")
    assert (trained / "seed-1" / "policy.onnx").stat().st_size > 10_000
    assert "cdt for hopper, seed 1, written to" in out
    assert "onnxruntime against himatch: largest difference" in out
    assert "on the run's own episodes" in out


def test_export_says_that_a_policy_samples(data: hm.TrajectoryDataset, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    stochastic = {**SMALL, "head": "gaussian", "temperature": 0.3}
    hm.train(hm.CDT("x_velocity"), data, out=tmp_path / "run", **stochastic)
    code, out, _ = run("export", tmp_path / "run", "--target", "normal(0.1,0.05)")
    assert code == 0
    assert "samples actions at temperature 0.3: takes standard normal noise as an input" in out
    assert ExportedTargets(tmp_path / "run" / "seed-0" / "policy.z.npz").inputs(0)["noise"].shape == (3,)


def test_export_with_plans_over_stretches(trained: Path, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    out = tmp_path / "policy.onnx"
    assert run("export", trained, "--target", "uniform(-1,0)", "--stretches", 5, "--out", out)[0] == 0
    exported = ExportedTargets(tmp_path / "policy.z.npz", 0, "planned")
    with pytest.warns(HimatchWarning, match="lies where no training episode goes"):
        controller = hm.load(trained).controller("uniform(-1,0)", conditioning="planned", stretches=5)
    conditioner = controller._player.conditioner
    for step in (0, 300, 999, 1200):
        z = conditioner.z(torch.tensor([[step]]))
        assert z is not None
        np.testing.assert_array_equal(exported.inputs(step)["z"], z[0, 0].numpy())
    for more, message in (
        (("--stretches", 5), "stretches say how targets are planned, and there is no target to plan"),
        (("--target", "uniform(-1,0)", "--stretches", 0), "stretches is a number of steps, 1 or more, got 0"),
        (("--target", "return(3)", "--stretches", 5), "is not a distribution"),
    ):
        code, _, err = run("export", trained, *more, "--out", tmp_path / "other.onnx")
        assert code == 2
        assert message in " ".join(err.split())


def test_export_with_targets_and_limits(trained: Path, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    wanted = ("--target", "normal(0.5,0.3)", "--target", "point(0.2)", "--clamp", "--margin", 0.2)
    code, out, err = run("export", trained, *wanted, "--out", tmp_path / "policy.onnx")
    assert code == 0
    for name, line in zip(("normal(0.5,0.3)", "point(0.2)"), err.splitlines(), strict=True):
        assert f"of {name} lies where no training episode goes" in line
    assert f"z of 2 target(s) written to {tmp_path / 'policy.z.npz'}" in out
    about = ExportedTargets(tmp_path / "policy.z.npz", "point(0.2)", "planned").about
    assert about["targets"] == ["normal(0.5,0.3)", "point(0.2)"]
    assert (about["limits"]["margin"], about["limits"]["clamped"]) == (0.2, True)
    code, _, err = run("export", trained, "--target", "normal(0.5", "--out", tmp_path / "other.onnx")
    assert (code, "character" in err) == (2, True)
    assert not (tmp_path / "other.onnx").exists()


def test_a_run_goes_to_the_hub_and_comes_back(trained: Path, run: Run, hub: LocalHub, tmp_path: Path) -> None:
    code, out, _ = run("push", trained, "hf:somebody/cdt", "--private")
    assert (code, out.endswith("/somebody/cdt\n")) == (0, True)
    assert hub.private == {"somebody/cdt": True}
    code, out, _ = run("match", "hf:somebody/cdt", "--target", "normal(0.5,0.3)", "--episodes", 1)
    assert code == 0
    assert "2 rollouts of 2 seed(s), nominal" in out
    code, _, err = run("evaluate", "hf:somebody/cdt", "--targets", "synthetic", "--episodes", 1)
    assert code == 2
    assert err == "himatch: hf:somebody/cdt does not lie in a folder of yours; say where to write (--out FILE)\n"
    arguments = ("--targets", "synthetic", "--episodes", 1, "--out", tmp_path / "e.json")
    assert run("evaluate", "hf:somebody/cdt@main", *arguments)[0] == 0
    assert len(json.loads((tmp_path / "e.json").read_text())["targets"]) == 6
    code, _, err = run("match", "hf:somebody/nothing", "--target", "normal(2,1)")
    assert (code, err.count("\n"), "there is no hf:somebody/nothing" in err) == (2, 1, True)
    code, _, err = run("export", "hf:somebody/cdt")
    assert (code, "say where to write" in err) == (2, True)


def test_weights_of_hugging_face_match_a_return(run: Run, hub: LocalHub, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.DecisionTransformerConfig(state_dim=11, act_dim=3, hidden_size=16, max_ep_len=100, n_layer=1)
    transformers.DecisionTransformerModel(config).save_pretrained(tmp_path / "theirs")
    (tmp_path / "std.json").write_text(json.dumps([1.0] * 11))
    given = ("--task", "hopper", "--state-mean", str([0.0] * 11), "--state-std", tmp_path / "std.json")
    code, out, _ = run("import", tmp_path / "theirs", "--out", tmp_path / "run", *given, "--env", "Hopper-v4")
    assert (code, out) == (0, f"dt for hopper, context 20, written to {tmp_path / 'run'}\n")
    assert hm.load(tmp_path / "run").description["data"]["env_id"] == "Hopper-v4"
    arguments = ("--target", "return(50)", "--episodes", 2, "--conditioning", "remaining")
    code, out, err = run("match", tmp_path / "run", *arguments)
    assert (code, "error " in out) == (0, True)
    assert "himatch: note: whether return(50) can be reached is not known: no training episodes\n" in err
    # An imported run is a run: it goes to the Hub too, and weights may come from there.
    assert run("push", tmp_path / "run", "hf:somebody/dt")[0] == 0
    card = hub.files("somebody/dt")["README.md"].read_text()
    assert "| imported: source | theirs |" in card
    assert "himatch import theirs --task hopper" in card
    weights = {name: (tmp_path / "theirs" / name).read_bytes() for name in ("config.json", "model.safetensors")}
    hub.create("somebody/theirs")
    hub.change("somebody/theirs", weights | {"x.py": b""})
    assert run("import", "hf:somebody/theirs", "--out", tmp_path / "again", *given)[0] == 0
    assert "x.py" not in hub.downloads
    assert hm.load(tmp_path / "again").description["imported"]["source"] == "hf:somebody/theirs"


def test_nothing_is_written_into_himatch_itself(run: Run) -> None:
    for command in ("export", "evaluate"):
        code, _, err = run(command, model_names()[0])
        assert (code, "say where to write (--out FILE)" in err) == (2, True)


def test_mistakes_are_one_line(trained: Path, run: Run, tmp_path: Path) -> None:
    started = ("import", tmp_path, "--task", "hopper", "--out")
    for arguments, message in (
        (("export", tmp_path), "is not a run folder"),
        (("push", trained, "somebody/cdt"), "write hf:USER/NAME"),
        ((*started, tmp_path / "run"), "does not say how states were normalised"),
        ((*started, tmp_path / "run", "--state-mean", "[1,"), "--state-mean: expected a list of numbers"),
        ((*started, tmp_path / "run", "--state-mean", '["a"]'), "--state-mean: expected a list of numbers"),
        ((*started, tmp_path / "run", "--state-std", "{}"), "--state-std: there is no file {}"),
        ((*started, tmp_path / "run", "--state-mean", "[1]", "--state-std", "[1]"), "holds no config.json"),
    ):
        code, _, err = run(*arguments)
        assert (code, err.count("\n")) == (2, 1), err
        assert message in err
