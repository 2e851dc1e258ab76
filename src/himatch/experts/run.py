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

from himatch._runtime.files import reading
from himatch._runtime.tensors import read_tensors
from himatch.errors import DataError
from himatch.experts.networks import Widths
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
    agents: Sequence[AgentSpec], config: SACConfig, widths: Widths, seed: int, start: str | Path | None
) -> dict[str, Any]:
    """What a run is, as it reads in its ``run.json``."""
    description = {
        "agents": [asdict(agent) for agent in agents],
        "config": asdict(config),
        "widths": widths._asdict(),
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
    with reading(str(folder / RUN)):
        facts: dict[str, Any] = json.loads((folder / RUN).read_text())
        agents_of(facts), widths_of(facts)
    return facts


def agents_of(facts: dict[str, Any]) -> list[AgentSpec]:
    """The agents of a described run, in order."""
    return [AgentSpec(a["task"], a["seed"], tuple((k, v) for k, v in a["settings"])) for a in facts["agents"]]


def widths_of(facts: dict[str, Any]) -> Widths:
    """The widths of a described run's networks."""
    return Widths(facts["widths"]["observation"], facts["widths"]["action"], tuple(facts["widths"]["hidden"]))


class StartingRun:
    """Agents of another run, to begin with."""

    def __init__(self, folder: Path, agents: Sequence[AgentSpec]) -> None:
        self.facts, self.folder = read_run(folder), folder
        known = agents_of(self.facts)
        missing = [agent.name for agent in agents if agent not in known]
        if missing:
            raise DataError(f"{folder} has no agent {missing[0]}; it has {', '.join(a.name for a in known)}")
        state = read_tensors(folder / TRAINING)
        with reading(str(folder / TRAINING)):
            self.state = chosen_agents(state, [known.index(agent) for agent in agents])

    def widths(self, hidden: tuple[int, ...]) -> Widths:
        """Its own, padding included, so that its numbers fit."""
        widths = widths_of(self.facts)
        if widths.hidden != hidden:
            raise DataError(f"the agents of {self.folder} have hidden layers {widths.hidden}, not {hidden}")
        return widths
