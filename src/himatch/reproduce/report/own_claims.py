"""What himatch claims beside the paper: of its conditionings, its presets, its policy, and of OGBench's mazes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from himatch.reproduce.budgets import EARLIER_STEPS
from himatch.reproduce.ogbench import PUBLISHED, TASKS
from himatch.reproduce.report.claimed import ClaimedRow, budget_of
from himatch.reproduce.report.claimed_methods import BC, CDT, DT, META_BC
from himatch.reproduce.report.findings import Judged
from himatch.reproduce.report.rate_claims import RateClaim
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.report.verdicts import Claim, TimeClaim
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import AVERAGE

PLANNED = replace(CDT, conditioning="planned")
FAST = replace(CDT, budget="fast")
LONGER = replace(FAST, steps=10 * EARLIER_STEPS["fast"])
PAPER, PAPER_DT = replace(CDT, budget="paper"), replace(DT, budget="paper")
HIMATCH = tuple(replace(row, policy="himatch") for row in (CDT, DT, BC, META_BC))
OWN_CDT = HIMATCH[0]
OWN_PLANNED, REHEARSED = (replace(OWN_CDT, conditioning=name) for name in ("planned", "rehearsed"))
WAYPOINTS = ClaimedRow(Specification("gcsl"), "waypoints", "cpu", policy="himatch")
LEAST = (90, 80, 60)  # percent of the goals in the medium, large and giant maze
GAUSSIAN = tuple(replace(row, policy="gaussian") for row in (CDT, DT, BC, META_BC))
HIPI, GH, PLAIN = (ClaimedRow(Specification(name), budget="smoke", steps=10_000) for name in ("hipi", "gh", "bc"))


def elsewhere(tables: Sequence[ResultTable]) -> list[Judged]:
    """Whether orderings of the paper are found on data that others made, table by table."""
    found: list[Judged] = []
    for table in tables:
        known = [column.key for column in table.columns]
        column = AVERAGE if AVERAGE in known else next((key for key in known if key.endswith("/total")), None)
        if not table.layout.data or table.suite.name not in ("xvel", "reward") or column is None:
            continue
        budget = budget_of([table])
        ours, *others = (replace(row, budget=budget) for row in (CDT, DT, META_BC))
        text = f"{table.suite.name} on {table.layout.data}: CDT beats DT and Meta-BC"
        found.append(Claim(text, table.label, ours, tuple(others), column=column))
    return found


OWN: tuple[Judged, ...] = (
    Claim("synthetic: CDT beats BC (listed order)", "synthesized_smm", CDT, (BC,)),
    Claim(
        "synthetic: with planned conditioning CDT comes within 1.5 times the episode mixture (listed order)",
        "synthesized_smm",
        PLANNED,
        against="mixture",
        factor=1.5,
    ),
    Claim("synthetic: planned conditioning beats nominal (CDT, listed order)", "synthesized_smm", PLANNED, (CDT,)),
    Claim("zvel, vertical velocity: planned conditioning beats nominal (CDT)", "zvel_match_main", PLANNED, (CDT,)),
    Claim("shift, x-velocity: planned conditioning beats nominal (CDT)", "shift_xvel_match", PLANNED, (CDT,)),
    Claim("shift, reward: planned conditioning beats nominal (CDT)", "shift_reward_match_full", PLANNED, (CDT,)),
    *(
        Claim(f"{name}: rehearsed conditioning beats planned (CDT, himatch's policy)", table, REHEARSED, (OWN_PLANNED,))
        for name, table in (
            ("synthetic, listed order", "synthesized_smm"),
            ("shift, x-velocity", "shift_xvel_match"),
            ("zvel, vertical velocity", "zvel_match_main"),
            ("unseen, x-velocity", "unseen"),
        )
    ),
    *(
        Claim(f"{suite}: rehearsed conditioning beats nominal (CDT, himatch's policy)", table, REHEARSED, (OWN_CDT,))
        for suite, table in (("xvel", "xvel_match_main"), ("reward", "reward_match"))
    ),
    *(
        Claim(f"cheetah-vel: {name} has at most half of BC's W₁", "cheetah_vel_match_main", row, (PLAIN,), factor=0.5)
        for name, row in (("HIPI-BC", HIPI), ("generalized hindsight's relabelling with BC", GH))
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
    *(
        RateClaim(
            f"{task}-{data}: gcsl with way-points reaches at least {least} % of OGBench's test goals",
            f"ogbench_{data}",
            WAYPOINTS,
            f"{task}/total",
            least / 100,
        )
        for data in PUBLISHED
        for task, least in zip(TASKS, LEAST, strict=True)
    ),
    # Other data, or a direction that one target decides: numbers without a verdict.
    *(
        Claim(f"{suite}: CDT's average W₁ beside the paper's", table, CDT, against="paper", informs=True)
        for suite, table in (("xvel", "xvel_match_main"), ("cheetah-vel", "cheetah_vel_match_main"))
    ),
    Claim(
        "halfcheetah xvel: CDT with ten times the steps of fast beside CDT with fast",
        "xvel_match_main",
        LONGER,
        (FAST,),
        column="halfcheetah/total",
        informs=True,
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
