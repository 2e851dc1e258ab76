"""Tables of logs: the mapping, the order of rows, and what is wrong with them."""

import gzip
from datetime import datetime, timedelta

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from builders import ARM, assert_same, make_episodes, table, write_csv, write_parquet, write_rows

import himatch as hm
from himatch.errors import DataError


def renamed(columns, **names):
    return {names.get(name, name): column for name, column in columns.items()}


def write_both(columns, folder):
    """The same table as CSV and as Parquet."""
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "log.parquet")
    return [write_rows(columns, folder / "log.csv"), folder / "log.parquet"]


def permuted(columns, order):
    return {name: [column[i] for i in order] for name, column in columns.items()}


def test_only_episode_observations_and_actions_are_needed(tmp_path):
    columns = table(make_episodes())
    for name in ("reward", "terminated", "label"):
        del columns[name]
    for path in write_both(columns, tmp_path):
        dataset = hm.load_dataset(path, ARM)
        assert dataset.lengths.tolist() == [7, 20, 5, 9]
        assert not dataset.has_rewards
        assert not dataset.terminated.any()
        assert dataset.labels == (None,) * 4


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_toml_file_beside_the_table_names_the_columns(write, tmp_path, monkeypatch):
    names = {
        "obs_0": "q",
        "obs_1": "dq",
        "obs_2": "height",
        "act_0": "torque_l",
        "act_1": "torque_r",
        "reward": "score",
    }
    monkeypatch.setattr("builders.table", lambda episodes: renamed(table(episodes), **names, episode="run"))
    episodes = make_episodes()
    path = write(episodes, tmp_path)
    path.with_suffix(".toml").write_text(
        'episode = "run"\nobservations = ["*q", "height"]\nactions = "torque_*"\nreward = "score"\n'
    )
    for found, expected in zip(hm.load_dataset(path, ARM), episodes, strict=True):
        assert_same(found, expected, final=False)


def test_a_compressed_table_is_read_by_its_name(tmp_path):
    episodes = make_episodes()
    plain = write_csv(episodes, tmp_path)
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for found, expected in zip(hm.load_dataset(packed, ARM), episodes, strict=True):
        assert_same(found, expected, final=False)
    (tmp_path / "log.toml").write_text('observations = "obs_0, obs_2"\n')  # says the same of both
    assert hm.load_dataset(packed).observation_width == hm.load_dataset(plain).observation_width == 2
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"log\.csv\.gz: .*damaged"):
        hm.load_dataset(packed, ARM)
    packed.write_bytes(plain.read_bytes())
    with pytest.raises(DataError, match=r"log\.csv\.gz: .*not what its name says \(BadGzipFile"):
        hm.load_dataset(packed, ARM)
    with pytest.raises(DataError, match=r"do not know how to read \.gz; known: .* \.csv\.gz"):
        hm.load_dataset(packed.rename(tmp_path / "log.npz.gz"), ARM)


def test_columns_given_in_python_override_the_toml_file(tmp_path):
    columns = {**table(make_episodes()), "other": table(make_episodes(seed=1))["reward"]}
    path = write_rows(columns, tmp_path / "log.csv")
    path.with_suffix(".toml").write_text('reward = "nothing"\nobservations = "obs_0, obs_2"\n')
    dataset = hm.load_dataset(path, columns={"reward": "other"})
    np.testing.assert_array_equal(dataset.rewards, np.float32(columns["other"]))
    assert dataset.observations.shape[1] == 2  # what the TOML file says still holds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('rewards = "r"', r"log\.toml: unknown key 'rewards'; known are actions, episode"),
        ("reward = 3", r"log\.toml: 'reward' must be a column name"),
        ('reward = ["a", "b"]', r"log\.toml: 'reward' must be a column name"),
        ("reward =", r"log\.toml: .*damaged"),
        ('observations = "joint*"', "no column matches 'joint\\*' for the observations .*--columns.observations"),
        ('actions = ["act_0", "act_7"]', "no column matches 'act_7' for the actions"),
        ('episode = "run"', "no column 'run' that says which episode .*--columns.episode"),
    ],
)
def test_a_wrong_mapping_is_refused(text, complaint, tmp_path):
    path = write_csv(make_episodes(), tmp_path)
    path.with_suffix(".toml").write_text(text)
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset(path, ARM)


