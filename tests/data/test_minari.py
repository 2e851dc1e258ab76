"""Minari folders; Minari itself is the oracle."""

import json
import shutil
import warnings

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from builders import ARM, assert_same, make_episode, make_episodes, write_with_himatch, write_with_minari
from gymnasium import spaces

import himatch as hm
from himatch.errors import DataError, HimatchWarning

FORMS = ("hdf5", "arrow", "parquet")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Where Minari looks for local sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def hopper_episodes():
    rng = np.random.default_rng(0)
    return [make_episode(rng, n, obs=11, act=3, terminated=n == 5) for n in (6, 5, 8)]


def edit_metadata(folder, **changes):
    path = folder / "data" / "metadata.json"
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))


# -- what himatch writes, Minari opens ------------------------------------------------------------------------------


def test_minari_opens_what_himatch_wrote(root):
    episodes = make_episodes()
    out = hm.write_minari(hm.load_dataset(episodes, ARM), root / "arm" / "log-v3", description="a test")
    opened = minari.load_dataset("arm/log-v3")
    assert out == root / "arm" / "log-v3"
    assert (opened.total_episodes, opened.total_steps) == (4, 41)
    assert opened.observation_space == spaces.Box(-np.inf, np.inf, (3,), np.float32)
    assert opened.action_space == spaces.Box(-1, 1, (2,), np.float32)
    for found, expected in zip(opened.iterate_episodes(), episodes, strict=True):
        np.testing.assert_array_equal(found.observations[:-1], expected.observations)
        np.testing.assert_array_equal(found.observations[-1], expected.final_observation)
        np.testing.assert_array_equal(found.actions, expected.actions)
        np.testing.assert_array_equal(found.rewards, expected.rewards)
        last = np.arange(len(expected)) == len(expected) - 1
        np.testing.assert_array_equal(found.terminations, last & expected.terminated)
        np.testing.assert_array_equal(found.truncations, last & (not expected.terminated))


def test_minari_recovers_the_environment_himatch_recorded(root):
    packed = hm.load_dataset(write_with_minari(hopper_episodes(), root, env="Hopper-v5"))
    hm.write_minari(packed, root / "copy-v0")
    spec = minari.load_dataset("copy-v0").spec.env_spec
    assert spec.id == "Hopper-v5"
    assert hm.load_dataset("copy-v0").env_id == "Hopper-v5"


def test_the_environment_of_the_task_is_written_where_the_source_names_none(root):
    rng = np.random.default_rng(0)
    swings = [make_episode(rng, 5, obs=3, act=1) for _ in range(3)]
    task = hm.Task("swing", 200, 3, 1, env_id="Pendulum-v1")
    hm.write_minari(hm.load_dataset(swings, task), root / "swing-v0")
    assert minari.load_dataset("swing-v0").spec.env_spec.id == "Pendulum-v1"
    assert hm.load_dataset("swing-v0", task).env_id == "Pendulum-v1"


def test_one_of_several_versions_of_an_environment_is_not_guessed(root):
    hm.write_minari(hm.load_dataset(hopper_episodes(), "hopper"), root / "old-v0")  # D4RL's are of version 2
    assert minari.load_dataset("old-v0").spec.env_spec is None
    assert hm.load_dataset("old-v0").env_id is None


def test_a_name_without_a_version_gets_one(tmp_path):
    hm.write_minari(hm.load_dataset(make_episodes(), ARM), tmp_path / "my log")
    metadata = json.loads((tmp_path / "my log" / "data" / "metadata.json").read_text())
    assert metadata["dataset_id"] == "my-log-v0"


def test_what_minari_could_not_list_is_not_written_among_its_sets(root):
    data = hm.load_dataset(make_episodes(), ARM)
    with pytest.raises(DataError, match="call it log-v0"):
        hm.write_minari(data, root / "log")
    hm.write_minari(data, root / "log-v0")
    assert list(minari.list_local_datasets()) == ["log-v0"]


def test_a_selection_out_of_order_is_written_in_its_order(root):
    dataset = hm.load_dataset(make_episodes(), ARM)[[3, 0]]
    assert hm.load_dataset(hm.write_minari(dataset, root / "some-v0"), ARM).content_hash == dataset.content_hash


