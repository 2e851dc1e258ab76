"""The content of ``run.json``: what was trained, on what, with what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from himatch._runtime.tensors import versions
from himatch.data import Split
from himatch.errors import DataError
from himatch.methods import Method, method_from_spec, method_spec
from himatch.methods.batch import Dims
from himatch.networks.transformer import ModelConfig
from himatch.runs.folder import RunFolder
from himatch.runs.task_spec import task_spec
from himatch.statistics.information import Statistic


def describe(
    method: Method,
    model: ModelConfig,
    train: Mapping[str, Any],
    dims: Dims,
    seeds: tuple[int, ...],
    best: str,
    statistic: Statistic,
    split: Split,
) -> dict[str, Any]:
    """The description of a run that is trained on a split; ``best`` says what selects the best weights."""
    data = split.train
    description = {
        "method": method_spec(method),
        "model": asdict(model),
        "train": dict(train),
        "widths": asdict(dims),
        "seeds": list(seeds),
        "best": best,
        "task": task_spec(data.task),
        "statistic": statistic.spec(),
        "data": {
            "source": data.name,
            "env_id": data.env_id,
            "hash": data.content_hash,
            "episodes": len(data),
            "steps": data.steps,
            "columns": {"observations": data.observation_names, "actions": data.action_names},
            "rate": getattr(data, "rate", None),
            "units": dict(getattr(data, "units", None) or {}),
        },
        "split": {
            "name": split.name,
            "groups": list(split.groups),
            "train": split.train_index.tolist(),
            "held_out": split.held_out_index.tolist(),
        },
        "versions": versions(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(description))
    return plain


def plain_spec(method: Method) -> dict[str, Any]:
    """A method as ``run.json`` holds it."""
    plain: dict[str, Any] = json.loads(json.dumps(method_spec(method)))
    return plain


def stored_method(folder: RunFolder, description: Mapping[str, Any]) -> Method:
    """The method that a folder's description has; what an earlier version did not know has its default."""
    try:
        return method_from_spec(description["method"])
    except DataError as reason:
        raise DataError(f"{folder}: {reason}") from None
    except (KeyError, TypeError, ValueError) as reason:
        raise folder.incomplete(reason) from None


def stored_model(folder: RunFolder, description: Mapping[str, Any]) -> ModelConfig:
    """The model that a folder's description has; what an earlier version did not know has its default.

    A version between releases had ensembles. One network is what it would be without them.
    """
    try:
        settings = {"members": 1, **description["model"]}
        if (members := settings.pop("members")) == 1:
            return ModelConfig(**settings)
    except (KeyError, TypeError, ValueError) as reason:
        raise folder.incomplete(reason) from None
    raise DataError(f"{folder}: its policy is {members} networks as one, which himatch no longer has; train it again")
