"""``benchmarks/peers.py``: what is installed here runs, the rest is left out, ratios are of medians."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def peers() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("peers")
    sys.path.remove(str(BENCHMARKS))
    for script in BENCHMARKS.glob("*.py"):  # their names are as common as "training"
        sys.modules.pop(script.stem, None)


@pytest.mark.filterwarnings("ignore::himatch.HimatchWarning")  # a rollout of four steps is shorter than usual
@pytest.mark.parametrize(
    ("part", "name", "library"),
    [
        ("training", "himatch", "himatch"),
        ("training", "Hugging Face", "transformers"),
        ("evaluation", "himatch, 1 episode", "himatch"),
        ("evaluation", "Hugging Face", "transformers"),
    ],
)
def test_a_contestant_runs(part: str, name: str, library: str, peers: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip(library)
    contestant = peers.PARTS[part][name](peers.Setting("cpu", tmp_path, steps=2000, length=4))
    assert contestant.measure(0.01) > 0
    assert contestant.precision == "float32"
    if part == "training":
        assert contestant.parameters > 700_000


def test_what_is_missing_is_left_out_in_a_line(
    peers: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(peers.NEEDS, "d3rlpy", "no_such_package")
    found = list(peers.wanted(peers.torch.device("cpu"), ["himatch, 4"]))
    assert capsys.readouterr().out == "d3rlpy: left out, no_such_package is not installed\n"
    assert not any(row.name.startswith(("d3rlpy", "himatch, 4", "himatch, 16")) for row in found)
    assert {row.part for row in found} == set(peers.PARTS)


def test_what_fails_says_so_in_a_line(peers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(_: object) -> None:
        raise ValueError("not here\nnor there")

    monkeypatch.setitem(peers.PARTS["training"], "himatch", fails)
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        peers.serve("training", "himatch", peers.Setting("cpu", tmp_path), theirs)
        assert ours.recv() == "ValueError: not here"


def test_ratios_are_of_medians(peers: ModuleType) -> None:
    rates = {"himatch": [300.0, 30.0, 200.0], "Hugging Face": [20.0, 1.0, 25.0]}
    rows = [peers.Row("training", name, "eager", "float32", 1, found) for name, found in rates.items()]
    lines = peers.table("training", rows).splitlines()
    assert lines[2].endswith("| median | x Hugging Face |")
    assert lines[4] == "| himatch | eager | float32 | 300, 30, 200 | 200 | 10.00 |"
    assert lines[5].endswith("| 20 | 1.00 |")
