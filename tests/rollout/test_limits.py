"""Limits of observations: what lies beyond the training range is noted, clipped or refused."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from random_episodes import episode
from untrained import untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.methods import normalizers
from himatch.methods.normalizers import Normalizers
from himatch.policy import Policy
from himatch.rollout import Controller
from himatch.runs.run import Run


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    episodes = [episode(rng, 30, level=i / 5) for i in range(6)]
    still = [replace(one, observations=np.where(np.arange(11) == 4, 2.0, one.observations)) for one in episodes]
    return hm.load_dataset(still, "hopper")


@pytest.fixture
def policy(data: hm.TrajectoryDataset, tmp_path: Path) -> Policy:
    with pytest.warns(HimatchWarning, match=r"obs\[4\] never changed"):
        return untrained(hm.CDT("x_velocity"), data, tmp_path)


def test_normalizers_keep_the_range_a_block_at_a_time(
    data: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normalizers, "_BLOCK", 7)
    fitted = Normalizers.fit(data[1:5])
    rows = data[1:5].observations
    stored = Normalizers.of(fitted.tensors())
    assert stored.state_low is not None
    assert stored.state_high is not None
    np.testing.assert_array_equal(stored.state_low, rows.min(axis=0))
    np.testing.assert_array_equal(stored.state_high, rows.max(axis=0))


def test_the_training_range_and_a_margin(policy: Policy, data: hm.TrajectoryDataset) -> None:
    low, high = data.observations.min(axis=0), data.observations.max(axis=0)
    limits = policy.controller(data[0], margin=0.25).limits
    moves = np.arange(11) != 4
    np.testing.assert_allclose(limits.low[moves], (low - 0.25 * (high - low))[moves], rtol=1e-5)
    np.testing.assert_allclose(limits.high[moves], (high + 0.25 * (high - low))[moves], rtol=1e-5)
    assert (limits.low[4], limits.high[4]) == (-np.inf, np.inf)  # nothing was learned of it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        controller = policy.controller(data[0], margin=0.0)
        for row in data.observations[::7]:
            controller.act(row)
        controller.act(np.where(np.arange(11) == 4, 1e6, row))
    assert controller.violations == {}


def broken(data: hm.TrajectoryDataset, **channels: float) -> np.ndarray:
    row = data[0].observations[0].copy()
    for name, value in channels.items():
        row[int(name[1:])] = value
    return row


def acted(controller: Controller, *rows: np.ndarray) -> list[str]:
    """What is noted while it acts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row in rows:
            controller.act(row)
    return [str(one.message) for one in caught]


