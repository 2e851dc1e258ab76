"""Verdicts: what may be said of two numbers, of claims and of the paper's orderings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from report_claims import TASKS, XVEL, finding, made, xvel
from report_results import cell_of, named
from scipy.stats import bootstrap

from himatch.divergences import Summary, summarize
from himatch.reproduce.report import CLAIMS, build_tables, judge_claims, paper_tables
from himatch.reproduce.report.costs import costs_of, duration
from himatch.reproduce.report.differences import AS_CLAIMED, OTHER_WAY, compare
from himatch.reproduce.report.findings import counted, headline
from himatch.reproduce.report.orderings import Orderings, judge_orderings
from himatch.reproduce.report.text import TIMES
from himatch.reproduce.results import JobResult


def test_the_interval_of_a_mean_is_the_usual_bootstrap() -> None:
    values = np.random.default_rng(0).gamma(2, size=40)
    ours = summarize([[values.tolist()]])
    theirs = bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    assert ours.interval == pytest.approx((theirs.low, theirs.high), rel=0.03)
    assert ours.interval[0] < ours.mean < ours.interval[1]


def test_one_seed_says_nothing_about_noise() -> None:
    alone = summarize([[[1.0], [3.0]]])
    assert (alone.mean, alone.interval, alone.is_one_seed) == (2.0, (2.0, 2.0), True)
    assert (alone.iqm, alone.low, alone.high) == (2.0, None, None)
    assert not summarize([[[1.0, 1.1], [3.0, 3.0]]]).is_one_seed
    assert compare(alone, Summary(9.0)) == ("too close to call", f"{AS_CLAIMED}; one seed: noise unknown")


def test_what_may_be_said_of_two_numbers() -> None:
    def score(low: float, mean: float, high: float) -> Summary:
        return Summary(mean, iqm=mean, low=low, high=high, mean_low=low, mean_high=high)

    low, middle, high = score(0.8, 1.0, 1.2), score(1.1, 1.3, 1.5), score(1.6, 1.8, 2.0)
    assert compare(low, high) == ("holds", "")
    assert compare(low, middle) == ("too close to call", AS_CLAIMED)
    assert compare(middle, low) == ("too close to call", OTHER_WAY)
    assert compare(high, low) == ("does not hold", "")
    assert compare(low, low) == ("too close to call", OTHER_WAY)  # not below itself
    assert compare(low, low, at_most=True) == ("too close to call", AS_CLAIMED)
    assert compare(high, low, 2.6, at_most=True)[0] == "holds"
    assert compare(high, low, 2.0, at_most=True)[0] == "too close to call"
    assert compare(low, Summary(1.3))[0] == "holds"
    assert compare(low, Summary(1.1))[0] == "too close to call"


def test_the_lowest_of_five() -> None:
    found = finding(xvel(), XVEL)
    assert (found.verdict, found.remark) == ("holds", "")
    assert found.ours is not None
    assert found.other is not None
    assert (found.ours.name, found.other.name) == ("Categorical DT", "DT")
    table = build_tables(xvel())[0]
    average = cell_of(table, "Categorical DT", "average").ours
    assert average is not None
    assert found.ours.figure == f"{average.mean:.3f} [{average.mean_low:.3f}, {average.mean_high:.3f}]"


def test_rows_are_compared_target_by_target() -> None:
    """Targets that are hard for both say nothing about which is better: here CDT is, by little, on every one."""

    def hard(method: str, more: float) -> list[JobResult]:
        found = []
        for result in (made("xvel", task, method, [0.0] * 4) for task in TASKS):
            levels = [3.0 * i + more for i in range(len(result.targets))]
            targets = [
                replace(t, w1=[level + x for x in (0, 0.02, 0.01, 0.03)])
                for t, level in zip(result.targets, levels, strict=True)
            ]
            found.append(replace(result, targets=targets))
        return found

    rows = {"Categorical DT": 0.0, "DT": 0.1, "BC (no-context)": 0.5, "Meta-BC": 0.2, "FOCAL": 0.3}
    results = [result for name, more in rows.items() for result in hard(name, more)]
    found = finding(results, XVEL)
    assert found.verdict == "holds"
    assert found.difference.startswith("-0.100 [-0.10")
    other = [on_other_data(r) if r.method == named("DT") else r for r in results]
    assert str(finding(other, XVEL)) == "not run (not on the same targets)"
    assert str(orderings(other)["xvel_match_main"]) == "3 of 3; not run: DT"


def on_other_data(result: JobResult) -> JobResult:
    return replace(result, provenance={**result.provenance, "data": {"name": "other", "hash": "other"}})


def test_targets_count_as_noise() -> None:
    """Better on half of the targets, worse on the other half: seeds alone would call that certain."""
    results = [r for r in xvel(spread=0.001, DT=0.11) if r.method != named("Categorical DT")]
    for task in TASKS:
        ours = made("xvel", task, "Categorical DT", [0.1, 0.101, 0.1, 0.1])
        targets = [replace(t, w1=[w + (0.1 if i % 2 else -0.1) for w in t.w1]) for i, t in enumerate(ours.targets)]
        results.append(replace(ours, targets=targets))
    assert finding(results, XVEL).verdict == "too close to call"


def test_himatchs_policy_is_claimed_for_itself() -> None:
    own = [replace(result, policy="himatch") for result in xvel(DT=0.05) if result.method != named("FOCAL")]
    results = [*xvel(), *own]
    assert finding(results, XVEL).verdict == "holds"
    found = finding(results, "xvel: with himatch's policy CDT has the lowest")
    assert (found.verdict, found.other and found.other.name) == ("does not hold", "DT (himatch)")
    level = finding(results, "xvel: himatch's policy beats the paper's (CDT)")
    assert (level.verdict, level.ours and level.ours.name) == ("too close to call", "Categorical DT (himatch)")
    only = finding(xvel(), "xvel: with himatch's policy CDT has the lowest")
    assert str(only).startswith("not run (Categorical DT (himatch), DT (himatch), ")


def test_what_else_tells_two_policies_apart_is_said() -> None:
    claim = "xvel: himatch's policy beats the paper's (CDT)"
    own = [replace(result, policy="himatch") for result in xvel(**{"Categorical DT": 0.05})]
    assert str(finding([*xvel(), *own], claim)) == "holds"
    for result in own:
        result.provenance["training"] |= {"learning_rate": 1e-3, "tokens": "states", "temperature": 0.7}
    older = [replace(result, policy=None) for result in xvel()]
    for result in older:
        result.provenance["training"] |= {"steps": 30_000, "learning_rate": 1e-4, "tokens": "states", "seconds": 9.0}
    assert str(finding([*older, *own], claim)) == "holds (also other steps, learning rate, weights)"
    timed = [replace(r, targets=[replace(t, played=[1.0] * 4) for t in r.targets]) for r in own]
    assert str(finding([*xvel(), *timed], claim)) == "holds (time played known of one alone)"


def test_one_that_is_lower_decides_though_others_are_missing() -> None:
    without = [result for result in xvel(DT=0.05) if result.method != named("FOCAL")]
    found = finding(without, XVEL)
    assert str(found) == "does not hold (of those run; FOCAL missing)"
    assert (found.other and found.other.name, found.robustness is not None) == ("DT", True)
    gap = [r for r in without if (r.method, r.task) != (named("Meta-BC"), "hopper")]
    assert str(finding(gap, XVEL)) == "does not hold (of those run; FOCAL missing; Meta-BC without hopper)"
    elsewhere = [on_other_data(r) if r.method == named("BC (no-context)") else r for r in xvel(DT=0.05)]
    assert str(finding(elsewhere, XVEL)) == "does not hold (of those run; not on the same targets)"
    partly = [r for r in without if (r.method, r.task) != (named("DT"), "hopper")]
    assert finding(partly, XVEL).verdict == "not run"  # lower on two of three tasks decides nothing
    ours = [r for r in without if r.method != named("Categorical DT")]
    assert str(finding(ours, XVEL)) == "not run (Categorical DT, FOCAL missing)"


def test_too_close_to_call_and_not() -> None:
    near = finding(xvel(spread=0.12, DT=0.12), XVEL)
    assert (near.verdict, near.other and near.other.name) == ("too close to call", "DT")
    beaten = finding(xvel(Meta_BC=0.05), XVEL)
    assert (str(beaten), beaten.other and beaten.other.name) == ("does not hold", "Meta-BC")
    assert str(finding(xvel(spread=0.2, Meta_BC=0.09), XVEL)) == f"too close to call ({OTHER_WAY})"


def test_a_wide_interval_counts_though_another_mean_is_nearer() -> None:
    results = [result for result in xvel() if result.method != named("FOCAL")]
    results += [made("xvel", task, "FOCAL", [0.0, 0.0, 0.0, 1.2]) for task in TASKS]
    found = finding(results, XVEL)
    assert (found.verdict, found.other and found.other.name) == ("too close to call", "FOCAL")


def test_not_run() -> None:
    assert str(finding(xvel(TASKS[:2]), XVEL)) == "not run (walker2d missing)"
    assert str(finding(xvel(TASKS[:1]), XVEL)) == "not run (hopper, walker2d missing)"
    without = [result for result in xvel() if result.method != named("FOCAL")]
    assert str(finding(without, XVEL)) == "not run (FOCAL missing)"
    gap = [r for r in without if (r.method, r.task) != (named("DT"), "hopper")]
    assert str(finding(gap, XVEL)) == "not run (FOCAL missing; DT without hopper)"
    assert str(finding(xvel(), "zvel, vertical velocity: CDT beats DT and FOCAL")) == "not run (suite zvel missing)"
    assert {found.verdict for found in judge_claims([])} == {"not run"}
    longer = [replace(r, provenance={**r.provenance, "training": {"steps": 7}}) for r in xvel()]
    assert finding(longer, XVEL).verdict == "not run"  # not with the budget's steps


def test_a_task_of_the_users_own_does_not_enter_the_average() -> None:
    found = finding([*xvel(), made("xvel", "arm", "Categorical DT", [9.0, 9.0])], XVEL)
    assert found.verdict == "not run"


def test_interquartile_means_that_disagree_are_said() -> None:
    results = xvel()
    for i, result in enumerate(results):
        if result.method == named("Categorical DT"):  # one target fails badly
            targets = [replace(t, w1=[9.0] * 4) if t.name == "medium 1" else t for t in result.targets]
            results[i] = replace(result, targets=targets)
    found = finding(results, XVEL)
    assert found.verdict == "too close to call"
    assert "interquartile means the other way round: 0.101 [" in found.remark
    alone = [replace(r, seeds=[0], targets=[replace(t, w1=t.w1[:1]) for t in r.targets]) for r in results]
    assert finding(alone, XVEL).remark == f"{OTHER_WAY}; one seed: noise unknown"  # nor are interquartile means apart


def test_the_papers_figure_is_the_printed_one() -> None:
    printed = paper_tables()["xvel_match_main"].figure(named("Categorical DT"), "average")
    assert printed is not None
    found = finding(xvel(), "xvel: CDT's average W₁ beside")
    assert found.other == ("the paper, on other data", f"{printed.mean:.3f}")
    assert str(found) == f"information ({TIMES}{0.1 / printed.mean:.2f})"  # other data: no verdict


def test_planned_against_the_mixture_and_nominal() -> None:
    results = [made("synthetic", task, "Categorical DT", [0.5, 0.5, 0.5]) for task in TASKS]
    reference = np.mean([result.targets[0].reference or 0.0 for result in results])
    for factor, verdict in ((1.4, "holds"), (1.6, "does not hold")):
        w1 = [factor * reference] * 3
        planned = [made("synthetic", task, "Categorical DT", w1, conditioning="planned") for task in TASKS]
        found = finding([*results, *planned], "synthetic: with planned")
        assert found.verdict == verdict
        assert found.other is not None
        assert found.other.name == f"Episode mixture; {TIMES}1.5 is {1.5 * reference:.3f}"
        assert finding([*results, *planned], "synthetic: planned").verdict == "holds"
    assert str(finding(results, "synthetic: planned")) == "not run (Categorical DT, planned missing)"


def test_the_mixture_is_that_of_the_judged_rows_own_data() -> None:
    def known(result: JobResult, digest: str, reference: float) -> JobResult:
        provenance = {**result.provenance, "data": {"name": "x", "hash": digest}}
        targets = [replace(target, reference=reference) for target in result.targets]
        return replace(result, targets=targets, provenance=provenance)

    planned = [
        known(made("synthetic", task, "Categorical DT", [1.0, 1.0], conditioning="planned"), "a", 0.1) for task in TASKS
    ]
    for budget in ("smoke", "fast"):  # a row of the main budget may stand on other data, too
        others = [known(made("synthetic", t, "Categorical DT", [3.0, 3.0], budget=budget), "b", 0.9) for t in TASKS]
        found = finding([*others, *planned], "synthetic: with planned")
        assert (found.verdict, found.other and found.other.figure) == ("does not hold", "0.100")


def test_ten_times_the_steps_and_the_papers_budget() -> None:
    def one(w1: float, **more: object) -> JobResult:
        return made("xvel", "halfcheetah", "Categorical DT", [w1, w1], **more)

    claim = "halfcheetah xvel: CDT with ten times"
    found = finding([one(1.0), one(0.9, steps=300_000)], claim)
    assert str(found) == f"information ({TIMES}0.90)"
    assert found.ours == ("Categorical DT, 300,000 steps", "0.900 [0.900, 0.900]")
    assert finding([one(1.0)], claim).verdict == "not run"
    shown = finding([one(1.0), one(0.8, budget="paper")], "halfcheetah xvel: CDT with the paper")
    assert str(shown) == f"information ({TIMES}0.80)"


def test_seconds_are_those_of_a_model_of_the_stack() -> None:
    claim = "xvel: the fast preset trains"
    found = finding(xvel(), claim)  # made-up jobs take 61.5 s for four seeds
    assert found.verdict == "holds"
    assert found.ours == ("Categorical DT on halfcheetah, a stack of 4 seeds in 62 s", "15 s a model")
    alone = finding([made("xvel", "hopper", "Categorical DT", [0.1])], claim)
    assert alone.verdict == "does not hold"
    assert alone.ours == ("Categorical DT on hopper, trained alone", "62 s a model")


def test_claims_are_about_fast_where_it_was_run() -> None:
    smoke = [replace(result, budget="smoke", provenance={}) for result in xvel(**{"Categorical DT": 9.0})]
    assert finding(smoke, XVEL).verdict == "does not hold"
    assert finding([*smoke, *xvel()], XVEL).verdict == "holds"


def test_verdicts_are_counted() -> None:
    findings = judge_claims(build_tables(xvel()))
    assert len(findings) == len(CLAIMS)
    shown = sum(found.verdict == "information" for found in findings)  # numbers without a verdict are not counted
    assert (shown, counted(findings)) == (1, f"3 hold, {len(CLAIMS) - 4} not run")
    papers = sum(claim.source == "paper" for claim in CLAIMS)
    assert headline(findings) == (
        f"The paper's claims: 2 hold, {papers - 2} not run. "
        f"himatch's claims: 1 hold, {len(CLAIMS) - papers - 2} not run."
    )


def orderings(results: Sequence[JobResult]) -> dict[str, Orderings]:
    return {found.table.label: found for found in judge_orderings(build_tables(results))}


def test_the_papers_orderings() -> None:
    found = orderings(xvel(Meta_BC=0.05))["xvel_match_main"]
    assert str(found) == "3 of 4; not: Meta-BC"
    assert found.only == ""
    found = orderings([r for r in xvel(TASKS[:1], spread=0.12, DT=0.12) if r.method != named("BC (no-context)")])[
        "xvel_match_main"
    ]
    assert str(found) == "2 of 3; too close to call: DT; not run: BC (no-context)"
    assert found.only == " (halfcheetah only)"
    assert str(orderings(xvel()[:2])["xvel_match_main"]) == "not run"


def test_an_ordering_the_paper_lost_holds_where_it_is_lost_here_too() -> None:
    """On z-velocity the paper's Meta-BC is below its CDT."""
    places = [("uni-modal", 0.3), ("bi-modal", 0.3)]

    def zvel(method: str, w1: float) -> JobResult:
        result = made("zvel", "halfcheetah", method, [w1, w1], "z_velocity")
        targets = [replace(result.targets[0], name=group, group=group, w1=[w1, w1]) for group, _ in places]
        return replace(result, targets=targets)

    found = orderings([zvel("Categorical DT", 0.4), zvel("Meta-BC", 0.3), zvel("DT", 0.9)])["zvel_match_main"]
    assert str(found) == "2 of 2; not run: FOCAL"
    found = orderings([zvel("Categorical DT", 0.2), zvel("Meta-BC", 0.3)])["zvel_match_main"]
    assert found.named("does not hold") == ["Meta-BC"]


