"""What every dataset must satisfy before anyone sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from himatch.data.packed import BLOCK, Packed
from himatch.data.problems import LEAVE_OUT, Problems, settle
from himatch.data.wording import listed
from himatch.errors import DataError, note, one_line
from himatch.tasks import Task
from himatch.tasks.spaces import refusal
from himatch.types import Array

# How far outside its range, as a part of it, an action may lie and still count as rounding.
ROUNDING = 1e-4
MOST_CHOICES, FEWEST_ROWS = 10, 100  # whole numbers that look like choices, over at least so many rows


class StepColumn(Protocol):
    """One row a step: a NumPy array, or a column of an HDF5 file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""

    def __getitem__(self, key: Any) -> Any:
        """Read rows."""


def check_columns(
    observations: StepColumn, actions: StepColumn, others: Sequence[tuple[str, StepColumn | None]], where: str
) -> None:
    """Ranks, types and lengths of a flat set or of one episode, before anything large is read."""
    for name, column in (("observations", observations), ("actions", actions)):
        if len(column.shape) > 2:
            kind = "pixels" if len(column.shape) == 4 else f"an array of shape {tuple(column.shape[1:])}"
            raise refusal(f"{where}: each row of {name}", kind, DataError)
        if name == "actions" and whole_numbers(column):
            if len(column.shape) == 2 and column.shape[1] != 1:
                kind = f"discrete ({column.dtype}) with {column.shape[1]} numbers a step"
                raise refusal(f"{where}: the action", kind, DataError)
            continue
        if len(column.shape) != 2:
            hint = "; one number a step has shape (steps, 1), numbers of discrete actions are integers"
            raise DataError(
                f"{where}: {name} must have shape (steps, width), got {tuple(column.shape)}"
                f"{hint * (name == 'actions' and len(column.shape) == 1)}"
            )
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


def whole_numbers(column: StepColumn) -> bool:
    """Whether a column of actions holds whole numbers by its type: those of discrete ones."""
    return column.dtype.kind in "iub" and len(column.shape) > 0


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


def flat_column(column: StepColumn, name: str, where: str) -> Array:
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


def align_columns(
    packed: Packed,
    columns: Mapping[str, tuple[str, ...]],
    where: str,
    others: str = "those of the sources that it is joined to",
) -> Packed:
    """The set with its columns, where they have names, in the order of ``columns``; other names are refused."""
    for name in ("observations", "actions"):
        found, wanted = packed.columns.get(name, ()), columns.get(name, ())
        if not found or not wanted or found == wanted:
            continue
        if sorted(found) != sorted(wanted):
            more, less = ([n for n in one if n not in other] for one, other in ((found, wanted), (wanted, found)))
            raise DataError(
                f"{where}: its {name} are not {others}: {listed(more)} is only here, {listed(less)} is not; "
                f"take the same columns of all (--columns.{name})"
            )
        order = [found.index(n) for n in wanted]
        finals = packed.final_observations
        if name == "observations":
            finals = finals[:, order]
        array: Array = getattr(packed, name)
        for start in range(0, len(array), BLOCK):
            array[start : start + BLOCK] = array[start : start + BLOCK, order]
        packed = replace(packed, final_observations=finals, columns={**packed.columns, name: wanted})
    return packed


