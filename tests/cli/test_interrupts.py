"""Ctrl-C before a command has begun."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_line import Run

from himatch.cli import main

WHILE_LOADING = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "tyro":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from himatch.cli import main
"""


def test_while_libraries_load() -> None:
    done = subprocess.run([sys.executable, "-c", WHILE_LOADING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "himatch: interrupted\n")


def test_while_arguments_are_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[main.__module__].tyro, "cli", interrupted)
    assert run("models", "list") == (130, "", "himatch: interrupted\n")
