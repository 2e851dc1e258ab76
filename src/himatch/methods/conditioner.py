"""The contract of a conditioner, which gives rollouts their z, and what conditioners are made with.

The generic ones are in :mod:`himatch.rollout.conditioners`; a method's own are in its folder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.shapes import Float, Int, shaped
from himatch.errors import TargetError
from himatch.targets import Target
from himatch.types import Array, Trajectory

Some = slice | NDArray[np.int64]
"""Which of B rollouts: all of them, or some by number."""
ALL = slice(None)


class Conditioner:
    """Gives every rollout its z, step by step; this one gives none (behavioural cloning).

    Rollouts are ``(K, B)``. ``target_of`` is the number of the target that each one follows, ``(1, B)`` where all
    models have the same. A ``clock`` says at which step each rollout is, ``(1, 1)`` where all are at the same.
    """

    wants_features = False
    """Whether ``achieved`` must be called after every step."""
    wants_states = False
    """Whether ``seen`` must be called before ``z``."""
    target_of: Tensor | None = None

    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B k"] | None:
        """Statistics for this step, or ``None`` for a policy without z."""
        return None

    def target_states(
        self, target_of: Int[Tensor, "*rows"], clock: Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows S obs"] | None:
        """States of these targets that a learned code is made from at these steps."""
        return None

    def achieved(self, phi: Float[Array, "K b d"], rollouts: Some = ALL) -> None:
        """Count the feature of the step that these rollouts just made."""

    def seen(self, states: Float[Array, "K B obs"], actions: int) -> None:
        """Look at the present observations; an action has so many numbers."""

    def reset(self, rollouts: Some = ALL) -> None:
        """Begin again at step 0."""

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Condition these rollouts on the targets of ``other``, a conditioner for them alone.

        Clocks and what was achieved stay theirs. For rollouts that each have a target of their own.
        """


def demonstrated(target: Target) -> Trajectory:
    """The episode that a target shows, for policies that imitate one."""
    found = target.demonstration()
    if found is None:
        raise TargetError(f"this policy imitates demonstrations, and {target.name} is none; give demo(FILE, EPISODE)")
    return found


@shaped
def padded(tables: Sequence[Float[Array, "_ width"]], device: torch.device) -> Float[Tensor, "n T width"]:
    """Tables of different lengths as one; past its end a table's last row repeats."""
    longest = max(len(table) for table in tables)
    rows = np.stack([table[np.minimum(np.arange(longest), len(table) - 1)] for table in tables])
    return torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(device)


@shaped
def replaced_rows(
    tables: Float[Tensor, "n _ width"],
    others: Float[Tensor, "_ _ width"],
    here: Int[Tensor, " b"],
    there: Int[Tensor, " b"],
) -> Float[Tensor, "n T width"]:
    """Padded tables with those of numbers ``here`` replaced by those of numbers ``there`` among the others."""
    if len(here) == len(tables) == len(others) and torch.equal(here, there):
        return others  # all of them: nothing to copy while a control loop waits; nobody writes into tables
    longest = max(tables.shape[1], others.shape[1])
    clock = torch.arange(longest, device=tables.device)
    merged, rows = (table[:, clock.clamp(max=table.shape[1] - 1)] for table in (tables, others))
    merged[here] = rows[there]
    return merged
