"""The paper's other claims: level rows, trends in the size of codes, returns, rows of two tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from report_claims import TASKS, finding, made, xvel
from report_results import Place, held_out, job, shifted

from himatch.divergences import Difference
from himatch.reproduce.report import CLAIMS, judge_claims
from himatch.reproduce.report.claims import READING
from himatch.reproduce.report.differences import AS_CLAIMED, OTHER_WAY, decide_level, episodes, pair
from himatch.reproduce.report.findings import by_source
from himatch.reproduce.report.paper_claims import NOT_JUDGED
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


def test_what_is_not_judged_is_one_list() -> None:
    """The report, the page about it and the findings have the same sentences; none of them stands with a claim."""
    root = Path(__file__).parents[2]
    pages = [READING, *((root / name).read_text() for name in ("docs/report.md", "results/README.md"))]
    for sentence in NOT_JUDGED:
        assert [sentence in " ".join(page.split()) for page in pages] == [True] * 3
        assert all(sentence not in claim.text for claim in CLAIMS)
    number = {6: "six sentences"}[len(NOT_JUDGED)]
    assert all(number in page for page in pages[1:])


@pytest.mark.parametrize(
    ("less", "verdict", "remark"),
    [
        (Difference(0.05, -0.05, 0.09), "holds", ""),
        (Difference(0.05, -0.05, 0.2), "too close to call", AS_CLAIMED),
        (Difference(-0.2, -0.3, -0.05), "too close to call", OTHER_WAY),
        (Difference(-0.2, -0.3, -0.15), "does not hold", ""),
        (Difference(0.05), "too close to call", f"{AS_CLAIMED}; one seed: noise unknown"),
        (Difference(0.2), "too close to call", f"{OTHER_WAY}; one seed: noise unknown"),
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


def test_longer_windows_and_the_shorter_ones_by_the_papers_table() -> None:
    rows = {"BDT (m=16, N=50)": 0.2, "BDT (m=16, N=20)": 0.3, **{name.format(16): 0.25 for name in DT_X}}
    results = [result for name, mean in rows.items() for result in imitation(name, mean)]
    assert finding(results, "imitation, x-velocity: BDT (m=16) with N=50 beats N=20").verdict == "holds"
    assert finding(results, "imitation, x-velocity: BDT (m=16, N=50) beats every").verdict == "holds"
    assert finding(results, "imitation, x-velocity: BDT (m=16, N=20) beats every").verdict == "does not hold"
    frozen = finding([*xvel(), *results], "imitation, x-velocity: DT-AE (m=16, frozen) beats BC")
    assert (frozen.verdict, frozen.ours and frozen.ours.name) == ("holds", "DT-AE (frozen)")
    level = finding([*xvel(), *results], "imitation, x-velocity: BDT (m=16, N=50) is level with DT")
    assert (level.verdict, level.other and level.other.name) == ("holds", "DT")


def test_mixtures_are_judged_apart() -> None:
    """CDT is better on average and worse on the targets of two modes."""
    results = [made("synthetic", task, "DT", [0.5, 0.5]) for task in TASKS]
    for task in TASKS:
        ours = made("synthetic", task, "Categorical DT", [0.1, 0.1])
        targets = [replace(t, w1=[0.8, 0.8]) if "+" in t.name else t for t in ours.targets]
        results.append(replace(ours, targets=targets))
    assert finding(results, "synthetic: CDT beats DT").verdict == "holds"
    found = finding(results, "synthetic, the two mixtures: CDT beats DT")
    assert (str(found), found.difference) == ("does not hold", "+0.300 [+0.300, +0.300]")
    assert found.ours == ("Categorical DT", "0.800 [0.800, 0.800]")


def test_columns_of_flips() -> None:
    def flips(method: str, uni: float, bi: float) -> JobResult:
        places = [Place(f"{kind} {i}", kind, {}) for kind in ("uni-modal", "bi-modal") for i in range(3)]
        result = job("zvel", "halfcheetah", method, "z_velocity", places, budget="fast", seeds=range(2))
        means = {"uni-modal": uni, "bi-modal": bi}
        return replace(result, targets=[replace(t, w1=[means[t.group]] * 2) for t in result.targets])

    results = [flips("Categorical DT", 0.1, 0.9), flips("DT", 0.2, 0.5), flips("FOCAL", 0.3, 0.6)]
    assert finding(results, "zvel, vertical velocity, uni-modal targets: CDT beats").verdict == "holds"
    found = finding(results, "zvel, vertical velocity, bi-modal targets: CDT beats")
    assert (found.verdict, found.other and found.other.name) == ("does not hold", "DT")


def test_numbers_of_other_targets_are_compared_by_their_intervals() -> None:
    claim = "synthetic: CDT is nearer to held-out targets"
    synthetic = [made("synthetic", task, "Categorical DT", [0.4, 0.5]) for task in TASKS]
    found = finding([*xvel(), *synthetic], claim)
    assert (found.verdict, found.source) == ("holds", "paper")
    assert (found.ours and found.ours.name, found.other and found.other.name) == (
        "Categorical DT on xvel",
        "Categorical DT on synthetic",
    )
    assert str(finding(synthetic, claim)) == "not run (suite xvel missing)"
    without = [result for result in xvel() if result.method == job("xvel", "hopper", "DT", "x_velocity", ()).method]
    assert str(finding([*without, *synthetic], claim)) == "not run (Categorical DT missing)"

    def ant(expert: float) -> list[JobResult]:
        result = job("ant-xy", "ant", "DT", "xy_velocity", held_out(), budget="fast", seeds=range(2))
        scores = {"expert": expert, "medium": 0.3}
        return [replace(result, targets=[replace(t, w1=[scores[t.group]] * 2) for t in result.targets])]

    claim = "ant-xy: DT always fits medium targets"
    assert finding(ant(1.7), claim).verdict == "holds"
    found = finding(ant(0.1), claim)
    assert str(found) == "does not hold"
    assert found.ours == ("DT on ant medium", "0.300 [0.300, 0.300]")


def test_rollouts_follow_shifts_within_the_training_range() -> None:
    claim = "shift, x-velocity: CDT follows shifts"

    def moved(follow: int, beyond: int) -> list[JobResult]:
        """Rollouts move so many bins with each of the target's; beyond the range, from +2 on, somewhere else."""
        found = []
        for task in TASKS:
            result = job("shift", task, "Categorical DT", "x_velocity", shifted(), budget="fast", seeds=range(2))
            targets = []
            for t in result.targets:
                outside = 0.3 if (t.shift or 0.0) > 1 else 0.0
                place = 15 + (beyond if outside else follow * int(t.shift or 0.0))
                shares = [float(i == place) for i in range(31)]
                targets.append(replace(t, outside=outside, histograms={**t.histograms, "rollouts": shares}))
            found.append(replace(result, targets=targets))
        return found

    assert finding(moved(1, -9), claim).verdict == "holds"
    found = finding(moved(0, 9), claim)
    assert str(found) == "does not hold"
    assert (found.ours and found.ours.figure, found.other) == ("slope 0.00 [0.00, 0.00]", ("the shift", "slope 1"))
    assert str(finding([], claim)) == "not run (suite shift missing)"
    assert str(finding(moved(1, 0)[:2], claim)) == "not run (walker2d missing)"
    dark = [replace(r, targets=[replace(t, histograms={}) for t in r.targets]) for r in moved(1, 0)]
    assert str(finding(dark, claim)) == "not run (no histograms of rollouts)"


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
