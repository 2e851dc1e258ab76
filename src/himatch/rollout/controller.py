"""The policy in a loop of the user's own: one robot or a batch, no simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.settings import whole
from himatch.errors import DataError, HimatchError, note
from himatch.methods import Agent
from himatch.methods.conditioner import Conditioner
from himatch.rollout.checks import check_target, note_outside
from himatch.rollout.conditioners import Conditioning, make_conditioner
from himatch.rollout.player import Player
from himatch.runs.run import Run
from himatch.statistics.features import Stepwise
from himatch.targets import Target, TargetLike
from himatch.types import Trajectory

FAR = 1e6  # standard deviations


class Controller:
    """Acts step by step: ``reset()``, then ``action = act(observation)`` at every step.

    Observations are ``(obs,)``, or ``(batch, obs)`` for a batch, in which each robot has its own clock and context and,
    where several targets are given, its own target. ``reward`` is that of the previous step; only ``remaining``
    conditioning on a feature that uses rewards needs it.
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
    ) -> None:
        """``agent`` holds one seed; ``parse`` makes a target of whatever a user hands over."""
        several = _several(target)
        batch = len(several) if batch is None and several is not None else batch
        batch = None if batch is None else whole("batch", batch)
        noise = None if noise is None else whole("noise", noise)
        if batch is not None and batch < 1:
            raise HimatchError(f"a batch holds at least one robot, got {batch}")
        if noise is not None and noise < 0:
            raise HimatchError(f"the seed of the noise must be 0 or more, got {noise}")
        self._run, self._agent, self._parse = run, agent, parse
        self.task, self.batch, self.conditioning = run.task, batch, conditioning
        robots = batch or 1
        self._targets = self._one_each(target, robots)
        self._note_outside()
        seed = agent.seeds[0] if noise is None else noise
        self._player = Player(
            agent, run.normalizers, self._conditioner(self._targets), robots, seed, temperature, apart=robots > 1
        )
        known = run.normalizers
        self._mean, self._spread = (t.cpu().numpy() for t in (known.state_mean, known.state_std))
        feature = run.statistic.matched
        self._feature = None if feature is None else Stepwise(feature)
        self._last: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._moved = np.zeros(robots, bool)  # whose last step is still to be counted

    # -- episodes and targets -----------------------------------------------------------------------------------

    def reset(self, robots: ArrayLike | None = None) -> None:
        """Begin a new episode: all robots, or some of a batch, by their numbers or as a mask of all."""
        chosen = self._chosen(robots)
        self._player.reset(chosen)
        self._moved[chosen] = False

    def retarget(self, target: TargetLike | Sequence[TargetLike], robots: ArrayLike | None = None) -> None:
        """From now on match another target; clock, context and what was achieved stay.

        The policy is conditioned as if this had been the target since the episode began: under ``nominal`` on its own z
        of the present step, under ``remaining`` on what the whole episode so far leaves of it, under ``planned`` on the
        present step of its plan.
        """
        chosen = self._chosen(robots)
        targets = self._one_each(target, len(chosen))
        if targets:
            self._player.conditioner.take(self._conditioner(targets), chosen)
        for robot, new in zip(chosen.tolist(), targets, strict=True):
            self._targets[robot] = new
            shown, step = new.demonstration(), int(self._player.clock[0][robot])
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
    def step(self) -> int | NDArray[np.int64]:
        """How many actions were given since the last reset, for a batch to each robot, ``(batch,)``."""
        steps: NDArray[np.int64] = self._player.clock[0].cpu().numpy().copy()
        return int(steps[0]) if self.batch is None else steps

    # -- steps --------------------------------------------------------------------------------------------------

    def act(self, observation: ArrayLike, reward: ArrayLike | None = None) -> NDArray[np.float32]:
        """The action for this observation, in the task's range."""
        rows = self._observations(observation)
        self._account(reward)
        with torch.inference_mode():
            chosen = self._player.act(torch.from_numpy(rows)[None])
        actions = chosen[0].float().cpu().numpy().copy()
        if self._player.conditioner.wants_features:
            self._last = rows, actions.copy()  # the caller may write over the actions
            self._moved[:] = True
        return actions if self.batch is not None else actions[0]

    def _observations(self, observation: ArrayLike) -> NDArray[np.float32]:
        """A copy of what was seen, as rows ``(batch, obs)``, refused where the policy cannot act on it."""
        width = self._player.agent.dims.observation
        wanted = (width,) if self.batch is None else (self.batch, width)
        try:
            with np.errstate(over="ignore"):  # what single precision cannot hold is refused as infinite
                seen = np.array(observation, dtype=np.float32)
        except (TypeError, ValueError):
            raise HimatchError(f"expected an observation of shape {wanted}, got something that is no array") from None
        if seen.ndim >= 1 and self.task.prefix_only and seen.shape[-1] > width:
            seen = seen[..., :width]
        if seen.shape != wanted:
            raise HimatchError(f"expected an observation of shape {wanted}, got {seen.shape}")
        if not np.isfinite(seen).all():
            raise HimatchError("the observation holds NaN or infinity; the policy cannot act on it")
        # Finite, but a network would make NaN of it, and remember that: the value of a sensor that has failed.
        far = np.abs(seen - self._mean) > FAR * self._spread
        if far.any():
            place = tuple(int(i) for i in np.argwhere(far)[0])
            raise HimatchError(
                f"number {place[-1]} of the observation is {seen[place]:g}, a million times further out than in the "
                "training data; the policy cannot act on it"
            )
        return seen.reshape(-1, width)

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
                    f"remaining conditioning on {self._feature.feature.name!r} needs the reward of the previous step: "
                    "act(observation, reward)"
                ) from reason
            raise
        self._player.conditioner.achieved(phi[None], going)
        self._moved[:] = False

    # -- what is handed over ------------------------------------------------------------------------------------

    def _conditioner(self, targets: Sequence[Target]) -> Conditioner:
        """For robots with these targets; each has a target of its own, since each has its own clock."""
        return make_conditioner(self.conditioning, self._run, self._agent, targets, np.arange(len(targets))[None])

    def _one_each(self, given: TargetLike | Sequence[TargetLike], robots: int) -> list[Target]:
        """A target for each robot: the same for all, or one of several."""
        several = _several(given)
        if several is None:
            return [self._checked(given)] * robots  # type: ignore[arg-type]
        if len(several) != robots:
            raise HimatchError(f"{len(several)} targets for {robots} robot(s); give one, or one for each")
        return [self._checked(one) for one in several]

    def _checked(self, given: TargetLike) -> Target:
        target = self._parse(given)
        check_target(self._run, self._agent.dims, target)
        return target

    def _note_outside(self) -> None:
        """Warn of targets that the data does not cover; :meth:`retarget` is for loops that cannot wait for it."""
        if self._run.statistic.matched is not None:
            for target in {id(target): target for target in self._targets}.values():
                note_outside(target, None, self._run.reference())

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


def _several(given: TargetLike | Sequence[TargetLike]) -> list[Target | Trajectory | str] | None:
    """The targets where these are several; numbers are samples of one."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        return None
    targets = [one for one in given if isinstance(one, (Target, Trajectory, str))]
    return targets if targets and len(targets) == len(given) else None
