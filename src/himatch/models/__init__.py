"""Pretrained policies that come with himatch: ``himatch.load("halfcheetah-cdt")``."""

from himatch.models.cards import (
    BUNDLED,
    ModelCard,
    find_model,
    markdown,
    model_names,
    read_card,
    read_cards,
    seed_choice,
)

__all__ = ["BUNDLED", "ModelCard", "find_model", "markdown", "model_names", "read_card", "read_cards", "seed_choice"]
