"""FORMATS.md: what is wrong gets one line that names the file, the place and the remedy."""

import pickle

import h5py
import numpy as np
import pytest
from builders import (
    ARM,
    episode_dicts,
    flat_columns,
    make_episode,
    make_episodes,
    write_columns,
    write_csv,
    write_flat,
    write_npz,
    write_parquet,
    write_pickle,
    write_with_himatch,
)

import himatch as hm
from himatch.errors import DataError, HimatchError, TaskError

SINGLE = (write_flat, write_npz, write_pickle, write_csv, write_parquet)


def changed(name, change):
    """D4RL's columns with one of them changed, or removed where ``change`` is None."""
    columns = flat_columns(make_episodes())
    if change is None:
        del columns[name]
    else:
        columns[name] = change(columns[name])
    return columns


def poke(index, value):
    def change(column):
        column = column.astype(np.float64)
        column[index] = value
        return column

    return change


BAD_COLUMNS = {
    "no observations": ("observations", None, "no 'observations' in it (found: actions, "),
    "no actions": ("actions", None, "no 'actions' in it"),
    "flat observations": ("observations", lambda c: c[:, 0], "observations must have shape (steps, width), got (41,)"),
    "flat actions": ("actions", lambda c: c[:, 0], "actions must have shape (steps, width), got (41,)"),
    "images": ("observations", lambda c: np.zeros((41, 4, 4, 3)), "each row of observations is pixels"),
    "matrices": ("observations", lambda c: c[:, None], "an array of shape (1, 3)"),
    "discrete actions": ("actions", lambda c: c.astype(np.int64), "the action is discrete (int64)"),
    "complex": ("observations", lambda c: c.astype(complex), "observations are not numbers"),
    "text": ("rewards", lambda c: c.astype("S5"), "rewards are not numbers"),
    "short actions": ("actions", lambda c: c[:-1], "41 observations but actions has shape (40, 2)"),
    "short rewards": ("rewards", lambda c: c[:-1], "41 observations but rewards has shape (40,)"),
    "short terminals": ("terminals", lambda c: c[:-1], "41 observations but terminals has shape (40,)"),
    "scalar rewards": ("rewards", lambda c: c[0], "41 observations but rewards has shape ()"),
    "wide rewards": ("rewards", lambda c: np.stack([c, c], 1), "rewards must hold one number a step"),
    "narrow next": ("next_observations", lambda c: c[:, :2], "next_observations (41, 2) do not fit observations"),
    "no steps": ("observations", lambda c: c[:0], "there are no steps in it"),
    "NaN observation": (
        "observations",
        poke((9, 1), np.nan),
        "observations hold NaN or infinity (or a number beyond single precision) in episode 1, step 2",
    ),
    "infinite reward": (
        "rewards",
        poke(9, np.inf),
        "in episode 1, step 2; affected: 1 of 4 episodes (1)",
    ),
    "NaN action": (
        "actions",
        poke((40, 0), np.nan),
        "in episode 3, step 8; affected: 1 of 4 episodes (3)",
    ),
    "NaN final": ("next_observations", poke((6, 0), np.nan), "the final observation of episode 0 holds NaN"),
    "NaN terminal": ("terminals", poke(9, np.nan), "terminals hold NaN or infinity in step 9; write 1 there if"),
    "infinite timeout": ("timeouts", poke(40, -np.inf), "timeouts hold NaN or infinity in step 40; write 1 there if"),
    "too large": ("rewards", poke(9, 1e300), "a number beyond single precision"),
    "too large observation": ("observations", poke((6, 1), 1e300), "a number beyond single precision"),
    "too large final": ("next_observations", poke((40, 1), 1e300), "the final observation of episode 3"),
    "action range": ("actions", poke((9, 1), 3.0), "action 3 in episode 1, step 2, coordinate 1 is outside the range"),
}


def in_form(columns, form, folder):
    """Flat columns as a file, or as they are."""
    source = {"hdf5": folder / "log.hdf5", "npz": folder / "log.npz", "dictionary": columns}[form]
    if form == "hdf5":
        write_columns(columns, source)
    elif form == "npz":
        np.savez(source, **columns)
    return source


