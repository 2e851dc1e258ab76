"""GCSL: imitation of single steps, conditioned on a state that was reached later, and on the steps until then."""

from himatch.methods.gcsl.method import GCSL

__all__ = ["GCSL"]
