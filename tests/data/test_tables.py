"""Tables of logs: the mapping, the order of rows, and what is wrong with them."""

import dataclasses
import gzip
import re
from datetime import datetime, timedelta

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from builders import ARM, assert_same, make_episodes, table, write_csv, write_npz, write_parquet, write_rows

import himatch as hm
from himatch.errors import DataError, HimatchWarning


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
        ('rewards = "r"', r"log\.toml: unknown key 'rewards'; known are actions, continuous, discrete, episode"),
        ("reward = 3", r"log\.toml: 'reward' must be a column name"),
        ('reward = ["a", "b"]', r"log\.toml: 'reward' must be a column name"),
        ("reward =", r"log\.toml: .*damaged"),
        ('observations = "joint*"', "no column matches 'joint\\*' for the observations .*--columns.observations"),
        ('actions = ["act_0", "act_7"]', "no column matches 'act_7' for the actions"),
        ('episode = "run"', "no column 'run' that says which episode .*--columns.episode"),
        ('step = "stmp"', r"no column 'stmp' for the step \(columns: episode, .*obs_0, .*--columns.step"),
        ('step = "step"', "no column 'step' for the step"),
        ('label = "behavior"', "no column 'behavior' for the label"),
        ('reward = "scor"', "no column 'scor' for the reward"),
        ('terminated = "crash"', "no column 'crash' for the terminated"),
        ('actions = ["act_*", "obs_1"]', "obs_1 is among the observations and among the actions"),
        ('observations = "*"', "act_0, act_1 is among the observations and among the actions"),
    ],
)
def test_a_wrong_mapping_is_refused(text, complaint, tmp_path):
    path = write_csv(make_episodes(), tmp_path)
    path.with_suffix(".toml").write_text(text)
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset(path, ARM)


def test_names_given_in_python_must_be_there_too(tmp_path):
    for path in write_both(table(make_episodes()), tmp_path):
        with pytest.raises(DataError, match=rf"{path.name}: no column 'scor' for the reward"):
            hm.load_dataset(path, ARM, columns={"reward": "scor"})


def test_an_empty_name_leaves_a_role_out(tmp_path):
    for path in write_both(table(make_episodes()), tmp_path):
        dataset = hm.load_dataset(path, ARM, columns={"reward": "", "label": ""})
        assert not dataset.has_rewards
        assert set(dataset.labels) == {None}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("dropped", [("episode",), ("episode", "terminated", "label")])
def test_a_file_for_each_episode(kind, dropped, tmp_path):
    episodes = make_episodes()
    for number, episode in enumerate(episodes):
        columns = {name: column for name, column in table([episode]).items() if name not in dropped}
        csv, parquet = write_both(columns, tmp_path)
        path = csv if kind == "csv" else parquet
        path.rename(tmp_path / f"run_{number}.{kind}")
    pattern = str(tmp_path / f"run_*.{kind}")
    with pytest.raises(DataError, match=r"columns\.episode .*'' makes a table one episode"):
        hm.load_dataset(pattern, ARM)
    (tmp_path / "columns.toml").write_text('episode = ""\n')
    found = hm.load_dataset(pattern, ARM)
    assert found.lengths.tolist() == [7, 20, 5, 9]
    np.testing.assert_array_equal(found.observations, np.concatenate([episode.observations for episode in episodes]))
    (tmp_path / "run_2.toml").write_text('episode = "missing"\n')  # its own goes before that of all
    with pytest.raises(DataError, match=f"run_2.{kind}: no column 'missing'"):
        hm.load_dataset(pattern, ARM)


def test_columns_come_in_the_order_of_the_list(tmp_path):
    for path in write_both(table(make_episodes()), tmp_path):
        plain = hm.load_dataset(path)
        assert plain.observation_names == ("obs_0", "obs_1", "obs_2")
        assert plain.action_names == ("act_0", "act_1")
        for patterns in (["obs_2", "obs_*"], "obs_2, obs_*"):
            chosen = hm.load_dataset(path, columns={"observations": patterns})
            assert chosen.observation_names == chosen[1:].observation_names == ("obs_2", "obs_0", "obs_1")
            np.testing.assert_array_equal(chosen.observations, plain.observations[:, [2, 0, 1]])


def test_columns_of_the_same_name_are_refused(tmp_path):
    path = write_csv(make_episodes(), tmp_path)
    path.write_text(path.read_text().replace("obs_1", "obs_0", 1))
    with pytest.raises(DataError, match="there are several columns 'obs_0'; give each a name of its own"):
        hm.load_dataset(path, ARM)


