"""A trial: rollouts of every seed under some targets while they are played, and what they score so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.evaluation.bounds import Measured, score_bound
from himatch.evaluation.conditioned import Conditioned, Recorder
from himatch.evaluation.kept import KeptRollouts
from himatch.evaluation.recorded import RecordedAt, recorded
from himatch.evaluation.result import MatchResult
from himatch.methods import Agent
from himatch.rollout import Conditioning, OngoingRollouts, Player, make_conditioner
from himatch.rollout.checks import check_target, note_outside
from himatch.rollout.environment import Environment, environment_name, simulator_for
from himatch.rollout.plans import EPISODES, Plans
from himatch.runs.programs import Circumstances
from himatch.runs.run import Run
from himatch.simulation.replay import Replay
from himatch.targets import Demonstration, EpisodeReference, Lasting, Mixture, Samples, Successive, Target


class Trial:
    """Rollouts of every seed of an agent under some targets, E of each, compared on some features.

    ``starts`` ``(targets, E)`` seed their initial states. ``step`` until ``over``, inside ``threads``; then ``close``.
    """

    def __init__(
        self,
        run: Run,
        agent: Agent,
        targets: Sequence[Target],
        features: Sequence[str],
        starts: NDArray[np.int64],
        replay: Replay,
        *,
        conditioning: Conditioning = "nominal",
        plans: Plans = EPISODES,
        env: Environment | None = None,
        threads: int = 0,
        temperature: float = 0.0,
        mixtures: bool = True,
    ) -> None:
        self.run, self.agent, self.targets = run, agent, list(targets)
        self.conditioning, self.plans = conditioning, plans
        self._with_mixtures = mixtures
        self._replay, self._starts = replay, starts
        stack, self._episodes = len(agent.seeds), starts.shape[1]
        self.references = [run.reference(feature) for feature in features]
        self._target_of = np.tile(np.repeat(np.arange(len(targets)), self._episodes), (stack, 1))
        self._now = Circumstances(temperature, environment_name(run, env), agent.digests())
        conditioner = make_conditioner(conditioning, run, agent, targets, self._target_of, self._now, plans)
        self._mixtures: list[list[Mixture | None]] | None = self._nearest()
        self._outside = self._not_covered()
        player = Player(agent, run.normalizers, conditioner, self._target_of.shape[1], replay.seed, temperature)
        self.simulator = simulator_for(run, agent.dims, self._target_of.size, env, threads)
        self._recorder = Recorder(player, range(0, self._target_of.shape[1], self._episodes))
        self.player, self.threads = player, player.threads
        begin = np.tile(starts.ravel(), (stack, 1))
        try:
            self.ongoing = OngoingRollouts(player, self.simulator, self._lengths(), begin, run.statistic.matched)
        except Exception:
            self.close()
            raise
        self.since = 0
        """The step from which on the present target holds."""
        self._before: list[Lasting] = []

    @property
    def over(self) -> bool:
        """Whether no rollout goes on."""
        return self.ongoing.over

    def step(self) -> None:
        """One step of every rollout that goes on."""
        self.ongoing.step()
        self._recorder.step()

    def close(self) -> None:
        """Free the simulations."""
        self.simulator.close()

    # -- another target -----------------------------------------------------------------------------------------

    def retarget(self, target: Target) -> None:
        """From the next step on another target for all rollouts of a trial that has a single one.

        A distribution follows the one before: the target is then that for the steps made, and this one for the rest. A
        return or goal is one of the whole episode, so it takes the place of the one before from the beginning.
        """
        (present,) = self.targets
        before, since, made = self._before, self.since, self.ongoing.steps
        wanted, alone = target, target
        if made and present.matches == target.matches == "distribution":
            if made > since:
                before = [*before, self._past(present, since, made)]
            wanted, since = Successive((*before, target)), made
        check_target(self.run, self.agent.dims, wanted)
        # A program is one for a whole episode: the rest of the target's own is played.
        conditioned = alone if self.conditioning == "rehearsed" else wanted
        conditioner = make_conditioner(
            self.conditioning, self.run, self.agent, [conditioned], self._target_of, self._now, self.plans
        )
        self.targets, self._before, self.since = [wanted], before, since
        self._mixtures, self._outside = None, self._not_covered()  # a mixture takes its time, and robots would wait
        self.player.conditioner.take(conditioner)
        self.ongoing.last(self._lengths())

    @property
    def present(self) -> Target:
        """The part of a trial's single target that holds now, laid out in the steps that are left for it."""
        (target,) = self.targets
        if not self._before or not isinstance(target, Successive):
            return target
        part, frame = target.parts[-1], self.references[0].frame
        rest = replace(frame, horizon=frame.horizon - self.since)
        return part if isinstance(part, Lasting) else Lasting(part, len(part.values(rest)))

    def _past(self, target: Target, since: int, made: int) -> Lasting:
        """What was asked for in these steps."""
        part = target.parts[-1] if self._before and isinstance(target, Successive) else target
        name = f"({part.name})" if isinstance(part, Successive | Lasting) else part.name
        shown = target.demonstration()
        if shown is not None:
            return Lasting(Demonstration(shown[since:made], name), made - since)
        return Lasting(Samples(target.values(self.references[0].frame)[since:made], name, made - since), made - since)

    def _lengths(self) -> NDArray[np.int64]:
        frame = self.references[0].frame
        found: NDArray[np.int64] = np.array([len(target.values(frame)) for target in self.targets])[self._target_of]
        return found

    def _nearest(self) -> list[list[Mixture | None]]:
        """The episode mixture nearest to each target, for each feature."""
        return [_mixtures(self.targets, reference, self._with_mixtures) for reference in self.references]

    def _not_covered(self) -> list[list[float]]:
        return [[reference.support(target).outside for target in self.targets] for reference in self.references]

    # -- what they score ----------------------------------------------------------------------------------------

    def results(
        self, recorded_at: RecordedAt = "t", keep: Mapping[str, Any] | None = None, *, final: bool = True
    ) -> list[list[MatchResult]]:
        """Of what was played so far: for each feature the result of every target.

        With ``keep`` they hold the rollouts as episodes, and what it says of who acted. Those that are not ``final``
        are quickly found: without what the first rollout was conditioned on, nor the mixture of a new target.
        """
        rollouts = self.ongoing.so_far
        if final and self._mixtures is None:
            self._mixtures = self._nearest()
        mixtures = self._mixtures or [[None] * len(self.targets) for _ in self.references]
        results: list[list[MatchResult]] = [[] for _ in self.references]
        for number, target in enumerate(self.targets):
            place = slice(number * self._episodes, (number + 1) * self._episodes)
            stack = range(len(self.agent.seeds))
            played = [[rollouts.trajectory(k, b) for b in range(place.start, place.stop)] for k in stack]
            measured = Measured([[recorded(rollout, recorded_at) for rollout in row] for row in played])
            kept = None
            if keep is not None:
                facts = {**_acting(self.run, self.agent, self._now), "env_id": self._replay.env_id, **keep}
                rows = tuple(tuple(row) for row in played)
                kept = KeptRollouts(self.run, self._replay.env_id, rows, tuple(self._starts[number].tolist()), facts)
            returns = np.array([[trajectory.total_reward for trajectory in row] for row in played])
            facts_of = zip(results, self.references, mixtures, self._outside, strict=True)
            for row, reference, nearest, outside in facts_of:
                phi, mixture = reference.frame.feature, nearest[number]
                fed = Conditioned()
                if final and phi.name == self.run.feature:
                    steps = len(played[0][0])
                    fed = self._recorder.of(number, steps, self.run.normalizers, self.run.statistic)
                row.append(
                    MatchResult(
                        target,
                        reference.frame,
                        self.plans.named(self.conditioning),
                        self.agent.seeds,
                        measured.of(phi),
                        returns,
                        rollouts.lengths[:, place],
                        rollouts.terminated[:, place],
                        played[0][0],
                        reference.spread,
                        mixture,
                        outside[number],
                        replace(self._replay, seed=int(self._starts[number, 0])),
                        bool(reference.resolved.any()),
                        *fed,
                        reference.grid,
                        tuple(score_bound(bound, measured, self.run.task) for bound in target.bounds),
                        kept,
                    )
                )
        return results


def play(trial: Trial, progress: Callable[[int], None] | None = None) -> None:
    """Step until it is over; ``progress`` is called with the steps that were made."""
    with trial.threads():
        while not trial.over:
            trial.step()
            if progress is not None:
                progress(trial.ongoing.steps)


def _acting(run: Run, agent: Agent, now: Circumstances) -> dict[str, Any]:
    """Who acts, for those who find the rollouts later."""
    data = run.description["data"]
    return {
        "run": run.folder.path.resolve().name,
        "method": agent.method.name,
        "seeds": list(agent.seeds),
        "weights_sha256": dict(now.seeds),
        "temperature": now.temperature if agent.policy.stochastic else None,
        "data": {name: data.get(name) for name in ("source", "hash")},
    }


def _mixtures(targets: Sequence[Target], reference: EpisodeReference, wanted: bool) -> list[Mixture | None]:
    """The episode mixture nearest to each target, where it is wanted; warns of targets that none comes near."""
    found = [reference.mixture(target) if wanted and target.matches == "distribution" else None for target in targets]
    for target, mixture in zip(targets, found, strict=True):
        note_outside(target, mixture, reference)
    return found
