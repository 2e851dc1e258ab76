"""What is wrong with a run folder is said in one line: damage, other versions, edits, files of other runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import himatch as hm
from himatch._runtime.seals import read_found, write_sealed
from himatch._runtime.tensors import read_facts, read_tensors, write_tensors
from himatch.errors import DataError
from himatch.interchange.card import model_card
from himatch.models import BUNDLED, read_card
from himatch.runs.folder import RunFolder
from himatch.runs.hub import HubName


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BUNDLED / "hopper-cdt", tmp_path / "hopper-cdt"))


def refused(run: Path, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        hm.load(run).reference()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["seed-1/best.safetensors", "normalizers.safetensors", "episodes.safetensors"])
@pytest.mark.parametrize("place", [20, -1])
def test_a_flipped_bit_is_noticed(name: str, place: int, run: Path) -> None:
    content = bytearray((run / name).read_bytes())
    content[place] ^= 1
    (run / name).write_bytes(content)
    refused(run, rf"{Path(name).name}: damaged")


def test_an_edit_of_the_description_is_noticed(run: Path) -> None:
    stored = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(stored))  # only its layout
    hm.load(run)
    (run / "run.json").write_text(json.dumps(stored | {"temperature": 0.5}))
    refused(run, r"run\.json: edited or damaged \(its checksum differs\); restore it or train again")
    with pytest.raises(DataError, match="edited or damaged"):
        read_card(run)


def test_an_edit_of_the_scores_is_noticed(run: Path) -> None:
    path = run / "scores.json"
    stored = json.loads(path.read_text())
    assert RunFolder(run).scores() == {key: value for key, value in stored.items() if key != "sha256"}
    without = {key: value for key, value in stored.items() if key != "sha256"}
    for changed in (stored | {"sensitivity": [9.0]}, stored | {"more": 1}, without):
        path.write_text(json.dumps(changed))
        with pytest.raises(DataError, match=r"scores.json: edited, damaged or .*; restore it or remove it, policy.sco"):
            RunFolder(run).scores()
    RunFolder(run).write_scores({"sensitivity": [float("nan")]})
    assert list(RunFolder(run).scores() or {}) == ["sensitivity"]


def test_an_edit_of_an_evaluation_is_noticed(run: Path) -> None:
    stored = json.loads((run / "evaluation.json").read_text())
    assert stored["sha256"]
    better = json.loads(json.dumps(stored))
    better["summary"]["total"]["mean"] /= 2
    for changed in (better, {key: value for key, value in stored.items() if key != "sha256"}):
        (run / "evaluation.json").write_text(json.dumps(changed))
        for read in (
            read_card,
            lambda path: RunFolder(path).evaluated(),
            lambda path: model_card(hm.load(path), HubName.parse("hf:a/b")),
        ):
            with pytest.raises(
                DataError, match=r"evaluation.json: edited, damaged or .*; restore it or write it again"
            ):
                read(run)


def test_keys_that_are_no_text_are_sealed_as_they_are_read(tmp_path: Path) -> None:
    write_sealed(tmp_path / "found.json", {"weights": {10: 0.5, 9: (1, 2)}, "none": float("nan")})
    assert read_found(tmp_path / "found.json", "again")["weights"] == {"10": 0.5, "9": [1, 2]}


@pytest.mark.parametrize("form", [None, 1, 3])
def test_other_formats_are_refused(form: int | None, run: Path) -> None:
    stored: dict[str, Any] = json.loads((run / "run.json").read_text())
    assert stored["format"] == 2
    from himatch._runtime.seals import sealed

    changed = {k: v for k, v in stored.items() if k != "format"} | ({} if form is None else {"format": form})
    (run / "run.json").write_text(json.dumps(sealed(changed)))
    refused(run, rf"written by another version of himatch \(format {form}, this one reads 2\)")
    del changed["sha256"]
    (run / "run.json").write_text(json.dumps(changed))
    refused(run, "written by an earlier version of himatch, or damaged")


def test_weights_of_another_run_are_noticed(run: Path) -> None:
    shutil.copyfile(BUNDLED / "walker2d-cdt" / "seed-1" / "best.safetensors", run / "seed-1" / "best.safetensors")
    refused(run, r"best\.safetensors: belongs to another run, or to another place in this one")


def test_constants_of_another_run_are_noticed(run: Path) -> None:
    shutil.copyfile(BUNDLED / "walker2d-cdt" / "episodes.safetensors", run / "episodes.safetensors")
    refused(run, r"episodes\.safetensors: damaged \(its checksum differs\); restore it or train again")
    (run / "episodes.safetensors").unlink()
    refused(run, r"episodes\.safetensors is missing")


def test_weights_of_an_earlier_version_are_refused(run: Path) -> None:
    path = run / "seed-1" / "best.safetensors"
    save_file(load_file(path), path)
    refused(run, r"best\.safetensors: damaged, or written by an earlier version")


def test_the_same_tensors_give_the_same_bytes(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(3.0), "a": torch.ones(2, 2, dtype=torch.int8), "c": torch.tensor(1)}
    facts = {name: name for name in "zyxwvu"}
    for name in ("one", "two"):
        write_tensors(tmp_path / name, tensors, **facts)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert all(torch.equal(found, tensors[name]) for name, found in read_tensors(tmp_path / "one").items())
    assert all(torch.equal(found, tensors[name]) for name, found in load_file(tmp_path / "one").items())
    assert facts.items() <= read_facts(tmp_path / "one").items()


def test_rows_of_metrics_are_checked(run: Path) -> None:
    folder, path = RunFolder(run), run / "seed-1" / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [row["step"] for row in folder.metrics(1)] == [1, 2]  # the last one was cut by a kill
    for line in ('{"st', "3", '{"loss": 1}', '{"step": "1"}', '{"step": true}'):
        path.write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
        with pytest.raises(DataError, match=r"metrics\.jsonl: line 2 .*; remove that line"):
            folder.metrics(1)