def test_names_are_cut_as_observations_are(tmp_path):
    columns = {**table(make_episodes()), "obs_3": table(make_episodes())["obs_0"]}
    task = dataclasses.replace(ARM, prefix_only=True)
    for path in write_both(columns, tmp_path):
        assert hm.load_dataset(path, task).observation_names == ("obs_0", "obs_1", "obs_2")


# -- joined tables ----------------------------------------------------------------------------------------------------


def write_reordered(folder, change=lambda columns: columns):
    """A table, and the same with its columns the other way round and perhaps changed."""
    columns = table(make_episodes())
    first = write_rows(columns, folder / "first.csv")
    return first, write_rows(change(dict(reversed(columns.items()))), folder / "second.csv")


@pytest.mark.parametrize("mapped", [False, True])
def test_joined_tables_are_put_in_the_order_of_the_first(mapped, tmp_path):
    paths = write_reordered(tmp_path)
    for _ in range(2):  # mapped anew, and opened again
        joined = hm.load_dataset(paths, ARM, mmap=tmp_path / "map" if mapped else None)
        assert joined.observation_names == ("obs_0", "obs_1", "obs_2")
        assert joined.action_names == ("act_0", "act_1")
        for found, expected in zip(joined, make_episodes() * 2, strict=True):
            assert_same(found, expected, final=False)
    assert hm.load_dataset(paths[1], ARM).observation_names == ("obs_2", "obs_1", "obs_0")


def test_ranges_are_checked_in_the_common_order(tmp_path):
    columns = table(make_episodes())
    columns["act_0"] = [5 * action for action in columns["act_0"]]
    paths = [write_rows(c, tmp_path / f"{i}.csv") for i, c in enumerate((columns, dict(reversed(columns.items()))))]
    task = dataclasses.replace(ARM, action_low=(-5.0, -1.0), action_high=(5.0, 1.0))
    assert len(hm.load_dataset(paths, task)) == 8


@pytest.mark.parametrize("wide", [False, True])
def test_joined_tables_with_other_columns_are_refused(wide, tmp_path):
    def change(columns):
        renamed_ = renamed(columns, obs_1="obs_9")
        return {**renamed_, "obs_5": columns["obs_0"]} if wide else renamed_

    paths = write_reordered(tmp_path, change)
    only = "obs_9, obs_5" if wide else "obs_9"
    with pytest.raises(DataError, match=rf"second\.csv: its observations are .*: {only} is only here, obs_1 is not;"):
        hm.load_dataset(paths)


def test_what_has_no_names_joins_what_has(tmp_path):
    paths = [write_npz(make_episodes(), tmp_path), *write_reordered(tmp_path)]
    joined = hm.load_dataset(paths, ARM)
    assert joined.observation_names == ("obs_0", "obs_1", "obs_2")
    assert hm.load_dataset(paths[0], ARM).observation_names == hm.load_dataset(paths[0], ARM).action_names == ()
    np.testing.assert_array_equal(joined[4].observations, joined[8].observations)


# -- the order of rows ------------------------------------------------------------------------------------------------


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
    for path, place in zip(write_both(permuted(columns, [0, 1, 3, 4, 2]), tmp_path), ("line 6", "row 5"), strict=True):
        with pytest.raises(DataError, match=rf"episode 'run 0' comes back in {place} .*name a step column"):
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
        with pytest.raises(
            DataError, match=r"episode 'run 0' has the same step in (row 2 and row 3|line 3 and line 4);"
        ):
            hm.load_dataset(path, ARM)


@pytest.mark.parametrize("step", [1.0, datetime(2024, 5, 1)], ids=["number", "time"])
def test_a_step_that_is_missing_is_refused(step, tmp_path):
    columns = {**table(make_episodes((2, 1))), "step": [step, None, step]}
    for path, place in zip(write_both(columns, tmp_path), ("line 3", "row 2"), strict=True):
        with pytest.raises(
            DataError, match=rf"{path.name}: episode 'run 0' has no step in {place}; affected: .*; fill it in"
        ):
            hm.load_dataset(path, ARM)


@pytest.mark.parametrize(
    ("name", "cell", "complaint"),
    [
        ("obs_1", "fast", "column obs_1 holds 'fast'"),
        ("act_0", "0;5", "column act_0 holds '0;5'"),
        ("step", "today", "column step holds 'today'"),
        ("step", "2024-13-01", "column step holds '2024-13-01'"),
    ],
)
def test_a_wrong_cell_is_named_with_its_place(name, cell, complaint, tmp_path):
    columns = {**table(make_episodes((3, 2))), "step": [0, 1, 2, 0, 1]}
    columns[name] = [cell if i == 2 else str(value) for i, value in enumerate(columns[name])]
    for path, place in zip(write_both(columns, tmp_path), ("line 4", "row 3"), strict=True):
        with pytest.raises(
            DataError, match=rf"{path.name}: {complaint} in {place}, which is no number; affected.* mend the row"
        ):
            hm.load_dataset(path, ARM)


