"""What a job of the benchmark leaves behind: one small JSON file with every target's scores and its provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from himatch._runtime.files import damaged, entry, new_file, read_json
from himatch.errors import DataError
from himatch.methods import METHODS
from himatch.networks.transformer import ModelConfig
from himatch.reproduce.policies import POLICIES, PolicyName
from himatch.reproduce.specification import DATASET, Specification
from himatch.reproduce.suites import SUITES
from himatch.training import TrainConfig

SCORES = "scores"  # folder of the result files below a benchmark's own
# Decimals in a file. Shares are drawn, not computed with; a return has four digits before its point.
_DECIMALS = {"returns": 3, "lengths": 3, "target_return": 3, "target": 5, "rollouts": 5}
_USUAL_DECIMALS = 6


@dataclass(frozen=True)
class TargetScore:
    """One target: lists are per seed, means over the rollouts of that seed.

    ``w1`` is the paper's, on the bins of z; ``exact`` that of the values themselves. ``played`` is the part of the
    target's steps that rollouts lasted; results from before it was measured have none, nor ``within_episode``.
    ``histograms`` hold bin edges per dimension, and the target's and the rollouts' shares (all seeds pooled): lists of
    ``bins`` numbers in one dimension, lists of lists in two.
    """

    name: str
    group: str
    w1: list[float]
    energy: list[float]
    returns: list[float]
    lengths: list[float]
    target_return: float | None = None
    """What the returns are held against: that of the episode, or the expert's."""
    reference: float | None = None
    """The paper's W1 of the episode mixture."""
    exact_reference: float | None = None
    """The exact one."""
    outside: float = 0.0
    played: list[float] = field(default_factory=list)
    exact: list[float] = field(default_factory=list)
    within_episode: list[float] = field(default_factory=list)
    """The exact W1 of every rollout by itself; of targets one after another of each in its own steps."""
    in_order: list[float] | None = None
    """The exact W1 of pooled rollouts to targets one after another, each in its own steps, where there are several."""
    missed: list[float] | None = None
    """How far the last values of rollouts are from a goal, in spreads; of goals alone, which have no W1."""
    spread: list[float] = field(default_factory=list)
    """The 1 to 99 % range of every feature in training."""
    shift: float | None = None
    """By how many bin widths the target was moved (suite ``shift``)."""
    ordering: str | None = None
    """``listed`` or ``shuffled`` (suite ``synthetic``)."""
    histograms: dict[str, Any] = field(default_factory=dict)
    success: list[float] = field(default_factory=list)
    """The part of the rollouts that reached the goal, in suites of success rates, which have no distances."""

    def belongs_to(self, group: str) -> bool:
        """Whether it counts in a group of a table."""
        if group in ("listed", "shuffled"):
            return self.ordering == group
        return group in ("total", self.group)


@dataclass(frozen=True)
class ResultKey:
    """What tells the results of a benchmark's folder apart."""

    suite: str
    task: str
    method: Specification | None
    """``None`` in the suite ``data``, which describes datasets."""
    feature: str
    conditioning: str
    policy: PolicyName | None = None
    """``None`` in the suite ``data``, where nothing acts, and of results from before it was recorded."""

    def path(self, folder: Path) -> Path:
        """Where the result lies below a benchmark's folder."""
        settings = () if self.method is None else (f"{key}={value}" for key, value in self.method.settings)
        method = DATASET if self.method is None else self.method.name
        own = [self.policy] if self.policy == "himatch" else []  # the paper's is what a result has that names none
        name = file_name(self.suite, self.task, method, *settings, self.feature, self.conditioning, *own, kept="-_.=")
        return folder / SCORES / f"{name.lower()}.json"


@dataclass(frozen=True)
class JobResult:
    """One method on one task in one suite.

    It has no returns where episodes were rewarded for different things: rollouts are rewarded for one of them only.
    """

    suite: str
    task: str
    method: Specification | None
    feature: str
    conditioning: str
    budget: str
    seeds: list[int]
    episodes: int
    targets: list[TargetScore]
    provenance: dict[str, Any]
    """Data (name, hash, episodes, steps, where from), those of targets that come from elsewhere, the seed of targets
    that are drawn, at which state rollouts' features were read if not at the step's own, every setting of the method
    and of its training, the source (git's name of the tree ``src``), versions, dates, the machine, seconds of training
    and of rollouts, and of rehearsed conditioning what its search took and promised."""
    policy: PolicyName | None = None
    """Whose policy it is; results from before it was recorded have none, and those of the suite ``data``."""

    def __post_init__(self) -> None:
        if self.suite in SUITES and SUITES[self.suite].mixes_rewards:
            plain = [replace(target, returns=[], target_return=None) for target in self.targets]
            object.__setattr__(self, "targets", plain)

    @property
    def key(self) -> ResultKey:
        """What tells it apart."""
        return ResultKey(self.suite, self.task, self.method, self.feature, self.conditioning, self.policy)

    def scores(self) -> list[list[float]]:
        """W1 of every target, per seed."""
        return [t.w1 for t in self.targets]


