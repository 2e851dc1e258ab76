"""Data generation: datasets that himatch makes, by playing its experts or an agent of the user's."""

from himatch.datagen.collection import collect_dataset
from himatch.datagen.maker import make_dataset
from himatch.datagen.mazes import MAZES
from himatch.datagen.recipes import RECIPES

__all__ = ["MAZES", "RECIPES", "collect_dataset", "make_dataset"]