@pytest.mark.parametrize("cell", ["idle", [0.1, 0.2]], ids=["text", "list"])
def test_a_column_of_parquet_that_holds_no_numbers_is_named(cell, tmp_path):
    path = write_both({**table(make_episodes((2, 1))), "obs_1": [cell] * 3}, tmp_path)[1]
    with pytest.raises(DataError, match=r"column obs_1 holds ('idle'|array\(.*\)) in row 1, which is no number"):
        hm.load_dataset(path, ARM)


KINDS = {"nan": "no finite number", "inf": "no finite number", "NA": "text", "1e300": "beyond single precision"}


@pytest.mark.parametrize("cell", ["", None, " ", *KINDS])
@pytest.mark.parametrize("name", ["obs_1", "act_0", "reward"])
def test_a_missing_number_is_named_in_all_tables(name, cell, tmp_path):
    columns = table(make_episodes((3, 2, 4)))
    columns[name] = [cell if i in (2, 6) else str(value) for i, value in enumerate(columns[name])]
    for path, place in zip(write_both(columns, tmp_path), ("line 4", "row 3"), strict=True):
        with pytest.raises(DataError) as caught:
            hm.load_dataset(path, ARM)
        held = "is empty, NaN, infinite or beyond single precision"
        if path.suffix == ".csv" or cell is not None:
            held = f"holds {cell!r}, which is {KINDS[cell]}," if (cell or "").strip() else "is empty"
        assert str(caught.value) == (
            f"{path}: column {name} {held} in episode 'run 0', step 2 ({place}); column {name} {held} in episode "
            f"'run 2', step 1 ({place[:-1]}{int(place[-1]) + 4}); affected: 2 of 3 episodes ('run 0', 'run 2'); clean "
            "the log or leave them out (--drop-bad, drop_bad=True)"
        )


def test_places_are_those_of_the_file(tmp_path):
    """Rows out of order, a blank line, and a cell that goes over two lines."""
    columns = {**table(make_episodes((3, 2))), "step": [0, 1, 2, 0, 1], "note": ["a\nb", "", "", "", ""]}
    columns["obs_1"][4] = ""
    path = write_rows(permuted(columns, [0, 4, 3, 2, 1]), tmp_path / "log.csv")
    path.write_text(path.read_text().replace("\nrun 1", "\n\nrun 1", 1))
    with pytest.raises(DataError, match=r"episode 'run 1', step 1 \(line 5\)"):
        hm.load_dataset(path, ARM)
    assert path.read_text().splitlines()[4].startswith("run 1")


def test_a_cell_that_is_too_long_for_the_reader_of_places_still_has_one(tmp_path):
    columns = {**table(make_episodes((2, 1))), "note": ["x" * 200_000, "", ""]}
    columns["obs_1"][1] = ""
    with pytest.raises(DataError, match=r"episode 'run 0', step 1 \(row 2\)"):
        hm.load_dataset(write_rows(columns, tmp_path / "log.csv"), ARM)


def test_an_action_out_of_range_is_named_by_its_column(tmp_path):
    columns = table(make_episodes((2, 1)))
    columns["act_1"][2] = 3.0
    for path, place in zip(write_both(columns, tmp_path), ("line 4", "row 3"), strict=True):
        with pytest.raises(DataError, match=rf"action 3 in episode 'run 1', step 0 \({place}\), column act_1 is "):
            hm.load_dataset(path, ARM)


def test_what_is_wrong_with_an_episode_is_said_by_its_name(tmp_path):
    for path in write_both({**table(make_episodes((2, 2))), "terminated": [0, 1, 1, 0]}, tmp_path):
        with pytest.raises(DataError, match="episode 'run 1': terminates at step 0 and goes on"):
            hm.load_dataset(path, ARM)


def test_flags_among_the_observations_are_one_and_zero(tmp_path):
    columns = {**table(make_episodes((2, 1))), "obs_1": [True, False, True]}
    for path in write_both(columns, tmp_path):
        assert hm.load_dataset(path, ARM).observations[:, 1].tolist() == [1, 0, 1]


def test_a_short_row_of_csv_is_named(tmp_path):
    path = write_csv(make_episodes((2,)), tmp_path)
    path.write_text(path.read_text() + "\nrun 0,0.5\n")
    with pytest.raises(DataError, match=r"log\.csv: line 5 has 2 columns, the header has 9"):
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


