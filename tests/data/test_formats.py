"""One contract for every format: what was written is what is read."""

import numpy as np
import pytest
from builders import ARM, FORMATS, assert_same, flat_columns, make_episode, make_episodes

import himatch as hm


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_is_what_is_read(name, tmp_path):
    form, episodes = FORMATS[name], make_episodes()
    dataset = hm.load_dataset(form.write(episodes, tmp_path), ARM)
    assert len(dataset) == len(episodes)
    assert dataset.task.name == ARM.name
    assert set(dataset.task.features) == {*dataset.observation_names, *dataset.action_names}
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected, final=form.final, label=form.label)


@pytest.mark.filterwarnings("ignore:.*belongs to task arm, which is not registered:himatch.HimatchWarning")
@pytest.mark.parametrize("name", FORMATS)
def test_the_task_may_be_left_out(name, tmp_path):
    episodes = make_episodes()
    dataset = hm.load_dataset(FORMATS[name].write(episodes, tmp_path))
    assert (dataset.task.observation_width, dataset.task.action_width) == (3, 2)
    assert dataset.task.horizon == max(len(e) for e in episodes)


@pytest.mark.parametrize("name", FORMATS)
def test_the_path_may_be_text(name, tmp_path):
    path = FORMATS[name].write(make_episodes(), tmp_path)
    assert hm.load_dataset(str(path), ARM).content_hash == hm.load_dataset(path, ARM).content_hash


@pytest.mark.parametrize("name", FORMATS)
def test_one_episode_of_one_step(name, tmp_path):
    episode = make_episode(np.random.default_rng(1), 1, terminated=True)
    (found,) = hm.load_dataset(FORMATS[name].write([episode], tmp_path), ARM)
    assert len(found) == 1
    assert found.terminated
    np.testing.assert_array_equal(found.actions, episode.actions)


def test_a_dictionary_of_arrays_is_a_source():
    episodes = make_episodes()
    for found, expected in zip(hm.load_dataset(flat_columns(episodes), ARM), episodes, strict=True):
        assert_same(found, expected, label=False)


def test_the_task_is_read_off_the_file_name(tmp_path):
    episode = make_episode(np.random.default_rng(0), 4, obs=11, act=3)
    path = FORMATS["npz"].write([episode], tmp_path).rename(tmp_path / "hopper_medium-v2.npz")
    assert hm.load_dataset(path).task.name == "hopper"
