"""Simulation: many environments of one task at once, and episodes recorded in them.

Gymnasium and MuJoCo (extra ``sim``) are imported when a simulator is made. Where Gymnasium is imported already,
importing this package makes the paper's environments known to it:
``gymnasium.make("himatch.simulation:himatch/CheetahVel-v0")``.
"""

import sys

from himatch.simulation.factory import make_simulator
from himatch.simulation.recorder import Behaviour, record
from himatch.simulation.simulator import EVALUATION_SEED, Simulator, Transition
from himatch.tasks.registration import register_environments

__all__ = [
    "EVALUATION_SEED",
    "Behaviour",
    "Simulator",
    "Transition",
    "make_simulator",
    "record",
    "register_environments",
]

if sys.modules.get("gymnasium") is not None:
    register_environments()
