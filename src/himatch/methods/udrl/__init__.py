"""Upside-down RL: imitation of single steps, conditioned on a return and the steps in which it is earned."""

from himatch.methods.udrl.method import UDRL

__all__ = ["UDRL"]
