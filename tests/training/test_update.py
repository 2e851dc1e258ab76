from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pretended_gpu import PretendedGPU, capture

import himatch as hm
from himatch._runtime.flat import FlatParameters, clip_per_model
from himatch.methods.base import Stage
from himatch.methods.batch import BatchSpec, Dims
from himatch.methods.normalizers import Normalizers
from himatch.training.config import TrainConfig, configure
from himatch.training.sampler import DeviceSampler, make_sampler
from himatch.training.update import Update

CPU = torch.device("cpu")
TINY = {"context": 3, "layers": 1, "width": 16, "heads": 1, "dropout": 0.0, "batch_size": 8, "clip": 0.05}


def make_update(data: hm.TrajectoryDataset, seeds: tuple[int, ...], **changes: object) -> Update:
    method = hm.CDT("x_velocity")
    model, config = configure("cpu", method, **{**TINY, "steps": 40, **changes})
    statistic = method.statistic(data.task).fit(data)
    z = statistic.relabel(data)
    agent = method.build(model, Dims(11, 3, 31, 1000), seeds)
    sampler = make_sampler(data, z, BatchSpec(model.context), Normalizers.fit(data), CPU)
    return Update(agent, sampler, Stage(None, config.steps, config.batch_size), config, CPU)


def test_stacked_seeds_reproduce_single_runs(hopper: hm.TrajectoryDataset) -> None:
    """Same initial weights, same batches, dropout off: the same losses and the same weights."""
    stacked = make_update(hopper, (4, 0, 7))
    together = torch.cat(list(stacked.run(25)))
    for model, seed in enumerate((4, 0, 7)):
        single = make_update(hopper, (seed,))
        torch.testing.assert_close(torch.cat(list(single.run(25)))[:, 0], together[:, model], atol=1e-5, rtol=1e-4)
        for name, tensor in single.flat.state(single.flat.master, 0).items():
            torch.testing.assert_close(
                stacked.flat.state(stacked.flat.master, model)[name], tensor, atol=1e-5, rtol=1e-3
            )


def test_a_step_is_pytorchs_clipped_adamw(hopper: hm.TrajectoryDataset) -> None:
    """The flat update against torch's own clip_grad_norm_ and AdamW on the separate parameters."""
    ours, theirs = make_update(hopper, (0,)), make_update(hopper, (0,))
    config, parameters = theirs.config, [p.detach().clone().requires_grad_() for p in theirs.flat.parameters]
    optimizer = torch.optim.AdamW(parameters, lr=1.0, weight_decay=config.weight_decay)
    for step, _ in enumerate(ours.run(6)):
        draws = theirs.sampler.draw(theirs.seeds, 0, theirs.stage.batch_size)
        assert isinstance(theirs.sampler, DeviceSampler)
        batch = theirs.sampler.gather(torch.from_numpy(draws.window[step]), torch.from_numpy(draws.ahead[step]))
        with torch.no_grad():
            for mine, parameter in zip(parameters, theirs.flat.parameters, strict=True):
                parameter.copy_(mine)
        loss, _ = theirs.agent.training_losses(batch)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss.sum(), theirs.flat.parameters), strict=True
        ):
            parameter.grad = gradient
        torch.nn.utils.clip_grad_norm_(parameters, config.clip)
        optimizer.param_groups[0]["lr"] = config.rate(step)
        optimizer.step()
    for mine, parameter in zip(parameters, ours.flat.parameters, strict=True):
        torch.testing.assert_close(parameter, mine, atol=1e-6, rtol=1e-4)


