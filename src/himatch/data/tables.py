"""Tables of logs (CSV, Parquet, data frames): one row a step, a column for each number a robot writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.cells import TableContent, moment, number
from himatch.data.columns import Columns, split_units
from himatch.data.episodes import pack_episodes
from himatch.data.facts import Facts
from himatch.data.packed import Allocate, Packed
from himatch.data.places import Places
from himatch.data.problems import LEAVE_OUT, Problems
from himatch.data.rates import holds_times, note_gaps, rate_of_steps
from himatch.data.row_order import Rows, order_rows
from himatch.data.table_files import DataFrame, StepTable, open_table
from himatch.data.wording import listed
from himatch.errors import DataError, note
from himatch.tasks import Task

DECIMAL_COMMA = re.compile(r"'\s*[+-]?\d+,\d+\s*'")
CLOCKS = ("time", "t", "timestamp", "tick")


def read_table(
    source: Path | DataFrame, task: Task | None, allocate: Allocate, columns: Mapping[str, Any] | None = None
) -> tuple[Packed, Problems]:
    """Read a CSV (``.csv``, ``.csv.gz``) or Parquet table of steps, or a data frame.

    What is wrong with some of its rows is handed back; the episodes that they belong to are there, but make no sense.
    """
    table = open_table(source)
    mapping = Columns.beside(source) if isinstance(source, Path) else Columns()
    mapping = mapping.changed(columns or {}, f"columns of {table.where}")
    steps = _read_steps(table, mapping)
    whole = np.full(len(steps.actions), source.stem if isinstance(source, Path) else "0")
    problems = Problems()
    rows_of = order_rows(steps.roles.get("episode", whole), steps.roles.get("step"), steps.content, table, problems)
    _find_wrong_cells(steps, rows_of, table, problems)
    episodes = list(_episodes(steps, rows_of, table, problems))
    names = [listed([repr(name)]) for name in rows_of]
    packed = pack_episodes(episodes, table.where, task, allocate, names)
    rate, timed = mapping.rate, steps.clock is not None
    if "step" in steps.roles:
        ordered = {name: rows for i, (name, rows) in enumerate(rows_of.items()) if i not in problems.episodes}
        note_gaps(steps.roles["step"], ordered, steps.step_unit, table.where)
        rate = rate_of_steps(steps.roles["step"], ordered, steps.step_unit, rate, table.where)
        timed |= holds_times(steps.roles["step"], steps.step_unit)
    for one in steps.content.flags:
        note(
            f"{table.where}: column {listed([steps.all_names[one.column or 0]])} holds {listed([one.cell])} in "
            f"{table.place(one.row)} among numbers; it is read as 1 or 0"
        )
    called = {**steps.names, "observations": steps.names["observations"][: packed.observations.shape[1]]}
    known = {name for several in called.values() for name in several}
    units = {name: unit for name, unit in {**steps.units, **mapping.units}.items() if name in known}
    for name in known & mapping.units.keys():
        if steps.units.get(name, units[name]) != units[name]:
            note(
                f"{table.where}: {listed([name])} is in {steps.units[name]} by its header and in {units[name]} by "
                f"{mapping.path or 'columns'}; {units[name]} is kept"
            )
    order = np.concatenate(list(rows_of.values()))
    path = str(source) if isinstance(source, Path) else ""
    mapped_by = (mapping.path,) if mapping.path else ()
    return replace(
        packed,
        columns=called,
        facts=Facts(rate, units, mapped_by, steps.clock, timed, mapping.continuous, mapping.choices),
        places=Places(tuple(rows_of), order, ((0, path),), _said(steps, order)),
    ), problems


@dataclass(frozen=True)
class _Steps:
    """The rows of a table as they lie there; ``names`` are those of its columns of observations, actions, rewards."""

    observations: NDArray[np.float64]
    actions: NDArray[np.float64]
    roles: dict[str, NDArray[Any]]
    names: dict[str, tuple[str, ...]]
    all_names: list[str]
    units: dict[str, str]
    step_unit: str | None
    clock: str | None
    content: TableContent


def _read_steps(table: StepTable, mapping: Columns) -> _Steps:
    raw = table.read_names()
    names, units = split_units(raw)
    found = mapping.find(names, raw, table.where)
    vectors = [*found["observations"], *found["actions"]]
    numeric = {role: reader for role, reader in (("reward", number), ("step", moment)) if role in found}
    texts = [role for role in ("episode", "terminated", "label") if role in found]
    readers = {**dict.fromkeys(vectors, number), **{found[role][0]: reader for role, reader in numeric.items()}}
    content = table.read(raw, readers, [found[role][0] for role in texts])
    if content.numbers.size == 0:
        raise DataError(f"{table.where}: the table has no rows")
    place = {column: i for i, column in enumerate(readers)}
    roles: dict[str, NDArray[Any]] = dict(zip(texts, content.words.T, strict=True))
    roles |= {role: content.numbers[:, place[found[role][0]]] for role in numeric}
    arrays = {"observations": "observations", "actions": "actions", "reward": "rewards"}
    step_unit = None
    if "step" in found:
        (step,) = found["step"]
        step_unit = "ns" if step in content.times else mapping.units.get(names[step]) or units.get(names[step])
    return _Steps(
        content.numbers[:, : len(found["observations"])],
        content.numbers[:, len(found["observations"]) : len(vectors)],
        roles,
        {array: tuple(names[i] for i in found[what]) for what, array in arrays.items() if what in found},
        names,
        units,
        step_unit,
        _unused_clock(names, found) if mapping.step else None,
        content,
    )


def _unused_clock(names: list[str], found: Mapping[str, list[int]]) -> str | None:
    """A column that holds times, by its name, in a table whose steps no column orders."""
    used = {i for several in found.values() for i in several}
    clocks = [name for i, name in enumerate(names) if i not in used and name.lower() in CLOCKS]
    return clocks[0] if clocks and "step" not in found else None


def _said(steps: _Steps, order: Rows) -> dict[tuple[int, str], str]:
    """Words that stand for no finite number, by the step and the column that they stand in."""
    if not steps.content.said:
        return {}
    step_of = {int(row): step for step, row in enumerate(order)}
    said = steps.content.said.items()
    return {(step_of[row], steps.all_names[column]): word for (row, column), word in said if row in step_of}


def _find_wrong_cells(steps: _Steps, rows_of: Mapping[str, Rows], table: StepTable, problems: Problems) -> None:
    if not steps.content.wrong:
        return
    episode_of = np.full(len(steps.actions), -1, dtype=np.int64)
    for i, rows in enumerate(rows_of.values()):
        episode_of[rows] = i
    for one in steps.content.wrong:
        episode = [int(episode_of[one.row])]
        if episode[0] < 0:  # a row that is left out
            continue
        if one.column is None:
            problems.add(
                "width",
                episode,
                lambda one=one: (  # type: ignore[misc]
                    f"{table.place(one.row)} has {one.width} columns, the header has {len(steps.all_names)}"
                    f"{' (are there commas in decimals?)' * (one.width > len(steps.all_names))}"
                ),
                f"mend the row or {LEAVE_OUT}",
            )
        else:
            name = steps.all_names[one.column]
            problems.add(
                "text",
                episode,
                lambda one=one, name=name: (  # type: ignore[misc]
                    f"column {listed([name])} holds {listed([one.cell])} in {table.place(one.row)}, which is no number"
                    f"{' (write points in decimals)' * (DECIMAL_COMMA.fullmatch(one.cell) is not None)}"
                ),
                "mend the row, leave the column out, or the episode (--drop-bad, drop_bad=True)",
            )


def _episodes(
    steps: _Steps, rows_of: Mapping[str, Rows], table: StepTable, problems: Problems
) -> Iterator[dict[str, Any]]:
    """The episodes as dictionaries; of one in which something is wrong nothing more is asked."""
    for i, (name, rows) in enumerate(rows_of.items()):
        episode: dict[str, Any] = {"observations": steps.observations[rows], "actions": steps.actions[rows]}
        if "reward" in steps.roles:
            episode["rewards"] = steps.roles["reward"][rows]
        if "terminated" in steps.roles and i not in problems.episodes:
            ended = _flags(steps.roles["terminated"], rows, i, table, problems)
            if ended[:-1].any():
                inside = int(np.argmax(ended))
                problems.add(
                    "termination",
                    [i],
                    lambda name=name, inside=inside: (  # type: ignore[misc]
                        f"episode {listed([repr(name)])}: terminates at step {inside} and goes on"
                    ),
                    f"it is not one episode; cut it there or {LEAVE_OUT}",
                )
            else:
                episode["terminals"] = ended
        if "label" in steps.roles and i not in problems.episodes:
            episode["label"] = _label(steps.roles["label"], rows, name, i, table, problems)
        yield episode


def _label(
    words: NDArray[Any], rows: Rows, name: str, episode: int, table: StepTable, problems: Problems
) -> str | None:
    """The one label of an episode; blank cells say nothing."""
    given = list(dict.fromkeys(word for word in map(str, words[rows]) if word))
    if len(given) > 1:
        row = rows[np.argmax(words[rows] == given[1])]
        problems.add(
            "label",
            [episode],
            lambda: f"episode {name!r} is labelled {given[0]!r} and in {table.place(row)} {given[1]!r}",
            f"give each episode one label, name another column (--columns.label '': none), or {LEAVE_OUT}",
        )
    return given[0] if given else None


_MEANINGS = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), True),
    **dict.fromkeys(("", "0", "0.0", "false", "no"), False),
}


def _flags(words: NDArray[Any], rows: Rows, episode: int, table: StepTable, problems: Problems) -> NDArray[np.bool_]:
    """Whether each row is the last of an episode that terminated."""
    meant = [_MEANINGS.get(str(word).strip().lower()) for word in words[rows]]
    if None in meant:
        row = rows[meant.index(None)]
        problems.add(
            "flag",
            [episode],
            lambda: f"{str(words[row])!r} in the terminated column is neither true nor false ({table.place(row)})",
            f"write 1 or 0 there, or {LEAVE_OUT}",
            count=meant.count(None),
        )
    return np.array([bool(flag) for flag in meant], dtype=bool)
