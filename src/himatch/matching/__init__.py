"""Matching: a trained policy, what it makes of a target, and how well that matches."""

from himatch.matching.evaluation import evaluate
from himatch.matching.loading import load
from himatch.matching.policy import Policy
from himatch.matching.result import MatchResult

__all__ = ["MatchResult", "Policy", "evaluate", "load"]
