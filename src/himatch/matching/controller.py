"""The policy in a loop of the user's own: one robot or a batch, no simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from himatch.errors import HimatchError
from himatch.features import Stepwise
from himatch.information import InformationStatistic
from himatch.rollout import Conditioning, Player
from himatch.targets import Target

if TYPE_CHECKING:
    from himatch.matching.policy import Policy


class Controller:
    """Acts step by step: ``reset()``, then ``action = act(observation)`` at every step.

    Observations are ``(obs,)``, or ``(batch, obs)`` for a batch. ``reward`` is that of the previous step; only closed
    conditioning on a feature that uses rewards needs it.
    """

    def __init__(
        self, policy: Policy, target: Target, seed: int | None, batch: int | None, conditioning: Conditioning
    ) -> None:
        from himatch.matching.matching import conditioning_frame, policy_feed

        if batch is not None and batch < 1:
            raise HimatchError(f"a batch holds at least one robot, got {batch}")
        one = policy.only(policy.seeds[0] if seed is None else seed)
        self.target, self.task, self.batch = target, policy.task, batch
        numbers = np.zeros((1, batch or 1), dtype=np.int64)
        feed = policy_feed(one, [target], conditioning_frame(policy), numbers, conditioning)
        self._player = Player(one.agent, one.normalizers, feed, batch or 1, one.seeds[0], one.temperature)
        statistic = policy.statistic
        self._feature = Stepwise(statistic.feature) if isinstance(statistic, InformationStatistic) else None
        self._last: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def reset(self) -> None:
        """Begin a new episode."""
        self._player.reset()
        self._last = None

    @property
    def step(self) -> int:
        """How many actions were given since the last reset."""
        return self._player.step

    def act(self, observation: ArrayLike, reward: ArrayLike | None = None) -> NDArray[np.float32]:
        """The action for this observation, in the task's range."""
        rows = self._observations(observation)
        self._account(reward)
        with torch.inference_mode():
            chosen = self._player.act(torch.tensor(rows).unsqueeze(0).to(self._player.device))
        actions = chosen[0].float().cpu().numpy().copy()
        if self._player.feed.wants_features:
            self._last = rows.copy(), actions.copy()  # the caller may write over both
        return actions if self.batch is not None else actions[0]

    def _observations(self, observation: ArrayLike) -> NDArray[np.float32]:
        """What was seen as rows, ``(batch, obs)``, refused where the policy cannot act on it."""
        width = self._player.agent.widths.observation
        wanted = (width,) if self.batch is None else (self.batch, width)
        try:
            seen = np.asarray(observation, dtype=np.float32)
        except (TypeError, ValueError):
            raise HimatchError(f"expected an observation of shape {wanted}, got something that is no array") from None
        if seen.ndim >= 1 and self.task.prefix_only and seen.shape[-1] > width:
            seen = seen[..., :width]
        if seen.shape != wanted:
            raise HimatchError(f"expected an observation of shape {wanted}, got {seen.shape}")
        if not np.isfinite(seen).all():
            raise HimatchError("the observation holds NaN or infinity; the policy cannot act on it")
        return seen.reshape(-1, width)

    def _account(self, reward: ArrayLike | None) -> None:
        """Tell the feed what the previous step achieved."""
        if self._last is None or self._feature is None:
            return
        states, actions = self._last
        try:
            rewards = None if reward is None else np.broadcast_to(np.asarray(reward, np.float32), len(states))
        except (TypeError, ValueError):
            raise HimatchError(f"expected one reward, or {len(states)} for the batch, got {reward!r}") from None
        try:
            phi = self._feature(states, actions, rewards)
        except HimatchError as reason:
            if reward is None:
                raise HimatchError(
                    f"closed conditioning needs the reward of the previous step: act(observation, reward) ({reason})"
                ) from None
            raise
        self._player.feed.achieved(torch.tensor(phi).unsqueeze(0).to(self._player.device))
