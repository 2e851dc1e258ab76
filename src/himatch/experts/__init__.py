"""Experts: SAC agents that make the datasets the paper needs, how to train them, and those that come with himatch."""

from himatch.experts.expert import Expert, load_expert, read_cards
from himatch.experts.picking import pick_experts
from himatch.experts.sac import SACConfig
from himatch.experts.training import VELOCITIES, AgentSpec, train_experts

__all__ = [
    "VELOCITIES",
    "AgentSpec",
    "Expert",
    "SACConfig",
    "load_expert",
    "pick_experts",
    "read_cards",
    "train_experts",
]
