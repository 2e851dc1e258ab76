"""Results on data that somebody brought have tables and claims of their own beside those on himatch's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_claims import METHODS, XVEL, made, xvel

from himatch.reproduce.report import build_tables, judge_claims
from himatch.reproduce.report.orderings import judge_orderings
from himatch.reproduce.results import JobResult

DATA = "hopper_medium_expert-v2"
CLAIM = f"xvel on {DATA}: CDT beats DT and Meta-BC"


def brought(budget: str = "cpu", **changed: float) -> list[JobResult]:
    means = {**METHODS, **{name.replace("_", "-"): mean for name, mean in changed.items()}}
    return [
        made("xvel", "hopper", name, [mean - 0.01, mean + 0.01, mean, mean], data=f"{DATA}.hdf5", budget=budget)
        for name, mean in means.items()
    ]


def test_data_that_somebody_brought_stand_apart() -> None:
    alone = build_tables(xvel())
    own, other = build_tables([*xvel(), *brought()])
    assert (own.label, own.rows) == ("xvel_match_main", alone[0].rows)
    assert (other.label, other.tasks) == (f"xvel_match_main-{DATA.replace('_', '-')}", ("hopper",))
    assert other.layout.title == f"X-velocity matching, {DATA}"
    assert DATA in other.caption
    assert other.notes == ()
    (cdt, *_) = other.methods
    assert cdt.cells[-1].ours is not None
    assert cdt.cells[-1].ours.mean == pytest.approx(0.1)
    assert cdt.cells[-1].paper is not None
    assert [found.score for found in judge_orderings([own, other])] == ["4 of 4", "4 of 4"]


def test_alone_they_are_what_the_table_is_about() -> None:
    (table,) = build_tables(brought("fast"))
    assert table.label == "xvel_match_main"
    assert CLAIM not in {found.claim for found in judge_claims([table])}


@pytest.mark.parametrize(("dt", "verdict"), [(0.2, "holds"), (0.05, "does not hold")])
def test_the_papers_order_is_judged_on_them_too(dt: float, verdict: str) -> None:
    found = {found.claim: found for found in judge_claims(build_tables([*xvel(), *brought(DT=dt)]))}
    assert found[CLAIM].verdict == verdict
    assert found[CLAIM].source == "himatch"
    assert found[XVEL] == {f.claim: f for f in judge_claims(build_tables(xvel()))}[XVEL]


def test_data_made_by_himatch_under_another_name_are_its_own() -> None:
    smaller = [replace(one, budget="cpu") for one in xvel(("hopper",))]
    assert len(build_tables([*xvel(), *smaller])) == 1
