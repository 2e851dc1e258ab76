"""Numbers on pages are those of the results; ``python benchmarks/quoted.py --write`` mends them."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from document_blocks import ROOT

KNOWN = {("maze", "cdt", "average"): {"mean": "0.123", "interval": "0.123 [0.100, 0.150]", "played": "99 %"}}


@pytest.fixture(name="quoted")
def _quoted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "benchmarks"))
        import quoted

        yield quoted
    for name in ("quoted", "quoted_files"):
        sys.modules.pop(name, None)


def page(
    quoted: Any, path: Path, text: str, *quotes: str, guarded: bool = True, exceptions: Mapping[str, str] | None = None
) -> Any:
    path.write_text(text)
    return quoted.Page(path, quotes, ("# Maze",) if guarded else (), exceptions or {})


def test_every_number_is_that_of_the_results(quoted: Any) -> None:
    assert not list(quoted.check(tomllib.loads(quoted.QUOTED.read_text())))


def test_a_claim_that_came_out_otherwise_needs_another_sentence(quoted: Any) -> None:
    spec = tomllib.loads(quoted.QUOTED.read_text())
    spec["claims"]["does not hold"]["time"] = spec["claims"]["holds"].pop("time")
    (wrong,) = quoted.check(spec)
    assert "holds, no longer does not hold; sentences in results/README.md" in wrong


def test_stale_numbers_are_found_and_mended(quoted: Any, tmp_path: Path) -> None:
    text = "# Maze\n\nCDT has 0.200\n[0.150, 0.300] and plays 9 % of\nthe time.\n"
    stale = page(
        quoted, tmp_path / "page.md", text, "CDT has {maze.cdt.interval} and plays {maze.cdt.played} of the time"
    )
    assert len(list(quoted.check_page(stale, KNOWN))) == 2
    assert quoted.mend(stale, KNOWN) == 2
    assert stale.path.read_text() == "# Maze\n\nCDT has 0.123 [0.100, 0.150] and plays 99 % of\nthe time.\n"
    assert not list(quoted.check_page(stale, KNOWN))


def test_numbers_from_nowhere_are_found(quoted: Any, tmp_path: Path) -> None:
    code = "`0.11` of torch 2.13, [0.12](a_0.13.md), 0.5, 7 %.\n\n```\n0.14\n```"
    text = f"# Maze\n\n{code}\n\n- At 0.15.\n- CDT 0.123, DT 0.16.\n"
    known = page(quoted, tmp_path / "page.md", text, "CDT {maze.cdt}")
    assert [line.partition(" ")[0] for line in quoted.check_page(known, KNOWN)] == ["0.12", "0.15", "0.16"]
    excepted = page(quoted, tmp_path / "page.md", text, "CDT {maze.cdt}", exceptions={"At …": "a setting"})
    assert [line.partition(" ")[0] for line in quoted.check_page(excepted, KNOWN)] == ["0.12", "0.16"]
    strict = replace(excepted, percentages=True)
    assert [line.partition(" ")[0] for line in quoted.check_page(strict, KNOWN)] == ["0.12", "0.16", "7"]
    by_hand = page(quoted, known.path, text, "{maze.cdt}, DT 0.16")
    assert "0.16 is not looked up" in next(quoted.check_page(by_hand, KNOWN))


def test_a_section_ends_with_the_next_of_its_level(quoted: Any, tmp_path: Path) -> None:
    text = "# Maze\n\n## Data\n\n0.11\n\n### More\n\n0.12\n\n```\n# no heading\n```\n\n0.13\n\n## Others\n\n0.14\n"
    path = tmp_path / "page.md"
    path.write_text(text)
    of_data = quoted.Page(path, (), ("## Data", "## Lost"), {})
    wrong = list(quoted.check_page(of_data, KNOWN))
    assert [line.partition(" ")[0] for line in wrong[:3]] == ["0.11", "0.12", "0.13"]
    assert wrong[3:] == ["no section '## Lost'"]


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("CDT {maze.cdt} here", "0 places, not one"),
        ("{maze.cdt}", "2 places, not one"),
        ("CDT {maze.dt}", "no such row"),
        ("CDT {maze.cdt[total]}", "columns: average"),
        ("CDT {maze.cdt.charged}", "it has mean, interval, played"),
        ("CDT {maze}", "is no lookup"),
    ],
)
def test_a_quote_that_finds_nothing_says_why(quoted: Any, tmp_path: Path, quote: str, said: str) -> None:
    lost = page(quoted, tmp_path / "page.md", "# Maze\n\nCDT 0.123 and 0.123\n", quote, guarded=False)
    (wrong,) = quoted.check_page(lost, KNOWN)
    assert said in wrong
    assert not quoted.mend(lost, KNOWN)
