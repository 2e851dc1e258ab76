"""The code blocks of a Markdown page, run in order in one folder and one namespace, as a reader would.

A fence says what a block is: ``python`` is executed, ``bash`` runs the himatch commands in it in this process,
``text`` is output and left alone. A comment on the line above can say more:

``<!-- file: cart.py -->``
    The block, of whatever language, is that file, which the text tells the reader to save.
``<!-- parsed only: an hour of GPU -->``
    The commands are read by the real parser, and names and settings in them are looked up, but they are not run.
``<!-- tested with: train --steps 20; match --episodes 2 -->``
    Options that those commands get when the page is tested; ``steps=20`` replaces a keyword argument of Python.
``<!-- refused: what is wrong -->``
    The command ends with exit code 2: the page shows what happens to bad input.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from command_line import fresh_modules

from himatch.cli import main
from himatch.cli.main import parse
from himatch.methods import METHODS
from himatch.statistics.aggregators import AGGREGATORS
from himatch.tasks import registry

ROOT = Path(__file__).parent.parent
LANGUAGES = ("python", "bash", "text", "toml", "json")
NOTES = ("file", "parsed only", "tested with", "refused")


@dataclass(frozen=True)
class Block:
    """One fenced block and the notes above it."""

    page: str
    line: int
    language: str
    code: str
    notes: dict[str, str]

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[list[str]]:
        """The commands of a shell block, as lists of words."""
        for line in self.code.replace("\\\n", " ").splitlines():
            for part in re.split(r"\s&&\s", line):
                words = shlex.split(part, comments=True)
                if words:
                    yield words


FENCE = re.compile(r"((?:^<!--[^\n]*-->\n+)*)^```([^\n]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def pages() -> list[str]:
    """README and everything in docs."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    text = (ROOT / page).read_text()
    found = []
    for match in FENCE.finditer(text):
        notes = dict(re.findall(r"<!--\s*([^:]*):\s*(.*?)\s*-->", match[1]))
        line = text.count("\n", 0, match.start(3))
        found.append(Block(page, line, match[2].strip(), match[3], notes))
    return found


def run_page(page: str, names: dict[str, Any], *, tested: bool = True) -> None:
    """Run the blocks of a page in order, in the current folder; ``tested`` adds what is for tests only."""
    for block in blocks(page):
        if "file" in block.notes:
            file = Path(block.notes["file"])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.code)
        elif block.language == "python" and "parsed only" not in block.notes:
            code = block.code
            for setting in re.findall(r"\w+=\w+", block.notes.get("tested with", "") if tested else ""):
                code, count = re.subn(rf"\b{setting.partition('=')[0]}=[\w.]+", setting, code)
                assert count, f"{block.place}: nothing to replace by {setting}"
            # Blank lines in front, so that a traceback shows the line of the page.
            exec(compile("\n" * block.line + code, block.page, "exec"), names)
        elif block.language == "python":
            compile(block.code, block.page, "exec")
        elif block.language == "bash":
            for words in block.commands():
                run_command(words, block, tested=tested)


def run_command(words: list[str], block: Block, *, tested: bool) -> None:
    """Run a himatch command in this process; of other commands check that what they name is there."""
    if words[0] == "make":
        found = re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert found, f"{block.place}: the Makefile has no {words[1]}"
    elif words[:2] == ["pip", "install"]:
        _check_extras(words[2:], block)
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), f"{block.place}: there is no {words[1]}"
    else:
        assert words[0] == "himatch", f"{block.place}: {words[0]} cannot be run in a test; mark the block as text"
        arguments = words[1:] + (_added(words[1:], block.notes.get("tested with", "")) if tested else [])
        if "parsed only" in block.notes:
            check_command(arguments, block)
            return
        with as_a_process(), pytest.raises(SystemExit) as stopped:
            main(arguments)
        wanted = 2 if "refused" in block.notes else 0
        code = stopped.value.code or 0
        assert code == wanted, f"{block.place}: himatch {shlex.join(arguments)} ended with {code}"


def _check_extras(wanted: list[str], block: Block) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in re.findall(r"himatch\[(.*?)\]", " ".join(wanted)):
        assert set(extra.split(",")) <= set(known), f"{block.place}: there is no extra {extra}"


def _added(arguments: list[str], note: str) -> list[str]:
    """Options that the note adds to this command."""
    for part in note.split(";"):
        words = shlex.split(part)
        options = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
        if words and arguments[:options] == words[:options]:
            return words[options:]
    return []


@contextmanager
def as_a_process() -> Iterator[None]:
    """What a command registers is forgotten when it ends, as if it had been a process of its own."""
    known: list[dict[str, Any]] = [registry._registry, gymnasium.registry, AGGREGATORS, METHODS]  # type: ignore[list-item]
    before = [dict(names) for names in known]
    try:
        with fresh_modules(Path.cwd()):
            yield
    finally:
        for names, old in zip(known, before, strict=True):
            names.clear()
            names.update(old)


def check_command(arguments: list[str], block: Block) -> None:
    """Parse a command and look up the names in it, without running it."""
    from himatch.cli.benchmark import Benchmark
    from himatch.cli.main import Data
    from himatch.cli.make import MakeData
    from himatch.cli.train import TrainRun
    from himatch.datagen.cache import dataset_task
    from himatch.reproduce import Options, plan_jobs
    from himatch.training import configure

    try:
        command: Any = parse(arguments)
    except SystemExit:
        raise AssertionError(f"{block.place}: himatch {shlex.join(arguments)} is not understood") from None
    command = command.command if isinstance(command, Data) else command
    if isinstance(command, MakeData):
        dataset_task(command.name)
    elif isinstance(command, TrainRun):
        configure(command.preset or "cpu", command.make_method(), **command.overrides)
    elif isinstance(command, Benchmark):
        chosen = Options(command.budget, tasks=command.tasks, methods=command.methods, policy=command.policy)
        plan_jobs(command.suites, chosen)
