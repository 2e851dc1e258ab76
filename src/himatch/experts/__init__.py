"""Experts: SAC agents that make the datasets the paper needs, how to train them, and those that come with himatch.

Names are imported when first used: cards are read without PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from himatch.experts.cards import read_cards as read_cards
    from himatch.experts.expert import Expert as Expert
    from himatch.experts.expert import load_expert as load_expert
    from himatch.experts.run import VELOCITIES as VELOCITIES
    from himatch.experts.run import AgentSpec as AgentSpec
    from himatch.experts.sac import SACConfig as SACConfig
    from himatch.experts.selection import select_experts as select_experts
    from himatch.experts.trainer import train_experts as train_experts

_FILES = {
    "cards": ("read_cards",),
    "expert": ("Expert", "load_expert"),
    "selection": ("select_experts",),
    "run": ("VELOCITIES", "AgentSpec"),
    "sac": ("SACConfig",),
    "trainer": ("train_experts",),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}

__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'himatch.experts' has no attribute {name!r}")
    return getattr(importlib.import_module(f"himatch.experts.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
