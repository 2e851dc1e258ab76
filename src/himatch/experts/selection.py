"""From a training run to experts: evaluate promising snapshots and keep the best, and for locomotion a medium one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from himatch._runtime.files import read_rows
from himatch._runtime.flat import FlatParameters
from himatch._runtime.tensors import read_tensors
from himatch.errors import DataError, HimatchError
from himatch.experts.cards import Card, read_cards
from himatch.experts.catalog import MEDIUM
from himatch.experts.expert import Expert, load_expert, narrowed, stacked_actor, to_range, write_family
from himatch.experts.networks import Actor
from himatch.experts.run import METRICS, SNAPSHOTS, AgentSpec, agents_of, dims_of, read_run
from himatch.simulation import EVALUATION_SEED, make_simulator, record
from himatch.tasks import Task, get_task
from himatch.tasks.locomotion import BACKFLIP, CHEETAH_VEL
from himatch.types import Array, Trajectory

EPISODES = 20
CARD_SEED = EVALUATION_SEED + 1_000_000  # of the episodes on a card
CANDIDATES = 12
SETTLING = 50  # steps of an episode before a velocity agent is held to its velocity


@dataclass(frozen=True)
class Candidate:
    """A snapshot of one agent of a run."""

    agent: AgentSpec
    step: int
    updates: int
    recent: float
    """Mean return of its training episodes at that time."""
    weights: Mapping[str, Tensor]


class ExpertRun:
    """A training run that is read back."""

    def __init__(self, folder: Path) -> None:
        self.facts = read_run(folder)
        self.agents = agents_of(self.facts)
        self.folder = folder
        self.rows = [r for r in read_rows(folder / METRICS) if self._snapshot(r["step"]).is_file()]
        actions = tuple(get_task(agent.task).action_width or 0 for agent in self.agents)
        self.flat = FlatParameters(Actor(actions, dims_of(self.facts)).named_parameters(), torch.float32)

    def _snapshot(self, step: int) -> Path:
        return self.folder / SNAPSHOTS / f"{step:09d}.safetensors"

    def candidates(self, agents: Sequence[int], rank: Callable[[float], float], count: int) -> list[Candidate]:
        """The ``count`` snapshots of these agents whose training return ranks lowest."""
        found = [
            (rank(row["returns"][agent]), agent, row)
            for agent in agents
            for row in self.rows
            if row["returns"][agent] is not None
        ]
        if not found:
            raise DataError(f"{self.folder}: no episode had ended when its snapshots were taken; train on")
        found.sort(key=lambda item: item[0])
        return [self.load(agent, row) for _, agent, row in found[:count]]

    def load(self, agent: int, row: dict[str, Any]) -> Candidate:
        """One agent as it was at a row of metrics."""
        task = get_task(self.agents[agent].task)
        actors = read_tensors(self._snapshot(row["step"]))["actors"].float()
        weights = narrowed(self.flat.state(actors, agent), task.observation_width or 0, task.action_width or 0)
        return Candidate(self.agents[agent], row["step"], row["updates"], row["returns"][agent], weights)


def roll_out(
    agents: Sequence[Mapping[str, Tensor]],
    environments: Sequence[Mapping[str, Any]],
    task: Task,
    *,
    stochastic: bool,
    seed: int = EVALUATION_SEED,
    episodes: int = EPISODES,
    threads: int = 0,
) -> list[list[Trajectory]]:
    """``episodes`` rollouts of each agent (weights) in its environment (settings), all at once."""
    actor = stacked_actor(agents)
    settings = [dict(own) for own in environments for _ in range(episodes)]
    rng = np.random.default_rng(seed)

    @torch.no_grad()
    def behaviour(observations: Any, *_: Any) -> Any:
        seen = torch.from_numpy(observations.astype(np.float32)).view(len(agents), episodes, -1)
        noise = None
        if stochastic:
            drawn = rng.standard_normal((len(agents), episodes, task.action_width or 0), np.float32)
            noise = torch.from_numpy(drawn)
        return to_range(actor.act(seen, noise).numpy(), task).reshape(len(settings), -1)

    seeds = [seed + i for _ in agents for i in range(episodes)]
    with closing(make_simulator(task, len(settings), settings=settings, threads=threads)) as simulator:
        found = record(simulator, behaviour, seeds)
    return [found[i : i + episodes] for i in range(0, len(found), episodes)]


def mean_return(episodes: Sequence[Trajectory]) -> float:
    """Mean of the episodes' returns."""
    return float(np.mean([episode.total_reward for episode in episodes]))