def test_logs_without_rewards_and_final_observation_survive(root):
    rng = np.random.default_rng(0)
    episodes = [hm.Trajectory(rng.normal(size=(n, 3)), rng.uniform(-1, 1, (n, 2)), label=f"{n}") for n in (4, 6)]
    out = hm.write_minari(hm.load_dataset(episodes, ARM), root / "robot-v0")
    for found, expected in zip(hm.load_dataset(out, ARM), episodes, strict=True):
        assert_same(found, expected)
    oracle = minari.load_dataset("robot-v0")[0]  # Minari demands rewards and one observation more
    assert not oracle.rewards.any()
    np.testing.assert_array_equal(oracle.observations[-1], episodes[0].observations[-1])


def test_labels_survive(root):
    episodes = [
        make_episode(np.random.default_rng(i), 3, label=label) for i, label in enumerate(["läuft", None, "a b", "flip"])
    ]
    out = hm.write_minari(hm.load_dataset(episodes, ARM), root / "labels-v0")
    assert hm.load_dataset(out, ARM).labels == ("läuft", None, "a b", "flip")


def test_the_task_survives_where_it_is_registered(root):
    hm.write_minari(hm.load_dataset(hopper_episodes(), "hopper"), root / "h-v0")
    assert hm.load_dataset("h-v0").task.name == "hopper"
    hm.write_minari(hm.load_dataset(make_episodes(), ARM), root / "a-v0")  # ARM is not registered
    with pytest.warns(
        HimatchWarning, match=r"a-v0.*belongs to task arm, which is not registered here; --import FILE.py"
    ):
        assert hm.load_dataset("a-v0").task.name == "unnamed"
    assert hm.load_dataset("a-v0", ARM).task is ARM
    hm.write_minari(hm.load_dataset(make_episodes()), root / "u-v0")  # belongs to no task, which is no news
    assert hm.load_dataset("u-v0").task.name == "unnamed"


def test_nothing_is_overwritten_unasked_and_nothing_is_left_behind(root):
    dataset = hm.load_dataset(make_episodes(), ARM)
    out = hm.write_minari(dataset[:1], root / "log-v0")
    with pytest.raises(DataError, match="exists already"):
        hm.write_minari(dataset, out)
    assert len(hm.load_dataset(out, ARM)) == 1
    hm.write_minari(dataset, out, overwrite=True)
    assert len(hm.load_dataset(out, ARM)) == 4
    with pytest.raises(DataError, match="no episodes to write"):
        hm.write_minari(dataset[:0], root / "empty-v0")
    (root / "file").touch()
    with pytest.raises(DataError, match="a part of that path is a file"):
        hm.write_minari(dataset, root / "file" / "log-v0")
    assert sorted(path.name for path in root.iterdir()) == ["file", "log-v0"]


