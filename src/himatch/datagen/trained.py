"""A run as an agent: what a trained policy does under targets, recorded as a dataset."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from himatch._runtime.progress import bar, bars
from himatch.data.dataset import TrajectoryDataset
from himatch.data.writer import check_out
from himatch.datagen.slots import reset_seeds
from himatch.errors import HimatchError
from himatch.evaluation.kept import save_rollouts
from himatch.rollout import Conditioning
from himatch.targets import TargetLike
from himatch.tasks import Task


def collect_from_run(
    task: Task,
    run: str,
    out: Path,
    targets: Sequence[TargetLike],
    *,
    episodes: int,
    seed: int = 0,
    deterministic: bool = False,
    label: str | None = None,
    conditioning: Conditioning = "nominal",
    overwrite: bool = False,
    quiet: bool = False,
) -> TrajectoryDataset:
    """Roll a run out under some targets and write the episodes, which are dealt evenly to targets and seeds.

    Initial states are those of collected data: no evaluation begins there. Labels are the targets' names, unless one
    is given.
    """
    from himatch.policy import load

    check_out(out, overwrite)
    if not targets:
        raise HimatchError(f"a policy of himatch's acts under targets; name some for {run} (--target EXPR)")
    policy = load(run)
    if policy.task.name != task.name:
        raise HimatchError(f"{run} is a policy of task {policy.task.name}, not of {task.name}; is it the right task?")
    if deterministic and policy.agent.policy.stochastic:
        policy.temperature = 0.0
    wanted = [policy.target(target) for target in targets]
    each = math.ceil(episodes / (len(wanted) * len(policy.seeds)))
    with bars() as begin:
        if conditioning == "rehearsed":
            policy.rehearse(wanted, episodes=each, env=task.env_id, bar=None if quiet else begin)
    with bar("rollouts", quiet=quiet or not sys.stderr.isatty()) as progress:
        (results,) = policy.match_features(
            wanted,
            features=[policy.feature],
            episodes=each,
            conditioning=conditioning,
            env=task.env_id,
            progress=progress,
            keep_rollouts=True,
            starts=reset_seeds(seed, 0, len(wanted) * each),
        )
    more = {"seed": seed, "collected": episodes}
    return save_rollouts(results, out, overwrite=overwrite, label=label, most=episodes, more=more)
