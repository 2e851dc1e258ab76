"""What the policy is told at every step of a rollout.

``nominal`` is the paper: the target's own z_t, whatever was achieved. ``remaining`` tells what remains of the target after
what was achieved. ``planned`` projects a histogram on the nearest mixture of training episodes that can be played one
after the other and tells each stretch its episode's own z_t: an unseen distribution is out of distribution for the
network, its projection is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.errors import TargetError
from himatch.methods.baselines import TaskMethod
from himatch.methods.paper import LearnedMethod, Method
from himatch.rollout.context import ALL, Some
from himatch.statistics.aggregators import Additive, Aggregator, Histogram
from himatch.statistics.information import InformationStatistic
from himatch.targets import Context, EpisodeReference, Target
from himatch.targets.distribution import apportion
from himatch.types import Array, Trajectory

Conditioning = Literal["nominal", "remaining", "planned"]
CONDITIONINGS: tuple[Conditioning, ...] = get_args(Conditioning)


class Feed:
    """Tells every rollout its z, step by step; this one tells nothing (behavioural cloning).

    Rollouts are ``(K, B)``, and each belongs to one of the targets. A ``clock`` says at which step each is, ``(K, B)``,
    or ``(1, 1)`` where all are at the same.
    """

    wants_features = False
    """Whether ``achieved`` must be called after every step."""
    target: Tensor | None = None
    """The number of every rollout's target, ``(K, B)``."""

    def z(self, clock: Tensor) -> Tensor | None:
        """Statistics for this step, ``(K, B, k)``, or ``None`` for a policy that is told none."""
        return None

    def targets(self, clock: Tensor) -> Tensor | None:
        """States of each of the n targets that a learned statistic reads at this step, ``(n, S, obs)``."""
        return None

    def achieved(self, phi: Array, rollouts: Some = ALL) -> None:
        """Take note of the feature of the step that these rollouts just made, ``(K, b, d)``."""

    def reset(self, rollouts: Some = ALL) -> None:
        """Begin again at step 0."""

    def take(self, other: Feed, rollouts: Some) -> None:
        """Tell these rollouts what ``other``, a feed for them alone, would; clocks and what was achieved stay theirs.

        For rollouts that each have a target of their own.
        """


class Tabled(Feed):
    """Rows of every target by the clock, ``(n, T, ...)``; past its end a target's last row holds."""

    target: Tensor

    def __init__(self, tables: Sequence[Array], target: Tensor) -> None:
        longest = max(len(table) for table in tables)
        padded = np.stack([table[np.minimum(np.arange(longest), len(table) - 1)] for table in tables])
        self.table = torch.from_numpy(np.ascontiguousarray(padded, dtype=np.float32)).to(target.device)
        self.target = target

    def take(self, other: Feed, rollouts: Some) -> None:
        """Put its rows in place of theirs."""
        assert isinstance(other, Tabled)
        longest = max(self.table.shape[1], other.table.shape[1])
        clock = torch.arange(longest, device=self.target.device)
        self.table, rows = (table[:, clock.clamp(max=table.shape[1] - 1)] for table in (self.table, other.table))
        self.table[self.target[0, rollouts]] = rows[other.target[0]]


class Scheduled(Tabled):
    """Tables of z, one for each target."""

    def z(self, clock: Tensor) -> Tensor:
        """The row of every rollout's table for its step."""
        return self.table[self.target, clock.clamp(max=self.table.shape[1] - 1)]


class Remaining(Feed):
    """Closed conditioning: the target's total over its T steps, minus what was achieved, as the aggregator says it.

    In double precision: late in an episode little is left of large totals. On a CPU, where features are computed.
    """

    wants_features = True
    target: Tensor

    def __init__(self, values: Sequence[Array], aggregator: Additive, target: Tensor) -> None:
        self.aggregator, self.target = aggregator, target
        owner = target.cpu().numpy()
        self.lengths = np.array([[float(len(v))] for v in values])[owner]
        self.totals = np.stack([aggregator.contributions(v).sum(axis=0) for v in values])[owner]
        self.whole = np.stack([aggregator(v)[0] for v in values])[owner]
        self.steps, self.done = np.zeros_like(self.lengths), np.zeros_like(self.totals)

    def reset(self, rollouts: Some = ALL) -> None:
        """Nothing is achieved yet."""
        self.steps[:, rollouts] = self.done[:, rollouts] = 0.0

    def achieved(self, phi: Array, rollouts: Some = ALL) -> None:
        """Add a step."""
        added = self.aggregator.contributions(phi.reshape(-1, phi.shape[-1]))
        self.done[:, rollouts] += added.reshape(*phi.shape[:-1], added.shape[1])
        self.steps[:, rollouts] += 1

    def z(self, clock: Tensor) -> Tensor:
        """The statistic of what remains; the whole target's once nothing does."""
        rest = self.aggregator.of_total(self.totals - self.done, self.lengths - self.steps)
        told = np.where(np.isnan(rest), self.whole, rest)
        return torch.from_numpy(told.astype(np.float32)).to(self.target.device)

    def take(self, other: Feed, rollouts: Some) -> None:
        """From the other's totals what they achieved since their episodes began is taken, too."""
        assert isinstance(other, Remaining)
        self.lengths[:, rollouts], self.totals[:, rollouts] = other.lengths, other.totals
        self.whole[:, rollouts] = other.whole