def charged_scores(target: TargetScore) -> list[float]:
    """``p W1 + (1 - p) R`` of every seed, of one feature: the exact W1, and R for what was not played.

    Returns and goals have no W1.
    """
    if len(target.spread) != 1 or not target.exact:
        return []
    return [p * w1 + (1 - p) * target.spread[0] for p, w1 in zip(target.played, target.exact, strict=True)]


def file_name(*parts: str, kept: str = "-_.") -> str:
    """Parts in a name that file systems take: letters, digits and what is ``kept``."""
    return "".join(c if c.isalnum() or c in kept else "_" for c in "-".join(parts))


def write_result(folder: Path, result: JobResult) -> Path:
    """Write a result, whole or not at all: small, and a target a line, so that two files can be compared by eye."""
    path = result.key.path(folder)
    content = {**asdict(result), "method": None if result.method is None else result.method.as_json()}
    targets = [
        {name: _short(value, name) for name, value in target.items() if value is not None}
        for target in content.pop("targets")
    ]
    if result.policy is None:
        del content["policy"]
    edges = [target["histograms"].get("edges") for target in targets]
    if edges and edges[0] is not None and all(edge == edges[0] for edge in edges):
        content["edges"] = edges[0]  # the bins are the model's: once is enough
        for target in targets:
            del target["histograms"]["edges"]
    provenance = [f"{_dense(name)}: {_dense(value)}" for name, value in content.pop("provenance").items()]
    lines = [f"{_dense(name)}: {_dense(value)}" for name, value in content.items()]
    lines.append(_block('"provenance": {', provenance, "}"))
    lines.append(_block('"targets": [', map(_dense, targets), "]"))
    with new_file(path) as partial:
        partial.write_text(_block("{", lines, "}", indent="\n ") + "\n")
    return path


def _block(start: str, entries: Iterable[str], end: str, indent: str = "\n  ") -> str:
    """Entries a line each."""
    return start + ",".join(f"{indent}{entry}" for entry in entries) + indent[:-1] + end


def _dense(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _short(value: Any, name: str) -> Any:
    """Without digits that nobody needs; whole numbers without a point."""
    if isinstance(value, dict):
        return {key: _short(entry, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry, name) for entry in value]
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    rounded = round(value, _DECIMALS.get(name, _USUAL_DECIMALS))
    return int(rounded) if rounded.is_integer() else rounded


def read_result(path: Path) -> JobResult:
    """Read a result back."""
    content, where = read_json(path), str(path)
    method = entry(content, object, where, "method")
    if isinstance(method, str) or (isinstance(method, dict) and not _is_current(method)):
        raise DataError(f"{path}: written by an earlier himatch; run the benchmark again, in another folder")
    if method is not None:
        content["method"] = Specification.of(**entry(content, dict, where, "method"))
    if (policy := content.get("policy")) not in (None, *POLICIES):
        raise damaged(where, f"an unknown policy {policy}")
    edges = content.pop("edges", None)
    stored = entry(content, list, where, "targets")
    del content["targets"]
    targets = [TargetScore(**_fields_of(TargetScore, target, where)) for target in stored]
    for target in targets if edges is not None else ():
        target.histograms["edges"] = edges
    return JobResult(**_fields_of(JobResult, content, where, "targets"), targets=targets)


def _is_current(method: dict[str, Any]) -> bool:
    """Whether a method of himatch's, its network or its training still have the settings that a file names."""
    known = METHODS.get(str(method.get("name")))
    if known is None:
        return True
    return set(method) <= {"name", *(one.name for kind in (known, ModelConfig, TrainConfig) for one in fields(kind))}


def _fields_of(kind: type[Any], content: Any, where: str, *others: str) -> dict[str, Any]:
    """The fields of a dataclass that a file holds, less those that come from elsewhere; refuses one too few or many."""
    wanted = [one for one in fields(kind) if one.name not in others]
    needed = [one.name for one in wanted if one.default is MISSING and one.default_factory is MISSING]
    for name in needed:
        entry(content, object, where, name)
    unknown = sorted(set(content) - {one.name for one in wanted})
    if unknown:
        raise damaged(where, f"an unknown key {unknown[0]}")
    return dict(content)


def read_results(folders: str | Path | Sequence[str | Path]) -> list[JobResult]:
    """All results below a folder, or below several."""
    folders = [folders] if isinstance(folders, (str, Path)) else folders
    found = [path for folder in folders for path in sorted(Path(folder).rglob(f"{SCORES}/*.json"))]
    if not found:
        raise DataError(f"no results in {', '.join(map(str, folders))}; run himatch benchmark first")
    return [read_result(path) for path in found]
