"""From suites to work: which models have to be trained, and which results each of them gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from himatch.errors import HimatchError
from himatch.evaluation.recorded import RecordedAt
from himatch.methods import METHODS, make_method
from himatch.reproduce.budgets import BUDGETS
from himatch.reproduce.policies import POLICIES, PolicyName, has_papers_policy
from himatch.reproduce.results import ResultKey, file_name
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import Suite, SuiteMethod
from himatch.reproduce.suites import find_suites, methods_of
from himatch.reproduce.unseen import REPORTED_SEED
from himatch.rollout import CONDITIONINGS, objection
from himatch.tasks import get_task, import_tasks


@dataclass(frozen=True)
class Options:
    """What the user chose beside the suites."""

    budget: str = "fast"
    seeds: int | None = None
    episodes: int | None = None
    steps: int | None = None
    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    conditioning: tuple[str, ...] = ()
    """By default that of each suite."""
    data: str | None = None
    cache: str | None = None
    device: str | None = None
    threads: int = 0
    all_variants: bool = False
    policy: tuple[PolicyName, ...] = ()
    """By default those of each row of a suite."""
    rehearsal: float | None = None
    """Seconds of search for all targets of a job that are rehearsed; by default until it no longer pays."""
    target_seed: int = REPORTED_SEED
    """Of targets that are drawn (suite ``unseen``)."""
    recorded_at: RecordedAt = "t"
    """The state at which rollouts' features are read: that of the step, or the next one as in the authors' code."""
    imports: tuple[str, ...] = ()
    """Python files or modules of one's own, with methods that are then known in every process of the benchmark."""

    def __post_init__(self) -> None:
        import_tasks(*self.imports)
        if self.budget not in BUDGETS:
            raise HimatchError(f"unknown budget {self.budget!r}; known are {', '.join(BUDGETS)}")
        for name in self.methods:
            if name not in METHODS:
                raise HimatchError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
        for name in self.conditioning:
            if name not in CONDITIONINGS:
                raise HimatchError(f"unknown conditioning {name!r}; known are {', '.join(CONDITIONINGS)}")
        for name in self.policy:
            if name not in POLICIES:
                raise HimatchError(f"unknown policy {name!r}; known are {', '.join(POLICIES)}")
        for name in ("seeds", "episodes", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise HimatchError(f"{name} must be at least 1, got {value}")
        if self.rehearsal is not None and "rehearsed" not in self.conditioning:
            raise HimatchError("rehearsal is for rehearsed conditioning")
        if self.rehearsal is not None and not self.rehearsal > 0:
            raise HimatchError(f"a rehearsal takes more than 0 seconds, got {self.rehearsal}")
        if self.target_seed < 0:
            raise HimatchError(f"the seed of targets must be 0 or more, got {self.target_seed}")
        if self.threads < 0:
            raise HimatchError(f"threads must be 0 (all) or more, got {self.threads}")

    @property
    def seed_count(self) -> int:
        """Seeds of every model."""
        return self.seeds or BUDGETS[self.budget].seeds

    @property
    def rollouts(self) -> int:
        """Rollouts of every target and seed."""
        return self.episodes or BUDGETS[self.budget].rollouts


@dataclass(frozen=True)
class Job:
    """One model and every result that it gives: trained once, for all suites that it serves.

    An empty ``method`` trains nothing: the suite ``data`` describes the dataset.
    """

    task: str
    dataset: str
    split: str
    method: str
    settings: tuple[tuple[str, Any], ...]
    overrides: tuple[tuple[str, Any], ...]
    results: tuple[ResultKey, ...]
    policy: PolicyName = "paper"

    @property
    def key(self) -> str:
        """Name of the model's folder. A dataset is split one way by all suites, so that the split need not be in it."""
        settings = [f"{name}={value}" for name, value in (*self.settings, *self.overrides)]
        settings += [] if self.policy == "paper" else [self.policy]
        return file_name(*filter(None, (self.dataset, self.method)), *settings, kept="-_.=")

    def missing(self, out: Path) -> list[ResultKey]:
        """The results that a benchmark's folder does not hold yet."""
        return [result for result in self.results if not result.path(out).is_file()]

    def as_json(self) -> str:
        """Plain text, so that a job can travel to another process or machine."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job that travelled."""
        content = json.loads(text)
        for result in content["results"]:
            result["method"] = None if result["method"] is None else Specification(**result["method"])
        content["results"] = tuple(ResultKey(**result) for result in content["results"])
        for name in ("settings", "overrides"):
            content[name] = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in content[name])
        return cls(**content)


def plan_jobs(names: Sequence[str], options: Options) -> list[Job]:
    """All jobs of some suites, each model once."""
    suites = find_suites(tuple(names))
    known = {task for suite in suites for task in suite.tasks}
    for task in options.tasks:
        if task not in known:
            raise HimatchError(f"no chosen suite has the task {task!r}; they have {', '.join(sorted(known))}")
    scored = {feature for suite in suites for feature in suite.features}
    for feature in options.features:
        if feature not in scored:
            raise HimatchError(f"no chosen suite has the feature {feature!r}; they have {', '.join(sorted(scored))}")
    models: dict[str, Job] = {}
    for suite in suites:
        for task in suite.tasks:
            if options.tasks and task not in options.tasks:
                continue
            for job in _jobs(suite, task, options):
                before = models.get(job.key)
                results = job.results if before is None else (*before.results, *job.results)
                models[job.key] = replace(job, results=tuple(dict.fromkeys(results)))
    if not models:
        raise HimatchError(
            "nothing is left to do: these suites have none of the chosen tasks and methods, or none that takes "
            f"{' or '.join(options.conditioning or ('nominal',))} conditioning"
            f"{f' and the policy {chosen}' if (chosen := ' or '.join(options.policy)) else ''}"
        )
    return list(models.values())


def _jobs(suite: Suite, task: str, options: Options) -> list[Job]:
    """One job for every method, policy and feature of a suite that takes the conditioning chosen."""
    where = task, suite.dataset.format(task=task), suite.split
    features = [feature for feature in suite.features if not options.features or feature in options.features]
    if suite.targets == "dataset":
        described = tuple(ResultKey(suite.name, task, None, feature, "nominal") for feature in features)
        return [Job(*where, "", (), (), described)] if described else []
    jobs = []
    for row in methods_of(suite, options.budget, options.methods, all_variants=options.all_variants):
        for policy, feature in product(_policies(row, options), features):
            settings = row.settings(feature)
            method = make_method(row.specification.name, **settings)
            results = tuple(
                ResultKey(suite.name, task, row.specification, feature, conditioning, policy)
                for conditioning in options.conditioning or suite.conditioning
                if objection(conditioning, method.statistic(get_task(task)), method) is None
            )
            if results:
                given = tuple(sorted(settings.items())), tuple(sorted(row.changes().items()))
                jobs.append(Job(*where, row.specification.name, *given, results, policy))
    return jobs


def _policies(row: SuiteMethod, options: Options) -> list[PolicyName]:
    """Those that a row has here, each once: a preset without one of himatch's own has the paper's."""
    chosen = [name for name in options.policy or row.policies if name == "paper" or not row.own_head]
    papers = has_papers_policy(BUDGETS[options.budget].preset, METHODS[row.specification.name])
    return list(dict.fromkeys("paper" if papers else name for name in chosen))
