"""Conditional rollouts: many environments at once, each told its own target."""

from himatch.rollout.conditioning import CONDITIONINGS, Conditioning, Feed, make_feed
from himatch.rollout.player import Player
from himatch.rollout.rollouts import EVALUATION_SEED, Rollouts, roll_out

__all__ = [
    "CONDITIONINGS",
    "EVALUATION_SEED",
    "Conditioning",
    "Feed",
    "Player",
    "Rollouts",
    "make_feed",
    "roll_out",
]
