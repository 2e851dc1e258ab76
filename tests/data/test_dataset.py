"""The dataset: selection, identity, memory-mapped loading, joined sources, action ranges."""

import dataclasses
import errno
import json
import os

import numpy as np
import pytest
from builders import ARM, FORMATS, assert_same, flat_columns, make_episode, make_episodes, write_csv, write_npz
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch._runtime.seals import sealed
from himatch.errors import DataError, HimatchWarning


@pytest.fixture
def dataset():
    return hm.load_dataset(make_episodes(), ARM)


# -- selection ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        (slice(9, None), []),
        ([2, 0, 2], [2, 0, 2]),
        ([-1], [3]),
        ([], []),
        (np.array([True, False, False, True]), [0, 3]),
        ([True, False, False, True], [0, 3]),
        (np.array([], dtype=np.int64), []),
    ],
)
def test_slices_masks_and_indices_select(dataset, key, expected):
    chosen = dataset[key]
    episodes = make_episodes()
    assert isinstance(chosen, hm.TrajectoryDataset)
    assert (chosen.task, chosen.source) == (dataset.task, dataset.source)
    assert len(chosen) == len(expected)
    for found, i in zip(chosen, expected, strict=True):
        assert_same(found, episodes[i])
    np.testing.assert_array_equal(chosen.lengths, [len(episodes[i]) for i in expected])
    np.testing.assert_allclose(chosen.returns, [episodes[i].total_reward for i in expected])
    assert chosen.labels == tuple(episodes[i].label for i in expected)
    assert chosen.terminated.tolist() == [episodes[i].terminated for i in expected]
    assert chosen.steps == len(chosen.observations) == len(chosen.actions) == len(chosen.rewards)
    if expected:
        np.testing.assert_array_equal(chosen.observations, np.concatenate([episodes[i].observations for i in expected]))


def test_selections_of_selections(dataset):
    assert_same(dataset[1:][[2, 0]][1], make_episodes()[1])
    assert dataset[::-1][::-1].content_hash == dataset.content_hash


@pytest.mark.parametrize("key", [4, -5, [4], [0, -5]])
def test_episodes_that_are_not_there(dataset, key):
    with pytest.raises(IndexError):
        dataset[key]


@pytest.mark.parametrize("key", [[0.5], "first", None, [[0, 1]], [True]])
def test_keys_that_are_no_selection(dataset, key):
    with pytest.raises((IndexError, TypeError)):
        dataset[key]


@pytest.mark.parametrize("size", [1, 6, 100])
@pytest.mark.parametrize("key", [slice(None), slice(1, 3), [2, 0, 2], [3, 1], []])
def test_the_rows_of_a_selection_are_found_in_what_it_shares(dataset, key, size):
    chosen = dataset[key]
    assert chosen.packed is dataset.packed
    for shared, picked in ((dataset.packed.actions, chosen.actions), (dataset.packed.rewards, chosen.rewards)):
        blocks = list(chosen.blocks(shared, size))
        assert all(len(block) == size for block in blocks[:-1])
        np.testing.assert_array_equal(np.concatenate([shared[:0], *blocks]), picked)
    rows = np.arange(chosen.steps) + np.repeat(chosen.shifts, chosen.lengths)
    np.testing.assert_array_equal(dataset.packed.observations[rows], chosen.observations)
    assert (chosen.observation_width, chosen.action_width) == (3, 2)


def test_filter_keeps_what_it_is_told(dataset):
    long = dataset.filter(lambda trajectory: len(trajectory) > 6)
    assert long.lengths.tolist() == [7, 20, 9]
    assert len(dataset.filter(lambda trajectory: False)) == 0


def test_a_dataset_is_a_sequence(dataset):
    assert [len(t) for t in reversed(dataset)] == [9, 5, 20, 7]
    assert dataset[np.int64(1)].label == "walk"


def test_the_repr_says_what_is_in_it(dataset):
    assert repr(dataset).startswith("TrajectoryDataset(4 episodes, 41 steps, task 'arm', returns ")
    assert "0 episodes" in repr(dataset[:0])


