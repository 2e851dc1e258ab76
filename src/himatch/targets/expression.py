"""Targets as text: ``0.5*normal(5,1) + 0.5*normal(13,1)``, ``goal(3, within=80)``, ``demo(data.hdf5, 3)``.

Grammar::

    target     := condition { "&" condition }
    condition  := [ feature "~" ] sequence | feature sign number | number sign feature [ sign number ]
    sequence   := { expression "for" steps "then" } expression [ "for" steps ]
    expression := term { "+" term }
    term       := [ number "*" ] atom
    atom       := "(" sequence ")" | name "(" argument { "," argument } [ "," "within" "=" steps ] ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from himatch.data.facts import Facts
from himatch.errors import ExpressionError, HimatchError, TargetError
from himatch.statistics.features import resolve_feature
from himatch.targets.bound import FEATURE, Bound
from himatch.targets.conditions import Bounded, OfFeatures
from himatch.targets.distribution import Component, Distribution, Shape, number
from himatch.targets.files import fault_of, find_episode, read_demonstrations, read_histogram, read_samples
from himatch.targets.scanner import NUMBER, Content, Scanner
from himatch.targets.sequence import Lasting, Successive
from himatch.targets.served import ServedTask
from himatch.targets.target import Demonstration, Goal, Patched, Return, Shifted, Synthetic, Target
from himatch.tasks import Task, get_task

_NAME = re.compile(r"[A-Za-z_]\w*")
_SIGN, _CONDITION = re.compile(r"[<>]=?"), re.compile(r"[~<>=]")
_FOR, _THEN = re.compile(r"for\b"), re.compile(r"then\b")
_FEATURE = re.compile(rf"{FEATURE.pattern}|'[^']+'|\"[^\"]+\"")
_DEEPEST = 40

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
    files: Collection[str] | None = None,
) -> Target:
    """The target that an expression describes; mistakes are reported with the character they stand at.

    ``task`` is used to read the files that ``demo(PATH, EPISODE)`` names, and of their columns those that a run calls
    so, ``columns``, in this order; files in other units than its ``facts`` say are refused, and another rate is noted.
    ``held_out`` is used to look up ``heldout(EPISODE)`` of a run. Where ``files`` are given, no others may be named:
    for expressions that somebody else wrote.
    """
    return _Parser(text, task, held_out, columns, facts or Facts(), files).conditions()


Item = Target | Distribution


def _as_target(item: Item) -> Target:
    return Synthetic((item,)) if isinstance(item, Distribution) else item


def _bound(feature: str, ends: list[tuple[str, float, bool]]) -> Bound:
    """The bound of these signs, as they stand after the feature, and numbers."""
    low, high, is_open = -np.inf, np.inf, [True, True]
    for sign, value, outside in ends:
        if sign == ">":
            low, is_open[0] = value, outside
        else:
            high, is_open[1] = value, outside
    return Bound(feature, low, high, (is_open[0], is_open[1]))


class _Parser(Scanner):
    """Recursive descent."""

    def __init__(
        self,
        text: str,
        task: Task | str | None,
        held_out: HeldOut | None,
        columns: ColumnNames | None,
        facts: Facts,
        files: Collection[str] | None,
    ) -> None:
        super().__init__(text, task, files)
        self.held_out, self.columns, self.facts = held_out, columns, facts
        self.depth = 0

    def conditions(self) -> Target:
        """Everything: targets of features by name, or of all of them without any, and bounds."""
        named: list[tuple[str, Target]] = []
        places: list[int] = []
        targets_at: list[int] = []
        bounds: list[Bound] = []
        plain: Target | None = None
        while not places or self.accept("&"):
            self.skip_space()
            places.append(self.position)
            if self.followed_by(NUMBER, _SIGN):
                bounds.append(self.within())
            elif self.followed_by(_FEATURE, _CONDITION):
                feature = self.feature()
                if not self.accept("~"):
                    bounds.append(self.bound(feature))
                    continue
                if plain is not None:
                    raise self.error("the target before has no feature; name it too: NAME ~ EXPR", places[-1])
                targets_at.append(places[-1])
                named.append((feature, _as_target(self.sequence())))
            elif named or plain is not None:
                raise self.error("say which feature this is for: NAME ~ EXPR, or NAME > 1")
            else:
                plain = _as_target(self.sequence())
        self.skip_space()
        if self.position < len(self.text):
            raise self.error("expected the end of the target, a +, for or &")
        target = self.made(lambda: OfFeatures(tuple(named)), targets_at) if named else plain
        if target is None:
            raise self.error("bounds are only scored; give what is to be matched too: NAME ~ EXPR", places[0])
        return Bounded(target, tuple(bounds)) if bounds else target

    def followed_by(self, first: re.Pattern[str], second: re.Pattern[str]) -> bool:
        """Whether one and then the other stand next; nothing is read."""
        start = self.position
        found = self.read(first) is not None and self.read(second) is not None
        self.position = start
        return found

    def feature(self) -> str:
        """The name of a feature, of the task where one is known."""
        start = self.position
        found = self.read(_FEATURE)
        if found is None:
            raise self.error("expected the name of a feature")
        name = found.strip("'\"")
        if self.task is not None:
            try:
                resolve_feature(name, self.task)
            except HimatchError as reason:
                raise self.error(str(reason), start) from reason
        return name

    def sign(self) -> tuple[str, bool]:
        """``<`` or ``>``, and whether the end lies outside."""
        found = self.read(_SIGN)
        if found is None:
            raise self.error("a bound has one of < <= > >=; a single value is NAME ~ point(3)")
        return found[0], len(found) == 1

    def bound(self, feature: str) -> Bound:
        """What follows the name of a feature."""
        sign, is_open = self.sign()
        value = self.number("a bound")
        return _bound(feature, [(sign, value, is_open)])

    def within(self) -> Bound:
        """A number, the name of a feature, and often a second number."""
        start = self.position
        value = self.number("a bound")
        sign, is_open = self.sign()
        self.skip_space()
        feature = self.feature()
        self.skip_space()
        ends, place = [("<" if sign == ">" else ">", value, is_open)], self.position
        if self.followed_by(_SIGN, NUMBER):
            other, other_is_open = self.sign()
            if other != sign:
                raise self.error(f"both signs of a range point the same way: 1 {sign} NAME {sign} 2", place)
            ends.append((sign, self.number("a bound"), other_is_open))
        return self.made(lambda: _bound(feature, ends), [start])

    def sequence(self) -> Item:
        outer, self.arguments = self.arguments, []
        parts: list[Item] = []
        begins: list[int] = []
        left = None if self.task is None else get_task(self.task).horizon
        going_on = True
        while going_on:
            self.skip_space()
            begins.append(self.position)
            if left == 0:
                raise self.error("nothing is left of the horizon for this part")
            item = self.expression()
            lasts = self.read(_FOR) is not None
            if lasts:
                item, left = self.lasting(item, begins[-1], left)
            parts.append(item)
            self.skip_space()
            end = self.position
            going_on = self.read(_THEN) is not None
            if going_on and not lasts:
                raise self.error("say for how many steps the part before lasts: EXPR for 500 then EXPR", end)
        self.arguments = outer
        if len(parts) == 1:
            return parts[0]
        return self.made(lambda: Successive(tuple(map(_as_target, parts))), begins)

    def lasting(self, item: Item, begin: int, left: int | None) -> tuple[Item, int | None]:
        """What is to last for the steps that follow, and what they leave of the horizon, where that is known."""
        steps = self.number("how many steps")
        place = self.arguments[-1]
        if steps != int(steps) or steps < 1:
            raise self.error("a target lasts a whole number of steps, one or more", place)
        if left is not None and steps > left:
            raise self.error(f"{number(steps)} steps go beyond the horizon, of which {left} are left", place)
        lasting = self.made(lambda: Lasting(_as_target(item), int(steps)), [begin, place])
        return lasting, None if left is None else left - int(steps)

    def made(self, make: Callable[[], Content], places: Sequence[int]) -> Content:
        """What has parts that begin at these places; one that is wrong in itself is pointed at."""
        try:
            return make()
        except TargetError as reason:
            raise self.error(str(reason), places[reason.argument or 0]) from reason

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
        found = self.read(NUMBER)
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
            item = self.sequence()
            self.expect(")", "to close the bracket")
            return item
        start = self.position
        name = self.read(_NAME)
        calls: dict[str, Callable[[], Item]] = {
            "return": lambda: Return(*self.whole()),
            "goal": lambda: Goal(*self.whole()),
            "task": lambda: ServedTask(self.numbers()),
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
        return _as_target(self.sequence())

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
        dataset, healthy = self.opened(path, lambda path: read_demonstrations(path, self.task, wanted, self.facts))
        number = find_episode(dataset, path, called)
        if number not in healthy:
            raise TargetError(
                f"episode {dataset.episode_name(number)} cannot be a demonstration, mend it or take another: "
                f"{fault_of(path, self.task, wanted)}",
                0 if called is None else 1,
            )
        return Demonstration(dataset[number], f"demo({path}, {number if called is None else called})")

    def heldout(self) -> Target:
        number = self.whole_number("held-out episode")
        if self.held_out is None:
            raise TargetError("held-out episodes belong to a run: match a policy with this target")
        return self.held_out(number)