def check_packed(
    packed: Packed, task: Task, where: str, problems: Problems, *, clip_actions: bool, drop_bad: bool
) -> NDArray[np.bool_]:
    """Widths, finite numbers, action range. Clips actions in place where they overshoot by rounding.

    ``problems`` are those that its reader found. Says which episodes to take, ``(E,)``: all, but with ``drop_bad``
    those without a problem.
    """
    if len(packed.lengths) == 0:
        raise DataError(f"{where}: there are no episodes in it")
    if (packed.lengths < 1).any():
        raise DataError(f"{where}: episode {int(np.argmin(packed.lengths))} has no steps; drop it from the data")
    observation_columns(packed.observations.shape[1], task, where)
    width = packed.actions.shape[1]
    if width == 0 or packed.observations.shape[1] == 0:
        raise DataError(f"{where}: observations and actions need at least one number a step")
    if task.action_width not in (None, width):
        raise DataError(
            f"{where}: actions have {width} numbers, task {task.name} has {task.action_width}; is it the right task?"
        )
    find_not_finite(packed, problems, ("observations", "actions", "rewards"))
    _find_bad_finals(packed, problems)
    if task.action_low is not None and task.action_high is not None:
        low = np.broadcast_to(np.asarray(task.action_low, dtype=np.float32), (width,))
        high = np.broadcast_to(np.asarray(task.action_high, dtype=np.float32), (width,))
        _check_actions(packed, problems, low, high, task, where, clip_actions=clip_actions)
    good = settle(problems, packed, where, drop_bad=drop_bad)
    _note_longer(packed.lengths[good], task, where)
    return good


def check_choices(packed: Packed, task: Task | None, where: str) -> None:
    """Refuse actions that may be numbers of choices, which a continuous policy would average.

    A task's range is that of numbers, not of choices.
    """
    said = (
        packed.facts.continuous
        or packed.facts.discrete is not None
        or (task is not None and task.action_low is not None)
    )
    if said or len(packed.actions) < FEWEST_ROWS:
        return
    chosen = [
        packed.called("actions", i) for i in range(packed.actions.shape[1]) if _looks_chosen(packed.actions[:, i])
    ]
    say = "say so where they are continuous (--columns.continuous, columns={'continuous': True})"
    if len(chosen) == packed.actions.shape[1] == 1:
        raise DataError(
            f"{where}: the actions ({listed(chosen)}) hold a few whole numbers only; are they numbers of N discrete "
            f"ones? Then say how many (--columns.discrete N, columns={{'discrete': N}}), or {say}"
        )
    if len(chosen) == packed.actions.shape[1]:
        raise DataError(
            f"{where}: the actions ({listed(chosen)}) hold a few whole numbers only, as discrete ones do, of which "
            "himatch takes one a step: name its column (--columns.actions), or say how many there are where these are "
            f"one-hot rows (--columns.discrete N); {say}"
        )
    if chosen:
        note(
            f"{where}: {listed(chosen)} among the actions hold a few whole numbers only; they are predicted as "
            f"continuous numbers; {say}"
        )


def _looks_chosen(column: Array) -> bool:
    """Whether a column holds a few whole numbers; of most data the first block tells."""
    found: set[float] = set()
    for start in range(0, len(column), BLOCK):
        block = column[start : start + BLOCK]
        if not (np.isfinite(block).all() and (block == np.round(block)).all()):
            return False
        found |= set(np.unique(block).tolist())
        if len(found) > MOST_CHOICES:
            return False
    return len(found) >= 2


def _note_longer(lengths: NDArray[np.int64], task: Task, where: str) -> None:
    """Warn of episodes that are longer than the task's."""
    longer = lengths[lengths > task.horizon]
    if len(longer):
        note(
            f"{where}: {len(longer)} of {len(lengths)} episodes are longer than the {task.horizon} steps of "
            f"task {task.name}'s horizon (the longest has {longer.max()}); are the episode ends right?"
        )


NOT_FINITE = f"clean the log or {LEAVE_OUT}"


def find_not_finite(packed: Packed, problems: Problems, names: Sequence[str]) -> None:
    """Episodes whose arrays of these names hold something else than finite numbers."""
    for name in names:
        array = getattr(packed, name)
        for rows, columns in () if array is None else _not_finite(array):
            numbers = np.searchsorted(packed.starts, rows, side="right") - 1
            for episode, first, count in zip(*np.unique(numbers, return_index=True, return_counts=True), strict=True):
                problems.add(
                    "finite",
                    [int(episode)],
                    lambda name=name, row=int(rows[first]), column=int(columns[first]): (  # type: ignore[misc]
                        f"{_hold(packed, name, row, column)} in {packed.place(row)}"
                    ),
                    NOT_FINITE,
                    count=int(count),
                )


