"""Made-up results of every suite, shaped like those of the benchmark."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from himatch.reproduce.budgets import usual_steps
from himatch.reproduce.policies import PolicyName
from himatch.reproduce.report import Cell, ResultTable
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.specification import Specification, display_name
from himatch.reproduce.suites import SUITES

BINS = 31
CENTRE = {"halfcheetah": 8.0, "hopper": 2.5, "walker2d": 3.0, "cheetah-vel": 1.5, "ant": 3.0}
QUALITY = {"Categorical DT": 0.1, "DT": 0.2, "BC (no-context)": 0.9, "Meta-BC": 0.3, "FOCAL": 0.5}
NAMED = {
    display_name(method.specification): method.specification for suite in SUITES.values() for method in suite.methods
}


def named(name: str) -> Specification:
    """A method by what tables call it; one that no suite has goes by its registered name."""
    return NAMED.get(name, Specification(name))


def cell_of(table: ResultTable, row: str, column: str) -> Cell:
    """A cell by the name of its row and the key of its column."""
    keys = [c.key for c in table.columns]
    return next(r for r in table.rows if r.name == row).cells[keys.index(column)]


class Place(NamedTuple):
    """A target: its name, its group and what else the suite says of it."""

    name: str
    group: str
    more: dict[str, Any]


def job(
    suite: str,
    task: str,
    method: str,
    feature: str,
    targets: Iterable[Place],
    *,
    seeds: Sequence[int] = (0, 1),
    conditioning: str = "nominal",
    budget: str = "smoke",
    data: str | None = None,
    quality: float | None = None,
    steps: int | None = None,
    policy: PolicyName | None = "paper",
    head: str = "tanh",
) -> JobResult:
    """A method's result; ``steps`` of training where they are not the budget's. Older ones name no ``policy``."""
    rng = np.random.default_rng(zlib.crc32(f"{suite}{task}{method}{feature}{conditioning}".encode()))
    error = (QUALITY.get(method, 0.4) if quality is None else quality) * CENTRE.get(task, 1.0) / 4
    scores = [_score(rng, task, feature, place, len(seeds), error) for place in targets]
    specification = None if method == "dataset" else named(method)
    name = "" if specification is None else specification.name
    known = {"name": data or f"{task}-medium-expert", "made_by_himatch": data is None}
    known |= {"hash": f"{zlib.crc32(task.encode()):08x}" * 8, "episodes": 100, "steps": 100_000}
    return JobResult(
        *(suite, task, specification, feature, conditioning, budget, list(seeds), 5, scores),
        {
            "command": f"himatch benchmark {suite}",
            "data": known,
            "environment": f"{task}-v5",
            "training": {
                "steps": steps or usual_steps(budget, name),
                "context": 5,
                "head": head,
                "seconds": 61.5,
            },
            "method": {} if specification is None else specification.as_json(),
            "rollout_seconds": 2.5,
            "device": "a machine",
            "date": "2026-01-31",
            "versions": {"himatch": "0.1", "torch": "2.11"},
        },
        policy if specification is not None else None,
    )


def _score(rng: np.random.Generator, task: str, feature: str, place: Place, seeds: int, error: float) -> TargetScore:
    centre = CENTRE.get(task, 1.0)
    goal = place.more.get("target_return")
    w1 = np.abs(rng.normal(error, error / 4, seeds)).tolist()
    return TargetScore(
        *(place.name, place.group, w1, [w / 2 for w in w1]),
        returns=[] if goal is None else (goal + rng.normal(-50, 200, seeds)).tolist(),
        lengths=[1000.0] * seeds,
        target_return=goal,
        reference=0.01 * centre,
        shift=place.more.get("shift"),
        ordering=place.more.get("ordering"),
        **(_as_measured_now(w1, centre) if place.more.get("exact") else {}),
        histograms=_histograms(feature, centre, place, w1),
    )


def _as_measured_now(w1: Sequence[float], centre: float) -> dict[str, Any]:
    """What results from before it was measured lack."""
    exact = [1.1 * w for w in w1]
    within = [1.2 * w for w in w1]
    return {
        "exact": exact,
        "played": [0.9] * len(w1),
        "spread": [centre],
        "within_episode": within,
        "exact_reference": 0.02 * centre,
    }


def _histograms(feature: str, centre: float, place: Place, w1: Sequence[float]) -> dict[str, Any]:
    levels = [float(level) * centre / 2.5 for level in re.findall(r"normal\(([\d.]+)", place.name)]
    levels = levels or [centre * {"expert": 1.6, "best": 1.6, "worst": 0.5}.get(place.group, 1.0)]
    levels = [level + 0.08 * centre * (place.more.get("shift") or 0.0) for level in levels]
    edges = np.linspace(-centre / 6, 2.4 * centre, BINS + 1)
    found = {"edges": [edges.tolist()], "target": _bumps(edges, levels, centre / 6)}
    if w1:
        found["rollouts"] = _bumps(edges, [level - w1[0] for level in levels], centre / 5)
    if feature == "xy_velocity":
        sideways = np.linspace(-2, 2, BINS + 1)
        found["edges"].append(sideways.tolist())
        found |= {key: np.outer(found[key], _bumps(sideways, [0], 0.4)).tolist() for key in ("target", "rollouts")}
    return found


def _bumps(edges: NDArray[np.float64], means: Sequence[float], std: float) -> list[float]:
    centres = (edges[1:] + edges[:-1]) / 2
    weights = sum(np.exp(-0.5 * ((centres - mean) / std) ** 2) for mean in means)
    shares: list[float] = (weights / np.sum(weights)).tolist()
    return shares


def held_out() -> list[Place]:
    """Five best and five middle episodes."""
    goals = {"expert": 3500.0, "medium": 1500.0}
    return [
        Place(f"{group} {i + 1}", group, {"target_return": goals[group] + 10 * i})
        for group in ("expert", "medium")
        for i in range(5)
    ]


def synthetic() -> list[Place]:
    """Six targets, listed and shuffled."""
    names = ["normal(2.5,1)", "normal(1.5,1)", "normal(3.5,1)", "normal(2.5,0.5)"]
    names += ["0.5*normal(3.5,1)+0.5*normal(1.5,1)", "0.5*normal(3.5,0.5)+0.5*normal(1.5,0.5)"]
    return [Place(name, "synthetic", {"ordering": order}) for order in ("listed", "shuffled") for name in names]


def shifted() -> list[Place]:
    """Held-out targets, each in seven places."""
    return [Place(f"{name} {s:+d}", group, {"shift": float(s)}) for name, group, _ in held_out() for s in range(-3, 4)]


def unseen() -> list[Place]:
    """Targets of himatch's own suite, three of each kind."""
    texts = {
        "uniform": "uniform(1,2)",
        "three modes": "0.3*normal(1,0.1)+0.3*normal(2,0.1)+0.4*normal(3,0.1)",
        "narrow": "normal(2,0.1)",
        "in order": "normal(1,0.1) for 500 then normal(2,0.1)",
    }
    return [Place(f"{text}{' ' * i}", kind, {"exact": True}) for kind, text in texts.items() for i in range(3)]


