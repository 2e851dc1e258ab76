"""Evaluation: how well rollouts match their targets."""

from himatch.evaluation.evaluation import Evaluation, named_targets
from himatch.evaluation.match import begin_trial, match_targets
from himatch.evaluation.result import MatchResult
from himatch.evaluation.trial import Trial, play

__all__ = ["Evaluation", "MatchResult", "Trial", "begin_trial", "match_targets", "named_targets", "play"]
