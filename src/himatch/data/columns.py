"""Which column of a table holds what: the mapping, and where it is written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from himatch._runtime.files import reading
from himatch.data.csv_files import compressed
from himatch.data.wording import listed
from himatch.errors import DataError, TaskError
from himatch.tasks import Discrete

SHARED = "columns.toml"
VECTORS = ("observations", "actions")
_WITH_UNIT = re.compile(r"(?P<name>.*\S)\s+(\[(?P<square>[^\[\]]+)\]|\((?P<round>[^()]+)\))")


@dataclass(frozen=True)
class Columns:
    """Which column of a table holds what.

    ``observations`` and ``actions`` are names or patterns (``q_*``), comma-separated or a list: columns come in the
    order of the list, those of one pattern in the order of the table. ``reward``, ``terminated``, ``step`` and
    ``label`` are used where the table has them, must be there where somebody ``wrote`` their names, and are left out
    where the name is empty. An empty ``episode`` makes the whole table one. ``continuous`` says that actions are, which
    look like the numbers of choices, and ``discrete`` that they are such, of how many, or ``auto``: of as many as the
    data shows; ``rate`` is in Hz; ``units`` are by column. ``path`` is the file that says so.
    """

    episode: str = "episode"
    observations: str | tuple[str, ...] = "obs*"
    actions: str | tuple[str, ...] = "act*"
    reward: str = "reward"
    terminated: str = "terminated"
    step: str = "step"
    label: str = "label"
    continuous: bool = False
    discrete: int | Literal["auto"] | None = None
    rate: float | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    wrote: frozenset[str] = frozenset()
    path: str | None = None

    @classmethod
    def beside(cls, table: Path) -> Columns:
        """The mapping in a TOML file beside the table, or the defaults."""
        path = mapping_file(table)
        if not path.is_file():
            return cls()
        with reading(str(path)):
            settings = tomllib.loads(path.read_text())
        return replace(cls().changed(settings, str(path)), path=str(path))

    def changed(self, settings: Mapping[str, Any], where: str) -> Columns:
        """The mapping with some settings changed; unknown ones are refused by name."""
        known = {field.name for field in fields(self)} - {"wrote", "path"}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise DataError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()
        }
        for key, value in values.items():
            _check_setting(key, value, where)
        changed = replace(self, **values, wrote=self.wrote | values.keys())
        if changed.continuous and changed.discrete is not None:
            raise DataError(f"{where}: actions are continuous or discrete, not both; leave one of the two out")
        return changed

    @property
    def choices(self) -> Discrete | Literal["auto"] | None:
        """Discrete actions, where it says that they are."""
        return Discrete(self.discrete) if isinstance(self.discrete, int) else self.discrete

    def find(self, names: list[str], raw: list[str], where: str) -> dict[str, list[int]]:
        """Positions of the columns that hold what, without those of the optional roles that are not there.

        Columns may be written with the unit that stands in the table's ``raw`` names, or without.
        """
        roles = ("episode", "reward", "terminated", "step", "label")
        found = {role: [i] for role in roles if (i := self._role(role, names, raw, where)) is not None}
        taken = {i for (i,) in found.values()}
        for what in VECTORS:
            found[what] = [i for i in self._select(what, names, raw, where) if i not in taken]
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

    def _role(self, role: str, names: list[str], raw: list[str], where: str) -> int | None:
        name = getattr(self, role)
        for known in (names, raw):
            if name and name in known:
                return known.index(name)
        if name:
            _refuse_several(name, raw, where)
        if name and role == "episode":
            raise self._no_column(
                f"{name!r} that says which episode a row belongs to", role, names, where, "'' makes a table one episode"
            )
        if name and role in self.wrote:
            raise self._no_column(f"{name!r} for the {role}", role, names, where)
        return None

    def _select(self, what: str, names: list[str], raw: list[str], where: str) -> list[int]:
        patterns = getattr(self, what)
        wanted = [p.strip() for p in patterns.split(",")] if isinstance(patterns, str) else list(patterns)
        selected: list[int] = []
        for pattern in wanted:
            exact = [i for i, both in enumerate(zip(names, raw, strict=True)) if pattern in both]
            matching = exact or [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
            if not matching:
                _refuse_several(pattern, raw, where)
                raise self._no_column(f"matches {pattern!r} for the {what}", what, names, where)
            selected += matching
        return list(dict.fromkeys(selected))

    def _no_column(self, which: str, role: str, names: list[str], where: str, more: str = "") -> DataError:
        written = f"; {self.path} says which is which" if self.path else ""
        return DataError(
            f"{where}: no column {which} (columns: {listed(names)}{written}); name it with --columns.{role} "
            f"(columns={{{role!r}: ...}}) or in a TOML file beside the table{f'; {more}' if more else ''}"
        )


def mapping_file(table: Path) -> Path:
    """Where a file would lie that says which column of the table holds what: its own, or one for all of the folder."""
    own = (table.with_suffix("") if compressed(table) else table).with_suffix(".toml")
    return own if own.is_file() else table.with_name(SHARED)


def split_units(raw: list[str]) -> tuple[list[str], dict[str, str]]:
    """Names of columns without their units, ``q1 [rad]`` or ``q1 (rad)``, and these by name."""
    found = [_WITH_UNIT.fullmatch(name) for name in raw]
    plain = [name if match is None else match["name"] for name, match in zip(raw, found, strict=True)]
    # Two that differ in the unit only keep it: a name means one column.
    names = [short if plain.count(short) == 1 else name for name, short in zip(raw, plain, strict=True)]
    units = {
        match["name"]: (match["square"] or match["round"]).strip()
        for name, match in zip(names, found, strict=True)
        if match is not None and name == match["name"]
    }
    return names, units


def _refuse_several(name: str, raw: list[str], where: str) -> None:
    """Say so where a name is that of several columns: twice the same, or with several units."""
    several = [one for one in raw if (match := _WITH_UNIT.fullmatch(one)) is not None and match["name"] == name]
    if len(several) > 1:
        what = f"column {several[0]!r} is there {len(several)} times" if len(set(several)) == 1 else ""
        raise DataError(
            f"{where}: {what or f'there are several columns {name!r}: {listed(several)}'}; give each a name of its own"
            f"{'' if what else ', or write the unit'}"
        )


def _check_setting(key: str, value: object, where: str) -> None:
    if key == "continuous":
        if not isinstance(value, bool):
            raise DataError(f"{where}: 'continuous' must be true or false")
    elif key == "discrete":
        if value != "auto":
            try:
                Discrete.of(value)  # type: ignore[arg-type]
            except TaskError as reason:
                raise DataError(f"{where}: 'discrete' is how many actions there are, or 'auto' ({reason})") from None
    elif key == "rate":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise DataError(f"{where}: 'rate' must be a number of steps a second, such as 50")
    elif key == "units":
        if not isinstance(value, Mapping) or not all(isinstance(unit, str) for unit in value.values()):
            raise DataError(f"{where}: 'units' must name a unit for each of some columns, such as q1 = \"rad\"")
    else:
        several = key in VECTORS
        items = value if several and isinstance(value, tuple) else (value,)
        if not all(isinstance(item, str) for item in items):
            raise DataError(f"{where}: {key!r} must be a column name{' or a list of them' if several else ''}")