def every_suite(
    tasks: Sequence[str] = ("halfcheetah", "hopper"),
    methods: Sequence[str] = ("Categorical DT", "DT", "BC (no-context)"),
) -> list[JobResult]:
    """Results of all suites."""
    flips = [Place(f"{kind} {i + 1}", "uni-modal", {}) for kind in ("run", "backflip") for i in range(5)]
    flips += [Place(f"patch(run {i + 1}, backflip {i + 1}, 500)", "bi-modal", {}) for i in range(10)]
    velocities = [Place(f"{v} {i + 1}", v, {}) for v in ("0.5", "1.5", "2.5") for i in range(3)]
    results = []
    for task in tasks:
        for method in methods:
            results += [
                job("xvel", task, method, "x_velocity", held_out()),
                job("reward", task, method, "reward", held_out()),
                job("synthetic", task, method, "x_velocity", synthetic()),
            ]
        for method in methods[:2]:
            results += [job("shift", task, method, feature, shifted()) for feature in ("x_velocity", "reward")]
            results.append(job("return", task, method, "reward", held_out()))
        results.append(
            job("synthetic", task, methods[0], "x_velocity", synthetic(), conditioning="planned", quality=0.05)
        )
        results += [
            job("unseen", task, methods[0], "x_velocity", unseen(), conditioning=how)
            for how in ("nominal", "rehearsed")
        ]
        for method in ("BDT (m=16, N=20)", "BDT (m=16, N=20, public)", "DT-AE (joint, m=16)", "DT-E2E (m=4)"):
            results += [job("imitation", task, method, feature, held_out()) for feature in ("x_velocity", "reward")]
        groups = [Place(g, g, {}) for g in ("best", "middle", "worst", "all")]
        results += [job("data", task, "dataset", feature, groups, seeds=()) for feature in ("x_velocity", "reward")]
    for method in methods[:2]:
        results += [
            job("cheetah-vel", "cheetah-vel", method, "x_velocity", velocities),
            job("zvel", "halfcheetah", method, "z_velocity", flips),
            job("ant-xy", "ant", method, "xy_velocity", held_out()),
        ]
    return results
