"""What pages quote from JSON files of other benchmarks, for ``quoted.py``: stretches, promises, online training."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from himatch.divergences import paired_difference

Rows = Mapping[str, Mapping[str, str]]
"""Values by column."""


def plans(path: Path) -> Rows:
    """Of ``stretches.py``: ``planned``, ``stretches 50``, ``stretches 50 replan 50``, ..."""
    found = {}
    for plan in json.loads(path.read_text())["plans"]:
        settings = [f"{name} {plan[name]}" for name in ("stretches", "replan") if name in plan]
        mean, charged, played = f"{plan['w1']:.3f}", f"{plan['charged']:.3f}", f"{plan['played']:.0%}"
        lasted = f"{mean} ({charged}, {played.replace('%', ' %')})"
        found[" ".join(settings) or "planned"] = {"mean": mean, "charged": charged, "lasted": lasted}
    return found


def promises(path: Path) -> Rows:
    """Of ``promises.py``: of a file, or suite by suite of benchmarks' results, ``all`` of them under this name."""
    if path.is_file():
        rows = json.loads(path.read_text())["targets"]
        return {"": _kept([(row["promised"], row["achieved"]["w1"]) for row in rows])}
    by_suite: dict[str, list[tuple[Mapping[str, Any], float]]] = {}
    for file in sorted(path.parents[2].glob(str(path.relative_to(path.parents[2])))):
        result = json.loads(file.read_text())
        promised = result["provenance"]["rehearsal"]["targets"]
        pairs = [(said, fmean(t["exact"])) for t, said in zip(result["targets"], promised, strict=True)]
        by_suite.setdefault(result["suite"], []).extend(pairs)
    every = {**by_suite, "all": [pair for pairs in by_suite.values() for pair in pairs]}
    return {suite: _kept(pairs) for suite, pairs in every.items()}


def _kept(pairs: list[tuple[Mapping[str, Any], float]]) -> dict[str, str]:
    above, below = (sum(w1 > said["high"] for said, w1 in pairs), sum(w1 < said["low"] for said, w1 in pairs))
    inside, width = len(pairs) - above - below, median((said["high"] - said["low"]) / 2 / w1 for said, w1 in pairs)
    counts = {"targets": len(pairs), "inside": inside, "above": above, "below": below}
    shares = {"kept": f"{inside / len(pairs):.0%}", "width": f"{width:.0%}"}
    return {name: str(n) for name, n in counts.items()} | {k: s.replace("%", " %") for k, s in shares.items()}


def online(pattern: Path) -> Rows:
    """Of ``online.py``, all trainings together: W1 as column ``w1``, and ``charged``."""
    runs = [json.loads(path.read_text())["arms"] for path in sorted(pattern.parent.glob(pattern.name))]
    found: dict[str, dict[str, str]] = {}
    for score in ("w1", "charged"):
        arms = {arm: np.array([[fmean(row[score]) for row in run[arm]] for run in runs]).T for arm in runs[0]}
        less = arms["online"] - arms["control"]
        both = paired_difference([less], [np.zeros_like(less)])
        means = {arm: f"{scores.mean():.2f}" for arm, scores in arms.items()}
        difference = f"{both.mean:+.2f} [{both.low:+.2f}, {both.high:+.2f}]"
        each = ", ".join(f"{mean:+.2f}" for mean in less.mean(axis=0))
        found[score] = {**means, "difference": difference, "each": each, "trainings": str(len(runs))}
    return found


READERS: Mapping[str, Callable[[Path], Rows]] = {"plans": plans, "promises": promises, "online": online}


def numbers(root: Path, files: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str, str], Mapping[str, str]]:
    """Every value of these files, by kind, name and column."""
    return {
        (kind, name, column): values
        for kind, names in files.items()
        for name, path in names.items()
        for column, values in READERS[kind](root / path).items()
    }
