"""The paper's experiments as data: which tasks, data, methods and targets each table needs.

A new experiment is an entry in :data:`SUITES`; how jobs run lies elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from himatch.errors import HimatchError
from himatch.methods import METHODS, make_method
from himatch.training import configure

BudgetName = Literal["smoke", "fast", "paper"]
Targets = Literal["held-out", "synthetic", "shift", "velocities", "patchwork", "dataset"]
SplitKind = Literal["paper", "velocities", "all"]

PLANAR = ("halfcheetah", "hopper", "walker2d")
HELD_OUT_VELOCITIES = ("0.5", "1.5", "2.5")


@dataclass(frozen=True)
class Budget:
    """How much of everything a run of the benchmark spends.

    ``episodes`` are those of a medium-expert set; ``steps`` of ``None`` are the preset's own.
    """

    preset: str
    steps: int | None
    episodes: int
    velocity_episodes: int
    flip_episodes: int
    seeds: int
    rollouts: int


BUDGETS: Mapping[str, Budget] = {
    "smoke": Budget("cpu", 4_000, 100, 31 * 14, 100, 2, 5),
    "fast": Budget("fast", None, 2_000, 31 * 250, 1_000, 4, 20),
    "paper": Budget("paper", None, 2_000, 31 * 250, 1_000, 4, 20),
}


def usual_steps(budget: str, method: str) -> int | None:
    """Training steps of a budget for a method, one of somebody's own included; nothing for an unknown budget."""
    if budget not in BUDGETS:
        return None
    known = make_method(method) if method in METHODS else None
    return configure(BUDGETS[budget].preset, known, steps=BUDGETS[budget].steps).train.steps


@dataclass(frozen=True)
class Variant:
    """One row of a table: a method with its settings and what it changes in the budget's preset.

    ``matched`` methods are trained for the suite's feature; the others ignore it and serve every suite. ``from_budget``
    is the smallest budget that includes the row by itself.
    """

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    matched: bool = False
    from_budget: BudgetName = "smoke"


@dataclass(frozen=True)
class Suite:
    """One table (or figure) of the paper."""

    name: str
    title: str
    tasks: tuple[str, ...]
    features: tuple[str, ...]
    """What rollouts are scored on, and what matched methods are trained for."""
    variants: tuple[Variant, ...]
    targets: Targets = "held-out"
    split: SplitKind = "paper"
    dataset: str = "{task}-medium-expert"
    """Name of the dataset, for users who bring none of their own."""

    @property
    def mixes_rewards(self) -> bool:
        """Whether its episodes were rewarded for different things, so that returns say nothing beside one another."""
        return self.split != "paper"


CDT = Variant("Categorical DT", "cdt", matched=True)
DT = Variant("DT", "dt", matched=True)
BC = Variant("BC (no-context)", "bc")
META_BC = Variant("Meta-BC", "meta-bc")
FOCAL = Variant("FOCAL", "focal")


def _bdt(m: int, n: int, *, literal: bool = False, budget: BudgetName) -> Variant:
    name = f"BDT (m={m}, N={n}{', literal' if literal else ''})"
    settings = {"m": m, "target_window": n, "literal": literal}
    return Variant(name, "bdt", settings, _windows(n), from_budget=budget)


def _windows(n: int) -> dict[str, int]:
    """Context N with the batch of Table dt_hyper: presets of shorter contexts have larger batches."""
    return {"context": n, "batch_size": 64}


def _imitators() -> tuple[Variant, ...]:
    """Tables unsupervised_*: BDT and DT-X by size of code; the largest code is what smaller budgets look at.

    Longer windows go with the largest code alone, as in the paper.
    """
    rows = []
    for m in (16, 4, 1):
        largest = m == 16
        for n in (20, 50, 100) if largest else (20,):
            rows.append(_bdt(m, n, budget="paper" if n == 100 or not largest else "smoke" if n == 20 else "fast"))
            if largest and n < 100:
                rows.append(_bdt(m, n, literal=True, budget="fast"))
        first: BudgetName = "smoke" if largest else "paper"
        rows += [
            Variant(f"{label} ({mode}, m={m})", method, {"m": m, "mode": mode}, _windows(20), from_budget=first)
            for label, method in (("DT-AE", "dt-ae"), ("DT-CPC", "dt-cpc"))
            for mode in ("unsupervised", "joint", "frozen")
        ]
        rows.append(Variant(f"DT-E2E (m={m})", "dt-e2e", {"m": m}, _windows(20), from_budget=first))
    return tuple(rows)


