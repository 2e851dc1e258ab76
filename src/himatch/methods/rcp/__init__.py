"""Reward-conditioned policies: imitation of single steps, conditioned on a return or an advantage."""

from himatch.methods.rcp.method import RCP

__all__ = ["RCP"]
