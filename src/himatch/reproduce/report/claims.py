"""What is claimed of the methods, as data, and what the results say to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from himatch.reproduce.budgets import EARLIER_STEPS
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.report.verdicts import Claim, ClaimedRow, Finding, TimeClaim, budget_of
from himatch.reproduce.specification import Specification
from himatch.reproduce.suites import BEST_BDT

READING = (
    "Claims compare mean W₁ (lower is better), averaged over tasks: the numbers of the tables below, with 95 % "
    "bootstrap intervals over seeds. What decides is the difference of two rows target by target, with a 95 % interval "
    "for which the same targets are resampled in both rows, and the seeds of each by themselves. A claim holds where "
    "the order is right and that interval leaves out zero, and within noise where it does not; against the paper's "
    "figures and the episode mixture, where intervals overlap. Nothing is said about other data. A claim that names no "
    "budget is about fast, where that was run, and one that names no policy about the paper's."
)

CDT, DT, BC, META_BC, FOCAL = (ClaimedRow(Specification(name)) for name in ("cdt", "dt", "bc", "meta-bc", "focal"))
PLANNED = replace(CDT, conditioning="planned")
FAST = replace(CDT, budget="fast")
LONGER = replace(FAST, steps=10 * EARLIER_STEPS["fast"])
PAPER, PAPER_DT = replace(CDT, budget="paper"), replace(DT, budget="paper")
HIMATCH = tuple(replace(row, policy="himatch") for row in (CDT, DT, BC, META_BC))
GAUSSIAN = tuple(replace(row, policy="gaussian") for row in (CDT, DT, BC, META_BC))
BDT = ClaimedRow(BEST_BDT)
DT_X = (
    *(
        ClaimedRow(Specification.of(name, m=16, mode=mode))
        for name in ("dt-ae", "dt-cpc")
        for mode in ("unsupervised", "joint", "frozen")
    ),
    ClaimedRow(Specification.of("dt-e2e", m=16)),
)

CLAIMS: tuple[Claim | TimeClaim, ...] = (
    Claim(
        "xvel: CDT has the lowest average W₁ of CDT, DT, BC, Meta-BC and FOCAL",
        "xvel_match_main",
        CDT,
        (DT, BC, META_BC, FOCAL),
    ),
    Claim(
        "reward: CDT has the lowest average W₁ of CDT, DT, BC, Meta-BC and FOCAL",
        "reward_match",
        CDT,
        (DT, BC, META_BC, FOCAL),
    ),
    Claim(
        "synthetic: CDT has the lowest average W₁ of CDT, DT and BC (listed order)", "synthesized_smm", CDT, (DT, BC)
    ),
    Claim("zvel: CDT beats DT", "zvel_match_main", CDT, (DT,)),
    Claim("cheetah-vel: CDT beats DT", "cheetah_vel_match_main", CDT, (DT,)),
    Claim("ant-xy: CDT beats DT", "xyvel_match_main", CDT, (DT,)),
    Claim("imitation, x-velocity: BDT (m=16, N=50) beats every DT-X with m=16", "unsupervised_xvel_16", BDT, DT_X),
    Claim("imitation, reward: BDT (m=16, N=50) beats every DT-X with m=16", "unsupervised_reward", BDT, DT_X),
    Claim("xvel: CDT's average W₁ is no worse than the paper's", "xvel_match_main", CDT, against="paper"),
    Claim("cheetah-vel: CDT's average W₁ is no worse than the paper's", "cheetah_vel_match_main", CDT, against="paper"),
    Claim(
        "synthetic: with planned conditioning CDT comes within 1.5 times the episode mixture (listed order)",
        "synthesized_smm",
        PLANNED,
        against="mixture",
        factor=1.5,
    ),
    Claim("synthetic: planned conditioning beats nominal (CDT, listed order)", "synthesized_smm", PLANNED, (CDT,)),
    Claim("zvel: planned conditioning beats nominal (CDT)", "zvel_match_main", PLANNED, (CDT,)),
    Claim("shift, x-velocity: planned conditioning beats nominal (CDT)", "shift_xvel_match", PLANNED, (CDT,)),
    Claim("shift, reward: planned conditioning beats nominal (CDT)", "shift_reward_match_full", PLANNED, (CDT,)),
    Claim(
        "halfcheetah xvel: CDT with the fast preset comes within 10 % of what ten times its steps reach",
        "xvel_match_main",
        FAST,
        (LONGER,),
        factor=1.1,
        column="halfcheetah/total",
    ),
    TimeClaim("xvel: the fast preset trains CDT in at most 60 s a model", "xvel_match_main", FAST, 60.0),
    Claim(
        "halfcheetah xvel: with the paper budget CDT beats DT",
        "xvel_match_main",
        PAPER,
        (PAPER_DT,),
        column="halfcheetah/total",
    ),
    Claim(
        "xvel: with himatch's policy CDT has the lowest average W₁ of CDT, DT, BC and Meta-BC",
        "xvel_match_main",
        HIMATCH[0],
        HIMATCH[1:],
    ),
    Claim(
        "reward: with himatch's policy CDT has the lowest average W₁ of CDT, DT, BC and Meta-BC",
        "reward_match",
        HIMATCH[0],
        HIMATCH[1:],
    ),
    Claim("xvel: himatch's policy beats the paper's (CDT)", "xvel_match_main", HIMATCH[0], (CDT,)),
    Claim("reward: himatch's policy beats the paper's (CDT)", "reward_match", HIMATCH[0], (CDT,)),
    Claim(
        "xvel: with one Gaussian network CDT has the lowest average W₁ of CDT, DT, BC and Meta-BC",
        "xvel_match_main",
        GAUSSIAN[0],
        GAUSSIAN[1:],
    ),
    Claim(
        "halfcheetah xvel: CDT with the paper budget beside CDT with fast",
        "xvel_match_main",
        PAPER,
        (FAST,),
        column="halfcheetah/total",
        informs=True,
    ),
)


def judge_claims(tables: Sequence[ResultTable]) -> list[Finding]:
    """Every claim with its verdict."""
    by_label, budget = {table.label: table for table in tables}, budget_of(tables)
    return [claim.judge(by_label, budget) for claim in CLAIMS]
