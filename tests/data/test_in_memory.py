"""Data that no file holds: dictionaries of arrays or tensors, lists and generators of episodes."""

import h5py
import numpy as np
import pytest
import torch
from builders import ARM, assert_same, episode_dicts, flat_columns, make_episodes, write_columns

import himatch as hm
from himatch.errors import DataError


def same_episodes(dataset, **how):
    for found, expected in zip(dataset, make_episodes(), strict=True):
        assert_same(found, expected, **how)


def as_tensors(columns):
    return {name: torch.from_numpy(column) for name, column in columns.items()}


def test_a_dictionary_of_tensors():
    same_episodes(hm.load_dataset(as_tensors(flat_columns(make_episodes())), ARM), label=False)


def test_an_open_hdf5_file_is_a_dictionary_too(tmp_path):
    with h5py.File(write_columns(flat_columns(make_episodes()), tmp_path / "log.hdf5")) as file:
        same_episodes(hm.load_dataset(file, ARM), label=False)


def test_a_column_that_is_none_is_not_there():
    dataset = hm.load_dataset({**flat_columns(make_episodes()), "rewards": None}, ARM)
    assert not dataset.has_rewards


def test_tensors_that_cannot_become_arrays_are_refused():
    columns = as_tensors(flat_columns(make_episodes()))
    columns["actions"].requires_grad_(True)
    with pytest.raises(DataError, match=r"arrays: actions cannot become a NumPy array \(RuntimeError: "):
        hm.load_dataset(columns, ARM)


@pytest.mark.parametrize("convert", [lambda columns: columns, as_tensors], ids=["arrays", "tensors"])
@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_the_list_that_a_pickle_would_hold(kind, convert):
    arrays = [{k: v for k, v in e.items() if isinstance(v, np.ndarray)} for e in episode_dicts(make_episodes())]
    same_episodes(hm.load_dataset(kind([convert(columns) for columns in arrays]), ARM), label=False)


def test_trajectories_and_dictionaries_may_be_mixed():
    episodes, dicts = make_episodes(), episode_dicts(make_episodes())
    same_episodes(hm.load_dataset([dicts[0], *episodes[1:]], ARM))


def test_what_a_dictionary_does_not_have_may_be_none():
    episode = {"observations": np.zeros((4, 3)), "actions": np.zeros((4, 2)), "rewards": None, "label": None}
    dataset = hm.load_dataset([episode] * 2, ARM)
    assert not dataset.has_rewards
    assert dataset.labels == (None, None)


@pytest.mark.parametrize("kind", [dict, lambda **columns: hm.Trajectory(**columns)], ids=["dict", "trajectory"])
def test_a_generator_may_fill_its_arrays_anew(kind):
    observations, actions = np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)

    def episodes():
        for number in range(3):
            observations[:] = number
            yield kind(observations=observations, actions=actions)

    assert [episode.observations[0, 0] for episode in hm.load_dataset(episodes(), ARM)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ([np.zeros((3, 2))], "holds Trajectory objects or dictionaries of arrays, not ndarray"),
        (["a.npz", {}], "holds Trajectory objects or dictionaries of arrays, not str"),
        ([{"observations": np.zeros((3, 3))}], "episode 0 has no 'actions'"),
        ([], "no episodes in it"),
        (7, "a list of Trajectory or of dictionaries, a dictionary of arrays, or a data frame, not a int"),
        (make_episodes()[0], "not a Trajectory"),
    ],
    ids=["arrays", "mixed", "no actions", "empty", "number", "one"],
)
def test_what_is_no_dataset_is_refused(source, complaint):
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset(source, ARM)


@pytest.mark.parametrize("flat", [True, False])
def test_masked_cells_are_not_numbers(flat):
    columns = flat_columns(make_episodes()) if flat else episode_dicts(make_episodes())[0]
    columns["rewards"] = np.ma.masked_array(columns["rewards"], mask=False)
    assert len(hm.load_dataset(columns if flat else [columns], ARM))
    columns["rewards"][3] = np.ma.masked
    with pytest.raises(DataError, match="rewards have masked cells"):
        hm.load_dataset(columns if flat else [columns], ARM)
