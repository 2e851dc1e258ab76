"""BDT, the Bi-directional Decision Transformer: a second, anti-causal transformer reads the target's states."""

from himatch.methods.bdt.method import BDT

__all__ = ["BDT"]
