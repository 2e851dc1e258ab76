"""A trained policy: all seeds of a run, with what they need to act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.devices import find_device
from himatch._runtime.settings import from_zero, whole
from himatch.data import TrajectoryDataset
from himatch.errors import HimatchError, TargetError, note
from himatch.evaluation import Evaluation, MatchResult, match_targets, named_targets
from himatch.evaluation.evaluation import grouped
from himatch.evaluation.recorded import RecordedAt
from himatch.methods import Agent, Method
from himatch.overview import Overview, overview_of
from himatch.rehearsal import Arena, Expected, Kept, Repertoire, from_logs, prepare
from himatch.rehearsal.repertoire import Bar
from himatch.rollout import Beyond, Conditioning, Controller, Plans
from himatch.rollout.conditioners import objection
from himatch.rollout.environment import Environment
from himatch.rollout.episodes import logged_episodes
from himatch.rollout.limits import MARGIN
from himatch.rollout.programs import Within
from himatch.rollout.scoring import action_error, actions_on, score
from himatch.runs.finder import find_run, is_users
from himatch.runs.folder import WEIGHTS, Weights
from himatch.runs.of_run import OfRun
from himatch.runs.run import Run
from himatch.targets import Target, TargetLike
from himatch.types import Trajectory


def load(run: str | Path, *, weights: Weights = "last", device: str | torch.device = "cpu") -> Policy:
    """Load all seeds of a run: the last weights, as in the paper, or those of the lowest validation loss (``best``).

    ``run`` is a run folder, a model of ``himatch models list``, or ``hf:USER/NAME`` on the Hub (``@REVISION`` for a
    branch, tag or commit).
    """
    if weights not in WEIGHTS:
        raise HimatchError(f"weights are {' or '.join(WEIGHTS)}, got {weights!r}")
    where, found = find_device(device), Run.read(find_run(run))
    policy = Policy(found.to(where), found.agent(weights).to(where))
    policy.weights = weights
    if found.stopped_at is not None:
        step, wanted = found.stopped_at
        note(f"{found.folder}: its training stopped at step {step:,} of {wanted:,}; himatch train ... --resume goes on")
    return policy


class Policy(OfRun):
    """K seeds of one method. Results are per seed, in the order of ``seeds``.

    ``temperature`` is for stochastic heads: of a Gaussian the part of the learned standard deviation that actions are
    sampled with, from 0, the mean action, to 1; of a categorical one what logits are divided by, from 0, the likeliest
    action, to 1, the learned probabilities. It is what training selected on training episodes; where it could not
    simulate, 0. Controllers keep the temperature that they were made with.
    """

    def __init__(self, run: Run, agent: Agent) -> None:
        self.run, self.agent = run, agent.eval()
        self.temperature = run.temperature
        self.weights: Weights = "last"
        self._repertoires: dict[str, Repertoire] = {}
        self._environments: list[Environment | None] = []  # kept, so that no other one gets the same name

    # -- what it is ---------------------------------------------------------------------------------------------

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
        """The part of its standard deviation that a Gaussian head samples actions with."""
        return self._temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self._temperature: float = from_zero("the temperature", temperature)
        self._repertoires = {}  # it does other things now

    def __repr__(self) -> str:
        feature = getattr(self.method, "feature", None)
        matched = f" of {feature}" if feature else ""
        seeds = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''}"
        return f"Policy({self.method.name}{matched} on {self.task.name}, {seeds}, {self.folder}; .show() says more)"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()

    def show(self, *, name: str | None = None) -> Overview:
        """What it can match: what the data covers, targets to begin with, conditionings, columns.

        Nothing is simulated. ``name`` is what the commands that it suggests call the run.
        """
        now = Arena(self.run, self.agent, self.temperature).now
        return overview_of(self.run, self.seeds, self.weights, self.target, now, name)

    def only(self, seed: int) -> Policy:
        """The same policy with one of its seeds."""
        if seed not in self.seeds:
            raise HimatchError(f"this policy has the seeds {', '.join(map(str, self.seeds))}, not {seed}")
        if len(self.seeds) == 1:
            return self
        place = self.seeds.index(seed)
        agent = self.method.build(self.agent.config, self.agent.dims, (seed,)).to(self.device)
        agent.load_state_dict({name: tensor[place : place + 1] for name, tensor in self.agent.state_dict().items()})
        chosen = Policy(self.run, agent)
        chosen.temperature, chosen.weights = self.temperature, self.weights
        return chosen

    # -- matching -----------------------------------------------------------------------------------------------

    def match(
        self,
        target: TargetLike,
        *,
        episodes: int = 20,
        conditioning: Conditioning = "nominal",
        stretches: int | None = None,
        replan: int | None = None,
        within: Within = "episode",
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
            nearest episode mixture; ``rehearsed``: a program that :meth:`rehearse` finds, now where it has not yet.
        stretches
            ``planned`` mixes stretches of so many steps instead of whole episodes.
        replan
            ``planned`` plans again every so many steps, for every rollout from what is left of the target.
        within
            ``episode``: every rollout follows a plan or program for the whole target; ``pool``: ``planned`` and
            ``rehearsed`` rollouts share the target out, each under one conditioning.
        feature
            What is compared, by default what the policy was trained to match.
        seed
            Of the initial states, which no dataset shares.
        env
            Another environment than the data's: a Gymnasium id, a function that makes one, or one to make copies of.

        The result keeps the rollouts: ``result.save(DIR)`` writes them as a dataset.
        """
        return self.match_all(
            [target],
            episodes=episodes,
            conditioning=conditioning,
            stretches=stretches,
            replan=replan,
            within=within,
            feature=feature,
            seed=seed,
            env=env,
            threads=threads,
            keep_rollouts=True,
        )[0]

    def match_all(
        self,
        targets: Sequence[TargetLike],
        *,
        episodes: int = 20,
        conditioning: Conditioning = "nominal",
        stretches: int | None = None,
        replan: int | None = None,
        within: Within = "episode",
        feature: str | None = None,
        seed: int = 0,
        env: Environment | None = None,
        threads: int = 0,
        progress: Callable[[int, int], None] | None = None,
        keep_rollouts: bool = False,
    ) -> list[MatchResult]:
        """As :meth:`match`, for several targets in one batch of rollouts; results keep these only if they are to."""
        if isinstance(targets, (str, Target, Trajectory)):
            raise TargetError("match_all wants a list of targets; a single one goes to match")
        return self.match_features(
            targets,
            features=(feature or self.feature,),
            episodes=episodes,
            conditioning=conditioning,
            stretches=stretches,
            replan=replan,
            within=within,
            seed=seed,
            env=env,
            threads=threads,
            progress=progress,
            keep_rollouts=keep_rollouts,
        )[0]

    def match_features(
        self,
        targets: Sequence[TargetLike],
        *,
        features: Sequence[str],
        episodes: int = 20,
        conditioning: Conditioning = "nominal",
        stretches: int | None = None,
        replan: int | None = None,
        within: Within = "episode",
        seed: int = 0,
        env: Environment | None = None,
        threads: int = 0,
        recorded_at: RecordedAt = "t",
        progress: Callable[[int, int], None] | None = None,
        keep_rollouts: bool = False,
        starts: Sequence[int] | None = None,
    ) -> list[list[MatchResult]]:
        """As :meth:`match_all`, with the same rollouts compared on several features: a list for each.

        ``recorded_at="t+1"`` reads them at the state that each step led to, as the authors' code does in rollouts.
        ``starts`` are seeds of initial states in place of those that ``seed`` stands for, ``episodes`` for each target:
        what is to be trained on begins where no evaluation does.
        """
        if isinstance(targets, TrajectoryDataset):
            targets = logged_episodes(self.run, targets)
        plans = Plans(stretches, replan, within)
        plans.check(conditioning, self.statistic)
        wanted = [self.target(target) for target in targets]
        if conditioning == "rehearsed":
            self.rehearse(wanted, episodes=episodes, within=within, env=env, threads=threads)
        return match_targets(
            self.run,
            self.agent,
            wanted,
            features=features,
            episodes=episodes,
            conditioning=conditioning,
            plans=plans,
            seed=seed,
            env=env,
            threads=threads,
            temperature=self.temperature,
            recorded_at=recorded_at,
            progress=progress,
            keep={"weights": self.weights} if keep_rollouts else None,
            starts=starts,
        )

    def rehearse(
        self,
        targets: Sequence[TargetLike] = (),
        *,
        seconds: float | None = None,
        episodes: int = 20,
        within: Within = "episode",
        again: bool = False,
        env: Environment | None = None,
        threads: int = 0,
        keep: bool | None = None,
        bar: Bar | None = None,
    ) -> list[Expected]:
        """Find out in a simulator what the policy does, and a program for every target: what to expect of each.

        The *repertoire* is what the policy achieves under a library of conditionings. A *program* is a sequence of such
        conditionings, each for so many steps; the search tries many and keeps the one whose rollouts come nearest to
        the target within an episode, and last. ``rehearsed`` conditioning then plays it, here or in a controller,
        without a simulator. What is known already is not done again.

        Parameters
        ----------
        seconds
            When to end the search for programs of all these targets; by default when it no longer pays.
        episodes
            How many rollouts of every seed the expectation is for.
        within
            ``pool`` finds what rollouts play that share the target out; it takes a few seconds and no search.
        again
            Search for targets that are known, too; their programs are where it begins.
        keep
            Whether to write what was found into the run folder, by default where that is the user's own.
        """
        if isinstance(targets, (str, Target, Trajectory)):
            raise TargetError("rehearse wants a list of targets; put a single one in brackets")
        if whole("episodes", episodes) < 1:
            raise HimatchError(f"at least one episode has to be rolled out, got {episodes}")
        if seconds is not None and not float(seconds) > 0:
            raise HimatchError(f"a rehearsal takes more than 0 seconds, got {seconds}")
        Plans(within=within).check("rehearsed", self.statistic)
        arena = Arena(self.run, self.agent, self.temperature, env, threads)
        self._environments.append(env)
        found, expected = prepare(
            arena,
            [self.target(target) for target in targets],
            repertoire=self._repertoires.get(arena.now.environment),
            seconds=seconds,
            episodes=episodes,
            within=within,
            again=again,
            kept=Kept(self.weights, is_users(self.folder) if keep is None else keep),
            bar=bar,
        )
        self._repertoires.pop(arena.now.environment, None)
        self._repertoires[arena.now.environment] = found  # the latest comes last
        return expected

    def expected(
        self,
        target: TargetLike,
        within: Within = "episode",
        *,
        conditioning: Conditioning = "rehearsed",
        episodes: int = 20,
    ) -> Expected | None:
        """What was promised of a target when it was rehearsed; nothing is simulated, ``None`` where it was not.

        Of ``planned`` conditioning, which needs no simulator, it is what so many rollouts will score by what the logged
        episodes of its plan and those like them did. Other conditionings promise nothing.
        """
        wanted, reference = self.target(target), self.reference()
        if conditioning == "rehearsed":
            now = Arena(self.run, self.agent, self.temperature).now
            found = self.run.programs.get(wanted, reference.frame, now, within)
            return None if found is None else Expected(**found["expected"])
        planned = conditioning == "planned" and objection(conditioning, self.statistic, self.method) is None
        if not planned or within == "pool" or wanted.matches != "distribution" or not len(reference.lengths):
            return None
        return from_logs(reference, wanted, whole("episodes", episodes))

    @property
    def repertoire(self) -> Repertoire | None:
        """What it did under the library of conditionings when it was last rehearsed here."""
        return next(reversed(self._repertoires.values()), None)

    def evaluate(
        self,
        targets: str | Sequence[tuple[str, TargetLike]] = "heldout",
        *,
        episodes: int = 20,
        conditioning: Conditioning = "nominal",
        stretches: int | None = None,
        replan: int | None = None,
        within: Within = "episode",
        feature: str | None = None,
        seed: int = 0,
        env: Environment | None = None,
        threads: int = 0,
        progress: Callable[[int, int], None] | None = None,
        keep_rollouts: bool = False,
    ) -> Evaluation:
        """Match many targets and sum up: those of :meth:`named_targets`, or ``(group, target)`` pairs."""
        pairs = self.named_targets(targets) if isinstance(targets, str) else grouped(targets)
        results = self.match_all(
            [target for _, target in pairs],
            episodes=episodes,
            conditioning=conditioning,
            stretches=stretches,
            replan=replan,
            within=within,
            feature=feature,
            seed=seed,
            env=env,
            threads=threads,
            progress=progress,
            keep_rollouts=keep_rollouts,
        )
        provenance = {
            "run": self.folder.name,
            "method": self.description["method"],
            "seeds": list(self.seeds),
            "data": self.description["data"],
            "task": self.task.name,
            "weights": self.weights,
            "temperature": self.temperature if self.agent.policy.stochastic else None,
        }
        groups = tuple(group for group, _ in pairs)
        return Evaluation(self.run.folder, groups, tuple(results), episodes, seed, provenance)

    def named_targets(self, name: str) -> list[tuple[str, Target]]:
        """``heldout``, ``shift``, ``synthetic`` (six spread over the data), or a file with one target a line."""
        return named_targets(self.run, name, self.target)

    # -- acting -------------------------------------------------------------------------------------------------

    def controller(
        self,
        target: TargetLike | Sequence[TargetLike],
        *,
        seed: int | None = None,
        batch: int | None = None,
        conditioning: Conditioning = "nominal",
        stretches: int | None = None,
        replan: int | None = None,
        noise: int | None = None,
        limits: Beyond = "warn",
        margin: float = MARGIN,
        rate: float | None = None,
    ) -> Controller:
        """The policy in a loop of your own, without a simulator: one robot, or ``batch`` of them.

        A list of targets is one for each robot. ``stretches`` and ``replan`` are those of :meth:`match`; plans are made
        again in another thread, while ``act`` goes on with the old ones. ``seed`` chooses weights; ``noise`` is the
        seed of what a Gaussian head adds to its actions, by default the same number. Every channel of an observation
        has limits: its training range, widened by ``margin`` of it on either side. What lies beyond is noted
        (``limits="warn"``, once a channel and episode), clipped (``"clamp"``), refused (``"raise"``) or let pass
        (``"off"``). ``rate``, in Hz, is how often you will call ``act``; where the data has another rate, that is
        noted.
        """
        one = self.only(self.seeds[0] if seed is None else seed)
        return Controller(
            one.run,
            one.agent,
            target,
            self.target,
            batch=batch,
            conditioning=conditioning,
            noise=noise,
            temperature=one.temperature,
            limits=limits,
            margin=margin,
            rate=rate,
            plans=Plans(stretches, replan),
            expect=None if stretches or replan else partial(one.expected, conditioning=conditioning, episodes=1),
        )

    def score(self, episodes: Sequence[Trajectory]) -> dict[str, NDArray[np.float64]]:
        """Without any environment: action error on logged episodes, and how much it rises under another one's z.

        ``sensitivity`` is the error under the statistics of other episodes of the list, up to five for each, divided
        by that under the own one: one, or less, means that the policy ignores its conditioning, or that all episodes
        are alike. Of a single episode it is not a number. Columns of a dataset are found by name, as in a join.
        """
        return score(self.run, self.agent, episodes)

    def embed(self, episodes: Sequence[Trajectory]) -> Tensor:
        """Embeddings of whole episodes (Meta-BC and FOCAL), one a seed and episode, ``(K, E, m)``."""
        codes = self.agent.embed(self.normalizers, logged_episodes(self.run, episodes))
        if codes is None:
            raise HimatchError(f"{self.method.name} embeds no whole episodes; meta-bc and focal do")
        return codes

    def actions(
        self, trajectory: Trajectory, target: TargetLike | None = None
    ) -> NDArray[np.float32] | NDArray[np.int64]:
        """What every seed would do at every step of a logged episode, ``(K, T, act)``, in the task's range.

        Of discrete actions it is the number of the likeliest one, ``(K, T)``.

        The policy sees the episode's own past and is conditioned on ``target`` (by default the episode itself, else
        whatever :meth:`match` takes), step by step, as at run time under ``nominal`` conditioning.
        """
        found = actions_on(self.run, self.agent, trajectory, trajectory if target is None else target)
        return found if self.task.discrete is None else self.task.discrete.numbers(found)

    def action_error(
        self, trajectories: Sequence[Trajectory], targets: Sequence[TargetLike] | None = None
    ) -> NDArray[np.float64]:
        """Mean squared action error of each seed over logged episodes, ``(K,)``, in units of half the action range.

        Of discrete actions it is half the squared error of the probabilities, from 0 to 1: the share of wrong actions
        where the policy has no doubts.

        With ``targets``, one for each, episodes are predicted under these instead of their own statistic: how much the
        error rises says how much the policy uses its conditioning. Columns of a dataset are found by name.
        """
        return action_error(self.run, self.agent, trajectories, targets)
