"""The agents that come with himatch do what their cards say, on initial states that chose nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import himatch as hm
from himatch.datagen import RECIPES
from himatch.experts import load_expert, read_cards
from himatch.experts.cards import BUNDLED
from himatch.experts.catalog import check
from himatch.experts.selection import backward_turns, flips_back, velocity_error
from himatch.simulation import make_simulator, record

CARDS = read_cards()
FRESH = 2**31 + 5000


def play(name: str, episodes: int) -> list[hm.Trajectory]:
    """Episodes with sampled actions."""
    expert, rng = load_expert(name), np.random.default_rng(0)
    width = expert.task.action_width or 0
    simulator = make_simulator(expert.task, episodes, settings=expert.settings)
    return record(
        simulator,
        lambda seen, *_: expert.act(seen, rng.standard_normal((episodes, width), np.float32)),
        [FRESH + i for i in range(episodes)],
    )


def test_every_dataset_finds_its_experts() -> None:
    assert {part.expert for recipe in RECIPES.values() for part in recipe.parts} == set(CARDS)
    assert len(CARDS) == 40


@pytest.mark.parametrize("name", CARDS)
def test_it_loads_and_acts(name: str) -> None:
    expert, again = load_expert(name), hm.load_expert(name)
    assert expert.task.observation_width is not None
    seen = np.random.default_rng(0).normal(size=(5, expert.task.observation_width))
    actions = expert.act(seen)
    assert actions.shape == (5, expert.task.action_width)
    assert np.abs(actions).max() <= 1.0
    np.testing.assert_array_equal(actions, again.act(seen))
    assert expert.weights_hash == again.weights_hash
    assert np.abs(expert.act(seen, np.ones_like(actions)) - actions).max() > 1e-3


@pytest.mark.parametrize("name", CARDS)
def test_its_card_says_where_it_comes_from(name: str) -> None:
    card = CARDS[name]
    assert card["command"].startswith("himatch experts train ")
    assert card["task"] in card["command"]
    assert {"hidden", "copies", "updates", "batch_size", "learning_rate", "discount"} <= card["config"].keys()
    assert {"himatch", "torch", "python", "numpy"} <= card["versions"].keys()
    assert isinstance(card["seed"], int)
    assert card["steps"] > 0
    assert card["updates"] > 0
    for mode in ("stochastic", "deterministic"):
        assert card[mode]["episodes"] == 20
        assert {"mean", "std", "length"} <= card[mode].keys()
    expected = {"velocity": float(name[-3:])} if name.startswith("cheetah-vel") else {}
    assert card["settings"] == expected


def test_weights_are_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in Path(BUNDLED).iterdir()) < 12e6


def test_medium_agents_lie_between_a_quarter_and_a_half_of_their_expert() -> None:
    for task in ("halfcheetah", "hopper", "walker2d", "ant"):
        _, aim, met = check(f"{task}-medium", CARDS)
        assert (aim, met) == ("25 to 50 % of its expert", True)


def test_velocities_and_flips_of_the_cards() -> None:
    held = [check(name, CARDS)[2] for name in CARDS if name.startswith("cheetah-vel")]
    assert len(held) == 31
    assert sum(met is True for met in held) >= 28
    assert check("backflip", CARDS)[2] is True
    for mode in ("stochastic", "deterministic"):
        card = CARDS["backflip"][mode]
        assert card["backward_turns"] > 3.0
        assert card["x_velocity"] < 0.0
        assert card["pitch_rate"] < 0.0


@pytest.mark.parametrize(("name", "episodes", "least"), [("halfcheetah-expert", 4, 8000), ("hopper-expert", 8, 2500)])
def test_experts_earn_what_their_cards_say(name: str, episodes: int, least: float) -> None:
    mean = np.mean([episode.total_reward for episode in play(name, episodes)])
    assert mean > least
    assert mean == pytest.approx(CARDS[name]["stochastic"]["mean"], rel=0.2)


def test_the_back_flip_turns_backwards_towards_the_back() -> None:
    """As the paper's does; the reward prefers no direction."""
    episodes = play("backflip", 6)
    assert all(backward_turns(episode) > 0.0 for episode in episodes)
    assert sum(map(flips_back, episodes)) >= 5
    assert np.mean([episode.observations[:, 8].mean() for episode in episodes]) < 0.0
    assert np.mean([backward_turns(episode) for episode in episodes]) == pytest.approx(
        CARDS["backflip"]["stochastic"]["backward_turns"], rel=0.5
    )


def test_a_velocity_is_held() -> None:
    episodes = play("cheetah-vel-1.5", 4)
    assert all(len(episode) == 200 for episode in episodes)
    assert velocity_error(episodes, 1.5) < 0.15