def test_views_are_read_only_and_share_memory(dataset):
    for array in (
        dataset.observations,
        dataset[1:3].actions,
        dataset.rewards,
        dataset[0].observations,
        dataset[0].final_observation,
    ):
        assert not array.flags.writeable
    assert np.shares_memory(dataset[1:3].observations, dataset.observations)
    with pytest.raises(ValueError, match="read-only"):
        dataset[0].actions[0, 0] = 1


def test_an_episode_of_a_dataset_is_no_copy(tmp_path):
    source = write_npz(make_episodes(), tmp_path)
    for read in (hm.load_dataset(source, ARM), hm.load_dataset(source, ARM, mmap=tmp_path / "map")):
        packed = read.packed
        for episode in (read[2], list(read)[2]):
            assert np.shares_memory(episode.observations, packed.observations)
            assert np.shares_memory(episode.actions, packed.actions)
            assert np.shares_memory(episode.rewards, packed.rewards)
        assert packed.observations.flags.writeable  # those who clip actions still can


def test_loading_copies_what_it_is_given():
    columns = flat_columns(make_episodes())
    dataset = hm.load_dataset(columns, ARM)
    before = dataset.content_hash
    columns["observations"][:] = 0
    assert dataset[:].content_hash == before


def test_a_log_without_rewards_has_no_returns():
    dataset = hm.load_dataset([hm.Trajectory(np.zeros((2, 3)), np.zeros((2, 2)))], ARM)
    assert dataset.rewards is None
    with pytest.raises(DataError, match="no rewards"):
        _ = dataset.returns


# -- identity -------------------------------------------------------------------------------------------------------


def test_the_hash_is_of_the_content_whatever_the_format(tmp_path):
    bare = [dataclasses.replace(e, final_observation=None, label=None) for e in make_episodes()]
    hashes = set()
    for name, form in FORMATS.items():
        (tmp_path / name).mkdir()
        read = hm.load_dataset(form.write(make_episodes(), tmp_path / name), ARM)
        hashes.add(
            hm.load_dataset([dataclasses.replace(e, final_observation=None, label=None) for e in read]).content_hash
        )
    assert hashes == {hm.load_dataset(bare, ARM).content_hash}


def test_slicing_and_repacking_keep_the_hash(dataset):
    chosen = dataset[[2, 0]]
    assert hm.load_dataset(list(chosen), ARM).content_hash == chosen.content_hash
    assert chosen.content_hash != dataset[[0, 2]].content_hash != dataset.content_hash


CHANGES = {
    "observations": lambda e: e.observations + np.float32(1e-6) * (np.arange(3) == 1),
    "actions": lambda e: e.actions * np.float32(0.9999),
    "rewards": lambda e: e.rewards + np.float32(1e-6) * (np.arange(len(e)) == 2),
    "final_observation": lambda e: -e.final_observation,
    "terminated": lambda e: not e.terminated,
    "label": lambda e: "hop",
}


@pytest.mark.parametrize("field", CHANGES)
@pytest.mark.parametrize("episode", [0, 3])
def test_any_change_changes_the_hash(dataset, field, episode):
    episodes = make_episodes()
    episodes[episode] = dataclasses.replace(episodes[episode], **{field: CHANGES[field](episodes[episode])})
    assert hm.load_dataset(episodes, ARM).content_hash != dataset.content_hash


@pytest.mark.parametrize("field", ["rewards", "final_observation", "label"])
def test_leaving_something_out_changes_the_hash(dataset, field):
    episodes = [dataclasses.replace(e, **{field: None}) for e in make_episodes()]
    assert hm.load_dataset(episodes, ARM).content_hash != dataset.content_hash


@given(st.integers(0, 40), st.integers(0, 2), st.integers(0, 31))
def test_any_single_bit_changes_the_hash(row, column, bit):
    columns = flat_columns(make_episodes())
    before = hm.load_dataset(columns, ARM).content_hash
    columns["rewards"].view(np.uint32)[row] ^= np.uint32(1 << (bit % 23))  # mantissa: the number stays finite
    assert hm.load_dataset(columns, ARM).content_hash != before


