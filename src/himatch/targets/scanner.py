"""The characters of a target expression: what stands next, read piece by piece; mistakes are pointed at."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeVar

import numpy as np

from himatch.errors import ExpressionError, HimatchError
from himatch.targets.distribution import number
from himatch.tasks import Task, get_task

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WITHIN = re.compile(r"within\b")

Content = TypeVar("Content")


class Scanner:
    """``position`` is the next character to read; deadlines are compared with the horizon of ``task``, if known.

    Where ``files`` are given, no others may be named.
    """

    def __init__(self, text: str, task: Task | str | None, files: Collection[str] | None = None) -> None:
        self.text, self.task, self.files, self.position = text, task, files, 0
        self.arguments: list[int] = []  # where those of the innermost function begin

    def error(self, reason: str, position: int | None = None) -> ExpressionError:
        """What is wrong, at the present place or another."""
        return ExpressionError(reason, self.text, self.position if position is None else position)

    def skip_space(self) -> None:
        """Go on to what is no space."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def accept(self, symbol: str) -> bool:
        """Whether the symbol stands next; it is then read."""
        self.skip_space()
        found = self.text.startswith(symbol, self.position)
        self.position += len(symbol) if found else 0
        return found

    def expect(self, symbol: str, why: str) -> None:
        """Read the symbol, or say why it has to stand there."""
        if not self.accept(symbol):
            raise self.error(f"expected {symbol!r} {why}")

    def read(self, pattern: re.Pattern[str]) -> str | None:
        """What of the pattern stands next, read; nothing where it does not."""
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
        """A finite number, whose place is noted."""
        start = self.argument()
        found = self.read(NUMBER)
        if found is None:
            raise self.error(f"expected a number ({what})")
        if not np.isfinite(float(found)):
            raise self.error(f"{found} is too large", start)
        return float(found)

    def whole_number(self, what: str) -> int:
        """One of 0, 1, 2, ..."""
        value = self.number(what)
        if value != int(value) or value < 0:
            raise self.error(f"expected a whole number that is not negative ({what})", self.arguments[-1])
        return int(value)

    def numbers(self) -> tuple[float, ...]:
        """Numbers with commas between them."""
        values = [self.number("an argument")]
        while self.accept(","):
            values.append(self.number("an argument"))
        if self.position == len(self.text):  # before anybody counts them
            raise self.error("expected ')' or a comma")
        return tuple(values)

    def whole(self) -> tuple[tuple[float, ...], int | None]:
        """Numbers, and within how many steps, where that is said."""
        values = [self.number("an argument")]
        within = None
        while self.accept(","):
            if self.read(_WITHIN) is None:
                values.append(self.number("an argument, or within=STEPS"))
                continue
            self.expect("=", "after within")
            within = self.deadline()
            if self.accept(","):
                raise self.error("within=STEPS comes last", self.position - 1)
        if self.position == len(self.text):
            raise self.error("expected ')' or a comma")
        return tuple(values), within

    def deadline(self) -> int:
        """The number of steps after ``within=``, no more than the horizon, where that is known."""
        steps = self.number("how many steps")
        place = self.arguments[-1]
        if steps != int(steps) or steps < 1:
            raise self.error("within is a whole number of steps, one or more", place)
        if self.task is not None and steps > (horizon := get_task(self.task).horizon):
            raise self.error(f"{number(steps)} steps go beyond the horizon, which is {horizon}", place)
        return int(steps)

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
        if self.files is not None and path not in self.files:
            known = f"these may be: {', '.join(self.files)}" if self.files else "none may be"
            raise self.error(f"this file cannot be named here; {known}", self.arguments[0])
        try:
            return read(path)
        except HimatchError as reason:
            raise self.error(str(reason), self.arguments[0]) from reason