@pytest.mark.parametrize("name", BAD_COLUMNS)
@pytest.mark.parametrize("form", ["hdf5", "npz", "dictionary"])
def test_a_bad_flat_column(name, form, tmp_path):
    column, change, complaint = BAD_COLUMNS[name]
    columns = changed(column, change)
    with pytest.raises(DataError) as caught:
        hm.load_dataset(in_form(columns, form, tmp_path), ARM)
    assert_one_line(caught.value, complaint, "log." if form != "dictionary" else "arrays")


BAD_EPISODES = {
    "no actions": ("actions", None, "episode 2 has no 'actions' (found: label, next_observations, "),
    "no rewards": ("rewards", None, "episode 2: some episodes have rewards and others have not"),
    "no steps": ("observations", lambda a: a[:0], "episode 2: there are no steps in it"),
    "short rewards": ("rewards", lambda a: a[1:], "episode 2: 5 observations but rewards has shape (4,)"),
    "rank": ("observations", lambda a: a.ravel(), "episode 2: observations must have shape (steps, width)"),
    "width": ("observations", lambda a: a[:, :2], "episode 2"),
    "goes on": ("terminals", lambda a: a | (np.arange(5) == 1), "episode 2: terminates at step 1 and goes on"),
    "NaN": ("rewards", poke(3, np.nan), "rewards hold NaN or infinity"),
    "NaN step": (
        "observations",
        poke((3, 0), np.inf),
        "in episode 2, step 3; affected: 1 of 4 episodes (2)",
    ),
    "NaN terminal": ("terminals", poke(4, np.nan), "episode 2: terminals hold NaN or infinity in step 4; write 1"),
    "NaN for all": ("done", lambda _: np.float64("nan"), "episode 2: done hold NaN or infinity in step 4; write 1"),
    "range": ("actions", poke((3, 1), -9), "action -9 in episode 2, step 3, coordinate 1 is outside the range -1 to 1"),
    "text": ("actions", lambda a: a.astype(str), "episode 2: actions are not numbers"),
    "next text": ("next_observations", lambda a: a.astype(str), "episode 2: next_observations are not numbers"),
    "final text": ("final_observation", lambda a: np.array(["a", "b", "c"]), "episode 2: the final observation (<U1"),
    "final width": ("final_observation", lambda a: np.zeros(9), "of shape (9,)) is not like the others"),
}


@pytest.mark.parametrize("name", BAD_EPISODES)
def test_a_bad_episode_in_a_list(name, tmp_path):
    key, change, complaint = BAD_EPISODES[name]
    episodes = episode_dicts(make_episodes())
    if change is None:
        del episodes[2][key]
    else:
        episodes[2][key] = change(episodes[2].get(key))
        if name == "width":
            del episodes[2]["next_observations"]
    path = tmp_path / "log.pkl"
    path.write_bytes(pickle.dumps(episodes))
    with pytest.raises(DataError) as caught:
        hm.load_dataset(path, ARM)
    assert_one_line(caught.value, complaint, "log.pkl")


BAD_MINARI = {
    "rank": ("observations", lambda a: a[:, 0], "episode 2: observations must have shape"),
    "one short": ("observations", lambda a: a[:-1], "episode 2: expected one observation more than actions"),
    "no steps": ("actions", lambda a: a[:0], "episode 2 has no steps; drop it from the data"),
    "short rewards": ("rewards", lambda a: a[1:], "episode 2: 5 observations but rewards has shape (4,)"),
    "width": ("observations", lambda a: a[:, :2], "observations have 2 numbers, task arm has 3"),
    "action width": ("actions", lambda a: a[:, :1], "episode 2: its widths differ"),
    "goes on": ("terminations", lambda a: a | (np.arange(5) == 1), "episode 2: terminates at step 1 and goes on"),
    "NaN": ("rewards", poke(3, np.nan), "rewards hold NaN or infinity"),
    "NaN step": (
        "observations",
        poke((3, 0), np.nan),
        "in episode 2, step 3; affected: 1 of 4 episodes (2)",
    ),
    "NaN final": ("observations", poke((5, 0), np.nan), "the final observation of episode 2 holds NaN"),
    "too large": ("observations", poke((5, 0), 1e300), "the final observation of episode 2 holds NaN"),
    "NaN termination": ("terminations", poke(4, np.nan), "episode 2: terminations hold NaN or infinity in step 4"),
    "range": ("actions", poke((3, 1), -9), "action -9 in episode 2, step 3, coordinate 1 is outside the range -1 to 1"),
    "discrete": ("actions", lambda a: a.astype(int), "episode 2: the action is discrete"),
    "scalar": ("actions", lambda a: np.float32(1), "episode 2"),
}


