"""Simulation: many environments of one task at once, and episodes recorded in them.

Importing this package makes the paper's environments known to ``gymnasium.make``.
"""

from himatch.simulation.recorder import Behaviour, record
from himatch.simulation.registration import register_environments
from himatch.simulation.simulator import EVALUATION_SEED, Simulator, Transition, make_simulator

__all__ = [
    "EVALUATION_SEED",
    "Behaviour",
    "Simulator",
    "Transition",
    "make_simulator",
    "record",
    "register_environments",
]

register_environments()
