"""What BDT and DT-X share: a sequence policy conditioned on a code that a network makes of target states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from himatch._runtime.settings import shown
from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.errors import DataError, HimatchError
from himatch.methods.base import Port, Settings
from himatch.methods.batch import Batch, BatchSpec
from himatch.methods.codes import CODES, Codes, CodesName
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
    """Conditioned on codes of m numbers that a network makes from target states; ``codes`` says from which.

    ``look-ahead``: the window starts ``look_ahead`` steps after the present or less, drawn at random in training, and
    at the present at run time, and one code serves the whole context: a code that sees the very next states would teach
    the policy inverse dynamics. The other choices, ``pseudocode`` and ``public``, are in :mod:`himatch.methods.codes`.
    """

    imitates: ClassVar[bool] = True
    m: int = 16
    """Size of the code."""
    target_window: int = 20
    """Target states that a look-ahead code is made from; other codes are made from as many as the context has steps."""
    look_ahead: int = 100
    """Steps ahead that the target window starts at most, in training of look-ahead codes."""
    codes: CodesName = "look-ahead"
    """Target states that codes see: himatch's look-ahead, those of the paper's pseudocode, or of the public code."""
    public_mask: bool = False
    """With public codes: hide all but the first states of a rollout's target window, as many as a state is wide."""
    public_start: bool = False
    """With public codes: flip the first step's target window along features instead of time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m < 1:
            raise HimatchError(f"the code needs at least one dimension, got m = {self.m}")
        if self.target_window < 1:
            raise HimatchError(f"the target window needs at least one step, got {self.target_window}")
        if self.look_ahead < 0:
            raise HimatchError(f"the look-ahead cannot be negative, got {self.look_ahead}")
        if self.codes not in CODES:
            raise HimatchError(f"codes must be one of {', '.join(CODES)}, got {shown(self.codes)}")
        for slip in ("public_mask", "public_start"):
            if getattr(self, slip) and self.codes != "public":
                raise HimatchError(f"{slip} is of public codes, and codes are {self.codes}")

    @classmethod
    def current(cls, stored: Settings) -> Settings:
        """Earlier versions had a switch ``literal``; without it codes were what look-ahead codes are."""
        if stored.get("literal"):
            raise DataError(
                f"its {cls.name} has literal codes (at t they saw the states t, t + 1, ...), which neither the paper's "
                "pseudocode nor the public code has and himatch no longer; train it again with codes pseudocode, "
                "public or look-ahead"
            )
        return {key: value for key, value in stored.items() if key != "literal"}

    @property
    def choice(self) -> Codes:
        """What the name of ``codes`` stands for."""
        return CODES[self.codes]

    def statistic(self, task: Task) -> LearnedStatistic:
        """The trajectory itself, as a code."""
        return full_trajectory(self.m)

    def meaning(self, statistic: Statistic) -> str:
        """A code."""
        return "a code of a demonstration's states"

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Windows with the target states that their codes are made from."""
        return self.choice.batch_spec(context, self.target_window, self.look_ahead)


class CodeAgent(SequenceAgent):
    """K sequence policies and K networks, ``codes``, that make their z of target states."""

    method: LearnedMethod
    codes: nn.Module
    codes_of_states = True

    @property
    def code_count(self) -> int:
        """How many codes a context needs: one, or one for every step."""
        return self.config.context if self.method.choice.per_step else 1

    def z(self, batch: Batch) -> Tensor | None:
        """The codes of the batch's target states."""
        assert batch.target_states is not None
        if batch.now is not None:
            return self.encode(batch.target_states, batch.now)
        codes: Tensor = self.codes(batch.target_states, batch.target_times, self.code_count)
        return codes

    @shaped
    def encode(
        self, target_states: Float[Tensor, "K n S obs"], now: Int[Tensor, "#K n"]
    ) -> Float[Tensor, "K n {self.code_count} m"]:
        """Codes at run time. The present step has the last of public codes also where the context is not full."""
        steps = torch.arange(self.spec.target_states, device=now.device)
        _, times = cut(self.spec, now, steps, steps)
        windows = target_states.shape[:3]
        seen = self._seen(steps, now).expand(windows) if self.method.public_mask else None
        codes: Tensor = self.codes(target_states, times.expand(windows), self.code_count, seen)
        if not (self.method.choice.per_step and self.method.choice.ahead):
            return codes
        missing = (self.config.context - 1 - now).clamp(min=0)
        places = (steps + missing.unsqueeze(-1)).clamp(max=self.config.context - 1)
        return codes.gather(2, places.unsqueeze(-1).expand_as(codes))

    def _seen(self, steps: Int[Tensor, " S"], now: Int[Tensor, "#K n"]) -> Bool[Tensor, "#K n S"]:
        """The public code's mask: as long as a state is wide; its first step has it at the other end."""
        width = self.dims.observation
        at_other_end = (now == 0).unsqueeze(-1) & self.method.public_start
        first = at_other_end * max(len(steps) - width, 0)
        return (steps >= first) & (steps < first + width)

    def conditioner(self, targets: Sequence[Target], normalizers: Normalizers, target_of: Tensor) -> Conditioner:
        """Windows of the demonstrations' states."""
        states = [demonstrated(target).observations for target in targets]
        return TargetStates(states, self.spec, target_of, flipped_start=self.method.public_start)

    def port(self, statistic: Statistic) -> Port:
        """The target's states in place of z."""
        which = "from the present step on"
        if self.spec.rollout_start:
            which = "up to the present step; before its start its first one repeats"
        meaning = f"raw observations of the target {which}; past its end its last one repeats"
        return Port("target_states", (self.spec.target_states, self.dims.observation), meaning)


class TargetStates(Conditioner):
    """Windows of demonstrated states by the clock; past its end a demonstration's last state holds.

    ``flipped_start``: as the public code has it, the first step's window is flipped along features and read first to
    last, so that here, where windows are read last to first, both axes are flipped.
    """

    target_of: Tensor

    def __init__(
        self, states: Sequence[Array], spec: BatchSpec, target_of: Tensor, *, flipped_start: bool = False
    ) -> None:
        self.states, self.spec, self.target_of = padded(states, target_of.device), spec, target_of
        self.flipped_start = flipped_start
        self._steps = torch.arange(spec.context, device=target_of.device)
        self._target_steps = torch.arange(spec.target_states, device=target_of.device)

    @shaped
    def target_states(
        self, target_of: Int[Tensor, "*rows"], clock: Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows S obs"]:
        """The window that starts at the present, or that ends there."""
        _, times = cut(self.spec, clock, self._steps, self._target_steps)
        windows = self.states[target_of.unsqueeze(-1), times.clamp(max=self.states.shape[1] - 1)]
        if not self.flipped_start:
            return windows
        return torch.where((clock == 0)[..., None, None], windows.flip(-1, -2), windows)

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Put its states in place of theirs."""
        assert isinstance(other, TargetStates)
        self.states = replaced_rows(self.states, other.states, self.target_of[0, rollouts], other.target_of[0])
