"""What BDT and DT-X share: a sequence policy conditioned on a code that a network makes of target states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, Int, shaped
from himatch.errors import HimatchError
from himatch.methods.base import Port
from himatch.methods.batch import Batch, BatchSpec
from himatch.methods.conditioner import ALL, Conditioner, Some, demonstrated, padded, replaced_rows
from himatch.methods.gdt.method import SequenceAgent, SequenceMethod
from himatch.methods.normalizers import Normalizers
from himatch.methods.window import cut
from himatch.statistics.information import LearnedStatistic, Statistic, full_trajectory
from himatch.targets import Target
from himatch.tasks import Task
from himatch.types import Array


@dataclass(frozen=True)
class LearnedMethod(SequenceMethod):
    """Conditioned on a code of m numbers that a network makes from a window of target states.

    By default the window starts ``look_ahead`` steps after the present or less, drawn at random in training, and at the
    present at run time, and one code serves the whole context: a code that sees the very next states would teach the
    policy inverse dynamics. ``literal`` is the paper's reading instead: the code at t sees t, t + 1, ...
    """

    imitates: ClassVar[bool] = True
    m: int = 16
    """Size of the code."""
    target_window: int = 20
    """Target states that a code is made from."""
    look_ahead: int = 100
    """Steps ahead that the target window starts at most, in training."""
    literal: bool = False
    """The paper's literal reading: the code at t sees t, t + 1, ..."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m < 1:
            raise HimatchError(f"the code needs at least one dimension, got m = {self.m}")
        if self.target_window < 1:
            raise HimatchError(f"the target window needs at least one step, got {self.target_window}")
        if self.look_ahead < 0:
            raise HimatchError(f"the look-ahead cannot be negative, got {self.look_ahead}")

    def statistic(self, task: Task) -> LearnedStatistic:
        """The trajectory itself, as a code."""
        return full_trajectory(self.m)

    def meaning(self, statistic: Statistic) -> str:
        """A code."""
        return "a code of a demonstration's states"

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Windows with the target states that their codes are made from."""
        states = context + self.target_window - 1 if self.literal else self.target_window
        return BatchSpec(context, states, 0 if self.literal else self.look_ahead, self.literal)


class CodeAgent(SequenceAgent):
    """K sequence policies and K networks, ``codes``, that make their z of target states."""

    method: LearnedMethod
    codes: nn.Module
    codes_of_states = True

    @property
    def code_count(self) -> int:
        """How many codes a context needs: one, or one for every step."""
        return self.config.context if self.method.literal else 1

    @shaped
    def encode(self, target_states: Float[Tensor, "K n S obs"]) -> Float[Tensor, "K n {self.code_count} m"]:
        """What the network makes of the states."""
        codes: Tensor = self.codes(target_states, self.code_count)
        return codes

    def z(self, batch: Batch) -> Tensor | None:
        """The codes of the batch's target states."""
        assert batch.target_states is not None
        return self.encode(batch.target_states)

    def conditioner(self, targets: Sequence[Target], normalizers: Normalizers, target_of: Tensor) -> Conditioner:
        """Windows of the demonstrations' states."""
        return TargetStates([demonstrated(target).observations for target in targets], self.spec, target_of)

    def port(self, statistic: Statistic) -> Port:
        """The target's states in place of z."""
        first = "the window's first step, max(step - N + 1, 0)" if self.method.literal else "the present step"
        meaning = f"raw observations of the target from {first} on; past its end its last one repeats"
        return Port("target_states", (self.spec.target_states, self.dims.observation), meaning)


class TargetStates(Conditioner):
    """Windows of demonstrated states by the clock; past its end a demonstration's last state holds."""

    target_of: Tensor

    def __init__(self, states: Sequence[Array], spec: BatchSpec, target_of: Tensor) -> None:
        self.states, self.spec, self.target_of = padded(states, target_of.device), spec, target_of
        self._steps = torch.arange(spec.context, device=target_of.device)
        self._target_steps = torch.arange(spec.target_states, device=target_of.device)

    @shaped
    def target_states(
        self, target_of: Int[Tensor, "*rows"], clock: Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows S obs"]:
        """The window that starts at the present, or for ``literal`` codes at the context's first step."""
        _, times = cut(self.spec, clock, self._steps, self._target_steps)
        return self.states[target_of.unsqueeze(-1), times.clamp(max=self.states.shape[1] - 1)]

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Put its states in place of theirs."""
        assert isinstance(other, TargetStates)
        self.states = replaced_rows(self.states, other.states, self.target_of[0, rollouts], other.target_of[0])
