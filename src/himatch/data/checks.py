"""What every dataset must satisfy before anyone sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from himatch.data.packed import BLOCK, Packed
from himatch.errors import DataError, note, one_line
from himatch.tasks import Task
from himatch.tasks.spaces import refusal
from himatch.types import Array

# How far outside its range, as a part of it, an action may lie and still count as rounding.
ROUNDING = 1e-4


class Column(Protocol):
    """A column of steps: a NumPy array or an HDF5 dataset."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""

    def __getitem__(self, key: Any) -> Any:
        """Read rows."""


def check_columns(
    observations: Column, actions: Column, others: Sequence[tuple[str, Column | None]], where: str
) -> None:
    """Ranks, types and lengths of a flat set or of one episode, before anything large is read."""
    for name, column in (("observations", observations), ("actions", actions)):
        if len(column.shape) > 2:
            kind = "pixels" if len(column.shape) == 4 else f"an array of shape {tuple(column.shape[1:])}"
            raise refusal(f"{where}: each row of {name}", kind, DataError)
        if name == "actions" and column.dtype.kind in "iub":
            raise refusal(f"{where}: the action", f"discrete ({column.dtype})", DataError)
        if len(column.shape) != 2:
            raise DataError(f"{where}: {name} must have shape (steps, width), got {tuple(column.shape)}")
        if column.dtype.kind not in "fiub":
            raise DataError(f"{where}: {name} are not numbers (type {column.dtype})")
    steps = observations.shape[0]
    if steps == 0:
        raise DataError(f"{where}: there are no steps in it")
    for name, other in (("actions", actions), *others):
        if other is None:
            continue
        if len(other.shape) == 0 or other.shape[0] != steps:
            raise DataError(f"{where}: {steps} observations but {name} has shape {tuple(other.shape)}")
        if other.dtype.kind not in "fiub":
            raise DataError(f"{where}: {name} are not numbers (type {other.dtype})")


def listed(names: Iterable[object]) -> str:
    """Names found in a file, for a message: not too many, and no control characters that a terminal would obey."""
    shown = [(name if name.isprintable() else repr(name))[:60] for name in map(str, names)]
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(shown[:20]) + more or "nothing"


def as_array(values: Any, name: str, where: str) -> NDArray[Any]:
    """Nested lists and tensors as an array; refuses what has no shape, and what an array cannot hold."""
    if np.ma.is_masked(values):
        raise DataError(f"{where}: {name} have masked cells; fill them or leave those steps out")
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{where}: {name} are ragged; every row must have the same width") from None
    except (TypeError, RuntimeError) as reason:  # a tensor of PyTorch on a GPU, or one that needs gradients
        raise DataError(f"{where}: {name} cannot become a NumPy array ({one_line(reason)})") from None


def flat_column(column: Column, name: str, where: str) -> Array:
    """One number a step, as ``(N,)``; raw replay files keep ``(N, 1)``."""
    values = np.asarray(column[...])
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{where}: {name} must hold one number a step, got shape {values.shape}")
    return values


def observation_columns(width: int, task: Task | None, where: str) -> int:
    """How many leading columns of an observation to keep; refuses a width that is not the task's."""
    if task is None or task.observation_width is None or width == task.observation_width:
        return width
    if task.prefix_only and width > task.observation_width:
        return task.observation_width
    raise DataError(
        f"{where}: observations have {width} numbers, task {task.name} has {task.observation_width}; "
        "is it the right task?"
    )


def check_packed(packed: Packed, task: Task, where: str, *, clip_actions: bool) -> None:
    """Widths, finite numbers, action range. Clips actions in place where they overshoot by rounding."""
    if len(packed.lengths) == 0:
        raise DataError(f"{where}: there are no episodes in it")
    if (packed.lengths < 1).any():
        raise DataError(f"{where}: episode {int(np.argmin(packed.lengths))} has no steps; drop it from the data")
    longer = packed.lengths[packed.lengths > task.horizon]
    if len(longer):
        note(
            f"{where}: {len(longer)} of {len(packed.lengths)} episodes are longer than the {task.horizon} steps of "
            f"task {task.name}'s horizon (the longest has {longer.max()}); are the episode ends right?"
        )
    observation_columns(packed.observations.shape[1], task, where)
    width = packed.actions.shape[1]
    if width == 0 or packed.observations.shape[1] == 0:
        raise DataError(f"{where}: observations and actions need at least one number a step")
    if task.action_width not in (None, width):
        raise DataError(
            f"{where}: actions have {width} numbers, task {task.name} has {task.action_width}; is it the right task?"
        )
    named = (("observations", packed.observations), ("actions", packed.actions), ("rewards", packed.rewards))
    for name, array in named:
        if array is not None:
            _check_finite(array, name, packed, where)
    finals = packed.final_observations[packed.has_final]
    if not np.isfinite(finals).all():
        episode = int(np.flatnonzero(packed.has_final)[np.argwhere(~np.isfinite(finals))[0][0]])
        raise DataError(f"{where}: the final observation of episode {episode} holds NaN or infinity")
    if task.action_low is not None and task.action_high is not None:
        low = np.broadcast_to(np.asarray(task.action_low, dtype=np.float32), (width,))
        high = np.broadcast_to(np.asarray(task.action_high, dtype=np.float32), (width,))
        _check_actions(packed, low, high, task, where, clip_actions=clip_actions)


def _check_finite(array: Array, name: str, packed: Packed, where: str) -> None:
    for start in range(0, len(array), BLOCK):
        finite = np.isfinite(array[start : start + BLOCK])
        if not finite.all():
            row = start + int(np.argwhere(~finite)[0][0])
            episode, step = packed.locate(row)
            raise DataError(
                f"{where}: {name} hold NaN or infinity (or a number beyond single precision) in episode {episode}, "
                f"step {step}; clean the log or drop the episode"
            )


def _check_actions(
    packed: Packed, low: NDArray[np.float32], high: NDArray[np.float32], task: Task, where: str, *, clip_actions: bool
) -> None:
    clipped, span = 0, high - low
    for start in range(0, len(packed.actions), BLOCK):
        block = packed.actions[start : start + BLOCK]
        excess = np.maximum(low - block, block - high)
        worst = excess / span
        if not clip_actions and (worst > ROUNDING).any():
            row, coordinate = (int(i) for i in np.argwhere(worst > ROUNDING)[0])
            episode, step = packed.locate(start + row)
            raise DataError(
                f"{where}: action {block[row, coordinate]:g} in episode {episode}, step {step}, coordinate {coordinate}"
                f" is outside the range {low[coordinate]:g} to {high[coordinate]:g} of task {task.name}; "
                "--clip-actions (clip_actions=True) clips it"
            )
        over = excess > 0
        if over.any():
            clipped += int(over.sum())
            packed.actions[start : start + BLOCK] = np.clip(block, low, high)
    if clipped:
        why = "as asked" if clip_actions else "they overshot by rounding"
        note(f"{where}: {clipped} action values clipped to the task's range ({why})")
