"""Policies: methods as configurations, and the agent that learns."""

from himatch.methods.paper import (
    BC,
    BDT,
    CDT,
    DT,
    DTAE,
    DTCPC,
    DTE2E,
    FOCAL,
    METHODS,
    GoalDT,
    MetaBC,
    Method,
    MomentsDT,
    make_method,
)

__all__ = [
    "BC",
    "BDT",
    "CDT",
    "DT",
    "DTAE",
    "DTCPC",
    "DTE2E",
    "FOCAL",
    "METHODS",
    "GoalDT",
    "MetaBC",
    "Method",
    "MomentsDT",
    "make_method",
]
