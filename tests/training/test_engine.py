from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pretended_gpu import GPU, PretendedGPU

import himatch as hm
from himatch._runtime.flat import FlatParameters, clip_per_model
from himatch._runtime.graphs import GraphedStep
from himatch.methods.agent import Widths
from himatch.methods.making import make_agent
from himatch.methods.normalizers import Normalizers
from himatch.training.config import PRESETS, TrainConfig, configure
from himatch.training.engine import Engine, learning_rate
from himatch.training.windows import Shape, make_windows

CPU = torch.device("cpu")
TINY = {"context": 3, "layers": 1, "width": 16, "heads": 1, "dropout": 0.0, "batch_size": 8, "clip": 0.05}


def engine(data: hm.TrajectoryDataset, seeds: tuple[int, ...], **changes: object) -> Engine:
    config = configure("cpu", **{**TINY, "steps": 40, **changes})
    method = hm.CDT("x_velocity")
    statistic = method.statistic(data.task).fit(data)
    z = statistic.relabel(data)
    normalizers = Normalizers.fit(data, z)
    agent = make_agent(method, config.model, Widths(11, 3, 31, 1000), seeds)
    return Engine(agent, make_windows(data, z, Shape(config.model.context), normalizers, CPU), config.train, CPU)


def test_stacked_seeds_reproduce_single_runs(hopper: hm.TrajectoryDataset) -> None:
    """Same initial weights, same batches, dropout off: the same losses and the same weights."""
    stacked = engine(hopper, (4, 0, 7))
    together = torch.cat(list(stacked.run(25)))
    for model, seed in enumerate((4, 0, 7)):
        single = engine(hopper, (seed,))
        torch.testing.assert_close(torch.cat(list(single.run(25)))[:, 0], together[:, model], atol=1e-5, rtol=1e-4)
        for name, tensor in single.flat.state(single.flat.master, 0).items():
            torch.testing.assert_close(
                stacked.flat.state(stacked.flat.master, model)[name], tensor, atol=1e-5, rtol=1e-3
            )


def test_a_step_is_pytorchs_clipped_adamw(hopper: hm.TrajectoryDataset) -> None:
    """The flat update against torch's own clip_grad_norm_ and AdamW on the separate parameters."""
    ours, theirs = engine(hopper, (0,)), engine(hopper, (0,))
    config, parameters = theirs.config, [p.detach().clone().requires_grad_() for p in theirs.flat.parameters]
    optimizer = torch.optim.AdamW(parameters, lr=1.0, weight_decay=config.weight_decay)
    for step, _ in enumerate(ours.run(6)):
        draws = theirs._prepare(0, step)
        batch = theirs.windows.batch(torch.from_numpy(draws.window[step]), torch.from_numpy(draws.ahead[step]))  # type: ignore[union-attr]
        with torch.no_grad():
            for mine, parameter in zip(parameters, theirs.flat.parameters, strict=True):
                parameter.copy_(mine)
        loss, _ = theirs.agent.training_losses(batch)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss.sum(), theirs.flat.parameters), strict=True
        ):
            parameter.grad = gradient
        torch.nn.utils.clip_grad_norm_(parameters, config.clip)
        optimizer.param_groups[0]["lr"] = learning_rate(config, step)
        optimizer.step()
    for mine, parameter in zip(parameters, ours.flat.parameters, strict=True):
        torch.testing.assert_close(parameter, mine, atol=1e-6, rtol=1e-4)


def test_clipping_is_per_model() -> None:
    gradient = torch.tensor([[3.0, 4.0], [0.03, 0.04]])
    clipped = clip_per_model(gradient.clone(), 0.25)
    torch.testing.assert_close(clipped[0], gradient[0] / 5 * 0.25, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(clipped[1], gradient[1])


def test_resuming_at_any_step_is_the_same_run(hopper: hm.TrajectoryDataset) -> None:
    whole = engine(hopper, (0, 1), dropout=0.2)
    torch.manual_seed(5)
    list(whole.run(30))
    first = engine(hopper, (0, 1), dropout=0.2)
    torch.manual_seed(5)
    list(first.run(13))
    state = {name: tensor.clone() for name, tensor in first.snapshot().items()}
    second = engine(hopper, (0, 1), dropout=0.2)
    second.restore(state)
    second.step = 13
    list(second.run(30))
    assert torch.equal(second.flat.master, whole.flat.master)


@pytest.mark.parametrize("fails", ["", "no graphs on this machine"])
@pytest.mark.filterwarnings("ignore:no CUDA graph for training here")
def test_recording_and_going_without_leave_training_as_it_is(
    fails: str, hopper: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a fresh start and in mid-run, dropout included: the bits of a run that was never recorded."""
    settings: dict[str, object] = {"dropout": 0.2, "schedule": "constant", "warmup": 0}
    plain, recorded = engine(hopper, (0, 1), **settings), engine(hopper, (0, 1), **settings)
    torch.manual_seed(5)
    expected = torch.cat(list(plain.run(12)))
    gpu = PretendedGPU(monkeypatch, record_fails=fails)
    parts, losses = (recorded._losses, recorded._apply), []
    torch.manual_seed(5)
    for until in (5, 12):
        recorded._train = GraphedStep(
            recorded._one_step, GPU, snapshot=recorded._snapshot, parts=parts, purpose="training"
        )
        losses += list(recorded.run(until))
        assert recorded.how == ("compiled" if fails else "compiled CUDA graph")
    assert gpu.events.count("recording") == 2
    assert torch.equal(torch.cat(losses), expected)
    assert torch.equal(recorded.flat.master, plain.flat.master)


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
    paper = PRESETS["paper"].train
    assert learning_rate(paper, 0) == pytest.approx(1e-9)
    assert learning_rate(paper, 49_999) == pytest.approx(5e-5)
    assert learning_rate(paper, 900_000) == 1e-4
    cosine = TrainConfig(steps=110, warmup=10, learning_rate=1.0, schedule="cosine")
    assert learning_rate(cosine, 60) == pytest.approx(0.5)
    assert learning_rate(cosine, 109) == pytest.approx(0.5 * (1 + math.cos(math.pi * 0.99)))


def test_presets_and_overrides() -> None:
    table = PRESETS["paper"]
    assert (table.model.layers, table.model.heads, table.model.width, table.model.context) == (3, 1, 128, 20)
    assert (table.train.batch_size, table.train.steps, table.train.warmup, table.train.clip) == (64, 10**6, 10**5, 0.25)
    changed = configure("paper", steps=1000, width=32, learning_rate=None)
    assert (changed.train.steps, changed.train.warmup, changed.model.width) == (1000, 100, 32)
    assert changed.train.learning_rate == 1e-4
    for bad in ({"widht": 3}, {"steps": 0}, {"learning_rate": -1.0}, {"schedule": "linear"}, {"warmup": -1}):
        with pytest.raises(hm.HimatchError, match=next(iter(bad))):
            configure("fast", **bad)
    with pytest.raises(hm.HimatchError, match="unknown preset 'quick'"):
        configure("quick")


def test_learning_rates_reach_the_optimizer(hopper: hm.TrajectoryDataset) -> None:
    made = engine(hopper, (0,), steps=10)
    seen = []
    for _ in made.run(4):
        seen.append(made.optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(seen, [learning_rate(made.config, step) for step in range(4)], rtol=1e-6)