def test_interleaved_episodes_are_sorted_out_by_a_step_column(tmp_path):
    episodes = make_episodes()
    columns = table(episodes)
    columns["step"] = [t for e in episodes for t in range(len(e))]
    order = np.argsort(columns["step"], kind="stable")  # step 0 of every episode, then step 1, ...
    for path in write_both(permuted(columns, order), tmp_path):
        for found, expected in zip(hm.load_dataset(path, ARM), episodes, strict=True):
            assert_same(found, expected, final=False)


def test_an_episode_that_comes_back_without_a_step_column_is_refused(tmp_path):
    columns = table(make_episodes((3, 2)))
    for path in write_both(permuted(columns, [0, 1, 3, 4, 2]), tmp_path):
        with pytest.raises(DataError, match=r"episode 'run 0' comes back in row 5 .*name a step column"):
            hm.load_dataset(path, ARM)


@pytest.mark.parametrize("time", [False, True], ids=["numbers", "times"])
def test_rows_are_put_in_order_by_a_step_column(time, tmp_path):
    episodes = make_episodes()
    columns = table(episodes)
    steps = [t for e in episodes for t in range(len(e))]
    columns["step"] = [datetime(2024, 5, 1, 23, 59, 59) + timedelta(milliseconds=50 * t) if time else t for t in steps]
    order = np.random.default_rng(0).permutation(len(steps))
    order = [0, 7, 27, 32, *(i for i in order if i not in (0, 7, 27, 32))]  # episodes keep the order they appear in
    for path in write_both(permuted(columns, order), tmp_path):
        for found, expected in zip(hm.load_dataset(path, ARM), episodes, strict=True):
            assert_same(found, expected, final=False)


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_steps_may_be_iso_times(zone, tmp_path):
    columns = table(make_episodes((3, 2)))
    columns["step"] = [f"2024-05-01T12:00:0{t}.25{zone}" for t in (0, 1, 2, 0, 1)]
    path = write_rows(permuted(columns, [1, 0, 2, 3, 4]), tmp_path / "log.csv")
    assert_same(hm.load_dataset(path, ARM)[0], make_episodes((3, 2))[0], final=False)


def test_a_step_that_comes_twice_is_refused(tmp_path):
    for path in write_both({**table(make_episodes((3, 2))), "step": [0, 1, 1, 0, 1]}, tmp_path):
        with pytest.raises(DataError, match="episode 'run 0' has the same step in rows 2 and 3; give every episode"):
            hm.load_dataset(path, ARM)


@pytest.mark.parametrize("step", [1.0, datetime(2024, 5, 1)], ids=["number", "time"])
def test_a_step_that_is_missing_is_refused(step, tmp_path):
    columns = {**table(make_episodes((2, 1))), "step": [step, None, step]}
    csv, parquet = write_both(columns, tmp_path)
    with pytest.raises(DataError, match=r"log\.csv: column step is empty in row 2; mend the row"):
        hm.load_dataset(csv, ARM)
    with pytest.raises(DataError, match=r"log\.parquet: episode 'run 0' has no step in row 2"):
        hm.load_dataset(parquet, ARM)


@pytest.mark.parametrize(
    ("name", "cell", "complaint"),
    [
        ("obs_1", "fast", "column obs_1 holds 'fast', which is no number in row 3"),
        ("obs_1", "", "column obs_1 is empty in row 3"),
        ("act_0", '"0,5"', "column act_0 holds '0,5', which is no number in row 3"),
        ("reward", " ", "column reward is empty in row 3"),
        ("step", "today", "column step holds 'today', which is no number in row 3"),
        ("step", "2024-13-01", "column step holds '2024-13-01', which is no number in row 3"),
    ],
)
def test_a_wrong_cell_of_csv_is_named_with_its_place(name, cell, complaint, tmp_path):
    columns = {**table(make_episodes((3, 2))), "step": [0, 1, 2, 0, 1]}
    columns[name][2] = cell.strip('"')
    with pytest.raises(DataError, match=rf"log\.csv: {complaint}; mend the row") as caught:
        hm.load_dataset(write_rows(columns, tmp_path / "log.csv"), ARM)
    assert "damaged" not in str(caught.value)


def test_a_short_row_of_csv_is_named(tmp_path):
    path = write_csv(make_episodes((2,)), tmp_path)
    path.write_text(path.read_text() + "\nrun 0,0.5\n")
    with pytest.raises(DataError, match=r"log\.csv: row 3 has 2 columns, the header has 9"):
        hm.load_dataset(path, ARM)