def mean_length(episodes: Sequence[Trajectory]) -> float:
    """Mean number of steps of the episodes."""
    return float(np.mean([len(episode) for episode in episodes]))


def spread(episodes: Sequence[Trajectory]) -> float:
    """Standard deviation of the episodes' returns."""
    return float(np.std([episode.total_reward for episode in episodes]))


def velocity_error(episodes: Sequence[Trajectory], velocity: float) -> float:
    """How far the mean x-velocity after settling is from the target."""
    reached = [_coordinate(episode, CHEETAH_VEL, "x_velocity")[SETTLING:] for episode in episodes]
    return abs(float(np.mean(reached)) - velocity)


def backward_turns(episode: Trajectory) -> float:
    """Full turns nose up; those nose down count below zero. The reward of back-flips prefers neither."""
    pitch = _coordinate(episode, BACKFLIP, "pitch")
    return float(pitch[0] - pitch[-1]) / (2.0 * np.pi)


def flips_back(episode: Trajectory) -> bool:
    """Whether it flips as the paper's agent does: backwards, three times at least, and on average towards -x."""
    return backward_turns(episode) >= 3.0 and float(_coordinate(episode, BACKFLIP, "x_velocity").mean()) < 0.0


def _mean_of(episodes: Sequence[Trajectory], feature: str) -> float:
    return float(np.mean([_coordinate(episode, BACKFLIP, feature).mean() for episode in episodes]))


def _coordinate(episode: Trajectory, task: Task, feature: str) -> Array:
    """A feature that is one number of the task's observations, ``(T,)``."""
    return episode.observations[:, cast("int", task.features[feature])]


def select_experts(
    run: str | Path, out: str | Path, *, command: str = "", only: Sequence[str] = (), threads: int = 0
) -> list[Expert]:
    """Evaluate a run's best snapshots over 20 episodes and write each task's experts into ``out``.

    Experts of other names that are there already stay; ``only`` writes no others than these. A medium agent is one of
    the expert that will stand beside it in ``out``.
    """
    opened, selected = ExpertRun(Path(run)), []
    if not opened.rows:
        raise DataError(f"{run} has no snapshots yet; train on")
    facts = {"command": command, "config": opened.facts["config"], "versions": opened.facts["versions"]}
    for name in dict.fromkeys(agent.task for agent in opened.agents):
        task = get_task(name)
        agents = [i for i, agent in enumerate(opened.agents) if agent.task == name]
        if name == CHEETAH_VEL.name:
            experts = _velocities(opened, task, agents, threads)
        elif name == BACKFLIP.name:
            experts = _best(opened, task, agents, threads, lambda e: sum(map(flips_back, e)), "")
        else:
            experts = _locomotion(opened, task, agents, threads, _kept(Path(out), only, f"{name}-expert"))
        chosen = [replace(e, card={**facts, **e.card}) for e in experts if not only or e.name in only]
        if chosen:
            write_family(Path(out), name, chosen)
        selected += chosen
    if only and not selected:
        raise HimatchError(f"{run} gives no expert called {', '.join(only)}")
    return selected


