"""The z of targets in a file beside an exported model; :mod:`himatch.deployed` reads it, with NumPy alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from himatch._runtime.files import new_file
from himatch.deployed import FORMAT
from himatch.errors import TargetError
from himatch.interchange.facts import Facts
from himatch.policy import Policy
from himatch.rehearsal import Arena
from himatch.rollout import Conditioning, make_conditioner, objection
from himatch.rollout.checks import check_target, note_bounds, note_deadline, note_outside
from himatch.rollout.conditioners import Remaining
from himatch.rollout.plans import EPISODES, Plans
from himatch.rollout.programs import REMAINING
from himatch.targets import Target, TargetLike
from himatch.types import Trajectory

SUBTRACTED = ("counts", "final", "histogram", "moments", "sum", "timed_sum")
"""Statistics of which ``himatch.deployed`` computes what remains."""

Tables = dict[str, NDArray[Any]]


def z_file(path: str | Path) -> Path:
    """``policy.z.npz`` beside ``policy.onnx``."""
    return Path(path).with_suffix(".z.npz")


def z_tables(policy: Policy, given: Sequence[TargetLike], facts: Facts, plans: Plans = EPISODES) -> Tables:
    """Arrays of every target: ``nominal-0``, ``planned-0``, ``total-0``, ``whole-0`` and so on; and ``about``, in JSON.

    One in which several follow one another has ``borders-0``, the steps where they do, and ``before-0``, the totals up
    to these.
    ``policy`` holds one seed. A target that the training data does not cover is noted. A conditioning that the policy
    would ignore is left out, and so are ``planned`` where a target is no distribution, and ``rehearsed`` where one was
    not, or its program is to follow what remains. ``plans`` says what ``planned`` is laid out over.
    """
    if plans != EPISODES and (why := objection("planned", policy.statistic, policy.method)):
        raise TargetError(why)
    several: Sequence[TargetLike] = [given] if isinstance(given, (str, Target, Trajectory)) else given
    targets = [policy.target(one) for one in several]
    for target in targets:
        check_target(policy.run, policy.agent.dims, target)
        note_bounds(target)
        note_deadline(policy.run, target)
        if policy.statistic.matched is not None:
            note_outside(target, None, policy.reference())
    tables: Tables = {}
    kept = ["nominal"]
    for number, target in enumerate(targets):
        if (table := _table(policy, "nominal", target)) is not None:
            tables[f"nominal-{number}"] = table
    kind = (facts["statistic"] or {}).get("aggregator", {}).get("kind")
    if kind in SUBTRACTED and objection("remaining", policy.statistic, policy.method) is None:
        kept.append("remaining")
        for number, target in enumerate(targets):
            whole = make_conditioner("remaining", policy.run, policy.agent, [target], np.zeros((1, 1), np.int64))
            assert isinstance(whole, Remaining)
            tables |= {f"total-{number}": whole.totals[0, 0], f"whole-{number}": whole.whole[0, 0]}
            if borders := whole.borders[0]:
                steps, before = zip(*borders, strict=True)
                tables |= {f"borders-{number}": np.array(steps), f"before-{number}": np.stack(before)}
    if objection("planned", policy.statistic, policy.method) is None:
        try:
            planned = {f"planned-{i}": _table(policy, "planned", target, plans) for i, target in enumerate(targets)}
            tables |= {name: table for name, table in planned.items() if table is not None}
            kept.append("planned")
        except TargetError:  # a target that is no distribution, or no training episodes to plan with
            if plans != EPISODES:
                raise
    if _rehearsed(policy, targets):
        kept.append("rehearsed")
        programs = {f"rehearsed-{i}": _table(policy, "rehearsed", target) for i, target in enumerate(targets)}
        tables |= {name: table for name, table in programs.items() if table is not None}
    port = policy.agent.port(policy.statistic)
    about = {
        **facts,
        "z_format": FORMAT if any(name.startswith("borders-") for name in tables) else 1,
        "targets": [target.name for target in targets],
        "lengths": [_length(policy, target) for target in targets],
        "conditionings": kept,
        "conditioned_by": None if port is None else port.name,
    }
    return {**tables, "about": np.array(json.dumps(about))}


def _rehearsed(policy: Policy, targets: Sequence[Target]) -> bool:
    """Whether all targets have a program that is a table."""
    if objection("rehearsed", policy.statistic, policy.method) is not None:
        return False
    seed, now = policy.seeds[0], Arena(policy.run, policy.agent, policy.temperature).now
    frame = policy.reference().frame
    found = [policy.run.programs.get(target, frame, now) for target in targets]
    return all(one is not None and one["programs"][str(seed)][0][0] != REMAINING for one in found)


def write_tables(path: Path, tables: Tables) -> None:
    """Write them, whole or not at all."""
    with new_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **tables)  # type: ignore[arg-type]


def _length(policy: Policy, target: Target) -> int:
    """Steps that a target lasts."""
    shown = target.demonstration()
    if policy.statistic.matched is not None:
        return len(target.values(policy.reference().frame))
    return policy.task.horizon if shown is None else len(shown)


def _table(
    policy: Policy, conditioning: Conditioning, target: Target, plans: Plans = EPISODES
) -> NDArray[np.float32] | None:
    """What the model is conditioned on at every step; past the last row that one holds."""
    steps = _length(policy, target) + policy.context
    rollouts = np.zeros((1, steps), np.int64)  # one for each step
    now = Arena(policy.run, policy.agent, policy.temperature).now
    conditioner = make_conditioner(conditioning, policy.run, policy.agent, [target], rollouts, now, plans)
    clock = torch.arange(steps)
    with torch.no_grad():
        z, states = conditioner.z(clock[None]), conditioner.target_states(torch.zeros_like(clock), clock)
    if z is None and states is None:
        return None
    rows: NDArray[np.float32] = (z[0] if states is None else states).numpy()  # type: ignore[index]
    differs = np.flatnonzero((rows != rows[-1]).reshape(steps, -1).any(axis=1))
    return rows[: int(differs[-1]) + 2 if len(differs) else 1]