def test_the_same_numbers_in_other_columns_are_another_dataset():
    numbers = np.arange(10, dtype=np.float32)
    one = hm.Trajectory(numbers[None, :3], numbers[None, 3:5])
    two = hm.Trajectory(numbers[None, :2], numbers[None, 2:5])
    three = hm.Trajectory(numbers[None, :3], numbers[None, 3:4], numbers[4:5])
    assert len({hm.load_dataset([episode]).content_hash for episode in (one, two, three)}) == 3


# -- memory-mapped loading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_mapped_loading_equals_loading(name, tmp_path):
    source = FORMATS[name].write(make_episodes(), tmp_path)
    plain, mapped = hm.load_dataset(source, ARM), hm.load_dataset(source, ARM, mmap=tmp_path / "map")
    assert mapped.content_hash == plain.content_hash
    assert (mapped.source, mapped.env_id, mapped.labels) == (plain.source, plain.env_id, plain.labels)
    assert (mapped[[2, 0]].mapped, plain[[2, 0]].mapped) == (True, False)
    for array in (mapped.observations, mapped.actions, mapped.rewards):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable


def test_what_is_in_memory_is_not_mapped(tmp_path):
    with pytest.raises(DataError, match="in memory already"):
        hm.load_dataset(make_episodes(), ARM, mmap=tmp_path / "map")
    assert not (tmp_path / "map").exists()


def test_the_folder_is_reused_while_the_source_is_the_same(tmp_path):
    source = write_npz(make_episodes(), tmp_path)
    first = hm.load_dataset(source, ARM, mmap=tmp_path / "map")
    written = (tmp_path / "map" / "packed.json").stat().st_mtime_ns
    assert hm.load_dataset(source, ARM, mmap=tmp_path / "map").content_hash == first.content_hash
    assert (tmp_path / "map" / "packed.json").stat().st_mtime_ns == written


@pytest.mark.parametrize("name", ["observations", "actions", "rewards", "final_observations"])
def test_a_changed_number_in_a_mapped_array_is_noticed_when_all_is_read(name, tmp_path, run):
    source = write_npz(make_episodes(), tmp_path)
    hm.load_dataset(source, mmap=tmp_path / "map")
    path = tmp_path / "map" / f"{name}.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    dataset = hm.load_dataset(source, mmap=tmp_path / "map")  # opening takes no time, and says nothing
    said = rf"{name}.npy: damaged \(its checksum differs\); remove .*map, it is made again"
    for episodes in (dataset, dataset[:1]):  # of which training keeps the hash
        with pytest.raises(DataError, match=said):
            _ = episodes.content_hash
    code, _, err = run("data", "inspect", source, "--mmap", tmp_path / "map")
    assert (code, "its checksum differs" in err) == (2, True)
    with pytest.raises(DataError, match=said):
        hm.train(hm.CDT("obs[0]"), dataset, out=tmp_path / "run", preset="cpu", context=2, steps=5, quiet=True)


def test_mapped_arrays_without_checksums_are_made_again(tmp_path):
    source = write_npz(make_episodes(), tmp_path)
    first = hm.load_dataset(source, ARM, mmap=tmp_path / "map")
    manifest = tmp_path / "map" / "packed.json"
    stored = json.loads(manifest.read_text())
    del stored["request"]["sum"]
    for facts in stored["files"].values():
        del facts["crc32"]
    manifest.write_text(json.dumps(sealed(stored)))
    assert hm.load_dataset(source, ARM, mmap=tmp_path / "map").content_hash == first.content_hash
    assert "crc32" in manifest.read_text()


def test_a_changed_source_is_mapped_anew(tmp_path):
    source = write_npz(make_episodes(), tmp_path)
    first = hm.load_dataset(source, ARM, mmap=tmp_path / "map").content_hash
    assert write_npz(make_episodes(seed=1), tmp_path) == source
    os.utime(source, (0, 0))  # of another time, however coarse the file system's clock is
    assert hm.load_dataset(source, ARM, mmap=tmp_path / "map").content_hash != first


def test_a_changed_mapping_is_mapped_anew(tmp_path):
    source = write_csv(make_episodes(), tmp_path)
    assert hm.load_dataset(source, mmap=tmp_path / "map").observation_width == 3
    (tmp_path / "log.toml").write_text('observations = ["obs_0"]')
    assert hm.load_dataset(source, mmap=tmp_path / "map").observation_width == 1
    (tmp_path / "log.toml").unlink()
    assert hm.load_dataset(source, mmap=tmp_path / "map").observation_width == 3


