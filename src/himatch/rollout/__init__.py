"""Conditional rollouts: many environments at once, each told its own target."""

from himatch.rollout.conditioning import CONDITIONINGS, Conditioning, Feed, make_feed, objection
from himatch.rollout.player import Player
from himatch.rollout.rollouts import Rollouts, roll_out

__all__ = [
    "CONDITIONINGS",
    "Conditioning",
    "Feed",
    "Player",
    "Rollouts",
    "make_feed",
    "objection",
    "roll_out",
]
