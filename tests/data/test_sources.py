"""Named datasets come from providers, which are imported when a name is neither a path nor a Minari id."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from builders import ARM, make_episodes, write_npz

import himatch as hm
from himatch.data import sources
from himatch.errors import DataError, HimatchWarning


class Shop:
    """A provider: one dataset, kept in the cache folder."""

    @staticmethod
    def dataset_names() -> tuple[str, ...]:
        return ("arm-logs",)

    @staticmethod
    def dataset_task(name: str) -> str:
        return "hopper"

    @staticmethod
    def dataset_folder(name: str, cache: str | Path | None) -> Path:
        return write_npz(make_episodes(), Path(cache or "."))


class Entry:
    def __init__(self, name: str, found: object) -> None:
        self.name, self.found = name, found

    def load(self) -> object:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [Entry("broken", RuntimeError("out of order")), Entry("shop", Shop)]
    monkeypatch.setattr(sources, "entry_points", lambda group: entries if group == "himatch.datasets" else [])
    sources._announced.cache_clear()
    yield
    sources._announced.cache_clear()


def test_packages_announce_datasets(announced: None, tmp_path: Path) -> None:
    with pytest.warns(HimatchWarning, match="datasets of broken could not be loaded: RuntimeError: out of order"):
        dataset = hm.load_dataset("arm-logs", ARM, cache=tmp_path)
    assert len(dataset) == 4
    assert sources.task_made_for("arm-logs") == "hopper"
    assert sources.task_made_for("hopper-medium+arm-logs") == "hopper"
    assert sources.task_made_for(str(tmp_path)) is None
    with pytest.raises(DataError, match="did you mean arm-logs"):
        hm.load_dataset("arm-log", ARM)


def test_a_path_of_the_name_wins(announced: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm-logs").mkdir()
    with pytest.raises(DataError, match="is a folder but not a Minari one"):
        hm.load_dataset("arm-logs", ARM)


def test_logs_are_read_without_what_makes_datasets(tmp_path: Path) -> None:
    path = write_npz(make_episodes(), tmp_path)
    code = f"""
import sys, himatch as hm
assert len(hm.load_dataset({str(path)!r})) == 4
rooms = ("datagen", "experts", "simulation", "methods", "training")
print([room for room in rooms if f"himatch.{{room}}" in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
