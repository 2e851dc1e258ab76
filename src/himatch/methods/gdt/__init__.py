"""The Generalized Decision Transformer with fixed statistics: BC, DT, CDT, moments and goals."""

from himatch.methods.gdt.method import BC, CDT, DT, GoalDT, MomentsDT, SequenceMethod

__all__ = ["BC", "CDT", "DT", "GoalDT", "MomentsDT", "SequenceMethod"]
