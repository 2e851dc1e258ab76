"""The datasets that himatch makes: which there are, who plays in them, and how episodes are spread."""

from __future__ import annotations

import pytest

import himatch as hm
from himatch.datagen.recipes import RECIPES, VELOCITIES, find_recipe, made_as


def test_all_datasets_of_the_paper_are_there() -> None:
    tasks = ("halfcheetah", "hopper", "walker2d", "ant")
    wanted = {f"{task}-{kind}" for task in tasks for kind in ("medium", "expert", "medium-expert")}
    assert set(RECIPES) == wanted | {"halfcheetah-backflip", "halfcheetah-run-backflip", "cheetah-vel"}
    assert all(recipe.name == name for name, recipe in RECIPES.items())
    assert all(hm.get_task(recipe.task).env_id for recipe in RECIPES.values())


def test_parts_and_default_sizes() -> None:
    both = find_recipe("hopper-medium-expert")
    assert [(part.expert, part.episodes) for part in both.parts] == [("hopper-medium", 1000), ("hopper-expert", 1000)]
    run, flip = find_recipe("halfcheetah-run-backflip").parts
    assert (run.expert, run.label, run.episodes) == ("halfcheetah-expert", "run", 500)
    assert (flip.expert, flip.label, flip.episodes) == ("backflip", "backflip", 500)
    velocities = find_recipe("cheetah-vel")
    assert [part.label for part in velocities.parts] == list(VELOCITIES)
    assert (VELOCITIES[0], VELOCITIES[5], VELOCITIES[-1], len(VELOCITIES)) == ("0.0", "0.5", "3.0", 31)
    assert velocities.episodes == 31 * 250
    assert hm.get_task(velocities.task).horizon == 200


@pytest.mark.parametrize(
    ("name", "episodes", "spread"),
    [("ant-medium", 7, [7]), ("ant-medium-expert", 7, [4, 3]), ("ant-medium-expert", 2, [1, 1])],
)
def test_episodes_are_spread_evenly(name: str, episodes: int, spread: list[int]) -> None:
    recipe = find_recipe(name).with_episodes(episodes)
    assert [part.episodes for part in recipe.parts] == spread
    assert recipe.episodes == episodes
    assert find_recipe(name).episodes != episodes  # the recipe itself is left alone


@pytest.mark.parametrize(
    ("name", "episodes", "needed"),
    [("ant-medium", 0, "one episode"), ("cheetah-vel", 30, "31 episodes"), ("ant-medium", -3, "one")],
)
def test_fewer_than_one_a_part_is_refused(name: str, episodes: int, needed: str) -> None:
    with pytest.raises(hm.HimatchError, match=rf"{name} needs at least {needed}.*got {episodes}"):
        find_recipe(name).with_episodes(episodes)


def test_unknown_names_are_refused_with_what_comes_near() -> None:
    with pytest.raises(hm.HimatchError, match=r"'halfcheeta-medium'; did you mean halfcheetah-medium"):
        find_recipe("halfcheeta-medium")
    with pytest.raises(hm.HimatchError, match=r"'humanoid-dances'; known: halfcheetah-medium, .*cheetah-vel"):
        find_recipe("humanoid-dances")


def test_a_folder_of_the_cache_is_made_by_its_name() -> None:
    assert made_as("hopper-medium-expert-2000-seed0-4a2c0182-v0") == "hopper-medium-expert"
    for other in (
        "hopper-medium-expert-100-seed0-4a2c0182-v0",
        "hopper-medium-expert-2000-seed1-4a2c0182-v0",
        "my.hdf5",
    ):
        assert made_as(other) == other
