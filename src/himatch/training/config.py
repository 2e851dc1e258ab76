"""How training is done: one configuration, three presets, overrides checked before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from himatch._runtime.settings import make_plain, whole
from himatch.errors import HimatchError
from himatch.methods import Method
from himatch.networks.transformer import ModelConfig
from himatch.training.draws import Sampling

Schedule = Literal["constant", "cosine", "linear"]
PRESETS = ("paper", "fast", "cpu")
"""``paper``: the paper's tables; ``fast``: its quality in a minute of one GPU; ``cpu``: in minutes of two cores."""


@dataclass(frozen=True)
class TrainConfig:
    """Optimisation; the defaults are Table dt_hyper. After the warm-up the rate stays, or falls to zero."""

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
    sampling: Sampling = "windows"
    """Any window, so that episodes come by length, or any of any episode, as in the authors' code."""

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
        if self.sampling not in get_args(Sampling):
            raise HimatchError(f"sampling must be windows or episodes, got {self.sampling!r}")
        if self.schedule not in get_args(Schedule):
            raise HimatchError(f"schedule must be constant, cosine or linear, got {self.schedule!r}")

    def rate(self, step: int) -> float:
        """The learning rate of a step: linear warm-up, then constant, or to zero as a cosine or a line."""
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        if self.schedule == "constant" or step < self.warmup:
            return self.learning_rate * warm
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        left = 1.0 - done if self.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
        return self.learning_rate * left


def configure(preset: str, method: Method | type[Method], **overrides: Any) -> tuple[ModelConfig, TrainConfig]:
    """A method's preset with some settings changed; ``None`` leaves one as it is, unknown ones are refused by name."""
    if preset not in PRESETS:
        raise HimatchError(f"unknown preset {preset!r}; known are {', '.join(PRESETS)}")
    usual = dict(method.presets[preset])
    given = {name: value for name, value in overrides.items() if value is not None}
    model_names = {f.name for f in fields(ModelConfig)}
    train_names = {f.name for f in fields(TrainConfig)}
    for name in given:
        if name not in model_names | train_names:
            raise HimatchError(f"unknown setting {name!r}; known are {', '.join(sorted(model_names | train_names))}")
    if "steps" in given and "warmup" not in given:
        # A shorter run warms up for the same part of it.
        train = TrainConfig(**{name: value for name, value in usual.items() if name in train_names})
        steps = whole("steps", given["steps"])
        given["warmup"] = min(train.warmup, max(0, round(train.warmup * steps / train.steps)))
    settings = {**usual, **given, **method.fixed}
    return (
        ModelConfig(**{name: value for name, value in settings.items() if name in model_names}),
        TrainConfig(**{name: value for name, value in settings.items() if name in train_names}),
    )
