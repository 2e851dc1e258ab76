"""Settings of models, methods and trainings as plain numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import himatch as hm
from himatch.methods import method_spec
from himatch.networks.transformer import ModelConfig
from himatch.training.config import TrainConfig, configure


def test_numpys_numbers_become_pythons() -> None:
    model = ModelConfig(width=np.int64(16), dropout=np.float32(0.5))  # type: ignore[arg-type]
    train = TrainConfig(steps=np.int64(3), warmup=np.uint8(1), learning_rate=np.float32(0.25), clip=1)  # type: ignore[arg-type]
    assert json.loads(json.dumps(asdict(model)))["width"] == 16
    assert json.loads(json.dumps(asdict(train)))["learning_rate"] == 0.25
    assert isinstance(train.clip, float)
    methods = (
        hm.CDT(bins=np.int32(7), gamma=np.float64(0.5)),  # type: ignore[arg-type]
        hm.BDT(codes="public", public_mask=np.bool_(True)),  # type: ignore[arg-type]
        hm.DTE2E(hidden=np.array([8, 8])),  # type: ignore[arg-type]
        hm.MetaBC(encoder=[np.int64(4)], pretrain_steps=np.int64(5)),  # type: ignore[arg-type]
    )
    for method in methods:
        json.dumps(method_spec(method))
    assert methods[2] == hm.DTE2E(hidden=(8, 8))
    assert methods[3] == hm.MetaBC(encoder=(4,), pretrain_steps=5)


def test_a_whole_number_may_be_written_as_a_float() -> None:
    _, config = configure("cpu", hm.DT(), steps=1e3, batch_size=32.0)
    assert (config.steps, config.batch_size, config.warmup) == (1000, 32, 25)
    assert isinstance(config.steps, int)
    assert hm.CDT(bins=31.0) == hm.CDT(bins=31)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: configure("cpu", hm.DT(), steps=1.5), "steps must be a whole number, got 1.5"),
        (lambda: configure("cpu", hm.DT(), steps="10"), "steps must be a whole number, got '10'"),
        (lambda: configure("cpu", hm.DT(), steps=float("inf")), "steps must be a whole number, got inf"),
        (lambda: configure("cpu", hm.DT(), width="16"), "width must be a whole number, got '16'"),
        (lambda: configure("cpu", hm.DT(), layers=True), "layers must be a whole number, got True"),
        (lambda: configure("cpu", hm.DT(), learning_rate="1e-3"), "learning_rate must be a number, got '1e-3'"),
        (
            lambda: configure("cpu", hm.DT(), batch_size=np.ones((9, 9))),
            r"batch_size must be a whole number, got array\(\[\[1",
        ),
        (lambda: hm.CDT(bins=3.5), "bins must be a whole number"),
        (lambda: hm.DT(gamma=None), "gamma must be a number, got None"),
        (lambda: hm.BDT(public_mask="no"), "public_mask must be True or False, got 'no'"),
        (lambda: hm.FOCAL(encoder="200"), "encoder must be a list of whole numbers, got '200'"),
        (lambda: hm.CDT(["vx", "effort"]), r"feature must be a name.*got \['vx', 'effort'\]"),
        (lambda: hm.CDT(lambda obs, act, rew: obs), "feature must be a name.*is named in the task"),
    ],
)
def test_others_are_refused_in_one_line(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(hm.HimatchError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_method_of_ones_own_is_checked_too() -> None:
    @dataclass(frozen=True)
    class Own(hm.methods.Method):
        name: ClassVar[str] = "own"
        feature: str = "reward"
        count: int = 9

    assert Own(count=np.int64(3)).count == 3  # type: ignore[arg-type]
    with pytest.raises(hm.HimatchError, match="count"):
        Own(count="3")  # type: ignore[arg-type]
