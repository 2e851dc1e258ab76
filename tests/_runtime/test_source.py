"""The name of the source is git's."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from himatch._runtime import source

FILES = {"b-c": "", "b/x.py": "2", "b.py": "1", "b/deep/y.py": "3", "b/__pycache__/x.pyc": "9", "é.bin": "\0"}


@pytest.fixture
def forgotten() -> Iterator[None]:
    source.source_tree.cache_clear()
    yield
    source.source_tree.cache_clear()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git to ask")
def test_a_tree_is_called_what_git_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "src" / "pack"
    for name, content in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    (package / "empty").mkdir()
    (tmp_path / ".gitignore").write_text("__pycache__/\n")

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    monkeypatch.setattr(source, "PACKAGE", package)
    assert source.source_tree() == git("rev-parse", f"{git('write-tree')}:src")


def test_it_is_of_the_whole_package() -> None:
    assert len(source.source_tree()) == 40
    assert (source.PACKAGE / "_version.py").is_file()
