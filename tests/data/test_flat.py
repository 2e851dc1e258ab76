"""Where episodes end in D4RL's flat files, and what may be believed."""

import warnings
from dataclasses import replace

import h5py
import numpy as np
import pytest
from builders import ARM, assert_same, flat_columns, make_episode, make_episodes, write_columns
from hypothesis import assume, given
from hypothesis import strategies as st

import himatch as hm
from himatch.errors import DataError, HimatchWarning


def lengths(columns, task=ARM):
    return hm.load_dataset(columns, task).lengths.tolist()


def without(columns, *names):
    return {name: column for name, column in columns.items() if name not in names}


def test_a_last_episode_cut_short_is_kept_and_truncated():
    columns = flat_columns(make_episodes((7, 20, 5)))
    cut = {name: column[:-2] for name, column in columns.items()}
    dataset = hm.load_dataset(cut, ARM)
    assert dataset.lengths.tolist() == [7, 20, 3]
    assert dataset.terminated.tolist() == [True, False, False]
    np.testing.assert_array_equal(dataset[-1].final_observation, cut["next_observations"][-1])


def test_the_time_out_step_is_never_dropped():
    episodes = make_episodes((7, 20, 20, 20))
    dataset = hm.load_dataset(without(flat_columns(episodes), "next_observations"), ARM)
    assert dataset.steps == 67
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected, final=False, label=False)


def test_without_time_outs_the_horizon_tells_and_says_so():
    columns = without(flat_columns(make_episodes((7, 20, 20, 20, 4))), "timeouts", "next_observations")
    with pytest.warns(HimatchWarning, match=r"no time-outs in it .*horizon of 20 steps, in 2 places"):
        assert lengths(columns) == [7, 20, 20, 20, 4]


def test_continuity_finds_early_time_outs_that_no_flag_marks():
    assert lengths(without(flat_columns(make_episodes((7, 12, 5, 9))), "timeouts")) == [7, 12, 5, 9]


def test_without_time_outs_continuity_and_task_nothing_can_be_told():
    columns = without(flat_columns(make_episodes()), "timeouts", "next_observations")
    with pytest.raises(DataError, match=r"cannot tell where episodes end.*name the task"):
        hm.load_dataset(columns)


def test_missing_time_outs_are_added_by_continuity():
    columns = flat_columns(make_episodes((7, 12, 5, 9, 6, 8)))
    columns["timeouts"][7 + 12 - 1] = False
    with pytest.warns(HimatchWarning, match="repaired from next_observations: 1 added, 0 time-outs") as caught:
        assert lengths(columns) == [7, 12, 5, 9, 6, 8]
    assert caught[0].filename == __file__  # whoever loads sees a line of their own


def test_time_outs_inside_an_episode_are_ignored():
    columns = flat_columns(make_episodes((7, 12, 5, 9, 6, 8)))
    columns["timeouts"][7 + 5] = True
    with pytest.warns(HimatchWarning, match="0 added, 1 time-outs inside an episode ignored"):
        assert lengths(columns) == [7, 12, 5, 9, 6, 8]


def test_no_repair_makes_an_episode_longer_than_the_horizon():
    columns = flat_columns(make_episodes((7, 12, 5, 9, 6, 8)))
    first = without(columns)
    first["next_observations"][18] = first["observations"][19]  # 12 + 5 steps run on and fit the horizon of 20
    with pytest.warns(HimatchWarning, match="1 time-outs inside an episode ignored"):
        assert lengths(first) == [7, 17, 9, 6, 8]
    second = flat_columns(make_episodes((7, 16, 5, 9, 6, 8)))
    second["next_observations"][22] = second["observations"][23]  # 16 + 5 do not
    assert lengths(second) == [7, 16, 5, 9, 6, 8]


def test_shifted_copies_of_the_observations_are_not_believed():
    episodes = make_episodes((7, 12, 5, 9, 6))
    columns = flat_columns(episodes)
    columns["next_observations"] = np.roll(columns["observations"], -1, axis=0)
    with pytest.warns(HimatchWarning, match="do not continue the observations"):
        dataset = hm.load_dataset(columns, ARM)
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected, final=False, label=False)


def test_time_outs_that_run_on_by_design_are_believed_but_not_what_follows_them():
    """Some files write the next episode's first observation after a time-out; it belongs to nobody's episode."""
    episodes = make_episodes((7, 12, 5, 9, 6))
    columns = flat_columns(episodes)
    ends = np.flatnonzero(columns["timeouts"])
    columns["next_observations"][ends] = columns["observations"][ends + 1]
    dataset = hm.load_dataset(columns, ARM)
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected, final=expected.terminated, label=False)


def test_transitions_in_random_order_are_not_believed():
    columns = flat_columns(make_episodes((7, 12, 5, 9, 6)))
    order = np.random.default_rng(0).permutation(39)
    shuffled = {name: column[order] for name, column in columns.items()}
    ends = np.flatnonzero(shuffled["terminals"] | shuffled["timeouts"])
    expected = np.diff(np.union1d(ends, [38]), prepend=-1).tolist()
    with pytest.warns(HimatchWarning, match="do not continue the observations"):
        assert lengths(shuffled) == expected


