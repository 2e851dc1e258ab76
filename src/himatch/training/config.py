"""How training is done: one configuration, three presets, overrides checked before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from himatch._runtime.settings import make_plain, whole
from himatch.errors import HimatchError
from himatch.methods import Method
from himatch.methods.baselines import TaskMethod
from himatch.networks.transformer import ModelConfig

Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True)
class TrainConfig:
    """Optimisation; the defaults are Table dt_hyper. After the warm-up the rate stays, or falls to zero as a cosine."""

    steps: int = 1_000_000
    """Gradient steps."""
    batch_size: int = 64
    """Windows in a step."""
    learning_rate: float = 1e-4
    """Highest learning rate."""
    schedule: Schedule = "constant"
    """The learning rate after the warm-up."""
    warmup: int = 100_000
    """Steps of linear warm-up; in proportion to the steps where only those are changed."""
    weight_decay: float = 1e-4
    """Weight decay of AdamW."""
    clip: float = 0.25
    """Largest gradient norm."""

    def __post_init__(self) -> None:
        make_plain(self)
        for name in ("steps", "batch_size"):
            if getattr(self, name) < 1:
                raise HimatchError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise HimatchError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("warmup", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise HimatchError(f"{name} cannot be negative, got {getattr(self, name)}")
        for name in ("learning_rate", "weight_decay"):  # clip = inf clips nothing
            if not math.isfinite(getattr(self, name)):
                raise HimatchError(f"{name} must be finite, got {getattr(self, name)}")
        if self.schedule not in ("constant", "cosine"):
            raise HimatchError(f"schedule must be constant or cosine, got {self.schedule!r}")


@dataclass(frozen=True)
class Preset:
    """A named pair of model and training configuration."""

    model: ModelConfig
    train: TrainConfig


PRESETS: dict[str, Preset] = {
    "paper": Preset(ModelConfig(), TrainConfig()),
    "fast": Preset(
        ModelConfig(context=5, dropout=0.0, tokens="pairs"),
        TrainConfig(steps=30_000, batch_size=256, warmup=500, learning_rate=1e-3, schedule="cosine"),
    ),
    "cpu": Preset(
        ModelConfig(context=5, layers=2, width=64, dropout=0.0, tokens="pairs"),
        TrainConfig(steps=6_000, batch_size=128, warmup=200, learning_rate=1e-3, schedule="cosine"),
    ),
}
"""``paper``: Table dt_hyper. ``fast``: its quality in about a minute of one GPU. ``cpu``: in minutes of two cores."""


_SINGLE_STEPS = ModelConfig(context=1, layers=3, width=256, dropout=0.0)
_ADAM = TrainConfig(steps=100_000, batch_size=256, learning_rate=3e-4, warmup=0, weight_decay=0.0, clip=10.0)

BASELINE_PRESETS: dict[str, Preset] = {
    "paper": Preset(_SINGLE_STEPS, _ADAM),
    "fast": Preset(_SINGLE_STEPS, replace(_ADAM, steps=30_000, learning_rate=1e-3, schedule="cosine")),
    "cpu": Preset(
        replace(_SINGLE_STEPS, layers=2, width=128),
        replace(_ADAM, steps=6_000, batch_size=128, learning_rate=1e-3, schedule="cosine"),
    ),
}
"""The same for Meta-BC and FOCAL; ``paper`` is Appendix B. Their policies see single steps, whatever the context."""


def presets_for(method: Method | None) -> dict[str, Preset]:
    """The presets of a method's kind."""
    return BASELINE_PRESETS if isinstance(method, TaskMethod) else PRESETS


def configure(preset: str, method: Method | None = None, **overrides: Any) -> Preset:
    """The preset with some settings changed; ``None`` leaves a setting as it is, unknown ones are refused by name."""
    if preset not in tuple(PRESETS):
        raise HimatchError(f"unknown preset {preset!r}; known are {', '.join(PRESETS)}")
    model, train = presets_for(method)[preset].model, presets_for(method)[preset].train
    given = {name: value for name, value in overrides.items() if value is not None}
    model_names = {f.name for f in fields(model)}
    train_names = {f.name for f in fields(train)}
    for name in given:
        if name not in model_names | train_names:
            raise HimatchError(f"unknown setting {name!r}; known are {', '.join(sorted(model_names | train_names))}")
    if isinstance(method, TaskMethod):
        given["context"] = 1
    if "steps" in given and "warmup" not in given:
        # A shorter run warms up for the same part of it.
        steps = whole("steps", given["steps"])
        given["warmup"] = min(train.warmup, max(0, round(train.warmup * steps / train.steps)))
    return Preset(
        replace(model, **{name: value for name, value in given.items() if name in model_names}),
        replace(train, **{name: value for name, value in given.items() if name in train_names}),
    )
