"""The settings of an online training: what every round does."""

from __future__ import annotations

from dataclasses import dataclass

from himatch._runtime.settings import from_zero, whole
from himatch.errors import HimatchError
from himatch.rollout import Conditioning


@dataclass(frozen=True)
class Rounds:
    """What every round does."""

    episodes: int = 20
    """Rollouts of a round."""
    steps: int = 1000
    """Training steps of a round."""
    beyond: float = 0.1
    """How far beyond what was achieved commands lie, as a part of its spread."""
    keep: int | None = None
    """How many rollouts are trained on at most, the newest; by default as many as there are logged episodes."""
    conditioning: Conditioning = "nominal"
    """How rollouts are conditioned on their commands."""
    temperature: float | None = None
    """Of the sampled actions of rollouts; by default the run's."""
    learning_rate: float | None = None
    """The highest of a round; by default the run's."""
    seed: int = 0
    """Of commands, initial states and sampled actions."""
    control: bool = False
    """Whether nothing is rolled out: the same steps on the logged episodes alone."""

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("steps", 1), ("seed", 0)):
            if whole(name, getattr(self, name)) < least:
                raise HimatchError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.keep is not None and whole("keep", self.keep) < 1:
            raise HimatchError(f"keep must be at least 1, got {self.keep}")
        from_zero("beyond", self.beyond)
        if self.temperature is not None:
            from_zero("the temperature", self.temperature)
