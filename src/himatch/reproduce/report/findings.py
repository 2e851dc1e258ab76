"""What a claim came to: the numbers that decide it, the verdict, and who claims it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from himatch.reproduce.report.differences import Verdict
from himatch.reproduce.report.robustness import Robustness
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult

Source = Literal["paper", "himatch"]


class Side(NamedTuple):
    """One of the numbers compared: whose it is, and the number with its interval."""

    name: str
    figure: str


@dataclass(frozen=True)
class Finding:
    """A claim, the numbers that decide it, and the verdict; ``remark`` qualifies it or says what is missing."""

    claim: str
    verdict: Verdict
    ours: Side | None = None
    other: Side | None = None
    remark: str = ""
    difference: str = ""
    """Ours less the other's: of rows that were run, target by target, with an interval where they share targets."""
    source: Source = "himatch"
    """Who claims it."""
    robustness: Robustness | None = None
    """How much of it is one target's doing; claims that compare no averages over targets have none."""
    table: str = ""
    """The label of the table that it is about, where a report judged it."""
    results: tuple[JobResult, ...] = field(default=(), compare=False, repr=False)
    """Those that were asked, where all rows asked for are there."""

    def __str__(self) -> str:
        return f"{self.verdict} ({self.remark})" if self.remark else self.verdict


class Judged(Protocol):
    """Whatever is claimed, and can be put to tables."""

    @property
    def text(self) -> str:
        """The claim in words."""

    @property
    def source(self) -> Source:
        """Who claims it."""

    @property
    def table(self) -> str:
        """The label of the table that it is about."""

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""


def counted(findings: Iterable[Finding]) -> str:
    """``5 hold, 2 are too close to call, 3 do not hold, 4 not run``."""
    counts = Counter(finding.verdict for finding in findings)
    words: Mapping[Verdict, str] = {"holds": "hold", "too close to call": "are too close to call"}
    words = {**words, "does not hold": "do not hold", "not run": "not run"}
    return ", ".join(f"{counts[verdict]} {word}" for verdict, word in words.items() if counts[verdict])


def headline(findings: Iterable[Finding]) -> str:
    """``The paper's claims: 5 hold, 3 do not hold. himatch's claims: 4 hold.``."""
    return " ".join(f"{name}: {counted(claims)}." for name, claims in by_source(findings))


def robust_rows(findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """What leaving one target out does to each claim that it can do something to."""
    known = [(found, found.robustness) for found in findings if found.robustness is not None]
    return [
        (f.claim, f.difference, robust.span, robust.mover, robust.direction, robust.without_stumbling)
        for f, robust in known
    ]


SOURCES: Mapping[Source, str] = {"paper": "The paper's claims", "himatch": "himatch's claims"}


def by_source(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings under whose claims they are, the paper's first."""
    known = list(findings)
    return [(name, [found for found in known if found.source == source]) for source, name in SOURCES.items()]