def test_the_folder_of_another_source_is_refused(tmp_path):
    hm.load_dataset(write_npz(make_episodes(), tmp_path), ARM, mmap=tmp_path / "map")
    other = write_npz(make_episodes(seed=1), tmp_path).rename(tmp_path / "other.npz")
    with pytest.raises(DataError, match=r"map holds '.*log\.npz', not .*; choose another folder for mmap"):
        hm.load_dataset(other, ARM, mmap=tmp_path / "map")


def test_a_folder_that_holds_something_else_is_not_touched(tmp_path):
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "thesis.tex").touch()
    with pytest.raises(DataError, match="map holds something else than mapped arrays"):
        hm.load_dataset(write_npz(make_episodes(), tmp_path), ARM, mmap=tmp_path / "map")
    assert [path.name for path in (tmp_path / "map").iterdir()] == ["thesis.tex"]
    (tmp_path / "empty").mkdir()
    assert hm.load_dataset(tmp_path / "log.npz", ARM, mmap=tmp_path / "empty").mapped


def test_nothing_is_left_behind_when_mapped_loading_fails(tmp_path):
    (tmp_path / "log.npz").write_bytes(b"not a zip")
    with pytest.raises(DataError, match="damaged"):
        hm.load_dataset(tmp_path / "log.npz", ARM, mmap=tmp_path / "map")
    assert [path.name for path in tmp_path.iterdir()] == ["log.npz"]


def test_a_mapped_folder_is_checked_against_a_task_named_later(tmp_path):
    source = write_npz(make_episodes(), tmp_path)
    hm.load_dataset(source, mmap=tmp_path / "map")
    assert hm.load_dataset(source, ARM, mmap=tmp_path / "map").task is ARM
    with pytest.raises(DataError, match="observations have 3 numbers, task hopper has 11"):
        hm.load_dataset(source, "hopper", mmap=tmp_path / "map")


def test_rounding_in_a_mapped_folder_is_clipped_for_a_task_named_later(tmp_path):
    columns = flat_columns(make_episodes())
    columns["actions"][4, 1] = 1.00001
    np.savez(tmp_path / "log.npz", **columns)
    hm.load_dataset(tmp_path / "log.npz", mmap=tmp_path / "map")
    with pytest.warns(HimatchWarning, match="1 action values clipped"):
        mapped = hm.load_dataset(tmp_path / "log.npz", ARM, mmap=tmp_path / "map")
    assert mapped.actions.max() <= 1


@pytest.mark.parametrize("damage", ["manifest", "missing", "short", "lengths"])
def test_a_damaged_mapped_folder_is_refused(damage, tmp_path):
    source, folder = write_npz(make_episodes(), tmp_path), tmp_path / "map"
    hm.load_dataset(source, ARM, mmap=folder)
    if damage == "manifest":
        (folder / "packed.json").write_text("{}")
    elif damage == "missing":
        (folder / "actions.npy").unlink()
    elif damage == "short":
        np.save(folder / "rewards.npy", np.zeros(3, np.float32))
    else:
        facts = json.loads((folder / "packed.json").read_text())
        (folder / "packed.json").write_text(json.dumps({**facts, "lengths": [7, 20, 5, 90]}))
    with pytest.raises(DataError, match="map"):
        hm.load_dataset(source, ARM, mmap=folder)


# -- joined sources -------------------------------------------------------------------------------------------------


def write_two(folder, **more):
    one = write_npz(make_episodes(), folder).rename(folder / "one.npz")
    rng = np.random.default_rng(1)
    two = write_npz([make_episode(rng, n, **more) for n in (30, 4)], folder).rename(folder / "two.npz")
    return f"{one}+{two}"


