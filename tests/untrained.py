"""Policies with random weights, made without training: what acting and scoring are tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

import himatch as hm
from himatch.data import named_split
from himatch.methods.making import make_agent
from himatch.policy import Policy
from himatch.simulation import make_simulator, record
from himatch.training.config import configure
from himatch.training.job import Job

SMALL: dict[str, Any] = {"context": 5, "layers": 2, "width": 16}


def untrained(
    method: hm.methods.Method, data: hm.TrajectoryDataset, folder: Path, seeds: tuple[int, ...] = (0,), **model: Any
) -> Policy:
    """A policy whose weights are large enough that every token moves its actions."""
    config = configure("cpu", method, **{**SMALL, **model})
    job = Job.prepare(method, named_split(data, "none"), config, seeds, folder)
    job.write()
    with job.relabelled() as (z, _):
        normalizers = job.normalizers(z)
    agent = make_agent(method, config.model, job.widths, seeds)
    generator = torch.Generator().manual_seed(sum(seeds) + 1)
    with torch.no_grad():
        for name, parameter in agent.named_parameters():
            around = 1.0 if "norm.weight" in name else 0.0
            parameter.copy_(around + 0.3 * torch.randn(parameter.shape, generator=generator))
    return Policy(agent, normalizers, job.statistic, data.task, folder, job.describe())


def fallen_hoppers(seeds: range, spread: float = 1.0) -> list[hm.Trajectory]:
    """Episodes from these reset seeds: Hoppers that act at random and fall."""
    noise = np.random.default_rng(0).uniform(-spread, spread, (len(seeds), 1000, 3))
    return record(make_simulator("hopper", len(seeds)), lambda _, number, step: noise[number, step], seeds)
