"""A feature whose function has changed since training is refused, by name, step and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import himatch as hm
from himatch.errors import DataError
from himatch.tasks import registry

TINY: dict[str, Any] = {"context": 3, "layers": 1, "width": 16, "steps": 2, "batch_size": 8, "preset": "cpu"}
TINY |= {"quiet": True, "device": "cpu"}


def speed(obs: Any, act: Any, rew: Any) -> Any:
    return np.abs(obs[:, 1])


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))


def rig(**features: Any) -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    arrays = {"observations": rng.normal(size=(300, 2)), "actions": np.zeros((300, 1)), "lengths": [100] * 3}
    return hm.load_dataset(arrays, hm.register_task("rig", horizon=100, features=features))


@pytest.mark.parametrize("method", [hm.CDT("speed"), hm.CDT("speed,x"), hm.BC()])
def test_a_function_that_has_changed_is_refused(method: hm.methods.Method, tmp_path: Path) -> None:
    hm.train(method, rig(speed=speed, x=0), out=tmp_path, **TINY)
    data = rig(speed=lambda obs, act, rew: speed(obs, act, rew) * (1 + 1e-7), x=0)  # rounded differently
    hm.load(tmp_path)
    before = speed(data[0].observations, None, None)

    def other(obs: Any, act: Any, rew: Any) -> Any:
        return np.where(np.arange(len(obs)) < 7, speed(obs, act, rew), 3 * speed(obs, act, rew))

    data = rig(speed=other, x=0)
    told = rf"'speed' \(at step 7 of a stored stretch it was {before[7]:g}, now it is {3 * before[7]:g}\)"
    for again in (lambda: hm.load(tmp_path), lambda: hm.train(method, data, out=tmp_path, resume=True, **TINY)):
        with pytest.raises(DataError, match=f"was trained with another feature {told}; register the task"):
            again()
    rig(speed=lambda obs, act, rew: obs, x=0)
    with pytest.raises(DataError, match="it was 1 numbers a step, now it is 2"):
        hm.load(tmp_path)
    rig(speed=lambda obs, act, rew: 1 / 0, x=0)
    with pytest.raises(DataError, match=r"another feature 'speed' .*failed with ZeroDivisionError"):
        hm.load(tmp_path)
    rig(speed=speed, x=0)
    hm.load(tmp_path)


def test_what_a_run_does_not_use_may_change(tmp_path: Path) -> None:
    hm.train(hm.CDT("speed"), rig(speed=speed, other=speed), out=tmp_path, **TINY)
    rig(speed=speed, other=lambda obs, act, rew: obs[:, 0])
    hm.load(tmp_path)


def test_a_function_that_needs_more_steps_is_not_watched(tmp_path: Path) -> None:
    def late(obs: Any, act: Any, rew: Any) -> Any:
        return obs[:, 0] + obs[80, 0]

    hm.train(hm.CDT("late"), rig(late=late), out=tmp_path, **TINY)
    hm.load(tmp_path)


@pytest.mark.parametrize("threshold", [1.5, 2.5])
def test_a_threshold_beyond_the_stretch_shows(threshold: float, tmp_path: Path) -> None:
    def clipped(factor: float) -> Any:  # of a column that speed does not read
        return lambda obs, act, rew: np.where(obs[:, 0] > threshold, factor, 1) * speed(obs, act, rew)

    data = rig(speed=clipped(1))
    assert (data[0].observations[:64, 0] <= 2.5).all()
    hm.train(hm.CDT("speed"), data, out=tmp_path, **TINY)
    rig(speed=clipped(1 + 1e-7))
    hm.load(tmp_path)
    rig(speed=clipped(45))
    with pytest.raises(DataError, match=r"another feature 'speed' \(at step \d+ of"):
        hm.load(tmp_path)


def test_a_difference_of_steps_is_watched(tmp_path: Path) -> None:
    def difference(step: float) -> Any:
        return lambda obs, act, rew: np.gradient(obs[:, 0]) / step

    hm.train(hm.CDT("change"), rig(change=difference(0.05)), out=tmp_path, **TINY)
    hm.load(tmp_path)
    rig(change=difference(0.02))
    with pytest.raises(DataError, match="of a stored stretch it was"):
        hm.load(tmp_path)
