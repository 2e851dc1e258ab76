"""The training step and how it runs: eager on a CPU; compiled, in bf16 and in one CUDA graph on a GPU.

A step is a function of parameters and a batch. Everything it needs (draws, learning rates) is laid out on the device
for a chunk of steps beforehand and everything it reports (losses) is left there, so that nothing waits for the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from himatch._runtime.flat import FlatParameters, clip_per_model, load_optimizer
from himatch._runtime.graphs import Part, Recorded, Undo, remembered
from himatch.methods.agent import Agent, Batch
from himatch.training.config import TrainConfig
from himatch.training.draws import CHUNK, Draws
from himatch.training.windows import DeviceWindows, Prefetch, StreamedWindows

Losses = Callable[[Batch], tuple[Tensor, Tensor]]
Drawing = Callable[[tuple[int, ...], int, int], Draws]


def learning_rate(config: TrainConfig, step: int) -> float:
    """The rate of a step: linear warm-up, then constant or a cosine to zero."""
    warm = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    if config.schedule == "constant" or step < config.warmup:
        return config.learning_rate * warm
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))


class Engine:
    """Trains K stacked models on windows. ``step`` is the number of steps done.

    Parameters
    ----------
    losses
        From a batch, what is minimised and what is reported, ``(K,)`` each.
    drawing
        Gives the draws of a chunk for seeds and a batch size; by default any windows, one by one.
    trainable
        Prefixes of the agent's parameters to train; the others stay as they are.
    """

    def __init__(
        self,
        agent: Agent,
        windows: DeviceWindows | StreamedWindows,
        config: TrainConfig,
        device: torch.device,
        *,
        losses: Losses | None = None,
        drawing: Drawing | None = None,
        trainable: tuple[str, ...] = ("",),
        compiled: bool = True,
    ) -> None:
        self.agent, self.windows, self.config, self.device = agent, windows, config, device
        self.step = 0
        self.seeds = agent.seeds
        self._losses = Part(losses or agent.training_losses)
        self._drawing = drawing or windows.draw
        self._apply = Part(self._clip_and_update)
        on_gpu = device.type == "cuda"
        named = [(n, p) for n, p in agent.named_parameters() if p.requires_grad and n.startswith(trainable)]
        self.flat = FlatParameters(named, agent.precision if on_gpu else torch.float32)
        self.flat.master.grad = torch.zeros_like(self.flat.master)
        self._rate = torch.zeros((), device=device) if on_gpu else 0.0
        compiled = compiled and on_gpu
        # Compiled, the plain update becomes one kernel over everything; else PyTorch's own fused one is best.
        how: dict[str, Any] = {"foreach": True} if compiled else {"fused": True}
        self.optimizer = torch.optim.AdamW(
            [self.flat.master], lr=self._rate, weight_decay=config.weight_decay, capturable=on_gpu, **how
        )
        self._drawn: list[Tensor] = []
        self._rates = torch.zeros(CHUNK, device=device)
        self._reported = torch.zeros(CHUNK, len(self.seeds), device=device)
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        self._batch: Batch | None = None  # where streamed batches land
        self._prefetch = Prefetch(windows) if isinstance(windows, StreamedWindows) else None
        parts = (self._losses, self._apply) if compiled else ()
        self._train = Recorded(self._one_step, device, remember=self._remember, parts=parts, purpose="training")

    @property
    def how(self) -> str:
        """How a step runs: eager, compiled, CUDA graph or compiled CUDA graph."""
        return self._train.how

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, until: int) -> Iterator[Tensor]:
        """Train up to step ``until``; after every step (a GPU: every chunk) yields the losses since the last yield."""
        self.agent.train()
        while self.step < until:
            chunk, first = divmod(self.step, CHUNK)
            stop = min(CHUNK, first + until - self.step)
            draws = self._prepare(chunk, first)
            for place in range(first, stop):
                self._feed(draws, chunk, place)
                self._train()
                self.step += 1
                if self.device.type == "cpu":
                    yield self._reported[place : place + 1].clone()
            if self.device.type != "cpu":
                yield self._reported[first:stop].cpu()

    def _prepare(self, chunk: int, first: int) -> Draws:
        """Lay out a chunk's draws and learning rates on the device."""
        draws = self._drawing(self.seeds, chunk, self.config.batch_size)
        if isinstance(self.windows, DeviceWindows):
            drawn = [torch.from_numpy(array) for array in draws if array is not None]
            self._drawn = self._drawn or [torch.empty_like(tensor, device=self.device) for tensor in drawn]
            for buffer, tensor in zip(self._drawn, drawn, strict=True):
                buffer.copy_(tensor)
        rates = [learning_rate(self.config, chunk * CHUNK + i) for i in range(CHUNK)]
        self._rates.copy_(torch.tensor(rates))
        self._place.fill_(first)
        return draws

    def _feed(self, draws: Draws, chunk: int, place: int) -> None:
        """Streamed data: copy this step's batch into the buffers that the step reads."""
        if self._prefetch is None:
            return
        gathered = self._prefetch.batch(draws, chunk, place)
        if self._batch is None:
            moved = [None if t is None else t.to(self.device, copy=True) for t in gathered]
            self._batch = Batch._make(moved)
            return
        for buffer, tensor in zip(self._batch, gathered, strict=True):
            if buffer is not None and tensor is not None:
                buffer.copy_(tensor, non_blocking=True)

    # -- one step -----------------------------------------------------------------------------------------------

    def _one_step(self) -> None:
        """Draw, forward, backward, clip, update."""
        if isinstance(self.windows, DeviceWindows):
            place = self._place.view(1)
            batch = self.windows.batch(*(drawn.index_select(0, place)[0] for drawn in self._drawn))
        else:
            assert self._batch is not None
            batch = self.windows.normalizers(self._batch)
        minimised, reported = self._losses(batch)
        gradients = torch.autograd.grad(minimised.sum(), self.flat.parameters)
        with torch.no_grad():
            self._set_rate()
            self._apply(gradients)
            self.agent.after_step()
            self._reported.index_copy_(0, self._place.view(1), reported.detach().unsqueeze(0))
            self._place.add_(1)

    def _set_rate(self) -> None:
        if isinstance(self._rate, Tensor):
            self._rate.copy_(self._rates.index_select(0, self._place.view(1))[0])
        else:
            for group in self.optimizer.param_groups:
                group["lr"] = float(self._rates[int(self._place)])

    @torch.no_grad()
    def _clip_and_update(self, gradients: tuple[Tensor, ...]) -> None:
        assert self.flat.master.grad is not None
        self.flat.master.grad.copy_(clip_per_model(self.flat.gradient(gradients), self.config.clip))
        self.optimizer.step()
        self.flat.publish()

    # -- state --------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Tensor]:
        """Everything that training changes, as tensors: weights, optimiser, fixed buffers, random state."""
        state = {"master": self.flat.master.detach().clone()}
        for name, value in self.optimizer.state.get(self.flat.master, {}).items():
            state[f"optimizer.{name}"] = torch.as_tensor(value).detach().clone()
        for name, parameter in self.agent.named_parameters():
            if name not in self.flat.names:
                state[f"other.{name}"] = parameter.detach().clone()
        state["random"] = torch.get_rng_state()
        if self.device.type == "cuda":
            state["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take over a snapshot; buffers that a recorded graph refers to are filled, not replaced."""
        self.flat.load(state["master"])
        stored = {n.removeprefix("optimizer."): t for n, t in state.items() if n.startswith("optimizer.")}
        load_optimizer(self.optimizer, self.flat.master, stored)
        parameters = dict(self.agent.named_parameters())
        with torch.no_grad():
            for name, value in state.items():
                if name.startswith("other."):
                    parameters[name.removeprefix("other.")].copy_(value)
        torch.set_rng_state(state["random"].cpu())
        if self.device.type == "cuda" and "random.cuda" in state:
            torch.cuda.set_rng_state(state["random.cuda"].cpu(), self.device)

    def _remember(self) -> Undo:
        """What undoes the steps that are tried out before recording."""
        saved, place = self.snapshot(), remembered(self._place)

        def undo() -> None:
            self.restore(saved)
            place()

        return undo
