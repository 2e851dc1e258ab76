"""The repertoire: what a policy really does under a library of conditionings.

Entries are training episodes, chosen far apart, and Gaussians that no episode need show; for policies that are
conditioned on a return or a goal, numbers over the range of the data. Each is rolled out from the start of an episode,
and once more switched to in the middle of one, after another entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64
from himatch._runtime.tensors import versions
from himatch.rehearsal.arena import Arena
from himatch.rollout.programs import Program, ProgramPart, episode_entry
from himatch.targets import EpisodeReference, Frame, far_apart
from himatch.targets.distribution import number
from himatch.types import Array

EPISODES = 40  # training episodes in the library
MEANS, WIDTHS = 8, (0.03, 0.1, 0.25)  # Gaussians: means over the data's range, deviations in parts of it
NUMBERS = 24  # returns or goals, for policies that are conditioned on these
ROLLOUTS = 2  # of every entry, from the start
TOGETHER = 24  # entries rolled out before what was found is kept

Progress = Callable[[int, int], None]
Bar = Callable[[str], Progress]
"""Given what is being done, something to tell how much of it is done."""


@dataclass(frozen=True, eq=False)
class Repertoire:
    """What was achieved under every entry: of every seed so many rollouts from the start, and one switched to.

    ``values`` is ``(K, n, R + 1, T, d)`` with ``lengths (K, n, R + 1)``. Of the last rollout the
    first half belongs to the entry before, ``previous``.
    """

    entries: tuple[str, ...]
    previous: tuple[str, ...]
    values: torch.Tensor
    lengths: NDArray[np.int64]

    def __post_init__(self) -> None:
        shape = self.values.shape[:3]
        if shape[1] != len(self.entries) or shape != self.lengths.shape:
            raise ValueError(f"{len(self.entries)} entries, values of {tuple(shape)}, lengths of {self.lengths.shape}")

    def __len__(self) -> int:
        return len(self.entries)

    def started(self, seed: int) -> list[list[Array]]:
        """The rollouts from the start of seed number ``seed``, for each entry."""
        values = self.values[seed].float().numpy()
        counts = self.lengths[seed, :, :-1].tolist()
        return [
            [rows[: max(1, n)] for rows, n in zip(own, steps, strict=False)]
            for own, steps in zip(values, counts, strict=True)
        ]

    def reference(self, seed: int, frame: Frame) -> tuple[EpisodeReference, list[str]]:
        """These rollouts in the place of training episodes, and the entry of each."""
        found = [(entry, rows) for entry, some in zip(self.entries, self.started(seed), strict=True) for rows in some]
        reference = EpisodeReference.of_rows(frame, [rows for _, rows in found])
        return reference, [entry for entry, _ in found]

    def speed(self, seed: int) -> Array64:
        """The mean of the feature under every entry, all its columns together."""
        return np.array([np.mean([rows.mean() for rows in some]) for some in self.started(seed)], dtype=np.float64)

    def stays(self, seed: int) -> Array64:
        """The part of the time that each entry was played after it was switched to."""
        horizon = self.values.shape[3]
        half = horizon // 2
        lasted = np.maximum(self.lengths[seed, :, -1] - half, 0)
        found: Array64 = lasted / max(1, horizon - half)
        return found

    @cached_property
    def falls(self) -> bool:
        """Whether any rollout ended early."""
        return bool((self.lengths < self.values.shape[3]).any())

    @cached_property
    def played(self) -> float:
        """The part of the time that rollouts from the start lasted, of all entries."""
        return float(np.minimum(self.lengths[:, :, :-1] / self.values.shape[3], 1.0).mean())


def library(arena: Arena) -> list[str]:
    """The entries for a policy."""
    reference, matches = arena.reference, arena.agent.method.matches
    if matches != "distribution":
        reached = reference.totals if matches == "return" else reference.finals
        if reached.shape[1] > 1:  # numbers of several features go together only where an episode shows them
            return [episode_entry(i) for i in far_apart(reference, EPISODES)]
        low, high = float(reached.min()), float(reached.max())
        return [f"{matches}({_short(x)})" for x in np.unique(np.linspace(low, high, NUMBERS))]
    found = [episode_entry(i) for i in far_apart(reference, EPISODES)]
    if reference.frame.bins.dimensions > 1:
        return found
    low, high = np.quantile(reference.values, (0.01, 0.99))
    spread = float(reference.spread[0])
    means = np.linspace(low, high, MEANS)
    return found + [
        f"shuffled(normal({_short(mean)}, {_short(width * spread)}), 0)" for mean in means for width in WIDTHS
    ]


def _short(value: float) -> str:
    """Four digits are enough, whatever the feature's unit."""
    return number(float(f"{value:.4g}"))


