"""Episodes with missing or infinite numbers, which may be left out, whatever the source."""

import pickle
import re

import h5py
import numpy as np
import pytest
from builders import (
    ARM,
    assert_same,
    episode_dicts,
    flat_columns,
    make_episodes,
    table,
    write_columns,
    write_rows,
    write_with_himatch,
)

import himatch as hm
from himatch.errors import DataError, HimatchWarning

BAD = (1, 2)  # episodes: one misses an observation, the other has an infinite action, which is out of range too


def spoiled_columns():
    columns = flat_columns(make_episodes())
    del columns["next_observations"]
    columns["observations"][12, 1] = np.nan
    columns["actions"][28, 0] = np.inf
    return columns


def spoiled_dicts(folder):
    episodes = episode_dicts(make_episodes())
    episodes[1]["observations"][5, 1] = np.nan
    episodes[2]["actions"][1, 0] = np.inf
    return episodes


def spoiled_npz(folder):
    np.savez(folder / "log.npz", **spoiled_columns())
    return folder / "log.npz"


def spoiled_pickle(folder):
    (folder / "log.pkl").write_bytes(pickle.dumps(spoiled_dicts(folder)))
    return folder / "log.pkl"


def spoiled_csv(folder):
    columns = table(make_episodes())
    columns["obs_1"][12], columns["act_0"][28] = "", "inf"
    return write_rows(columns, folder / "log.csv")


def spoiled_minari(folder):
    path = write_with_himatch(make_episodes(), folder)
    with h5py.File(path / "data" / "main_data.hdf5", "r+") as file:
        file["episode_1/observations"][5, 1] = np.nan
        file["episode_2/actions"][1, 0] = np.inf
    return path


SPOILED = {
    "list": spoiled_dicts,
    "dictionary": lambda folder: spoiled_columns(),
    "hdf5": lambda folder: write_columns(spoiled_columns(), folder / "log.hdf5"),
    "npz": spoiled_npz,
    "pickle": spoiled_pickle,
    "csv": spoiled_csv,
    "minari": spoiled_minari,
}


@pytest.mark.parametrize("form", SPOILED)
def test_bad_episodes_are_refused_or_left_out(form, tmp_path):
    source = SPOILED[form](tmp_path)
    names = "'run 1', 'run 2'" if form == "csv" else "1, 2"
    with pytest.raises(DataError, match=rf"episode .*1'?, step 5.*affected: 2 of 4 episodes \({names}\); .*--drop-bad"):
        hm.load_dataset(source, ARM)
    with pytest.warns(HimatchWarning, match=rf"2 of 4 episodes \({names}\) left out, .*: .*step 5.*; .*step 1"):
        dataset = hm.load_dataset(source, ARM, drop_bad=True)
    for found, expected in zip(dataset, [make_episodes()[i] for i in (0, 3)], strict=True):
        assert_same(found, expected, final=found.final_observation is not None, label=found.label is not None)


@pytest.mark.filterwarnings("ignore:.*left out, as requested")
@pytest.mark.parametrize("form", ["npz", "csv"])
def test_mapped_sets_leave_the_same_out(form, tmp_path):
    source = SPOILED[form](tmp_path)
    plain = hm.load_dataset(source, ARM, drop_bad=True)
    for _ in range(2):  # filled, and opened again
        with pytest.warns(HimatchWarning, match="left out, as requested"):
            mapped = hm.load_dataset(source, ARM, drop_bad=True, mmap=tmp_path / "map")
        assert mapped.mapped
        assert mapped.content_hash == plain.content_hash
    with pytest.raises(DataError, match="affected: 2 of 4"):
        hm.load_dataset(source, ARM, mmap=tmp_path / "map")


def test_every_joined_source_leaves_its_own_out(tmp_path):
    with pytest.warns(HimatchWarning) as notes:
        joined = hm.load_dataset([spoiled_csv(tmp_path), spoiled_npz(tmp_path)], ARM, drop_bad=True)
    assert joined.lengths.tolist() == [7, 9, 7, 9]
    assert len([w for w in notes if re.search(r"log\.(csv|npz): 2 of 4 episodes", str(w.message))]) == 2


def test_an_unknown_final_observation_counts_too():
    columns = flat_columns(make_episodes())
    columns["next_observations"][6, 0] = np.nan
    with pytest.warns(HimatchWarning, match=r"1 of 4 episodes \(0\) left out, .*: the final observation of episode 0"):
        assert hm.load_dataset(columns, ARM, drop_bad=True).lengths.tolist() == [20, 5, 9]


def test_other_episodes_are_checked_all_the_same():
    columns = spoiled_columns()
    columns["actions"][0, 0] = 3
    with pytest.raises(DataError, match="action 3 in episode 0, step 0, coordinate 0 is outside the range") as caught:
        hm.load_dataset(columns, ARM, drop_bad=True)
    assert "NaN" not in str(caught.value)


def test_something_must_be_left():
    columns = flat_columns(make_episodes())
    columns["rewards"][:] = np.nan
    with pytest.raises(DataError, match=r"rewards hold NaN .*nothing is left"):
        hm.load_dataset(columns, ARM, drop_bad=True)


def test_good_data_is_whole(recwarn):
    assert len(hm.load_dataset(make_episodes(), ARM, drop_bad=True)) == 4
    assert not recwarn.list


def test_the_command_line_leaves_out_what_it_is_asked_to(run, tmp_path):
    path = spoiled_csv(tmp_path)
    code, _, err = run("data", "inspect", path)
    assert code == 2
    assert "--drop-bad" in err
    code, out, err = run("data", "inspect", path, "--drop-bad")
    assert (code, err) == (0, "")
    assert "left out, as requested" in out


@pytest.mark.filterwarnings("ignore:.*left out, as requested")
def test_an_episode_that_is_left_out_sets_no_horizon(tmp_path):
    source = spoiled_csv(tmp_path)  # of which the longest, of 20 steps, is bad
    assert hm.load_dataset(source, drop_bad=True).task.horizon == 9
    for _ in range(2):  # filled, and opened again
        assert hm.load_dataset(source, drop_bad=True, mmap=tmp_path / "map").task.horizon == 9


def test_an_episode_that_is_left_out_is_not_too_long(tmp_path):
    short = hm.Task(name="short", horizon=10)
    with pytest.warns(HimatchWarning) as notes:
        hm.load_dataset(spoiled_csv(tmp_path), short, drop_bad=True)
    assert not any("horizon" in str(one.message) for one in notes)
