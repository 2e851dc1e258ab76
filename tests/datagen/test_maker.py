"""Datasets made from experts: the same at any thread count, readable by Minari, whole or not there at all."""

from __future__ import annotations

import errno
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np
import pytest
from waiting import both_at_the_lock

import himatch as hm
from himatch.datagen import RECIPES, make_dataset
from himatch.datagen.cache import cache_folder, cached_dataset, list_datasets
from himatch.datagen.recipes import Recipe, RecipePart
from himatch.datagen.sampled_experts import SampledExpert
from himatch.datagen.slots import Meter, even_slots, reset_seeds
from himatch.experts.expert import write_family
from himatch.simulation import make_simulator


@pytest.fixture
def tiny(bundled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small recipes under the real names, quick enough to be made by name."""
    small = {
        "hopper-medium": Recipe("hopper-medium", "hopper", (RecipePart("hopper-medium", 3),)),
        "hopper-expert": Recipe("hopper-expert", "hopper", (RecipePart("hopper-expert", 2, "hop"),)),
    }
    for module in ("datagen.recipes", "datagen.cache"):
        monkeypatch.setattr(f"himatch.{module}.RECIPES", small)
    return bundled


def make(name: str, out: Path, **settings: Any) -> hm.TrajectoryDataset:
    return make_dataset(name, out, quiet=True, **settings)


# -- what is made ---------------------------------------------------------------------------------------------------


def test_one_seed_one_content_hash_at_any_thread_count(bundled: Path, tmp_path: Path) -> None:
    hashes = {
        make("walker2d-medium-expert", tmp_path / f"{i}-v0", episodes=21, threads=threads).content_hash
        for i, threads in enumerate((1, 2, 2, 5))
    }
    assert len(hashes) == 1
    assert hm.load_dataset(tmp_path / "0-v0").content_hash in hashes
    assert make("walker2d-medium-expert", tmp_path / "other-v0", episodes=21, seed=1).content_hash not in hashes


def test_episodes_replay_in_gymnasium(bundled: Path, tmp_path: Path) -> None:
    """Each starts where Gymnasium starts with the stored seed, and earns its own environment's rewards."""
    make("halfcheetah-run-backflip", tmp_path / "zvel-v0", episodes=3)
    dataset = hm.load_dataset(tmp_path / "zvel-v0")
    assert dataset.task.name == "halfcheetah"
    assert dataset.labels == ("run", "run", "backflip")
    with h5py.File(tmp_path / "zvel-v0" / "data" / "main_data.hdf5") as file:
        seeds = [int(file[f"episode_{i}"].attrs["seed"]) for i in range(3)]
    assert len(set(seeds)) == 3
    for i, env_id in ((1, "HalfCheetah-v5"), (2, "himatch/BackflipCheetah-v0")):
        env, episode = gymnasium.make(env_id), dataset[i]
        assert len(episode) == 1000
        observation, _ = env.reset(seed=seeds[i])
        np.testing.assert_array_equal(episode.observations[0], observation.astype(np.float32))
        rewards = [env.step(action)[1] for action in episode.actions[:100]]
        assert episode.rewards is not None
        np.testing.assert_allclose(episode.rewards[:100], rewards, rtol=1e-5, atol=1e-6)
        env.close()


def test_actions_are_samples_of_the_expert(bundled: Path, tmp_path: Path) -> None:
    make("hopper-medium", tmp_path / "set-v0", episodes=5, seed=3)
    expert = hm.load_expert("hopper-medium")
    for i, episode in enumerate(hm.load_dataset(tmp_path / "set-v0")):
        noise = np.random.default_rng([3, 0, i]).standard_normal((1000, 3), dtype=np.float32)[: len(episode)]
        seen = np.array(episode.observations)
        np.testing.assert_allclose(episode.actions, expert.act(seen, noise), atol=2e-5)
        assert np.abs(episode.actions - expert.act(seen)).max() > 0.01


def test_velocities_are_labels_and_settings(bundled: Path, tmp_path: Path) -> None:
    dataset = make("cheetah-vel", tmp_path / "vel-v0", episodes=31)
    assert dataset.labels == tuple(f"{i / 10:.1f}" for i in range(31))
    assert dataset.task.name == "cheetah-vel"
    assert set(dataset.lengths.tolist()) == {200}
    metadata = json.loads((tmp_path / "vel-v0" / "data" / "metadata.json").read_text())
    assert [part["settings"]["velocity"] for part in metadata["himatch"]["parts"]] == [i / 10 for i in range(31)]
    # A still cheetah is rewarded for velocity 0 and punished for 3, so the environments differed.
    assert dataset.returns[0] > dataset.returns[30] + 200


def test_minari_opens_it(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    made = make("halfcheetah-backflip", tmp_path / "flips-v3", episodes=2, seed=5)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    opened = minari.load_dataset("flips-v3")
    assert (opened.total_episodes, opened.total_steps) == (2, 2000)
    first = opened[0]
    np.testing.assert_array_equal(first.observations[:-1], made[0].observations)
    np.testing.assert_array_equal(first.actions, made[0].actions)
    assert first.truncations[-1]
    assert [m["seed"] for m in opened.storage.get_episode_metadata([0, 1])] == reset_seeds(5, 0, 2)
    metadata = opened.storage.metadata
    assert metadata["algorithm_name"] == "SAC"
    assert metadata["author"] == {"himatch"}
    assert "backflip" in metadata["description"]
    env = opened.recover_environment()
    assert env.spec is not None
    assert env.spec.id == "himatch/BackflipCheetah-v0"
    env.close()


def test_the_folder_says_where_it_comes_from(bundled: Path, tmp_path: Path) -> None:
    dataset = make("hopper-medium-expert", tmp_path / "set-v0", episodes=3, seed=7)
    facts = json.loads((tmp_path / "set-v0" / "data" / "metadata.json").read_text())["himatch"]
    assert (facts["recipe"], facts["seed"], facts["task"]) == ("hopper-medium-expert", 7, "hopper")
    assert facts["content_hash"] == dataset.content_hash
    assert [(part["expert"], part["episodes"]) for part in facts["parts"]] == [
        ("hopper-medium", 2),
        ("hopper-expert", 1),
    ]
    assert len({part["weights_sha256"] for part in facts["parts"]}) == 2
    assert facts["parts"][1]["returns"]["mean"] == pytest.approx(dataset.returns[2])
    assert {"himatch", "mujoco", "gymnasium", "torch", "numpy"} <= facts["versions"].keys()


def test_sampling_leaves_torch_as_it_was(bundled: Path, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(2)
    try:
        make("hopper-medium", tmp_path / "set-v0", episodes=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


# -- seeds, slots, progress -----------------------------------------------------------------------------------------


def test_seeds_of_datasets_leave_room_for_evaluation() -> None:
    seeds = reset_seeds(0, 0, 1000)
    assert 2**30 <= min(seeds) <= max(seeds) < 2**31
    assert len(set(seeds)) == 1000
    assert reset_seeds(0, 0, 10) == seeds[:10]
    assert not set(seeds) & set(reset_seeds(0, 1, 1000))


@pytest.mark.parametrize(("episodes", "slots"), [(1, 1), (100, 100), (128, 128), (129, 65), (250, 125), (1000, 125)])
def test_rounds_are_full(episodes: int, slots: int) -> None:
    assert even_slots(episodes) == slots


def test_progress_counts_up_to_the_total(bundled: Path) -> None:
    seen: list[int] = []
    meter = Meter(lambda done, rate: seen.append(done))
    expert, task = hm.load_expert("hopper-medium"), hm.get_task("hopper")
    simulator = make_simulator(task, 2)
    played = meter.play(simulator, SampledExpert(expert, 2, task.horizon, (0, 0)), reset_seeds(0, 0, 4), None)
    assert len(played) == 4
    assert seen == sorted(seen)
    assert seen[-1] == 4 * task.horizon


# -- what goes wrong ------------------------------------------------------------------------------------------------


def test_missing_experts_are_named(tmp_path: Path, expert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himatch.experts.cards.BUNDLED", tmp_path)
    with pytest.raises(hm.HimatchError, match=r"from the expert 'ant-medium' \(and 1 more\), which does not come with"):
        make("ant-medium-expert", tmp_path / "set-v0")
    with pytest.raises(hm.HimatchError, match=r"'ant-medium', which is not in .*; there: none"):
        make("ant-medium", tmp_path / "set-v0", experts=tmp_path)
    assert make("ant-medium", tmp_path / "set-v0", episodes=1, experts=expert_folder).task.name == "ant"


def test_a_full_disk_leaves_nothing(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", full)
    with pytest.raises(hm.HimatchError, match="the disk is full"):
        make("hopper-medium", tmp_path / "sets" / "set-v0", episodes=1)
    assert list((tmp_path / "sets").iterdir()) == []


def test_an_interrupt_leaves_nothing(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sets" / "set-v0").mkdir(parents=True)
    calls = 0

    def stop(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise KeyboardInterrupt
        return np.zeros((1, 3))

    monkeypatch.setattr(SampledExpert, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        make("hopper-medium", tmp_path / "sets" / "set-v0", episodes=1, overwrite=True)
    assert list((tmp_path / "sets").iterdir()) == [tmp_path / "sets" / "set-v0"]  # what was there is there


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"seed": -1}, "seed must be 0 or more"), ({"threads": -1}, "threads"), ({"episodes": 0}, "at least one episode")],
)
def test_bad_settings_are_refused(bundled: Path, tmp_path: Path, settings: dict[str, int], message: str) -> None:
    with pytest.raises(hm.HimatchError, match=message):
        make("hopper-medium", tmp_path / "set-v0", **{"episodes": 1, **settings})
    assert list(tmp_path.glob("*set-v0*")) == []


# -- names as sources -----------------------------------------------------------------------------------------------


def test_a_name_is_made_once_and_then_kept(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hm.load_dataset("hopper-medium")
    assert (len(first), first.task.name, first.source) == (3, "hopper", "hopper-medium")
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.name.startswith("hopper-medium-3-seed0-")
    monkeypatch.setattr("himatch.datagen.maker.play_recipe", None)  # nothing may be played again
    assert hm.load_dataset("hopper-medium").content_hash == first.content_hash


def test_names_join_and_map(tiny: Path, tmp_path: Path) -> None:
    joined = hm.load_dataset("hopper-medium+hopper-expert", cache=tmp_path / "mine", mmap=tmp_path / "map")
    assert joined.labels == (None, None, None, "hop", "hop")
    assert len(list((tmp_path / "mine").iterdir())) == 2
    again = hm.load_dataset("hopper-medium+hopper-expert", cache=tmp_path / "mine", mmap=tmp_path / "map")
    assert again.content_hash == joined.content_hash
    assert not (tmp_path / "cache").exists()


def test_a_path_wins_over_a_name(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("hopper-expert", tmp_path / "hopper-medium", episodes=1)
    monkeypatch.chdir(tmp_path)
    assert hm.load_dataset("hopper-medium").labels == ("hop",)
    assert not (tmp_path / "cache").exists()


def test_new_experts_never_meet_old_data(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = cached_dataset("hopper-medium", quiet=True)
    stranger = hm.load_expert("hopper-expert")
    renamed = type(stranger)("hopper-medium", stranger.task, stranger.weights, {"settings": {}})
    write_family(tmp_path / "new", "hopper", [renamed])
    monkeypatch.setattr("himatch.experts.cards.BUNDLED", tmp_path / "new")
    new = cached_dataset("hopper-medium", quiet=True)
    assert new != old
    assert hm.load_dataset(new).content_hash != hm.load_dataset(old).content_hash


def test_of_two_that_want_a_set_one_makes_it(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from himatch.datagen import maker as making

    play, made = making.play_recipe, []

    def counted(*arguments: Any, **settings: Any) -> hm.TrajectoryDataset:
        made.append(arguments)
        return play(*arguments, **settings)

    monkeypatch.setattr(making, "play_recipe", counted)
    both_at_the_lock("himatch.datagen.cache", monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(cached_dataset, ["hopper-medium"] * 2))
    assert len(made) == 1
    assert found[0] == found[1]
    assert list((tmp_path / "cache").iterdir()) == [found[0]]
    assert len(hm.load_dataset(found[0])) == 3


def test_a_cache_that_cannot_be_written_is_one_line(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(hm.HimatchError, match=r"file/cache: hopper-medium cannot be kept there .*--cache"):
        hm.load_dataset("hopper-medium", cache=tmp_path / "file" / "cache")


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HIMATCH_CACHE", str(tmp_path / "a"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert cache_folder("here") == Path("here")
    assert cache_folder() == tmp_path / "a"
    monkeypatch.delenv("HIMATCH_CACHE")
    assert cache_folder() == tmp_path / "b" / "himatch"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "himatch"


def test_unknown_sources_name_what_comes_near() -> None:
    with pytest.raises(hm.HimatchError, match=r"no such file or folder.*minari:ID.*did you mean .*hopper-medium"):
        hm.load_dataset("hoper-medium")


def test_listing_shows_what_the_cache_holds(tiny: Path) -> None:
    cached_dataset("hopper-expert", quiet=True)
    listings = {listing.recipe.name: listing for listing in list_datasets()}
    assert listings["hopper-medium"].cached is None
    facts = listings["hopper-expert"].as_json()
    assert facts["parts"][0]["expected"]["mean"] == 200.0
    assert facts["cached"]["episodes"] == 2
    assert facts["cached"]["bytes"] > 1000
    returns = hm.load_dataset("hopper-expert").returns
    assert facts["cached"]["parts"][0]["returns"]["max"] == pytest.approx(returns.max())


def test_every_recipe_has_its_experts(expert_folder: Path) -> None:
    from himatch.datagen.sampled_experts import recipe_experts

    for recipe in RECIPES.values():
        for part, expert in zip(recipe.parts, recipe_experts(recipe, expert_folder), strict=True):
            assert part.expert == expert.name
