"""The training step: sample, forward, backward, clip, update.

A step is a function of parameters and a batch. Everything it needs (draws, learning rates) is laid out on the device
for a chunk of steps beforehand and everything it reports (losses) is left there, so that nothing waits for the host.
On a CPU it runs as written; how it runs on a GPU is decided in :mod:`himatch._runtime.graphs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from himatch._runtime.flat import FlatParameters, clip_per_model, load_optimizer
from himatch._runtime.graphs import CompiledPart, Undo, make_step, restore_point
from himatch._runtime.products import wide_products
from himatch._runtime.shapes import Float, shaped
from himatch.methods.base import Agent, Stage
from himatch.methods.batch import Batch
from himatch.training.config import TrainConfig
from himatch.training.draws import CHUNK
from himatch.training.sampler import Sampler


class Update:
    """Updates K stacked models, or the part of them that a stage trains. ``step`` is the number of steps done."""

    def __init__(
        self,
        agent: Agent,
        sampler: Sampler,
        stage: Stage,
        config: TrainConfig,
        device: torch.device,
        *,
        compiled: bool = True,
        drawn: int = 0,
    ) -> None:
        if stage.part is not None:
            config = replace(config, steps=stage.steps, batch_size=stage.batch_size, warmup=0)
        self.agent, self.sampler, self.stage, self.config, self.device = agent, sampler, stage, config, device
        self.step = 0
        self._drawn = drawn  # chunks of draws that the weights have seen in another run
        self.seeds = agent.seeds
        on_gpu = device.type == "cuda"
        trained = "" if stage.part is None else f"{stage.part}."
        named = [(n, p) for n, p in agent.named_parameters() if p.requires_grad and n.startswith(trained)]
        self.flat = FlatParameters(named, agent.precision if on_gpu else torch.float32)
        self.flat.master.grad = torch.zeros_like(self.flat.master)
        self._rate = torch.zeros((), device=device) if on_gpu else 0.0
        compiled = compiled and on_gpu
        # Compiled, the plain update becomes one kernel over everything; else PyTorch's own fused one is best.
        how: dict[str, Any] = {"foreach": True} if compiled else {"fused": True}
        self.optimizer = torch.optim.AdamW(
            [self.flat.master], lr=self._rate, weight_decay=config.weight_decay, capturable=on_gpu, **how
        )
        self._rates = torch.zeros(CHUNK, device=device)
        self._reported = torch.zeros(CHUNK, len(self.seeds), device=device)
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        self._losses = CompiledPart(self.losses) if compiled else self.losses
        self._apply = CompiledPart(self._clip_and_update) if compiled else self._clip_and_update
        parts = [part for part in (self._losses, self._apply) if isinstance(part, CompiledPart)]
        self._run_step = make_step(self._one_step, device, snapshot=self._undo_point, parts=parts, purpose="training")

    @property
    def how(self) -> str:
        """How a step runs: eager, compiled, CUDA graph or compiled CUDA graph."""
        return str(getattr(self._run_step, "how", "eager"))

    @shaped
    def losses(self, batch: Batch) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"]]:
        """What is minimised and what is reported, of each model."""
        if self.stage.part is None:
            return self.agent.training_losses(batch)
        found = self.agent.part_losses(self.stage.part, batch)
        return found, found

    def run(self, until: int) -> Iterator[Tensor]:
        """Train up to step ``until``; after every step (a GPU: every chunk) yields the losses since the last yield."""
        self.agent.train()
        while self.step < until:
            chunk, first = divmod(self.step, CHUNK)
            stop = min(CHUNK, first + until - self.step)
            self._begin(chunk, first)
            for place in range(first, stop):
                self.sampler.fetch(place)
                with wide_products():
                    self._run_step()
                self.step += 1
                if self.device.type == "cpu":
                    yield self._reported[place : place + 1].clone()
            if self.device.type != "cpu":
                yield self._reported[first:stop].cpu()

    def _begin(self, chunk: int, first: int) -> None:
        """Lay out a chunk's draws and learning rates on the device."""
        stage, sampling = self.stage, self.config.sampling
        number = self._drawn + chunk
        self.sampler.begin(
            self.sampler.draw(self.seeds, number, stage.batch_size, stage.context_steps, sampling), chunk
        )
        self._rates.copy_(torch.tensor([self.config.rate(chunk * CHUNK + i) for i in range(CHUNK)]))
        self._place.fill_(first)

    def _one_step(self) -> None:
        minimised, reported = self._losses(self.sampler.batch(self._place.view(1)))
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
        """Everything that training changes, as tensors: weights, optimiser, frozen parts, random state."""
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
        """Take over a snapshot; buffers that a CUDA graph refers to are filled, not replaced."""
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

    def _undo_point(self) -> Undo:
        """What undoes the steps that are tried out before capturing."""
        saved, place = self.snapshot(), restore_point(self._place)

        def undo() -> None:
            self.restore(saved)
            place()

        return undo
