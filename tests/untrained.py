"""Policies with random weights, made without training: what acting and scoring are tested on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import himatch as hm
from himatch.data import named_split
from himatch.policy import Policy
from himatch.runs.run import Run
from himatch.simulation import make_simulator, record
from himatch.training import make_plan

# Clipped, the means of a Gaussian head would all be -1 or 1 with such weights, whatever the policy sees.
SMALL: dict[str, Any] = {"context": 5, "layers": 2, "width": 16, "head": "tanh"}


def untrained(
    method: hm.methods.Method, data: hm.TrajectoryDataset, folder: Path, seeds: tuple[int, ...] = (0,), **model: Any
) -> Policy:
    """A policy whose weights are large enough that every token moves its actions."""
    settings = {"preset": "cpu", "device": "cpu", **SMALL, **model}
    plan = replace(make_plan(method, lambda: named_split(data, "none"), out=folder, **settings), seeds=seeds)
    with plan.relabelled() as (z, _):
        normalizers = plan.normalizers(z)
    plan.write(normalizers)
    agent = method.build(plan.model, plan.dims, seeds)
    generator = torch.Generator().manual_seed(sum(seeds) + 1)
    with torch.no_grad():
        for name, parameter in agent.named_parameters():
            around = 1.0 if "norm.weight" in name else 0.0
            parameter.copy_(around + 0.3 * torch.randn(parameter.shape, generator=generator))
    return Policy(Run(plan.folder, plan.describe(), data.task, plan.statistic, normalizers), agent)


def fallen_hoppers(seeds: range, spread: float = 1.0) -> list[hm.Trajectory]:
    """Episodes from these reset seeds: Hoppers that act at random and fall."""
    noise = np.random.default_rng(0).uniform(-spread, spread, (len(seeds), 1000, 3))
    return record(make_simulator("hopper", len(seeds)), lambda _, number, step: noise[number, step], seeds)
