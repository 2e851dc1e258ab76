"""A bug of ours surfaces as what it is: nobody is told that a good file is damaged."""

import pytest
from builders import ARM, FORMATS, make_episodes, table, write_csv, write_rows

import himatch as hm
from himatch.errors import DataError

# A function of ours that runs while a file of that format is read.
OURS = {
    "flat": "himatch.data.flat.observation_columns",
    "npz": "himatch.data.flat.check_columns",
    "himatch": "himatch.data.minari.check_episode",
    "minari-hdf5": "himatch.data.episodes.check_columns",
    "minari-arrow": "himatch.data.minari.check_episode",
    "minari-parquet": "himatch.data.episodes.observation_columns",
    "csv": "himatch.data.tables.Columns.find",
    "parquet": "himatch.data.tables.Columns.find",
    "pickle-5": "himatch.data.pickles._from_bytes",
}


def planted(mistake):
    def bug(*_, **__):
        raise mistake("a bug")

    return bug


@pytest.mark.parametrize("mistake", [TypeError, IndexError, KeyError])
@pytest.mark.parametrize("name", [name for name in OURS if name in FORMATS])
def test_a_bug_while_a_file_is_read(name, mistake, tmp_path, monkeypatch):
    path = FORMATS[name].write(make_episodes(), tmp_path)
    assert len(hm.load_dataset(path, ARM)) == 4
    monkeypatch.setattr(OURS[name], planted(mistake))
    with pytest.raises(mistake, match="a bug") as caught:
        hm.load_dataset(path, ARM)
    assert not isinstance(caught.value, DataError)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("pickle")])
def test_a_bug_in_the_stand_ins_of_a_pickle(name, tmp_path, monkeypatch):
    path = FORMATS[name].write(make_episodes(), tmp_path)
    monkeypatch.setattr("himatch.data.pickles._dtype", planted(IndexError))
    with pytest.raises(IndexError, match="a bug"):
        hm.load_dataset(path, ARM)


def test_a_bug_in_how_a_cell_becomes_a_number(tmp_path, monkeypatch):
    columns = {**table(make_episodes((2, 1))), "obs_1": [True, False, "x"]}  # so that cells are read one by one
    path = write_rows(columns, tmp_path / "log.csv")
    monkeypatch.setattr("himatch.data.tables.number", planted(TypeError))
    with pytest.raises(TypeError, match="a bug"):
        hm.load_dataset(path, ARM)


def test_a_bug_in_a_mapping_of_columns(tmp_path, monkeypatch):
    path = write_csv(make_episodes(), tmp_path)
    path.with_suffix(".toml").write_text('episode = "episode"\n')
    monkeypatch.setattr("himatch.data.tables.Columns.changed", planted(TypeError))
    with pytest.raises(TypeError, match="a bug"):
        hm.load_dataset(path, ARM)


def test_a_bug_while_mapped_arrays_are_opened(tmp_path, monkeypatch):
    path = FORMATS["npz"].write(make_episodes(), tmp_path)
    hm.load_dataset(path, mmap=tmp_path / "map")
    monkeypatch.setattr("himatch.data.mapped.anonymous_task", planted(IndexError))
    with pytest.raises(IndexError, match="a bug"):
        hm.load_dataset(path, mmap=tmp_path / "map")
