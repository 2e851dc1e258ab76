"""Made-up results that claims are put to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from report_results import held_out, job, synthetic

from himatch.reproduce.report import Finding, build_tables, judge_claims
from himatch.reproduce.results import JobResult

TASKS = ("halfcheetah", "hopper", "walker2d")
METHODS = {"Categorical DT": 0.1, "DT": 0.2, "BC (no-context)": 0.9, "Meta-BC": 0.3, "FOCAL": 0.5}
XVEL = "xvel: CDT has the lowest average W₁ of CDT, DT, BC, Meta-BC and FOCAL"


def made(
    suite: str, task: str, method: str, w1: Sequence[float], feature: str = "x_velocity", **more: object
) -> JobResult:
    """A result whose targets all have these scores, one for each seed."""
    places = synthetic() if suite == "synthetic" else held_out()
    more = {"budget": "fast", "seeds": tuple(range(len(w1))), **more}
    result = job(suite, task, method, feature, places, **more)  # type: ignore[arg-type]
    return replace(result, targets=[replace(target, w1=list(w1)) for target in result.targets])


def xvel(tasks: Sequence[str] = TASKS, spread: float = 0.01, **changed: float) -> list[JobResult]:
    """All methods of the suite; ``changed`` are other means."""
    means = {**METHODS, **{name.replace("_", "-"): mean for name, mean in changed.items()}}
    return [
        made("xvel", task, method, [mean - spread, mean + spread, mean, mean])
        for method, mean in means.items()
        for task in tasks
    ]


def finding(results: Sequence[JobResult], claim: str) -> Finding:
    (found,) = [found for found in judge_claims(build_tables(results)) if found.claim.startswith(claim)]
    return found