def test_clipping_is_per_model() -> None:
    gradient = torch.tensor([[3.0, 4.0], [0.03, 0.04]])
    clipped = clip_per_model(gradient.clone(), 0.25)
    torch.testing.assert_close(clipped[0], gradient[0] / 5 * 0.25, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(clipped[1], gradient[1])


def test_resuming_at_any_step_is_the_same_run(hopper: hm.TrajectoryDataset) -> None:
    whole = make_update(hopper, (0, 1), dropout=0.2)
    torch.manual_seed(5)
    list(whole.run(30))
    first = make_update(hopper, (0, 1), dropout=0.2)
    torch.manual_seed(5)
    list(first.run(13))
    state = {name: tensor.clone() for name, tensor in first.snapshot().items()}
    second = make_update(hopper, (0, 1), dropout=0.2)
    second.restore(state)
    second.step = 13
    list(second.run(30))
    assert torch.equal(second.flat.master, whole.flat.master)


@pytest.mark.parametrize("fails", ["", "no graphs on this machine"])
@pytest.mark.filterwarnings("ignore:no CUDA graph for training here")
def test_capturing_and_going_without_leave_training_as_it_is(
    fails: str, hopper: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a fresh start and in mid-run, dropout included: the bits of a run that was never captured."""
    settings: dict[str, object] = {"dropout": 0.2, "schedule": "constant", "warmup": 0}
    plain, captured = make_update(hopper, (0, 1), **settings), make_update(hopper, (0, 1), **settings)
    torch.manual_seed(5)
    expected = torch.cat(list(plain.run(12)))
    gpu = PretendedGPU(monkeypatch, record_fails=fails)
    losses: list[torch.Tensor] = []
    torch.manual_seed(5)
    for until in (5, 12):
        capture(captured)
        losses += list(captured.run(until))
        assert captured.how == ("compiled" if fails else "compiled CUDA graph")
    assert gpu.events.count("capturing") == 2
    assert torch.equal(torch.cat(losses), expected)
    assert torch.equal(captured.flat.master, plain.flat.master)


def test_flat_parameters_are_views() -> None:
    module = torch.nn.ParameterDict({"a": torch.randn(2, 3, 64), "b": torch.randn(2, 5), "c": torch.randn(2, 4)})
    before = {name: tensor.clone() for name, tensor in module.items()}
    flat = FlatParameters(module.named_parameters(), torch.float32)
    for name, tensor in before.items():
        assert torch.equal(module[name], tensor)
        assert torch.equal(flat.state(flat.master, 1)[name], tensor[1])
    with torch.no_grad():
        flat.master += 1.0
    assert torch.equal(module["a"], before["a"] + 1.0)
    assert flat.master.shape[1] % 64 == 0


def test_schedules() -> None:
    _, paper = configure("paper", hm.DT())
    assert paper.rate(0) == pytest.approx(1e-9)
    assert paper.rate(49_999) == pytest.approx(5e-5)
    assert paper.rate(900_000) == 1e-4
    cosine = TrainConfig(steps=110, warmup=10, learning_rate=1.0, schedule="cosine")
    assert cosine.rate(60) == pytest.approx(0.5)
    assert cosine.rate(109) == pytest.approx(0.5 * (1 + math.cos(math.pi * 0.99)))
    linear = TrainConfig(steps=110, warmup=10, learning_rate=1.0, schedule="linear")
    assert [linear.rate(step) for step in (4, 10, 35, 109)] == pytest.approx([0.5, 1.0, 0.75, 0.01])


def test_presets_and_overrides() -> None:
    model, train = configure("paper", hm.DT())
    assert (model.layers, model.heads, model.width, model.context) == (3, 1, 128, 20)
    assert (train.batch_size, train.steps, train.warmup, train.clip) == (64, 10**6, 10**5, 0.25)
    changed, shorter = configure("paper", hm.DT(), steps=1000, width=32, learning_rate=None)
    assert (shorter.steps, shorter.warmup, changed.width) == (1000, 100, 32)
    assert shorter.learning_rate == 1e-4
    for bad in ({"widht": 3}, {"steps": 0}, {"learning_rate": -1.0}, {"schedule": "falling"}, {"warmup": -1}):
        with pytest.raises(hm.HimatchError, match=next(iter(bad))):
            configure("fast", hm.DT(), **bad)
    with pytest.raises(hm.HimatchError, match="unknown preset 'quick'"):
        configure("quick", hm.DT())


def test_learning_rates_reach_the_optimizer(hopper: hm.TrajectoryDataset) -> None:
    made = make_update(hopper, (0,), steps=10)
    seen = []
    for _ in made.run(4):
        seen.append(made.optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(seen, [made.config.rate(step) for step in range(4)], rtol=1e-6)