@pytest.mark.parametrize("name", BAD_MINARI)
def test_a_bad_episode_in_a_minari_folder(name, tmp_path):
    column, change, complaint = BAD_MINARI[name]
    folder = write_with_himatch(make_episodes(), tmp_path)
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        group = file["episode_2"]
        values = change(group[column][...])
        del group[column]
        group[column] = values
    with pytest.raises(DataError) as caught:
        hm.load_dataset(folder, ARM)
    assert_one_line(caught.value, complaint, "written-v0")


BAD_LENGTHS = {
    "sum": ([7, 20, 5, 8], "lengths add up to 40 steps, but there are 41 observations"),
    "zero": ([7, 20, 5, 9, 0], "episode 4 has no steps; drop it from the data"),
    "negative": ([7, 20, 15, -1], "episode 3 has no steps"),
    "fractions": ([7.0, 20.0, 14.0], "lengths must be whole numbers, one per episode"),
    "none": ([], "lengths must be whole numbers, one per episode"),
    "scalar": (41, "lengths must be whole numbers, one per episode"),
    "huge": ([2**62, 2**62, 2**62, 2**62], "lengths add up to"),
}


@pytest.mark.parametrize("name", BAD_LENGTHS)
def test_bad_lengths(name, tmp_path):
    lengths, complaint = BAD_LENGTHS[name]
    np.savez(tmp_path / "log.npz", **flat_columns(make_episodes()), lengths=lengths)
    with pytest.raises(DataError) as caught:
        hm.load_dataset(tmp_path / "log.npz", ARM)
    assert_one_line(caught.value, complaint, "log.npz")


@pytest.mark.parametrize("name", ["labels", "final_observations"])
@pytest.mark.parametrize("value", [np.zeros(3), np.float32(1)])
def test_what_belongs_to_episodes_must_be_as_many(name, value):
    with pytest.raises(DataError, match=rf"4 episodes, but {name} has shape"):
        hm.load_dataset({**flat_columns(make_episodes()), "lengths": [7, 20, 5, 9], name: value}, ARM)


@pytest.mark.parametrize("form", ["hdf5", "npz", "dictionary"])
def test_flat_columns_that_do_not_say_where_episodes_end(form, tmp_path):
    columns = {name: flat_columns(make_episodes())[name] for name in ("observations", "actions", "next_observations")}
    columns["next_observations"] = columns["next_observations"][::-1]  # which would say it, if they followed
    with pytest.raises(DataError) as caught:
        hm.load_dataset(in_form(columns, form, tmp_path), ARM)
    assert_one_line(caught.value, "cannot tell where episodes end; add lengths", "(episode, episode_id, episode_ids)")
    for key in ("terminals", "terminated", "timeouts", "truncations", "dones", "found: actions, next_observations"):
        assert key in str(caught.value)


@pytest.mark.parametrize("write", SINGLE)
@pytest.mark.parametrize("task", ["hopper", "halfcheetah", "ant"])
def test_the_width_of_another_task(write, task, tmp_path):
    path = write(make_episodes(), tmp_path)
    with pytest.raises(DataError) as caught:
        hm.load_dataset(path, task)
    width = hm.get_task(task).observation_width
    assert_one_line(
        caught.value, f"observations have 3 numbers, task {task} has {width}; is it the right task?", "log."
    )


def test_the_action_width_of_another_task(tmp_path):
    path = write_flat([make_episode(np.random.default_rng(0), 4, obs=17, act=3)], tmp_path)
    with pytest.raises(DataError, match="actions have 3 numbers, task walker2d has 6; is it the right task"):
        hm.load_dataset(path, "walker2d")


def test_an_unknown_task_is_named_with_those_there_are(tmp_path):
    with pytest.raises(TaskError) as caught:
        hm.load_dataset(write_flat(make_episodes(), tmp_path), "humanoid")
    assert_one_line(caught.value, "known: halfcheetah, hopper, walker2d, ant", "unknown task 'humanoid'")


