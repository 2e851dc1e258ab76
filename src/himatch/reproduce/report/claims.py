"""What is claimed of the methods, by the paper and by himatch, and what the results say to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from himatch.reproduce.report.claimed import budget_of
from himatch.reproduce.report.findings import Finding, Judged
from himatch.reproduce.report.own_claims import OWN, elsewhere
from himatch.reproduce.report.paper_claims import NOT_JUDGED, PAPERS
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.report.verdicts import OF_THOSE_RUN

READING = (
    "Claims compare mean W₁ (lower is better), averaged over tasks: the numbers of the tables, with 95 % bootstrap "
    "intervals over seeds. What decides is the difference of two rows target by target, with a 95 % interval for which "
    "the same targets are resampled in both rows (shifted ones by episode, those of cheetah-vel within each velocity), "
    "and the seeds of each by themselves. A claim holds where the order is right and that interval leaves out zero, "
    "does not hold where the order is wrong and it does, and is too close to call where zero is in it; between numbers "
    "that share no targets, the paper's figures and the episode mixture among them, where intervals overlap. Against "
    "several rows, one that was run whole and is not higher is enough to decide. Two rows are level where their "
    "difference, and its interval, is smaller than the part named of the other's mean. A trend in m is the largest "
    "code less the smallest; it is clear where all sizes are in order and the interval leaves out zero. Rollouts "
    "follow a shift where the slope of their mean on it is 1; only targets count of which at most 1 % lies outside the "
    "training range. Returns are in points of D4RL's score. A claim about a success rate holds where the interval over "
    "seeds lies at or above the number named. Nothing is said about other data. A claim that names no budget is about "
    "fast, where that was run, and one that names no policy about the paper's: its head and loss, all else of the "
    "budget. Codes are himatch's look-ahead ones; the paper's see other states (docs/deviations.md). "
    "Sentences of the paper on which no verdict is given: "
    f"{'; '.join(f'“{said}” ({why})' for said, why in NOT_JUDGED.items())}."
)

CLAIMS: tuple[Judged, ...] = (*PAPERS, *OWN)


def judge_claims(tables: Sequence[ResultTable]) -> list[Finding]:
    """Every claim with its verdict."""
    budget = budget_of(tables)
    return [_judged(claim, tables, budget) for claim in (*CLAIMS, *elsewhere(tables))]


def _judged(claim: Judged, tables: Sequence[ResultTable], budget: str) -> Finding:
    """The verdict, with the results that it was asked of."""
    asked = {table.label: replace(table, asked=[]) for table in tables}
    found = claim.judge(asked, budget)
    rows = [row for table in asked.values() for row in table.asked]
    whole = [row for row in rows if row is not None]
    decided = len(whole) == len(rows) and OF_THOSE_RUN not in found.remark
    results = tuple(job for row in whole for job in row.jobs.values()) if decided else ()
    return replace(found, table=claim.table, results=results)
