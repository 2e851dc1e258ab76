"""The generic conditioners: how a target becomes the z of every step of a rollout.

``nominal`` is the paper: the target's own z_t, whatever was achieved. ``remaining`` is the statistic of what remains of
the target after what was achieved. ``planned`` projects a histogram on the nearest episode mixture that can be played
in time and gives each stretch its episode's own z_t: an unseen distribution is out of distribution for the network, its
projection is not. It may be laid out over stretches of episodes, and made again on the way.
``rehearsed`` plays a program that was tried in a simulator beforehand. ``waypoints`` gives goals one way-point after
the other. Methods whose z is no statistic of a feature bring a conditioner of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.errors import TargetError
from himatch.methods import Agent, Method
from himatch.methods.conditioner import ALL, Conditioner, Some, padded, replaced_rows
from himatch.rollout.environment import environment_name
from himatch.rollout.nominal import own_z
from himatch.rollout.plans import EPISODES, Mixer, Plans, shared_plan
from himatch.rollout.programs import REMAINING, TARGET, Entries, Program, ProgramPart, Shares, read, scheduled
from himatch.rollout.replanned import Replanned
from himatch.rollout.waypoints import WayPoints
from himatch.runs.programs import Circumstances
from himatch.runs.run import Run
from himatch.statistics.aggregators import Additive
from himatch.statistics.information import Statistic
from himatch.targets import EpisodeReference, Frame, Target
from himatch.types import Array

Conditioning = Literal["nominal", "remaining", "planned", "rehearsed", "waypoints"]
Found = TypeVar("Found")
CONDITIONINGS: tuple[Conditioning, ...] = get_args(Conditioning)


class Scheduled(Conditioner):
    """A table of z for each target, read by the clock; past its end a target's last row holds."""

    target_of: Tensor

    @shaped
    def __init__(self, tables: Sequence[Float[Array, "_ k"]], target_of: Int[Tensor, "#K B"]) -> None:
        self.table, self.target_of = padded(tables, target_of.device), target_of

    @shaped
    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B k"]:
        """The row of every rollout's table for its step."""
        return self.table[self.target_of, clock.clamp(max=self.table.shape[1] - 1)]

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Put its rows in place of theirs."""
        assert isinstance(other, type(self))
        here, there = self.target_of[:, rollouts].flatten(), other.target_of.flatten()
        self.table = replaced_rows(self.table, other.table, here, there)


class Remaining(Conditioner):
    """The target's total over its T steps, minus what was achieved, as the aggregator puts it.

    Where targets follow one another, what one of them lacks when its time is over is not made up for in that of the
    next: whatever was achieved by then counts as all that lay before.

    In double precision: late in an episode little is left of large totals. On a CPU, where features are computed.
    """

    wants_features = True
    target_of: Tensor

    @shaped
    def __init__(
        self, targets: Sequence[Sequence[Float[Array, "_ d"]]], aggregator: Additive, target_of: Int[Tensor, "#K B"]
    ) -> None:
        """``targets`` are the values of every target, stretch by stretch."""
        self.aggregator, self.target_of = aggregator, target_of
        values = [np.concatenate(stretches) for stretches in targets]
        self.on_host = on_host = target_of.cpu().numpy()
        self.lengths = np.array([[float(len(v))] for v in values])[on_host]
        self.totals = np.stack([aggregator.contributions(v).sum(axis=0) for v in values])[on_host]
        self.whole = np.stack([aggregator(v)[0] for v in values])[on_host]
        self.borders = [_borders(stretches, aggregator) for stretches in targets]
        self.steps, self.done = np.zeros_like(self.lengths), np.zeros_like(self.totals)
        self.excess = np.zeros_like(self.totals)  # of what was achieved over what lay before the present stretch

    def reset(self, rollouts: Some = ALL) -> None:
        """Nothing is achieved yet."""
        self.steps[:, rollouts] = self.done[:, rollouts] = self.excess[:, rollouts] = 0.0

    @shaped
    def achieved(self, phi: Float[Array, "K b d"], rollouts: Some = ALL) -> None:
        """Add a step."""
        added = self.aggregator.contributions(phi.reshape(-1, phi.shape[-1]))
        self.done[:, rollouts] += added.reshape(*phi.shape[:-1], added.shape[1])
        self.steps[:, rollouts] += 1
        for number, borders in enumerate(self.borders):
            for step, before in borders:
                here = (self.on_host == number) & (self.steps[..., 0] == step)
                self.excess[here] = self.done[here] - before

    @shaped
    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B k"]:
        """The statistic of what remains; the whole target's once nothing does."""
        rest = self.aggregator.of_total(self.totals - (self.done - self.excess), self.lengths - self.steps)
        z = np.where(np.isnan(rest), self.whole, rest)
        return torch.from_numpy(z.astype(np.float32)).to(self.target_of.device)

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """What these rollouts achieved since their episodes began counts against the new totals too."""
        assert isinstance(other, type(self))
        self.lengths[:, rollouts], self.totals[:, rollouts] = other.lengths, other.totals
        self.whole[:, rollouts] = other.whole
        self.excess[:, rollouts] = 0.0
        own = self.on_host[0]
        for rollout, new in zip(np.arange(len(own))[rollouts], other.on_host[0], strict=True):
            self.borders[own[rollout]] = other.borders[new]
            for step, before in other.borders[new]:
                here = self.steps[:, rollout, 0] >= step
                self.excess[here, rollout] = self.done[here, rollout] - before


