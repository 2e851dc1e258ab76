"""Conditioning is real: where the right action depends on the future alone, policies conditioned on it learn it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import himatch as hm
from himatch.methods import METHODS
from himatch.tasks import Task

STEPS = 20


@pytest.fixture(scope="module")
def riddle() -> hm.TrajectoryDataset:
    """Even steps show the episode's sign, odd steps demand it as the action; one step of context cannot know it."""
    rng = np.random.default_rng(0)
    episodes = []
    for sign in np.where(np.arange(80) % 2, 1.0, -1.0):
        odd = np.arange(STEPS) % 2
        observations = np.stack([sign * (1 - odd) + rng.normal(0, 0.01, STEPS), odd], axis=1)
        episodes.append(hm.Trajectory(observations, (0.8 * sign * odd)[:, None]))
    return hm.load_dataset(episodes, Task("riddle", STEPS, 2, 1, -1.0, 1.0, features={"shown": 0}))


WINDOW: dict[str, Any] = {"m": 2, "target_window": 6, "look_ahead": 6}
SOLVERS: list[hm.methods.Method] = [
    *(hm.CDT("shown"), hm.DT("shown"), hm.MomentsDT("shown")),
    *(hm.BDT(**WINDOW), hm.DTE2E(**WINDOW), hm.DTAE(**WINDOW), hm.DTCPC(**WINDOW)),
]
ELSEWHERE = {
    **dict.fromkeys(("goal", "gcsl", "udrl", "rcp"), "test_hindsight_learns.py"),
    **dict.fromkeys(("meta-bc", "focal"), "test_baselines.py"),
    **dict.fromkeys(("hipi", "gh", "multi-task"), "test_tasks_learn.py"),
}
"""Where methods learn something known that do not solve the riddle; what they are conditioned on is no part of it."""


def test_every_method_has_learned_something_that_is_known() -> None:
    assert {method.name for method in (*SOLVERS, hm.BC())} | set(ELSEWHERE) == set(METHODS)
    for name, file in ELSEWHERE.items():
        assert METHODS[name].__name__ in (text := (Path(__file__).parent / file).read_text()) or f'"{name}"' in text


@pytest.mark.parametrize(
    ("method", "solves"),
    [*((method, True) for method in SOLVERS), (hm.BC(), False)],
    ids=lambda value: getattr(value, "name", None),
)
def test_riddle(method: hm.methods.Method, solves: bool, riddle: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = hm.train(
        method,
        riddle,
        out=tmp_path / "run",
        preset="cpu",
        head="tanh",  # actions here are exact, and likelihood takes more steps to learn such
        steps=400,
        width=32,
        layers=1,
        context=1,
        batch_size=64,
        quiet=True,
    )
    episodes = [riddle[i] for i in (0, 1, 2, 3)]
    error = policy.action_error(episodes)[0]
    swapped = policy.action_error(episodes, [riddle[i] for i in (1, 0, 3, 2)])[0]
    floor = 0.5 * 0.8**2  # half the steps demand plus or minus 0.8 and the best blind guess is zero
    if solves:
        # The last step sees no shown sign in its future, so it stays a riddle to everybody.
        assert error < floor / STEPS * 2.5
        assert swapped > 3 * floor
    else:
        assert error == pytest.approx(floor, rel=0.1)
        assert swapped == error
