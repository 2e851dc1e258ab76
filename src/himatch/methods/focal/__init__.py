"""FOCAL: an offline actor-critic of single steps, conditioned on the embedding of a demonstration."""

from himatch.methods.focal.method import FOCAL

__all__ = ["FOCAL"]
