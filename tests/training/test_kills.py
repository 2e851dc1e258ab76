"""A training that is killed goes on with the same command, and ends as if nothing had happened."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import himatch as hm
from himatch.errors import DataError
from himatch.runs.folder import RunFolder

TINY: dict[str, Any] = {"context": 3, "layers": 1, "width": 16, "steps": 12, "batch_size": 8, "preset": "cpu"}
TINY |= {"quiet": True, "device": "cpu", "split": "random"}
KILLED = """
import os, signal, sys
from importlib import import_module
from pathlib import Path

import torch

import himatch as hm

data, out, name, settings, threads = sys.argv[1:]
torch.set_num_threads(int(threads))  # the last bits depend on it
replace = Path.replace


def killed(self, target):
    if Path(target).name == name:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)


Path.replace = killed
hm.train  # imports what is changed next
import_module("himatch.training.train").SAVE_EVERY = 0.0
hm.train(hm.DT(), hm.load_dataset(data, "hopper"), out=out, **eval(settings))
"""


def content(run: Path) -> dict[str, bytes]:
    files = [*run.rglob("*.safetensors"), run / "run.json"]
    return {str(path.relative_to(run)): path.read_bytes() for path in files if path.name != "training.safetensors"}


def test_killed_before_and_amid_the_first_save(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    data = hm.write_minari(hopper, tmp_path / "hopper-v0")
    out = tmp_path / "run"
    for name, saved in (("training.safetensors", False), ("best.safetensors", True)):
        words = [sys.executable, "-c", KILLED, str(data), str(out), name, repr(TINY), str(torch.get_num_threads())]
        assert subprocess.run(words, capture_output=True, check=False).returncode == -signal.SIGKILL
        assert (out / "run.json").is_file()
        assert RunFolder(out).saved == saved
        assert list(out.rglob(".*himatch-*"))
    again = hm.load_dataset(data, "hopper")
    with pytest.raises(DataError, match="pass --resume"):
        hm.train(hm.DT(), again, out=out, **TINY)
    hm.train(hm.DT(), again, out=out, resume=True, **TINY)
    assert not list(out.glob("**/.*"))
    hm.train(hm.DT(), again, out=tmp_path / "whole", **TINY)
    found, whole = content(out), content(tmp_path / "whole")
    assert [name for name in found.keys() | whole.keys() if found.get(name) != whole.get(name)] == []


def test_nothing_saved_begins_anew_with_other_settings(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    hm.train(hm.DT(), hopper, out=tmp_path, **TINY)
    for path in (tmp_path / "training.safetensors", *tmp_path.glob("seed-0/*.safetensors")):
        path.unlink()
    hm.train(hm.DT(), hopper, out=tmp_path, **{**TINY, "width": 32})
    assert hm.load(tmp_path).agent.config.width == 32


def test_weights_are_not_trained_over(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Of a model from elsewhere, or of a run that has lost a file."""
    hm.train(hm.DT(), hopper, out=tmp_path, **TINY)
    for lost in ("training.safetensors", "run.json"):
        (tmp_path / lost).unlink()
        for resume in (False, True):
            with pytest.raises(DataError, match=f"holds weights but no {lost}"):
                hm.train(hm.DT(), hopper, out=tmp_path, resume=resume, **TINY)


def test_one_training_at_a_time(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run").alone(), pytest.raises(DataError, match="another training is writing there"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", **TINY)
    hm.train(hm.DT(), hopper, out=tmp_path / "run", **TINY)
