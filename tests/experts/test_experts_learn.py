"""SAC learns: a stack of two agents on a task that anybody can check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import himatch as hm
from himatch.experts.run import AgentSpec
from himatch.experts.sac import SACConfig
from himatch.experts.selection import Candidate, ExpertRun, mean_return, roll_out
from himatch.experts.trainer import train_experts

QUICK = SACConfig(
    hidden=(32, 32),
    copies=8,
    updates=4,
    batch_size=64,
    learning_rate=1e-2,
    discount=0.9,
    entropy=2.0,
    memory=10_000,
    first=320,
)
AGENTS = [AgentSpec("point", 0), AgentSpec("point", 1)]


def scores(candidates: list[Candidate]) -> list[float]:
    """Mean return of each agent's most likely actions."""
    rolled = roll_out(
        [c.weights for c in candidates], [{} for _ in candidates], hm.get_task("point"), stochastic=False, threads=1
    )
    return [mean_return(episodes) for episodes in rolled]


def test_two_agents_learn_to_reach_the_goal(point_mass: Path, tmp_path: Path) -> None:
    folder = train_experts(
        AGENTS, tmp_path, steps=2000, config=QUICK, snapshots=10, device="cpu", threads=1, quiet=True
    )
    opened = ExpertRun(folder)
    trained = [opened.load(agent, opened.rows[-1]) for agent in range(2)]
    nobody = [replace(c, weights={k: torch.zeros_like(v) for k, v in c.weights.items()}) for c in trained]
    # Standing still or moving at random earns 4 of 20, going straight to the goal 18.
    assert max(scores(nobody)) < 6.0
    found = scores(trained)
    assert min(found) > 13.0
    assert found[0] != found[1]
    first, last = (np.array(opened.rows[i]["returns"]) for i in (0, -1))
    assert (last > 2.0 * first).all()
    assert [row["step"] for row in opened.rows] == list(range(400, 2001, 200))
    assert all(0.0 < temperature < 0.5 for temperature in opened.rows[-1]["temperature"])
