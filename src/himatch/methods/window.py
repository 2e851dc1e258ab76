"""What a window is: the times of its N steps and of its target states, from the time of its last step."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.shapes import Int, shaped
from himatch.methods.batch import BatchSpec

Rows = TypeVar("Rows", NDArray[np.int64], Tensor)


@shaped
def cut(
    spec: BatchSpec,
    now: Int[Rows, "*rows"],
    steps: Int[Rows, " N"],
    target_steps: Int[Rows, " S"],
    ahead: Int[Rows, "*rows"] | None = None,
) -> tuple[Int[Rows, "*rows N"], Int[Rows, "*rows S"]]:
    """Cut the window whose last step is ``now``: times of its N steps and of its target states.

    The one place that says what a window is; training, rollouts, scoring and export all call it. Early in an episode,
    for now < N - 1, the window starts at step 0 and ``now`` stands at position ``now``. Times past the end of an
    episode are the caller's to clip. ``steps`` is ``arange(N)``, ``target_steps`` ``arange(S)``. ``ahead`` is the
    look-ahead that training drew; at run time there is none.
    """
    start = (now - (spec.context - 1)).clip(min=0)
    first = now + spec.rollout_start if ahead is None else now + spec.target_start + ahead
    return start[..., None] + steps, (first[..., None] + target_steps).clip(min=0)
