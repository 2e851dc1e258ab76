"""Episodes that are there twice."""

import numpy as np
import pytest
from builders import ARM, make_episodes

import himatch as hm
from himatch.errors import DataError, HimatchWarning

EPISODES = make_episodes((5,) * 20)


def test_copies_of_held_out_episodes_are_not_trained_on():
    dataset = hm.load_dataset([*EPISODES, *EPISODES], ARM)
    with pytest.warns(HimatchWarning, match=r"\d+ episodes are copies of held-out ones and left out of training"):
        split = hm.random_split(dataset, 0.2)
    held = {dataset[int(i)].observations.tobytes() for i in split.held_out_index}
    assert not any(episode.observations.tobytes() in held for episode in split.train)
    assert len(split.train) == len(split.train_index)
    assert len(split.train) == 40 - sum(e.observations.tobytes() in held for e in dataset)


def test_nothing_may_be_left_to_train_on():
    with pytest.raises(DataError, match="all training episodes are copies of held-out ones"):
        hm.random_split(hm.load_dataset([EPISODES[0]] * 10, ARM))


def test_a_split_of_ones_own_with_a_copy_is_refused(tmp_path):
    dataset = hm.load_dataset([*EPISODES[:3], EPISODES[1]], ARM)
    with pytest.raises(DataError, match=r"1 training episodes are copies .* train\[1\] of held_out\[0\]; take"):
        hm.Split(dataset[:3], dataset[3:], ["x"], range(3), [3])
    other = hm.load_dataset(EPISODES[2:3], ARM)  # from elsewhere
    with pytest.raises(DataError, match=r"train\[2\] of held_out\[0\]"):
        hm.Split(dataset, other, ["x"], range(4), [0])


def test_episodes_that_begin_and_end_alike_are_others(recwarn):
    episode = EPISODES[0]
    observations = np.array(episode.observations)
    observations[2, 1] += 1e-3
    changed = hm.Trajectory(observations, episode.actions, episode.rewards)
    dataset = hm.load_dataset([episode, changed, *EPISODES[1:8]], ARM)
    assert len(hm.random_split(dataset, 0.4).train) == 5
    assert not recwarn.list
    assert not any("copies" in said for said in hm.inspect_dataset(dataset).warnings)


def test_inspection_names_copies():
    dataset = hm.load_dataset([*EPISODES[:3], EPISODES[1], EPISODES[1]], ARM)
    remarks = hm.inspect_dataset(dataset).warnings
    assert "2 of 5 episodes are copies of others; the same are 3 as 1, 4 as 1" in remarks


def test_a_notebook_shows_a_table():
    rng = np.random.default_rng(0)
    episode = {"observations": rng.normal(size=(4, 2)), "actions": rng.normal(size=(4, 1)), "label": "<b>"}
    html = hm.load_dataset([episode], columns={"rate": 50})._repr_html_()
    assert html.startswith("<table>")
    assert "50 Hz" in html
    assert "&lt;b&gt;" in html
    assert "no rewards" in html
    assert "50 Hz" in repr(hm.load_dataset([episode], columns={"rate": 50}))
    assert hm.load_dataset([episode])[:0]._repr_html_().count("<tr>") >= 4
