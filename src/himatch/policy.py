"""A trained policy: all seeds of a run, with what they need to act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.settings import shown
from himatch.data import TrajectoryDataset, load_dataset
from himatch.errors import HimatchError, TargetError
from himatch.evaluation.match import Environment, check_told, match_targets
from himatch.evaluation.result import MatchResult
from himatch.methods.agent import Agent
from himatch.methods.making import make_agent
from himatch.methods.normalizers import Normalizers
from himatch.methods.paper import Method
from himatch.rollout import Conditioning
from himatch.rollout.controller import Controller
from himatch.rollout.logged import logged_actions
from himatch.runs import folder as files
from himatch.runs.references import read_reference, referenced_features
from himatch.statistics.information import InformationStatistic, LearnedStatistic
from himatch.targets import Asked, Demonstration, EpisodeReference, Target, as_target
from himatch.tasks import Task
from himatch.types import Trajectory

TEMPERATURE = 0.85
OTHERS = 5  # episodes whose statistics a logged one is told, to see whether that matters


class Policy:
    """K seeds of one method. Results are per seed, in the order of ``seeds``.

    ``temperature`` is for Gaussian heads: how much of the spread they learned they act by, from 0, always the middle
    action, to 1, all of it. What a network learns holds its own errors, too: by default it is a little less.
    Controllers keep the one that they were made with.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        statistic: InformationStatistic | LearnedStatistic | None,
        task: Task,
        folder: Path,
        description: dict[str, Any],
    ) -> None:
        self.agent, self.normalizers, self.statistic, self.task = agent.eval(), normalizers, statistic, task
        self.folder, self.description = folder, description
        self.temperature, self.weights = TEMPERATURE, "best"
        self._references: dict[str, EpisodeReference] = {}

    @property
    def method(self) -> Method:
        """The method and its settings."""
        return self.agent.method

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that are held."""
        return self.agent.seeds

    @property
    def context(self) -> int:
        """N, how many steps the policy sees."""
        return self.agent.config.context

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.normalizers.state_mean.device

    @property
    def temperature(self) -> float:
        """How much of its spread a Gaussian head acts by."""
        return self._temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        try:
            value = float(temperature)
        except (TypeError, ValueError):
            value = np.nan
        if not 0.0 <= value < np.inf:
            raise HimatchError(f"the temperature must be a number from 0 up, got {shown(temperature)}")
        self._temperature: float = value

    def __repr__(self) -> str:
        return f"Policy({self.method}, task {self.task.name!r}, seeds {self.seeds}, {self.folder})"

    @cached_property
    def held_out(self) -> TrajectoryDataset | None:
        """The episodes that were kept out of training, if any."""
        folder = self.folder / files.HELD_OUT
        return load_dataset(folder, self.task) if folder.is_dir() else None

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of every held-out episode."""
        return tuple(self.description["split"]["groups"])

    def target(self, target: Asked) -> Target:
        """What is asked for as a target; in expressions, ``heldout(i)`` is one of the run's own held-out episodes."""
        return as_target(target, self.task, self._held_out_target)

    def _held_out_target(self, number: int) -> Target:
        count = 0 if self.held_out is None else len(self.held_out)
        if self.held_out is None or number >= count:
            raise TargetError(f"{self.folder} has {count} held-out episodes, there is no heldout({number})", 0)
        return Demonstration.held_out(self.held_out[number], self.groups[number], number)

    @property
    def feature(self) -> str:
        """What rollouts are scored on unless something else is asked for: what is matched, else what comes first."""
        if isinstance(self.statistic, InformationStatistic):
            return self.statistic.feature.name
        known = referenced_features(self.folder)
        wanted = ("x_velocity", "reward", *self.task.features)
        return next((name for name in wanted if name in known), known[0] if known else "reward")

    def reference(self, feature: str | None = None) -> EpisodeReference:
        """The training episodes as targets of a feature see them: bins, support, nearest mixture."""
        name = feature or self.feature
        if name not in self._references:
            self._references[name] = read_reference(self.folder, name, self.task)
        return self._references[name]

    def add_reference(self, reference: EpisodeReference) -> None:
        """Score rollouts on a feature that the run folder holds nothing about, by its name."""
        self._references[reference.context.feature.name] = reference

    def only(self, seed: int) -> Policy:
        """The same policy with one of its seeds."""
        if seed not in self.seeds:
            raise HimatchError(f"this policy has the seeds {', '.join(map(str, self.seeds))}, not {seed}")
        if len(self.seeds) == 1:
            return self
        place = self.seeds.index(seed)
        agent = make_agent(self.method, self.agent.config, self.agent.widths, (seed,)).to(self.device)
        agent.load_state_dict({name: tensor[place : place + 1] for name, tensor in self.agent.state_dict().items()})
        chosen = Policy(agent, self.normalizers, self.statistic, self.task, self.folder, self.description)
        chosen._references = dict(self._references)
        chosen.temperature, chosen.weights = self.temperature, self.weights
        return chosen

    # -- matching -----------------------------------------------------------------------------------------------

    def match(
        self,
        target: Asked,
        *,
        episodes: int = 20,
        conditioning: Conditioning = "nominal",
        feature: str | None = None,
        seed: int = 0,
        env: Environment | None = None,
        threads: int = 0,
    ) -> MatchResult:
        """Roll out under a target and compare what happened with it.

        Parameters
        ----------
        target
            ``"normal(5, 1)"``, an episode, samples of the feature, or any :class:`Target`.
        episodes
            Rollouts of every seed, each as long as the target.
        conditioning
            ``nominal``: the target's own z_t; ``remaining``: what remains of it; ``planned``: histograms, by way of the
            nearest mixture of training episodes.
        feature
            What is compared, by default what the policy was trained to match.
        seed
            Of the initial states, which no dataset shares.
        env
            Another environment than the data's: a Gymnasium id, a function that makes one, or one to make copies of.
        """
        return self.match_all(
            [target],
            episodes=episodes,
            conditioning=conditioning,
            feature=feature,
            seed=seed,
            env=env,
            threads=threads,
        )[0]

    def match_all(
        self,
        targets: Sequence[Asked],
        *,
        episodes: int = 20,
        conditioning: Conditioning = "nominal",
        feature: str | None = None,
        seed: int = 0,
        env: Environment | None = None,
        threads: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[MatchResult]:
        """As :meth:`match`, for several targets in one batch of rollouts."""
        if isinstance(targets, (str, Target, Trajectory)):
            raise TargetError("match_all wants a list of targets; a single one goes to match")
        return match_targets(
            self,
            [self.target(target) for target in targets],
            episodes=episodes,
            conditioning=conditioning,
            features=(feature or self.feature,),
            seed=seed,
            env=env,
            threads=threads,
            progress=progress,
        )[0]

    def controller(
        self,
        target: Asked | Sequence[Asked],
        *,
        seed: int | None = None,
        batch: int | None = None,
        conditioning: Conditioning = "nominal",
        noise: int | None = None,
    ) -> Controller:
        """The policy in a loop of your own, without a simulator: one robot, or ``batch`` of them.

        A list of targets is one for each robot. ``seed`` chooses weights; ``noise`` is the seed of what a Gaussian head
        adds to its actions, by default the same number.
        """
        return Controller(self, target, seed=seed, batch=batch, conditioning=conditioning, noise=noise)

    def score(self, episodes: Sequence[Trajectory]) -> dict[str, NDArray[np.float64]]:
        """Without any environment: action error on logged episodes, and how much it rises under another one's z.

        ``sensitivity`` is the error under the statistics of other episodes of the list, up to five for each, divided
        by that under the own one: one, or less, means that the policy does not listen, and so it does where all
        episodes are alike. Of a single episode it is not a number.
        """
        own, count = self.action_error(episodes), len(episodes)
        if self.statistic is None:
            return {"action_error": own, "sensitivity": np.ones_like(own)}
        if count < 2:
            return {"action_error": own, "sensitivity": np.full_like(own, np.nan)}
        # Neighbours are often alike, and logs often alternate, so the others are drawn.
        rng, drawn = np.random.default_rng(0), min(OTHERS, count - 1)
        others = [(i + 1 + rng.permutation(count - 1)[:drawn]) % count for i in range(count)]
        told = [self.action_error(episodes, [episodes[other[k]] for other in others]) for k in range(drawn)]
        return {"action_error": own, "sensitivity": np.mean(told, axis=0) / np.maximum(own, 1e-12)}

    def embed(self, episodes: Sequence[Trajectory]) -> Tensor:
        """What Meta-BC and FOCAL are told of whole episodes, one embedding a seed and episode, ``(K, E, m)``."""
        for number, episode in enumerate(episodes):
            self._check_widths(episode, f"episode {number}")
            if episode.rewards is None:
                raise HimatchError(f"{self.method.name} reads rewards, and episode {number} of the targets has none")
        codes = self.agent.embed(self.normalizers, episodes)
        if codes is None:
            raise HimatchError(f"{self.method.name} is told no embeddings of whole episodes; meta-bc and focal are")
        return codes

    def actions(self, trajectory: Trajectory, target: Asked | None = None) -> NDArray[np.float32]:
        """What every seed would do at every step of a logged episode, ``(K, T, act)``, in the task's range.

        The policy sees the episode's own past and is told what ``target`` (by default the episode itself, else whatever
        :meth:`match` takes) says, step by step, the way it is told at run time under ``nominal`` conditioning.
        """
        self._check_widths(trajectory, "the episode")
        told = self.target(trajectory if target is None else target)
        check_told(self, told)
        return logged_actions(self, trajectory, told)

    def _check_widths(self, episode: Trajectory, what: str) -> None:
        wanted = (self.agent.widths.observation, self.agent.widths.action)
        found = (episode.observations.shape[1], episode.actions.shape[1])
        if found != wanted:
            raise HimatchError(f"{what} has steps of {found} numbers, this policy reads {wanted}")

    def action_error(
        self, trajectories: Sequence[Trajectory], targets: Sequence[Asked] | None = None
    ) -> NDArray[np.float64]:
        """Mean squared action error of each seed over logged episodes, ``(K,)``, in units of half the action range.

        With ``targets``, one for each, episodes are predicted under these instead of their own statistic: how much the
        error rises says how much the policy listens.
        """
        if not isinstance(trajectories, Sequence) or not trajectories:
            raise HimatchError(f"a list of episodes with something in it is needed, not {shown(trajectories)}")
        told = list(trajectories if targets is None else targets)
        if len(told) != len(trajectories):
            raise HimatchError(f"{len(trajectories)} episodes but {len(told)} targets")
        half = self.normalizers.action_half.cpu().numpy()
        total, steps = np.zeros(len(self.seeds)), 0
        for trajectory, target in zip(trajectories, told, strict=True):
            errors = (self.actions(trajectory, target) - trajectory.actions) / half
            total += np.square(errors, dtype=np.float64).mean(-1).sum(-1)
            steps += len(trajectory)
        return total / steps
