"""Which rows of a table are an episode, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.cells import TableContent
from himatch.data.problems import LEAVE_OUT, Problems
from himatch.data.table_files import StepTable
from himatch.errors import DataError

Rows = NDArray[np.int64]


def order_rows(
    episode: NDArray[Any], step: NDArray[Any] | None, content: TableContent, table: StepTable, problems: Problems
) -> dict[str, Rows]:
    """Row numbers of every episode by its name, in order of appearance; steps put them in order, where there are any.

    Rows that are there twice, with the same step and the same numbers, are left out but for one, and so are all rows
    that name no episode.
    """
    groups: dict[str, list[Rows]] = {}
    for run in _runs(_named(episode, table, problems), episode):
        name = str(episode[run[0]])
        if name in groups and step is None:
            problems.add(
                "return",
                [list(groups).index(name)],
                lambda name=name, run=run: (  # type: ignore[misc]
                    f"episode {name!r} comes back in {table.place(run[0])} after another one"
                ),
                "sort the table, give every episode its own name, or name a step column so that interleaved rows can "
                "be put in order",
            )
        groups.setdefault(name, []).append(run)
    rows_of = {name: np.concatenate(parts) for name, parts in groups.items()}
    if step is None:
        return rows_of
    wrong = [one.row for one in content.wrong]  # nothing is asked of the steps of an episode with wrong cells
    return {
        name: rows if np.isin(wrong, rows).any() else _by_step(rows, step, name, i, content, table, problems)
        for i, (name, rows) in enumerate(rows_of.items())
    }


def _runs(rows: Rows, episode: NDArray[Any]) -> list[Rows]:
    """The rows, cut where another episode begins."""
    names = episode[rows]
    return np.split(rows, np.flatnonzero(names[1:] != names[:-1]) + 1)


def _named(episode: NDArray[Any], table: StepTable, problems: Problems) -> Rows:
    """The rows that say which episode they belong to."""
    rows = np.arange(len(episode))
    blank = [run for run in _runs(rows, episode) if not str(episode[run[0]]).strip()]
    if not blank:
        return rows
    nameless = np.concatenate(blank)
    if len(nameless) == len(rows):
        raise DataError(
            f"{table.where}: no row says which episode it belongs to; fill its episode column in, or make the table "
            "one episode (--columns.episode '')"
        )
    problems.add(
        "nameless",
        [],
        lambda: f"the episode is missing in {table.place(int(nameless[0]))}",
        "fill it in, or have such rows left out (--drop-bad, drop_bad=True)",
        count=len(nameless),
    )
    return np.delete(rows, nameless)


def _by_step(
    rows: Rows, step: NDArray[Any], name: str, episode: int, content: TableContent, table: StepTable, problems: Problems
) -> Rows:
    missing = rows[~np.isfinite(step[rows])]
    if len(missing):
        problems.add(
            "step",
            [episode],
            lambda: f"episode {name!r} has no step in {table.place(missing[0])}",
            f"fill it in or {LEAVE_OUT}",
            count=len(missing),
        )
        return rows
    rows = rows[np.argsort(step[rows], kind="stable")]
    twice = np.flatnonzero(np.diff(step[rows]) == 0)
    if not len(twice):
        return rows
    first, second = rows[twice], rows[twice + 1]
    same = (content.words[first] == content.words[second]).all(axis=1)
    a, b = content.numbers[first], content.numbers[second]
    same &= ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    odd = np.flatnonzero(~same)
    if len(odd):
        problems.add(
            "same step",
            [episode],
            lambda: (
                f"episode {name!r} has the same step in {table.place(first[odd[0]])} and {table.place(second[odd[0]])}"
            ),
            "give every episode its own name and every row of it its own step, or " + LEAVE_OUT,
            count=len(odd),
        )
        return rows
    problems.add(
        "duplicate",
        [],
        lambda: (
            f"episode {name!r} has the same step in {table.place(first[0])} and {table.place(second[0])}, with the "
            "same numbers"
        ),
        "remove one of them, or have one left out (--drop-bad, drop_bad=True)",
        count=len(twice),
    )
    return np.delete(rows, twice + 1)