def test_a_warning_once_a_channel_and_episode(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(data[0])
    failed = broken(data, c8=9999.0)
    said = acted(controller, failed, failed, broken(data, c8=-9999.0, c2=9999.0))
    assert len(said) == 2
    assert re.match(
        r"obs\[8\] is 9999, beyond -[\d.]+ to [\d.]+ \(in training -[\d.]+ to [\d.]+\); the policy", said[0]
    )
    assert said[1].startswith("obs[2] is 9999")
    assert controller.violations == {"obs[2]": 1, "obs[8]": 3}
    controller.reset()
    assert len(acted(controller, failed, failed)) == 1


def test_a_warning_for_each_robot(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(data[0], batch=3)
    rows = np.stack([broken(data), broken(data, c8=9999.0), broken(data)])
    (said,) = acted(controller, rows, rows)
    assert said.startswith("obs[8] of robot 1 is 9999")
    controller.reset(robots=[0, 2])  # whose warning it was not
    assert not acted(controller, rows)
    controller.reset(robots=[1])
    assert len(acted(controller, rows)) == 1
    assert controller.violations == {"obs[8]": 4}


@pytest.mark.parametrize("value", [9999.0, 3e38])
def test_clamp_is_what_the_policy_sees(value: float, policy: Policy, data: hm.TrajectoryDataset) -> None:
    clamped, plain = (policy.controller(data[0], limits=mode, conditioning="remaining") for mode in ("clamp", "off"))
    row = broken(data, c8=value)
    for _ in range(3):
        given = row.copy()
        action = clamped.act(row)
        np.testing.assert_array_equal(row, given)  # the caller's array is the caller's
        np.testing.assert_array_equal(action, plain.act(np.clip(row, clamped.limits.low, clamped.limits.high)))
    assert clamped.violations == {"obs[8]": 3}
    assert plain.violations == {}


def test_a_refused_observation_leaves_no_trace(policy: Policy, data: hm.TrajectoryDataset) -> None:
    refusing, undisturbed = (policy.controller(data[0], limits="raise", conditioning="remaining") for _ in range(2))
    for row in data[0].observations[:8]:
        step = refusing.step
        with pytest.raises(HimatchError, match=r"^obs\[8\] is 9999, beyond .* to .*; the policy has not seen this obs"):
            refusing.act(np.where(np.arange(11) == 8, 9999.0, row))
        assert refusing.step == step
        np.testing.assert_array_equal(refusing.act(row), undisturbed.act(row))
    assert refusing.violations == {"obs[8]": 8}


@pytest.mark.parametrize("mode", ["warn", "clamp", "raise", "off"])
def test_what_is_no_number_is_refused_in_every_mode(mode: str, policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(data[0], limits=mode)  # type: ignore[arg-type]
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(HimatchError, match=r"holds NaN or infinity \(obs\[8\]\)"):
            controller.act(broken(data, c8=value))
        with pytest.raises(HimatchError, match=r"holds NaN or infinity \(obs\[4\]\)"):
            controller.act(broken(data, c4=value))
    assert controller.violations == {}
    assert controller.step == 0


def test_limits_of_ones_own(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(data[0], limits="raise")
    controller.limits.set("obs[8]", high=1e5)
    controller.act(broken(data, c8=9999.0))
    controller.limits.low[4] = 1.0
    with pytest.raises(HimatchError, match=r"obs\[4\] is 0, beyond 1 to inf \(in training 2 to 2\)"):
        controller.act(broken(data, c4=0.0))
    with pytest.raises(HimatchError, match=r"sees no channel 'obs\[88\]'; did you mean"):
        controller.limits.set("obs[88]", low=0.0)
    with pytest.raises(HimatchError, match="a low and a high number, got 3 and 2"):
        controller.limits.set("obs[1]", low=3.0, high=2.0)


def test_settings_that_cannot_be(policy: Policy, data: hm.TrajectoryDataset) -> None:
    for settings, message in (
        ({"limits": "ignore"}, "one of warn, clamp, raise, off, got 'ignore'"),
        ({"margin": -0.1}, "a number from 0 up, got -0.1"),
        ({"margin": np.nan}, "a number from 0 up"),
        ({"margin": "wide"}, "a number from 0 up"),
    ):
        with pytest.raises(HimatchError, match=message):
            policy.controller(data[0], **settings)  # type: ignore[arg-type]


def test_a_run_of_an_earlier_version_has_no_limits(policy: Policy, data: hm.TrajectoryDataset) -> None:
    tensors = {name: t for name, t in policy.normalizers.tensors().items() if name not in ("state_low", "state_high")}
    run = policy.run
    older = Policy(Run(run.folder, run.description, run.task, run.statistic, Normalizers.of(tensors)), policy.agent)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        controller = older.controller(data[0])
        controller.act(broken(data, c8=9999.0))
    assert controller.violations == {}
    with pytest.warns(HimatchWarning, match=r"does not hold the range of its training data, so limits='clamp' has"):
        controller = older.controller(data[0], limits="clamp")
    controller.limits.set("obs[8]", -5.0, 5.0)
    controller.act(broken(data, c8=9999.0))
    assert controller.violations == {"obs[8]": 1}
    assert torch.isfinite(controller._player.context.states).all()