def _borders(stretches: Sequence[Array], aggregator: Additive) -> list[tuple[int, NDArray[np.float64]]]:
    """Where one stretch follows another, and the total of what lies before."""
    totals = np.cumsum([aggregator.contributions(v).sum(axis=0) for v in stretches], axis=0)
    steps = np.cumsum([len(v) for v in stretches])
    return list(zip(steps[:-1].tolist(), totals[:-1], strict=True))


class Rehearsed(Conditioner):
    """Tables of programs; rollouts whose program is ``remaining`` are conditioned on what remains instead."""

    target_of: Tensor

    def __init__(self, scheduled: Scheduled, remaining: Remaining | None, follows: Bool[Tensor, "K B"]) -> None:
        self.scheduled, self.remaining, self._follows = scheduled, remaining, follows
        self.target_of = scheduled.target_of
        self.wants_features = remaining is not None and bool(follows.any())

    def reset(self, rollouts: Some = ALL) -> None:
        """Nothing is achieved yet."""
        if self.remaining is not None:
            self.remaining.reset(rollouts)

    def achieved(self, phi: Float[Array, "K b d"], rollouts: Some = ALL) -> None:
        """Count a step."""
        if self.remaining is not None:
            self.remaining.achieved(phi, rollouts)

    @shaped
    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B k"]:
        """The row of every rollout's program, or what remains."""
        planned = self.scheduled.z(clock)
        if self.remaining is None or not self.wants_features:
            return planned
        return torch.where(self._follows.unsqueeze(-1), self.remaining.z(clock), planned)

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Both parts of theirs."""
        assert isinstance(other, type(self))
        self.scheduled.take(other.scheduled, rollouts)
        if self.remaining is not None and other.remaining is not None:
            self.remaining.take(other.remaining, rollouts)
        self._follows[:, rollouts] = other._follows
        self.wants_features = self.remaining is not None and bool(self._follows.any())


def make_conditioner(
    conditioning: Conditioning,
    run: Run,
    agent: Agent,
    targets: Sequence[Target],
    target_of: NDArray[np.int64],
    now: Circumstances | None = None,
    plans: Plans = EPISODES,
    *,
    beside: bool = False,
) -> Conditioner:
    """The conditioner of a policy; ``target_of`` ``(K, B)`` says which of the targets each rollout follows.

    A conditioning that the policy would ignore is refused, so that no result is called by what was not done. ``now`` is
    how the policy acts, for programs that were rehearsed: by default as its run says. Plans are made again in the loop,
    or ``beside`` one that must not wait.
    """
    if conditioning not in CONDITIONINGS:
        raise TargetError(f"conditioning must be one of {', '.join(CONDITIONINGS)}, got {conditioning!r}")
    if why := objection(conditioning, run.statistic, agent.method):
        raise TargetError(why)
    plans.check(conditioning, run.statistic)
    on_device = torch.from_numpy(target_of).to(run.normalizers.state_mean.device)
    own = agent.conditioner(targets, run.normalizers, on_device)
    if own is not None:
        return own
    reference = run.reference()
    if conditioning == "waypoints":
        return WayPoints(run.statistic, targets, reference, on_device, len(agent.seeds))
    if conditioning == "rehearsed":
        how = now or Circumstances(run.temperature, environment_name(run, None), agent.digests())
        found = [run.programs.rehearsal(target, reference.frame, how, plans.within)["programs"] for target in targets]
        each = [[one[str(seed)] for seed in agent.seeds] for one in found]
        if plans.within == "pool":
            return of_shares(run, [[Shares.from_json(one) for one in own] for own in each], targets, target_of)
        return of_programs(run, [[read(one) for one in own] for own in each], targets, on_device)
    if plans.within == "pool":
        shares = _of_each(lambda target: [shared_plan(target, reference)] * len(agent.seeds), targets)
        return of_shares(run, shares, targets, target_of)
    return of_statistic(
        conditioning, run.statistic, targets, reference.frame, on_device, reference, plans, beside=beside
    )


def of_programs(
    run: Run,
    programs: Sequence[Sequence[Program]],
    targets: Sequence[Target],
    target_of: Int[Tensor, "#K B"],
    *,
    feedback: bool = True,
) -> Rehearsed:
    """The conditioner of ``rehearsed``: ``programs[n][k]`` is what seed k plays under target n.

    Without ``feedback`` it cannot take programs of what remains later on, and has less to count.
    """
    statistic, reference = run.statistic, run.reference()
    entries = Entries(statistic, reference, run.target)
    stack = len(programs[0])
    of_seed = torch.arange(stack, device=target_of.device).unsqueeze(1) * len(targets) + target_of
    each = [(program[k], target) for k in range(stack) for program, target in zip(programs, targets, strict=True)]
    alone = [program[0].entry == REMAINING for program, _ in each]
    tables = [
        entries.laid_out((ProgramPart(TARGET, program[0].steps),) if left else program, target)
        for left, (program, target) in zip(alone, each, strict=True)
    ]
    remaining = None
    if statistic.additive is not None and (feedback or any(alone)):
        stretches = [[part.values(reference.frame) for part in t.stretches(reference.frame)] for t in targets]
        remaining = Remaining(stretches, statistic.additive, target_of.expand(stack, -1))
    follows = torch.tensor(alone, device=target_of.device)[of_seed]
    return Rehearsed(Scheduled(tables, of_seed), remaining, follows)


def of_shares(
    run: Run, shares: Sequence[Sequence[Shares]], targets: Sequence[Target], target_of: NDArray[np.int64]
) -> Rehearsed:
    """The conditioner of rollouts that share targets out: ``shares[n][k]`` are what seed k has for target n."""
    programs: list[list[Program]] = []
    of: list[Target] = []
    stack = len(shares[0])
    numbers = np.broadcast_to(target_of, (stack, target_of.shape[1])).copy()
    plan_of = np.empty_like(numbers)
    for n, own in enumerate(shares):
        for k, one in enumerate(own):
            here = numbers[k] == n
            plan_of[k, here] = len(programs) + np.array(one.dealt(int(here.sum())), dtype=np.int64)
        for j in range(max(len(one.programs) for one in own)):  # a seed with fewer has no rollout of the others
            programs.append([one.programs[min(j, len(one.programs) - 1)] for one in own])
            of.append(targets[n])
    return of_programs(run, programs, of, torch.from_numpy(plan_of).to(run.normalizers.state_mean.device))


def of_statistic(
    conditioning: Conditioning,
    statistic: Statistic,
    targets: Sequence[Target],
    frame: Frame,
    target_of: Tensor,
    reference: EpisodeReference | None = None,
    plans: Plans = EPISODES,
    *,
    beside: bool = False,
) -> Conditioner:
    """The conditioner of a fixed statistic; ``target_of``, ``plans`` and ``beside`` as for :func:`make_conditioner`."""
    if conditioning == "planned":
        if reference is None:
            raise TargetError("planned conditioning needs the training episodes, which this run does not hold")
        entries = Entries(statistic, reference)
        mixer = None if plans == EPISODES else Mixer(reference, plans.stretches)
        if mixer is not None and plans.replan is not None:
            return Replanned(mixer, entries, targets, target_of, plans.replan, beside=beside)

        def planned(target: Target) -> Array:
            found = scheduled(target, reference, len(target.values(frame))) if mixer is None else mixer.program(target)
            return entries.laid_out(found, target)

        return Scheduled(_of_each(planned, targets), target_of)
    if conditioning == "remaining" and statistic.additive is not None:
        stretches = _of_each(lambda t: [part.values(frame) for part in t.stretches(frame)], targets)
        return Remaining(stretches, statistic.additive, target_of)
    return Scheduled(_of_each(lambda t: own_z(statistic, t, frame), targets), target_of)


def objection(conditioning: str, statistic: Statistic, method: Method) -> str | None:
    """Why a policy would ignore a conditioning; ``None`` where it would not."""
    if conditioning == "nominal":
        return None
    if statistic.matched is None:
        return (
            f"{conditioning} conditioning is for policies that are conditioned on a statistic of a feature, and "
            f"{method.name} is not; use nominal"
        )
    if conditioning == "rehearsed":
        return None
    if conditioning == "waypoints":
        goals = f"waypoints conditioning is for methods that take goals, and {method.name} does not"
        return None if method.matches == "goal" else goals
    if conditioning == "planned":
        other = "planned conditioning lays out histograms; this policy is conditioned on another statistic"
        return None if statistic.binned else other
    if statistic.additive is None:
        return (
            f"remaining conditioning takes what was achieved from a total, and the statistic {statistic.kind!r} has "
            "none; use nominal"
        )
    if statistic.gamma != 1.0:
        return "remaining conditioning subtracts what was achieved, which needs gamma 1"
    return None


def _of_each(found: Callable[[Target], Found], targets: Sequence[Target]) -> list[Found]:
    """What is found of every target; of one that is given several times only once, for a plan takes its time."""
    known: dict[int, Found] = {}
    for target in targets:
        if id(target) not in known:
            known[id(target)] = found(target)
    return [known[id(target)] for target in targets]
