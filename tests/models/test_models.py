"""Pretrained policies: those that come with himatch do what their cards say, and a run becomes one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Run
from untrained import fallen_hoppers

import himatch as hm
from himatch._runtime.tensors import read_tensors
from himatch.errors import DataError, HimatchError
from himatch.interchange.bundle import bundle
from himatch.models import model_names, read_card, read_cards
from himatch.rehearsal import Arena
from himatch.rehearsal.repertoire import library, read_repertoire

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "quiet": True}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = hm.load_dataset(fallen_hoppers(range(24)), "hopper")
    folder = tmp_path_factory.mktemp("models") / "run"
    return hm.train(hm.CDT("x_velocity"), hm.paper_split(data), out=folder, seeds=2, **SMALL).folder


def test_what_comes_with_himatch_is_small_and_has_cards() -> None:
    cards = {card.name: card for card in read_cards()}
    assert set(cards) == {"halfcheetah-cdt", "hopper-cdt", "walker2d-cdt", "halfcheetah-bdt"}
    assert all(card.size < 6_000_000 for card in cards.values())
    assert sum(card.size for card in cards.values()) < 15_000_000
    walker = cards["walker2d-cdt"]  # which falls now and then
    assert walker.charged > walker.w1["total"] + 0.05
    for card in cards.values():
        assert (card.targets, card.episodes, card.feature) == (10, 20, "x_velocity")
        assert len(card.data_hash) == 64
        assert card.command.startswith(f"himatch train {card.method} ")


@pytest.mark.parametrize(("name", "slow", "fast"), [("halfcheetah-cdt", 4.0, 10.5), ("walker2d-cdt", 1.5, 3.1)])
def test_a_model_uses_its_conditioning(name: str, slow: float, fast: float) -> None:
    policy, rng = hm.load(name), np.random.default_rng(0)
    asked = [rng.normal(mean, 0.5, 200) for mean in (slow, fast)]
    results = policy.match_all(asked, episodes=2, threads=1)
    means = [np.concatenate([np.ravel(e)[100:] for seed in result.features for e in seed]).mean() for result in results]
    assert means[1] - means[0] > 0.6 * (fast - slow)


@pytest.mark.parametrize("name", ["halfcheetah-cdt", "hopper-cdt", "walker2d-cdt"])
def test_a_model_brings_its_repertoire(name: str) -> None:
    """Of the policy as it acts, so that only programs have to be searched for."""
    policy = hm.load(name)
    arena = Arena(policy.run, policy.agent, policy.temperature)
    repertoire = read_repertoire(arena)
    assert repertoire is not None
    assert list(repertoire.entries) == library(arena)
    slow, *_, fast = sorted(repertoire.speed(0))
    assert fast > 1.5 * slow  # what it is conditioned on matters


def test_a_run_becomes_a_model(trained: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "models" / "fallen"
    code, printed, err = run("models", "bundle", trained, "--out", out, "--seed", 1, "--kept", 5, "--episodes", 2)
    assert (code, "MB: W1" in printed) == (0, True), err
    whole, model = hm.load(trained), hm.load(out)
    assert model.seeds == (1,)
    for name, stored in read_tensors(out / "seed-1" / "last.safetensors").items():
        assert stored.dtype == torch.float16
        original = read_tensors(trained / "seed-1" / "last.safetensors")[name]
        torch.testing.assert_close(stored.float(), original, rtol=1e-3, atol=1e-5)
    assert read_repertoire(Arena(model.run, model.agent, model.temperature)) is not None
    thinned, reference = model.reference(), whole.reference()
    assert len(thinned.lengths) == 5
    ends = np.cumsum(reference.lengths)
    last = reference.values[ends[-1] - reference.lengths[-1] :]
    np.testing.assert_allclose(thinned.episode(4), last, rtol=1e-3)  # the last one stays, with its own steps
    assert thinned.lengths.sum() == len(thinned.values)
    usual = {label.name: label.target for label in model.show().labels}  # of held-out episodes, which stay behind
    assert usual.keys() == {"expert", "medium"}
    assert all(target is not None and model.target(target) for target in usual.values())
    card = read_card(out)
    content = json.loads((out / "evaluation.json").read_text())
    assert card.w1["total"] == pytest.approx(np.mean([target["w1"] for target in content["targets"]]))
    assert (content["summary"]["total"]["low"], content["summary"]["total"]["mean_low"]) == (None, None)  # one seed
    (tmp_path / "targets.txt").write_text("normal(1,0.3)\nnormal(2,0.3)\n")
    asked = ("evaluate", out, "--targets", tmp_path / "targets.txt", "--episodes", 1, "--out", tmp_path / "e.json")
    code, printed, err = run(*asked)
    assert code == 0, err
    assert re.search(
        r"^targets: .*, interquartile mean \d+\.\d{3}, played \d+%, charged \d+\.\d+$", printed, re.MULTILINE
    )
    code, printed, _ = run("models", "list", out.parent)
    assert (code, f'himatch match {out} --target "..." or himatch.load("{out}")' in printed) == (0, True)
    shutil.copytree(out, tmp_path / "named" / "[bold]mine")
    assert "[bold]mine" in run("models", "list", tmp_path / "named")[1]
    held_out = whole.held_out
    assert held_out is not None
    assert np.isfinite(model.match(hm.demo(held_out[0]), episodes=1, conditioning="planned", feature="x_velocity").w1)


def test_the_rate_of_the_bundled_models_is_that_of_their_environments() -> None:
    rates = {name: hm.load(name).rate for name in ("hopper-cdt", "walker2d-cdt", "halfcheetah-cdt")}
    assert rates == {"hopper-cdt": 125, "walker2d-cdt": 125, "halfcheetah-cdt": 20}


def test_what_cannot_become_a_model(trained: Path, run: Run, tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match="no seed 7; it has 0, 1"):
        bundle(trained, tmp_path / "out", seed=7)
    data = hm.load_dataset(fallen_hoppers(range(16)), "hopper")
    bare = hm.train(hm.BC(), data, out=tmp_path / "bare", split="none", **SMALL).folder
    code, _, err = run("models", "bundle", bare, "--out", tmp_path / "out")
    assert (code, "no held-out episodes" in err) == (2, True)
    assert not (tmp_path / "out").exists()
    code, _, err = run("models", "list", tmp_path / "nothing")
    assert (code, "has no models" in err) == (2, True)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DataError, match=r"nor a model that comes with himatch .*hopper-cdt"):
        hm.load("humanoid-cdt")


def test_a_folder_of_that_name_wins(trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hopper-cdt").symlink_to(trained)
    assert hm.load("hopper-cdt").seeds == (0, 1)


def test_the_table_of_models_is_up_to_date(run: Run) -> None:
    """Mend it with the output of himatch models list --markdown."""
    _, printed, _ = run("models", "list", "--markdown")
    assert printed.count("\n| `") == len(model_names())
    assert printed.strip() in (ROOT / "docs" / "models.md").read_text()
