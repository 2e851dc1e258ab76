"""How a step is prepared for a GPU, in which order, and what it falls back to; the GPU itself is pretended."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable

import pytest
import torch
from pretended_gpu import GPU, PretendedGPU
from torch import Tensor

from himatch._runtime.graphs import TRIALS, CompiledPart, GraphedStep, Undo, make_step, restore_point
from himatch.errors import HimatchWarning


class Counter:
    """A step that counts in a tensor, draws a number and returns three times its input."""

    def __init__(self, gpu: PretendedGPU | None = None) -> None:
        self.gpu = gpu
        self.input, self.count, self.drawn = torch.ones(2), torch.zeros(()), torch.zeros(3)
        self.triple = CompiledPart(self._triple)

    def _triple(self, x: Tensor) -> Tensor:
        return 3.0 * x

    def step(self) -> Tensor:
        if self.gpu is not None:
            self.gpu.events.append("step")
            self.gpu.random += 1.0
        self.count += 1.0
        self.drawn.uniform_()
        return self.triple(self.input)

    def snapshot(self) -> Undo:
        return restore_point(self.count)

    def graphed(self, compiled: bool = True) -> GraphedStep[Tensor]:
        parts = (self.triple,) if compiled else ()
        step = make_step(self.step, GPU, snapshot=self.snapshot, parts=parts, purpose="tests")
        assert isinstance(step, GraphedStep)
        return step


def expected(calls: int) -> tuple[list[Tensor], Tensor]:
    """What the plain step draws and counts."""
    torch.manual_seed(7)
    plain, drawn = Counter(), []
    for _ in range(calls):
        plain.step()
        drawn.append(plain.drawn.clone())
    return drawn, plain.count


def check(counter: Counter, step: Callable[[], Tensor]) -> None:
    """Four calls do what four plain steps do, with the random numbers of those."""
    drawn, count = expected(4)
    torch.manual_seed(7)
    for call in range(4):
        counter.input.fill_(float(call))
        assert step().tolist() == [3.0 * call] * 2
        assert torch.equal(counter.drawn, drawn[call])
    assert counter.count.equal(count)


def test_on_a_cpu_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", None)
    counter, snapshots = Counter(), []

    def snapshot() -> Undo:
        snapshots.append(counter.snapshot())
        return snapshots[-1]

    step = make_step(counter.step, torch.device("cpu"), snapshot=snapshot, parts=(counter.triple,), purpose="tests")
    check(counter, step)
    assert step == counter.step  # nothing around it
    assert not snapshots


@pytest.mark.parametrize("compiled", [True, False])
def test_order_and_replay(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = PretendedGPU(monkeypatch)
    counter = Counter(gpu)
    step = counter.graphed(compiled)
    assert step.how == "eager"
    check(counter, step)
    assert step.how == ("compiled CUDA graph" if compiled else "CUDA graph")
    once = ["step", "compiled"] if compiled else ["step"]
    tried = ["side waits for main", *once * TRIALS, "main waits for side"]
    assert gpu.events == [*tried * (2 if compiled else 1), "capturing", *once, "captured"]  # then replays alone
    assert gpu.random.item() == 4.0  # drawn from by the four steps and by nothing before


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = PretendedGPU(monkeypatch, compile_fails="no gcc\nlong trace")
    counter = Counter(gpu)
    step = counter.graphed()
    with pytest.warns(HimatchWarning, match=r"^no torch.compile for tests here, going on .* \(RuntimeError: no gcc\)$"):
        check(counter, step)
    assert step.how == "CUDA graph"
    assert "compiled" not in gpu.events


def test_without_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = PretendedGPU(monkeypatch, record_fails="operation not permitted")
    counter = Counter(gpu)
    step = counter.graphed()
    with pytest.warns(HimatchWarning, match=r"^no CUDA graph for tests here.*operation not permitted"):
        check(counter, step)
    assert step.how == "compiled"
    assert gpu.events.count("capturing") == 1  # it is not tried again
    assert "synchronize" in gpu.events
    assert gpu.random.item() == 4.0


def test_without_either(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = PretendedGPU(monkeypatch, compile_fails="no gcc", record_fails="no")
    counter = Counter(gpu)
    step = counter.graphed()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check(counter, step)
    assert len(said) == 2
    assert step.how == "eager"


def test_a_mistake_in_the_step_is_the_users_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    PretendedGPU(monkeypatch)

    def wrong() -> None:
        raise ValueError("three is not five")

    step = GraphedStep(wrong, GPU, snapshot=restore_point, purpose="tests")
    with pytest.warns(HimatchWarning, match="three is not five"), pytest.raises(ValueError, match="three is not five"):
        step()


def test_inference_mode_leaves_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captured inside, replayed and written to outside."""
    PretendedGPU(monkeypatch)
    counter = Counter()
    step = counter.graphed(compiled=False)
    with torch.inference_mode():
        result = step()
    assert not result.is_inference()
    step().add_(1.0)


def test_a_graph_lets_go_of_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else graphs, with all their memory on the GPU, would pile up until the garbage is collected."""
    PretendedGPU(monkeypatch)

    class Owner:
        def __init__(self) -> None:
            self.count = torch.zeros(())
            self.graphed = GraphedStep(self.step, GPU, snapshot=lambda: restore_point(self.count), purpose="tests")

        def step(self) -> Tensor:
            return self.count.add_(1.0)

    owner = Owner()
    assert owner.graphed().item() == 1.0
    alive = weakref.ref(owner)
    gc.disable()
    try:
        del owner
        assert alive() is None
    finally:
        gc.enable()


def test_every_training_of_a_process_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch keeps eight versions of a function; what was compiled for another training must not use them up."""
    versions: list[int] = []
    compile_for_real = torch.compile

    def counting(model: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        versions.append(1)
        return model

    PretendedGPU(monkeypatch)
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: compile_for_real(function, backend=counting))
    for width in range(10):
        counter = Counter()
        counter.input = torch.ones(2, width + 2)
        counter.graphed()()
    assert len(versions) == 10
