"""Which results make up a row: those of one method, conditioning, budget, number of training steps and head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from himatch.errors import note
from himatch.reproduce.budgets import usual_steps
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification, qualified
from himatch.reproduce.suite import TableLayout
from himatch.rollout import CONDITIONINGS

_PREFERRED = ("fast", "paper", "smoke")


@dataclass(frozen=True)
class RowKey:
    """What tells rows apart."""

    method: Specification
    conditioning: str
    budget: str
    steps: int | None = None
    """Training steps, where they are not the budget's usual ones."""
    sampled: bool = False
    """Whether the policy is stochastic."""
    members: int = 1
    """Networks of a policy."""


def row_key(method: Specification, result: JobResult) -> RowKey:
    """The row that a result of a method belongs to."""
    training = result.provenance.get("training") or {}
    steps, usual = training.get("steps"), usual_steps(result.budget, method.name)
    unusual = None if steps is None or usual is None or steps == usual else int(steps)
    sampled = (training.get("head") or "tanh") != "tanh"
    return RowKey(method, result.conditioning, result.budget, unusual, sampled, training.get("members", 1))


def main_budget(budgets: Iterable[str]) -> str:
    """The budget that a report is about where nothing names one: ``fast``, if it was run."""
    known = set(budgets)
    return next((name for name in _PREFERRED if name in known), min(known, default=""))


def gather_rows(
    results: Sequence[JobResult], layout: TableLayout
) -> Iterator[tuple[str, Specification, RowKey | None, Mapping[str, JobResult]]]:
    """Name, method, key and results by task of each row.

    The paper's rows come first, in its order, run or not; every method with all its rows.
    """
    several = len({result.budget for result in results}) > 1
    rows: dict[RowKey, dict[str, JobResult]] = {}
    names: dict[RowKey, str] = {}
    for result in results:
        if result.method is None:
            continue
        key = row_key(result.method, result)
        budget = key.budget if several else None
        name = layout.row_name(key.method)
        names[key] = qualified(name, key.conditioning, budget, key.steps, key.sampled, key.members)
        jobs = rows.setdefault(key, {})
        if result.task in jobs:
            note(f"{result.suite}: {names[key]} on {result.task} was found twice; the later is shown")
        jobs[result.task] = result
    papers = layout.paper.rows
    for method in dict.fromkeys([*papers, *(key.method for key in rows)]):
        keys = sorted((key for key in rows if key.method == method), key=_place)
        if method in papers and not any(key.conditioning == "nominal" for key in keys):
            yield layout.row_name(method), method, None, {}
        yield from ((names[key], method, key, rows[key]) for key in keys)


def _place(key: RowKey) -> tuple[int, str, str, int, bool, int]:
    known = key.conditioning in CONDITIONINGS
    order = CONDITIONINGS.index(key.conditioning) if known else len(CONDITIONINGS)
    return order, key.conditioning, key.budget, key.steps or 0, key.sampled, key.members
