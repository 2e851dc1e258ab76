"""The policy in a loop of the user's own: one robot or a batch, no simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.settings import whole
from himatch.errors import DataError, HimatchError, note
from himatch.methods import Agent
from himatch.rollout.conditioners import Conditioning
from himatch.rollout.expected import Expected
from himatch.rollout.limits import MARGIN, Beyond, Limits
from himatch.rollout.observations import Observation, Observations
from himatch.rollout.pace import Pace
from himatch.rollout.planner import Planner, Prepared, several_targets
from himatch.rollout.plans import EPISODES, Plans
from himatch.rollout.player import Player
from himatch.runs.run import Run
from himatch.statistics.features import Stepwise
from himatch.targets import Target, TargetLike

Action = Any
"""An array of floats, ``(act,)`` or ``(batch, act)``; of discrete actions an int, or an array of them ``(batch,)``."""


class Controller:
    """Acts step by step: ``reset()``, then ``action = act(observation)`` at every step.

    Observations are ``(obs,)``, or ``(batch, obs)`` for a batch, in which each robot has its own clock and context and,
    where several targets are given, its own target; or a mapping from the names of ``policy.columns`` to numbers.
    ``limits`` holds what every channel may be. Any thread may call ``prepare`` and ``retarget`` while another acts.
    """

    def __init__(
        self,
        run: Run,
        agent: Agent,
        target: TargetLike | Sequence[TargetLike],
        parse: Callable[[TargetLike], Target],
        *,
        batch: int | None = None,
        conditioning: Conditioning = "nominal",
        noise: int | None = None,
        temperature: float = 0.0,
        limits: Beyond = "warn",
        margin: float = MARGIN,
        rate: float | None = None,
        plans: Plans = EPISODES,
        expect: Callable[[Target], Expected | None] | None = None,
    ) -> None:
        """``agent`` holds one seed; ``parse`` makes a target of whatever a user hands over.

        ``expect`` says what is promised of a target, where anything is.
        """
        several = several_targets(target)
        batch = len(several) if batch is None and several is not None else batch
        batch = None if batch is None else whole("batch", batch)
        noise = None if noise is None else whole("noise", noise)
        if batch is not None and batch < 1:
            raise HimatchError(f"a batch holds at least one robot, got {batch}")
        if noise is not None and noise < 0:
            raise HimatchError(f"the seed of the noise must be 0 or more, got {noise}")
        self.task, self.batch, self.conditioning = run.task, batch, conditioning
        robots = batch or 1
        self.limits = Limits(run, run.columns, robots, limits, margin)
        self._observations = Observations(run, run.columns, batch, self.limits)
        self._pace, self._expect = Pace(run.rate, rate), expect
        self._planner = Planner(run, agent, parse, conditioning, temperature, plans)
        first = self._planner.prepare(target, np.arange(robots))
        self._planner.note_outside(first.targets)
        self._targets = list(first.targets)
        seed = agent.seeds[0] if noise is None else noise
        self._player = Player(agent, run.normalizers, first.conditioner, robots, seed, temperature, apart=robots > 1)
        feature = run.statistic.matched
        self._feature = None if feature is None else Stepwise(feature)
        self._last: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._moved = np.zeros(robots, bool)  # whose last step is still to be counted
        self._lock = Lock()  # held for a step or a swap, never while a target is prepared

    # -- episodes and targets -----------------------------------------------------------------------------------

    def reset(self, robots: ArrayLike | None = None) -> None:
        """Begin a new episode: all robots, or some of a batch, by their numbers or as a mask of all."""
        chosen = self._chosen(robots)
        with self._lock:
            self._player.reset(chosen)
            self._moved[chosen] = False
            self.limits.reset(chosen)
            if len(chosen) == len(self._moved):
                self._pace.reset()

    def prepare(self, target: TargetLike | Sequence[TargetLike], robots: ArrayLike | None = None) -> Prepared:
        """Everything about another target that takes time, for :meth:`retarget`: checks, the plan, z tables.

        Meant for another thread than the loop's: ``act`` goes on meanwhile. A target that the training data does not
        cover is noted.
        """
        prepared = self._planner.prepare(target, self._chosen(robots))
        self._planner.note_outside(prepared.targets)
        return prepared

    def retarget(self, target: TargetLike | Sequence[TargetLike] | Prepared, robots: ArrayLike | None = None) -> None:
        """From now on match another target; clock, context and what was achieved stay.

        The policy is conditioned as if this had been the target since the episode began: under ``nominal`` on its own z
        of the present step, under ``remaining`` on what the whole episode so far leaves of it, under ``planned`` on the
        present step of its plan. What :meth:`prepare` returned is only swapped in; anything else is prepared first.
        """
        if isinstance(target, Prepared):
            prepared = target
            if prepared.planner is not self._planner:
                raise HimatchError("this target was prepared by another controller; prepare it with this one")
            if robots is not None:
                raise HimatchError("a prepared target has its robots already; name them in prepare(target, robots)")
        else:
            prepared = self._planner.prepare(target, self._chosen(robots))
        numbers = prepared.robots.tolist()
        with self._lock:
            if numbers:
                self._player.conditioner.take(prepared.conditioner, prepared.robots)
            for robot, new in zip(numbers, prepared.targets, strict=True):
                self._targets[robot] = new
            steps = self._player.clock[0].tolist()
        for robot, new in zip(numbers, prepared.targets, strict=True):
            shown, step = new.demonstration(), steps[robot]
            if shown is not None and len(shown) <= step:
                note(
                    f"{new.name} lasts {len(shown)} steps, and this is step {step}: only its end is left to match; "
                    "reset() begins anew"
                )

    @property
    def target(self) -> Target | tuple[Target, ...]:
        """What is matched, for a batch by each robot; :meth:`retarget` changes it."""
        return self._targets[0] if self.batch is None else tuple(self._targets)

    @property
    def expected(self) -> Expected | tuple[Expected | None, ...] | None:
        """What is promised of the target, for a batch of each robot's; ``None`` where nothing is.

        Of a rehearsed target what its rehearsal found, of a plan over whole episodes what logged ones say of a single
        rollout. Found when it is read, not in the loop.
        """
        known: dict[int, Expected | None] = {}
        for target in self._targets:
            if id(target) not in known:
                known[id(target)] = None if self._expect is None else self._expect(target)
        found = tuple(known[id(target)] for target in self._targets)
        return found[0] if self.batch is None else found

    @property
    def step(self) -> int | NDArray[np.int64]:
        """How many actions were given since the last reset, for a batch to each robot, ``(batch,)``."""
        steps: NDArray[np.int64] = self._player.clock[0].cpu().numpy().copy()
        return int(steps[0]) if self.batch is None else steps

    @property
    def violations(self) -> dict[str, int]:
        """How often each channel was beyond its limits since the controller was made, of those that were."""
        return self.limits.violations

    # -- steps --------------------------------------------------------------------------------------------------

    def act(self, observation: Observation, reward: ArrayLike | None = None, *, time: float | None = None) -> Action:
        """The action for this observation, in the task's range; of discrete ones its number, ``(batch,)`` for a batch.

        ``reward`` is that of the previous step; only ``remaining`` conditioning, and plans that are made again, on a
        feature that uses rewards need it. ``time``, in seconds, lets the rate be compared with that of the data.
        """
        with self._lock:
            now = None if time is None else self._pace.checked(time)
            rows = self._observations.rows(observation)
            self._account(reward)
            if now is not None:
                self._pace.tick(now)
            with torch.inference_mode():
                chosen = self._player.act(torch.from_numpy(rows)[None])
            actions = chosen[0].float().cpu().numpy().copy()
            if self._player.conditioner.wants_features:
                self._last = rows, actions.copy()  # the caller may write over the actions
                self._moved[:] = True
        if self.task.discrete is not None:
            numbers = self.task.discrete.numbers(actions)
            return numbers if self.batch is not None else int(numbers[0])
        return actions if self.batch is not None else actions[0]

    def _account(self, reward: ArrayLike | None) -> None:
        """Count what the previous step achieved, of the robots that are in the same episode still."""
        going = np.flatnonzero(self._moved)
        if self._feature is None or self._last is None or not len(going):
            return
        states, actions = self._last
        try:
            rewards = None if reward is None else np.broadcast_to(np.asarray(reward, np.float32), len(states))[going]
        except (TypeError, ValueError):
            raise HimatchError(f"expected one reward, or {len(states)} for the batch, got {reward!r}") from None
        if rewards is not None and not np.isfinite(rewards).all():
            raise HimatchError("the reward holds NaN or infinity; what was achieved cannot be counted")
        try:
            phi = self._feature(states[going], actions[going], rewards)
        except DataError as reason:
            if reward is None:
                raise HimatchError(
                    f"what was achieved of {self._feature.feature.name!r} is counted, which needs the reward of the "
                    "previous step: act(observation, reward)"
                ) from reason
            raise
        self._player.conditioner.achieved(phi[None], going)
        self._moved[:] = False

    def _chosen(self, robots: ArrayLike | None) -> NDArray[np.int64]:
        """Numbers of the robots that are meant."""
        everyone = np.arange(self.batch or 1)
        if robots is None:
            return everyone
        try:
            return np.atleast_1d(everyone[np.asarray(robots) if np.size(robots) else []])
        except IndexError:
            raise HimatchError(
                f"robots are numbers below {len(everyone)}, or a mask of {len(everyone)}, got {robots!r}"
            ) from None
