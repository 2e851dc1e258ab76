"""Discrete actions of a source: which there are, and their numbers as one-hot rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import find_not_finite
from himatch.data.packed import BLOCK, Allocate, Packed
from himatch.data.problems import LEAVE_OUT, Problems
from himatch.data.wording import listed
from himatch.errors import DataError, TaskError, note
from himatch.tasks import Discrete, Task


def find_discrete(parts: Sequence[Packed], task: Task | None, where: Sequence[str]) -> Discrete | None:
    """The discrete actions of joined sources: the task's, those that a source states, or as many as the data shows.

    ``None`` where they are continuous.
    """
    stated = {} if task is None or task.discrete is None else {f"task {task.name}": task.discrete}
    stated |= {
        name: part.facts.discrete
        for name, part in zip(where, parts, strict=True)
        if isinstance(part.facts.discrete, Discrete)
    }
    if len(set(stated.values())) > 1:
        raise DataError(f"actions differ: {'; '.join(f'those of {name} are {d}' for name, d in stated.items())}")
    found = next(iter(stated.values()), None)
    shown = [part for part in parts if part.facts.discrete is not None]
    if task is not None and task.discrete is None and shown and _continuous(task, found):
        raise DataError(
            f"{where[parts.index(shown[0])]}: the action is discrete, and that of task {task.name} is continuous; is "
            "it the right task? (one of discrete actions is registered with discrete=N)"
        )
    if found is not None or not shown:
        return found
    return _counted(parts, "+".join(where))


def _continuous(task: Task, found: Discrete | None) -> bool:
    """Whether a task's actions are no numbers of choices."""
    widths = (None, 1) if found is None else (None, 1, found.count)
    return task.action_low is not None or task.action_width not in widths


def _counted(parts: Sequence[Packed], where: str) -> Discrete:
    """As many as the greatest number says; what is wrong with others is found when they become rows."""
    greatest = 0.0
    for part in parts:
        for start in range(0, len(part.actions), BLOCK):
            block = part.actions[start : start + BLOCK]
            greatest = max(greatest, block[np.isfinite(block)].max(initial=0.0))
    try:
        found = Discrete(int(greatest) + 1)
    except TaskError:
        raise DataError(
            f"{where}: the greatest number of an action is {greatest:g}; say how many actions there are "
            "(--columns.discrete N, columns={'discrete': N}, or register_task(..., discrete=N))"
        ) from None
    note(
        f"{where}: the actions are taken for {found}, as many as the data shows; where there are more, say so "
        "(--columns.discrete N, columns={'discrete': N})"
    )
    return found


def as_rows(packed: Packed, discrete: Discrete, where: str, problems: Problems, allocate: Allocate) -> Packed:
    """The set with one-hot rows for its numbers of actions; what are no such numbers become problems.

    Rows that are one-hot already stay.
    """
    facts, width = replace(packed.facts, continuous=False, discrete=discrete), packed.actions.shape[1]
    if width not in (1, discrete.count):
        raise DataError(
            f"{where}: actions are {discrete}, so a step has one number, and here it has {width}; name the column that "
            "holds it (--columns.actions)"
        )
    sound = np.ones(len(packed.lengths), bool)
    sound[list(problems.episodes)] = False  # what their cells hold means nothing
    counted, wrong = np.repeat(sound, packed.lengths), np.zeros(len(packed.actions), bool)
    if width == discrete.count:
        for start in range(0, len(wrong), BLOCK):
            block = packed.actions[start : start + BLOCK]
            wrong[start : start + BLOCK] = ~(((block == 0) | (block == 1)).all(axis=1) & (block.sum(axis=1) == 1))
        _complain(packed, wrong & counted & np.isfinite(packed.actions).all(axis=1), discrete, problems)
        return replace(packed, facts=facts)
    numbers = packed.actions[:, 0].copy()  # the rows may lie in the same file
    wrong = ~discrete.known(numbers)
    find_not_finite(packed, problems, ("actions",))
    _complain(packed, wrong & counted & np.isfinite(numbers), discrete, problems)
    rows = allocate("actions", (len(numbers), discrete.count))
    numbers[wrong] = discrete.start
    for start in range(0, len(numbers), BLOCK):
        rows[start : start + BLOCK] = discrete.rows(numbers[start : start + BLOCK])
    columns = dict(packed.columns)
    if "actions" in columns:
        (name,) = columns["actions"]
        columns["actions"] = tuple(f"{name}={discrete.start + i}" for i in range(discrete.count))
    return replace(packed, actions=rows, columns=columns, facts=facts)


def _complain(packed: Packed, wrong: NDArray[np.bool_], discrete: Discrete, problems: Problems) -> None:
    """Actions that are none, by the episodes that they are in."""
    rows = np.flatnonzero(wrong)
    episodes = np.searchsorted(packed.starts, rows, side="right") - 1
    for episode, first, count in zip(*np.unique(episodes, return_index=True, return_counts=True), strict=True):
        problems.add(
            "choice",
            [int(episode)],
            lambda row=int(rows[first]): _wrong(packed, row, discrete),  # type: ignore[misc]
            f"clean the log or {LEAVE_OUT}",
            count=int(count),
        )


def _wrong(packed: Packed, row: int, discrete: Discrete) -> str:
    values = packed.actions[row]
    said = f"{values[0]:g}" if len(values) == 1 else f"[{', '.join(f'{x:g}' for x in values)}]"
    named = packed.columns.get("actions")
    column = f" (column {listed(named)})" if named and len(named) == 1 else ""
    return f"action {said}{column} in {packed.place(row)} is none of the actions, which are {discrete}"
