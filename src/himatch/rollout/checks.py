"""Whether a target fits a policy: refused where it cannot, a warning where the data does not cover it."""

from __future__ import annotations

import numpy as np

from himatch.errors import TargetError, note
from himatch.methods.batch import Dims
from himatch.runs.run import Run
from himatch.targets import EpisodeReference, Mixture, Target, checked_values
from himatch.targets.distribution import number

NOTED = 0.05  # part of a target beyond all data that is worth a warning


def check_target(run: Run, dims: Dims, target: Target) -> None:
    """Refuse what this policy cannot be conditioned on: an episode of another task, values that are none."""
    shown = target.demonstration()
    if shown is not None and shown.observations.shape[1] != dims.observation:
        raise TargetError(
            f"{target.name} shows observations of {shown.observations.shape[1]} numbers, this policy of task "
            f"{run.task.name} sees {dims.observation}; is it an episode of the right task?"
        )
    if run.statistic.matched is not None:
        frame = run.reference().frame
        tasks = () if run.statistic.tasked else [part.task for part in target.stretches(frame) if part.task is not None]
        for task in tasks:
            numbers = ",".join(map(number, task))
            raise TargetError(
                f"{run.method.name} is conditioned on no task, so task({numbers}) says nothing to it; hipi, gh and "
                f"multi-task are; to have the feature at that value give point({numbers}) or goal({numbers})"
            )
        checked_values(target, frame)


def note_deadline(run: Run, target: Target) -> None:
    """Say so where a deadline makes no difference to what the policy is conditioned on."""
    if run.statistic.matched is None or target.matches == "distribution":
        return
    frame = run.reference().frame
    values = target.values(frame)
    steps, horizon = len(values), frame.horizon
    if steps >= horizon:
        return
    whole = values.sum(axis=0, dtype=np.float64) / horizon if target.matches == "return" else values[-1]
    without = np.tile(whole.astype(np.float32), (horizon, 1))
    if np.allclose(run.statistic.of_values(values)[0], run.statistic.of_values(without)[0], rtol=1e-4, atol=1e-6):
        note(
            f"the policy is not conditioned on the time that is left: {target.name} is to it as if it had {horizon} "
            f"steps, and its rollouts end after {steps}; gcsl and udrl are conditioned on it"
        )


def note_bounds(target: Target) -> None:
    """Say so where nothing keeps a target's bounds."""
    if target.bounds:
        said = " & ".join(map(str, target.bounds))
        note(f"the policy is not conditioned on bounds ({said}), and nothing keeps them here; match scores them")


def note_outside(target: Target, mixture: Mixture | None, reference: EpisodeReference) -> None:
    """Say so where a target lies outside what the data covers, and what would come nearest."""
    support = reference.support(target)
    if support.outside < NOTED or target.demonstration() is not None:
        return
    if not len(reference.lengths):
        note(f"whether {target.name} can be reached is not known: no training episodes")
        return
    if target.matches == "distribution":
        what = f"{support.outside:.0%} of {target.name} lies where no training episode goes"
        remedy = f"they have {reference.frame.feature.name} {_ranges(reference)}"
        if mixture is not None:
            remedy += f", and the nearest mixture of them is {mixture.w1:.3g} away (W1)"
    else:
        what = f"{target.name} lies beyond every training episode"
        numbers = ", ".join(f"{x:.4g}" for x in reference.seen(target)[reference.nearest(target).episode])
        steps = len(target.values(reference.frame))
        within = f", within={steps}" if steps < reference.frame.horizon else ""
        remedy = f"the nearest achievable is {target.matches}({numbers}{within})"
    note(f"{what}; {remedy}")


def _ranges(reference: EpisodeReference) -> str:
    """Where the values of each feature lie; the bins of one that never changes are wider than that."""
    bins, least, most = reference.frame.bins, reference.values.min(axis=0), reference.values.max(axis=0)
    return ", ".join(
        f"at {a:.3g}" if a == b else f"from {low:.3g} to {high:.3g}"
        for low, high, a, b in zip(bins.low, bins.high, least, most, strict=True)
    )
