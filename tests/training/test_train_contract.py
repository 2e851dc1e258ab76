"""Every method trains, saves, loads, resumes and predicts through one contract."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from random_episodes import episode
from run_files import describe_anew
from safetensors.torch import load_file
from untrained import untrained

import himatch as hm
from himatch._runtime.progress import interrupt, on_signals
from himatch._runtime.tensors import read_tensors
from himatch.errors import DataError, HimatchError
from himatch.methods import METHODS, Agent, method_from_spec, method_spec
from himatch.runs.folder import RunFolder
from himatch.training import Interrupted, best_weights
from himatch.training.checkpoint import Checkpoint
from himatch.training.sampler import DeviceSampler, Sampler, StreamedSampler, make_sampler
from himatch.training.update import Update

TRAINING = import_module("himatch.training.train")  # the package names its function so
TINY = {"context": 3, "layers": 1, "width": 16, "dropout": 0.1, "batch_size": 8, "steps": 12, "preset": "cpu"}
LEARNED = {"m": 2, "target_window": 4, "look_ahead": 3}
TASKS = {"m": 3, "encoder": (16, 16), "tasks": 3, "context_steps": 4}
MODES = ("unsupervised", "joint", "frozen")
VARIANTS: dict[str, hm.methods.Method] = {
    **{name: hm.make_method(name) for name in ("bc", "dt", "cdt", "moments", "goal")},
    **{name: hm.make_method(name, **LEARNED) for name in ("bdt", "dt-e2e")},
    **{f"dt-ae {mode}": hm.DTAE(mode=mode, pretrain_steps=6, **LEARNED) for mode in MODES},
    **{f"dt-cpc {mode}": hm.DTCPC(mode=mode, pretrain_steps=6, **LEARNED) for mode in MODES},
    "bdt pseudocode": hm.BDT(m=2, codes="pseudocode"),
    "bdt public": hm.BDT(m=2, codes="public"),
    "cdt of two features": hm.CDT("x_velocity,z_velocity", bins=5),
    **{name: hm.make_method(name, pretrain_steps=6, **TASKS) for name in ("meta-bc", "focal")},
    **{name: hm.make_method(name) for name in ("gcsl", "udrl", "rcp")},
    **{name: hm.make_method(name, feature="x_velocity") for name in ("multi-task", "hipi", "gh")},
    "hipi of two features": hm.HIPI("x_velocity,reward", "square", candidates=5, gamma=0.9),
    "goal relabelled": hm.GoalDT(relabel="geometric", relabel_gamma=0.8, steps_left=True),
    "gcsl of random states": hm.GCSL("x_velocity", relabel="random"),
    "rcp of advantages": hm.RCP(given="advantage", value_steps=6),
}
each = pytest.mark.parametrize("name", VARIANTS)


def weights(run: Path, seed: int, name: str = "last") -> dict[str, torch.Tensor]:
    return load_file(run / f"seed-{seed}" / f"{name}.safetensors")


def test_every_method_of_the_program_is_here() -> None:
    assert {method.name for method in VARIANTS.values()} == set(METHODS)


@each
def test_train_save_load_predict(name: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    trained = hm.train(VARIANTS[name], hopper, out=tmp_path / "run", seed=3, seeds=2, split="paper", quiet=True, **TINY)
    policy = hm.load(tmp_path / "run")
    assert policy.method == VARIANTS[name]
    assert policy.seeds == (3, 4)
    assert policy.held_out is not None
    assert len(policy.held_out) == len(policy.groups) == 10
    episode = policy.held_out[0]
    actions = policy.actions(episode)
    assert actions.shape == (2, len(episode), 3)
    assert np.abs(actions).max() <= 1.0
    assert not np.array_equal(actions[0], actions[1])
    np.testing.assert_array_equal(actions, trained.actions(episode))
    assert policy.action_error([episode]).shape == (2,)
    assert steps(tmp_path / "run", 4) == list(range(2, 13, 2))
    assert (tmp_path / "run" / "loss.png").exists()
    assert weights(tmp_path / "run", 3, "best").keys() == weights(tmp_path / "run", 3).keys()


@each
def test_another_episode_to_be_like_is_another_action(name: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """What a method learns is shown elsewhere (test_conditioning.py says where); here, that nothing ignores z."""
    policy = untrained(VARIANTS[name], hopper, tmp_path / "run")
    own, swapped = policy.actions(hopper[0]), policy.actions(hopper[0], hopper[1])
    assert np.array_equal(own, swapped) == (policy.method.name == "bc")


@pytest.mark.usefixtures("whole_ends")
def test_the_losses_are_drawn(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    hm.train(hm.BC(), hopper, out=tmp_path / "run", quiet=True, **TINY)
    with Image.open(tmp_path / "run" / "loss.png") as drawn:
        assert drawn.size == (832, 494)


@each
def test_an_interrupted_run_ends_in_the_same_bits(
    name: str, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = VARIANTS[name]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    hm.train(method, hopper, out=whole, seeds=2, quiet=True, **TINY)
    for interruption in (5, 4):  # for a frozen encoder the first one falls into pretraining
        _signal_after(interruption, monkeypatch)
        with pytest.raises(Interrupted, match="--resume"):
            hm.train(method, hopper, out=parts, seeds=2, quiet=True, resume=(parts / "run.json").exists(), **TINY)
        monkeypatch.undo()
    assert (parts / "loss.png").exists() == (parts / "seed-0" / "metrics.jsonl").exists()  # FOCAL has none yet
    hm.train(method, hopper, out=parts, seeds=2, quiet=True, resume=True, **TINY)
    for seed in (0, 1):
        for kind in ("last", "best"):
            for key, tensor in weights(whole, seed, kind).items():
                assert torch.equal(tensor, weights(parts, seed, kind)[key]), key
        assert steps(whole, seed) == steps(parts, seed) == list(range(2, 13, 2))
        assert losses(whole, seed) == losses(parts, seed)


@pytest.mark.parametrize(("name", "last", "resumed"), [("dt", 12, False), ("dt-ae frozen", 6, True)])
def test_a_signal_at_the_last_step_stops_what_comes_after_it(
    name: str, last: int, resumed: bool, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen encoder's training is followed by the policy's, the policy's by whatever a program does next."""
    _signal_after(last, monkeypatch)
    with pytest.raises(Interrupted, match="--resume" if resumed else f"step {last} of {last}.*which was the last"):
        hm.train(VARIANTS[name], hopper, out=tmp_path, quiet=True, **TINY)
    monkeypatch.undo()
    assert (tmp_path / "seed-0" / "last.safetensors").exists() != resumed
    hm.train(VARIANTS[name], hopper, out=tmp_path, quiet=True, resume=True, **TINY)