@pytest.mark.parametrize("write", SINGLE)
@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.9])
def test_a_truncated_file(write, kept, tmp_path):
    path = write(make_episodes(), tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: kept if isinstance(kept, int) else int(len(content) * kept)])
    if write is write_csv and kept == 0.9:
        path.write_bytes(content[: content.rindex(b",")])  # a cut inside a number could not be noticed
    with pytest.raises(DataError) as caught:
        hm.load_dataset(path, ARM)
    assert_one_line(caught.value, "", "log.")


@pytest.mark.parametrize("suffix", [".hdf5", ".h5", ".npz", ".pkl", ".csv", ".parquet"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\x89PNG\r\n\x1a\n" * 9, "käse\n".encode("latin1") * 9])
def test_a_file_that_is_not_what_its_name_says(suffix, content, tmp_path):
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        hm.load_dataset(path, ARM)
    assert_one_line(caught.value, "", f"log{suffix}")


def test_a_damaged_file_says_so(tmp_path):
    path = tmp_path / "log.hdf5"
    path.write_bytes(b"no HDF5 at all")
    with pytest.raises(DataError, match=r"log\.hdf5: cannot be read, the file is damaged or not what its name says"):
        hm.load_dataset(path, ARM)


def test_an_hdf5_file_is_known_by_its_content(tmp_path):
    path = write_flat(make_episodes(), tmp_path).rename(tmp_path / "log.dat")
    assert len(hm.load_dataset(path, ARM)) == 4


def test_a_dictionary_of_observations_in_hdf5(tmp_path):
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        file["observations/position"] = np.zeros((4, 3))
        file["actions"] = np.zeros((4, 2))
    with pytest.raises(DataError, match="observations is a dictionary; himatch handles continuous vectors only"):
        hm.load_dataset(tmp_path / "log.hdf5", ARM)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nowhere.hdf5", "no such file or folder"),
        ("x" * 300, "no such file or folder"),
        ("folder", "is a folder but not a Minari one"),
        ("notes.txt", "do not know how to read .txt; known: .hdf5"),
        ("notes", "do not know how to read a file without a suffix"),
    ],
)
def test_sources_that_are_none(name, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "notes").touch()
    with pytest.raises(DataError) as caught:
        hm.load_dataset(name, ARM)
    assert_one_line(caught.value, complaint, name)


@pytest.mark.parametrize(
    "source", [42, None, [], (), {}, [{"observations": 1}], [1, 2], {"observations": [[1.0], [1.0, 2.0]]}]
)
def test_python_objects_that_hold_no_episodes(source):
    with pytest.raises(DataError) as caught:
        hm.load_dataset(source, ARM)
    assert_one_line(caught.value, "", "")


def test_a_dictionary_of_lists_is_read():
    columns = {name: column.tolist() for name, column in flat_columns(make_episodes()).items()}
    assert hm.load_dataset(columns, ARM).lengths.tolist() == [7, 20, 5, 9]


def test_names_from_a_file_cannot_write_to_the_terminal(tmp_path):
    write_columns({"\x1b[2J\nowned": np.zeros(3), **{f"c{i}": np.zeros(1) for i in range(50)}}, tmp_path / "log.hdf5")
    with pytest.raises(DataError) as caught:
        hm.load_dataset(tmp_path / "log.hdf5", ARM)
    assert_one_line(caught.value, "'\\x1b[2J\\nowned'", " and 31 more")
    assert "\x1b" not in str(caught.value)


def assert_one_line(error: HimatchError, complaint: str, place: str) -> None:
    message = str(error)
    assert "\n" not in message
    assert complaint in message
    assert place in message
    assert isinstance(error, ValueError)


def test_a_link_to_nothing_is_no_missing_column(tmp_path):
    path = write_columns(flat_columns(make_episodes()), tmp_path / "log.hdf5")
    with h5py.File(path, "a") as file:
        del file["rewards"]
        file["rewards"] = h5py.ExternalLink("gone.hdf5", "rewards")
    with pytest.raises(DataError, match=r"log\.hdf5: rewards is a link to something that is not there"):
        hm.load_dataset(path, ARM)


@pytest.mark.parametrize(
    ("name", "shown"), [("~nobody-here/log", "~nobody-here/log: no such"), ("a\nb", r"'a\\nb': no")]
)
def test_strange_names_are_one_line(name, shown):
    with pytest.raises(DataError, match=rf"^{shown}.*$"):
        hm.load_dataset(name)