def test_rewards_may_be_a_column():
    columns = flat_columns(make_episodes())
    flat = columns["rewards"]
    columns["rewards"] = flat[:, None]
    np.testing.assert_array_equal(hm.load_dataset(columns, ARM).rewards, flat)


@pytest.mark.parametrize("width", [111, 105, 27])
def test_ant_rows_are_cut_to_the_portable_27(width, tmp_path):
    rng = np.random.default_rng(0)
    episodes = [make_episode(rng, 6, obs=width, act=8, terminated=True) for _ in range(4)]
    dataset = hm.load_dataset(write_columns(flat_columns(episodes), tmp_path / "ant_medium-v2.hdf5"))
    assert dataset.task.name == "ant"
    assert dataset.lengths.tolist() == [6, 6, 6, 6]
    for found, expected in zip(dataset, episodes, strict=True):
        np.testing.assert_array_equal(found.observations, expected.observations[:, :27])
        np.testing.assert_array_equal(found.final_observation, expected.final_observation[:27])


def test_infos_and_metadata_are_ignored(tmp_path):
    path = write_columns(flat_columns(make_episodes()), tmp_path / "log.hdf5")
    with h5py.File(path, "a") as file:
        file["infos/qpos"] = np.zeros((41, 9))
        file["metadata/algorithm"] = "SAC"
    assert hm.load_dataset(path, ARM).lengths.tolist() == [7, 20, 5, 9]


def test_compressed_chunks_are_read_like_plain_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("himatch.data.flat.BLOCK", 8)  # several blocks and a ragged last one
    episodes = make_episodes((7, 12, 5, 9, 6))
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        for name, column in flat_columns(episodes).items():
            file.create_dataset(name, data=column, chunks=(4, *column.shape[1:]), compression="gzip")
    for found, expected in zip(hm.load_dataset(tmp_path / "log.hdf5", ARM), episodes, strict=True):
        assert_same(found, expected, label=False)


# -- other names, lengths and episode columns ---------------------------------------------------------------------

FLAG_NAMES = [("terminals", "timeouts"), ("terminations", "truncations"), ("terminated", "truncated")]


@pytest.mark.parametrize("form", ["hdf5", "npz"])
@pytest.mark.parametrize("names", FLAG_NAMES, ids="-".join)
def test_end_flags_are_known_by_all_their_names(names, form, tmp_path):
    episodes = make_episodes((7, 12, 5, 9, 6))
    renamed = dict(zip(("terminals", "timeouts"), names, strict=True))
    columns = {renamed.get(name, name): column for name, column in flat_columns(episodes).items()}
    for found, expected in zip(hm.load_dataset(written(columns, form, tmp_path), ARM), episodes, strict=True):
        assert_same(found, expected, label=False)


@pytest.mark.parametrize("task", [ARM, None])
@pytest.mark.parametrize("beside", [(), ("timeouts",), ("terminals",)], ids=["alone", "time-outs", "terminals"])
def test_dones_are_both_kinds_of_end(beside, task):
    episodes = make_episodes((7, 20, 5, 9))  # the second and the last time out, the second at the horizon
    columns = without(flat_columns(episodes), "next_observations")
    dones = {"dones": columns["terminals"] | columns["timeouts"]}
    kept = without(columns, *{"terminals", "timeouts"} - {*beside})
    dataset = hm.load_dataset({**kept, **dones}, task)
    assert dataset.lengths.tolist() == [7, 20, 5, 9]
    if beside:
        assert dataset.terminated.tolist() == [True, False, True, False]
    else:
        assert dataset.terminated.tolist() == [True, task is None, True, True]  # only the horizon tells them apart


def test_dones_that_leave_out_time_outs_are_cut_at_the_horizon():
    columns = without(flat_columns(make_episodes((7, 20, 5, 9))), "next_observations", "timeouts")
    columns["dones"] = columns.pop("terminals")
    with pytest.warns(HimatchWarning, match="no time-outs in it"):
        assert lengths(columns) == [7, 20, 5, 9]


@pytest.mark.parametrize("form", ["hdf5", "npz"])
@pytest.mark.parametrize("name", ["episode", "episode_id", "episode_ids"])
@pytest.mark.parametrize("kept", [(), ("terminals",)], ids=["alone", "terminals"])
def test_an_episode_column_says_where_episodes_end(kept, name, form, tmp_path):
    episodes = make_episodes((7, 12, 5, 9, 6))
    columns = without(flat_columns(episodes), *{"terminals", "timeouts"} - {*kept})
    columns[name] = np.repeat([4, 0, 3, 1, 2], [len(e) for e in episodes])[:, None]
    dataset = hm.load_dataset(written(columns, form, tmp_path))
    assert dataset.terminated.tolist() == [bool(kept) and e.terminated for e in episodes]
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, replace(expected, terminated=found.terminated), label=False)


