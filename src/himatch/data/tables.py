"""Tables of logs (CSV, Parquet, data frames): one row a step, a column for each number a robot writes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch.data.checks import Places, listed
from himatch.data.episodes import pack_episodes
from himatch.data.packed import Allocate, Packed
from himatch.data.table_files import DataFrame, StepTable, compressed, moment, number, open_table
from himatch.errors import DataError, note
from himatch.tasks import Task

SHARED = "columns.toml"
GAP = 1.5  # usual intervals, from which on rows are missing between two
IRREGULAR = 0.1  # part of the intervals that are gaps, from which on none of them says anything

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """Which column of a table holds what.

    ``observations`` and ``actions`` are names or patterns (``q_*``), comma-separated or a list: columns come in the
    order of the list, those of one pattern in the order of the table. ``reward``, ``terminated``, ``step`` and
    ``label`` are used where the table has them, must be there where somebody ``wrote`` their names, and are left out
    where the name is empty. An empty ``episode`` makes the whole table one.
    """

    episode: str = "episode"
    observations: str | tuple[str, ...] = "obs*"
    actions: str | tuple[str, ...] = "act*"
    reward: str = "reward"
    terminated: str = "terminated"
    step: str = "step"
    label: str = "label"
    wrote: frozenset[str] = frozenset()

    @classmethod
    def beside(cls, table: Path) -> Columns:
        """The mapping in a TOML file beside the table, or the defaults."""
        path = mapping_file(table)
        if not path.is_file():
            return cls()
        with reading(str(path)):
            settings = tomllib.loads(path.read_text())
        return cls().changed(settings, str(path))

    def changed(self, settings: Mapping[str, Any], where: str) -> Columns:
        """The mapping with some settings changed; unknown ones are refused by name."""
        known = {field.name for field in fields(self)} - {"wrote"}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise DataError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()
        }
        for key, value in values.items():
            several = key in ("observations", "actions")
            items = value if several and isinstance(value, tuple) else (value,)
            if not all(isinstance(item, str) for item in items):
                raise DataError(f"{where}: {key!r} must be a column name{' or a list of them' if several else ''}")
        return replace(self, **values, wrote=self.wrote | values.keys())

    def find(self, names: list[str], where: str) -> dict[str, list[int]]:
        """Positions of the columns that hold what, without those of the optional roles that are not there."""
        roles = ("episode", "reward", "terminated", "step", "label")
        found = {role: [i] for role in roles if (i := self._role(role, names, where)) is not None}
        taken = {i for (i,) in found.values()}
        for what in ("observations", "actions"):
            found[what] = [i for i in self._select(what, names, where) if i not in taken]
        if not found["observations"] or not found["actions"]:
            raise DataError(f"{where}: observations and actions need at least one number a step")
        both = [names[i] for i in found["observations"] if i in found["actions"]]
        if both:
            raise DataError(
                f"{where}: {listed(both)} is among the observations and among the actions, so that a policy would see "
                "the action that it has to predict; name it in one of them only"
            )
        twice = [names[i] for several in found.values() for i in several if names.count(names[i]) > 1]
        if twice:
            raise DataError(f"{where}: there are several columns {twice[0]!r}; give each a name of its own")
        return found

    def _role(self, role: str, names: list[str], where: str) -> int | None:
        name = getattr(self, role)
        if name and name in names:
            return names.index(name)
        if name and role == "episode":
            raise _no_column(
                f"{name!r} that says which episode a row belongs to", role, names, where, "'' makes a table one episode"
            )
        if name and role in self.wrote:
            raise _no_column(f"{name!r} for the {role}", role, names, where)
        return None

    def _select(self, what: str, names: list[str], where: str) -> list[int]:
        patterns = getattr(self, what)
        wanted = [p.strip() for p in patterns.split(",")] if isinstance(patterns, str) else list(patterns)
        selected: list[int] = []
        for pattern in wanted:
            matching = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
            if not matching:
                raise _no_column(f"matches {pattern!r} for the {what}", what, names, where)
            selected += matching
        return list(dict.fromkeys(selected))


def _no_column(which: str, role: str, names: list[str], where: str, more: str = "") -> DataError:
    return DataError(
        f"{where}: no column {which} (columns: {listed(names)}); name it with --columns.{role} "
        f"(columns={{{role!r}: ...}}) or in a TOML file beside the table{f'; {more}' if more else ''}"
    )


def mapping_file(table: Path) -> Path:
    """Where a file would lie that says which column of the table holds what: its own, or one for all of the folder."""
    own = (table.with_suffix("") if compressed(table) else table).with_suffix(".toml")
    return own if own.is_file() else table.with_name(SHARED)


def read_table(
    source: Path | DataFrame, task: Task | None, allocate: Allocate, columns: Mapping[str, Any] | None = None
) -> tuple[Packed, Places]:
    """Read a CSV (``.csv``, ``.csv.gz``) or Parquet table of steps, or a data frame."""
    table = open_table(source)
    mapping = Columns.beside(source) if isinstance(source, Path) else Columns()
    steps = _read_steps(table, mapping.changed(columns or {}, f"columns of {table.where}"))
    whole = np.full(len(steps.actions), source.stem if isinstance(source, Path) else "0")
    rows_of = _episode_rows(steps.roles.get("episode", whole), steps.roles.get("step"), table)
    if "step" in steps.roles:
        _note_gaps(steps.roles["step"], rows_of, table.where)
    episodes = []
    for name, rows in rows_of.items():
        episode: dict[str, Any] = {"observations": steps.observations[rows], "actions": steps.actions[rows]}
        if "reward" in steps.roles:
            episode["rewards"] = steps.roles["reward"][rows]
        if "terminated" in steps.roles:
            episode["terminals"] = _flags(steps.roles["terminated"][rows], table.where)
        if "label" in steps.roles:
            episode["label"] = _label(steps.roles["label"], rows, name, table)
        episodes.append(episode)
    packed = pack_episodes(episodes, table.where, task, allocate, [listed([repr(name)]) for name in rows_of])
    names = {**steps.names, "observations": steps.names["observations"][: packed.observations.shape[1]]}
    order = np.concatenate(list(rows_of.values()))
    return replace(packed, columns=names), Places(list(rows_of), lambda row: table.place(int(order[row])))


@dataclass(frozen=True)
class _Steps:
    """The rows of a table as they lie there; ``names`` are those of its columns of observations, actions, rewards."""

    observations: NDArray[np.float64]
    actions: NDArray[np.float64]
    roles: dict[str, NDArray[Any]]
    names: dict[str, tuple[str, ...]]


def _read_steps(table: StepTable, mapping: Columns) -> _Steps:
    names = table.read_names()
    found = mapping.find(names, table.where)
    vectors = [*found["observations"], *found["actions"]]
    numeric = {role: reader for role, reader in (("reward", number), ("step", moment)) if role in found}
    texts = [role for role in ("episode", "terminated", "label") if role in found]
    readers = {**dict.fromkeys(vectors, number), **{found[role][0]: reader for role, reader in numeric.items()}}
    numbers, words = table.read(names, readers, [found[role][0] for role in texts])
    if numbers.size == 0:
        raise DataError(f"{table.where}: the table has no rows")
    place = {column: i for i, column in enumerate(readers)}
    roles: dict[str, NDArray[Any]] = dict(zip(texts, words.T, strict=True))
    roles |= {role: numbers[:, place[found[role][0]]] for role in numeric}
    arrays = {"observations": "observations", "actions": "actions", "reward": "rewards"}
    return _Steps(
        numbers[:, : len(found["observations"])],
        numbers[:, len(found["observations"]) : len(vectors)],
        roles,
        {array: tuple(names[i] for i in found[what]) for what, array in arrays.items() if what in found},
    )


def _episode_rows(episode: NDArray[Any], step: NDArray[Any] | None, table: StepTable) -> dict[str, Rows]:
    """Row numbers of every episode by its name, in order of appearance."""
    changes = np.flatnonzero(episode[1:] != episode[:-1]) + 1
    groups: dict[str, list[Rows]] = {}
    for run in np.split(np.arange(len(episode)), changes):
        name = str(episode[run[0]])
        if name in groups and step is None:
            raise DataError(
                f"{table.where}: episode {name!r} comes back in {table.place(run[0])} after another one; sort the "
                "table, give every episode its own name, or name a step column so that interleaved rows can be put in "
                "order"
            )
        groups.setdefault(name, []).append(run)
    return {name: _ordered(np.concatenate(parts), step, name, table) for name, parts in groups.items()}


def _ordered(rows: Rows, step: NDArray[Any] | None, name: str, table: StepTable) -> Rows:
    if step is None:
        return rows
    missing = rows[~np.isfinite(step[rows])]
    if len(missing):
        raise DataError(f"{table.where}: episode {name!r} has no step in {table.place(missing[0])}; fill it in")
    rows = rows[np.argsort(step[rows], kind="stable")]
    twice = np.flatnonzero(np.diff(step[rows]) == 0)
    if len(twice):
        first, second = (table.place(row) for row in rows[twice[0] : twice[0] + 2])
        raise DataError(
            f"{table.where}: episode {name!r} has the same step in {first} and {second}; give every episode its own "
            "name and every row of it its own step"
        )
    return rows


def _note_gaps(step: NDArray[Any], rows_of: Mapping[str, Rows], where: str) -> None:
    """Warn of rows that are missing inside episodes, where the steps are regular otherwise."""
    intervals = {name: np.diff(step[rows]) for name, rows in rows_of.items()}
    everything = np.concatenate(list(intervals.values()))
    if len(everything) == 0:
        return
    usual = np.median(everything)
    torn = [name for name, found in intervals.items() if (found > GAP * usual).any()]
    if torn and (everything > GAP * usual).mean() <= IRREGULAR:
        note(
            f"{where}: rows are missing in {len(torn)} of {len(rows_of)} episodes ({listed(map(repr, torn))}): their "
            f"step column has gaps, the longest {everything.max() / usual:.3g} times the usual interval; steps are "
            "taken as equally long, so cut episodes there or fill the rows in"
        )


def _label(words: NDArray[Any], rows: Rows, name: str, table: StepTable) -> str | None:
    """The one label of an episode; blank cells say nothing."""
    given = list(dict.fromkeys(word for word in map(str, words[rows]) if word))
    if len(given) > 1:
        row = rows[np.argmax(words[rows] == given[1])]
        raise DataError(
            f"{table.where}: episode {name!r} is labelled {given[0]!r} and in {table.place(row)} {given[1]!r}; give "
            "each episode one label, or name another column (--columns.label '': none)"
        )
    return given[0] if given else None


def _flags(words: NDArray[Any], where: str) -> NDArray[np.bool_]:
    meanings = {
        **dict.fromkeys(("1", "1.0", "true", "yes"), True),
        **dict.fromkeys(("", "0", "0.0", "false", "no"), False),
    }
    try:
        return np.array([meanings[str(word).strip().lower()] for word in words], dtype=bool)
    except KeyError as word:
        raise DataError(f"{where}: {word} in the terminated column is neither true nor false") from None
