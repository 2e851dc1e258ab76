"""Every code block of README and docs runs, page by page, in a folder of its own."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from document_blocks import LANGUAGES, NOTES, ROOT, Block, as_a_process, blocks, check_command, pages, run_page
from short_tasks import shorten
from workshop import furnish, small_recipes

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning

RUNNABLE = [page for page in pages() if any(block.language in ("python", "bash") for block in blocks(page))]


LONGEST = 160  # steps; a page looks at the last quarter of 200
ONNX = ("onnxruntime", "onnxscript")  # make test has them
EXTRAS = {
    "docs/interchange.md": ONNX,
    "docs/tutorials/new-method.md": ONNX,
    "docs/tutorials/dirty-logs.md": ONNX,
}


class Robot:
    """The robot of docs/interchange.md."""

    def __init__(self) -> None:
        self.env = gymnasium.make("Hopper-v5")

    def reset(self) -> Any:
        return self.env.reset(seed=0)[0]

    def step(self, action: Any) -> tuple[Any, float, bool]:
        seen, reward, terminated, truncated, _ = self.env.step(action)
        return seen, float(reward), terminated or truncated


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; what is imported and registered there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HIMATCH_CACHE", str(tmp_path / "cache"))
    small_recipes(monkeypatch)
    shorten(monkeypatch, LONGEST)
    before = set(sys.modules)
    with as_a_process():
        yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", RUNNABLE)
def test_page(page: str, folder: Path) -> None:
    for module in EXTRAS.get(page, ()):
        pytest.importorskip(module)
    furnish(folder, page)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # notes about targets out of reach: policies here know nothing
        run_page(page, {"robot": Robot()} if page.endswith("interchange.md") else {})


def test_every_block_says_what_it_is() -> None:
    """An unlabelled block would be neither run nor highlighted; a misspelt note would be ignored."""
    for page in pages():
        for block in blocks(page):
            if block.language.startswith("{include}"):  # the site's own, which its build checks
                continue
            assert block.language in LANGUAGES, f"{block.place}: say what it is ({', '.join(LANGUAGES)})"
            assert set(block.notes) <= set(NOTES), f"{block.place}: unknown note {block.notes}"
            file = block.notes.get("file")
            assert file is None or f"`{file}`" in (ROOT / page).read_text(), f"{block.place}: does not tell its name"


def test_blocks_that_are_only_parsed_are_few() -> None:
    parsed = [block.place for page in pages() for block in blocks(page) if "parsed only" in block.notes]
    everything = [block for page in RUNNABLE for block in blocks(page) if block.language in ("python", "bash")]
    assert len(parsed) < len(everything) / 4, parsed


@pytest.mark.parametrize(
    "command",
    [
        "himatch train cdt --data x --out y --stepps 5",
        "himatch train ddt --data x --out y",
        "himatch train cdt --m 3 --data x --out y",
        "himatch data make hopper-large --out y",
        "himatch benchmark xvell --out y",
    ],
)
def test_a_command_that_is_only_parsed_can_still_be_wrong(command: str) -> None:
    block = Block("page", 1, "bash", command, {"parsed only": "a test"})
    with pytest.raises((AssertionError, HimatchError)):
        check_command(next(block.commands())[1:], block)


def test_what_a_page_registers_is_forgotten(folder: Path) -> None:
    with as_a_process():
        hm.register_task("forgotten", horizon=3)
    with pytest.raises(HimatchError, match="forgotten"):
        hm.get_task("forgotten")
