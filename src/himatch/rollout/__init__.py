"""Conditional rollouts: many environments at once, each conditioned on its own target."""

from himatch.rollout.conditioners import CONDITIONINGS, Conditioning, make_conditioner, objection
from himatch.rollout.controller import Controller
from himatch.rollout.limits import Beyond, Limits
from himatch.rollout.loop import OngoingRollouts, Rollouts, roll_out
from himatch.rollout.planner import Prepared
from himatch.rollout.plans import Plans
from himatch.rollout.player import Player

__all__ = [
    "CONDITIONINGS",
    "Beyond",
    "Conditioning",
    "Controller",
    "Limits",
    "OngoingRollouts",
    "Plans",
    "Player",
    "Prepared",
    "Rollouts",
    "make_conditioner",
    "objection",
    "roll_out",
]
