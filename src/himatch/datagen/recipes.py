"""Datasets by name: which experts play how many episodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from himatch.errors import DataError, suggestion
from himatch.experts.cards import Card, read_cards

VELOCITIES = tuple(f"{tenth / 10:.1f}" for tenth in range(31))
"""Target velocities of the ``cheetah-vel`` experts, as they are written in names and labels."""


@dataclass(frozen=True)
class RecipePart:
    """Episodes of one expert, played in its own environment."""

    expert: str
    episodes: int
    label: str | None = None


@dataclass(frozen=True)
class Recipe:
    """A dataset: its parts, one after the other, as episodes of ``task``."""

    name: str
    task: str
    parts: tuple[RecipePart, ...]

    @property
    def episodes(self) -> int:
        """Episodes of all parts together."""
        return sum(part.episodes for part in self.parts)

    def with_episodes(self, episodes: int) -> Recipe:
        """The same with another total, spread evenly; the first parts get what does not divide."""
        count = len(self.parts)
        if episodes < count:
            what = "one episode" if count == 1 else f"{count} episodes, one for each of its parts"
            raise DataError(f"{self.name} needs at least {what}; got {episodes}")
        share, more = divmod(episodes, count)
        parts = (replace(part, episodes=share + (i < more)) for i, part in enumerate(self.parts))
        return replace(self, parts=tuple(parts))


def _recipes() -> Mapping[str, Recipe]:
    recipes = []
    for task in ("halfcheetah", "hopper", "walker2d", "ant"):
        medium, expert = RecipePart(f"{task}-medium", 1000), RecipePart(f"{task}-expert", 1000)
        recipes += [
            Recipe(f"{task}-medium", task, (medium,)),
            Recipe(f"{task}-expert", task, (expert,)),
            Recipe(f"{task}-medium-expert", task, (medium, expert)),
        ]
    flip = RecipePart("backflip", 500, "backflip")
    velocities = tuple(RecipePart(f"cheetah-vel-{velocity}", 250, velocity) for velocity in VELOCITIES)
    recipes += [
        Recipe("halfcheetah-backflip", "backflip", (flip,)),
        # After the paper's data for matching z-velocities: running and back-flips, each with its own reward.
        Recipe("halfcheetah-run-backflip", "halfcheetah", (RecipePart("halfcheetah-expert", 500, "run"), flip)),
        Recipe("cheetah-vel", "cheetah-vel", velocities),
    ]
    return MappingProxyType({recipe.name: recipe for recipe in recipes})


RECIPES: Mapping[str, Recipe] = _recipes()


def made_as(source: str) -> str:
    """The name by which himatch makes a dataset of the usual size that lies in its cache; other sources stay."""
    usual = (r.name for r in RECIPES.values() if source.startswith(f"{r.name}-{r.episodes}-seed0-"))
    return next(usual, source)


def find_recipe(name: str, others: Collection[str] = ()) -> Recipe:
    """The recipe of that name; an unknown one is refused with those that come near, ``others`` among them."""
    if name not in RECIPES:
        names = (*RECIPES, *others)
        known = f"known: {', '.join(names)}"
        raise DataError(f"himatch makes no dataset called {name!r}; {suggestion(name, names) or known}")
    return RECIPES[name]


def recipe_cards(recipe: Recipe, folder: str | Path | None = None) -> list[Card]:
    """The card of every part's expert, bundled or in a folder of the user's own."""
    known = read_cards(folder)
    missing = [part.expert for part in recipe.parts if part.expert not in known]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        place = "does not come with this installation of himatch" if folder is None else f"is not in {folder}"
        raise DataError(
            f"{recipe.name} is made from the expert {missing[0]!r}{more}, which {place}; "
            f"there: {', '.join(known) or 'none'}"
        )
    return [known[part.expert] for part in recipe.parts]
