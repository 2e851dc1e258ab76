"""Datasets that are made on first use and kept: what ``himatch.data.sources`` finds by name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from himatch._runtime.files import read_json
from himatch.data.minari import METADATA
from himatch.datagen.mazes import MAZES, MazeRecipe, maze_key
from himatch.datagen.recipes import RECIPES, Recipe, find_recipe, recipe_cards
from himatch.errors import DataError
from himatch.experts.cards import Card, read_cards, read_weights, weights_hash
from himatch.tasks import get_task


def dataset_names() -> Collection[str]:
    """The datasets that himatch makes."""
    return (*RECIPES, *MAZES)


def dataset_task(name: str) -> str:
    """The task of one of them."""
    return MAZES[name].task if name in MAZES else find_recipe(name, MAZES).task


def dataset_folder(name: str, cache: str | Path | None) -> Path:
    """The folder of one of them, of the usual size."""
    return cached_dataset(name, cache)


def cache_folder(folder: str | Path | None = None) -> Path:
    """Where datasets are kept: as given, ``$HIMATCH_CACHE``, or ``himatch`` in the user's cache folder."""
    given = folder or os.environ.get("HIMATCH_CACHE")
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "himatch"


def cached_dataset(
    name: str,
    cache: str | Path | None = None,
    *,
    episodes: int | None = None,
    seed: int = 0,
    threads: int = 0,
    quiet: bool = False,
) -> Path:
    """The folder of a dataset by name (of that size and seed), made now if it is not there."""
    folder = cache_folder(cache)
    if name in MAZES:
        maze = MAZES[name] if episodes is None else MAZES[name].with_episodes(episodes)

        def through(to: Path) -> None:
            from himatch.datagen.oracle import play_maze

            play_maze(maze, to, seed=seed, overwrite=True, quiet=quiet)

        return _kept(folder / maze_key(maze, seed), name, through)
    recipe = find_recipe(name, MAZES)
    if episodes is not None:
        recipe = recipe.with_episodes(episodes)

    def play(to: Path) -> None:
        from himatch.datagen.maker import play_recipe
        from himatch.datagen.sampled_experts import recipe_experts  # torch is needed from here on

        play_recipe(recipe, recipe_experts(recipe), to, seed=seed, threads=threads, overwrite=True, quiet=quiet)

    return _kept(folder / _key(recipe, recipe_cards(recipe), seed), name, play)


def _kept(found: Path, name: str, play: Callable[[Path], object]) -> Path:
    """The folder of a dataset in the cache, made now if it is not there."""
    if _complete(found):
        return found
    folder = found.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{found.name}.lock")
        lock.acquire()
    except OSError as reason:
        raise DataError(
            f"{folder}: {name} cannot be kept there ({reason.strerror or reason}); name another folder with --cache"
        ) from reason
    try:  # of several processes that want it, one makes it
        if not _complete(found):
            play(found)
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
    return found


def _key(recipe: Recipe, cards: Sequence[Card], seed: int = 0) -> str:
    """A folder name that changes with whatever decides the content: weights, tasks and settings."""
    digest = hashlib.sha256()
    for card in cards:
        task = get_task(card["task"])
        facts = [weights_hash(read_weights(card)), task.env_id, dict(task.env_kwargs), dict(card.get("settings", {}))]
        digest.update(json.dumps(facts, sort_keys=True).encode())
    return f"{recipe.name}-{recipe.episodes}-seed{seed}-{digest.hexdigest()[:8]}-v0"


def _complete(folder: Path) -> bool:
    return (folder / "data" / METADATA).is_file()


@dataclass(frozen=True)
class Listing:
    """What is known about a dataset without making it."""

    recipe: Recipe | MazeRecipe
    cards: tuple[Card | None, ...]
    """The card of each part's expert, where it is bundled."""
    cached: Path | None
    """Its folder, where it has been made."""
    metadata: dict[str, Any]
    """What that folder says about itself."""
    steps: int | None = None
    """Steps, where every episode has as many."""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return 0 if self.cached is None else sum(p.stat().st_size for p in self.cached.rglob("*") if p.is_file())

    def as_json(self) -> dict[str, Any]:
        """Everything, in built-in types."""
        parts = [
            {
                "expert": part.expert,
                "label": part.label,
                "episodes": part.episodes,
                "expected": None if card is None else card.get("stochastic"),
            }
            for part, card in zip(self.recipe.parts, self.cards, strict=True)
        ]
        facts = {"name": self.recipe.name, "task": self.recipe.task, "episodes": self.recipe.episodes, "parts": parts}
        if self.cached is None:
            return {**facts, "cached": None}
        made = {
            "folder": str(self.cached),
            "bytes": self.size,
            "episodes": self.metadata.get("total_episodes"),
            "steps": self.metadata.get("total_steps"),
            "parts": self.metadata.get("himatch", {}).get("parts", []),
        }
        return {**facts, "cached": made}


def list_datasets(cache: str | Path | None = None) -> list[Listing]:
    """Every dataset that himatch makes, with what its experts promise and what is in the cache."""
    known, folder, listings = read_cards(), cache_folder(cache), []
    for recipe in RECIPES.values():
        cards = tuple(known.get(part.expert) for part in recipe.parts)
        found, metadata = None, {}
        # Weights are read only where a set may be there, and only a set of these very weights counts.
        if all(cards) and any(folder.glob(f"{recipe.name}-{recipe.episodes}-seed*")):
            kept = folder / _key(recipe, recipe_cards(recipe))
            if _complete(kept):
                found, metadata = kept, read_json(kept / "data" / METADATA, str(kept))
        listings.append(Listing(recipe, cards, found, metadata))
    for maze in MAZES.values():
        kept = folder / maze_key(maze)
        there = _complete(kept)
        facts = read_json(kept / "data" / METADATA, str(kept)) if there else {}
        listings.append(Listing(maze, (), kept if there else None, facts, maze.episodes * maze.steps))
    return listings
