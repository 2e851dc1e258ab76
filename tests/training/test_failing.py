"""Trainings that fail or must not begin: what is said, and what is left in the folder."""

from __future__ import annotations

import errno
import json
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import ARM, make_episodes, write_csv
from command_line import Run, assert_refused
from pretended_gpu import GPU, PretendedGPU
from random_episodes import episode
from torch import Tensor

import himatch as hm
from himatch._runtime.devices import seeded
from himatch.errors import DataError, HimatchError, HimatchWarning
from himatch.statistics.histograms import HistogramsOfRest
from himatch.training import PRESETS, Interrupted, TrainConfig, TrainingError, configure
from himatch.training.checkpoint import VALIDATION_WINDOWS
from himatch.training.sampler import StreamedSampler
from himatch.training.train import validate_every
from himatch.training.update import Update

TRAINING = import_module("himatch.training.train")  # the package names its function so
TINY: dict[str, Any] = {
    **{"context": 3, "layers": 1, "width": 16, "dropout": 0.1, "batch_size": 8, "steps": 12, "preset": "cpu"},
    "quiet": True,
}


def spoil(monkeypatch: pytest.MonkeyPatch, step: int, models: list[int], *, together: int = 1) -> None:
    """Some models' losses are NaN from that step on; a GPU's come several steps ``together``."""
    run = Update.run

    def spoiled(self: Update, until: int) -> Iterator[Tensor]:
        waiting: list[Tensor] = []
        for losses in run(self, until):
            if self.step >= step:
                losses[:, models] = torch.nan
            waiting.append(losses)
            if len(waiting) == together or self.step == until:
                yield torch.cat(waiting)
                waiting = []

    monkeypatch.setattr(Update, "run", spoiled)


