"""What cannot be written is said in one line, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import Run, assert_refused

import himatch as hm
from himatch._runtime.files import (
    add_row,
    check_picture,
    check_target,
    entry,
    new_file,
    new_folder,
    read_json,
    read_rows,
    write_json,
)
from himatch.errors import DataError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "afile"
    path.write_text("mine")
    return path


@pytest.mark.parametrize("below", ["x.json", "deep/er/x.json"])
def test_a_path_below_a_file(file: Path, below: str) -> None:
    def folder() -> None:
        with new_folder(file / below):
            pass

    for write in (lambda: write_json(file / below, {}), lambda: check_target(file / below), folder):
        with pytest.raises(DataError, match="a part of that path is a file"):
            write()
    assert [path.name for path in file.parent.iterdir()] == ["afile"]
    assert file.read_text() == "mine"


def test_what_goes_wrong_in_the_block_is_said_and_not_what_goes_wrong_in_tidying(tmp_path: Path) -> None:
    def interfere() -> None:
        with new_file(tmp_path / "made" / "x") as partial:
            partial.parent.rmdir()
            partial.parent.write_text("in the way")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        interfere()


def test_targets_are_checked_without_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_target(tmp_path / "new" / "folder" / "x.json")
    check_picture(tmp_path / "x.PNG")
    with pytest.raises(DataError, match="it is a folder"):
        check_target(tmp_path)
    with pytest.raises(hm.HimatchError, match=r"must end in \.png"):
        check_picture(tmp_path / "x.doc")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    with pytest.raises(DataError, match="no permission"):
        check_target(tmp_path / "new" / "x.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ("match", "hopper-cdt", "--target", "normal(2,0.3)", "--plot", "x.png"),
        ("match", "hopper-cdt", "--target", "normal(2,0.3)", "--video", "x.gif"),
        ("evaluate", "hopper-cdt", "--out", "x.json"),
        ("export", "hopper-cdt", "--out", "x.onnx"),
    ],
)
def test_commands_say_so_before_they_begin(file: Path, run: Run, command: tuple[str, ...]) -> None:
    assert_refused(run(*command[:-1], file / command[-1]), command[-1], "a part of that path is a file")


def test_a_run_folder_below_a_file(hopper: hm.TrajectoryDataset, file: Path) -> None:
    with pytest.raises(DataError, match="a part of that path is a file"):
        hm.train(hm.BC(), hopper, out=file / "run", preset="cpu", steps=1, quiet=True)


# -- while something is written ------------------------------------------------------------------------------------


def test_nobody_sees_a_file_before_it_is_whole(tmp_path: Path) -> None:
    with new_file(tmp_path / "a.json") as partial:
        partial.write_text("{")
        assert partial.suffix == ".json"
        assert not list(tmp_path.glob("*.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def dataset_in(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "packed.json").write_text(text)


def test_a_folder_that_came_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "made"

    def slow() -> None:
        with new_folder(target):
            dataset_in(target, "somebody's")

    with pytest.raises(DataError, match="exists already"):
        slow()
    assert (target / "packed.json").read_text() == "somebody's"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_dataset_is_replaced_and_other_folders_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace_it(folder: Path) -> None:
        with new_folder(folder, overwrite=True) as partial:
            dataset_in(partial, "new")

    dataset_in(tmp_path / "data", "old")
    replace_it(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    replace_it(tmp_path / "empty")
    assert [(path / "packed.json").read_text() for path in (tmp_path / "data", tmp_path / "empty")] == ["new", "new"]
    (tmp_path / "thesis" / "data").mkdir(parents=True)
    (tmp_path / "thesis" / "data" / "metadata.json").write_text("{}")  # as many a project has
    (tmp_path / "thesis" / "chapter").write_text("one")
    with pytest.raises(DataError, match="not replaced: 'chapter' in it is no part of a dataset"):
        replace_it(tmp_path / "thesis")
    dataset_in(tmp_path / "thesis" / "data", "old")
    with pytest.raises(DataError, match=r"'metadata\.json' in it"):
        replace_it(tmp_path / "thesis" / "data")
    (tmp_path / "nothing").mkdir()
    with new_folder(tmp_path / "nothing") as partial:  # what is empty is nobody's
        dataset_in(partial, "new")
    monkeypatch.chdir(tmp_path / "data")
    for around in (Path(), Path("../data"), tmp_path):
        with pytest.raises(DataError, match="the folder that you are in"):
            replace_it(around)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "empty", "nothing", "thesis"]


def test_an_interruption_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, rename = tmp_path / "data", Path.rename
    dataset_in(target, "old")

    def interrupted(path: Path, to: Path) -> Path:
        if path.parent == tmp_path and to == target:
            raise KeyboardInterrupt
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), new_folder(target, overwrite=True) as partial:
        dataset_in(partial, "new")
    assert (target / "packed.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_rows_that_a_crash_cut_short_are_dropped(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    add_row(rows, {"step": 1})
    for cut in (b'{"step', b"\xff\xfe\x00"):
        rows.write_bytes(b'{"step": 1}\n' + cut)
        assert read_rows(rows) == [{"step": 1}]
    with pytest.raises(DataError, match="cannot be written, it is a folder"):
        add_row(tmp_path, {"step": 1})


# -- what a JSON file must hold ------------------------------------------------------------------------------------


def test_entries_of_json_are_checked(tmp_path: Path) -> None:
    content = {"task": {"name": "arm", "horizon": 3}, "seeds": [0, 1], "flag": True}
    assert entry(content, str, "here", "task", "name") == "arm"
    assert entry(content, int, "here", "seeds", 1) == 1
    assert entry(content, float, "here", "task", "horizon") == 3.0
    assert entry(content, bool, "here", "flag") is True
    for kind, keys, reason in (
        (str, ("task", "env"), "no task.env in it"),
        (int, ("seeds", 2), r"no seeds\.2 in it"),
        (str, ("seeds", 0), r"seeds\.0 is int, not str"),
        (int, ("flag",), "flag is bool, not int"),
        (float, ("flag",), "flag is bool, not float"),
        (str, ("task", "name", "first"), "no task.name.first in it"),
    ):
        with pytest.raises(DataError, match=rf"^here: cannot be read, the file is damaged .*\({reason}\)$"):
            entry(content, kind, "here", *keys)
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(DataError, match=r"list\.json: cannot be read.*a JSON object was expected, not list"):
        read_json(tmp_path / "list.json")
    with pytest.raises(DataError, match=r"none\.json is missing"):
        read_json(tmp_path / "none.json")


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    """Not what a living one holds, nor the old folder where the new one had not taken its place."""
    for name in ("..himatch-abc", ".data-v0.himatch-def", ".set-v0.himatch-old-ghi/set-v0/data", ".mine"):
        (tmp_path / name).mkdir(parents=True)
    with new_folder(tmp_path / "data-v0") as partial:
        (partial / "x").touch()
        write_json(tmp_path / "a.json", {})
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([".mine", "a.json", partial.name, "set-v0"])
    assert sorted(p.name for p in tmp_path.iterdir()) == [".mine", "a.json", "data-v0", "set-v0"]
    assert (tmp_path / "set-v0" / "data").is_dir()
