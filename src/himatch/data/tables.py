"""Tables of logs (CSV, Parquet): one row a step, a column for each number a robot writes."""

from __future__ import annotations

import csv
import gzip
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import listed
from himatch.data.episodes import pack_episodes
from himatch.data.packed import Allocate, Packed
from himatch.errors import DataError
from himatch.files import reading
from himatch.tasks import Task


@dataclass(frozen=True)
class Columns:
    """Which column of a table holds what.

    ``observations`` and ``actions`` are names or patterns (``q_*``), comma-separated or a list; columns keep the
    order they have in the table. ``reward``, ``terminated``, ``step`` and ``label`` are used where the table has them.
    """

    episode: str = "episode"
    observations: str | tuple[str, ...] = "obs*"
    actions: str | tuple[str, ...] = "act*"
    reward: str = "reward"
    terminated: str = "terminated"
    step: str = "step"
    label: str = "label"

    @classmethod
    def beside(cls, table: Path) -> Columns:
        """The mapping in ``NAME.toml`` beside the table, or the defaults."""
        path = (table.with_suffix("") if _compressed(table) else table).with_suffix(".toml")
        if not path.is_file():
            return cls()
        with reading(str(path)):
            return cls().changed(tomllib.loads(path.read_text()), str(path))

    def changed(self, settings: Mapping[str, Any], where: str) -> Columns:
        """The mapping with some settings changed; unknown ones are refused by name."""
        known = {field.name for field in fields(self)}
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
        return replace(self, **values)

    def select(self, patterns: str | tuple[str, ...], names: list[str], what: str, where: str) -> list[int]:
        """Positions of the columns that match, in table order."""
        wanted = [p.strip() for p in patterns.split(",")] if isinstance(patterns, str) else list(patterns)
        for pattern in wanted:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise DataError(
                    f"{where}: no column matches {pattern!r} for the {what} (columns: {listed(names)}); "
                    f"name them with --columns.{what} or in a TOML file beside the table"
                )
        return [i for i, name in enumerate(names) if any(fnmatchcase(name, pattern) for pattern in wanted)]


def read_table(path: Path, task: Task | None, allocate: Allocate, columns: Mapping[str, Any] | None = None) -> Packed:
    """Read a CSV (``.csv``, ``.csv.gz``) or Parquet table of steps."""
    where, mapping = str(path), Columns.beside(path).changed(columns or {}, f"columns of {path}")
    with reading(where):
        is_csv = is_csv_table(path)
        names = _csv_names(path) if is_csv else _parquet_names(path)
        if mapping.episode not in names:
            if is_csv and any(";" in name for name in names):
                raise DataError(
                    f"{where}: its columns are separated by semicolons; write commas between columns and points in "
                    "decimals"
                )
            raise DataError(
                f"{where}: no column {mapping.episode!r} that says which episode a row belongs to "
                f"(columns: {listed(names)}); name it with --columns.episode or in a TOML file beside the table"
            )
        observations = mapping.select(mapping.observations, names, "observations", where)
        actions = mapping.select(mapping.actions, names, "actions", where)
        special = {role: names.index(name) for role in ("reward", "step") if (name := getattr(mapping, role)) in names}
        texts = {
            role: names.index(name)
            for role in ("episode", "terminated", "label")
            if (name := getattr(mapping, role)) in names
        }
        used = set(special.values()) | set(texts.values())
        observations = [i for i in observations if i not in used]
        actions = [i for i in actions if i not in used]
        numeric = [*observations, *actions, *special.values()]
        if is_csv:
            numbers, words = _csv_columns(path, names, numeric, list(texts.values()), special.get("step"))
        else:
            numbers, words = _parquet_columns(path, names, numeric, list(texts.values()))
    if numbers.size == 0:
        raise DataError(f"{where}: the table has no rows")
    a, b = len(observations), len(observations) + len(actions)
    roles = {role: numbers[:, b + i] for i, role in enumerate(special)}
    episode_of = dict(zip(texts, words.T, strict=True))
    episodes = []
    for rows in _episode_rows(episode_of["episode"], roles.get("step"), where):
        episode: dict[str, Any] = {"observations": numbers[rows, :a], "actions": numbers[rows, a:b]}
        if "reward" in roles:
            episode["rewards"] = roles["reward"][rows]
        if "terminated" in episode_of:
            episode["terminals"] = _flags(episode_of["terminated"][rows], where)
        if "label" in episode_of:
            episode["label"] = str(episode_of["label"][rows[0]]) or None
        episodes.append(episode)
    return pack_episodes(episodes, where, task, allocate)


