"""From suites to work: which models have to be trained, and what each of them is then asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from himatch.benchmark.suites import BUDGETS, Suite, Variant, find_suites, rows_of
from himatch.errors import HimatchError
from himatch.policy import METHODS
from himatch.rollout import CONDITIONINGS

HEADS = ("tanh", "gaussian")
OWN_HEAD = ("focal",)
"""Methods with a head of their own, which are left out where another one is asked for."""
CONDITIONED = {"open": None, "closed": ("cdt", "dt"), "planned": ("cdt",)}
"""Which methods each conditioning is for; ``None``: all."""


@dataclass(frozen=True)
class Options:
    """What the user chose beside the suites."""

    budget: str = "fast"
    seeds: int | None = None
    episodes: int | None = None
    steps: int | None = None
    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    conditionings: tuple[str, ...] = ("open",)
    data: str | None = None
    cache: str | None = None
    device: str | None = None
    threads: int = 0
    every: bool = False
    head: str | None = None

    def __post_init__(self) -> None:
        if self.budget not in BUDGETS:
            raise HimatchError(f"unknown budget {self.budget!r}; known are {', '.join(BUDGETS)}")
        for name in self.methods:
            if name not in METHODS:
                raise HimatchError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
        for name in self.conditionings:
            if name not in CONDITIONINGS:
                raise HimatchError(f"unknown conditioning {name!r}; known are {', '.join(CONDITIONINGS)}")
        if self.head not in (None, *HEADS):
            raise HimatchError(f"unknown head {self.head!r}; known are {', '.join(HEADS)}")
        for name in ("seeds", "episodes", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise HimatchError(f"{name} must be at least 1, got {value}")
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
class Question:
    """What a trained model is asked: one result file."""

    suite: str
    name: str
    feature: str
    conditioning: str


@dataclass(frozen=True)
class Job:
    """One model and everything it is asked: trained once, for all suites that it serves.

    An empty ``method`` trains nothing: the suite ``data`` only looks at the dataset.
    """

    task: str
    dataset: str
    split: str
    method: str
    settings: tuple[tuple[str, Any], ...]
    overrides: tuple[tuple[str, Any], ...]
    questions: tuple[Question, ...]

    @property
    def key(self) -> str:
        """Name of the model's folder."""
        parts = [self.dataset, self.method]
        parts += [f"{k}={v}" for k, v in (*self.settings, *self.overrides)]
        return "".join(c if c.isalnum() or c in "-_.=" else "_" for c in "-".join(parts))

    def as_json(self) -> str:
        """Plain text, so that a job can travel to another process or machine."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job that travelled."""
        content = json.loads(text)
        content["questions"] = tuple(Question(**q) for q in content["questions"])
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
    models: dict[tuple[Any, ...], Job] = {}
    for suite in suites:
        for task in suite.tasks:
            if options.tasks and task not in options.tasks:
                continue
            for job in _jobs(suite, task, options):
                identity = (job.key, job.split)
                before = models.get(identity)
                questions = job.questions if before is None else (*before.questions, *job.questions)
                models[identity] = Job(**{**vars(job), "questions": tuple(dict.fromkeys(questions))})
    if not models:
        raise HimatchError("nothing is left to do: these suites have none of the chosen tasks and methods")
    return list(models.values())


def _jobs(suite: Suite, task: str, options: Options) -> list[Job]:
    dataset = suite.dataset.format(task=task)
    if suite.targets == "dataset":
        questions = tuple(Question(suite.name, "dataset", feature, "open") for feature in suite.features)
        return [Job(task, dataset, suite.split, "", (), (), questions)]
    jobs = []
    for variant in rows_of(suite, options.budget, options.methods, every=options.every):
        if options.head is not None and variant.method in OWN_HEAD:
            continue
        for feature in suite.features:
            asked = tuple(
                Question(suite.name, variant.name, feature, conditioning)
                for conditioning in options.conditionings
                if _applies(conditioning, variant)
            )
            if asked:
                settings = {**variant.settings, **({"feature": feature} if variant.matched else {})}
                jobs.append(
                    Job(
                        task,
                        dataset,
                        suite.split,
                        variant.method,
                        tuple(sorted(settings.items())),
                        tuple(sorted(variant.overrides.items())),
                        asked,
                    )
                )
    return jobs


def _applies(conditioning: str, variant: Variant) -> bool:
    methods = CONDITIONED[conditioning]
    return methods is None or variant.method in methods
