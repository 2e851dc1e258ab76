"""The rows that claims name."""

from __future__ import annotations

from dataclasses import replace

from himatch.reproduce.report.claimed import ClaimedRow
from himatch.reproduce.specification import Specification
from himatch.reproduce.suites import BEST_BDT

CDT, DT, BC, META_BC, FOCAL = (ClaimedRow(Specification(name)) for name in ("cdt", "dt", "bc", "meta-bc", "focal"))
SIZES = (1, 4, 16)
BDT = ClaimedRow(BEST_BDT)
BDT_BY_SIZE = tuple(
    replace(BDT, method=Specification.of("bdt", **{**dict(BEST_BDT.settings), "m": m, "target_window": 20}))
    for m in SIZES
)
DT_X_BY_SIZE = tuple(
    tuple(ClaimedRow(Specification.of(name, m=m, **mode)) for m in SIZES)
    for name, mode in (
        *((name, {"mode": mode}) for name in ("dt-ae", "dt-cpc") for mode in ("unsupervised", "joint", "frozen")),
        ("dt-e2e", {}),
    )
)
"""DT-AE and DT-CPC, each alone, joint and frozen, and DT-E2E."""
DT_X = tuple(family[-1] for family in DT_X_BY_SIZE)
DT_AE, DT_AE_FROZEN = DT_X[0], DT_X[2]
BDT_20 = BDT_BY_SIZE[-1]