def _episode_rows(episode: NDArray[Any], step: NDArray[Any] | None, where: str) -> list[NDArray[np.int64]]:
    """Row numbers of every episode, in order of appearance."""
    changes = np.flatnonzero(episode[1:] != episode[:-1]) + 1
    runs = np.split(np.arange(len(episode)), changes)
    groups: dict[str, list[NDArray[np.int64]]] = {}
    for run in runs:
        name = str(episode[run[0]])
        if name in groups and step is None:
            raise DataError(
                f"{where}: episode {name!r} comes back in row {run[0] + 1} after another one; sort the table, give "
                "every episode its own name, or name a step column so that interleaved rows can be put in order"
            )
        groups.setdefault(name, []).append(run)
    result = []
    for name, parts in groups.items():
        rows = np.concatenate(parts)
        if step is not None:
            rows = rows[np.argsort(step[rows], kind="stable")]
            if np.isnan(step[rows[-1]]):  # these come last
                raise DataError(f"{where}: episode {name!r} has no step in row {rows[-1] + 1}; fill it in")
            twice = np.flatnonzero(np.diff(step[rows]) == 0)
            if len(twice):
                first, second = (int(row) + 1 for row in rows[twice[0] : twice[0] + 2])
                raise DataError(
                    f"{where}: episode {name!r} has the same step in rows {first} and {second}; give every episode its "
                    "own name and every row of it its own step"
                )
        result.append(rows)
    return result


def _flags(words: NDArray[Any], where: str) -> NDArray[np.bool_]:
    meanings = {
        **dict.fromkeys(("1", "1.0", "true", "yes"), True),
        **dict.fromkeys(("", "0", "0.0", "false", "no"), False),
    }
    try:
        return np.array([meanings[str(word).strip().lower()] for word in words], dtype=bool)
    except KeyError as word:
        raise DataError(f"{where}: {word} in the terminated column is neither true nor false") from None


def is_csv_table(path: Path) -> bool:
    """Whether the name is that of a CSV table, which gzip may have compressed."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _compressed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _open_csv(path: Path) -> IO[str]:
    opener = gzip.open if _compressed(path) else open
    return cast("IO[str]", opener(path, "rt", newline="", encoding="utf-8-sig"))


def _csv_names(path: Path) -> list[str]:
    with _open_csv(path) as file:
        return [name.strip() for name in next(csv.reader(file), [])]


def _csv_columns(
    path: Path, names: list[str], numeric: list[int], texts: list[int], step: int | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    readers: dict[int | str, Callable[[str], float]] = {} if step is None else {step: _moment}

    def load(usecols: list[int], dtype: Any, **more: Any) -> NDArray[Any]:
        with _open_csv(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table is reported by the caller
            next(csv.reader(file), None)  # the header, which may hold quoted line breaks
            layout: dict[str, Any] = {"delimiter": ",", "quotechar": '"', "comments": None, "ndmin": 2}
            return np.asarray(np.loadtxt(file, dtype=dtype, usecols=usecols, **layout, **more))

    try:
        return load(numeric, np.float64, converters=readers), load(texts, np.str_)
    except ValueError as reason:
        place = _wrong_cell(path, names, {i: readers.get(i, float) for i in numeric})
        if place is None:
            raise
        raise DataError(f"{path}: {place}") from reason


def _moment(cell: str) -> float:
    """A step as a number, or an ISO time in nanoseconds, as Parquet's times are."""
    try:
        return float(cell)
    except ValueError:
        if not cell[:4].isdigit():  # NumPy would understand "today"
            raise
        return float(np.datetime64(cell.strip(), "ns").astype(np.int64))


def _wrong_cell(path: Path, names: list[str], readers: Mapping[int, Callable[[str], float]]) -> str | None:
    """What is wrong with the first row that cannot be read."""
    with _open_csv(path) as file:
        rows = csv.reader(file)
        next(rows, None)
        for number, row in enumerate(filter(None, rows), 1):
            if len(row) <= max(readers):
                return f"row {number} has {len(row)} columns, the header has {len(names)}"
            for i, reader in readers.items():
                try:
                    reader(row[i])
                except ValueError:
                    cell = f"holds {listed([repr(row[i])])}, which is no number" if row[i].strip() else "is empty"
                    return f"column {listed([names[i]])} {cell} in row {number}; mend the row or drop its episode"
    return None


def _parquet_names(path: Path) -> list[str]:
    return list(_parquet().read_schema(path).names)


def _parquet_columns(
    path: Path, names: list[str], numeric: list[int], texts: list[int]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    table = _parquet().read_table(path, columns=[names[i] for i in dict.fromkeys([*numeric, *texts])])
    numbers = [_parquet_numbers(table[names[i]].to_numpy()) for i in numeric]
    # A null is an empty cell, as in CSV.
    words = [np.array(["" if w is None else str(w) for w in table[names[i]].to_pylist()], dtype=np.str_) for i in texts]
    return np.stack(numbers, axis=1), np.stack(words, axis=1)


def _parquet_numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    numbers = np.asarray(column, dtype=np.float64)
    if column.dtype.kind == "M":  # a null is the smallest number then
        numbers = np.where(np.isnat(column), np.nan, numbers)
    return numbers


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError('Parquet tables need pyarrow: pip install "himatch[arrow]"') from None
    return parquet