@pytest.mark.parametrize("last", [5, 12])
def test_signals_do_not_disturb_saving(
    last: int, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of a run that was stopped and gets a second signal, nor of one that has made its last step."""
    write = RunFolder.write_weights

    def signalled(*arguments: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        write(*arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "write_weights", signalled)
    if last < TINY["steps"]:
        _signal_after(last, monkeypatch)
    with on_signals(interrupt, signal.SIGTERM), pytest.raises(KeyboardInterrupt) as caught:
        hm.train(hm.DT(), hopper, out=tmp_path, quiet=True, **TINY)
    assert str(caught.value).startswith(f"stopped at step {last} of 12; everything is saved in ")
    assert int(read_tensors(tmp_path / "training.safetensors")["step"]) == last
    assert (tmp_path / "seed-0" / "last.safetensors").exists()


def test_a_signal_before_the_first_step_leaves_the_folder_free(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TRAINING, "make_sampler", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", quiet=True, **TINY)
    monkeypatch.undo()
    assert not (tmp_path / "run" / "failed.json").exists()
    hm.train(hm.DT(), hopper, out=tmp_path / "run", quiet=True, **TINY)


@pytest.mark.parametrize(("episodes", "chosen"), [(180, 4), (240, 2)])
def test_validation_selects_the_best_weights_if_there_is_enough_of_it(
    episodes: int, chosen: int, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 2 of 4 validates best, by 9 and by 12 episodes."""
    losses = iter((0.5, 0.1, 0.3, 0.4))

    def validate(_: Agent, __: DeviceSampler) -> dict[str, torch.Tensor]:
        return {"validation": torch.tensor([next(losses)])}

    def log(self: Checkpoint, *arguments: Any) -> None:
        if self.update.step == 2:
            second.update({name: t.clone() for name, t in self.update.flat.state(self.update.flat.master, 0).items()})
        write_row(self, *arguments)

    second: dict[str, torch.Tensor] = {}
    write_row = Checkpoint.log
    monkeypatch.setattr(Checkpoint, "log", log)
    monkeypatch.setattr("himatch.training.checkpoint.validate", validate)
    monkeypatch.setattr(TRAINING, "validate_every", lambda _: 1)
    several = [hopper[i % len(hopper)] for i in range(episodes)]  # each a little different: copies are not trained on
    moved = [hm.Trajectory(e.observations + i / 1000, e.actions, e.rewards) for i, e in enumerate(several)]
    data = hm.load_dataset(moved, "hopper")
    hm.train(hm.DT(), data, out=tmp_path, quiet=True, **{**TINY, "steps": 4})
    best, last = weights(tmp_path, 0, "best"), weights(tmp_path, 0)
    assert all(torch.equal(best[key], (second if chosen == 2 else last)[key]) for key in second)
    said = "lowest validation loss" if chosen == 2 else "the last ones: 9 validation episodes are too few to choose by"
    assert best_weights(RunFolder(tmp_path), (0,)) == f"step {chosen} of 4 ({said})"


def test_what_never_moved_says_nothing(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """A sensor that always said 24 may say something else one day; nothing was learned of that."""

    def reading(one: hm.Trajectory, value: float) -> hm.Trajectory:
        return replace(one, observations=np.where(np.arange(11) == 4, np.float32(value), one.observations))

    still = [reading(one, 24.0) for one in hopper]
    with pytest.warns(hm.HimatchWarning, match=r"obs\[4\] never changed in the training episodes"):
        policy = hm.train(hm.DT(), hm.load_dataset(still, "hopper"), out=tmp_path, quiet=True, **TINY)
    np.testing.assert_array_equal(policy.actions(reading(still[0], 20.0), still[0]), policy.actions(still[0]))


def test_the_time_of_all_stretches_counts(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _signal_after(3, monkeypatch)
    with pytest.raises(Interrupted):
        hm.train(hm.DT(), hopper, out=tmp_path, quiet=True, **TINY)
    monkeypatch.undo()
    state = read_tensors(tmp_path / "training.safetensors")
    assert 0 < float(state["seconds"]) < 1000
    RunFolder(tmp_path).write_training_state({**state, "seconds": torch.tensor(1000.0)})
    hm.train(hm.DT(), hopper, out=tmp_path, quiet=True, resume=True, **TINY)
    rows = [json.loads(line) for line in (tmp_path / "seed-0" / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["seconds"] < 1000 <= rows[-1]["seconds"]


def losses(run: Path, seed: int) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / f"seed-{seed}" / "metrics.jsonl").read_text().splitlines()]


def steps(run: Path, seed: int) -> list[int]:
    return [json.loads(line)["step"] for line in (run / f"seed-{seed}" / "metrics.jsonl").read_text().splitlines()]


def _signal_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send SIGTERM to this process after some steps."""
    step, done = Update._one_step, 0

    def signalled(self: Update) -> None:
        nonlocal done
        step(self)
        done += 1
        if done == count:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Update, "_one_step", signalled)


@each
def test_specs_round_trip(name: str) -> None:
    assert method_from_spec(json.loads(json.dumps(method_spec(VARIANTS[name])))) == VARIANTS[name]


def test_a_frozen_encoder_does_not_move(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    method = hm.DTAE(mode="frozen", pretrain_steps=6, m=2, target_window=4)
    short, long = tmp_path / "short", tmp_path / "long"
    hm.train(method, hopper, out=short, quiet=True, **{**TINY, "steps": 2})
    hm.train(method, hopper, out=long, quiet=True, **{**TINY, "steps": 20})
    for key, tensor in weights(short, 0).items():
        assert torch.equal(tensor, weights(long, 0)[key]) == key.startswith("codes."), key


@pytest.mark.parametrize("split", ["none", "paper"])
@pytest.mark.parametrize(
    "name", ["cdt", "dt", "bdt", "focal", "udrl", "gh", "multi-task", "goal relabelled", "gcsl of random states"]
)
def test_mapped_training_is_streamed_and_the_same_training(
    name: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    held = hm.load_dataset([episode(rng, 2 + i, level=i / 5) for i in range(40)], "hopper")
    hm.write_minari(held, tmp_path / "hopper-v0")
    mapped = hm.load_dataset(tmp_path / "hopper-v0", "hopper", mmap=tmp_path / "map")
    made: list[object] = []

    def noted(*arguments: Any, **named: Any) -> Sampler:
        sampler = make_sampler(*arguments, **named)
        made.append(type(sampler))
        return sampler

    monkeypatch.setattr(TRAINING, "make_sampler", noted)
    for out, data in ((tmp_path / "a", held), (tmp_path / "b", mapped)):
        hm.train(VARIANTS[name], data, out=out, split=split, quiet=True, **TINY)
    assert made == [DeviceSampler, StreamedSampler]
    for key, tensor in weights(tmp_path / "a", 0).items():
        assert torch.equal(tensor, weights(tmp_path / "b", 0)[key]), key


def test_the_context_is_compared_with_all_episodes(tmp_path: Path) -> None:
    """Where validation takes the only one that is long enough, the others are seen as they are, padded."""
    rng = np.random.default_rng(0)
    short = [episode(rng, 3) for _ in range(20)]
    taken = hm.random_split(hm.load_dataset(short, "hopper"), 1 / 20, seed=0).held_out_index[0]
    settings: dict[str, Any] = {**TINY, "context": 4, "quiet": True}
    with pytest.raises(DataError, match=r"longer than every episode \(the longest has 3\)"):
        hm.train(hm.DT(), hm.load_dataset(short, "hopper"), out=tmp_path / "short", **settings)
    data = hm.load_dataset([episode(rng, 10) if i == taken else short[i] for i in range(20)], "hopper")
    hm.train(hm.DT(), data, out=tmp_path / "run", **settings)
    assert all(tensor.isfinite().all() for tensor in weights(tmp_path / "run", 0).values())


@pytest.mark.parametrize("head", ["gaussian", "squashed"])
def test_stochastic_heads_train(hopper: hm.TrajectoryDataset, tmp_path: Path, head: str) -> None:
    policy = hm.train(hm.DT(), hopper, out=tmp_path / "run", quiet=True, head=head, **TINY)
    assert policy.actions(hopper[0]).shape == (1, len(hopper[0]), 3)


def test_matching_needs_no_dataset(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Feature values, normalisers, bins and provenance are in the folder."""
    hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", split="paper", quiet=True, **TINY)
    split = hm.paper_split(hopper)
    stored = load_file(tmp_path / "run" / "episodes.safetensors")
    policy = hm.load(tmp_path / "run")
    np.testing.assert_array_equal(stored["x_velocity/values"].numpy(), split.train.observations[:, [5]])
    np.testing.assert_array_equal(stored["x_velocity/lengths"].numpy(), split.train.lengths)
    assert policy.description["data"]["hash"] == split.train.content_hash
    assert policy.description["versions"]["torch"] == torch.__version__
    assert policy.held_out is not None
    assert policy.held_out.content_hash == split.held_out.content_hash


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, o: hm.train(hm.CDT("hight"), d, out=o), "no feature 'hight'"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, context=500), "longer than every episode"),
        (lambda d, o: hm.CDT(bins=1), "2 to 32767 bins, got 1"),
        (lambda d, o: hm.CDT(bins=100_000), "2 to 32767 bins"),
        (lambda d, o: hm.DTAE(coefficient=float("nan")), "coefficient must be finite"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, learning_rate=float("inf")), "learning_rate must be finite"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, weight_decay=float("inf")), "weight_decay must be finite"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, preset=["cpu"]), "unknown preset"),
        (lambda d, o: hm.train("cdt", d, out=o), "takes a method"),
        (lambda d, o: hm.train(hm.CDT, d, out=o), "takes a method"),
        (lambda d, o: hm.BDT(m=0), "m = 0"),
        (lambda d, o: hm.BDT(target_window=0), "target window"),
        (lambda d, o: hm.BDT(look_ahead=-1), "look-ahead"),
        (lambda d, o: hm.DTAE(mode="both"), "mode"),
        (lambda d, o: hm.make_method("ddt"), "unknown method 'ddt'"),
        (lambda d, o: hm.make_method("bc", feature="reward"), "no setting 'feature'"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, preset="huge"), "unknown preset"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, seeds=0), "at least 1"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, split="half"), "split must be"),
        (lambda d, o: hm.train(hm.DT(), d[:0], out=o), "no training episodes"),
        (lambda d, o: hm.train(hm.DT(), d, out=o, trackers=("mlflow",)), "unknown tracker"),
        (lambda d, o: hm.load(o), "not a run folder"),
    ],
)
def test_bad_settings(call: object, message: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match=message):
        call(hopper, tmp_path / "run")  # type: ignore[operator]