_ALL, _META = (CDT, DT, BC, META_BC, FOCAL), (CDT, DT, META_BC, FOCAL)

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("xvel", "x-velocity matching (xvel_match_main)", PLANAR, ("x_velocity",), _ALL),
        Suite("reward", "reward matching (reward_match)", PLANAR, ("reward",), _ALL),
        Suite(
            "synthetic",
            "synthetic x-velocity targets (synthesized_smm)",
            PLANAR,
            ("x_velocity",),
            (CDT, DT, BC),
            "synthetic",
        ),
        Suite(
            "shift",
            "shifted targets (shift_reward_match_full, shift_xvel_match)",
            PLANAR,
            ("reward", "x_velocity"),
            (CDT, DT),
            "shift",
        ),
        Suite("return", "returns of reward matching (imitation)", PLANAR, ("reward",), (CDT, DT)),
        Suite(
            "cheetah-vel",
            "unseen target velocities (cheetah_vel_match_main)",
            ("cheetah-vel",),
            ("x_velocity",),
            _META,
            "velocities",
            "velocities",
            "cheetah-vel",
        ),
        Suite(
            "zvel",
            "running and back-flips (zvel_match_main)",
            ("halfcheetah",),
            ("z_velocity",),
            _META,
            "patchwork",
            "all",
            "halfcheetah-run-backflip",
        ),
        Suite("ant-xy", "two-dimensional velocity (xyvel_match_main)", ("ant",), ("xy_velocity",), _META),
        Suite(
            "imitation",
            "one-shot imitation (unsupervised_xvel, unsupervised_reward)",
            PLANAR,
            ("x_velocity", "reward"),
            _imitators(),
        ),
        Suite("data", "the datasets (Figure dataset)", (*PLANAR, "ant"), ("x_velocity", "reward"), (), "dataset"),
    )
}

SYNTHETIC: Mapping[str, tuple[str, ...]] = {
    "halfcheetah": (
        *("normal(5,1)", "normal(13,1)", "normal(9,1)", "normal(2.5,1)"),
        *("0.5*normal(5,1)+0.5*normal(13,1)", "0.5*normal(9,1)+0.5*normal(2.5,1)"),
    ),
    "hopper": (
        *("normal(2.5,1)", "normal(1.5,1)", "normal(3.5,1)", "normal(2.5,0.5)"),
        *("0.5*normal(3.5,1)+0.5*normal(1.5,1)", "0.5*normal(3.5,0.5)+0.5*normal(1.5,0.5)"),
    ),
    "walker2d": (
        *("normal(3.5,1)", "normal(2.5,1)", "normal(4.5,1)", "normal(1.5,1)"),
        *("0.5*normal(2.5,0.5)+0.5*normal(4.5,0.5)", "0.5*normal(1.5,0.5)+0.5*normal(4.5,0.5)"),
    ),
}
"""The paper's six synthetic targets for each task (Appendix "Synthesizing Unrealistic Target Distribution")."""


def find_suites(names: tuple[str, ...]) -> list[Suite]:
    """Suites by name; ``all`` means every one."""
    chosen = tuple(SUITES) if "all" in names else names
    for name in chosen:
        if name not in SUITES:
            raise HimatchError(f"unknown suite {name!r}; known are {', '.join(SUITES)}, or all")
    if not chosen:
        raise HimatchError(f"name at least one suite: {', '.join(SUITES)}, or all")
    return [SUITES[name] for name in dict.fromkeys(chosen)]


def rows_of(suite: Suite, budget: str, methods: tuple[str, ...], *, all_variants: bool = False) -> list[Variant]:
    """The rows that a budget includes, or all, of the methods asked for.

    A method that is in none of the paper's tables (one's own, ``moments``) has a row wherever it is asked for.
    """
    order = get_args(BudgetName)
    listed = [
        variant
        for variant in suite.variants
        if (not methods or variant.method in methods)
        and (all_variants or order.index(variant.from_budget) <= order.index(budget))
    ]
    in_tables = {variant.method for known in SUITES.values() for variant in known.variants}
    return listed + [_own_row(name) for name in methods if name not in in_tables]


def _own_row(method: str) -> Variant:
    return Variant(method, method, matched="feature" in {setting.name for setting in fields(METHODS[method])})
