"""The agent of a method."""

from __future__ import annotations

from himatch.nn.policy import ModelConfig
from himatch.policy.agent import Agent, Widths
from himatch.policy.baselines import FOCAL, TaskMethod
from himatch.policy.focal_agent import FOCALAgent
from himatch.policy.method import Method
from himatch.policy.sequence_agent import SequenceAgent
from himatch.policy.task_agent import MetaBCAgent


def make_agent(method: Method, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> Agent:
    """K untrained models of a method, each drawn from its own seed."""
    if isinstance(method, FOCAL):
        return FOCALAgent(method, config, widths, seeds)
    if isinstance(method, TaskMethod):
        return MetaBCAgent(method, config, widths, seeds)
    return SequenceAgent(method, config, widths, seeds)
