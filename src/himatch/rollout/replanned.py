"""Plans that are made again while they are played, of every rollout from what it achieved."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import HimatchError, note
from himatch.methods.conditioner import ALL, Conditioner, Some, padded
from himatch.rollout.plans import Mixer
from himatch.rollout.programs import Entries
from himatch.targets import Target
from himatch.types import Array


@dataclass(frozen=True, eq=False)
class Span:
    """One of the targets that follow one another, most often the only one, from step ``start`` to ``stop``."""

    rows: Array
    start: int
    stop: int
    lasts: int
    in_time: bool


@dataclass(frozen=True, eq=False)
class Question:
    """A rollout at a step, what its bins lack there, and which of its episodes it is in."""

    seed: int
    rollout: int
    episode: int
    step: int
    span: Span
    lacks: Array64
    running: int


Answer = tuple[Question, list[int]]
"""The number of the entry of every step that is left of the span."""


class Replanned(Conditioner):
    """A plan of every rollout, made again every so many steps from what is left of its target.

    What is left counts the bins that were visited too often as less than nothing, so the next plan makes up for them.
    Simulated rollouts wait for their plans. A controller makes them ``beside`` its loop, in another thread: the old
    plan goes on until the new one is there.
    """

    wants_features = True
    target_of: Tensor

    @shaped
    def __init__(
        self,
        mixer: Mixer,
        entries: Entries,
        targets: Sequence[Target],
        target_of: Int[Tensor, "#K B"],
        every: int,
        *,
        beside: bool = False,
    ) -> None:
        self.target_of, self._mixer, self._every = target_of, mixer, every
        self._tables = padded([entries.table(entry) for entry in mixer.entries], target_of.device)
        number = {entry: place for place, entry in enumerate(mixer.entries)}
        found: dict[int, tuple[list[int], list[Span]]] = {}
        for target in targets:
            if id(target) not in found:
                plan = [number[part.entry] for part in mixer.program(target) for _ in range(part.steps)]
                found[id(target)] = plan, _spans(target, mixer)
        self._plans, self._targets = (list(each) for each in zip(*(found[id(t)] for t in targets), strict=True))
        self._on_host = target_of.cpu().numpy()
        longest = max(len(plan) for plan in self._plans)
        self._rows = torch.zeros(*target_of.shape, longest, dtype=torch.int64, device=target_of.device)
        self._seen = np.zeros((*target_of.shape, longest, mixer.frame.bins.dimensions), np.int16)
        self._steps = np.zeros(target_of.shape, np.int64)
        self._episodes = np.zeros(target_of.shape, np.int64)  # an answer of one that has ended is not for the next
        self._thread = ThreadPoolExecutor(1, "himatch-replan") if beside else None
        self._asked: Future[list[Answer]] | None = None
        self.reset()

    def reset(self, rollouts: Some = ALL) -> None:
        """Nothing is achieved yet, and the first plan is the plan."""
        self._steps[:, rollouts] = 0
        self._episodes[:, rollouts] += 1
        for rollout in np.arange(self._steps.shape[1])[rollouts].tolist():
            for seed in range(len(self._steps)):
                self._write(seed, rollout, 0, self._plans[self._on_host[seed, rollout]])

    @shaped
    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B k"]:
        """That of the entry that every rollout is in."""
        if self._asked is not None and self._asked.done():
            self._take_answers(self._asked)
        step = clock.expand(self._rows.shape[:2])
        entry = self._rows.gather(2, step.clamp(max=self._rows.shape[2] - 1).unsqueeze(2)).squeeze(2)
        return self._tables[entry, step.clamp(max=self._tables.shape[1] - 1)]

    @shaped
    def achieved(self, phi: Float[Array, "K b d"], rollouts: Some = ALL) -> None:
        """Count a step; where so many were made, plan again."""
        bins = self._mixer.frame.bins.indices(phi.reshape(-1, phi.shape[-1])).reshape(phi.shape)
        chosen = np.arange(self._steps.shape[1])[rollouts]
        steps = self._steps[:, chosen]
        seeds, places = np.nonzero(steps < self._seen.shape[2])
        self._seen[seeds, chosen[places], steps[seeds, places]] = bins[seeds, places]
        self._steps[:, chosen] = steps + 1
        due = [(seed, int(chosen[place])) for seed, place in np.argwhere((steps + 1) % self._every == 0).tolist()]
        questions = [question for one in due if (question := self._question(*one)) is not None]
        if self._thread is None:
            for question, plan in map(self._answer, questions):
                self._write(question.seed, question.rollout, question.step, plan)
        elif questions and self._asked is None:  # else the old plans go on
            self._asked = self._thread.submit(lambda: [self._answer(question) for question in questions])

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Their plans from the beginning on; what was achieved counts when they are made again."""
        assert isinstance(other, type(self))
        more = other._rows.shape[2] - self._rows.shape[2]
        if more > 0:
            self._rows = torch.nn.functional.pad(self._rows, (0, more))
            self._seen = np.pad(self._seen, ((0, 0), (0, 0), (0, more), (0, 0)))
        self._episodes[:, rollouts] += 1
        for rollout, new in zip(np.arange(self._steps.shape[1])[rollouts].tolist(), other._on_host[0], strict=True):
            own = self._on_host[0, rollout]
            self._plans[own], self._targets[own] = other._plans[new], other._targets[new]
            for seed in range(len(self._steps)):
                self._write(seed, rollout, 0, self._plans[own])

    def _write(self, seed: int, rollout: int, step: int, plan: list[int]) -> None:
        """From a step on; the last entry goes on beyond the target's end."""
        stop = step + len(plan)
        ends = stop >= len(self._plans[self._on_host[seed, rollout]])
        row = self._rows[seed, rollout]
        row[step:stop] = torch.tensor(plan, device=row.device)
        if ends:
            row[stop:] = plan[-1]

    def _question(self, seed: int, rollout: int) -> Question | None:
        """What is to be planned for the steps of its present target that are left, where there are any."""
        step, bins = int(self._steps[seed, rollout]), self._mixer.frame.bins
        span = next((one for one in self._targets[self._on_host[seed, rollout]] if one.start <= step < one.stop), None)
        if span is None:
            return None
        lacks = bins.histogram(span.rows) * len(span.rows)
        seen = self._seen[seed, rollout, span.start : step]
        for feature in range(bins.dimensions):
            lacks[feature] -= np.bincount(seen[:, feature], minlength=bins.count)
        running = int(self._rows[seed, rollout, step - 1])
        return Question(seed, rollout, int(self._episodes[seed, rollout]), step, span, lacks, running)

    def _answer(self, question: Question) -> Answer:
        """Reads nothing that a loop changes."""
        span, step = question.span, question.step
        rows = span.rows[step - span.start :] if span.in_time else None
        found = self._mixer.shared_out(question.lacks, span.stop - step, step, span.lasts, rows, question.running)
        return question, [entry for entry, steps in found for _ in range(steps)]

    def _take_answers(self, asked: Future[list[Answer]]) -> None:
        self._asked = None
        try:
            answers = asked.result()
        except HimatchError as reason:
            note(f"a plan could not be made again, and the one before goes on: {reason}")
            return
        for question, plan in answers:
            if self._episodes[question.seed, question.rollout] == question.episode:
                self._write(question.seed, question.rollout, question.step, plan)


def _spans(target: Target, mixer: Mixer) -> list[Span]:
    """The targets that follow one another in it."""
    lasts, start, found = len(target.values(mixer.frame)), 0, []
    for one in target.stretches(mixer.frame):
        rows = one.values(mixer.frame)
        found.append(Span(rows, start, start + len(rows), lasts, one.in_time))
        start += len(rows)
    return found
