"""What methods are held against: W1 of the episode mixture, or the returns of the held-out episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from himatch.divergences import Summary
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.suite import TableColumn, TableLayout

MIXTURE, HELD_OUT = "Episode mixture", "Held-out"


def reference_name(layout: TableLayout) -> str:
    """What the row of the reference is called."""
    return HELD_OUT if layout.measure == "return" else MIXTURE


def reference(jobs: Mapping[str, JobResult], column: TableColumn, layout: TableLayout) -> Summary | None:
    """What results by task say about their targets themselves; nothing where they lack a part of the column."""
    parts = []
    for task, group in column.parts:
        targets = [target for target in jobs[task].targets if target.belongs_to(group)] if task in jobs else []
        values = reference_values(targets, layout)
        if not values:
            return None
        parts.append(Summary(float(np.mean(values)), float(np.std(values)), count=len(values)))
    if not column.is_average:
        return parts[0]
    return Summary(float(np.mean([part.mean for part in parts])), count=sum(part.count for part in parts))


def reference_values(targets: Sequence[TargetScore], layout: TableLayout) -> list[float]:
    """The number of each target that has one."""
    known = [target.target_return if layout.measure == "return" else target.reference for target in targets]
    return [value for value in known if value is not None]
