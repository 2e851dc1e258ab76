"""A run, read from its folder: what was trained, on what, and everything a policy needs beside its weights."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from himatch.data import TrajectoryDataset
from himatch.data.facts import Facts
from himatch.errors import DataError, TargetError, TaskError, one_line
from himatch.methods import METHODS, Agent, Method, method_from_spec
from himatch.methods.batch import Dims
from himatch.methods.normalizers import Normalizers
from himatch.networks.transformer import ModelConfig
from himatch.runs.description import plain_spec, stored_method, stored_model
from himatch.runs.fingerprint import check_fingerprint
from himatch.runs.folder import RunFolder, Weights
from himatch.runs.programs import Programs
from himatch.runs.references import read_reference, referenced_features
from himatch.runs.task_spec import task_from_spec
from himatch.statistics.information import InformationStatistic, Statistic
from himatch.targets import Demonstration, EpisodeReference, Target, TargetLike, as_target
from himatch.tasks import Task

PREFERRED = ("x_velocity", "reward")  # what rollouts are scored on where the method matches no feature


class Run:
    """What a run folder says, parsed; the weights stay in the folder until :meth:`agent` reads them."""

    def __init__(
        self, folder: RunFolder, description: dict[str, Any], task: Task, statistic: Statistic, normalizers: Normalizers
    ) -> None:
        self.folder, self.description, self.task = folder, description, task
        self.statistic, self.normalizers = statistic, normalizers
        self._references: dict[str, EpisodeReference] = {}

    @classmethod
    def read(cls, path: str | Path) -> Run:
        """Parse a run folder; what does not fit is refused by name."""
        folder = RunFolder(path)
        description = folder.description()
        description["model"] = asdict(stored_model(folder, description))
        try:
            if (name := description["method"]["name"]) not in METHODS:
                raise TaskError(
                    f"its method {name!r} is not known here; import what registers it (--import FILE.py or NAME)"
                )
            Dims(**description["widths"])
            task = task_from_spec(description["task"])
            float(description.get("temperature", 0.0))
        except TaskError as reason:
            raise TaskError(f"{folder}: {reason}") from None
        except (KeyError, TypeError, ValueError) as reason:
            raise folder.incomplete(reason) from None
        method = stored_method(folder, description)
        description["method"] = plain_spec(method)
        check_fingerprint(folder, task)
        stored = description.get("statistic")
        statistic = method.statistic(task) if stored is None else InformationStatistic.from_spec(stored, task)
        try:
            normalizers = Normalizers.of(folder.normalizers())
        except TypeError as reason:
            raise DataError(f"{folder}: its normalizers are incomplete or from another version ({reason})") from None
        return cls(folder, description, task, statistic, normalizers)

    @property
    def method(self) -> Method:
        """The method and its settings."""
        return method_from_spec(self.description["method"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were trained."""
        return tuple(int(seed) for seed in self.description["seeds"])

    @property
    def env_id(self) -> str | None:
        """The environment the data came from, else the task's."""
        return self.description["data"].get("env_id") or self.task.env_id

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of every number of an observation; ``obs[0]`` and so on where the data had none."""
        width = int(self.description["widths"]["observation"])
        named = (self.description["data"].get("columns") or {}).get("observations") or ()
        return tuple(named) if len(named) == width else tuple(f"obs[{i}]" for i in range(width))

    @property
    def action_columns(self) -> tuple[str, ...]:
        """The name of every number of an action; ``act[0]`` and so on where the data had none."""
        width = int(self.description["widths"]["action"])
        named = (self.description["data"].get("columns") or {}).get("actions") or ()
        return tuple(named) if len(named) == width else tuple(f"act[{i}]" for i in range(width))

    @property
    def rate(self) -> float | None:
        """Steps in a second of the data, in Hz; ``None`` where neither it nor its task says.

        Runs of earlier versions say nothing about it.
        """
        rate = self.description["data"].get("rate", self.task.rate)
        return None if rate is None else float(rate)

    @property
    def units(self) -> dict[str, str]:
        """The units of columns, by name, as far as the data has them."""
        return dict(self.description["data"].get("units") or {})

    def agent(self, weights: Weights = "last") -> Agent:
        """All seeds with these weights, on the CPU."""
        config, dims = ModelConfig(**self.description["model"]), Dims(**self.description["widths"])
        agent = self.method.build(config, dims, self.seeds)
        stored = [self.folder.weights(seed, weights) for seed in self.seeds]
        try:
            agent.load_state_dict({key: torch.stack([part[key] for part in stored]) for key in stored[0]})
        except (RuntimeError, KeyError) as reason:
            raise DataError(f"{self.folder}: the weights do not fit run.json ({one_line(reason)})") from None
        return agent

    def to(self, device: torch.device) -> Run:
        """The same with its normalizers on another device."""
        moved = Run(self.folder, self.description, self.task, self.statistic, self.normalizers.to(device))
        moved._references = self._references
        return moved

    # -- what rollouts are scored on ----------------------------------------------------------------------------

    @property
    def feature(self) -> str:
        """What rollouts are scored on unless something else is named: what is matched, else what comes first."""
        if self.statistic.matched is not None:
            return self.statistic.matched.name
        known = referenced_features(self.folder)
        wanted = (*PREFERRED, *self.task.features)
        return next((name for name in wanted if name in known), known[0] if known else "reward")

    def reference(self, feature: str | None = None) -> EpisodeReference:
        """The training episodes as targets of a feature see them: bins, support, episode mixtures."""
        name = feature or self.feature
        if name not in self._references:
            self._references[name] = read_reference(self.folder, name, self.task)
        return self._references[name]

    def add_reference(self, reference: EpisodeReference) -> None:
        """Score rollouts on a feature that the run folder holds nothing about, by its name."""
        self._references[reference.frame.feature.name] = reference

    @cached_property
    def held_out(self) -> TrajectoryDataset | None:
        """The episodes that were kept out of training, if any."""
        return self.folder.held_out(self.task)

    def target(self, target: TargetLike, files: Collection[str] | None = None) -> Target:
        """Whatever can be one, as a target; in expressions ``heldout(i)`` is a held-out episode of the run.

        Expressions of somebody else may name no others than ``files``.
        """
        columns = self.description["data"].get("columns")
        return as_target(target, self.task, self._held_out_target, columns, Facts(self.rate, self.units), files)

    def _held_out_target(self, number: int) -> Target:
        count = 0 if self.held_out is None else len(self.held_out)
        if self.held_out is None or number >= count:
            raise TargetError(f"{self.folder} has {count} held-out episodes, there is no heldout({number})", 0)
        return Demonstration.held_out(self.held_out[number], self.groups[number], number)

    @cached_property
    def programs(self) -> Programs:
        """What was rehearsed."""
        return Programs(self.folder)

    @cached_property
    def scores(self) -> dict[str, Any] | None:
        """Action error and sensitivity of every seed on logged episodes, where the run says."""
        return self.folder.scores()

    def write_scores(self, scores: dict[str, Any]) -> None:
        """Keep them."""
        self.folder.write_scores(scores)
        self.__dict__["scores"] = scores

    @property
    def temperature(self) -> float:
        """Of sampled actions: what a bundle says, else what was selected after training.

        Where nothing was, a policy acts by its mean action: the spread that it learns holds its own errors, too, and
        topples small networks. Probabilities of discrete actions are what the data did, so these are sampled as they
        were learned.
        """
        if "temperature" in self.description:
            return float(self.description["temperature"])
        selected = (self.scores or {}).get("temperature")
        usual = 0.0 if self.task.discrete is None else 1.0
        return float(selected["value"]) if selected else usual

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of every held-out episode."""
        return tuple(self.description["split"]["groups"])

    @property
    def stopped_at(self) -> tuple[int, int] | None:
        """The step a training stopped at and the steps it was to have, where it was interrupted."""
        wanted = (self.description.get("train") or {}).get("steps", 0)
        step = self.folder.weights_step(self.seeds[0], "last")  # what is bundled or imported does not say
        return (step, wanted) if step is not None and step < wanted else None
