"""Evaluation: how well rollouts match their targets."""

from himatch.evaluation.evaluation import Evaluation, named_targets
from himatch.evaluation.match import match_targets
from himatch.evaluation.result import MatchResult

__all__ = ["Evaluation", "MatchResult", "match_targets", "named_targets"]