@pytest.mark.parametrize("mapped", [False, True])
def test_sources_are_joined(mapped, tmp_path):
    source = write_two(tmp_path)
    dataset = hm.load_dataset(source, mmap=tmp_path / "map" if mapped else None)
    assert dataset.lengths.tolist() == [7, 20, 5, 9, 30, 4]
    assert dataset.task.horizon == 30
    assert dataset.source == source
    assert dataset.name == dataset[:2].name == "one.npz+two.npz"
    assert dataset[:4].content_hash == hm.load_dataset(tmp_path / "one.npz").content_hash
    assert dataset[4:].content_hash == hm.load_dataset(tmp_path / "two.npz").content_hash
    if mapped:
        assert isinstance(dataset.observations, np.memmap)
        assert not list((tmp_path / "map").glob("part-*"))


@pytest.mark.parametrize("mapped", [False, True])
def test_a_list_of_files_is_joined_too(mapped, tmp_path):
    joined = hm.load_dataset(write_two(tmp_path))
    for kind in (list, tuple):
        source = kind([tmp_path / "one.npz", str(tmp_path / "two.npz")])
        dataset = hm.load_dataset(source, mmap=tmp_path / "map" if mapped else None)
        assert (dataset.source, dataset.content_hash) == (joined.source, joined.content_hash)
    (tmp_path / "two.npz").rename(tmp_path / "1+1.npz")
    assert len(hm.load_dataset([tmp_path / "one.npz", str(tmp_path / "1+1.npz")])) == 6
    with pytest.raises(DataError, match="no such file"):
        hm.load_dataset([tmp_path / "one.npz", "nowhere.npz"])


@pytest.mark.parametrize("mapped", [False, True])
def test_files_that_match_a_pattern_are_joined_in_order(mapped, tmp_path, monkeypatch):
    write_two(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".half.npz").touch()
    expected = hm.load_dataset("one.npz+two.npz").content_hash
    for source in ("*.npz", tmp_path / "*.npz", "o??.npz + [t]wo.npz", ["one.npz", "t*.npz"]):
        dataset = hm.load_dataset(source, mmap=f"map-{len(str(source))}" if mapped else None)
        assert dataset.content_hash == expected
    assert hm.load_dataset("*.npz").source == "*.npz"
    (tmp_path / "two.npz").rename("[1].npz")  # a name, not a pattern
    assert len(hm.load_dataset("one.npz+[1].npz")) == len(hm.load_dataset(["one.npz", "[1].npz"])) == 6
    with pytest.raises(DataError, match=r"^w\*\.npz: no file or folder matches the pattern"):
        hm.load_dataset("w*.npz")


def test_a_mapped_pattern_sees_new_files(tmp_path):
    write_two(tmp_path)
    first = write_npz(make_episodes(), tmp_path)
    assert len(hm.load_dataset(tmp_path / "*.npz", mmap=tmp_path / "map")) == 10
    first.unlink()
    assert len(hm.load_dataset(tmp_path / "*.npz", mmap=tmp_path / "map")) == 6


@pytest.mark.parametrize(("more", "complaint"), [({"obs": 4}, "3 and 4 observations"), ({"act": 1}, "2 and 1 actions")])
def test_different_widths_cannot_be_joined(more, complaint, tmp_path):
    with pytest.raises(DataError, match=f"differ in width: .*{complaint}"):
        hm.load_dataset(write_two(tmp_path, **more))


def test_rewards_in_one_source_only_cannot_be_joined(tmp_path):
    source = write_two(tmp_path)
    with np.load(tmp_path / "two.npz") as file:
        np.savez(tmp_path / "two.npz", **{name: file[name] for name in file.files if name != "rewards"})
    with pytest.raises(DataError, match="has rewards and another has not"):
        hm.load_dataset(source)


