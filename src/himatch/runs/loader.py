"""A policy from its run folder, wherever that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch

from himatch._runtime.devices import find_device
from himatch._runtime.tensors import read_facts, read_tensors
from himatch.errors import DataError, HimatchError, TaskError, note, one_line
from himatch.methods.agent import Widths
from himatch.methods.making import make_agent
from himatch.methods.normalizers import Normalizers
from himatch.methods.paper import METHODS, Method, method_from_spec
from himatch.models import find_model, model_names
from himatch.networks.transformer import ModelConfig
from himatch.policy import TEMPERATURE, Policy
from himatch.runs import folder as files
from himatch.runs.hub import HubName, fetch, is_hub_name
from himatch.statistics.information import InformationStatistic, LearnedStatistic
from himatch.tasks import Task

WEIGHTS = {"best": files.BEST, "last": files.LAST}


def find_run(run: str | Path) -> Path:
    """The folder of a run: the one named, a bundled model, or a copy of ``hf:USER/NAME[@REVISION]`` in the Hub's cache.

    Wherever a run is asked for, this says where it lies. Only what can be read without running code is fetched.
    """
    if not is_hub_name(run):
        folder = Path(run) if Path(run).exists() else find_model(run)
        if folder is None:
            known = ", ".join(model_names())
            raise DataError(f"{run} is not a run folder, nor a model that comes with himatch (those are {known})")
        return folder
    name = HubName.parse(str(run))
    folder = fetch(name, files.PORTABLE)
    if not (folder / files.RUN).is_file():
        raise DataError(f"{name} is not a run of himatch (no {files.RUN} in it)")
    return folder


def load(run: str | Path, *, weights: Literal["last", "best"] = "best", device: str | torch.device = "cpu") -> Policy:
    """Load all seeds of a run: the weights that did best on the validation slice, or the last ones.

    ``run`` is a run folder, a model of ``himatch models list``, or ``hf:USER/NAME`` on the Hub (``@REVISION`` for a
    branch, tag or commit).
    """
    if weights not in WEIGHTS:
        raise HimatchError(f"weights are {' or '.join(WEIGHTS)}, got {weights!r}")
    where, folder = find_device(device), find_run(run)
    description = files.read_run(folder)
    try:
        if (name := description["method"]["name"]) not in METHODS:
            raise TaskError(f"its method {name!r} is not known here; register it first (--import FILE.py)")
        method = method_from_spec(description["method"])
        config = ModelConfig(**description["model"])
        widths = Widths(**description["widths"])
        seeds = tuple(int(seed) for seed in description["seeds"])
        task = files.task_from_spec(description["task"])
        temperature = float(description.get("temperature", TEMPERATURE))
    except TaskError as reason:
        raise TaskError(f"{folder}: {reason}") from None
    except (KeyError, TypeError, ValueError) as reason:
        raise DataError(f"{folder / files.RUN}: incomplete or from another version ({reason})") from None
    agent = make_agent(method, config, widths, seeds)
    stored = [read_tensors(files.seed_folder(folder, seed) / WEIGHTS[weights]) for seed in seeds]
    try:
        agent.load_state_dict({key: torch.stack([part[key] for part in stored]) for key in stored[0]})
    except (RuntimeError, KeyError) as reason:
        raise DataError(f"{folder}: the weights do not fit {files.RUN} ({one_line(reason)})") from None
    try:
        normalizers = Normalizers.of(read_tensors(folder / files.NORMALIZERS)).to(where)
    except TypeError as reason:
        raise DataError(f"{folder / files.NORMALIZERS}: incomplete or from another version ({reason})") from None
    statistic = _statistic(description, method, task)
    policy = Policy(agent.to(where), normalizers, statistic, task, folder, description)
    policy.temperature, policy.weights = temperature, weights
    _note_unfinished(folder, seeds, description)
    return policy


def _note_unfinished(folder: Path, seeds: tuple[int, ...], description: dict[str, Any]) -> None:
    """Say so where a training was interrupted; what is bundled or imported keeps no last weights to tell by."""
    last, wanted = files.seed_folder(folder, seeds[0]) / files.LAST, (description.get("train") or {}).get("steps", 0)
    if last.is_file() and (step := int(read_facts(last).get("step", wanted))) < wanted:
        note(f"{folder}: its training stopped at step {step:,} of {wanted:,}; himatch train ... --resume goes on")


def _statistic(
    description: dict[str, Any], method: Method, task: Task
) -> InformationStatistic | LearnedStatistic | None:
    stored = description.get("statistic")
    return method.statistic(task) if stored is None else InformationStatistic.from_spec(stored, task)
