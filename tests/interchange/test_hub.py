"""Runs pushed to and loaded from a folder that stands in for the Hub, through the real ``huggingface_hub``."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from local_hub import LocalHub
from untrained import untrained

import himatch as hm
from himatch._runtime.seals import write_sealed
from himatch.cli.main import parse
from himatch.cli.train import TrainRun
from himatch.data import write_minari
from himatch.errors import HimatchError
from himatch.interchange.card import command, model_card
from himatch.methods import method_spec
from himatch.models import model_names
from himatch.runs.hub import HubName
from himatch.training import configure

pytest.importorskip("huggingface_hub")  # an extra; make test has it

NAME = "hf:somebody/hopper-cdt"
SMALL = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "quiet": True}


@pytest.fixture
def trained(hopper: hm.TrajectoryDataset, tmp_path: Path) -> Path:
    split = hm.paper_split(hopper)
    return hm.train(hm.CDT("x_velocity"), split, out=tmp_path / "run", seeds=2, **SMALL).folder  # type: ignore[arg-type]


def test_what_is_loaded_is_what_was_pushed(trained: Path, hub: LocalHub, hopper: hm.TrajectoryDataset) -> None:
    assert hm.push(trained, NAME, private=True).endswith("/somebody/hopper-cdt")
    assert hub.private == {"somebody/hopper-cdt": True}
    ours, theirs = hm.load(trained), hm.load(NAME)
    assert theirs.folder != trained
    assert theirs.description == ours.description
    np.testing.assert_array_equal(ours.actions(hopper[3]), theirs.actions(hopper[3]))
    actions = [
        policy.controller("normal(1,0.5)", conditioning="planned").act(np.zeros(11)) for policy in (ours, theirs)
    ]
    np.testing.assert_array_equal(*actions)
    assert theirs.held_out is None  # nobody's episodes leave the machine


def test_folders_of_ones_own_machine_stay_there(hub: LocalHub, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    logs = tmp_path / "at-home" / "hopper-mine-v0"
    write_minari(hopper, logs)
    first = hm.train(hm.DT(), hm.load_dataset(logs), out=tmp_path / "first", **SMALL).folder  # type: ignore[arg-type]
    run = hm.train(hm.DT(), hm.load_dataset(logs), out=tmp_path / "run", start=first, **SMALL).folder  # type: ignore[arg-type]
    assert str(logs) in str(hm.load(run).show())
    hm.push(run, NAME)
    theirs = hm.load(NAME)
    assert theirs.description["data"]["source"] == theirs.description["start"]["data"]["source"] == "hopper-mine-v0"
    for path in theirs.folder.rglob("*"):
        assert not path.is_file() or b"at-home" not in path.read_bytes()


@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_a_stochastic_policy_keeps_its_temperature(
    temperature: float, hub: LocalHub, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    stochastic = {**SMALL, "head": "gaussian", "temperature": temperature}
    ours = hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", **stochastic)  # type: ignore[arg-type]
    hm.push(ours.folder, NAME)
    theirs = hm.load(NAME)
    assert theirs.temperature == ours.temperature == temperature
    actions = [policy.controller("normal(1,0.5)", noise=3).act(np.zeros(11)) for policy in (ours, theirs)]
    np.testing.assert_array_equal(*actions)


def test_only_what_loading_needs_travels(trained: Path, hub: LocalHub) -> None:
    wanted = {"README.md", "episodes.safetensors", "normalizers.safetensors", "run.json", "scores.json"}
    wanted |= {f"seed-{seed}/last.safetensors" for seed in (0, 1)}
    hm.push(trained, NAME)
    assert set(hub.files("somebody/hopper-cdt")) == wanted | {".gitattributes"}
    hub.change("somebody/hopper-cdt", {"code.py": b"boom", "x.pkl": b"boom", "training.safetensors": b"boom"})
    hm.load(NAME)
    assert set(hub.downloads) == wanted


def test_pushing_again_replaces_what_was_there(trained: Path, hub: LocalHub, hopper: hm.TrajectoryDataset) -> None:
    write_sealed(trained / "evaluation.json", {})
    hm.push(trained, NAME)
    first = hub.commits("somebody/hopper-cdt")[-1]
    other = hm.train(hm.DT(), hopper, out=trained.parent / "dt", **SMALL)  # type: ignore[arg-type]
    hm.push(other.folder, NAME)
    names = set(hub.files("somebody/hopper-cdt"))
    assert "seed-0/last.safetensors" in names
    assert not names & {"seed-1/last.safetensors", "evaluation.json"}
    assert hm.load(NAME).method == hm.DT()
    assert hm.load(f"{NAME}@{first}").method == hm.CDT("x_velocity")


def test_the_cache_serves_without_a_network(trained: Path, hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hm.push(trained, NAME)
    expected = hm.load(NAME).description
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert hm.load(NAME).description == expected
    with pytest.raises(HimatchError, match=r"hf:somebody/else: the Hub cannot be reached, and there is no copy"):
        hm.load("hf:somebody/else")
    with pytest.raises(HimatchError, match="the Hub cannot be reached or refuses"):
        hm.push(trained, NAME)


def test_what_is_not_there(trained: Path, hub: LocalHub) -> None:
    hm.push(trained, NAME)
    hub.create("somebody/gpt")
    for name, message in (
        ("hf:somebody/nothing", "there is no hf:somebody/nothing on the Hub, or it is private"),
        (f"{NAME}@v9", f"{NAME}@v9: the repository has no branch, tag or commit of that name"),
        ("hf:somebody/gpt", "hf:somebody/gpt is not a run of himatch"),
        ("hf:somebody", "write hf:USER/NAME"),
        ("hf:../../etc", "write hf:USER/NAME"),
        ("hf:a/b@", "write hf:USER/NAME"),
    ):
        with pytest.raises(HimatchError, match=message.replace(".", r"\.")) as caught:
            hm.load(name)
        assert "\n" not in str(caught.value)


def test_pushes_that_are_refused(trained: Path, hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HimatchError, match="leave out @v1"):
        hm.push(trained, f"{NAME}@v1")
    with pytest.raises(HimatchError, match="names nothing on the Hub"):
        hm.push(trained, "somebody/hopper-cdt")
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    with pytest.raises(HimatchError, match="log in: hf auth login"):
        hm.push(trained, NAME)
    (trained / "seed-1" / "last.safetensors").unlink()
    with pytest.raises(HimatchError, match="incomplete"):
        hm.push(trained, NAME)
    assert not (hub.root / "somebody").exists()


def test_without_the_library(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(HimatchError, match=r'pip install "himatch\[hub\]"'):
        hm.load(NAME)


def test_the_card_says_what_the_run_is(trained: Path, hub: LocalHub) -> None:
    group = {"mean": 1.25, "std": 0.5, "iqm": 1.125, "low": 1.0, "high": 1.5}
    evaluation = {
        "feature": "x_velocity", "conditioning": "nominal", "summary": {"expert": group},
        "targets": [{"episodes": 7}], "provenance": {"env_id": "Hopper-v5"},
    }  # fmt: skip
    write_sealed(trained / "evaluation.json", evaluation)
    hm.push(trained, NAME)
    card = hub.files("somebody/hopper-cdt")["README.md"].read_text()
    described = hm.load(trained).description
    for text in (
        "library_name: himatch",
        "# hopper-cdt\n",
        f'himatch.load("{NAME}")',
        described["data"]["hash"],
        f"torch {described['versions']['torch']}",
        "distribution of x_velocity over the rest of the episode: shares in 31 equal bins",
        "| targets | error | interquartile mean (95% interval) |",
        "| expert | 1.250 ± 0.500 | 1.125 (1.000 to 1.500) |",
        "7 rollouts of each and every seed, in Hopper-v5",
        "Generalized Decision Transformer for Offline Hindsight Information Matching",
        command(described),
    ):
        assert text in card
    from huggingface_hub import ModelCard

    assert ModelCard(card).data.tags[-1] == "hopper"  # the Hub's own reader understands the header


@pytest.mark.parametrize("name", model_names())
def test_the_card_of_one_seed_has_no_interval(name: str) -> None:
    card = model_card(hm.load(name), HubName.parse(NAME))
    assert "| targets | error | interquartile mean | played | charged |" in card
    assert re.search(r"\| total \|.*\| >?\d+% \| \d\.\d{3} \|$", card, re.MULTILINE)
    assert re.search(r"\| total \| \d\.\d{3} ± \d\.\d{3} \| \d\.\d{3} \|", card)
    assert " to " not in card.partition("interquartile mean |")[2].partition("##")[0]


@pytest.mark.parametrize(
    "method",
    [hm.BC(), hm.DT(), hm.DT("x_velocity,z_velocity"), hm.CDT("x_velocity,height"), hm.MomentsDT("pitch"), hm.GoalDT()],
    ids=str,
)
def test_the_target_on_the_card_is_one_of_this_run(
    method: hm.methods.Method, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = untrained(method, hopper, tmp_path)
    card = model_card(policy, HubName.parse(NAME))
    (text,) = re.findall(r'policy\.match\("(.*)"\)', card)
    assert f'himatch match {NAME} --target "{text}"' in card
    frame = policy.reference().frame
    values = hm.parse_target(text).values(frame)
    assert values.shape == (1000, frame.bins.dimensions)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (hm.CDT("x_velocity", bins=7), {"preset": "paper", "steps": 3}),
        (hm.DTAE(mode="joint", coefficient=0.5), {"preset": "cpu", "learning_rate": 3e-4, "width": 32}),
        (hm.BC(), {"preset": "fast", "steps": 100, "warmup": 7, "head": "gaussian"}),
        (hm.CDT("x_velocity"), {"preset": "cpu", "steps": 3000, "warmup": 200}),  # the preset's, but not of 3000 steps
        (hm.MetaBC(m=5, pretrain_steps=9), {"preset": "cpu", "steps": 100}),
        (hm.BDT(codes="public", public_mask=True), {"preset": "fast"}),
        (hm.DTE2E(hidden=(32, 16)), {"preset": "fast"}),
        (hm.FOCAL(target_divergence=0.5, tasks=3, context_steps=2), {"preset": "fast", "width": 32}),
    ],
)
def test_the_command_on_the_card_makes_the_same_run(
    method: hm.methods.Method, settings: dict[str, object], hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    model, train = configure(method=method, **settings)  # type: ignore[arg-type]
    description = untrained(hm.BC(), hopper, tmp_path).description
    description |= {"method": json.loads(json.dumps(method_spec(method))), "seeds": [3, 4]}
    description |= {"model": asdict(model), "train": asdict(train)}
    words = shlex.split(command(description))
    assert words[:2] == ["himatch", "train"]
    parsed = parse(words[1:])
    assert isinstance(parsed, TrainRun)
    assert parsed.make_method() == method
    assert parsed.preset is not None
    assert configure(parsed.preset, method, **parsed.overrides) == (model, train)
    assert (parsed.settings.seed, parsed.settings.seeds, parsed.split, parsed.data.task) == (3, 2, "none", "hopper")
