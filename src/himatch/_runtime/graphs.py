"""How a step runs: eager on a CPU; on a GPU compiled and captured in one CUDA graph, as far as the machine can.

A step is a function without arguments. What changes from one call to the next lies in tensors that keep their place in
memory, so that the captured kernels read it there; a Python number would be frozen into the graph.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor

from himatch.errors import note, one_line

P = ParamSpec("P")
T = TypeVar("T")
Undo = Callable[[], None]

TRIALS = 3  # runs before capturing, in which libraries and optimisers set themselves up


class CompiledPart(Generic[P, T]):
    """A function within a step that runs compiled where that is possible."""

    def __init__(self, function: Callable[P, T]) -> None:
        self.plain = self._runs = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Whichever it is."""
        return self._runs(*args, **kwargs)

    def compile(self) -> None:
        """Compile at the next call."""
        self._runs = torch.compile(self.plain, dynamic=False)

    def revert(self) -> None:
        """Run as it is."""
        self._runs = self.plain


def make_step(
    step: Callable[[], T],
    device: torch.device,
    *,
    snapshot: Callable[[], Undo],
    parts: Sequence[CompiledPart[..., Any]] = (),
    purpose: str,
) -> Callable[[], T]:
    """The step itself on a CPU; on a GPU one that is compiled and captured in a CUDA graph (:class:`GraphedStep`)."""
    if device.type != "cuda":
        return step
    return GraphedStep(step, device, snapshot=snapshot, parts=parts, purpose=purpose)


class GraphedStep(Generic[T]):
    """A step that on a GPU is compiled and captured at its first call and replayed from then on.

    What a machine cannot do is left out with a warning. A result is a tensor of the graph, which the next call
    overwrites.

    Parameters
    ----------
    step
        What runs. On a GPU it is dropped once it is captured.
    snapshot
        Called before trial runs; what it returns undoes them, in place. Random states are put back in any case.
    parts
        Which of the step's functions to compile.
    purpose
        For warnings: who has to do without.
    """

    def __init__(
        self,
        step: Callable[[], T],
        device: torch.device,
        *,
        snapshot: Callable[[], Undo],
        parts: Sequence[CompiledPart[..., Any]] = (),
        purpose: str,
    ) -> None:
        self._run, self._device, self._parts, self._purpose = step, device, parts, purpose
        self._snapshot: Callable[[], Undo] | None = snapshot
        self._compiled = self._replayed = False

    @property
    def how(self) -> str:
        """``eager``, ``compiled``, ``CUDA graph`` or ``compiled CUDA graph``."""
        words = ["compiled"] * self._compiled + ["CUDA graph"] * self._replayed
        return " ".join(words) or "eager"

    def __call__(self) -> T:
        """One step."""
        if self._snapshot is not None:
            snapshot, self._snapshot = self._snapshot, None
            # Tensors made in inference mode could not be written to outside of it.
            with torch.cuda.device(self._device), torch.inference_mode(False), _same_randomness(self._device):
                self._prepare(snapshot())
        return self._run()

    def _prepare(self, undo: Undo) -> None:
        try:
            if self._parts:
                self._compile(undo)
            self._capture(undo)
        finally:
            undo()

    def _compile(self, undo: Undo) -> None:
        logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # it warns of what it may safely ignore
        try:
            # It keeps eight versions of a function and leaves a ninth uncompiled, such as a later training's in this
            # process. Whatever was captured before needs them no more.
            torch._dynamo.reset()
            for part in self._parts:
                part.compile()
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "TensorFloat32")  # single precision is meant where it is used
                warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\._inductor")  # its own affair
                self._try_out(undo)
            self._compiled = True
        except Exception as reason:  # whatever a compiler on a user's machine may say
            for part in self._parts:
                part.revert()
            undo()
            self._go_without("torch.compile", reason)

    def _capture(self, undo: Undo) -> None:
        try:
            self._try_out(undo)
            graph = torch.cuda.CUDAGraph()
            # Other threads may go on preparing data meanwhile.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                result = self._run()
        except Exception as reason:
            torch.cuda.synchronize()
            self._go_without("CUDA graph", reason)
            return

        def replay() -> T:
            graph.replay()
            return result

        self._run, self._replayed = replay, True

    def _try_out(self, undo: Undo) -> None:
        """Run a few times, each from where the first began, on a stream of its own, as capturing wants it."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(side):
                for _ in range(TRIALS):
                    self._run()
                    undo()
        finally:
            torch.cuda.current_stream().wait_stream(side)

    def _go_without(self, what: str, reason: Exception) -> None:
        note(f"no {what} for {self._purpose} here, going on without it ({one_line(reason)})")


def fused(x: Tensor) -> bool:
    """Whether what follows from ``x`` is being compiled for a GPU: many small operations then cost what one does."""
    return x.is_cuda and torch.compiler.is_compiling()


def restore_point(*tensors: Tensor) -> Undo:
    """What brings these tensors back to their present values."""
    values = [tensor.clone() for tensor in tensors]

    def undo() -> None:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(value)

    return undo


@contextmanager
def _same_randomness(device: torch.device) -> Iterator[None]:
    """Random numbers go on as if nothing had been drawn inside."""
    here, there = torch.get_rng_state(), torch.cuda.get_rng_state(device)
    try:
        yield
    finally:
        torch.set_rng_state(here)
        torch.cuda.set_rng_state(there, device)
