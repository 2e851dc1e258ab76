"""``himatch train`` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import types
from pathlib import Path

import pytest
from command_line import Run, assert_refused
from waiting import PATIENCE, TRAINED, program, trained, wait_for

import himatch as hm
from himatch.errors import HimatchWarning

TINY = ["--preset", "cpu", "--steps", "8", "--width", "16", "--layers", "1", "--context", "3", "--batch-size", "8"]


@pytest.fixture
def source(hopper: hm.TrajectoryDataset, tmp_path: Path) -> str:
    return str(hm.write_minari(hopper, tmp_path / "hopper-v0"))


@pytest.mark.usefixtures("whole_ends")
def test_train_and_resume(source: str, tmp_path: Path, run: Run) -> None:
    command = ["train", "cdt", "--feature", "x_velocity", "--data", source, "--out", str(tmp_path / "run")]
    code, out, _ = run(*command, *TINY, "--seeds", "2")
    assert code == 0
    assert re.search(
        r"action error on 10 held-out episodes: [\d.]+, [\d.]+ .*\nconditioned on other episodes: [\d.]+ \(\w+\), ", out
    )
    assert hm.load(tmp_path / "run").seeds == (0, 1)
    assert_refused(run(*command, *TINY, "--seeds", "2"), "--resume")
    assert run(*command, *TINY, "--seeds", "2", "--resume")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["ddt"], "unknown method 'ddt'; known are bc, dt, cdt"),
        (["cdt", "--feature", "speed"], "no feature 'speed'"),
        (["bdt", "--m", "0"], "m = 0"),
        (["bc", "--bins", "3"], "bc has no flag --bins, which is for cdt; see himatch train bc --help"),
        (["dt", "--target-window=3"], "dt has no flag --target-window, which is for bdt, dt-ae, dt-cpc, dt-e2e;"),
        (["focal"], "focal has no flag --context, which is for bc, dt,"),
        (["--method", "cdt"], "the method comes right after train, its flags after that: himatch train bc|dt|cdt|"),
        (["dt", "--context", "900"], "longer than every episode"),
        (["dt", "--preset", "huge"], "unknown preset 'huge'"),
        (["dt", "--width", "10", "--heads", "3"], "heads"),
        (["dt", "--data", "nowhere.hdf5"], "nowhere.hdf5"),
        (["dt", "--track", "abacus"], "unknown tracker"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], fragment: str, source: str, tmp_path: Path, run: Run) -> None:
    usual = ["--data", source, "--out", str(tmp_path / "run"), *TINY]
    assert_refused(run("train", arguments[0], *usual, *arguments[1:]), fragment)


def test_settings_are_checked_before_data_is_read(tmp_path: Path, run: Run) -> None:
    command = ("train", "dt", "--data", "nowhere", "--out", tmp_path / "run", "--dropout", 2)
    assert_refused(run(*command), "dropout")
    assert_refused(run(*command[:-2], "--device", "gpu"), "unknown device 'gpu'")


def test_ctrl_c_saves_and_says_how_to_go_on(source: str, tmp_path: Path) -> None:
    own, out = tmp_path / "own.py", tmp_path / "run"
    own.write_text(TRAINED)
    command = ["train", "dt", "--data", source, "--out", out, "--import", own]
    command += [*TINY[:2], "--steps", 1_000_000, *TINY[4:]]
    with program(*command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        wait_for(lambda: trained(tmp_path), "a step of training", process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "continue with --resume" in stderr
    assert "Traceback" not in stderr
    assert (out / "training.safetensors").exists()
    with pytest.warns(HimatchWarning, match=r"run: its training stopped at step \d+ of 1,000,000; .*--resume goes on"):
        assert hm.load(out, weights="last").seeds == (0,)


def test_trackers_get_every_row(hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, dict[str, float]]] = []
    fake = types.SimpleNamespace(
        init=lambda **_: None,
        log=lambda values, step: seen.append((step, values)),
        finish=lambda: seen.append((-1, {})),
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    small = {"preset": "cpu", "steps": 4, "width": 16, "context": 3, "seeds": 2, "quiet": True}
    hm.train(hm.BC(), hopper, out=tmp_path / "run", trackers=("wandb",), **small)  # type: ignore[arg-type]
    assert [step for step, _ in seen] == [1, 2, 3, 4, -1]
    assert {"seed-0/loss", "seed-1/validation"} <= seen[0][1].keys()
    rows = [json.loads(line) for line in (tmp_path / "run" / "seed-1" / "metrics.jsonl").read_text().splitlines()]
    assert rows[2]["loss"] == seen[2][1]["seed-1/loss"]


def test_a_tracker_that_is_not_installed_is_named_before_anything_is_written(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(hm.HimatchError, match=r"himatch\[trackio\]"):
        hm.train(hm.BC(), hopper, out=tmp_path / "run", trackers=("trackio",))
    assert not (tmp_path / "run").exists()
