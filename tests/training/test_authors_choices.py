"""Choices of the authors' code reach the network, the statistic and the draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import himatch as hm
from himatch.methods.batch import Dims
from himatch.networks.transformer import ModelConfig
from himatch.training.draws import WindowIndex

TINY: dict[str, Any] = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "temperature": 0.0, "quiet": True}


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    rng, task = np.random.default_rng(0), hm.Task("drawn-cart", 40, 2, 1, -1.0, 1.0, features={"speed": 0})
    lengths = [40, 10, 10, 25] * 4
    episodes = [hm.Trajectory(rng.normal(size=(n, 2)), rng.uniform(-1, 1, (n, 1)), rng.normal(size=n)) for n in lengths]
    return hm.load_dataset(episodes, task)


def test_training_draws_as_it_is_configured(
    data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = WindowIndex.draw

    def watched(self: WindowIndex, rng: Any, shape: Any, sampling: Any) -> Any:
        seen.append(sampling)
        return real(self, rng, shape, sampling)

    monkeypatch.setattr(WindowIndex, "draw", watched)
    hm.train(hm.CDT("speed"), data, out=tmp_path / "usual", split="none", **TINY)
    hm.train(hm.CDT("speed"), data, out=tmp_path / "evenly", split="none", sampling="episodes", **TINY)
    assert (seen[0], seen[-1]) == ("windows", "episodes")
    with pytest.raises(hm.HimatchError, match="sampling must be windows or episodes"):
        hm.train(hm.CDT("speed"), data, out=tmp_path / "no", split="none", sampling="steps", **TINY)


@pytest.mark.parametrize("size", [0.02, 1.0])
def test_embeddings_of_time_have_the_size_asked_for(size: float) -> None:
    config = ModelConfig(context=5, layers=1, width=16, time_std=size)
    agent = hm.DT("speed").build(config, Dims(2, 1, 1, 200), (0,))
    embedded = [w.detach() for name, w in agent.named_parameters() if "embed_time" in name]
    assert float(torch.cat([w.flatten() for w in embedded]).std()) == pytest.approx(size, rel=0.1)


@pytest.mark.parametrize(("codes", "found"), [("public", 1.0), ("pseudocode", 0.02)])
def test_bdts_second_transformer_has_that_size_where_it_reads_time_steps(codes: Any, found: float) -> None:
    config = ModelConfig(context=20, layers=1, width=16, time_std=1.0)
    agent = hm.BDT(codes=codes, target_window=20).build(config, Dims(2, 1, 16, 200), (0,))
    positions = [w.detach() for name, w in agent.named_parameters() if "codes.position" in name]
    assert float(torch.cat([w.flatten() for w in positions]).std()) == pytest.approx(found, rel=0.15)


def test_the_sum_is_divided_by_the_horizon_or_as_asked(data: hm.TrajectoryDataset) -> None:
    total = data[0].observations[:, 0].sum()
    assert hm.DT("speed").statistic(data.task)(data[0])[0, 0] == pytest.approx(total / 40, rel=1e-4)
    assert hm.DT("speed", scale=1000.0).statistic(data.task)(data[0])[0, 0] == pytest.approx(total / 1000, rel=1e-4)