def test_semicolons_between_columns_are_recognised(tmp_path):
    path = write_csv(make_episodes(), tmp_path)
    path.write_text(path.read_text().replace(",", ";").replace(".", ","))
    with pytest.raises(DataError, match=r"log\.csv: its columns are separated by semicolons; write commas") as caught:
        hm.load_dataset(path, ARM)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "terminated"),
    [
        (["false", "TRUE", "False", "no"], [True, False]),
        (["0", "1", "0", "0"], [True, False]),
        (["0.0", "0.0", "", "1.0"], [False, True]),
        (["no", " yes ", "no", "no"], [True, False]),
    ],
)
def test_termination_is_understood_in_many_words(words, terminated, tmp_path):
    for path in write_both({**table(make_episodes((2, 2))), "terminated": words}, tmp_path):
        assert hm.load_dataset(path, ARM).terminated.tolist() == terminated


def test_a_flag_that_is_neither_is_refused(tmp_path):
    for path in write_both({**table(make_episodes((2, 1))), "terminated": ["no", "maybe", "no"]}, tmp_path):
        with pytest.raises(DataError, match="'maybe' in the terminated column is neither true nor false"):
            hm.load_dataset(path, ARM)


def test_a_blank_label_is_no_label(tmp_path):
    columns = {**table(make_episodes((2, 1))), "label": [None, None, "flip"], "terminated": [None, True, None]}
    for path in write_both(columns, tmp_path):
        dataset = hm.load_dataset(path, ARM)
        assert dataset.labels == (None, "flip")
        assert dataset.terminated.tolist() == [True, False]


def test_episodes_may_be_numbers_and_keep_their_order(tmp_path):
    episodes = make_episodes((2, 3, 1))
    columns = {**table(episodes), "episode": [10, 10, 2, 2, 2, 7]}
    for path in write_both(columns, tmp_path):
        assert hm.load_dataset(path, ARM).lengths.tolist() == [2, 3, 1]


def test_quotes_byte_order_marks_and_spaces_in_csv_are_read(tmp_path):
    rows = [
        'episode, obs_0,obs_1,obs_2,act_0,act_1,"note, with comma"',
        '"run, 1",1,2,3,0.5,-0.5,"a, b"',
        '"run, 1",4,5,6,0,0,#x',
    ]
    (tmp_path / "log.csv").write_text("\ufeff" + "\r\n".join(rows), encoding="utf-8")
    (episode,) = hm.load_dataset(tmp_path / "log.csv", ARM)
    np.testing.assert_array_equal(episode.observations, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(episode.actions, [[0.5, -0.5], [0, 0]])


def test_a_cell_that_is_no_number_is_named(tmp_path):
    columns = table(make_episodes((2, 1)))
    columns["obs_1"] = ["1.0", "fast", "2.0"]
    for path in write_both(columns, tmp_path):
        with pytest.raises(DataError, match=rf"{path.name}: .*'fast'"):
            hm.load_dataset(path, ARM)


def test_an_empty_cell_is_refused(tmp_path):
    columns = table(make_episodes((2, 1)))
    columns["obs_1"][1] = None
    for path in write_both(columns, tmp_path):
        with pytest.raises(DataError, match=path.name):
            hm.load_dataset(path, ARM)


@pytest.mark.parametrize("missing", ["episode", "obs_0", "act_0"])
def test_a_missing_column_is_named_with_those_there_are(missing, tmp_path):
    columns = {name: c for name, c in table(make_episodes()).items() if not name.startswith(missing[:3])}
    for path in write_both(columns, tmp_path):
        with pytest.raises(DataError, match=r"no column .*\(columns: "):
            hm.load_dataset(path, ARM)


def test_an_empty_table_is_refused(tmp_path):
    for path in write_both({name: [] for name in table(make_episodes())}, tmp_path):
        with pytest.raises(DataError, match=r"the table has no rows|no episodes"):
            hm.load_dataset(path, ARM)
    (tmp_path / "log.csv").write_text("")
    with pytest.raises(DataError, match="no column 'episode'"):
        hm.load_dataset(tmp_path / "log.csv", ARM)


def test_a_ragged_csv_is_refused(tmp_path):
    path = write_csv(make_episodes(), tmp_path)
    path.write_text(path.read_text() + "run 3,0.5\n")
    with pytest.raises(DataError, match=r"log\.csv: "):
        hm.load_dataset(path, ARM)


def test_upper_case_suffixes_are_tables_too(tmp_path):
    path = write_csv(make_episodes(), tmp_path).rename(tmp_path / "LOG.CSV")
    assert hm.load_dataset(path, ARM).lengths.tolist() == [7, 20, 5, 9]
