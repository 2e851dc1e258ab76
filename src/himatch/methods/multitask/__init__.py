"""Imitation of single steps, conditioned on a task: the label's, or the one that the trajectory served best."""

from himatch.methods.multitask.method import GH, HIPI, MultiTask

__all__ = ["GH", "HIPI", "MultiTask"]