@pytest.mark.parametrize("together", [1, 12])
def test_a_loss_that_is_not_finite_stops_training(
    together: int, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    spoil(monkeypatch, 7, [1, 2], together=together)
    with pytest.raises(TrainingError, match=r"loss of seed 4, 5 is not finite at step 7 of 12.*nothing was saved"):
        hm.train(hm.DT(), hopper, out=run, seed=3, seeds=3, split="paper", **TINY)
    monkeypatch.undo()
    assert "step 7" in json.loads((run / "failed.json").read_text())["reason"]
    rows = [json.loads(line) for line in (run / "seed-3" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == ([2, 4, 6] if together == 1 else [])
    with pytest.raises(DataError, match=r"not a run folder.*failed\.json"):
        hm.load(run)
    policy = hm.train(
        hm.DT(), hopper, out=run, **{**TINY, "width": 32}
    )  # other settings, fewer seeds, nothing held out
    assert policy.seeds == (0,)
    assert policy.held_out is None
    assert {path.name for path in run.iterdir()} == {
        *("run.json", "normalizers.safetensors", "episodes.safetensors", "fingerprint.safetensors", "seed-0"),
        *("training.safetensors", "loss.png", "scores.json"),
    }


def test_what_was_saved_before_stays(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, 7, [0])
    monkeypatch.setattr(TRAINING, "SAVE_EVERY", 0.0)
    with pytest.raises(TrainingError, match="what was saved last stays in"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", **TINY)
    monkeypatch.undo()
    assert (tmp_path / "run" / "failed.json").exists()
    with pytest.warns(HimatchWarning, match="its training stopped at step 6 of 12"):
        assert hm.load(tmp_path / "run", weights="last").seeds == (0,)
    with pytest.raises(DataError, match="holds a run already"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", **TINY)
    hm.train(hm.DT(), hopper, out=tmp_path / "run", resume=True, **TINY)
    hm.train(hm.DT(), hopper, out=tmp_path / "whole", **TINY)
    ends = [(tmp_path / name / "seed-0" / "last.safetensors").read_bytes() for name in ("run", "whole")]
    assert ends[0] == ends[1]
    assert not (tmp_path / "run" / "failed.json").exists()


@pytest.mark.parametrize("method", [hm.DT(), hm.DTAE(mode="frozen", pretrain_steps=6, m=2, target_window=4)])
def test_a_learning_rate_that_is_too_high(
    method: hm.methods.Method, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=r"learning rate below 1e\+30"):
        hm.train(method, hopper, out=tmp_path, learning_rate=1e30, warmup=0, **TINY)
    assert not list(tmp_path.glob("seed-*/*.safetensors"))


def test_the_last_update_counts_too(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Its loss was that of the weights before it."""
    with pytest.raises(TrainingError, match="of seed 0 is not finite at step 1 of 1"):
        hm.train(
            hm.BC(), hopper[:5], out=tmp_path, learning_rate=3e38, weight_decay=1e30, warmup=0, **{**TINY, "steps": 1}
        )


def test_diverging_is_exit_code_2(hopper: hm.TrajectoryDataset, tmp_path: Path, run: Run) -> None:
    source = hm.write_minari(hopper, tmp_path / "hopper-v0")
    command = ["train", "dt", "--data", source, "--out", tmp_path / "run", "--preset", "cpu", "--width", 16]
    command += ["--steps", 20, "--warmup", 0]
    code, out, err = run(*command, "--learning-rate", 1e30)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(
        "himatch: training diverged: the loss of seed 0 is not finite at step 2 of 20"
    )
    assert run(*command)[0] == 0  # the folder is free for another attempt


def test_any_failure_leaves_the_folder_free(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Update) -> None:
        raise MemoryError("CUDA out of memory")

    monkeypatch.setattr(Update, "_one_step", fail)
    with pytest.raises(MemoryError):
        hm.train(hm.DT(), hopper, out=tmp_path, **TINY)
    monkeypatch.undo()
    assert json.loads((tmp_path / "failed.json").read_text()) == {"reason": "MemoryError: CUDA out of memory"}
    hm.train(hm.DT(), hopper, out=tmp_path, **{**TINY, "batch_size": 4})


def test_z_that_is_not_finite_is_refused_before_anything_is_written(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "himatch.statistics.aggregators.DiscountedSum.__call__", lambda self, phi: np.full_like(phi, np.nan)
    )
    with pytest.raises(DataError, match="aggregator 'sum' returned NaN"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", **TINY)
    assert not (tmp_path / "run").exists()


# -- before training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": [1, 2]}, r"seeds must be a whole number, got \[1, 2\]"),
        ({"seed": [1, 2]}, r"seed must be a whole number, got \[1, 2\]"),
        ({"steps": "12"}, "steps must be a whole number"),
        ({"trackers": "abacus"}, "unknown tracker 'abacus'"),
        ({"split": "half"}, "split must be"),
        ({"split": "label:"}, "split must be"),
        ({"split": 3}, "split must be"),
        ({"seed": 10**23}, "seeds must be below"),
        ({"task": "ant", "feature": "hight"}, "task ant has no feature 'hight'"),
    ],
)
def test_settings_are_checked_before_data_is_read(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match=message):
        hm.train(hm.DT(given.pop("feature", "reward")), "nowhere.hdf5", out=tmp_path / "run", **{**TINY, **given})
    assert not (tmp_path / "run").exists()


def test_the_folder_is_checked_before_data_is_made(tmp_path: Path, run: Run) -> None:
    for name in ("run.json", "training.safetensors"):
        (tmp_path / name).touch()
    command = ("train", "dt", "--data", "nowhere.hdf5")
    assert_refused(run(*command, "--out", tmp_path), "holds a run already")
    (tmp_path / "file").touch()
    assert_refused(run(*command, "--out", tmp_path / "file" / "run"), "is a file, not a folder")
    assert_refused(run(*command, "--out", tmp_path / "new", "--seeds", 0), "at least 1")
    assert_refused(run(*command, "--out", tmp_path / "new", "--split", "half"), "split must be")
    assert_refused(run(*command, "--out", tmp_path / "new", "--task", "ant", "--feature", "hight"), "no feature")


def test_the_feature_is_checked_before_data_is_made(bundled: Path, tmp_path: Path, run: Run) -> None:
    command = ("train", "dt", "--out", tmp_path / "run", "--feature", "hight", "--data")
    assert_refused(run(*command, "halfcheetah-medium + ant-medium"), "task halfcheetah has no feature 'hight'")
    assert not (tmp_path / "cache").exists()


def test_an_extreme_value_is_named_where_training_diverges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, 2, [0])
    rng = np.random.default_rng(0)
    arrays = {"observations": rng.normal(size=(80, 2)), "actions": rng.uniform(-1, 1, (80, 1)), "lengths": [20] * 4}
    arrays["observations"][30, 1] = 1e30
    said = r"obs\[1\] has 1 extreme value, .* 1e\+30 in episode 1, step 10; mend them or .* a learning rate below"
    with pytest.raises(TrainingError, match=said), pytest.warns(HimatchWarning, match="extreme"):
        hm.train(hm.CDT("obs[0]"), hm.load_dataset(arrays), out=tmp_path / "run", **TINY)


def test_a_column_is_a_feature_of_a_task_that_is_named(tmp_path: Path, run: Run) -> None:
    data, out = write_csv(make_episodes((20,) * 4), tmp_path), tmp_path / "run"
    assert hm.train(hm.CDT("obs_1"), data, task=ARM, out=out, **TINY).feature == "obs_1"
    command = ("train", "cdt", "--data", data, "--task", "hopper", "--out", tmp_path / "other", "--feature", "obs_1")
    assert_refused(run(*command), "observations have 3 numbers, task hopper has 11")  # so the data is read first


def test_numbers_of_a_sweep(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    sweep: dict[str, Any] = {"steps": np.int64(3), "width": np.int64(16), "learning_rate": np.float32(1e-3)}
    policy = hm.train(hm.DT(), hopper, out=tmp_path, seed=np.int64(2), seeds=np.int64(1), **{**TINY, **sweep})  # type: ignore[arg-type]
    assert policy.seeds == (2,)


@pytest.mark.parametrize(
    ("data", "given", "message"),
    [
        (lambda d: d, {"task": "halfcheetah"}, r"has its task \(hopper\)"),
        (hm.paper_split, {"task": "halfcheetah"}, "leave out split and task"),
        (hm.paper_split, {"split": "none"}, "leave out split and task"),
    ],
)
def test_what_the_data_says_itself_is_not_said_again(
    data: Callable[[hm.TrajectoryDataset], Any],
    given: dict[str, Any],
    message: str,
    hopper: hm.TrajectoryDataset,
    tmp_path: Path,
) -> None:
    with pytest.raises(HimatchError, match=message):
        hm.train(hm.DT(), data(hopper), out=tmp_path / "run", **given, **TINY)


# -- around training ------------------------------------------------------------------------------------------------


@pytest.fixture
def tracked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a tracker got, in order."""
    calls: list[str] = []
    fake = types.SimpleNamespace(
        init=lambda **_: calls.append("init"),
        log=lambda values, step: calls.append("row"),
        finish=lambda: calls.append("finish"),
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return calls


@pytest.mark.parametrize("ending", ["done", "interrupted", "failed"])
def test_trackers_are_closed_however_training_ends(
    ending: str, tracked: list[str], hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Update._one_step

    def stopped(self: Update) -> None:
        step(self)
        if ending == "interrupted":
            signal.raise_signal(signal.SIGTERM)
        if ending == "failed":
            raise RuntimeError

    monkeypatch.setattr(Update, "_one_step", stopped)
    kind = {"done": None, "interrupted": Interrupted, "failed": RuntimeError}[ending]
    if kind is None:
        hm.train(hm.BC(), hopper, out=tmp_path, trackers="wandb", **TINY)  # one name is a tracker, too
    else:
        with pytest.raises(kind):
            hm.train(hm.BC(), hopper, out=tmp_path, trackers=["wandb"], **TINY)
    assert tracked[0] == "init"
    assert tracked[-1] == "finish"
    assert tracked.count("finish") == 1


def test_a_tracker_that_cannot_start_is_one_line(
    tracked: list[str], hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    def locked_out(**_: Any) -> None:
        raise PermissionError("no key\nlog in first")

    sys.modules["wandb"].init = locked_out  # type: ignore[attr-defined]
    with pytest.raises(HimatchError, match=r"^the tracker wandb cannot be started \(PermissionError: no key\)$"):
        hm.train(hm.BC(), hopper, out=tmp_path, trackers="wandb", **TINY)
    hm.train(hm.BC(), hopper, out=tmp_path, **TINY)  # the folder is free


def test_a_tracker_that_fails_does_not_stop_training(
    tracked: list[str], hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    def gone(values: dict[str, float], step: int) -> None:
        tracked.append("gone")
        raise ConnectionError("gone")

    sys.modules["wandb"].log = gone  # type: ignore[attr-defined]
    with pytest.warns(hm.HimatchWarning, match="wandb failed and gets no more rows"):
        hm.train(hm.BC(), hopper, out=tmp_path, trackers="wandb", **TINY)
    assert tracked == ["init", "gone", "finish"]


def test_a_full_disk_in_mid_training_is_one_line(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(self: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if mode == "a":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(self, mode, *more, **named)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DataError, match=r"metrics\.jsonl: cannot be written, the disk is full"):
        hm.train(hm.BC(), hopper, out=tmp_path, **TINY)


def test_the_callers_random_numbers_go_on(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    hm.train(hm.BC(), hopper, out=tmp_path / "a", **TINY)
    assert torch.equal(torch.rand(3), expected)
    hm.train(hm.BC(), hopper, out=tmp_path / "b", **TINY)
    ends = [(tmp_path / name / "seed-0" / "last.safetensors").read_bytes() for name in "ab"]
    assert ends[0] == ends[1]  # and training's own do not depend on them


def test_a_gpus_random_numbers_go_on_too(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = PretendedGPU(monkeypatch)
    monkeypatch.setattr(torch.cuda, "manual_seed", gpu.random.fill_)
    with seeded(7, GPU):
        assert gpu.random.item() == 7
    assert gpu.random.item() == 0


@pytest.mark.parametrize("gamma", [1.0, 0.9])  # counted when it is read, and stored
@pytest.mark.parametrize("fails", [False, True])
def test_z_of_mapped_data_lies_in_the_run_folder(
    fails: bool, gamma: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    held = hm.load_dataset([episode(rng, 9, level=i / 5) for i in range(20)], "hopper")
    hm.write_minari(held, tmp_path / "hopper-v0")
    mapped = hm.load_dataset(tmp_path / "hopper-v0", "hopper", mmap=tmp_path / "map")
    step, run, seen = Update._one_step, tmp_path / "run", []

    def looked(self: Update) -> None:
        assert isinstance(self.sampler, StreamedSampler)
        z = self.sampler.z
        assert isinstance(z, HistogramsOfRest) == (gamma == 1.0)
        kept = z.blocks.base if isinstance(z, HistogramsOfRest) else z
        assert isinstance(kept, np.memmap)
        seen.append(Path(str(kept.filename)))
        assert seen[-1].is_file()
        step(self)
        if fails:
            raise RuntimeError

    monkeypatch.setattr(Update, "_one_step", looked)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    if fails:
        with pytest.raises(RuntimeError):
            hm.train(hm.CDT("x_velocity", gamma=gamma), mapped, out=run, **TINY)
    else:
        hm.train(hm.CDT("x_velocity", gamma=gamma), mapped, out=run, **TINY)
    assert seen[0].parent == run
    assert seen[0].name[0] == "."
    assert not seen[0].exists()


def test_short_runs_validate_rarely_and_presets_as_ever() -> None:
    for method in (hm.CDT(), hm.MetaBC()):
        for preset in PRESETS:
            _, config = configure(preset, method)
            assert validate_every(config) == config.steps // 50
    assert validate_every(TrainConfig(steps=300, batch_size=128)) == 60
    assert validate_every(TrainConfig(steps=2000, batch_size=128)) == 64
    assert validate_every(TrainConfig(steps=4, batch_size=128)) == 1
    # Validating on a window is a forward pass, a third of what training on it takes.
    for steps in (50, 300, 2000, 6000):
        config = TrainConfig(steps=steps, batch_size=128)
        assert steps / validate_every(config) * VALIDATION_WINDOWS / 3 < 0.3 * steps * config.batch_size