def test_returns_are_ordered_by_their_distance_to_the_held_out_ones() -> None:
    """The paper's DT is nearer to hopper's medium episodes, its CDT to the expert ones."""

    def returns(method: str, off: float) -> JobResult:
        result = made("return", "hopper", method, [0.1, 0.1], "reward")
        targets = [replace(t, returns=[(t.target_return or 0.0) + off] * 2) for t in result.targets]
        return replace(result, targets=targets)

    found = orderings([returns("Categorical DT", -10.0), returns("DT", 50.0)])["imitation"]
    assert found.named("holds") == ["DT on hopper expert"]
    assert found.named("does not hold") == ["DT on hopper medium"]


def test_costs_count_a_model_once() -> None:
    shared = [made(suite, "hopper", "Categorical DT", [0.1, 0.1]) for suite in ("xvel", "synthetic")]
    results = [*shared, made("xvel", "hopper", "DT", [0.1, 0.1])]
    costs = costs_of(results, build_tables(results))
    spent = [(cost.name, cost.results, cost.models, cost.spent.training, cost.spent.rollouts) for cost in costs.suites]
    assert spent == [
        ("xvel", 2, 2, 123.0, 5.0),
        ("synthetic", 1, 1, 61.5, 2.5),
        ("all", 3, 2, 123.0, 7.5),
    ]
    assert (costs.machines, costs.dates) == (("a machine",), ("2026-01-31",))
    assert costs.versions == ("himatch 0.1", "torch 2.11")
    assert costs_of([], []).facts == []


