"""Many targets at once: which ones, how each came out, and what that amounts to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.seals import write_sealed
from himatch._runtime.tensors import versions
from himatch.data import TrajectoryDataset
from himatch.divergences import summarize
from himatch.errors import TargetError
from himatch.evaluation.kept import save_rollouts
from himatch.evaluation.page import result_table
from himatch.evaluation.result import MatchResult
from himatch.evaluation.wording import measure, time
from himatch.runs.folder import RunFolder
from himatch.runs.run import Run
from himatch.targets import Demonstration, Shifted, Target, TargetLike, parse_target

SHIFTS = (-3, -2, -1, 0, 1, 2, 3)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Results of several targets with their groups."""

    folder: RunFolder
    groups: tuple[str, ...]
    results: tuple[MatchResult, ...]
    episodes: int
    seed: int
    provenance: dict[str, Any]
    """Which policy it was: run, method, seeds, data, task, weights, temperature."""

    def as_json(self) -> dict[str, Any]:
        """Everything, in built-in types."""
        how = {"episodes": self.episodes, "seed": self.seed}
        rows = [{"group": group} | r.as_json() | how for group, r in zip(self.groups, self.results, strict=True)]
        first = self.results[0]
        return {
            "feature": first.frame.feature.name,
            "conditioning": first.conditioning,
            "targets": rows,
            "summary": self.summary,
            "provenance": {
                **self.provenance,
                "env_id": None if first.replay is None else first.replay.env_id,
                "versions": versions(),
            },
        }

    @cached_property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Every group summed up, and where all targets ask for the same kind of thing, their ``total``.

        ``mean``, ``std``, ``iqm`` and intervals of the error, and means of ``played`` and ``charged``.
        """
        found = {name: self._summary(name) for name in dict.fromkeys(self.groups)}
        if len({result.target.matches for result in self.results}) == 1:  # else they have no unit in common
            found.setdefault("total", self._summary(None))
        return found

    def _summary(self, group: str | None) -> dict[str, Any]:
        chosen = [r for g, r in zip(self.groups, self.results, strict=True) if group in (None, g)]
        # A mean of rollouts that fell is worth what the time is worth that they lasted, so that stands beside it.
        played, cost = (float(np.mean([getattr(r, name) for r in chosen])) for name in ("played", "charged"))
        return asdict(summarize([[result.error_per_seed for result in chosen]])) | {"played": played, "charged": cost}

    @property
    def measure(self) -> str:
        """What the summary is about: W1 with its unit, or where targets ask for different things an error."""
        found = {measure(r.target.matches, r.frame.bins.dimensions) for r in self.results}
        return found.pop() if len(found) == 1 else "error"

    @property
    def summed_up(self) -> str:
        """``slow 0.217 (played 17%, charged 1.53)`` of every group."""
        groups = self.summary.items()
        return ", ".join(f"{name} {s['mean']:.3f} ({time(s['played'], s['charged'])})" for name, s in groups)

    def __repr__(self) -> str:
        return f"Evaluation({self.folder}, {len(self.results)} targets, mean {self.measure}: {self.summed_up})"

    def _repr_html_(self) -> str:
        """For a notebook: all targets, and what they amount to."""
        rows = [result.html_row(group) for group, result in zip(self.groups, self.results, strict=True)]
        first = self.results[0]
        table = result_table(rows, first.conditioning, next((r.joint_unit for r in self.results if r.joint), ""))
        return f"{table}<small>mean {escape(self.measure)}: {escape(self.summed_up)}</small>"

    def write(self, path: Path | None = None) -> Path:
        """Write ``evaluation.json`` with its checksum, by default into the run folder."""
        out = path or self.folder.evaluation
        write_sealed(out, self.as_json())
        return out

    def save(self, out: str | Path, *, overwrite: bool = False) -> TrajectoryDataset:
        """Write the rollouts of all targets as a Minari folder, where they were kept."""
        return save_rollouts(self.results, out, overwrite=overwrite)


def grouped(targets: Sequence[tuple[str, TargetLike]]) -> list[tuple[str, TargetLike]]:
    """Targets with their groups, refused where they are something else."""
    pairs = [pair for pair in targets if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)]
    if len(pairs) != len(targets):
        raise TargetError('targets are pairs of a group and a target, such as ("slow", "normal(1,0.2)")')
    return pairs


def middle(summary: Mapping[str, Any]) -> str:
    """``0.094 (0.088 to 0.101)``: the interquartile mean of a summary, with its interval where seeds tell one."""
    iqm, low, high = (summary[name] for name in ("iqm", "low", "high"))
    return f"{iqm:.3f}" if low is None else f"{iqm:.3f} ({low:.3f} to {high:.3f})"


def named_targets(run: Run, name: str, parse: Callable[[TargetLike], Target]) -> list[tuple[str, Target]]:
    """``heldout``, ``shift``, ``synthetic`` (six spread over the data), or a file with one target a line.

    A line is an expression, or a group and an expression separated by a bar; ``#`` starts a comment.
    """
    if name in ("heldout", "shift"):
        held_out = run.held_out
        if held_out is None or len(held_out) == 0:
            raise TargetError(f"{run.folder} has no held-out episodes; train with the paper's split, or name a file")
        demos = [
            (group, Demonstration.held_out(episode, group, i))
            for i, (episode, group) in enumerate(zip(held_out, run.groups, strict=True))
        ]
        if name == "heldout":
            return list(demos)
        return [(f"{group} {s:+d}", Shifted(demo, s)) for group, demo in demos for s in SHIFTS]
    if name == "synthetic":
        return [("synthetic", target) for target in _spread(run)]
    return _read(Path(name), parse)


def _spread(run: Run) -> list[Target]:
    """Four Gaussians and two mixtures inside what the data covers, as the paper's are for its three tasks."""
    bins = run.reference().frame.bins
    if bins.dimensions > 1:
        raise TargetError("synthetic targets are made for one feature; write your own into a file with joint(A, B)")
    low, high = bins.low[0], bins.high[0]
    means = [low + part * (high - low) for part in (0.3, 0.45, 0.6, 0.75)]
    width = (high - low) / 16
    one = [f"normal({mean:.4g},{width:.4g})" for mean in means]
    two = [f"0.5*{one[0]}+0.5*{one[2]}", f"0.5*{one[1]}+0.5*{one[3]}"]
    return [parse_target(text) for text in (*one, *two)]


def _read(path: Path, parse: Callable[[TargetLike], Target]) -> list[tuple[str, Target]]:
    if not path.is_file():
        raise TargetError(f"targets are heldout, shift, synthetic or a file; there is no file {path}")
    found: list[tuple[str, Target]] = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as reason:
        raise TargetError(f"{path}: cannot be read ({reason})") from None
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        group, bar, expression = text.partition("|")
        try:
            target = parse(expression.strip() if bar else text)
        except TargetError as reason:
            raise TargetError(f"{path}, line {number}: {reason}") from None
        found.append((group.strip() if bar else path.stem, target))
    if not found:
        raise TargetError(f"{path} holds no targets; write one expression a line")
    return found
