from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command_line import Run, assert_refused

import himatch as hm
from himatch._runtime.devices import find_device


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


@pytest.mark.usefixtures("gpus")
def test_devices_where_there_are_gpus() -> None:
    assert find_device() == torch.device("cuda")
    for name in ("cpu", "cuda", "cuda:1", torch.device("cuda", 1)):
        assert find_device(name) == torch.device(name)
    for name in ("cuda:2", "cuda:999"):
        with pytest.raises(hm.HimatchError, match=f"there is no {name} here.*0 to 1"):
            find_device(name)


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", torch.device("cuda")])
def test_devices_where_there_is_no_gpu(name: str | torch.device) -> None:
    assert find_device() == find_device("cpu") == torch.device("cpu")
    with pytest.raises(hm.HimatchError, match="no CUDA GPU here; use --device cpu"):
        find_device(name)


@pytest.mark.parametrize("name", ["gpu", "", "cuda:", "cuda:01", "cuda:-1", "meta", "CPU"])
def test_unknown_devices(name: str) -> None:
    with pytest.raises(hm.HimatchError, match=f"unknown device '{name}'; known are cpu, cuda, cuda:N"):
        find_device(name)


@pytest.mark.usefixtures("no_gpu")
def test_a_device_is_refused_before_anything_is_written(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    for name, message in (("cuda", "no CUDA GPU"), ("gpu", "unknown device 'gpu'")):
        with pytest.raises(hm.HimatchError, match=message):
            hm.train(hm.BC(), hopper, out=tmp_path / "run", device=name, quiet=True)
        with pytest.raises(hm.HimatchError, match=message):
            hm.load("halfcheetah-cdt", device=name)
    assert not list(tmp_path.iterdir())


def test_a_benchmark_on_an_unknown_device_is_refused_before_data_is_made(tmp_path: Path, run: Run) -> None:
    assert_refused(run("benchmark", "xvel", "--out", tmp_path / "out", "--device", "gpu"), "unknown device 'gpu'")
    assert not list(tmp_path.iterdir())
