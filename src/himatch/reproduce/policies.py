"""Whose policy a method is trained as: the paper's, or himatch's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from himatch.methods import Method
from himatch.training import configure

PolicyName = Literal["paper", "himatch"]
POLICIES: Mapping[PolicyName, Mapping[str, Any]] = {"paper": {"head": "tanh"}, "himatch": {}}
"""What each changes in a preset.

The paper's policy is deterministic, trained by squared error, whatever the preset has. That is the paper's head and
loss; all else (size, heads, activation, dropout, tokens, context, batch, learning rate, steps) is the preset's, so that
only ``paper`` has Table dt_hyper. Time embeddings and the drawing of windows are himatch's with every preset, unless a
row says otherwise. himatch's policy is the preset as it is. Both have their last weights; results that record no policy
have those of the lowest validation loss.
"""


def has_papers_policy(preset: str, method: type[Method]) -> bool:
    """Whether a preset has the paper's policy already, so that there is no other to run."""
    model, _ = configure(preset, method)
    return all(getattr(model, name) == value for name, value in POLICIES["paper"].items())
