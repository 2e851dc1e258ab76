"""What was expected before the runs stands beside what came, and only results of the tree that was named answer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_claims import XVEL, xvel

from himatch.errors import DataError
from himatch.reproduce.report import Forecast, read_forecast, write_report
from himatch.reproduce.report.contents import gather
from himatch.reproduce.results import JobResult

TREE = "a" * 40
EXPECTED = f"""
source = "{TREE}"
[[claim]]
text = "{XVEL}"
verdict = "too close to call"
because = "It was so before."
[[claim]]
text = "xvel: Meta-BC beats FOCAL"
verdict = "holds"
[[average]]
table = "xvel_match_main"
method = {{ name = "cdt" }}
aim = 0.17
expected = 0.3
[[average]]
table = "xvel_match_main"
method = {{ name = "dt" }}
aim = 0.1
expected = 0.1
[[average]]
table = "xvel_match_main"
method = {{ name = "cdt" }}
policy = "himatch"
conditioning = "rehearsed"
aim = 0.1
expected = 0.1
"""


@pytest.fixture
def forecast(tmp_path: Path) -> Forecast:
    (tmp_path / "expected.toml").write_text(EXPECTED)
    return read_forecast(["/nowhere", tmp_path])


def of_tree(tree: str) -> list[JobResult]:
    return [replace(result, provenance={**result.provenance, "source": tree}) for result in xvel()]


def test_what_came_stands_beside_what_was_expected(forecast: Forecast, tmp_path: Path) -> None:
    contents = gather(of_tree(TREE), {}, "title", forecast)
    verdicts = {found.claim: found.verdict for found in contents.findings}
    assert verdicts[XVEL] == "holds"
    assert {claim: one.verdict for claim, one in contents.expected.items()} == {
        XVEL: "too close to call",
        "xvel: Meta-BC beats FOCAL": "holds",
    }
    assert [(came.score, came.verdict) for came in contents.aims] == [
        ("0.100", "reached"),
        ("0.200", "not reached"),
        ("", "not run yet"),
    ]
    assert contents.forecast == (
        "1 of 2 verdicts are as expected before the runs; 1 of 2 averages reach what was aimed at."
    )
    write_report(of_tree(TREE), tmp_path / "report", forecast=forecast)
    for name in ("report.html", "claims.html", "report.md"):
        assert contents.forecast in (tmp_path / "report" / name).read_text()
    page = (tmp_path / "report" / "claims.html").read_text()
    assert "expected: too close to call" in page
    assert "as expected" in page
    assert "It was so before." in page


def test_results_of_another_tree_do_not_answer(forecast: Forecast, tmp_path: Path) -> None:
    contents = gather(of_tree("b" * 40), {}, "title", forecast)
    assert contents.expected == {}
    assert {came.verdict for came in contents.aims} == {"not run yet"}
    assert contents.forecast == ""
    mixed = [*of_tree(TREE)[:-1], of_tree("b" * 40)[-1]]
    assert gather(mixed, {}, "title", forecast).expected == {}


def test_nothing_was_expected_without_a_file(tmp_path: Path) -> None:
    assert read_forecast([tmp_path]) == Forecast()
    write_report(of_tree(TREE), tmp_path / "report")
    assert "aimed at" not in (tmp_path / "report" / "claims.html").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[claim]]", "claim 1 has no verdict"),
        ("", "expected.toml has no source"),
        ('source = "x"\nclaim = 5', "write each claim below a line [[claim]]"),
        ('source = "x"\n[[claim]]\ntext = 3\nverdict = "holds"', "claim 1: text must be text, got 3"),
        ('source = "x"\n[[claim]]\ntext = "a"\nverdict = "maybe"', "unknown verdict 'maybe'; known are holds"),
        ('source = "x"\n[[average]]\ntable = "xvel_match_main"\nmethod = "cdt"', "method must be a table like"),
        (
            'source = "x"\n[[average]]\ntable = "xvel_match_main"\nmethod = {name = "cdt"}\naim = nan',
            "must be finite, got nan",
        ),
        ('source = "x"\n[[average]]\ntable = "nothing"', "unknown table 'nothing'"),
        ("source =", "expected.toml is no TOML file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text(content)
    with pytest.raises(DataError, match=re.escape(said)):
        read_forecast([tmp_path])


def test_the_published_forecast_names_claims_and_rows_that_there_are() -> None:
    from himatch.reproduce.report import CLAIMS

    forecast = read_forecast([Path(__file__).parents[2] / "results"])
    known = {claim.text for claim in CLAIMS}
    assert {claim for claim in forecast.claims if " on hopper_medium_expert-v2: " not in claim} <= known
    assert len(forecast.claims) > 60
    assert len(forecast.aims) == 10
