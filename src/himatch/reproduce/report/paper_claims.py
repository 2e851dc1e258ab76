"""What the paper claims of its methods, in its order, the uncomfortable claims with the others.

Each comment has the paper's words. Whatever it says of one feature or table is a claim of its own, because the results
that decide it are.
"""

from __future__ import annotations

from dataclasses import replace

from himatch.reproduce.report.claimed_methods import (
    BC,
    BDT,
    BDT_BY_SIZE,
    CDT,
    DT,
    DT_AE,
    DT_X,
    DT_X_BY_SIZE,
    FOCAL,
    META_BC,
)
from himatch.reproduce.report.findings import Judged
from himatch.reproduce.report.return_claims import ReturnClaim
from himatch.reproduce.report.trend_claims import FallingClaim, NoTrendClaim
from himatch.reproduce.report.verdicts import Claim

_IMITATION = (
    ("x-velocity", "unsupervised_xvel_16", "unsupervised_xvel", "xvel_match_main"),
    ("reward", "unsupervised_reward", "unsupervised_reward", "reward_match"),
)
"""Feature, the table with m = 16, that with all sizes, and that of the methods which are given the feature."""
_METRIC_BASED = {
    **{"xvel": "xvel_match_main", "reward": "reward_match", "cheetah-vel": "cheetah_vel_match_main"},
    **{"zvel": "zvel_match_main", "ant-xy": "xyvel_match_main"},
}

_MATCHING: tuple[Judged, ...] = (
    # "CDT achieves better matching than baselines"
    Claim(
        "xvel: CDT has the lowest average W₁ of CDT, DT, BC, Meta-BC and FOCAL",
        "xvel_match_main",
        CDT,
        (DT, BC, META_BC, FOCAL),
        source="paper",
    ),
    # "Generally, similar to the x-velocity case, CDT shows the better results"
    Claim(
        "reward: CDT has the lowest average W₁ of CDT, DT, BC, Meta-BC and FOCAL",
        "reward_match",
        CDT,
        (DT, BC, META_BC, FOCAL),
        source="paper",
    ),
    # "Categorical DT manages to deal with such unrealistic target matching"
    Claim("synthetic: CDT beats DT (listed order)", "synthesized_smm", CDT, (DT,), source="paper"),
    # "CDT outperforms DT or FOCAL, and is slightly better than Meta-BC"
    Claim(
        "cheetah-vel: CDT beats DT, Meta-BC and FOCAL",
        "cheetah_vel_match_main",
        CDT,
        (DT, META_BC, FOCAL),
        source="paper",
    ),
    # "better than DT and FOCAL, and is comparable to Meta-BC"
    Claim("zvel: CDT beats DT and FOCAL", "zvel_match_main", CDT, (DT, FOCAL), source="paper"),
    Claim(
        "zvel: CDT is level with Meta-BC (within 10 %)", "zvel_match_main", CDT, (META_BC,), source="paper", level=0.1
    ),
    # "CDT outperforms other baselines"; "DT doesn't generalize to expert-quality trajectories"
    Claim("ant-xy: CDT beats DT, Meta-BC and FOCAL", "xyvel_match_main", CDT, (DT, META_BC, FOCAL), source="paper"),
    Claim(
        "ant-xy, expert targets: CDT beats DT",
        "xyvel_match_main",
        CDT,
        (DT,),
        column="ant/expert",
        source="paper",
    ),
    # "Throughout our experiments, Meta-BC shows better results than FOCAL"
    *(
        Claim(f"{suite}: Meta-BC beats FOCAL", table, META_BC, (FOCAL,), source="paper")
        for suite, table in _METRIC_BASED.items()
    ),
)
_SHIFT: tuple[Judged, ...] = (
    # "CDT successfully handles the distribution shifts (especially in hopper) better than DT"
    Claim("shift, x-velocity: CDT beats DT", "shift_xvel_match", CDT, (DT,), source="paper"),
    Claim("shift, reward: CDT beats DT", "shift_reward_match_full", CDT, (DT,), source="paper"),
    Claim(
        "shift, reward, hopper: CDT beats DT",
        "shift_reward_match_full",
        CDT,
        (DT,),
        column="hopper/total",
        source="paper",
    ),
)
_RETURNS: tuple[Judged, ...] = (
    # "DT seems consistently better methods than Categorical DT on the task rewards evaluations, and achieves similar
    # performances to the held-out trajectories": nearer to them in five of its six cells, higher in four.
    ReturnClaim("return: DT is nearer to the held-out returns than CDT", "imitation", DT, CDT, source="paper"),
    ReturnClaim("return: DT reaches higher returns than CDT", "imitation", DT, CDT, higher=True, source="paper"),
)


def _imitation(feature: str, short: str, long: str, given: str) -> tuple[Judged, ...]:
    in_given = [replace(row, table=given) for row in (CDT, META_BC, BC)]
    return (
        # "BDT outperforms all other learned Phi variants or Meta-BC and is comparable to CDT or DT with longer input
        # (N=50)". What it calls comparable are 0.443 and 0.347.
        Claim(f"imitation, {feature}: BDT (m=16, N=50) beats every DT-X with m=16", short, BDT, DT_X, source="paper"),
        Claim(f"imitation, {feature}: BDT (m=16, N=50) beats Meta-BC", short, BDT, (in_given[1],), source="paper"),
        Claim(
            f"imitation, {feature}: BDT (m=16, N=50) is level with CDT (within 30 %, as the paper's are)",
            short,
            BDT,
            (in_given[0],),
            source="paper",
            level=0.3,
        ),
        # "DT-AE and DT-AE (frozen), show positive results compared to no-context BC"
        Claim(f"imitation, {feature}: DT-AE (m=16) beats BC", short, DT_AE, (in_given[2],), source="paper"),
        # "while there are no clear trends in DT-AE, -CPC or -E2E as the size of context embedding m grows, BDT improves
        # its performance with larger size of embedding"
        FallingClaim(f"imitation, {feature}: BDT (N=20) improves with m = 1, 4, 16", long, BDT_BY_SIZE, "paper"),
        NoTrendClaim(f"imitation, {feature}: no clear trend of DT-X in m = 1, 4, 16", long, DT_X_BY_SIZE, "paper"),
    )


PAPERS: tuple[Judged, ...] = (
    *_MATCHING,
    *_SHIFT,
    *_RETURNS,
    *(claim for tables in _IMITATION for claim in _imitation(*tables)),
)
