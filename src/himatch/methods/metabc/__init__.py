"""Meta-BC: a behavioural clone of single steps, conditioned on the embedding of a demonstration."""

from himatch.methods.metabc.method import MetaBC

__all__ = ["MetaBC"]
