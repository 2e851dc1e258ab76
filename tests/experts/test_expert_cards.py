"""Cards: read without PyTorch, shown as a table, folded where many agents differ in a setting only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run

import himatch as hm
from himatch.datagen.cache import cached_dataset
from himatch.datagen.recipes import Recipe, RecipePart
from himatch.experts import load_expert, read_cards
from himatch.experts.cards import read_weights
from himatch.experts.catalog import check, folded_names, markdown, rows


def test_lists_and_cached_datasets_need_no_torch(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"hopper-medium": Recipe("hopper-medium", "hopper", (RecipePart("hopper-medium", 2),))}
    for module in ("datagen.recipes", "datagen.cache"):
        monkeypatch.setattr(f"himatch.{module}.RECIPES", small)
    cached_dataset("hopper-medium", quiet=True)
    code = f"""
import sys
from pathlib import Path
import himatch as hm
from himatch.cli import main
from himatch.datagen import cache, recipes
from himatch.experts import cards
cards.BUNDLED = Path({str(bundled)!r})
small = {{"hopper-medium": recipes.Recipe("hopper-medium", "hopper", (recipes.RecipePart("hopper-medium", 2),))}}
for module in (cache, recipes):
    module.RECIPES = small
for command in (["data", "list"], ["experts", "list"], ["experts", "list", "--all", "--markdown"]):
    try:
        main(command)
    except SystemExit as done:
        assert not done.code
assert len(hm.load_dataset("hopper-medium")) == 2
print("torch" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert lines[-1] == "False"
    assert any(line.startswith("hopper-medium") and "MB" in line for line in lines)
    assert len(list((tmp_path / "cache").iterdir())) == 1  # it was found, not made again


def test_weights_are_the_agents_own(expert_folder: Path) -> None:
    cards = read_cards(expert_folder)
    for name in ("hopper-medium", "hopper-expert", "cheetah-vel-1.7"):
        expert, stored = load_expert(name, expert_folder), read_weights(cards[name], expert_folder)
        assert expert.weights.keys() == stored.keys()
        for key, tensor in expert.weights.items():
            np.testing.assert_array_equal(tensor.numpy(), stored[key])
    hashes = {load_expert(name, expert_folder).weights_hash for name in ("hopper-medium", "hopper-expert")}
    assert len(hashes) == 2


def test_acting_on_read_only_arrays_is_silent(expert_folder: Path) -> None:
    expert = load_expert("hopper-expert", expert_folder)
    seen, noise = np.ones((4, 11), np.float32), np.ones((4, 3), np.float32)
    expected = expert.act(seen.tolist(), noise)
    for array in (seen, noise):
        array.setflags(write=False)
    np.testing.assert_array_equal(expert.act(seen, noise), expected)  # warnings are errors
    assert expert.act(seen).shape == (4, 3)


@pytest.mark.parametrize("damage", ["weights cut", "weights missing", "card cut"])
def test_damaged_families_are_refused(damage: str, expert_folder: Path, tmp_path: Path) -> None:
    for name in ("hopper.json", "hopper.safetensors"):
        (tmp_path / name).write_bytes((expert_folder / name).read_bytes())
    path = tmp_path / ("hopper.json" if damage == "card cut" else "hopper.safetensors")
    if damage == "weights missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(hm.HimatchError, match=path.name):
        load_expert("hopper-expert", tmp_path)


def test_unknown_names_list_the_known_ones(expert_folder: Path) -> None:
    with pytest.raises(hm.HimatchError, match=r"no expert called 'hoper' is in .*; known: ant-expert, ant-medium,"):
        load_expert("hoper", expert_folder)


# -- tables ---------------------------------------------------------------------------------------------------------


def card(mean: float, **more: Any) -> dict[str, Any]:
    scores = {"episodes": 20, "mean": mean, "std": 12.34, "length": 200.0, **more}
    return {"stochastic": scores, "deterministic": scores, "steps": 165_000, "seed": 0, "family": "some"}


def test_agents_that_differ_in_a_setting_share_a_row() -> None:
    cards = {
        f"cheetah-vel-{i / 10:.1f}": {**card(-i, velocity_error=i / 1000), "settings": {"velocity": i / 10}}
        for i in range(4)
    }
    cards["hopper-expert"] = {**card(3000.4), "family": "hopper", "settings": {}}
    (velocities, hopper) = rows(cards, fold=True)
    assert velocities == ("some (4)", "-3 to 0", "-3 to 0", "200", "to 165k", "0", "off <= 0.003")
    assert hopper == ("hopper-expert", "3,000 +- 12", "3,000", "200", "165k", "0", "")
    assert folded_names(cards) == ["cheetah-vel-0.0 ... cheetah-vel-0.3"]
    each = rows(cards, fold=False)
    assert [row.name for row in each] == list(cards)
    assert each[2].check == "off by 0.002"


FLIPPING = "3 turns backwards, towards -x, in 18 of 20"


@pytest.mark.parametrize(
    ("name", "entry", "found"),
    [
        ("walker2d-expert", card(4000.0), ("", "return of at least 4,000", True)),
        ("walker2d-expert", card(3999.0), ("", "return of at least 4,000", False)),
        ("ant-medium", card(1300.0), ("26 % of expert", "25 to 50 % of its expert", True)),
        ("ant-medium", card(2600.0), ("52 % of expert", "25 to 50 % of its expert", False)),
        ("cheetah-vel-0.1", card(-6.0, velocity_error=0.151), ("off by 0.151", "mean velocity within 0.15", False)),
        ("backflip", card(9.0, flips_back=17), ("back: 17/20", FLIPPING, False)),
        ("backflip", card(9.0, flips_back=18), ("back: 18/20", FLIPPING, True)),
        ("arm-expert", card(9.0), ("", "", None)),
        ("arm-medium", card(9.0), ("", "", None)),
    ],
)
def test_what_agents_aim_at(name: str, entry: dict[str, Any], found: tuple[str, str, bool | None]) -> None:
    cards = {name: entry, "ant-expert": card(5000.0)}
    assert check(name, cards) == found
    verdict = {True: "met |", False: "**missed** |", None: "|  |"}[found[2]]
    lines = markdown(rows(cards, fold=True)[:1], cards).splitlines()
    assert lines[2].endswith(verdict)
    assert lines[-1].endswith(f"missed: `{name}`." if found[2] is False else "missed: none.")


@pytest.mark.parametrize("width", [80, 120])
def test_lists_fit_the_terminal(run: Run, width: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HIMATCH_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for command in (("experts", "list"), ("experts", "list", "--all"), ("data", "list")):
        code, out, _ = run(*command)
        out = re.sub(r"\x1b\[\d+m", "", out)
        assert code == 0
        assert "…" not in out  # nothing is cut
        assert max(map(len, out.splitlines())) <= width
    assert run("experts", "list")[1].count("cheetah-vel") == 3
    assert run("experts", "list", "--all")[1].count("cheetah-vel") == 31


def test_a_folder_without_experts_is_one_line(run: Run, tmp_path: Path) -> None:
    code, _, err = run("experts", "list", tmp_path)
    assert (code, err) == (2, f"himatch: {tmp_path} has no experts; himatch experts pick writes some\n")
    (tmp_path / "odd.json").write_text(json.dumps({"agents": [{"name": "odd"}]}))
    code, _, err = run("experts", "list", tmp_path)
    assert code == 2
    assert "the cards in" in err
