"""Targets as text: ``0.5*normal(5,1) + 0.5*normal(13,1)``, ``return(5000)``, ``demo(data.hdf5, 3)``.

Grammar::

    expression := term { "+" term }
    term       := [ number "*" ] atom
    atom       := "(" expression ")" | name "(" argument { "," argument } ")"
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, get_args

import numpy as np

from himatch.data import TrajectoryDataset, load_dataset
from himatch.data.checks import align_columns
from himatch.data.facts import SAME_RATE, Facts
from himatch.errors import DataError, ExpressionError, HimatchError, HimatchWarning, TargetError, note
from himatch.targets.distribution import Component, Distribution, Shape, number
from himatch.targets.target import Demonstration, Drawn, Goal, Patched, Return, Samples, Shifted, Synthetic, Target
from himatch.tasks import Task

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEEPEST = 40

Content = TypeVar("Content")
_OF_OTHERS = (r"(?s).* left out, as requested", r".* episodes are longer than the ")
"""Notes on a file of which one episode is taken."""
SHAPES: tuple[Shape, ...] = get_args(Shape)


HeldOut = Callable[[int], Target]
"""The held-out episode of that number."""

ColumnNames = Mapping[str, Sequence[str]]
"""What a run calls the columns of its ``observations`` and ``actions``; nothing where they have no names."""


def parse_target(
    text: str,
    task: Task | str | None = None,
    held_out: HeldOut | None = None,
    columns: ColumnNames | None = None,
    facts: Facts | None = None,
) -> Target:
    """The target that an expression describes; mistakes are reported with the character they stand at.

    ``task`` is used to read the files that ``demo(PATH, EPISODE)`` names, and of their columns those that a run calls
    so, ``columns``, in this order; files in other units than its ``facts`` say are refused, and another rate is noted.
    ``held_out`` is used to look up ``heldout(EPISODE)`` of a run.
    """
    parser = _Parser(text, task, held_out, columns, facts or Facts())
    target = _as_target(parser.expression())
    parser.skip_space()
    if parser.position < len(text):
        raise parser.error("expected the end of the target or a +")
    return target


Item = Target | Distribution


def _as_target(item: Item) -> Target:
    return Synthetic((item,)) if isinstance(item, Distribution) else item


class _Parser:
    """Recursive descent; ``position`` is the next character to read."""

    def __init__(
        self,
        text: str,
        task: Task | str | None,
        held_out: HeldOut | None,
        columns: ColumnNames | None,
        facts: Facts,
    ) -> None:
        self.text, self.task, self.held_out, self.columns, self.facts = text, task, held_out, columns, facts
        self.position = self.depth = 0
        self.arguments: list[int] = []  # where those of the innermost function begin

    # -- characters ---------------------------------------------------------------------------------------------

    def error(self, reason: str, position: int | None = None) -> ExpressionError:
        return ExpressionError(reason, self.text, self.position if position is None else position)

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def accept(self, symbol: str) -> bool:
        self.skip_space()
        found = self.text.startswith(symbol, self.position)
        self.position += len(symbol) if found else 0
        return found

    def expect(self, symbol: str, why: str) -> None:
        if not self.accept(symbol):
            raise self.error(f"expected {symbol!r} {why}")

    def read(self, pattern: re.Pattern[str]) -> str | None:
        self.skip_space()
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        return match.group()

    def argument(self) -> int:
        """Note where the next one begins."""
        self.skip_space()
        self.arguments.append(self.position)
        return self.position

    def number(self, what: str) -> float:
        start = self.argument()
        found = self.read(_NUMBER)
        if found is None:
            raise self.error(f"expected a number ({what})")
        if not np.isfinite(float(found)):
            raise self.error(f"{found} is too large", start)
        return float(found)

    def whole_number(self, what: str) -> int:
        value = self.number(what)
        if value != int(value) or value < 0:
            raise self.error(f"expected a whole number that is not negative ({what})", self.arguments[-1])
        return int(value)

    def numbers(self) -> tuple[float, ...]:
        values = [self.number("an argument")]
        while self.accept(","):
            values.append(self.number("an argument"))
        if self.position == len(self.text):  # before anybody counts them
            raise self.error("expected ')' or a comma")
        return tuple(values)

    def path(self, expected: str = "expected a file name") -> str:
        """A name: quoted, or everything up to the next comma or bracket."""
        start = self.argument()
        quote = self.text[start : start + 1]
        if quote in ("'", '"'):
            end = self.text.find(quote, start + 1)
            if end < 0:
                raise self.error("this quotation mark is never closed", start)
            self.position = end + 1
            found = self.text[start + 1 : end]
        else:
            while self.position < len(self.text) and self.text[self.position] not in ",)":
                self.position += 1
            found = self.text[start : self.position].strip()
        if not found:
            raise self.error(expected, start)
        return found

    def opened(self, path: str, read: Callable[[str], Content]) -> Content:
        """What the file that is the first argument holds; whatever is wrong with it is said there."""
        try:
            return read(path)
        except HimatchError as reason:
            raise self.error(str(reason), self.arguments[0]) from reason

    # -- grammar ------------------------------------------------------------------------------------------------

    def expression(self) -> Item:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("too many brackets inside one another")
        self.skip_space()
        start = self.position
        terms = [self.term()]
        while self.accept("+"):
            terms.append(self.term())
        self.depth -= 1
        if len(terms) == 1 and terms[0][0] is None:
            return terms[0][2]
        return self.mixture(terms, start)

    def term(self) -> tuple[float | None, int, Item]:
        self.skip_space()
        start, weight = self.position, None
        found = self.read(_NUMBER)
        if found is not None:
            weight = float(found)
            if not 0 < weight < np.inf:
                raise self.error("a weight must be positive", start)
            self.expect("*", "between a weight and what it weighs")
            self.skip_space()
        return weight, self.position, self.atom()

    def mixture(self, terms: list[tuple[float | None, int, Item]], start: int) -> Distribution:
        weights: list[float] = []
        components: list[Component] = []
        given = [weight is not None for weight, _, _ in terms]
        if any(given) and not all(given):
            raise self.error("give a weight to every part of a mixture, or to none", terms[given.index(False)][1])
        for weight, position, item in terms:
            if not isinstance(item, Distribution):
                raise self.error(f"{item.name} cannot be part of a mixture; only distributions can", position)
            share = 1 / len(terms) if weight is None else weight
            weights += [share * w for w in item.weights]
            components += item.components
        if abs(sum(weights) - 1.0) > 1e-6:
            raise self.error(f"the weights add up to {number(round(sum(weights), 9))}, not 1", start)
        return Distribution(tuple(components), tuple(weights))

    def atom(self) -> Item:
        if self.accept("("):
            item = self.expression()
            self.expect(")", "to close the bracket")
            return item
        start = self.position
        name = self.read(_NAME)
        calls: dict[str, Callable[[], Item]] = {
            "return": lambda: Return(self.numbers()),
            "goal": lambda: Goal(self.numbers()),
            "shift": self.shift,
            "patch": self.patch,
            "joint": self.joint,
            "shuffled": self.shuffled,
            "demo": self.demo,
            "heldout": self.heldout,
            "histogram": lambda: self.opened(self.path(), read_histogram),
            "samples": lambda: self.opened(self.path(), read_samples),
        }
        for shape in SHAPES:
            calls[shape] = lambda shape=shape: Distribution((Component(shape, self.numbers()),))  # type: ignore[misc]
        if name is None:
            raise self.error("expected a target: one of " + ", ".join(sorted(calls)))
        if name not in calls:
            raise self.error(f"unknown target {name!r}; known are {', '.join(sorted(calls))}", start)
        self.expect("(", f"after {name}")
        outer, self.arguments = self.arguments, []
        try:
            item = calls[name]()
        except ExpressionError:
            raise
        except HimatchError as reason:  # a part that is wrong in itself: point at it
            wrong = reason.argument if isinstance(reason, TargetError) else None
            raise self.error(str(reason), start if wrong is None else self.arguments[wrong]) from reason
        self.arguments = outer
        self.expect(")", f"or a comma in {name}(...)")
        return item

    def inner(self) -> Target:
        self.argument()
        return _as_target(self.expression())

    def shift(self) -> Target:
        inner = self.inner()
        self.expect(",", "and the number of bins to shift by")
        return Shifted(inner, self.number("bins to shift by"))

    def patch(self) -> Target:
        first = self.inner()
        self.expect(",", "and the second target")
        second = self.inner()
        return Patched(first, second, self.whole_number("step to switch at") if self.accept(",") else None)

    def joint(self) -> Target:
        parts = []
        while True:
            start = self.argument()
            part = self.expression()
            if not isinstance(part, Distribution):
                raise self.error("joint takes one distribution for each feature", start)
            parts.append(part)
            if not self.accept(","):
                return Synthetic(tuple(parts))

    def shuffled(self) -> Target:
        inner = self.inner()
        if not isinstance(inner, Synthetic):
            raise self.error("only drawn distributions can be shuffled", self.arguments[0])
        return replace(inner, shuffled=True, seed=self.whole_number("seed") if self.accept(",") else 0)

    def demo(self) -> Target:
        path = self.path()
        called = self.path("expected the name or the number of an episode") if self.accept(",") else None
        wanted = {name: list(names) for name, names in (self.columns or {}).items() if names}
        dataset, healthy = self.opened(path, lambda path: _demonstrations(path, self.task, wanted, self.facts))
        number = _episode(dataset, path, called)
        if number not in healthy:
            raise TargetError(
                f"episode {dataset.episode_name(number)} cannot be a demonstration, mend it or take another: "
                f"{_fault(path, self.task, wanted)}",
                0 if called is None else 1,
            )
        return Demonstration(dataset[number], f"demo({path}, {number if called is None else called})")

    def heldout(self) -> Target:
        number = self.whole_number("held-out episode")
        if self.held_out is None:
            raise TargetError("held-out episodes belong to a run: match a policy with this target")
        return self.held_out(number)


def _demonstrations(
    path: str, task: Task | str | None, wanted: dict[str, list[str]], facts: Facts
) -> tuple[TrajectoryDataset, list[int]]:
    """What a file holds, with its columns, where they have names, in the order of those of the run.

    Besides, which episodes are without a problem: only the one that is taken has to be.
    """
    try:
        with warnings.catch_warnings():
            for said in _OF_OTHERS:
                warnings.filterwarnings("ignore", said, HimatchWarning)
            dataset = load_dataset(path, task, columns=wanted, drop_bad=True)
        named = {name: tuple(names) for name, names in wanted.items()}
        packed = align_columns(dataset.packed, named, path, "the run's")  # of a set that is no table
    except DataError as reason:
        run = "; ".join(f"{name} {', '.join(names)}" for name, names in wanted.items())
        raise DataError(f"{reason} (the run's columns are {run})" if wanted else str(reason)) from reason
    units, rate = facts.units, facts.rate
    if differing := [f"{n} in {u}, not {units[n]}" for n, u in dataset.units.items() if units.get(n, u) != u]:
        raise DataError(f"{path} measures {'; '.join(differing)} as the run does; convert it")
    if rate and dataset.rate and abs(dataset.rate / rate - 1.0) > SAME_RATE:
        note(
            f"{path} was recorded at {dataset.rate:.4g} Hz, the data of the run at {rate:.4g} Hz; a policy counts "
            "steps, so resample to the rate of the run"
        )
    return TrajectoryDataset(packed, dataset.task, source=dataset.source), dataset.packed_episodes.tolist()


def _fault(path: str, task: Task | str | None, wanted: dict[str, list[str]]) -> str:
    """What is wrong with the episodes of a file."""
    try:
        load_dataset(path, task, columns=wanted)
    except DataError as reason:
        return str(reason)
    return f"{path} has changed"


def _episode(dataset: TrajectoryDataset, path: str, called: str | None) -> int:
    """The episode that the file calls so, else the one of that number."""
    if called is None:
        return 0
    names = dataset.episode_names
    if called in names:
        return names.index(called)
    number = int(called) if called.isdecimal() else None
    if number is None or number >= len(dataset):
        some = ", ".join(repr(name) for name in names[:5] if name is not None)
        known = f" (it has {some}{', ...' if len(names) > 5 else ''})" if some else ""
        raise TargetError(f"{path} has {len(dataset)} episodes, there is no episode {called}{known}", 1)
    return number


def read_histogram(path: str) -> Drawn:
    """A histogram drawn by hand: JSON with ``edges`` and ``weights``, a list each or a list of lists."""
    content = _json(path)
    if not isinstance(content, dict) or not {"edges", "weights"} <= content.keys():
        raise TargetError(f'{path}: expected {{"edges": [...], "weights": [...]}}')
    rows = []
    for key in ("edges", "weights"):
        try:
            value = content[key]
            nested = bool(value) and isinstance(value[0], list)
            rows.append(tuple(np.asarray(row, dtype=np.float64) for row in (value if nested else [value])))
        except (TypeError, ValueError, KeyError):
            raise TargetError(f"{path}: {key!r} must be a list of numbers, or one such list per feature") from None
        if any(row.ndim != 1 for row in rows[-1]):
            raise TargetError(f"{path}: {key!r} must be a list of numbers, or one such list per feature")
    return Drawn(rows[0], rows[1], f"histogram({path})")


def read_samples(path: str) -> Samples:
    """Feature values from an ``.npy`` file, ``(n,)`` or ``(n, d)``."""
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        values = None
    if not isinstance(values, np.ndarray):  # of an .npz file it is an archive
        raise TargetError(f"{path}: not a readable .npy file of numbers")
    if values.dtype.kind not in "fiub":
        raise TargetError(
            f"{path}: samples must be real numbers, not {values.dtype}; save what they stand for as floats"
        )
    return Samples(values, f"samples({path})")


def _json(path: str) -> object:
    try:
        return json.loads(Path(path).read_text())
    except OSError:
        raise TargetError(f"{path}: cannot be opened") from None
    except ValueError as reason:
        raise TargetError(f"{path}: not valid JSON ({reason})") from None