def test_names_of_episodes_may_be_words(tmp_path):
    columns = without(flat_columns(make_episodes((3, 2))), "timeouts", "terminals")
    columns["episode"] = np.array([b"first"] * 3 + [b"then"] * 2)
    assert hm.load_dataset(written(columns, "hdf5", tmp_path), ARM).lengths.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("ids", "complaint"),
    [
        ([0, 0, 1, 1, 0], "episode 0 comes back in step 4 after another one; sort the steps"),
        ([0, 0, np.nan, 1, 1], "episode is NaN in step 2; give every step the number of its episode"),
        ([0, 0, 1], r"5 observations but episode has shape \(3,\)"),
        ([[0, 1]] * 5, "episode must hold one number a step"),
    ],
)
def test_a_wrong_episode_column_is_refused(ids, complaint):
    columns = without(flat_columns(make_episodes((3, 2))), "timeouts")
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset({**columns, "episode": ids}, ARM)


@pytest.mark.parametrize(
    "stated", [{"lengths": [3, 4]}, {"episode_id": [0] * 3 + [1] * 4}], ids=lambda s: next(iter(s))
)
def test_an_episode_that_terminates_and_goes_on_is_refused(stated):
    columns = without(flat_columns(make_episodes((3, 2, 2))), "next_observations")
    columns["terminals"][4] = True
    with pytest.raises(DataError, match="arrays: episode 1: terminates at step 1 and goes on"):
        hm.load_dataset({**columns, **stated}, ARM)


def test_lengths_final_observations_and_labels_are_read_from_hdf5(tmp_path):
    episodes = make_episodes((7, 12, 1, 9, 1))
    columns = without(flat_columns(episodes), "timeouts", "next_observations")
    columns["lengths"] = np.array([len(e) for e in episodes])
    columns["final_observations"] = np.stack([e.final_observation for e in episodes])
    columns["labels"] = np.array([e.label.encode() for e in episodes])
    for found, expected in zip(hm.load_dataset(written(columns, "hdf5", tmp_path), ARM), episodes, strict=True):
        assert_same(found, expected)


def test_what_follows_is_believed_however_short_episodes_of_known_length_are():
    episodes = make_episodes((1, 1, 2, 1, 1))
    columns = {**without(flat_columns(episodes), "timeouts"), "lengths": [1, 1, 2, 1, 1]}
    for found, expected in zip(hm.load_dataset(columns, ARM), episodes, strict=True):
        assert_same(found, expected, label=False)


def test_episodes_longer_than_the_horizon_are_remarked_upon():
    columns = flat_columns(make_episodes((7, 22, 5, 31)))
    with pytest.warns(HimatchWarning, match=r"2 of 4 episodes are longer than the 20 steps .*\(the longest has 31\)"):
        assert lengths(columns) == [7, 22, 5, 31]


def written(columns, form, folder):
    path = folder / f"log.{form}"
    if form == "npz":
        np.savez(path, **columns)
        return path
    return write_columns(columns, path)


# Three steps at least: a file of shorter ones jumps as often as transitions in random order do.
random_episodes = st.lists(st.tuples(st.integers(3, 20), st.booleans()), min_size=1, max_size=8)


@given(random_episodes, st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_writing_flat_and_reading_gives_the_same_episodes(endings, seed, with_timeouts, with_next):
    rng = np.random.default_rng(seed)
    if not with_timeouts and not with_next:  # then only the horizon tells a time-out
        endings = [(n if terminated else ARM.horizon, terminated) for n, terminated in endings]
    episodes = [make_episode(rng, n, terminated=terminated) for n, terminated in endings]
    columns = flat_columns(episodes)
    dropped = [name for name, kept in (("timeouts", with_timeouts), ("next_observations", with_next)) if not kept]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no time-outs in it", HimatchWarning)
        dataset = hm.load_dataset(without(columns, *dropped), ARM)
    assert dataset.lengths.tolist() == [n for n, _ in endings]
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected, final=with_next, label=False)


@given(random_episodes, st.data())
def test_wrong_time_outs_never_change_the_episodes_where_continuity_tells(endings, data):
    rng = np.random.default_rng(0)
    episodes = [make_episode(rng, n, terminated=terminated) for n, terminated in endings]
    columns = flat_columns(episodes)
    right = np.flatnonzero(columns["timeouts"][:-1])
    assume(len(right))
    inside = np.flatnonzero(~(columns["timeouts"] | columns["terminals"]))
    wrong = data.draw(st.lists(st.sampled_from(inside.tolist()), min_size=1, max_size=len(right), unique=True))
    columns["timeouts"][wrong] = True  # at most as many wrong ones as right ones, else the flags win
    with pytest.warns(HimatchWarning, match=f"{len(wrong)} time-outs inside an episode ignored"):
        assert lengths(columns) == [n for n, _ in endings]


def test_next_observations_alone_tell_where_episodes_end():
    episodes = make_episodes()
    columns = {name: flat_columns(episodes)[name] for name in ("observations", "actions", "next_observations")}
    assert hm.load_dataset(columns, ARM).lengths.tolist() == [len(episode) for episode in episodes]
