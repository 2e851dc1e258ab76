"""What an exported policy takes beside its windows, step by step: NumPy alone, no PyTorch, nothing else of himatch.

``himatch export RUN --target EXPR --out policy.onnx`` writes ``policy.z.npz`` beside the model. This file reads it. It
imports nothing but NumPy, so a robot without himatch can have a copy of it.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FORMAT = 2  # of the .z.npz; 1 where no target is several that follow one another


class ExportedTargets:
    """The targets of a ``.z.npz``, one of them in use: ``inputs(step)`` is what the model takes beside its windows.

    It serves one robot, for it counts what that robot achieved; ``another()`` serves one more.

    ``conditioning`` is that of the controller: ``nominal``, ``remaining``, ``planned`` or ``rehearsed``. Under
    ``remaining`` every step has to be counted: ``achieved(observation, action, reward)`` after it. ``noise`` is the
    seed of what a stochastic policy samples its actions by.
    """

    def __init__(self, path: str | Path, target: int | str = 0, conditioning: str = "nominal", noise: int = 0) -> None:
        about, arrays = _read(path)
        self.about: dict[str, Any] = about
        """What the model's own metadata say (``custom_metadata_map``), parsed."""
        self.names: list[str] = self.about["targets"]
        self._arrays = arrays
        known = self.about["conditionings"]
        if conditioning not in known:
            raise ValueError(f"{path} holds {', '.join(known)} conditioning, not {conditioning!r}")
        self.conditioning = conditioning
        self._done: NDArray[np.float64] | float = 0.0
        self._excess: NDArray[np.float64] | float = 0.0  # of it, over what lay before the present of several targets
        self._steps = 0
        self._noise_width = next((port["shape"][0] for port in about["inputs"] if port["name"] == "noise"), 0)
        self._seeds = np.random.SeedSequence(noise)
        self._noise = np.random.default_rng(self._seeds)
        self.retarget(target)

    def another(self, target: int | str | None = None) -> ExportedTargets:
        """The same for one more robot, at the beginning of an episode; the tables in memory are shared.

        Each robot has its own target, its own count of what it achieved and its own noise.
        """
        one = copy.copy(self)
        (one._seeds,) = self._seeds.spawn(1)
        one._noise = np.random.default_rng(one._seeds)
        one.reset()
        if target is not None:
            one.retarget(target)
        return one

    def retarget(self, target: int | str) -> None:
        """Another of the targets, by number or name; what was achieved stays.

        In names, spaces and how numbers are written make no difference: ``normal(1.0, 0.05)`` is ``normal(1,0.05)``.
        """
        number = self._number(target)
        self._table = self._arrays.get(
            f"{'nominal' if self.conditioning == 'remaining' else self.conditioning}-{number}"
        )
        self._total, self._whole = self._arrays.get(f"total-{number}"), self._arrays.get(f"whole-{number}")
        self._length = self.about["lengths"][number]
        tables = (self._arrays.get(f"{name}-{number}", ()) for name in ("borders", "before"))
        self._borders = list(zip(*tables, strict=True))
        self._excess = 0.0
        for step, before in self._borders:
            if self._steps >= step:
                self._excess = self._done - before

    def _number(self, target: int | str) -> int:
        if isinstance(target, str):
            found = [i for i, name in enumerate(self.names) if _tokens(name) == _tokens(target)]
            exact = [i for i in found if self.names[i] == target]
            if found:
                return (exact or found)[0]
        elif isinstance(target, (int, np.integer)) and not isinstance(target, bool) and 0 <= target < len(self.names):
            return int(target)
        known = ", ".join(f"{i} {name}" for i, name in enumerate(self.names))
        raise ValueError(f"there is no target {target!r} in the file; it has {known}")

    def reset(self) -> None:
        """Begin an episode: nothing is achieved yet; noise goes on, so that no two episodes have the same."""
        self._done, self._excess, self._steps = 0.0, 0.0, 0

    def inputs(self, step: int) -> dict[str, NDArray[np.float32]]:
        """The model's ``z`` of this step, ``(k,)``, or its ``target_states``, ``(S, obs)``; neither for ``bc``.

        For a policy that samples also ``noise``, ``(act,)``, drawn at every call.
        """
        if not isinstance(step, (int, np.integer)) or step < 0:
            raise ValueError(f"the step is a whole number from 0 up, the steps since the episode began, got {step!r}")
        found: dict[str, NDArray[np.float32]] = {}
        if self.conditioning == "remaining":
            found["z"] = self._remaining()
        elif self._table is not None:
            found[self.about["conditioned_by"]] = self._table[min(step, len(self._table) - 1)]
        if self._noise_width:
            found["noise"] = self._noise.standard_normal(self._noise_width, np.float32)
        return found

    def achieved(
        self,
        observation: ArrayLike | None = None,
        action: ArrayLike | None = None,
        reward: float | None = None,
        *,
        phi: ArrayLike | None = None,
    ) -> None:
        """Count a step under ``remaining``; ``phi`` is its feature where that is a function of your own.

        What is refused is not counted: a wrong width, NaN, infinity.
        """
        if self.conditioning != "remaining":
            return
        values = self._feature(observation, action, reward) if phi is None else _row(phi, self._feature_width, "phi")
        self._done = self._done + _contribution(values.astype(np.float32), self._aggregator)
        self._steps += 1
        for step, before in self._borders:
            if self._steps == step:
                self._excess = self._done - before

    # -- remaining: what of the target's total was not achieved yet ------------------------------------------------

    @property
    def _aggregator(self) -> dict[str, Any]:
        found: dict[str, Any] = self.about["statistic"]["aggregator"]
        return found

    @property
    def _feature_width(self) -> int:
        """Numbers of the feature of a step: each has its part of the total."""
        assert self._total is not None
        aggregator = self._aggregator
        part = {"histogram": "count", "counts": "count", "moments": "order"}.get(aggregator["kind"])
        return self._total.size // (1 if part is None else int(aggregator[part]))

    def _remaining(self) -> NDArray[np.float32]:
        assert self._total is not None
        assert self._whole is not None
        rest = _of_total(self._total - (self._done - self._excess), self._length - self._steps, self._aggregator)
        return np.where(np.isnan(rest), self._whole, rest).astype(np.float32)

    def _feature(
        self, observation: ArrayLike | None, action: ArrayLike | None, reward: float | None
    ) -> NDArray[np.float64]:
        """The feature of a step, from where it lies: ``["observation", 5]``, ``["action", 0]`` or ``["reward", 0]``."""
        sources = self.about["z"]["feature_from"]
        if sources is None:
            raise ValueError(
                f"{self.about['z']['feature']} is a function of your own; hand over its value: achieved(phi=...)"
            )
        given = {"observation": observation, "action": action, "reward": reward}
        if lacking := sorted({what for what, _ in sources if given[what] is None}):
            raise ValueError(
                f"remaining conditioning on {self.about['z']['feature']} needs the {' and the '.join(lacking)}"
            )
        widths = {"observation": len(self.about["columns"]), "action": len(self.about["action_columns"]), "reward": 1}
        needed = {what for what, _ in sources}
        if (choices := self.about.get("discrete")) is not None and action is not None and np.ndim(action) == 0:
            given["action"] = _one_hot(action, choices["count"], choices["start"])
        rows = {
            what: _row(values, widths[what], f"the {what}")
            for what, values in given.items()
            if values is not None and (what in needed or what != "reward")
        }
        return np.array([rows[what][place] for what, place in sources])


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What a file says, and its tables; any other file is refused in one line."""
    damaged = f"{path} is damaged, or no file that himatch export --target wrote (.z.npz); export it again"
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: there is no such file; himatch export --target writes it beside the model")
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about: dict[str, Any] = json.loads(str(arrays.pop("about")))
        form = about["z_format"]
    except Exception:  # of zipfile, zlib, json or NumPy: which one says nothing to a reader
        raise ValueError(damaged) from None
    if form not in range(1, FORMAT + 1):
        raise ValueError(f"{path} has format {form}, this program reads up to {FORMAT}; export it again")
    try:
        wanted = {f"{table}-{i}" for table in _tables_of(about) for i in range(len(about["lengths"]))}
        whole = len(about["targets"]) == len(about["lengths"]) and wanted <= arrays.keys()
        whole = whole and all(np.isfinite(array).all() and array.size for array in arrays.values())
    except (AttributeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise ValueError(damaged)
    return about, arrays


def _tables_of(about: dict[str, Any]) -> list[str]:
    """Names of the tables that every target has."""
    if about["conditioned_by"] is None:
        return []
    tables = {"remaining": ["total", "whole"]}
    return [table for conditioning in about["conditionings"] for table in tables.get(conditioning, [conditioning])]


def _row(values: ArrayLike, width: int, what: str) -> NDArray[np.float64]:
    """Finite numbers, as many as there have to be."""
    try:
        row = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be {width} numbers, got {values!r}") from None
    if row.shape != (width,):
        raise ValueError(f"{what} must be {width} numbers, got an array of shape {row.shape}")
    if not np.isfinite(row).all():
        raise ValueError(f"{what} holds NaN or infinity; what was achieved cannot be counted")
    return row


def _one_hot(number: ArrayLike, count: int, start: int) -> NDArray[np.float64]:
    """The row that a discrete action's number stands for."""
    row: NDArray[np.float64] = (np.arange(start, start + count) == np.asarray(number)).astype(np.float64)
    if not row.any():
        raise ValueError(f"the action is a number from {start} to {start + count - 1}, got {number!r}")
    return row


