"""All trainable numbers of an agent in one (K, P) buffer, so that clipping and the optimiser are a few kernels."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, shaped

ALIGNMENT = 64


class FlatParameters:
    """Master copy in single precision; the modules' parameters become views of a working copy in ``dtype``.

    In single precision both are the same memory.
    """

    def __init__(self, named: Iterable[tuple[str, nn.Parameter]], dtype: torch.dtype) -> None:
        # Odd sizes go last and the end is padded, so that every matrix starts where fast kernels want it.
        ordered = sorted(named, key=lambda item: item[1][0].numel() % ALIGNMENT != 0)
        self.names = [name for name, _ in ordered]
        self.parameters = [parameter for _, parameter in ordered]
        stack = len(self.parameters[0])
        self.shapes = [p.shape for p in self.parameters]
        self.sizes = [p.numel() // stack for p in self.parameters]
        self.padding = -sum(self.sizes) % ALIGNMENT
        device = self.parameters[0].device
        self.master = torch.zeros(stack, sum(self.sizes) + self.padding, device=device)
        self.working = self.master if dtype == torch.float32 else torch.empty_like(self.master, dtype=dtype)
        with torch.no_grad():
            for view, parameter in zip(self.views(self.master), self.parameters, strict=True):
                view.copy_(parameter)
            for view, parameter in zip(self.views(self.working), self.parameters, strict=True):
                parameter.data = view
        self.publish()

    @shaped
    def views(self, flat: Float[Tensor, "K P"]) -> list[Tensor]:
        """The tensor cut into the parameters' shapes, without copying."""
        parts = torch.split(flat, [*self.sizes, self.padding], dim=1)
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=False)]

    def publish(self) -> None:
        """Bring the working copy up to date with the master."""
        if self.working is not self.master:
            self.working.copy_(self.master)

    @shaped
    def load(self, flat: Float[Tensor, "K P"]) -> None:
        """Take over other values."""
        with torch.no_grad():
            self.master.copy_(flat)
            self.publish()

    def release(self) -> None:
        """Give the parameters memory of their own again, in the working precision."""
        for view, parameter in zip(self.views(self.working), self.parameters, strict=True):
            parameter.data = view.clone()

    @shaped
    def gradient(self, gradients: tuple[Float[Tensor, "K ..."], ...]) -> Float[Tensor, "K P"]:
        """The parameters' gradients as one tensor in single precision."""
        stack = len(self.master)
        padding = torch.zeros(stack, self.padding, device=self.master.device, dtype=gradients[0].dtype)
        return torch.cat([*(g.reshape(stack, -1) for g in gradients), padding], dim=1).float()

    def state(self, flat: Tensor, model: int) -> dict[str, Tensor]:
        """One model's numbers by parameter name, without the stack axis."""
        views = self.views(flat.detach())
        return {name: view[model].cpu().clone() for name, view in zip(self.names, views, strict=True)}


@shaped
def clip_per_model(gradient: Float[Tensor, "K P"], limit: float) -> Float[Tensor, "K P"]:
    """Scale every row of a gradient to a norm of at most ``limit``, each model by itself, in place."""
    norm = gradient.norm(dim=1, keepdim=True)
    return gradient.mul_((limit / (norm + 1e-6)).clamp(max=1.0))


def load_optimizer(optimizer: torch.optim.Optimizer, numbers: Tensor, stored: dict[str, Tensor]) -> None:
    """Take over an optimiser's state of ``numbers``; tensors that a recorded graph refers to are filled, not replaced.

    What is not stored was zero: the optimiser had not begun.
    """
    kept = optimizer.state[numbers]
    for name, value in kept.items():
        value.copy_(stored[name]) if name in stored else value.zero_()
    for name, value in stored.items():
        if name not in kept:
            kept[name] = value.to(numbers.device, copy=True)
