"""Which results make up a row: those of one method, conditioning, budget, number of training steps and head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from himatch.errors import note
from himatch.reproduce.report.methods import canonical
from himatch.reproduce.report.paper import PaperTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.suites import usual_steps
from himatch.rollout import CONDITIONINGS

HELD_OUT = "Held-out"
_PREFERRED = ("fast", "paper", "smoke")


@dataclass(frozen=True)
class Run:
    """What tells rows apart; ``method`` is the canonical name."""

    method: str
    conditioning: str
    budget: str
    steps: int | None = None
    """Training steps, where they are not the budget's usual ones."""
    by_chance: bool = False
    """Whether the policy acts by chance, with a Gaussian head."""


def run_of(result: JobResult) -> Run:
    """The run that a result belongs to."""
    training = result.provenance.get("training") or {}
    steps = training.get("steps")
    method = (result.provenance.get("method") or {}).get("name")
    usual = None if method is None else usual_steps(result.budget, method)
    unusual = None if steps is None or usual is None or steps == usual else int(steps)
    return Run(
        canonical(result.method), result.conditioning, result.budget, unusual, training.get("head") == "gaussian"
    )


def main_budget(budgets: Iterable[str]) -> str:
    """The budget that a report is about where nothing names one: ``fast``, if it was run."""
    known = set(budgets)
    return next((name for name in _PREFERRED if name in known), min(known, default=""))


def gather_rows(
    results: Sequence[JobResult], paper: PaperTable
) -> Iterator[tuple[str, Run | None, Mapping[str, JobResult]]]:
    """Name, run and results by task of each row: the paper's in its order, run or not, each with its variants."""
    spelled = {canonical(name): name for name in paper.methods if name != HELD_OUT}
    budgets = sorted({result.budget for result in results})
    rows: dict[Run, dict[str, JobResult]] = {}
    names: dict[Run, str] = {}
    for result in results:
        run = run_of(result)
        names.setdefault(run, _name(spelled.get(run.method, result.method), run, budgets))
        jobs = rows.setdefault(run, {})
        if result.task in jobs:
            note(f"{result.suite}: {names[run]} on {result.task} was found twice; the later is shown")
        jobs[result.task] = result
    for method in dict.fromkeys([*spelled, *(run.method for run in rows)]):
        runs = sorted((run for run in rows if run.method == method), key=_place)
        if method in spelled and not any(run.conditioning == "nominal" for run in runs):
            yield spelled[method], None, {}
        yield from ((names[run], run, rows[run]) for run in runs)


def _name(method: str, run: Run, budgets: Sequence[str]) -> str:
    name = method if run.conditioning == "nominal" else f"{method}, {run.conditioning}"
    name += f", {run.budget}" if len(budgets) > 1 else ""
    name += "" if run.steps is None else f", {run.steps:,} steps"
    return f"{name}, by chance" if run.by_chance else name


def _place(run: Run) -> tuple[int, str, str, int, bool]:
    known = run.conditioning in CONDITIONINGS
    order = CONDITIONINGS.index(run.conditioning) if known else len(CONDITIONINGS)
    return order, run.conditioning, run.budget, run.steps or 0, run.by_chance
