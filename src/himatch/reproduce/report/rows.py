"""Which results make up a row: those of one method, policy, conditioning, budget and training, read at one state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from himatch.errors import note
from himatch.reproduce.budgets import EARLIER_STEPS, usual_steps
from himatch.reproduce.policies import POLICIES
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification, qualified
from himatch.reproduce.suite import TableLayout
from himatch.reproduce.unseen import REPORTED_SEED
from himatch.rollout import CONDITIONINGS

_PREFERRED = ("fast", "paper", "cpu", "smoke")


@dataclass(frozen=True)
class RowKey:
    """What tells rows apart."""

    method: Specification
    conditioning: str
    budget: str
    steps: int | None = None
    """Training steps, where they are not the usual ones of the budget in its day."""
    policy: str = "paper"
    """Whose policy it is, as :func:`policy_of` says."""
    recorded_at: str = "t"
    """The state at which features of rollouts were read."""
    target_seed: int | None = None
    """Of targets that were drawn, where it is not the one that is reported."""


def row_key(method: Specification, result: JobResult) -> RowKey:
    """The row that a result of a method belongs to."""
    training = result.provenance.get("training") or {}
    steps, usual = training.get("steps"), usual_steps(result.budget, method.name)
    if result.policy is None:
        usual = EARLIER_STEPS.get(result.budget, usual)
    unusual = None if steps is None or usual is None or steps == usual else int(steps)
    recorded = str(result.provenance.get("recorded_at", "t"))
    seed = result.provenance.get("target_seed")
    others = None if seed in (None, REPORTED_SEED) else int(str(seed))
    return RowKey(method, result.conditioning, result.budget, unusual, policy_of(result), recorded, others)


def policy_of(result: JobResult) -> str:
    """``paper`` or ``himatch``; of a stochastic network from before results recorded that, its head."""
    head = (result.provenance.get("training") or {}).get("head") or "tanh"
    return result.policy or ("paper" if head == "tanh" else head)


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
    keyed = [(row_key(result.method, result), result) for result in results if result.method is not None]
    rows: dict[RowKey, dict[str, JobResult]] = {key: {} for key, _ in keyed}
    read_otherwise = len({key.recorded_at for key in rows}) > 1
    names: dict[RowKey, str] = {}
    for key in rows:
        only_papers = all(other.policy == "paper" for other in rows if other.method == key.method)
        policy, budget = None if only_papers else key.policy, key.budget if several else None
        name = qualified(layout.row_name(key.method), policy, key.conditioning, budget, key.steps)
        read = f", read at s_{key.recorded_at}" if read_otherwise and key.recorded_at != "t" else ""
        drawn = "" if key.target_seed is None else f", targets of seed {key.target_seed}"
        names[key] = f"{name}{read}{drawn}"
    for key, result in keyed:
        if result.task in rows[key]:
            note(f"{result.suite}: {names[key]} on {result.task} was found twice; the later is shown")
        rows[key][result.task] = result
    papers = layout.paper.rows
    for method in dict.fromkeys([*papers, *(key.method for key in rows)]):
        keys = sorted((key for key in rows if key.method == method), key=_place)
        if method in papers and not any(key.conditioning == "nominal" for key in keys):
            yield layout.row_name(method), method, None, {}
        yield from ((names[key], method, key, rows[key]) for key in keys)


def _place(key: RowKey) -> tuple[int, str, str, int, int, str, str, int]:
    known = key.conditioning in CONDITIONINGS
    order = CONDITIONINGS.index(key.conditioning) if known else len(CONDITIONINGS)
    policies: tuple[str, ...] = tuple(POLICIES)
    whose = policies.index(key.policy) if key.policy in policies else len(policies)
    drawn = -1 if key.target_seed is None else key.target_seed
    return order, key.conditioning, key.budget, key.steps or 0, whose, key.policy, key.recorded_at, drawn
