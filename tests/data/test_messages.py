"""What messages about odd files say: the cause in plain words, and what was read in another way than written."""

import re

import numpy as np
import pandas
import pytest
from builders import make_episodes, table, write_parquet, write_rows

import himatch as hm
from himatch.errors import DataError, HimatchWarning


def changed(folder, **cells):
    """A table of which some cells are others: the first so many rows of a column."""
    columns = table(make_episodes())
    for name, some in cells.items():
        columns[name][: len(some)] = some
    return write_rows(columns, folder / "log.csv")


def test_text_that_is_not_utf_8(tmp_path):
    path = write_rows({"episode": ["a"], "obs_0 [\u00b5m]": [1.0], "act_0": [1.0]}, tmp_path / "log.csv")
    path.write_bytes(path.read_text("utf-8").encode("latin-1"))
    with pytest.raises(DataError, match=r"log\.csv: is not UTF-8 text \(byte 0xb5 is not\); save it as UTF-8"):
        hm.load_dataset(path)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file(content, tmp_path):
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(DataError, match=r"log\.csv: the file is empty"):
        hm.load_dataset(tmp_path / "log.csv")


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("episode,act_0,speed [m/s],speed [m/s]", r"column 'speed \[m/s\]' is there 2 times; give each a name"),
        ("episode,act_0,speed [m/s],speed (km/h)", r"several columns 'speed': speed \[m/s\], speed \(km/h\); .* unit"),
        ("episode,act_0,speed,speed", "there are several columns 'speed'"),
    ],
)
def test_two_columns_of_a_name(header, complaint, tmp_path):
    (tmp_path / "log.csv").write_text(f"{header}\na,1,2,3\n")
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset(tmp_path / "log.csv", columns={"observations": "speed"})


def test_decimal_commas(tmp_path):
    with pytest.raises(DataError, match=r"holds '1,5' in line 2, which is no number \(write points in decimals\)"):
        hm.load_dataset(changed(tmp_path, obs_0=["1,5"]))
    (tmp_path / "log.csv").write_text("episode,obs_0,act_0\na,1,5,2,5\na,1,5,2,6\n")
    with pytest.raises(DataError, match=r"line 2 has 5 columns, the header has 3 \(are there commas in decimals\?\)"):
        hm.load_dataset(tmp_path / "log.csv")


def test_words_in_a_table_that_is_no_text(tmp_path):
    columns = table(make_episodes())
    frame = pandas.DataFrame(columns).astype({"obs_1": object})
    frame.loc[3, "obs_1"] = "n/a"
    with pytest.raises(DataError, match=r"column obs_1 holds 'n/a', which is text, in episode 'run 0', step 3"):
        hm.load_dataset(frame)
    frame.astype({"obs_1": str}).to_parquet(tmp_path / "log.parquet")
    write_parquet(make_episodes(), tmp_path).rename(tmp_path / "first.parquet")
    frame.astype({"obs_1": str}).to_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"column obs_1 holds 'n/a', which is text, in episode 'run 0', step 3"):
        hm.load_dataset([tmp_path / "first.parquet", tmp_path / "log.parquet"])


def test_objects_in_an_archive(tmp_path):
    arrays = {"observations": np.ones((4, 2)), "actions": np.ones((4, 1)), "lengths": [2, 2]}
    np.savez(tmp_path / "log.npz", **arrays, labels=np.array(["a", "b"], dtype=object))
    with pytest.raises(DataError, match=r"log\.npz: labels is an array of Python objects, .* array\.astype\(str\)"):
        hm.load_dataset(tmp_path / "log.npz")
    np.savez(tmp_path / "log.npz", **arrays, infos=np.array([{}], dtype=object))
    assert len(hm.load_dataset(tmp_path / "log.npz")) == 2  # what nobody reads may be anything


def test_a_flag_among_numbers_is_noted(tmp_path):
    with pytest.warns(HimatchWarning, match=r"column obs_2 holds 'TRUE' in line 4 among numbers; it is read as 1"):
        hm.load_dataset(changed(tmp_path, obs_2=[0.5, 0.5, "TRUE"]))
    said = r"holds 'TRUE' in line 4 among|left out, as requested: column obs_1 holds 'x'"
    with pytest.warns(HimatchWarning, match=said) as notes:
        hm.load_dataset(changed(tmp_path, obs_2=[0.5, 0.5, "TRUE"], obs_1=["x"]), drop_bad=True)
    assert len([one for one in notes if re.search(said, str(one.message))]) == 2
    frame = pandas.DataFrame(table(make_episodes())).astype({"obs_2": object})
    frame.loc[2, "obs_2"] = True
    with pytest.warns(HimatchWarning, match="column obs_2 holds True in row 3 among numbers"):
        hm.load_dataset(frame)


def test_flags_and_their_numbers_are_not(tmp_path, recwarn):
    count = len(table(make_episodes())["obs_2"])
    hm.load_dataset(changed(tmp_path, obs_2=(["true", "0", "1", "False"] * count)[:count]))
    assert not recwarn.list


def test_an_underscore_is_no_part_of_a_number(tmp_path):
    with pytest.raises(DataError, match="holds '1_000' in line 2, which is no number"):
        hm.load_dataset(changed(tmp_path, obs_0=["1_000"]))
    frame = pandas.DataFrame(table(make_episodes())).astype({"obs_2": object})
    frame.loc[0, "obs_2"] = "1_000"
    with pytest.raises(DataError, match="holds '1_000' in row 1, which is no number"):
        hm.load_dataset(frame)


def test_units_that_contradict_each_other_are_noted():
    frame = pandas.DataFrame(table(make_episodes())).rename(columns={"obs_0": "obs_0 [m/s]"})
    with pytest.warns(HimatchWarning, match="obs_0 is in m/s by its header and in km/h by columns; km/h is kept"):
        assert hm.load_dataset(frame, columns={"units": {"obs_0": "km/h"}}).units == {"obs_0": "km/h"}


@pytest.mark.parametrize(("unit", "rate"), [(1e3, 20), (1e6, 20), (1e9, 20), (1, None)])
def test_whole_numbers_that_count_from_1970_are_times(unit, rate):
    times = [
        round((1_700_000_000 + 0.05 * t) * unit) if unit > 1 else t for e in make_episodes() for t in range(len(e))
    ]
    assert hm.load_dataset(pandas.DataFrame({**table(make_episodes()), "step": times})).rate == rate
