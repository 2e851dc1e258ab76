"""What an exported file says about itself: everything that a robot needs beside the numbers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from himatch._version import __version__
from himatch.methods.base import Port
from himatch.policy import Policy
from himatch.rollout.limits import Bounds, training_limits
from himatch.statistics.features import Coordinates, Feature, Reward, Stack, State

Facts = dict[str, Any]


def facts_of(
    policy: Policy, inputs: tuple[Port, ...], outputs: tuple[Port, ...], margin: float, *, clamped: bool
) -> Facts:
    """As plain JSON values; ``policy`` holds one seed."""
    data, known = policy.description["data"], policy.normalizers
    middle, half = (t.numpy().astype(np.float64) for t in (known.action_middle, known.action_half))
    bounds = training_limits(known, margin)
    stochastic, discrete = policy.agent.policy.stochastic, policy.task.discrete
    found = {
        "himatch_version": __version__,
        "torch_version": torch.__version__,
        "task": policy.task.name,
        "env_id": str(data.get("env_id") or policy.task.env_id or ""),
        "method": policy.description["method"],
        "seed": policy.seeds[0],
        "context": policy.context,
        "statistic": policy.statistic.spec(),
        "z": _z(policy),
        "columns": list(policy.columns),
        "action_columns": list(policy.run.action_columns),
        "units": policy.units,
        "rate": policy.rate,
        "limits": None if bounds is None else _limits(bounds, margin, clamped=clamped),
        "action_range": {"low": (middle - half).tolist(), "high": (middle + half).tolist()},
        "head": policy.agent.policy.head if stochastic else "deterministic",
        "temperature": policy.temperature if stochastic else None,
        "data_source": str(data.get("source") or ""),
        "data_hash": str(data.get("hash") or ""),
        "run_hash": run_hash(policy),
        "inputs": [port._asdict() for port in inputs],
        "outputs": [port._asdict() for port in outputs],
    }
    if discrete is not None:
        found |= {"discrete": asdict(discrete), "action_range": {"low": [0.0] * len(half), "high": [1.0] * len(half)}}
    return found


def as_metadata(facts: Facts) -> dict[str, str]:
    """For the file: what is not plain text is JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in facts.items()}


def run_hash(policy: Policy) -> str:
    """SHA-256 of description, normalizers and weights: which run, which seed and which weights a file came from."""
    digest = hashlib.sha256(json.dumps(policy.description, sort_keys=True).encode())
    tensors = {**policy.normalizers.tensors(), **policy.agent.state_dict()}
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name].detach().cpu().numpy())
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _z(policy: Policy) -> Facts | None:
    """What z means; ``None`` for a policy that is conditioned on nothing."""
    port = policy.agent.port(policy.statistic)
    if port is None:
        return None
    feature, bins = policy.statistic.matched, policy.statistic.bins
    return {
        "meaning": port.meaning,
        "feature": None if feature is None else feature.name,
        "feature_from": None if feature is None else feature_from(feature, policy.agent.dims.observation),
        "edges": None if bins is None else bins.edges.tolist(),
    }


def feature_from(feature: Feature, width: int) -> list[list[Any]] | None:
    """Where each number of a feature lies, such as ``["observation", 5]``; ``None`` for a function of the user's."""
    if isinstance(feature, Reward):
        return [["reward", 0]]
    if isinstance(feature, State):
        return [["observation", i] for i in range(width)]
    if isinstance(feature, Coordinates):
        return [["action" if feature.of_action else "observation", i] for i in feature.indices]
    if isinstance(feature, Stack):
        parts = [feature_from(part, width) for part in feature.parts]
        return None if None in parts else [place for part in parts if part for place in part]
    return None


def _limits(bounds: tuple[Bounds, Bounds], margin: float, *, clamped: bool) -> Facts:
    """JSON has no infinity; a channel without a limit has ``null``."""
    low, high = ([x if np.isfinite(x) else None for x in bound.tolist()] for bound in bounds)
    return {"low": low, "high": high, "margin": margin, "clamped": clamped}
