"""A dataset in a few words, for a prompt and for a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from himatch.data.dataset import TrajectoryDataset

MOST_NAMES = 12


def in_words(dataset: TrajectoryDataset) -> str:
    """One line."""
    parts = [f"{len(dataset)} episodes", f"{dataset.steps} steps", f"task {dataset.task.name!r}"]
    if dataset.has_rewards and len(dataset):
        parts.append(f"returns {dataset.returns.min():.0f} to {dataset.returns.max():.0f}")
    if dataset.rate is not None:
        parts.append(f"{dataset.rate:g} Hz")
    return f"TrajectoryDataset({', '.join(parts)}, source {dataset.source!r})"


def as_html(dataset: TrajectoryDataset) -> str:
    """A small table."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in _facts(dataset).items()
    )
    return f"<table><caption><b>TrajectoryDataset</b></caption>{rows}</table>"


def _facts(dataset: TrajectoryDataset) -> dict[str, str]:
    facts = {"source": dataset.name, "task": dataset.task.name}
    if dataset.env_id is not None:
        facts["environment"] = dataset.env_id
    facts["episodes"] = f"{len(dataset):,}"
    facts["steps"] = f"{dataset.steps:,}"
    if len(dataset):
        facts["lengths"] = f"{dataset.lengths.min():,} to {dataset.lengths.max():,}"
    facts["observations"] = _columns(dataset, dataset.observation_names, dataset.observation_width)
    facts["actions"] = _columns(dataset, dataset.action_names, dataset.action_width)
    if dataset.rate is not None:
        facts["control rate"] = f"{dataset.rate:g} Hz"
    if not dataset.has_rewards:
        facts["returns"] = "no rewards"
    elif len(dataset):
        facts["returns"] = f"{dataset.returns.min():,.1f} to {dataset.returns.max():,.1f}"
    labels = sorted({label for label in dataset.labels if label is not None})
    if labels:
        facts["labels"] = _some(labels)
    return facts


def _columns(dataset: TrajectoryDataset, names: tuple[str, ...], width: int) -> str:
    measured = [f"{name} [{dataset.units[name]}]" if name in dataset.units else name for name in names]
    return f"{width} ({_some(measured)})" if measured else str(width)


def _some(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
