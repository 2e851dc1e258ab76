"""Aggregators: the statistic of the rest of a trajectory, at every step."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import Additive, Aggregator, Stretchwise, Tasked
from himatch.statistics.aggregators.best_task import BestTask
from himatch.statistics.aggregators.counts import Counts
from himatch.statistics.aggregators.discounted_sum import DiscountedSum
from himatch.statistics.aggregators.final_value import FinalValue
from himatch.statistics.aggregators.histogram import Histogram
from himatch.statistics.aggregators.inferred_task import HighestRankedTask, LikeliestTask
from himatch.statistics.aggregators.moments import Moments
from himatch.statistics.aggregators.timed_sum import TimedSum
from himatch.statistics.aggregators.timed_value import TimedValue
from himatch.statistics.aggregators.window import Window

__all__ = [
    "AGGREGATORS",
    "Additive",
    "Aggregator",
    "BestTask",
    "Counts",
    "DiscountedSum",
    "FinalValue",
    "HighestRankedTask",
    "Histogram",
    "LikeliestTask",
    "Moments",
    "Stretchwise",
    "Tasked",
    "TimedSum",
    "TimedValue",
    "Window",
    "aggregator_from_spec",
    "aggregator_spec",
]

AGGREGATORS: dict[str, type[Any]] = {
    cls.kind: cls
    for cls in (
        *(BestTask, Counts, DiscountedSum, FinalValue, HighestRankedTask, Histogram, LikeliestTask, Moments, TimedSum),
        *(TimedValue, Window),
    )
}
"""Every fixed aggregator by the name it is stored under."""


def aggregator_spec(aggregator: Aggregator) -> dict[str, Any]:
    """Plain JSON values that :func:`aggregator_from_spec` turns back into the aggregator."""
    return {"kind": aggregator.kind, **asdict(aggregator)}  # type: ignore[call-overload]


def aggregator_from_spec(spec: dict[str, Any]) -> Aggregator:
    """The aggregator that a checkpoint describes."""
    fields = dict(spec)
    kind = fields.pop("kind", None)
    if kind not in AGGREGATORS:
        raise HimatchError(f"unknown aggregator {kind!r}; known are {', '.join(AGGREGATORS)}")
    try:
        made: Aggregator = AGGREGATORS[kind](**fields)
    except TypeError as reason:
        raise HimatchError(f"the description of aggregator {kind!r} does not fit it ({reason})") from None
    return made
