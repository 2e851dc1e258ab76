"""Conditional rollouts: many environments at once, each conditioned on its own target."""

from himatch.rollout.conditioners import CONDITIONINGS, Conditioning, make_conditioner, objection
from himatch.rollout.controller import Controller
from himatch.rollout.loop import Rollouts, roll_out
from himatch.rollout.player import Player

__all__ = [
    "CONDITIONINGS",
    "Conditioning",
    "Controller",
    "Player",
    "Rollouts",
    "make_conditioner",
    "objection",
    "roll_out",
]
