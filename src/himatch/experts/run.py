"""The folder of a training run, written and read back.

It holds ``run.json`` (agents, settings, versions), ``metrics.jsonl`` (returns of the training episodes),
``snapshots/`` (all actors, in half precision, at regular steps) and ``training.safetensors``, what ``--resume``
continues from. The memory of transitions is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from himatch._runtime.files import damaged, entry, read_json
from himatch._runtime.tensors import read_tensors
from himatch.errors import DataError
from himatch.experts.networks import NetworkDims
from himatch.experts.sac import SACConfig, chosen_agents

RUN, METRICS, TRAINING, SNAPSHOTS = "run.json", "metrics.jsonl", "training.safetensors", "snapshots"
VELOCITIES = tuple(round(0.1 * i, 1) for i in range(31))  # of the paper's cheetah-vel


@dataclass(frozen=True)
class AgentSpec:
    """One agent of a stack: a task with environment settings, and a seed."""

    task: str
    seed: int = 0
    settings: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """How the agent is called in messages: ``cheetah-vel:velocity=0.5/0``."""
        settings = ",".join(f"{key}={value:g}" for key, value in self.settings)
        return f"{self.task}{':' if settings else ''}{settings}/{self.seed}"


def describe_run(
    agents: Sequence[AgentSpec], config: SACConfig, dims: NetworkDims, seed: int, start: str | Path | None
) -> dict[str, Any]:
    """What a run is, as it reads in its ``run.json``."""
    description = {
        "agents": [asdict(agent) for agent in agents],
        "config": asdict(config),
        "widths": dims._asdict(),
        "seed": seed,
        "start": None if start is None else Path(start).name,
    }
    content: dict[str, Any] = json.loads(json.dumps(description))  # tuples become lists, as they will be in the file
    return content


def stored_state(folder: Path, description: dict[str, Any], *, resume: bool) -> dict[str, Tensor] | None:
    """What a run that is there has learned, or nothing; another run than the one described is refused."""
    if not (folder / RUN).is_file():
        return None
    if not resume:
        raise DataError(f"{folder} holds a run already; continue it with --resume or choose another folder")
    stored = read_run(folder)
    for key, value in description.items():
        if stored.get(key) != value:
            raise DataError(f"{folder} was begun with other {key}; resume it with the same or begin another")
    return read_tensors(folder / TRAINING) if (folder / TRAINING).is_file() else None


def read_run(folder: Path) -> dict[str, Any]:
    """The description of a run."""
    if not (folder / RUN).is_file():
        raise DataError(f"{folder} is not a run of himatch experts train (no {RUN} in it)")
    facts = read_json(folder / RUN)
    for key in ("config", "versions"):
        entry(facts, dict, str(folder / RUN), key)
    agents_of(facts, str(folder / RUN)), dims_of(facts, str(folder / RUN))
    return facts


def agents_of(facts: dict[str, Any], where: str = RUN) -> list[AgentSpec]:
    """The agents of a described run, in order."""
    agents = []
    for i in range(len(entry(facts, list, where, "agents"))):
        task, seed = entry(facts, str, where, "agents", i, "task"), entry(facts, int, where, "agents", i, "seed")
        settings = tuple(
            (
                entry(facts, str, where, "agents", i, "settings", j, 0),
                entry(facts, float, where, "agents", i, "settings", j, 1),
            )
            for j in range(len(entry(facts, list, where, "agents", i, "settings")))
        )
        agents.append(AgentSpec(task, seed, settings))
    return agents


def dims_of(facts: dict[str, Any], where: str = RUN) -> NetworkDims:
    """The dims of a described run's networks."""
    hidden = tuple(
        entry(facts, int, where, "widths", "hidden", i)
        for i in range(len(entry(facts, list, where, "widths", "hidden")))
    )
    observation, action = (entry(facts, int, where, "widths", name) for name in ("observation", "action"))
    return NetworkDims(observation, action, hidden)


def trained_steps(state: dict[str, Tensor], where: str) -> tuple[int, int]:
    """Transitions and updates of each agent, in what a run stores to be resumed."""
    for name in ("step", "updates"):
        if name not in state or state[name].numel() != 1:
            raise damaged(where, f"no {name} in it")
    return int(state["step"]), int(state["updates"])


def _place(agent: AgentSpec, known: Sequence[AgentSpec], folder: Path) -> int:
    """Where an agent is among known ones: that of the same settings, else the only one of its task and seed."""
    if agent in known:
        return known.index(agent)
    alike = [i for i, other in enumerate(known) if (other.task, other.seed) == (agent.task, agent.seed)]
    if len(alike) != 1:
        raise DataError(f"{folder} has no agent {agent.name}; it has {', '.join(other.name for other in known)}")
    return alike[0]


class StartingRun:
    """Agents of another run, to begin with."""

    def __init__(self, folder: Path, agents: Sequence[AgentSpec]) -> None:
        self.facts, self.folder = read_run(folder), folder
        known = agents_of(self.facts)
        places = [_place(agent, known, folder) for agent in agents]
        state = read_tensors(folder / TRAINING)
        for name, tensor in state.items():
            if tensor.dim() and len(tensor) not in (len(known), 2 * len(known)):  # two critics each
                raise damaged(str(folder / TRAINING), f"{name} is not of {len(known)} agents")
        self.state = chosen_agents(state, places)

    def dims(self, hidden: tuple[int, ...]) -> NetworkDims:
        """Its own, padding included, so that its numbers fit."""
        dims = dims_of(self.facts)
        if dims.hidden != hidden:
            raise DataError(f"the agents of {self.folder} have hidden layers {dims.hidden}, not {hidden}")
        return dims
