"""What the paper claims of its methods, in its order, the uncomfortable claims with the others.

Each comment has the paper's words. Whatever it says of one feature or table is a claim of its own, because the results
that decide it are. A claim that no sentence makes says "by its table". :data:`NOT_JUDGED` has the sentences that are
none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from himatch.reproduce.report.claimed_methods import (
    BC,
    BDT,
    BDT_20,
    BDT_BY_SIZE,
    CDT,
    DT,
    DT_AE,
    DT_AE_FROZEN,
    DT_X,
    DT_X_BY_SIZE,
    FOCAL,
    META_BC,
)
from himatch.reproduce.report.findings import Judged
from himatch.reproduce.report.return_claims import ReturnClaim
from himatch.reproduce.report.trend_claims import FallingClaim, NoTrendClaim
from himatch.reproduce.report.unpaired_claims import FollowingClaim, Place, UnpairedClaim
from himatch.reproduce.report.verdicts import Claim

NOT_JUDGED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "DT tends to lean backflipping and fails to fit neither uni-modal nor bi-modal ones",
            "DT seems to output covering behaviors over the dataset support",
            "CDT performs very well in all cases",
            "FOCAL struggles to solve the offline multi-task SMM",
            "DT-CPC sometimes fails to obtain sufficient representation for imitation",
        ),
        "no number is named",
    ),
    "achieves similar performances to the held-out trajectories": "how near is not said, and by the spread of the "
    "held-out returns the paper's own DT is apart from them in all six cells",
}
"""What the paper says of its methods, in its words, and no verdict is given on, with the reason."""

_IMITATION = (
    ("x-velocity", "unsupervised_xvel_16", "unsupervised_xvel", "xvel_match_main"),
    ("reward", "unsupervised_reward", "unsupervised_reward", "reward_match"),
)
"""Feature, the table with m = 16, that with all sizes, and that of the methods which are given the feature."""
_ZVEL = "zvel, vertical velocity"
_METRIC_BASED = {
    **{"xvel": "xvel_match_main", "reward": "reward_match", "cheetah-vel": "cheetah_vel_match_main"},
    **{_ZVEL: "zvel_match_main", "ant-xy": "xyvel_match_main"},
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
    # "Generally, similar to the x-velocity case, CDT shows the better results in offline multi-task SMM compared to
    # original DT"
    Claim("reward: CDT beats DT", "reward_match", CDT, (DT,), source="paper"),
    Claim(
        "reward: CDT has the lowest average W₁ of CDT, DT, BC, Meta-BC and FOCAL (by its table)",
        "reward_match",
        CDT,
        (DT, BC, META_BC, FOCAL),
        source="paper",
    ),
    # "Categorical DT manages to deal with such unrealistic target matching"
    Claim("synthetic: CDT beats DT (listed order)", "synthesized_smm", CDT, (DT,), source="paper"),
    # "CDT tends to match the target distributions, even in the cases of bi-modal target distributions"; "the results
    # are worse than for realistic test target distributions"
    Claim(
        "synthetic, the two mixtures: CDT beats DT (listed order)",
        "synthesized_smm",
        CDT,
        (DT,),
        source="paper",
        among="+",
    ),
    UnpairedClaim(
        "synthetic: CDT is nearer to held-out targets than to these (listed order)",
        Place(CDT, "xvel_match_main"),
        Place(CDT, "synthesized_smm"),
        source="paper",
    ),
    # "CDT outperforms DT or FOCAL, and is slightly better than Meta-BC"
    Claim(
        "cheetah-vel: CDT beats DT, Meta-BC and FOCAL",
        "cheetah_vel_match_main",
        CDT,
        (DT, META_BC, FOCAL),
        source="paper",
    ),
    # "matches both uni- and bi-modal trajectories better than DT and FOCAL, and is comparable to Meta-BC"
    # Of the vertical velocity, which is what the paper's word says; the pitch rate has a table and its orderings.
    Claim(f"{_ZVEL}: CDT beats DT and FOCAL", "zvel_match_main", CDT, (DT, FOCAL), source="paper"),
    *(
        Claim(
            f"{_ZVEL}, {kind} targets: CDT beats DT and FOCAL",
            "zvel_match_main",
            CDT,
            (DT, FOCAL),
            column=f"halfcheetah/{kind}",
            source="paper",
        )
        for kind in ("uni-modal", "bi-modal")
    ),
    Claim(
        f"{_ZVEL}: CDT is level with Meta-BC (within 10 %)",
        "zvel_match_main",
        CDT,
        (META_BC,),
        source="paper",
        level=0.1,
    ),
    # "CDT outperforms other baselines"; "DT doesn't generalize to expert-quality trajectories"; "DT always fits the
    # medium one even if the expert trajectory is given as a target"
    Claim("ant-xy: CDT beats DT, Meta-BC and FOCAL", "xyvel_match_main", CDT, (DT, META_BC, FOCAL), source="paper"),
    Claim(
        "ant-xy, expert targets: CDT beats DT",
        "xyvel_match_main",
        CDT,
        (DT,),
        column="ant/expert",
        source="paper",
    ),
    UnpairedClaim(
        "ant-xy: DT always fits medium targets: it is nearer to them than to expert ones",
        Place(DT, "xyvel_match_main", "ant/medium"),
        Place(DT, "xyvel_match_main", "ant/expert"),
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
    # "CDT can match the rollouts to the shifted target distributions when they are within the support of dataset
    # distributions"
    *(
        FollowingClaim(
            f"shift, {feature}: CDT follows shifts within the training range (slope 1, within 30 %)",
            table,
            CDT,
            0.3,
            source="paper",
        )
        for feature, table in (("x-velocity", "shift_xvel_match"), ("reward", "shift_reward_match_full"))
    ),
)
_RETURNS: tuple[Judged, ...] = (
    # "DT seems consistently better methods than Categorical DT on the task rewards evaluations": nearer to the held-out
    # returns in five of its six cells, higher in four. That it is similar to them is not judged.
    ReturnClaim("return: DT is nearer to the held-out returns than CDT", "imitation", DT, CDT, source="paper"),
    ReturnClaim("return: DT reaches higher returns than CDT", "imitation", DT, CDT, higher=True, source="paper"),
)


def _imitation(feature: str, short: str, long: str, given: str) -> tuple[Judged, ...]:
    cdt, dt, meta_bc, bc = (replace(row, table=given) for row in (CDT, DT, META_BC, BC))
    return (
        # "BDT outperforms all other learned Phi variants or Meta-BC and is comparable to CDT or DT with longer input
        # (N=50)". What it calls comparable are 0.443 and 0.347, or 0.387.
        Claim(f"imitation, {feature}: BDT (m=16, N=50) beats every DT-X with m=16", short, BDT, DT_X, source="paper"),
        Claim(f"imitation, {feature}: BDT (m=16, N=50) beats Meta-BC", short, BDT, (meta_bc,), source="paper"),
        *(
            Claim(
                f"imitation, {feature}: BDT (m=16, N=50) is level with {name} (within 30 %, as the paper's are)",
                short,
                BDT,
                (row,),
                source="paper",
                level=0.3,
            )
            for name, row in (("CDT", cdt), ("DT", dt))
        ),
        # "BDT with longer contexts seems to outperform other strategies"; with N=20 by its table alone
        Claim(f"imitation, {feature}: BDT (m=16) with N=50 beats N=20", short, BDT, (BDT_20,), source="paper"),
        Claim(
            f"imitation, {feature}: BDT (m=16, N=20) beats every DT-X with m=16 (by its table)",
            short,
            BDT_20,
            DT_X,
            source="paper",
        ),
        # "DT-AE and DT-AE (frozen), show positive results compared to no-context BC"
        Claim(f"imitation, {feature}: DT-AE (m=16) beats BC", short, DT_AE, (bc,), source="paper"),
        Claim(f"imitation, {feature}: DT-AE (m=16, frozen) beats BC", short, DT_AE_FROZEN, (bc,), source="paper"),
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