def _find_bad_finals(packed: Packed, problems: Problems) -> None:
    bad_finals = np.flatnonzero(packed.has_final & ~np.isfinite(packed.final_observations).all(axis=1))
    if len(bad_finals):
        problems.add(
            "finite",
            bad_finals.tolist(),
            lambda: f"the final observation of episode {packed.places.episode(bad_finals[0])} holds NaN or infinity",
            NOT_FINITE,
            count=len(bad_finals),
        )


def _not_finite(array: Array) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of the numbers that are none, a block at a time."""
    for start in range(0, len(array), BLOCK):
        block = np.atleast_2d(array[start : start + BLOCK].T).T  # rewards are one column
        rows, columns = np.nonzero(~np.isfinite(block))
        if len(rows):
            yield start + rows, columns


def _hold(packed: Packed, name: str, row: int, column: int) -> str:
    """That a column holds what is no number, by the name it has in the file, and what it holds."""
    if name not in packed.columns:
        return f"{name} hold NaN or infinity (or a number beyond single precision)"
    called = packed.columns[name][column]
    cell = packed.places.cell(row, called)
    if cell is None:
        return f"column {listed([called])} is empty, NaN, infinite or beyond single precision"
    if not cell.strip():
        return f"column {listed([called])} is empty"
    return f"column {listed([called])} holds {listed([repr(cell)])}, {_kind(cell)},"


def _kind(cell: str) -> str:
    """What a cell is that is no finite number."""
    try:
        value = float(cell)
    except ValueError:
        return "which is text"
    return "which is no finite number" if not np.isfinite(value) else "which is beyond single precision"


def _check_actions(
    packed: Packed,
    problems: Problems,
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    task: Task,
    where: str,
    *,
    clip_actions: bool,
) -> None:
    """Clip what overshoots by rounding, or as requested; find what does not, in episodes without another problem."""
    bad = np.zeros(len(packed.lengths), dtype=bool)
    bad[list(problems.episodes)] = True
    clipped, span, counted = 0, high - low, np.repeat(~bad, packed.lengths)
    for start in range(0, len(packed.actions), BLOCK):
        block = packed.actions[start : start + BLOCK]
        excess = np.where(counted[start : start + BLOCK, None], np.maximum(low - block, block - high), 0)
        far = np.argwhere(excess / span > ROUNDING)
        if not clip_actions and len(far):
            rows = start + far[:, 0]
            problems.add(
                "range",
                np.unique(np.searchsorted(packed.starts, rows, side="right") - 1).tolist(),
                lambda row=int(rows[0]), column=int(far[0, 1]): (  # type: ignore[misc]
                    _out_of_range(packed, row, column, low, high, task)
                ),
                "--clip-actions (clip_actions=True) clips it",
                count=len(rows),
                droppable=False,
            )
            continue
        over = excess > 0
        if over.any():
            clipped += int(over.sum())
            packed.actions[start : start + BLOCK] = np.clip(block, low, high)
    if clipped and (clip_actions or "range" not in problems.found):
        why = "as requested" if clip_actions else "they overshot by rounding"
        note(f"{where}: {clipped} action values clipped to the task's range ({why})")


def _out_of_range(
    packed: Packed, row: int, column: int, low: NDArray[np.float32], high: NDArray[np.float32], task: Task
) -> str:
    names = packed.columns.get("actions")
    return (
        f"action {packed.actions[row, column]:g} in {packed.place(row)}, "
        f"{f'column {listed([names[column]])}' if names else f'coordinate {column}'} is outside the "
        f"range {low[column]:g} to {high[column]:g} of task {task.name}"
    )
