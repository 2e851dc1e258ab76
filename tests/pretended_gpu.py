"""CUDA's streams, graphs and random state played on a CPU, for what is captured and replayed.

A pretended graph is a tape of the tensor operations that ran while it was captured; a replay runs them again on the
same tensors and puts results where they were. So, as on a GPU, whatever Python decided or computed is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from himatch._runtime.graphs import CompiledPart, GraphedStep
from himatch.training.update import Update

GPU = torch.device("cuda")


class PretendedGraph:
    """Stands in for ``torch.cuda.CUDAGraph``."""

    def __init__(self) -> None:
        self.tape: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    @torch.no_grad()
    def replay(self) -> None:
        for operation, args, kwargs, results in self.tape:
            again = operation(*args, **kwargs)
            for was, now in zip(tree_leaves(results), tree_leaves(again), strict=True):
                if isinstance(was, Tensor) and was is not now:
                    was.copy_(now)


class _Tape(TorchDispatchMode):
    def __init__(self, graph: PretendedGraph) -> None:
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.graph.tape.append((func, args, kwargs or {}, found))
        return found


class PretendedGPU:
    """What happened, in order, in ``events``; ``compile_fails`` and ``record_fails`` are messages to fail with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, compile_fails: str = "", record_fails: str = "") -> None:
        self.events: list[str] = []
        self.compile_fails, self.record_fails = compile_fails, record_fails
        self.random = torch.zeros(1)
        self._stream = "main"
        stand_ins = {
            "device": nullcontext,
            "Stream": lambda: _Stream(self, "side"),
            "current_stream": lambda: _Stream(self, self._stream),
            "stream": self._on,
            "CUDAGraph": PretendedGraph,
            "graph": self._capturing,
            "synchronize": lambda: self.events.append("synchronize"),
            "get_rng_state": lambda device: self.random.clone(),
            "set_rng_state": lambda state, device: self.random.copy_(state),
        }
        for name, stand_in in stand_ins.items():
            monkeypatch.setattr(torch.cuda, name, stand_in)
        monkeypatch.setattr(torch, "compile", self._compile)

    def _compile(self, function: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
        assert dynamic is False

        def compiled(*args: Any) -> Any:
            if self.compile_fails:
                raise RuntimeError(self.compile_fails)
            self.events.append("compiled")
            return function(*args)

        return compiled

    @contextmanager
    def _on(self, stream: _Stream) -> Iterator[None]:
        self._stream = stream.name
        yield
        self._stream = "main"

    @contextmanager
    def _capturing(self, graph: PretendedGraph, capture_error_mode: str) -> Iterator[None]:
        self.events.append("capturing")
        if self.record_fails:
            yield
            raise RuntimeError(self.record_fails)
        with _Tape(graph):
            yield
        self.events.append("captured")


def capture(update: Update) -> None:
    """From its next step on, an update that was made for a CPU is compiled and captured as one for a GPU is."""
    parts = update._losses, update._apply = CompiledPart(update.losses), CompiledPart(update._clip_and_update)
    update._run_step = GraphedStep(update._one_step, GPU, snapshot=update._undo_point, parts=parts, purpose="training")


class _Stream:
    def __init__(self, gpu: PretendedGPU, name: str) -> None:
        self.gpu, self.name = gpu, name

    def wait_stream(self, other: _Stream) -> None:
        self.gpu.events.append(f"{self.name} waits for {other.name}")