_TOKEN = re.compile(r"(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)|[A-Za-z_]\w*|\S")


def _tokens(name: str) -> list[str | float]:
    """The name of a target without spaces, its numbers as numbers."""
    return [float(match[0]) if match["number"] else match[0] for match in _TOKEN.finditer(name)]


def _contribution(phi: NDArray[np.float32], aggregator: dict[str, Any]) -> NDArray[np.float64]:
    """What a step adds to the total; as ``contributions`` of himatch's aggregators."""
    x, kind = phi.astype(np.float64), aggregator["kind"]
    if kind in ("histogram", "counts"):
        low, high, count = np.array(aggregator["low"]), np.array(aggregator["high"]), aggregator["count"]
        places = np.clip((x - low) / ((high - low) / count), 0, count - 1).astype(int)
        counts: NDArray[np.float64] = np.eye(count)[places].ravel()
        return counts
    if kind == "moments":
        x = x - np.array(aggregator["center"] or 0.0)
        return np.concatenate([x**p for p in range(1, aggregator["order"] + 1)])
    return x if kind in ("sum", "timed_sum") else np.zeros_like(x)


def _of_total(total: NDArray[np.float64], steps: int, aggregator: dict[str, Any]) -> NDArray[np.float64]:
    """The statistic of what remains, NaN where nothing does; as ``of_total`` of himatch's aggregators."""
    kind = aggregator["kind"]
    if kind == "histogram":
        counts = np.maximum(total, 0.0).reshape(-1, aggregator["count"])
        mass = counts.sum(axis=1, keepdims=True)
        return (counts / np.where(mass > 0, mass, np.nan)).ravel()
    if kind == "counts":
        total = np.maximum(total, 0.0)
    if kind in ("sum", "counts"):
        scaled: NDArray[np.float64] = total / aggregator["scale"]
        return scaled
    if kind == "timed_sum":
        timed: NDArray[np.float64] = np.append(total, max(steps, 0)) / aggregator["scale"]
        return timed
    if kind == "final":
        return np.full_like(total, np.nan)
    raw = np.split(total / (steps if steps > 0 else np.nan), aggregator["order"])
    columns = [raw[0] + np.array(aggregator["center"] or 0.0)]
    if len(raw) >= 2:
        columns.append(np.sqrt(np.maximum(raw[1] - raw[0] ** 2, 0.0)))
    if len(raw) >= 3:
        columns.append(np.cbrt(raw[2] - 3 * raw[0] * raw[1] + 2 * raw[0] ** 3))
    if len(raw) >= 4:
        fourth = raw[3] - 4 * raw[0] * raw[2] + 6 * raw[0] ** 2 * raw[1] - 3 * raw[0] ** 4
        columns.append(np.maximum(fourth, 0.0) ** 0.25)
    return np.concatenate(columns)
