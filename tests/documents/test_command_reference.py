"""docs/commands.md is what the program says about itself."""

from __future__ import annotations

import runpy

import pytest
from document_blocks import ROOT

from himatch.cli.main import Program
from himatch.methods import METHODS

SCRIPT = runpy.run_path(str(ROOT / "docs" / "scripts" / "commands.py"))


def test_the_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "commands.md").read_text()
    assert SCRIPT["reference"]() == written, "mend it with: python docs/scripts/commands.py"


def test_every_command_is_there() -> None:
    """Counted in the program's own types, not by what was parsed."""
    written = (ROOT / "docs" / "commands.md").read_text()
    names = [next(m.name for m in option.__metadata__ if hasattr(m, "name")) for option in Program.__args__]
    assert len(names) >= 10
    for name in names:
        assert f"\n## himatch {name}\n" in written
    for name in METHODS:
        assert f"\n### himatch train {name}\n" in written
    conditioning = "--conditioning nominal\\|remaining\\|planned\\|rehearsed\\|waypoints"
    for option in ("--target-window INT", "--columns.step NAME", conditioning):
        assert f"`{option}`" in written


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("| `--episodes N` | Rollouts of every target and seed. | `20` |", True),
        ("| `--out RUN` | Run folder to write: weights, configuration, metrics, held-out episodes. | required |", True),
        ("| `--json` | Print everything as JSON instead of tables. |  |", True),
        (
            "As for `bc`: options, model options, training options, data options, data.columns options, run options.",
            True,
        ),
        ("--no-json", False),
        ("╭", False),
    ],
)
def test_rows_are_read_off_as_they_are_meant(line: str, row: bool) -> None:
    assert (line in SCRIPT["reference"]()) == row