def test_resuming_something_else_is_refused(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    hm.train(hm.DT(), hopper, out=run, quiet=True, **TINY)
    with pytest.raises(DataError, match="holds a run already"):
        hm.train(hm.DT(), hopper, out=run, quiet=True, **TINY)
    with pytest.raises(DataError, match="other data"):
        hm.train(hm.DT(), hopper[:-1], out=run, quiet=True, resume=True, **TINY)
    with pytest.raises(DataError, match="other settings"):
        hm.train(hm.DT(), hopper, out=run, quiet=True, resume=True, **{**TINY, "width": 32})
    for stored in ({"method": {"name": "dt"}}, {"method": 3, "data": {"hash": "0"}}):
        RunFolder(run).write_description(stored)
        with pytest.raises(DataError, match=r"run\.json: incomplete or from another version"):
            hm.train(hm.DT(), hopper, out=run, quiet=True, resume=True, **TINY)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(DataError, match="not a run folder"):
        hm.train(hm.DT(), hopper, out=tmp_path / "other", quiet=True, **TINY)


@pytest.mark.parametrize("method", [hm.CDT("x"), hm.DT("x"), hm.GoalDT("x")])
def test_a_feature_that_has_changed_is_another_training(
    method: hm.Method, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    def data(feature: object) -> hm.TrajectoryDataset:
        return hm.load_dataset(list(hopper), hm.Task("rig", 100, features={"x": feature}))  # type: ignore[dict-item]

    hm.train(method, data(5), out=tmp_path, quiet=True, **TINY)
    hm.train(method, data(5), out=tmp_path, quiet=True, resume=True, **TINY)
    for other in (lambda obs, act, rew: 3 * obs[:, 5], lambda obs, act, rew: obs[:, 5:7]):
        with pytest.raises(DataError, match="was trained with another feature 'x'"):
            hm.train(method, data(other), out=tmp_path, quiet=True, resume=True, **TINY)


def test_what_a_killed_run_left_is_written_over(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    for name in (".run.123.json", "episodes.safetensors"):
        (tmp_path / name).touch()
    hm.train(hm.CDT(), hopper, out=tmp_path, quiet=True, **TINY)
    assert hm.load(tmp_path).seeds == (0,)


@pytest.mark.parametrize("file", ["seed-0/last.safetensors", "normalizers.safetensors", "run.json"])
def test_a_checkpoint_cut_in_half_is_refused(file: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    hm.train(hm.DT(), hopper, out=run, quiet=True, **TINY)
    for cut, load in ((file, lambda: hm.load(run)), ("training.safetensors", lambda: resume(run, hopper))):
        content = (run / cut).read_bytes()
        (run / cut).write_bytes(content[: len(content) // 2])
        with pytest.raises(DataError, match=Path(cut).name):
            load()
        (run / cut).write_bytes(content)


def resume(run: Path, data: hm.TrajectoryDataset) -> hm.Policy:
    return hm.train(hm.DT(), data, out=run, quiet=True, resume=True, **TINY)


def test_weights_that_do_not_fit_are_refused(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    hm.train(hm.DT(), hopper, out=run, quiet=True, **TINY)
    describe_anew(run, model=RunFolder(run).description()["model"] | {"width": 32})
    with pytest.raises(DataError, match="do not fit"):
        hm.load(run)


def test_a_task_with_functions_must_be_registered_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from himatch.tasks import registry

    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    arrays = {
        "observations": np.random.default_rng(0).normal(size=(60, 2)),
        "actions": np.zeros((60, 1)),
        "lengths": [30, 30],
    }
    task = hm.register_task("rig", horizon=30, features={"speed": lambda obs, act, rew: abs(obs[:, 1])})
    hm.train(hm.CDT("speed"), hm.load_dataset(arrays, task), out=tmp_path / "run", quiet=True, **TINY)
    del registry._registry["rig"]
    with pytest.raises(HimatchError, match="register the task first"):
        hm.load(tmp_path / "run")
    plain = hm.Task("logs", 30, features={"x": 0})
    hm.train(hm.CDT("x"), hm.load_dataset(arrays, plain), out=tmp_path / "plain", quiet=True, **TINY)
    assert hm.load(tmp_path / "plain").task.features["x"] == 0