def _best(
    run: ExpertRun,
    task: Task,
    agents: Sequence[int],
    threads: int,
    score: Callable[[Sequence[Trajectory]], float],
    tail: str,
) -> list[Expert]:
    # Every seed gets a say: the best training return need not do best when evaluated.
    each = max(2, CANDIDATES // len(agents))
    candidates = [c for a in agents for c in run.candidates([a], lambda r: -r, each)]
    rolled = _tried(candidates, task, threads)
    best = max(range(len(candidates)), key=lambda i: (score(rolled[i]), mean_return(rolled[i])))
    return [_expert(f"{task.name}{tail}", task, candidates[best], threads)]


def _kept(out: Path, only: Sequence[str], name: str) -> Card | None:
    """The card of an expert that is in ``out`` already and is to stay there."""
    return read_cards(out).get(name) if only and name not in only else None


def _locomotion(run: ExpertRun, task: Task, agents: Sequence[int], threads: int, kept: Card | None) -> list[Expert]:
    """A medium agent and the best one, unless an expert is kept."""
    experts = [] if kept else _best(run, task, agents, threads, mean_return, "-expert")
    best = (kept or experts[0].card)["stochastic"]["mean"]
    if best <= 0.0:  # a part of a penalty would be better, not worse
        return experts
    return [_medium(run, task, agents, threads, best), *experts]


def _medium(run: ExpertRun, task: Task, agents: Sequence[int], threads: int, best: float) -> Expert:
    """Of the agents well inside the range of medium returns the one that falls last, else the nearest to the range.

    Where none falls, the steadiest. Selected by the mean alone, medium episodes may be the expert's with bad luck.
    """
    goal, slack = sum(MEDIUM) / 2 * best, 0.7 * (MEDIUM[1] - MEDIUM[0]) / 2 * best
    candidates = run.candidates(agents, lambda r: abs(r - goal), 6 * CANDIDATES)
    rolled = _tried(candidates, task, threads)
    inside = [i for i, episodes in enumerate(rolled) if abs(mean_return(episodes) - goal) <= slack]
    if inside:
        chosen = min(inside, key=lambda i: (-mean_length(rolled[i]), spread(rolled[i])))
    else:
        chosen = min(range(len(candidates)), key=lambda i: abs(mean_return(rolled[i]) - goal))
    return _expert(f"{task.name}-medium", task, candidates[chosen], threads)


def _velocities(run: ExpertRun, task: Task, agents: Sequence[int], threads: int) -> list[Expert]:
    experts = []
    specs = list(dict.fromkeys(run.agents[agent].settings for agent in agents))
    for settings in sorted(specs):
        same = [agent for agent in agents if run.agents[agent].settings == settings]
        candidates = run.candidates(same, lambda r: -r, CANDIDATES)
        rolled = _tried(candidates, task, threads)
        velocity = dict(settings)["velocity"]
        best = min(range(len(candidates)), key=lambda i, v=velocity: velocity_error(rolled[i], v))  # type: ignore[misc]
        experts.append(_expert(f"{task.name}-{velocity:.1f}", task, candidates[best], threads))
    return experts


def _tried(candidates: Sequence[Candidate], task: Task, threads: int) -> list[list[Trajectory]]:
    environments = [dict(candidate.agent.settings) for candidate in candidates]
    return roll_out([c.weights for c in candidates], environments, task, stochastic=True, threads=threads)


def _expert(name: str, task: Task, chosen: Candidate, threads: int) -> Expert:
    """A candidate with its card."""
    card: dict[str, Any] = {
        "settings": dict(chosen.agent.settings),
        "seed": chosen.agent.seed,
        "steps": chosen.step,
        "updates": chosen.updates,
    }
    return evaluated(Expert(name, task, chosen.weights, card), threads)


def evaluated(expert: Expert, threads: int = 0) -> Expert:
    """The expert with what sampled and most likely actions reach on its card.

    The episodes are others than those it was selected by, which flatter whatever does best in them.
    """
    card, task = dict(expert.card), expert.task
    for mode in ("stochastic", "deterministic"):
        episodes = roll_out(
            [expert.weights],
            [expert.settings],
            task,
            stochastic=mode == "stochastic",
            seed=CARD_SEED,
            threads=threads,
        )[0]
        card[mode] = {
            "episodes": len(episodes),
            "mean": round(mean_return(episodes), 1),
            "std": round(spread(episodes), 1),
            "length": round(mean_length(episodes), 1),
        }
        if task.name == CHEETAH_VEL.name:
            card[mode]["velocity_error"] = round(velocity_error(episodes, expert.settings["velocity"]), 4)
        if task.name == BACKFLIP.name:
            card[mode] |= {
                "flips_back": sum(map(flips_back, episodes)),
                "backward_turns": round(float(np.mean([backward_turns(episode) for episode in episodes])), 2),
                **{name: round(_mean_of(episodes, name), 3) for name in ("x_velocity", "pitch_rate")},
            }
    return replace(expert, card=card)


def reevaluate(folder: str | Path, threads: int = 0) -> list[Expert]:
    """Write the cards of all experts in a folder anew."""
    experts = [evaluated(load_expert(name, folder), threads) for name in read_cards(folder)]
    for family in dict.fromkeys(expert.card["family"] for expert in experts):
        write_family(Path(folder), family, [expert for expert in experts if expert.card["family"] == family])
    return experts