def test_an_episode_with_two_labels_is_refused(tmp_path):
    columns = {**table(make_episodes((3, 2))), "label": ["walk", "", "flip", "walk", "walk"]}
    for path, place in zip(write_both(columns, tmp_path), ("line 4", "row 3"), strict=True):
        with pytest.raises(
            DataError, match=rf"episode 'run 0' is labelled 'walk' and in {place} 'flip'; affected.*; give each"
        ):
            hm.load_dataset(path, ARM)
        assert len(hm.load_dataset(path, ARM, columns={"label": ""})) == 2


def test_a_label_need_not_stand_in_every_row(tmp_path):
    columns = {**table(make_episodes((3, 2))), "label": ["", "walk", "", "flip", ""]}
    for path in write_both(columns, tmp_path):
        assert hm.load_dataset(path, ARM).labels == ("walk", "flip")


# -- gaps -------------------------------------------------------------------------------------------------------------


def times(steps, kind, rng):
    """Steps as a robot writes them: counted, as seconds that jitter, as times."""
    if kind == "counted":
        return steps
    seconds = [1.7e9 + 0.02 * step + rng.uniform(0, 0.002) for step in steps]
    return seconds if kind == "seconds" else [datetime.fromtimestamp(second) for second in seconds]


@pytest.mark.parametrize("kind", ["counted", "seconds", "times"])
@pytest.mark.parametrize("gap", [False, True])
def test_missing_rows_are_noted_once(kind, gap, tmp_path, recwarn):
    episodes = make_episodes((20, 15, 18))
    steps = [t + 6 * (gap and i == 1 and t > 9) for i, e in enumerate(episodes) for t in range(len(e))]
    columns = {**table(episodes), "step": times(steps, kind, np.random.default_rng(0))}
    for path in write_both(columns, tmp_path):
        recwarn.clear()
        assert len(hm.load_dataset(path, ARM)) == 3
        notes = [str(w.message) for w in recwarn]
        assert len(notes) == gap
        for said in notes:
            assert f"{path}: rows are missing in 1 episode ('run 1')" in said
            assert re.search(r"the longest (7|6\.9\d|7\.0\d) times the usual interval", said)


def test_steps_that_are_never_regular_have_no_gaps(tmp_path, recwarn):
    steps = np.cumsum(np.random.default_rng(0).exponential(size=20)).tolist()
    path = write_rows({**table(make_episodes((20,))), "step": steps}, tmp_path / "log.csv")
    hm.load_dataset(path, ARM)
    assert not recwarn.list


# -- data frames ------------------------------------------------------------------------------------------------------


def test_a_table_of_pyarrow_is_read_as_parquet_is(tmp_path):
    columns = table(make_episodes())
    assert_all_same(hm.load_dataset(pyarrow.table(columns), ARM))
    renamed_ = renamed(columns, episode="run")
    assert_all_same(hm.load_dataset(pyarrow.table(renamed_), ARM, columns={"episode": "run"}))


def test_a_data_frame_of_pandas_is_read_as_a_table():
    pandas = pytest.importorskip("pandas")  # a development dependency; make test has it
    frame = pandas.DataFrame(table(make_episodes()))
    frame["step"] = pandas.Timestamp("2024-05-01", tz="UTC") + pandas.to_timedelta(frame.index, unit="s")
    frame["label"] = frame["label"].astype("category")
    dataset = hm.load_dataset(frame, ARM)
    assert_all_same(dataset)
    assert dataset.observation_names == ("obs_0", "obs_1", "obs_2")
    frame["obs_1"] = frame["obs_1"].astype("Float64")
    frame.loc[3, ["obs_1", "label"]] = None
    with pytest.raises(DataError, match=r"data frame: column obs_1 is empty.* in episode 'run 0', step 3 \(row 4\)"):
        hm.load_dataset(frame, ARM)
    with pytest.warns(HimatchWarning, match=r"data frame: 1 of 4 episodes \('run 0'\) left out"):
        assert hm.load_dataset(frame, ARM, drop_bad=True).lengths.tolist() == [20, 5, 9]


def assert_all_same(dataset):
    for found, expected in zip(dataset, make_episodes(), strict=True):
        assert_same(found, expected, final=False)


# -- and the rest -----------------------------------------------------------------------------------------------------


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
    with pytest.raises(DataError, match="the file is empty"):
        hm.load_dataset(tmp_path / "log.csv", ARM)


def test_a_ragged_csv_is_refused(tmp_path):
    path = write_csv(make_episodes(), tmp_path)
    path.write_text(path.read_text() + "run 3,0.5\n")
    with pytest.raises(DataError, match=r"log\.csv: "):
        hm.load_dataset(path, ARM)


def test_upper_case_suffixes_are_tables_too(tmp_path):
    path = write_csv(make_episodes(), tmp_path).rename(tmp_path / "LOG.CSV")
    assert hm.load_dataset(path, ARM).lengths.tolist() == [7, 20, 5, 9]