# -- what Minari writes, himatch opens ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_himatch_equals_minari_on_what_minari_wrote(form, root):
    write_with_minari(make_episodes(), root, form)
    oracle = minari.load_dataset("arm/log-v0")
    dataset = hm.load_dataset("arm/log-v0", ARM)
    assert (len(dataset), dataset.steps) == (oracle.total_episodes, oracle.total_steps)
    for found, expected in zip(dataset, oracle.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(found.observations, expected.observations[:-1].astype(np.float32))
        np.testing.assert_array_equal(found.final_observation, expected.observations[-1].astype(np.float32))
        np.testing.assert_array_equal(found.actions, expected.actions)
        np.testing.assert_array_equal(found.rewards, np.asarray(expected.rewards, dtype=np.float32))
        assert found.terminated == bool(expected.terminations[-1])


@pytest.mark.parametrize("place", ["", "data", "data/main_data.hdf5"])
def test_a_set_is_found_by_folder_data_folder_main_file_and_local_id(place, root):
    folder = write_with_minari(make_episodes(), root)
    by_path = hm.load_dataset(folder / place, ARM)
    assert by_path.lengths.tolist() == [7, 20, 5, 9]
    assert by_path.content_hash == hm.load_dataset("arm/log-v0", ARM).content_hash
    assert by_path.content_hash == hm.load_dataset("minari:arm/log-v0", ARM).content_hash  # there: no download


def test_a_download_that_fails_is_one_line(root, monkeypatch):
    def offline(dataset_id, force_download):
        raise OSError("no route\nto host")

    monkeypatch.setattr(minari, "download_dataset", offline)
    with pytest.raises(DataError, match=r"^minari:a/b-v0 cannot be downloaded \(OSError: no route\); check .*$"):
        hm.load_dataset("minari:a/b-v0")


def test_a_download_that_was_interrupted_is_done_again(root, monkeypatch):
    folder = write_with_minari(make_episodes(), root)
    (folder / "data" / "main_data.hdf5").rename(root / "kept")
    asked = []

    def fetch(dataset_id, force_download):
        asked.append((dataset_id, force_download))
        (root / "kept").rename(folder / "data" / "main_data.hdf5")

    monkeypatch.setattr(minari, "download_dataset", fetch)
    for _ in range(2):
        assert len(hm.load_dataset("minari:arm/log-v0", ARM)) == 4
    assert asked == [("arm/log-v0", True)]


def test_an_unknown_id_says_where_it_looked(root):
    with pytest.raises(DataError, match=rf"no Minari set of that id in {root}; to download one, write minari:ID"):
        hm.load_dataset("mujoco/hopper/expert-v0")


def test_medium_expert_is_two_sets_joined(root):
    write_with_minari(make_episodes(), root, "hdf5", "arm/medium-v0")
    write_with_minari(make_episodes((6, 4), seed=1), root, "parquet", "arm/expert-v0")
    joined = hm.load_dataset("arm/medium-v0 + arm/expert-v0", ARM)
    assert joined.lengths.tolist() == [7, 20, 5, 9, 6, 4]
    assert joined[4:].content_hash == hm.load_dataset("arm/expert-v0", ARM).content_hash


def test_the_environment_names_the_task_and_is_recorded(root):
    dataset = hm.load_dataset(write_with_minari(hopper_episodes(), root, env="Hopper-v5"))
    assert (dataset.task.name, dataset.env_id) == ("hopper", "Hopper-v5")
    assert dataset[:2].env_id == "Hopper-v5"
    assert dataset.rate == 125
    hm.write_minari(dataset, root / "kept-v0")
    assert hm.load_dataset("kept-v0", hm.Task("logs", 1000)).rate == 125
    spec = json.loads(json.loads((root / "kept-v0" / "data" / "metadata.json").read_text())["env_spec"])
    assert spec["kwargs"].get("frame_skip") is None


def test_an_environment_of_longer_steps_has_another_rate(root):
    folder = write_with_minari(hopper_episodes(), root, env="Hopper-v5")
    (path,) = folder.rglob("metadata.json")
    stored = json.loads(path.read_text())
    spec = json.loads(stored["env_spec"])
    spec["kwargs"]["frame_skip"] = 8
    path.write_text(json.dumps(stored | {"env_spec": json.dumps(spec)}))
    assert hm.load_dataset(folder).rate is None


def test_another_version_of_the_environment_is_a_warning(root):
    folder = write_with_minari(hopper_episodes(), root, env="Hopper-v4")
    with pytest.warns(HimatchWarning, match="recorded in Hopper-v4, but task hopper runs Hopper-v5"):
        dataset = hm.load_dataset(folder)
    assert (dataset.task.name, dataset.env_id) == ("hopper", "Hopper-v4")


def test_any_part_of_a_joined_source_may_be_of_another_version(root):
    write_with_minari(hopper_episodes(), root, dataset_id="new-v0", env="Hopper-v5")
    write_with_minari(hopper_episodes(), root, dataset_id="old-v0", env="Hopper-v4")
    with pytest.warns(HimatchWarning, match="recorded in Hopper-v4, but task hopper runs Hopper-v5"):
        hm.load_dataset("new-v0+old-v0")


# -- what himatch does not handle -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (spaces.Dict({"position": spaces.Box(-1, 1, (3,))}), "a Dict space"),
        (spaces.Tuple([spaces.Box(-1, 1, (3,))]), "a Tuple space"),
        (spaces.Discrete(4), "a Discrete space"),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), "pixels"),
        (spaces.Box(-1, 1, (2, 3)), "an array of shape"),
    ],
    ids=["dict", "tuple", "discrete", "image", "matrix"],
)
@pytest.mark.parametrize("which", ["observation", "action"])
def test_spaces_other_than_vectors_are_refused_by_name(space, kind, which, root):
    folder = write_with_himatch(make_episodes(), root)
    edit_metadata(folder, **{f"{which}_space": minari.serialization.serialize_space(space)})
    message = f"the {which} is {kind}.*; himatch handles continuous vectors only"
    if (which, kind) == ("action", "a Discrete space"):
        message = "a Discrete action is one number a step, not 2"  # as the episodes have
    with pytest.raises(DataError, match=message):
        hm.load_dataset(folder, ARM)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("space", "rows"),
    [
        (spaces.Dict({"position": spaces.Box(-1, 1, (3,))}), {"position": np.zeros((5, 3), np.float32)}),
        (spaces.Discrete(4), np.zeros(5, np.int64)),
    ],
    ids=["dict", "discrete"],
)
def test_what_minari_stores_for_other_spaces_is_refused_even_unannounced(form, space, rows, root):
    buffer = minari.data_collector.EpisodeBuffer(
        observations=rows,
        actions=np.zeros((4, 2), np.float32),
        rewards=np.zeros(4),
        terminations=np.zeros(4, bool),
        truncations=np.arange(4) == 3,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari would like an author, an environment, ...
        minari.create_dataset_from_buffers(
            "other-v0", [buffer], observation_space=space, action_space=spaces.Box(-1, 1, (2,)), data_format=form
        )
    with pytest.raises(DataError, match="himatch handles continuous vectors only"):
        hm.load_dataset("other-v0")
    edit_metadata(root / "other-v0", observation_space=...)
    with pytest.raises(DataError, match=r"continuous vectors only|must have shape"):
        hm.load_dataset("other-v0")


def test_image_rows_are_refused_even_unannounced(root):
    folder = write_with_himatch(make_episodes((4,)), root)
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        file["episode_0/observations"] = np.zeros((5, 8, 8, 3), np.uint8)
    with pytest.raises(DataError, match="each row of observations is pixels"):
        hm.load_dataset(folder)


# -- incomplete folders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_episode_is_noticed(form, root):
    folder = write_with_minari(make_episodes(), root, form)
    if form == "hdf5":
        with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
            del file["episode_1"]
    else:
        shutil.rmtree(folder / "data" / "1")
    with pytest.raises(DataError, match="metadata names 4 episodes, 3 are stored; the set is incomplete"):
        hm.load_dataset(folder, ARM)
    edit_metadata(folder, total_episodes=3, total_steps=21)
    with pytest.raises(DataError, match="episode 1 is missing"):
        hm.load_dataset(folder, ARM)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"total_episodes": 9}, "metadata names 9 episodes, 4 are stored"),
        ({"total_steps": 40}, "metadata names 40 steps, the episodes hold more"),
        ({"total_steps": 42}, "metadata names 42 steps, the episodes hold 41"),
        ({"total_steps": ...}, "does not say how many steps"),
        ({"total_steps": -1}, "does not say how many steps"),
        ({"data_format": "zarr"}, "unknown Minari data format 'zarr'"),
        ({"observation_space": "{"}, "damaged"),
        ({"observation_space": "[]"}, "damaged"),
        ({"env_spec": "{"}, "damaged"),
    ],
)
def test_wrong_metadata_is_refused(changes, complaint, root):
    folder = write_with_himatch(make_episodes(), root)
    edit_metadata(folder, **changes)
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset(folder)