def rehearse(
    arena: Arena,
    *,
    known: Repertoire | None = None,
    keep: Callable[[Repertoire], None] | None = None,
    bar: Bar | None = None,
) -> Repertoire:
    """Roll a policy out under its library; entries that are known already are not played again.

    ``keep`` is called whenever some entries are done, so that little is lost when it is interrupted.
    """
    wanted = library(arena)
    done = [] if known is None else [entry for entry in known.entries if entry in wanted]
    missing = [entry for entry in wanted if entry not in done]
    found, horizon = known, arena.reference.frame.horizon
    progress = None if bar is None or not missing else bar("repertoire")
    total, reached = 2 * len(missing) * horizon, 0
    for first in range(0, len(missing), TOGETHER):
        entries = missing[first : first + TOGETHER]

        def step(_: int, count: int = len(entries)) -> None:
            nonlocal reached
            reached += count
            if progress is not None:
                progress(min(reached, total), total)

        previous = _previous(entries, wanted)
        more = _played(arena, entries, previous, step)
        found = more if found is None else _joined(found, more)
        reached = 2 * (first + len(entries)) * horizon
        if keep is not None:
            keep(found)
    assert found is not None
    return found


def _previous(entries: Sequence[str], library: Sequence[str]) -> list[str]:
    """The entry before each, where it is switched to: one half of the library away, always the same."""
    return [library[(library.index(entry) + len(library) // 2) % len(library)] for entry in entries]


def _played(arena: Arena, entries: Sequence[str], previous: Sequence[str], step: Callable[[int], None]) -> Repertoire:
    horizon, stack = arena.reference.frame.horizon, len(arena.agent.seeds)
    half = horizon // 2
    alone: list[Program] = [(ProgramPart(entry, horizon),) for entry in entries]
    after: list[Program] = [
        (ProgramPart(before, half), ProgramPart(entry, horizon - half))
        for before, entry in zip(previous, entries, strict=True)
    ]
    targets = [arena.run.target(np.zeros((1, arena.reference.frame.bins.dimensions)))] * len(entries)
    rolled = arena.play([[program] * stack for program in alone], targets, ROLLOUTS, 0, step)
    switched = arena.play([[program] * stack for program in after], targets, 1, ROLLOUTS, step)
    dimensions = arena.reference.frame.bins.dimensions
    values = np.zeros((stack, len(entries), ROLLOUTS + 1, horizon, dimensions), np.float32)
    lengths = np.zeros((stack, len(entries), ROLLOUTS + 1), np.int64)
    for n, (some, one) in enumerate(zip(rolled, switched, strict=True)):
        for k in range(stack):
            for e, (rows, _) in enumerate((*some[k], *one[k])):
                values[k, n, e, : len(rows)], lengths[k, n, e] = rows, len(rows)
    return Repertoire(tuple(entries), tuple(previous), torch.from_numpy(values), lengths)


def _joined(one: Repertoire, other: Repertoire) -> Repertoire:
    return Repertoire(
        one.entries + other.entries,
        one.previous + other.previous,
        torch.cat([one.values, other.values], 1),
        np.concatenate([one.lengths, other.lengths], axis=1),
    )


# -- in the run folder ----------------------------------------------------------------------------------------------


def write_repertoire(arena: Arena, repertoire: Repertoire) -> None:
    """Keep it, with what it is of: entries, weights, temperature, environment, versions."""
    facts = {"entries": json.dumps(repertoire.entries), "previous": json.dumps(repertoire.previous)}
    tensors = {"values": repertoire.values.contiguous(), "lengths": torch.from_numpy(repertoire.lengths)}
    arena.run.folder.write_repertoire(tensors, **facts, **_circumstances(arena), versions=json.dumps(versions()))


def read_repertoire(arena: Arena) -> Repertoire | None:
    """The repertoire of a run, where it has one of this policy as it acts now."""
    tensors = arena.run.folder.repertoire()
    if tensors is None:
        return None
    facts = arena.run.folder.repertoire_facts()
    if any(facts.get(name) != value for name, value in _circumstances(arena).items()):
        return None
    entries, previous = (tuple(json.loads(facts[name])) for name in ("entries", "previous"))
    return Repertoire(entries, previous, tensors["values"], tensors["lengths"].numpy())


def _circumstances(arena: Arena) -> dict[str, str]:
    now = arena.now
    return {"temperature": f"{now.temperature:g}", "environment": now.environment, "seeds": json.dumps(now.seeds)}
