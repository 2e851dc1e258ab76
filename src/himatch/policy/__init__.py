"""Policies: methods as configurations, the agent that learns, and the trained policy that acts."""

from himatch.policy.methods import BC, BDT, CDT, DT, DTAE, DTCPC, DTE2E, METHODS, GoalDT, Method, MomentsDT, make_method
from himatch.policy.policy import Policy, load

__all__ = [
    "BC",
    "BDT",
    "CDT",
    "DT",
    "DTAE",
    "DTCPC",
    "DTE2E",
    "METHODS",
    "GoalDT",
    "Method",
    "MomentsDT",
    "Policy",
    "load",
    "make_method",
]
