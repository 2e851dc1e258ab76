"""How often goals are reached: rollouts from given starts to goals at which the environment itself terminates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from himatch.methods import Agent
from himatch.rollout import Conditioning, Player, make_conditioner, roll_out
from himatch.runs.run import Run
from himatch.targets import Goal
from himatch.tasks import Task
from himatch.tasks.environments import make_environment

AT_ONCE = 256  # simulations
APART = 10_000  # seeds of one test task from those of the next


class Cases(NamedTuple):
    """Rollouts to be made: the goal of each, the settings of its environment, and what it is counted with."""

    goals: list[tuple[float, ...]]
    settings: list[dict[str, Any]]
    groups: list[str]


class Reached(NamedTuple):
    """Whether each rollout reached its goal, and after how many steps it ended, ``(K, n)``."""

    reached: NDArray[np.bool_]
    steps: NDArray[np.int64]


def own_tests(task: Task, episodes: int, tests: Sequence[int] = range(1, 6)) -> Cases:
    """The test tasks of an environment that has some (its setting ``test``), with starts and goals from seeds."""
    from himatch.simulation import EVALUATION_SEED

    cases = Cases([], [], [])
    for number in tests:
        with closing(make_environment(task.env_id or "", {**task.env_kwargs, "test": number})) as env:
            for episode in range(episodes):
                start, info = env.reset(seed=EVALUATION_SEED + APART * number + episode)
                goal = tuple(map(float, info["goal"]))
                cases.goals.append(goal)
                cases.settings.append({"start": tuple(map(float, start)), "goal": goal})
                cases.groups.append(f"goal {number}")
    return cases


def goals_reached(
    run: Run,
    agent: Agent,
    goals: Sequence[Sequence[float]],
    settings: Sequence[Mapping[str, Any]],
    *,
    conditioning: Conditioning = "nominal",
    steps: int | None = None,
    within: int | None = None,
    seed: int = 0,
    temperature: float = 0.0,
) -> Reached:
    """Whether every seed of an agent reached every goal, once each.

    ``settings`` are those of the environment of every rollout: where it begins, and the goal at which it terminates.
    Rollouts last ``steps`` at most, by default the task's horizon. The policy is conditioned on the goal ``within`` so
    many steps, by default as many.
    """
    from himatch.simulation import EVALUATION_SEED, make_simulator

    steps = steps or run.task.horizon
    task, stack = replace(run.task, horizon=steps), len(agent.seeds)
    each, parts = max(1, AT_ONCE // stack), []
    for first in range(0, len(goals), each):
        some = [Goal(tuple(map(float, goal)), within or steps) for goal in goals[first : first + each]]
        target_of = np.tile(np.arange(len(some)), (stack, 1))
        conditioner = make_conditioner(conditioning, run, agent, some, target_of)
        player = Player(agent, run.normalizers, conditioner, len(some), seed, temperature)
        own = list(settings[first : first + each]) * stack
        with closing(make_simulator(task, stack * len(some), settings=own)) as simulator:
            lengths = np.full(target_of.shape, steps)
            starts = np.tile(EVALUATION_SEED + np.arange(first, first + len(some)), (stack, 1))
            rollouts = roll_out(player, simulator, lengths, starts, run.statistic.matched)
        parts.append(Reached(rollouts.terminated, rollouts.lengths))
    return Reached(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))
