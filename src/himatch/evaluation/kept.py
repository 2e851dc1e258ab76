"""Rollouts kept as episodes: what a policy did under targets, as a dataset that others can be trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import new_folder
from himatch._runtime.tensors import versions
from himatch._version import __version__
from himatch.data import TrajectoryDataset
from himatch.data.episodes import pack_trajectories
from himatch.data.facts import Facts
from himatch.data.wording import counted
from himatch.data.writer import check_out, write_folder
from himatch.errors import DataError
from himatch.runs.run import Run
from himatch.targets import Target
from himatch.types import Trajectory


@dataclass(frozen=True, eq=False)
class KeptRollouts:
    """The rollouts of K seeds under one target, E each; ``starts`` are the seeds of their initial states, ``(E,)``.

    ``facts`` say who acted: run, method, seeds, weights, temperature, environment.
    """

    run: Run
    env_id: str | None
    episodes: tuple[tuple[Trajectory, ...], ...]
    starts: tuple[int, ...]
    facts: Mapping[str, Any]


class Rolled(Protocol):
    """A match result, as far as its rollouts are concerned."""

    @property
    def rollouts(self) -> KeptRollouts | None:
        """They, where they were kept."""

    @property
    def target(self) -> Target:
        """What they were to match."""

    @property
    def conditioning(self) -> str:
        """How the policy was conditioned on it."""

    @property
    def error(self) -> float:
        """What the target minimises."""

    @property
    def charged(self) -> float:
        """The same with time that was not played."""

    @property
    def played(self) -> float:
        """The part of the target's steps that they lasted."""

    @property
    def returns(self) -> NDArray[np.float64]:
        """Of every rollout."""


def rollout_dataset(results: Sequence[Rolled], label: str | None = None, most: int | None = None) -> TrajectoryDataset:
    """The rollouts of some results as one dataset: target after target, and of each seed after seed.

    Their label is the target's name, unless another is given. Of more than ``most`` every target and seed has its part.
    """
    run, env_id = (first := _kept(results[0])).run, first.env_id
    episodes = [
        replace(_kept(results[n]).episodes[k][e], label=label or results[n].target.name)
        for n, k, e in _chosen(results, most)
    ]
    packed = pack_trajectories(episodes, run.task)
    names = run.description["data"].get("columns") or {}
    columns = {what: tuple(names[what]) for what in ("observations", "actions") if names.get(what)}
    facts = Facts(rate=run.description["data"].get("rate"), units=run.units, discrete=run.task.discrete)
    packed = replace(packed, columns=columns, facts=facts)
    return TrajectoryDataset(packed, run.task, source=f"rollouts of {run.folder.path.name}", env_id=env_id)


def save_rollouts(
    results: Sequence[Rolled],
    out: str | Path,
    *,
    overwrite: bool = False,
    label: str | None = None,
    most: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> TrajectoryDataset:
    """Write the rollouts of some results as a Minari folder, with who played them, under which targets, and how well.

    ``more`` is to be said beside that.
    """
    out = Path(out)
    check_out(out, overwrite)
    dataset, chosen = rollout_dataset(results, label, most), _chosen(results, most)
    kept = [_kept(result) for result in results]
    facts = {
        **kept[0].facts,
        "conditioning": results[0].conditioning,
        "targets": [
            {"name": result.target.name, "episodes": sum(n == number for n, _, _ in chosen), **_scores(result)}
            for number, result in enumerate(results)
        ],
        **(more or {}),
    }
    starts = [kept[n].starts[e] for n, _, e in chosen]
    description = (
        f"{counted(len(dataset), 'episode')} of {dataset.task.name} by the run {facts['run']} under "
        f"{counted(len(results), 'target')}, rolled out by himatch {__version__}."
    )
    metadata = {"algorithm_name": facts["method"], "himatch": {"rollouts": facts, "versions": versions()}}
    with new_folder(out, overwrite=overwrite) as partial:
        write_folder(dataset, partial, out.name, description=description, seeds=starts, metadata=metadata)
    dataset.source = str(out)
    return dataset


def _chosen(results: Sequence[Rolled], most: int | None) -> list[tuple[int, int, int]]:
    """Which rollouts a dataset has, in its order: the number of the result, of the seed and of the rollout."""
    every = [
        (n, k, e)
        for n, result in enumerate(results)
        for k, row in enumerate(_kept(result).episodes)
        for e in range(len(row))
    ]
    return sorted(sorted(every, key=lambda place: place[::-1])[:most])


def _kept(result: Rolled) -> KeptRollouts:
    if result.rollouts is None:
        raise DataError(
            "the rollouts of this result were not kept; those of policy.match are, those of match_all and evaluate "
            "with keep_rollouts=True"
        )
    return result.rollouts


def _scores(result: Rolled) -> dict[str, Any]:
    """How well a target was matched, in a few numbers."""
    return {
        "matches": result.target.matches,
        "error": result.error,
        "charged": result.charged,
        "played": result.played,
        "return_mean": float(result.returns.mean()),
    }