class Imitated(Tabled):
    """Learned statistics: windows of the demonstrations' states, by the clock of each target's first rollout."""

    def __init__(self, states: Sequence[Array], method: LearnedMethod, context: int, target: Tensor) -> None:
        super().__init__(states, target)
        _, self.count = method.codes_and_states(context)
        self.literal, self.context = method.literal, context
        self._targets = torch.arange(len(states), device=target.device).unsqueeze(1)
        self._first = (target[0] == self._targets).int().argmax(1)

    def targets(self, clock: Tensor) -> Tensor:
        """The window that starts at the present, or for the literal reading at the context's first step."""
        first = clock.expand_as(self.target)[0, self._first]
        if self.literal:
            first = (first - self.context + 1).clamp(min=0)
        rows = first.unsqueeze(1) + torch.arange(self.count, device=first.device)
        return self.table[self._targets, rows.clamp(max=self.table.shape[1] - 1)]


class Embedded(Feed):
    """Embeddings of whole demonstrations, ``(K, n, m)``: each rollout is told its target's, all the time."""

    def __init__(self, codes: Tensor, target: Tensor) -> None:
        self.target = target
        self.told = codes.to(target.device)[torch.arange(len(codes), device=target.device).unsqueeze(1), target]

    def z(self, clock: Tensor) -> Tensor:
        """The same at every step."""
        return self.told

    def take(self, other: Feed, rollouts: Some) -> None:
        """Its embeddings in place of theirs."""
        assert isinstance(other, Embedded)
        self.told[:, rollouts] = other.told


def plan(target: Target, reference: EpisodeReference, aggregator: Histogram, steps: int) -> Array:
    """The z table of ``planned``: the mixture's episodes in turn, each telling its own z_t."""
    parts = reference.schedule(target, steps)
    bins, starts = reference.context.bins, np.concatenate([[0], np.cumsum(reference.lengths)])
    shares = apportion([share for _, share in parts], steps)
    ends = np.cumsum(shares)
    rows: list[Array] = []
    for (episode, _), end, share in zip(parts, ends, shares, strict=True):
        clock = np.arange(end - share, end)
        indices = reference.indices[starts[episode] : starts[episode + 1]]
        centres = np.array(bins.low) + (indices + 0.5) * bins.widths
        z = aggregator(centres.astype(np.float32))
        rows.append(z[np.minimum(clock, len(z) - 1)])
    return np.concatenate(rows)


def make_feed(
    conditioning: Conditioning,
    statistic: object,
    method: Method,
    context: int,
    targets: Sequence[Target],
    frame: Context | None,
    rollouts: NDArray[np.int64],
    device: torch.device,
    reference: EpisodeReference | None = None,
    embed: Callable[[Sequence[Trajectory]], Tensor] | None = None,
) -> Feed:
    """The feed for rollouts ``(K, B)`` of target numbers; ``embed`` is how the policy embeds demonstrations.

    A conditioning that the policy would not hear is refused, so that no result is called by what was not done.
    """
    if conditioning not in CONDITIONINGS:
        raise TargetError(f"conditioning must be one of {', '.join(CONDITIONINGS)}, got {conditioning!r}")
    if why := objection(conditioning, statistic, method):
        raise TargetError(why)
    target = torch.from_numpy(rollouts).to(device)
    if isinstance(statistic, InformationStatistic) and frame is not None:
        return _told(conditioning, statistic.aggregator, targets, frame, target, reference)
    if isinstance(method, LearnedMethod):
        return Imitated([demonstrated(t).observations for t in targets], method, context, target)
    if isinstance(method, TaskMethod):
        assert embed is not None
        return Embedded(embed([demonstrated(t) for t in targets]), target)
    return Feed()


def objection(conditioning: str, statistic: object, method: Method) -> str | None:
    """Why a policy would not hear a conditioning; nothing where it would."""
    if conditioning == "nominal":
        return None
    if not isinstance(statistic, InformationStatistic):
        return (
            f"{conditioning} conditioning is for policies that are told a statistic of a feature, and {method.name} is "
            "not; use nominal"
        )
    aggregator = statistic.aggregator
    if conditioning == "planned":
        laid_out = isinstance(aggregator, Histogram)
        return None if laid_out else "planned conditioning lays out histograms; this policy is told another statistic"
    if not isinstance(aggregator, Additive):
        return (
            f"remaining conditioning takes what was achieved from a total, and the statistic {aggregator.kind!r} has "
            "none; use nominal"
        )
    if getattr(aggregator, "gamma", 1.0) != 1.0:
        return "remaining conditioning subtracts what was achieved, which needs gamma 1"
    return None


def _told(
    conditioning: Conditioning,
    aggregator: Aggregator,
    targets: Sequence[Target],
    frame: Context,
    target: Tensor,
    reference: EpisodeReference | None,
) -> Feed:
    """What is told of a fixed statistic."""
    if conditioning == "planned" and isinstance(aggregator, Histogram):
        if reference is None:
            raise TargetError("planned conditioning needs the training episodes, which this run does not hold")
        return Scheduled(_of_each(lambda t: plan(t, reference, aggregator, len(t.values(frame))), targets), target)
    if conditioning == "remaining" and isinstance(aggregator, Additive):
        return Remaining(_of_each(lambda t: t.values(frame), targets), aggregator, target)
    return Scheduled(_of_each(lambda t: aggregator(t.values(frame)), targets), target)


def _of_each(found: Callable[[Target], Array], targets: Sequence[Target]) -> list[Array]:
    """What is found of every target; of one that is given several times only once, for a plan takes its time."""
    known: dict[int, Array] = {}
    for target in targets:
        if id(target) not in known:
            known[id(target)] = found(target)
    return [known[id(target)] for target in targets]


def demonstrated(target: Target) -> Trajectory:
    """The episode that a target shows, for policies that imitate one."""
    found = target.demonstration()
    if found is None:
        raise TargetError(f"this policy imitates demonstrations, and {target.name} is none; give demo(FILE, EPISODE)")
    return found
