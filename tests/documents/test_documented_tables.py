"""Tables and examples that the pages write out are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

from command_line import Run
from document_blocks import ROOT, blocks

import himatch as hm


def test_the_documented_mapping_is_understood(tmp_path: Path) -> None:
    (mapping,) = (block.code for block in blocks("docs/data.md") if block.language == "toml")
    (tmp_path / "logs.toml").write_text(mapping)
    header = "run,tick,q_0,q_1,dq_0,u_0,score"
    (tmp_path / "logs.csv").write_text(f"{header}\na,0,1,2,3,4,5\na,1,1,2,3,4,6\nb,0,1,2,3,4,7\n")
    data = hm.load_dataset(tmp_path / "logs.csv")
    assert (len(data), data.observations.shape[1], data.actions.shape[1]) == (2, 3, 1)
    assert data.returns.tolist() == [11.0, 7.0]


def test_documented_targets_parse() -> None:
    table = (ROOT / "docs" / "data.md").read_text().partition("# Targets")[2]
    parsed = 0
    for expression in re.findall(r"`([a-z0-9.*+(),]+\))`", table):
        if "EXPR" not in expression and "PATH" not in expression:
            assert hm.parse_target(expression, held_out=lambda number: hm.parse_target(f"point({number})")).name
            parsed += 1
    assert parsed >= 5


def test_the_table_of_experts_is_up_to_date(run: Run) -> None:
    """Mend it with the output of himatch experts list --all --markdown."""
    printed = run("experts", "list", "--all", "--markdown")[1].strip()
    assert printed.count("\n| `") == 40
    assert printed in (ROOT / "docs" / "experts.md").read_text()


def test_readme_shows_the_two_commands() -> None:
    shown = [words for block in blocks("README.md") if block.language == "bash" for words in block.commands()]
    for command in ("quickstart", "test"):
        assert ["make", command] in shown