def test_different_tasks_cannot_be_joined(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("halfcheetah", "walker2d"):
        write_npz([make_episode(rng, 4, obs=17, act=6)], tmp_path).rename(tmp_path / f"{name}-medium.npz")
    with pytest.raises(DataError, match=r"different tasks \(halfcheetah, walker2d\)"):
        hm.load_dataset(f"{tmp_path}/halfcheetah-medium.npz+{tmp_path}/walker2d-medium.npz")


def test_joined_sources_of_one_name_are_told_apart(tmp_path):
    for day in ("monday", "tuesday"):
        (tmp_path / day / "logs").mkdir(parents=True)
        write_npz(make_episodes(), tmp_path / day / "logs")
    one, two = (next((tmp_path / day / "logs").iterdir()) for day in ("monday", "tuesday"))
    dataset = hm.load_dataset(f"{one}+{two}")
    assert dataset.name == f"monday/logs/{one.name}+tuesday/logs/{one.name}"
    assert hm.load_dataset([str(one)] * 2).name == f"{one.name}+{one.name}"  # the very same
    assert hm.load_dataset("+".join([str(one)] * 300)).name.count("+") == 299  # no file is called that


@pytest.mark.parametrize("source", ["+", "a.npz+", "+a.npz", "a.npz++b.npz"])
def test_a_plus_with_nothing_beside_it_is_refused(source):
    with pytest.raises(DataError, match="nothing beside one of the"):
        hm.load_dataset(source)


def test_a_path_with_a_plus_in_it_is_one_source(tmp_path):
    path = write_npz(make_episodes(), tmp_path).rename(tmp_path / "a+b.npz")
    assert len(hm.load_dataset(str(path))) == 4


def test_many_joined_sources_may_make_a_long_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_npz(make_episodes(), tmp_path)
    assert len(hm.load_dataset("+".join(["log.npz"] * 50))) == 200


# -- the range of actions -------------------------------------------------------------------------------------------


def with_action(value):
    columns = flat_columns(make_episodes())
    columns["actions"][9, 1] = value
    return columns


@pytest.mark.parametrize("value", [1 + 1e-6, -1 - 1e-4])
def test_rounding_is_clipped_with_a_warning(value):
    with pytest.warns(HimatchWarning, match=r"1 action values clipped .*overshot by rounding"):
        dataset = hm.load_dataset(with_action(value), ARM)
    assert dataset.actions[9, 1] == np.sign(value)


@pytest.mark.parametrize("value", [1.01, -7.0])
def test_more_than_rounding_is_refused_and_clipped_on_request(value):
    expected = rf"action {value:g} in episode 1, step 2, coordinate 1 is outside the range -1 to 1 of task arm; --clip"
    with pytest.raises(DataError, match=expected):
        hm.load_dataset(with_action(value), ARM)
    with pytest.warns(HimatchWarning, match=r"1 action values clipped .*as requested"):
        dataset = hm.load_dataset(with_action(value), ARM, clip_actions=True)
    assert dataset.actions[9, 1] == np.sign(value)


def test_each_coordinate_may_have_its_own_range():
    task = dataclasses.replace(ARM, action_low=(-1, -9), action_high=(1, 9))
    assert hm.load_dataset(with_action(7.0), task).actions[9, 1] == 7


def test_without_a_range_any_action_is_allowed():
    assert hm.load_dataset(with_action(7.0)).actions[9, 1] == 7


def test_a_full_disk_is_one_line_where_arrays_are_mapped(hopper, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = hm.write_minari(hopper, tmp_path / "set-v0")
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DataError, match="the disk is full"):
        hm.load_dataset(folder, mmap=tmp_path / "mapped")
    assert [path.name for path in tmp_path.iterdir()] == ["set-v0"]


def test_mapped_data_is_checked_anew_for_another_range(tmp_path):
    def task(limit):
        return dataclasses.replace(ARM, action_low=-limit, action_high=limit)

    folder = hm.write_minari(hm.load_dataset(make_episodes(), ARM), tmp_path / "set-v0")
    largest = max(float(np.abs(e.actions).max()) for e in hm.load_dataset(folder, ARM))
    assert hm.load_dataset(folder, task(2 * largest), mmap=tmp_path / "mapped").task.action_high == 2 * largest
    with pytest.raises(DataError, match="action"):
        hm.load_dataset(folder, task(largest / 2), mmap=tmp_path / "mapped")


def test_notes_come_again_with_mapped_data(tmp_path):
    task = dataclasses.replace(ARM, action_low=-0.1, action_high=0.1)
    folder = hm.write_minari(hm.load_dataset(make_episodes(), ARM), tmp_path / "set-v0")
    for _ in range(2):
        with pytest.warns(HimatchWarning, match="clipped to the task's range"):
            hm.load_dataset(folder, task, clip_actions=True, mmap=tmp_path / "mapped")
