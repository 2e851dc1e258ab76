"""Datasets of OGBench's PointMazes by name, regenerated: its wheel has environments and no data.

Numbers and lengths of episodes are those of OGBench's own commands (``data_gen_scripts`` of its repository). Who plays
is in :mod:`himatch.datagen.oracle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from himatch.datagen.recipes import RecipePart
from himatch.errors import DataError

FORMAT = 1  # goes up when other episodes come out of a seed


@dataclass(frozen=True)
class MazeRecipe:
    """A dataset of a maze: how long its episodes are, and whether they go on to another goal when one is reached.

    OGBench stores one state more than there are steps (1001, 201), which here is the final observation.
    """

    name: str
    task: str
    episodes: int
    steps: int
    goes_on: bool

    @property
    def parts(self) -> tuple[RecipePart, ...]:
        """No expert plays in it."""
        return ()

    def with_episodes(self, episodes: int) -> MazeRecipe:
        """The same with another number of episodes."""
        if episodes < 1:
            raise DataError(f"{self.name} needs at least one episode; got {episodes}")
        return replace(self, episodes=episodes)


def _recipes() -> Mapping[str, MazeRecipe]:
    recipes = []
    for maze, episodes, steps in (("medium", 1000, 1000), ("large", 1000, 1000), ("giant", 500, 2000)):
        task = f"ogbench-pointmaze-{maze}"
        recipes += [
            MazeRecipe(f"{task}-navigate", task, episodes, steps, goes_on=True),
            MazeRecipe(f"{task}-stitch", task, 5000, 200, goes_on=False),
        ]
    return MappingProxyType({recipe.name: recipe for recipe in recipes})


MAZES: Mapping[str, MazeRecipe] = _recipes()


def maze_key(recipe: MazeRecipe, seed: int = 0) -> str:
    """The name of its folder in the cache."""
    return f"{recipe.name}-{recipe.episodes}-seed{seed}-oracle{FORMAT}-v0"
