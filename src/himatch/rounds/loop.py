"""Rounds of rollouts and training: try commands slightly beyond, relabel what happened, go on from the weights.

A rollout is relabelled as every logged episode is: it is trained on under the statistic of what it achieved, whatever
it was commanded. A control arm makes the same steps on the logged episodes alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.progress import bar
from himatch._runtime.settings import whole
from himatch.api import train
from himatch.data import Split, TrajectoryDataset
from himatch.datagen.slots import reset_seeds
from himatch.errors import HimatchError, HimatchWarning
from himatch.evaluation.kept import save_rollouts
from himatch.policy import Policy, load
from himatch.rollout import Conditioning, objection
from himatch.rollout.environment import Environment, environment_name, simulator_for
from himatch.rounds.commands import check_commands, commands_beyond
from himatch.rounds.folder import OnlineFolder
from himatch.rounds.logs import logged_split, with_rollouts
from himatch.rounds.settings import Rounds
from himatch.runs.folder import Weights
from himatch.training import TrainConfig
from himatch.types import Trajectory


def online(
    run: str | Path,
    *,
    out: str | Path,
    rounds: int = 3,
    episodes: int = 20,
    steps: int = 1000,
    data: TrajectoryDataset | Split | str | Path | None = None,
    env: Environment | None = None,
    control: bool = False,
    beyond: float = 0.1,
    keep: int | None = None,
    conditioning: Conditioning = "nominal",
    temperature: float | None = None,
    learning_rate: float | None = None,
    weights: Weights = "last",
    seed: int = 0,
    resume: bool = False,
    device: str | None = None,
    threads: int = 0,
    quiet: bool = False,
) -> Policy:
    """Go on training a run on rollouts of its own, in rounds, and return the policy of the last one.

    Each round rolls out under commands slightly beyond what has been achieved, adds the episodes to the logged ones,
    relabelled with what they achieved, and trains so many steps from the present weights. Bins and normalizers stay
    those of the run, so that z means the same throughout; the support that z is clipped to grows with the data.

    Parameters
    ----------
    run
        A run folder, a model of ``himatch models list``, or ``hf:USER/NAME``, and which of its ``weights``.
    out
        Folder with the rollouts and the run of every round.
    rounds, episodes, steps
        How many rounds, rollouts in each, and training steps in each. All seeds of the run share the rollouts.
    data
        The logged episodes that the run was trained on, by default the source that it names.
    env
        Another environment than the data's.
    control
        The same steps on the logged episodes alone: what the rollouts brought is the difference.
    beyond
        How far beyond, as a part of the spread of what was achieved.
    keep
        So many rollouts are trained on at most, the newest; by default as many as there are logged episodes.
    temperature
        Of the sampled actions of rollouts; by default the run's.
    seed
        Of commands, initial states and sampled actions. No evaluation begins in these states.
    resume
        Go on where it stopped, with the same settings; ``rounds`` may be more.
    """
    how = Rounds(episodes, steps, beyond, keep, conditioning, temperature, learning_rate, seed, control)
    if whole("rounds", rounds) < 1:
        raise HimatchError(f"rounds must be at least 1, got {rounds}")
    policy = load(run, weights=weights, device=device or "cpu")
    _check(policy, how, env)
    folder = OnlineFolder(out)
    split = logged_split(policy.run, data)
    folder.open(_settings(policy, how, env, split), resume=resume)
    number = len(folder.rows)
    try:
        for number in range(1, rounds + 1):
            policy = _Round(folder, number, policy, how, env, device, threads, quiet).play(split, run, weights)
    except KeyboardInterrupt as reason:
        said = str(reason) or f"stopped in round {number} of {rounds}; what was done is in {folder}"
        raise KeyboardInterrupt(said if "--resume" in said else f"{said}, continue with --resume") from None
    return policy


def _check(policy: Policy, how: Rounds, env: Environment | None) -> None:
    """Refuse what no round could do, before anything is read."""
    seeds = policy.seeds
    if seeds != tuple(range(seeds[0], seeds[0] + len(seeds))):
        raise HimatchError(f"{policy.folder} has the seeds {', '.join(map(str, seeds))}, which are not consecutive")
    if how.temperature is not None and not policy.agent.policy.stochastic:
        raise HimatchError(f"{policy.folder} is a deterministic policy; --temperature is for stochastic ones")
    if how.control:
        return
    if why := objection(how.conditioning, policy.statistic, policy.method):
        raise HimatchError(why)
    if how.conditioning == "rehearsed":
        raise HimatchError("rollouts of an online training are not rehearsed: choose nominal, remaining or planned")
    check_commands(policy.run, policy.method)
    simulator_for(policy.run, policy.agent.dims, 1, env, 1).close()  # which refuses what is not the right environment


def _settings(policy: Policy, how: Rounds, env: Environment | None, split: Split) -> dict[str, Any]:
    """What an online training is, so that another one is not taken for it."""
    named = env is None or isinstance(env, str)
    return {
        "run": policy.folder.resolve().name,
        "weights": policy.weights,
        "weights_sha256": policy.agent.digests(),
        "data": split.train.content_hash,
        "env": environment_name(policy.run, env) if named else "handed over",
        **vars(how),
    }


@dataclass(frozen=True)
class _Round:
    """One round: rollouts, which are there or are played, then training, which goes on where it stopped."""

    folder: OnlineFolder
    number: int
    policy: Policy
    how: Rounds
    env: Environment | None
    device: str | None
    threads: int
    quiet: bool

    def play(self, split: Split, first: str | Path, weights: Weights) -> Policy:
        """The policy after the round."""
        began, out = time.perf_counter(), self.folder.run(self.number)
        if self.number <= len(self.folder.rows):
            return self._after()
        facts: Mapping[str, Any] = {}
        everything = split
        if not self.how.control:
            if not self.folder.episodes(self.number).exists():
                self._roll_out(split)
            every = [self.folder.rollouts(n, split.train.task) for n in range(1, self.number + 1)]
            facts = every[-1][1]
            most = len(split.train) if self.how.keep is None else self.how.keep
            everything = with_rollouts(split, [dataset for dataset, _ in every], most)
        played, began = time.perf_counter() - began, time.perf_counter()
        before = self.policy.run
        start: str | Path = first if self.number == 1 else self.folder.run(self.number - 1).path
        stochastic = self.policy.agent.policy.stochastic
        with warnings.catch_warnings():  # that is for warm starts on other logs
            warnings.filterwarnings("ignore", ".*--normalizers refit", HimatchWarning)
            train(
                self.policy.method,
                everything,
                out=out.path,
                preset="cpu",
                seed=self.policy.seeds[0],
                seeds=len(self.policy.seeds),
                resume=True,
                start=start,
                start_weights=weights if self.number == 1 else "last",
                device=self.device,
                threads=self.threads,
                quiet=self.quiet,
                temperature=self.policy.temperature if stochastic else None,
                **self._training(before.description.get("train") or {}),
            )
        self.folder.add_row(
            {
                "round": self.number,
                "commands": facts.get("targets", []),
                "error": _mean(facts, "error"),
                "charged": _mean(facts, "charged"),
                "played": _mean(facts, "played"),
                "episodes": sum(command["episodes"] for command in facts.get("targets", [])),
                "trained_on": {"logged": len(split.train), "rollouts": len(everything.train) - len(split.train)},
                "steps": self.how.steps,
                "seconds": {"rollouts": round(played, 1), "training": round(time.perf_counter() - began, 1)},
            }
        )
        return self._after()

    def _after(self) -> Policy:
        return load(self.folder.run(self.number).path, device=self.device or "cpu")

    def _training(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of the run's own training, for as many steps as a round has."""
        found = {field.name: before[field.name] for field in fields(TrainConfig) if field.name in before}
        found["warmup"] = round(found.get("warmup", 0) * self.how.steps / max(1, found.get("steps", 1)))
        if self.how.learning_rate is not None:
            found["learning_rate"] = self.how.learning_rate
        return {**found, "steps": self.how.steps}

    def _roll_out(self, split: Split) -> None:
        """Play the episodes of the round and write them: all, or none."""
        how, policy = self.how, self.policy
        each = math.ceil(how.episodes / len(policy.seeds))
        rng = np.random.default_rng([how.seed, self.number])
        most = len(split.train) if how.keep is None else how.keep
        past = [self.folder.rollouts(n, split.train.task)[0] for n in range(1, self.number)]
        seen = with_rollouts(split, past, most).train  # the reference of the present run is of these
        every = -(-len(seen) // len(policy.reference().lengths))

        def episode(place: int) -> Trajectory:
            return seen[min(place * every, len(seen) - 1)]

        commands = commands_beyond(policy.run, policy.method, episode, each, rng, how.beyond)
        temperature = policy.temperature
        try:
            if how.temperature is not None:
                policy.temperature = how.temperature
            with warnings.catch_warnings(), bar(f"rollouts of round {self.number}", quiet=self.quiet) as progress:
                warnings.simplefilter("ignore", HimatchWarning)  # commands are to lie beyond the data
                (results,) = policy.match_features(
                    commands,
                    features=[policy.feature],
                    episodes=1,
                    conditioning=how.conditioning,
                    env=self.env,
                    threads=self.threads,
                    progress=progress,
                    keep_rollouts=True,
                    starts=reset_seeds(how.seed, self.number, len(commands)),
                )
        finally:
            policy.temperature = temperature
        more = {"round": self.number, "beyond": how.beyond, "seed": how.seed}
        save_rollouts(results, self.folder.episodes(self.number), most=how.episodes, more=more)


def _mean(facts: Mapping[str, Any], name: str) -> float | None:
    """Of all commands."""
    found = [command[name] for command in facts.get("targets", [])]
    return float(np.mean(found)) if found else None
