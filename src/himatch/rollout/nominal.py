"""The target's own z_t, at every step: nominal conditioning."""

from __future__ import annotations

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import TargetError
from himatch.statistics.information import Statistic
from himatch.targets import Frame, Target
from himatch.types import Array


@shaped
def own_z(statistic: Statistic, target: Target, frame: Frame) -> Float[Array, "T k"]:
    """The statistic of the target's values; of a task that it names, that task's throughout."""
    parts = target.stretches(frame)
    if len(parts) > 1 and any(part.task is not None for part in parts):
        return np.concatenate([own_z(statistic, part, frame) for part in parts])
    values = target.values(frame)
    named = _task(statistic, target, values.shape[1])
    if named is None:
        return statistic.of_values(values)
    return np.tile(statistic.of_task(named), (len(values), 1))


def _task(statistic: Statistic, target: Target, width: int) -> Array | None:
    """The task that a target names by itself or, where policies go by labels, by that of the episode it shows."""
    if target.task is not None:
        return np.asarray(target.task, dtype=np.float32) if statistic.tasked else None
    shown = target.demonstration()
    found = None if shown is None else statistic.named_by(shown.label)
    if shown is not None and found is not None and len(found) != width:
        raise TargetError(
            f"{target.name} is of the task {shown.label!r}, and tasks have parameters of {width} numbers here"
        )
    return found