def test_costs_of_rows_count_cores_where_they_were_counted() -> None:
    counted = made("xvel", "hopper", "Categorical DT", [0.1, 0.1])
    counted.provenance["training"] |= {"cpu_seconds": 100.0}
    counted.provenance.update({"rollout_cpu_seconds": 20.0, "cores": 16, "device": "a GPU"})
    searched = replace(counted, conditioning="rehearsed")
    search = {"rehearsal": {"seconds": 30.0, "cpu_seconds": 300.0, "targets": []}}
    searched = replace(searched, provenance={**counted.provenance, **search})
    results = [counted, searched, made("xvel", "hopper", "DT", [0.1, 0.1])]
    rows = {cost.row: cost for cost in costs_of(results, build_tables(results)).rows}
    assert {name: (*cost.spent.texts, cost.machine) for name, cost in rows.items()} == {
        "Categorical DT": ("62 s", "", "2 s", "2 min", "a GPU with 16 cores"),
        "Categorical DT, rehearsed": ("62 s", "30 s", "2 s", "7 min", "a GPU with 16 cores"),
        "DT": ("62 s", "", "2 s", "", "a machine"),
    }


def test_durations() -> None:
    texts = [duration(seconds) for seconds in (0, 48.4, 125, 3600, 7380)]
    assert texts == ["0 s", "48 s", "2 min", "60 min", "2 h 03 min"]
