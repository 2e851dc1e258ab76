"""Observations by name, and the rate at which a controller runs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_episodes import episode
from untrained import untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.policy import Policy

NAMES = ("height", "lean", "thigh", "leg", "foot", "x_velocity", "fall", "spin", "hip", "knee", "ankle")


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng, 30, level=i / 5) for i in range(6)], "hopper")


@pytest.fixture
def policy(data: hm.TrajectoryDataset, tmp_path: Path) -> Policy:
    """As if the data had been a table with names, units and a rate."""
    made = untrained(hm.CDT("x_velocity"), data, tmp_path)
    made.description["data"] |= {
        "columns": {"observations": list(NAMES), "actions": ["a", "b", "c"]},
        "rate": 50.0,
        "units": {"spin": "rad/s"},
    }
    return made


def test_what_a_run_says_of_its_columns(policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    assert policy.columns == NAMES
    assert policy.rate == 50.0
    assert policy.units == {"spin": "rad/s"}
    assert policy.run.action_columns == ("a", "b", "c")
    plain = untrained(hm.CDT("x_velocity"), data, tmp_path / "plain")
    stored = plain.description["data"]
    assert stored["rate"] == getattr(data, "rate", None)
    assert stored["units"] == dict(getattr(data, "units", None) or {})
    assert plain.columns == tuple(f"obs[{i}]" for i in range(11))
    assert plain.run.action_columns == ("act[0]", "act[1]", "act[2]")


@pytest.mark.parametrize("batch", [None, 2])
def test_names_in_any_order(batch: int | None, policy: Policy, data: hm.TrajectoryDataset) -> None:
    named, plain = (policy.controller(data[0], batch=batch) for _ in range(2))
    for row in data[0].observations[:7]:
        given = row if batch is None else np.stack([row, data[1].observations[0]])
        mapping = {NAMES[i]: given[..., i] for i in np.random.default_rng(0).permutation(11)}
        np.testing.assert_array_equal(named.act(mapping), plain.act(given))
    if batch is None:
        named.act(dict.fromkeys(NAMES, 0.5))  # plain numbers


def test_names_that_are_missing_or_unknown(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(data[0])
    given: dict[str, Any] = dict.fromkeys(NAMES, 0.5)
    cases = [
        ({k: v for k, v in given.items() if k not in ("lean", "foot")}, "lacks lean, foot; policy.columns has the"),
        ({**given, "torque": 0.0}, "has torque, which the policy does not see; policy"),
        (
            {k if k != "ankle" else "ankel": v for k, v in given.items()},
            r"lacks ankle and has ankel, which the policy does not see \(did you mean ankle\?\)",
        ),
        ({**given, "knee": [1.0, 2.0]}, r"knee of the observation must be a number, got \[1.0, 2.0\]"),
        ({**given, "knee": "bent"}, "knee of the observation must be a number, got 'bent'"),
        ({**given, "knee": np.nan}, r"holds NaN or infinity \(knee\)"),
    ]
    for observation, message in cases:
        with pytest.raises(HimatchError, match=message) as raised:
            controller.act(observation)
        assert "\n" not in str(raised.value)
    assert controller.step == 0
    pair: dict[str, Any] = {name: [0.5, 0.5] for name in NAMES}
    for knee in ([1.0, 2.0, 3.0], [1.0], 1.0):  # a number is the reading of one robot
        with pytest.raises(HimatchError, match="knee of the observation must be an array of 2 numbers, one for each"):
            policy.controller(data[0], batch=2).act({**pair, "knee": knee})


def test_warnings_have_names_and_units(policy: Policy, data: hm.TrajectoryDataset) -> None:
    with pytest.warns(HimatchWarning, match=r"^spin is 9999 rad/s, beyond"):
        policy.controller(data[0]).act({**dict.fromkeys(NAMES, 0.5), "spin": 9999.0})


# -- the rate -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "differs"), [(50.0, False), (52, False), (48.0, False), (53.0, True), (100, True)])
def test_a_rate_that_differs_is_noted(rate: float, differs: bool, policy: Policy, data: hm.TrajectoryDataset) -> None:
    said = f"runs at {rate:g} Hz, its data was recorded at 50 Hz"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.controller(data[0], rate=rate)
    assert [said in str(one.message) for one in caught] == [True] * differs


@pytest.mark.parametrize(("interval", "differs"), [(0.02, False), (0.0205, False), (0.025, True), (0.01, True)])
def test_time_stamps_give_the_rate(interval: float, differs: bool, policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller, rng = policy.controller(data[0]), np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for begin in (1000.0, 3.0):  # a clock that begins again with the episode
            controller.reset()
            for step in range(25):
                jitter = rng.uniform(0, 0.1) * interval  # of single stamps, which says nothing
                controller.act(data[0].observations[step], time=begin + step * interval + jitter)
    assert len(caught) == differs  # once
    assert all("a policy counts steps" in str(one.message) for one in caught)


def test_times_and_rates_that_cannot_be(policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    controller, row = policy.controller(data[0]), data[0].observations[0]
    controller.act(row, time=1.0)
    for time in (1.0, 0.5, np.nan, "late", "12", True):
        with pytest.raises(HimatchError, match=r"time is in seconds and grows from step to step, got .* after 1"):
            controller.act(row, time=time)  # type: ignore[arg-type]
    assert controller.step == 1
    for rate in (0, -1.0, np.nan, "fast", "50", True):
        with pytest.raises(HimatchError, match="the rate is a positive number"):
            policy.controller(data[0], rate=rate)  # type: ignore[arg-type]
    with pytest.raises(HimatchError, match=r"the temperature must be a number from 0 up, got '0.5'"):
        policy.temperature = "0.5"  # type: ignore[assignment]
    policy.description["data"]["rate"] = None
    with pytest.warns(HimatchWarning, match="does not say at which rate its data was recorded, so 50 Hz cannot be"):
        policy.controller(data[0], rate=50)
