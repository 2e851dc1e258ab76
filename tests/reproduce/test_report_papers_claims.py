"""The paper's other claims: level rows, trends in the size of codes, returns, rows of two tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from report_claims import TASKS, finding, made, xvel
from report_results import job, shifted

from himatch.divergences import Difference
from himatch.reproduce.report import CLAIMS, judge_claims
from himatch.reproduce.report.differences import decide_level, episodes, pair
from himatch.reproduce.report.findings import by_source
from himatch.reproduce.results import JobResult

DT_X = [f"{name} ({mode}, m={{}})" for name in ("DT-AE", "DT-CPC") for mode in ("unsupervised", "joint", "frozen")]
DT_X.append("DT-E2E (m={})")


def imitation(method: str, mean: float, feature: str = "x_velocity") -> list[JobResult]:
    w1 = [mean - 0.01, mean + 0.01, mean, mean]
    return [made("imitation", task, method, w1, feature) for task in TASKS]


def test_every_claim_is_somebodys_and_the_papers_come_first() -> None:
    findings = judge_claims([])
    (papers, theirs), (own, ours) = by_source(findings)
    assert (papers, own) == ("The paper's claims", "himatch's claims")
    assert [*theirs, *ours] == findings
    assert [found.claim for found in findings] == [claim.text for claim in CLAIMS]
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize(
    ("less", "verdict", "remark"),
    [
        (Difference(0.05, -0.05, 0.09), "holds", ""),
        (Difference(0.05, -0.05, 0.2), "holds within noise", ""),
        (Difference(-0.2, -0.3, -0.05), "does not hold", "within noise"),
        (Difference(-0.2, -0.3, -0.15), "does not hold", ""),
        (Difference(0.05), "holds within noise", "one seed: noise unknown"),
        (Difference(0.2), "does not hold", "one seed: noise unknown"),
    ],
)
def test_level_rows(less: Difference, verdict: str, remark: str) -> None:
    assert decide_level(less, 0.1) == (verdict, remark)


def test_bdt_is_compared_with_rows_of_another_table() -> None:
    results = [*xvel(), *imitation("BDT (m=16, N=50)", 0.12)]
    found = finding(results, "imitation, x-velocity: BDT (m=16, N=50) beats Meta-BC")
    assert (found.verdict, found.source) == ("holds", "paper")
    assert found.other is not None
    assert found.other.name == "Meta-BC"
    claim = "imitation, x-velocity: BDT (m=16, N=50) is level with CDT"
    assert finding(results, claim).verdict == "holds"  # 0.12 and 0.1, within 30 %
    apart = finding([*xvel(), *imitation("BDT (m=16, N=50)", 0.15)], claim)
    assert str(apart) == "does not hold (ours is higher)"
    assert str(finding(imitation("BDT (m=16, N=50)", 0.12), claim)) == "not run (suite xvel missing)"


def test_bdt_improves_with_m() -> None:
    claim = "imitation, x-velocity: BDT (N=20) improves"
    sizes = {1: 0.5, 4: 0.6, 16: 0.3}
    results = [r for m, mean in sizes.items() for r in imitation(f"BDT (m={m}, N=20)", mean)]
    found = finding(results, claim)
    assert str(found) == "holds (by size 0.500, 0.600, 0.300)"
    assert found.difference.startswith("-0.200 [")
    assert found.robustness is not None
    worse = [r for m, mean in sizes.items() for r in imitation(f"BDT (m={m}, N=20)", 1 - mean)]
    assert str(finding(worse, claim)).startswith("does not hold (by size")
    assert "BDT (m=4, N=20) missing" in str(finding([*results[:3], *results[6:]], claim))
    assert str(finding([], claim)) == "not run (suite imitation missing)"


def test_a_clear_trend_is_one_way_and_beyond_noise() -> None:
    claim = "imitation, x-velocity: no clear trend"

    def families(first: Sequence[float]) -> list[JobResult]:
        level = (0.3, 0.4, 0.3)
        means = dict.fromkeys(DT_X, level) | {DT_X[0]: first}
        return [
            result
            for name, by_size in means.items()
            for m, mean in zip((1, 4, 16), by_size, strict=True)
            for result in imitation(name.format(m), mean)
        ]

    assert str(finding(families((0.3, 0.4, 0.3)), claim)) == "holds (clear trends in 0 of 7)"
    assert finding(families((0.5, 0.6, 0.3)), claim).verdict == "holds"  # lower in the end, but not all the way
    falls = finding(families((0.5, 0.4, 0.3)), claim)
    assert str(falls) == "does not hold (clear trends in 1 of 7: DT-AE (m=16): by size 0.500, 0.400, 0.300)"
    assert finding(families((0.3, 0.301, 0.302)), claim).verdict == "holds"  # within noise
    assert finding(families((0.3, 0.4, 0.3))[:-1], claim).verdict == "not run"


def returns(method: str, off: float) -> list[JobResult]:
    found = []
    for task in TASKS:
        result = made("return", task, method, [0.1] * 4, "reward")
        targets = [replace(t, returns=[(t.target_return or 0.0) + off + i for i in range(4)]) for t in result.targets]
        found.append(replace(result, targets=targets))
    return found


def test_returns_nearer_and_higher() -> None:
    results = [*returns("Categorical DT", 500.0), *returns("DT", 100.0)]
    nearer = finding(results, "return: DT is nearer")
    assert nearer.verdict == "holds"
    higher = finding(results, "return: DT reaches higher")
    assert higher.verdict == "does not hold"
    assert higher.difference.startswith("-")
    assert nearer.ours is not None
    assert nearer.ours.figure.endswith(" points")
    assert str(finding(results[:5], "return: DT is nearer")) == "not run (walker2d missing)"
    assert str(finding(results[:3], "return: DT is nearer")) == "not run (DT missing)"
    assert str(finding([], "return: DT is nearer")) == "not run (suite return missing)"


def test_the_shifts_of_an_episode_are_one_sample() -> None:
    result = job("shift", "hopper", "DT", "x_velocity", shifted(), seeds=range(4))
    found = episodes(result.targets)
    assert len(found) == 70
    assert [episode.name for episode in dict.fromkeys(found)][4:6] == ["expert 5", "medium 6"]
    assert len(set(found[:7])) == 1

    def shift_of(result: JobResult, more: float) -> JobResult:
        """Better on some episodes and worse on others, whatever the shift."""
        targets = [
            replace(t, w1=[0.5 + more * (1 if e.number % 2 else -0.9)] * 4)
            for t, e in zip(result.targets, found, strict=True)
        ]
        return replace(result, targets=targets)

    both = pair([(result.task, "total")], {result.task: shift_of(result, 0.1)}, {result.task: shift_of(result, 0.0)})
    assert both is not None
    less = both.difference
    assert less.low is not None
    assert less.low < -0.04  # seventy targets as if independent: -0.02
    assert len(both.without_each) == 10
