"""The agent of a method."""

from __future__ import annotations

from himatch.methods.agent import Agent, Widths
from himatch.methods.base import Method
from himatch.methods.baselines import FOCAL, TaskMethod
from himatch.methods.focal_agent import FOCALAgent
from himatch.methods.sequence_agent import SequenceAgent
from himatch.methods.task_agent import MetaBCAgent
from himatch.networks.transformer import ModelConfig


def make_agent(method: Method, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> Agent:
    """K untrained models of a method, each drawn from its own seed."""
    if isinstance(method, FOCAL):
        return FOCALAgent(method, config, widths, seeds)
    if isinstance(method, TaskMethod):
        return MetaBCAgent(method, config, widths, seeds)
    return SequenceAgent(method, config, widths, seeds)
