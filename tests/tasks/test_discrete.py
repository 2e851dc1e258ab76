"""Discrete actions as numbers and as one-hot rows, and where tasks and environments say that they are."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from grid_world import ACTIONS, ENV, STEPS, grid
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch.errors import TaskError
from himatch.runs.task_spec import task_from_spec, task_spec
from himatch.tasks.spaces import action_dims

__all__ = ["grid"]


@given(st.integers(2, 20), st.integers(-5, 5), st.data())
def test_rows_and_numbers_are_each_others_inverse(count: int, start: int, data: st.DataObject) -> None:
    discrete = hm.Discrete(count, start)
    numbers = np.array(data.draw(st.lists(st.integers(start, start + count - 1), min_size=1)))
    rows = discrete.rows(numbers)
    assert rows.shape == (len(numbers), count)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows.sum(axis=1), 1.0)
    np.testing.assert_array_equal(rows[np.arange(len(rows)), numbers - start], 1.0)
    np.testing.assert_array_equal(discrete.numbers(rows), numbers)
    for same in (rows, numbers, numbers[:, None], numbers.astype(float)):
        np.testing.assert_array_equal(discrete.as_rows(same, len(numbers)), rows)
    assert discrete.as_rows(np.zeros((len(numbers), count + 1)), len(numbers)) is None


@pytest.mark.parametrize("wrong", [0, 4, 1.5, np.nan, np.inf, -1, "left", None])
def test_what_is_no_action_is_refused(wrong: object) -> None:
    with pytest.raises(TaskError, match=r"is none of the actions, which are 3 discrete ones \(1 to 3\)"):
        hm.Discrete(3, 1).rows(np.array([1, wrong, 2]))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"discrete": 1}, "2 to 1024 to choose from, got 1"),
        ({"discrete": True}, "whole number, got True"),
        ({"discrete": 2.5}, "whole number, got 2.5"),
        ({"discrete": 3, "action_width": 2}, "so their width is 3, not 2"),
        ({"discrete": 3, "action_low": -1, "action_high": 1}, "discrete actions have no range"),
        ({"discrete": 3, "env_id": "CartPole-v1"}, r"3 discrete ones \(0 to 2\) as you say, and 2 discrete ones"),
        ({"discrete": 3, "env_id": "Pendulum-v1"}, "as you say, and continuous in its environment"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError, match=said):
        hm.register_task("wrong", **{"horizon": 5, **settings})


def test_the_actions_come_from_the_environment() -> None:
    task = hm.register_task("gridded", env_id=ENV)
    assert (task.discrete, task.action_width, task.action_low, task.horizon) == (ACTIONS, 5, None, STEPS)
    cart = hm.register_task("registered-cart", env_id="CartPole-v1")
    assert (cart.discrete, cart.observation_width, cart.horizon) == (hm.Discrete(2), 4, 500)
    assert hm.register_task("discrete-rig", horizon=3, discrete=4).action_width == 4


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (gymnasium.spaces.MultiDiscrete([2, 3]), "a MultiDiscrete space"),
        (gymnasium.spaces.MultiBinary(3), "a MultiBinary space"),
        (gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2)]), "a Tuple space"),
        (gymnasium.spaces.Discrete(1), "2 to 1024 to choose from, got 1"),
    ],
)
def test_other_spaces_of_actions_are_refused(space: gymnasium.Space[Any], kind: str) -> None:
    with pytest.raises(TaskError, match=f"the action.*{kind}"):
        action_dims(space, "the action")


def test_a_run_keeps_them() -> None:
    stored = hm.register_task("kept", env_id=ENV)
    assert task_from_spec(task_spec(stored)).discrete == ACTIONS
    assert "discrete" not in task_spec(hm.get_task("hopper"))  # as runs of earlier versions have it