def test_the_count_may_be_left_out_of_the_metadata(root):
    folder = write_with_himatch(make_episodes(), root)
    edit_metadata(folder, total_episodes=..., observation_space=..., action_space=..., himatch=...)
    assert hm.load_dataset(folder, ARM).lengths.tolist() == [7, 20, 5, 9]


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00"])
def test_unreadable_metadata_is_refused(content, root):
    folder = write_with_himatch(make_episodes(), root)
    (folder / "data" / "metadata.json").write_text(content)
    with pytest.raises(DataError, match=r"metadata\.json: .*(damaged|JSON object)"):
        hm.load_dataset(folder)


def test_the_main_file_may_be_missing(root):
    folder = write_with_himatch(make_episodes(), root)
    (folder / "data" / "main_data.hdf5").unlink()
    with pytest.raises(DataError, match="written-v0"):
        hm.load_dataset(folder)


@pytest.mark.parametrize("name", ["observations", "actions", "rewards", "terminations"])
def test_a_missing_column_is_named(name, root):
    folder = write_with_himatch(make_episodes(), root)
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        del file[f"episode_2/{name}"]
    with pytest.raises(DataError, match=f"episode 2 has no '{name}'"):
        hm.load_dataset(folder, ARM)


def test_gymnasium_knows_the_environments_of_the_tasks():
    """The warning above compares ids; both must be real ones."""
    assert {gymnasium.spec(hm.get_task(name).env_id).id for name in ("hopper", "ant")} == {"Hopper-v5", "Ant-v5"}
