"""Episodes that are there twice."""

import re

import numpy as np
import pytest
from builders import ARM, make_episodes

import himatch as hm
from himatch.data.split import named_split, set_aside
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
    with pytest.raises(DataError, match=r"1 training episode is copies .* train\[1\] of held_out\[0\]; take"):
        hm.Split(dataset[:3], dataset[3:], ["x"], range(3), [3])
    other = hm.load_dataset(EPISODES[2:3], ARM)  # from elsewhere
    with pytest.raises(DataError, match=r"train\[2\] of held_out\[0\]"):
        hm.Split(dataset, other, ["x"], range(4), [0])


def test_episodes_that_begin_and_end_alike_are_others(recwarn):
    episode = EPISODES[0]
    observations = np.array(episode.observations)
    observations[2, 1] += 0.3
    changed = hm.Trajectory(observations, episode.actions, episode.rewards)
    dataset = hm.load_dataset([episode, changed, *EPISODES[1:8]], ARM)
    assert len(hm.random_split(dataset, 0.4).train) == 5
    assert not recwarn.list
    assert not any("copies" in said for said in hm.inspect_dataset(dataset).warnings)


def played(start, steps=60, gain=0.2):
    """A deterministic policy that drives a cart to its place: the same from any start, once it is there."""
    place, speed, rows = 1.0 + start, start, []
    for _ in range(steps):
        force = np.clip(-place - speed, -1, 1)
        rows.append((place, speed, 0.0, force, 0.0))
        place, speed = place + gain * speed, speed + gain * force
    return np.array(rows)


STARTS = 0.02 * np.arange(12)
CARTS = [played(start) for start in np.linspace(-0.5, 0.5, 12)]


@pytest.mark.parametrize(
    "change",
    [
        lambda e: np.round(e, 3),
        lambda e: e + 1e-7,
        lambda e: e[1:],
        lambda e: np.round(e, 3)[3:-2],
        lambda e: np.concatenate([e[:1], e]),
    ],
)
def test_near_copies_of_held_out_episodes_are_not_trained_on(change):
    rows = [*CARTS, *map(change, CARTS)]
    dataset = hm.load_dataset([{"observations": e[:, :3], "actions": e[:, 3:]} for e in rows])
    with pytest.warns(HimatchWarning, match=r"nearly copies .* of held-out ones and left out") as said:
        split = hm.random_split(dataset, 0.25)
    held = set((split.held_out_index % 12).tolist())
    assert not held & set((split.train_index % 12).tolist())
    assert set((split.train_index % 12).tolist()) == set(range(12)) - held  # and nothing else is left out
    first, second = re.search(r"the same are (\d+) as (\d+)", str(said[0].message)).groups()
    assert int(first) % 12 == int(second) % 12  # counted as in the dataset
    assert len(said) == 1


def test_episodes_from_other_starts_are_others_however_alike_they_end(recwarn):
    dataset = hm.load_dataset([{"observations": e[:, :3], "actions": e[:, 3:]} for e in map(played, STARTS)])
    assert np.abs(dataset[0].observations[-1] - dataset[1].observations[-1]).max() < 1e-3
    assert len(hm.random_split(dataset, 0.5).train) == 6
    assert not recwarn.list


def test_episodes_that_stand_still_are_others(recwarn):
    rng = np.random.default_rng(0)
    still = [1e-4 * rng.normal(size=(40, 5)) for _ in range(10)]
    dataset = hm.load_dataset([{"observations": e[:, :3], "actions": e[:, 3:]} for e in [*CARTS, *still]])
    assert len(hm.random_split(dataset, 0.5).train) == 11
    assert not recwarn.list


def test_near_copies_in_a_split_of_ones_own_are_noted():
    dataset = hm.load_dataset([{"observations": e[:, :3], "actions": e[:, 3:]} for e in [*CARTS, CARTS[3][1:]]])
    with pytest.warns(HimatchWarning, match=r"1 training episode is nearly .* train\[3\] of held_out\[0\]; take"):
        hm.Split(dataset[:12], dataset[12:], ["x"], range(12), [12])


def test_copies_of_validation_episodes_are_called_so():
    dataset = hm.load_dataset([*EPISODES, *EPISODES], ARM)
    with pytest.warns(
        HimatchWarning, match=r": \d episodes? (is|are) copies of validation episodes and left out"
    ) as said:
        trained_on, validation = set_aside(named_split(dataset[5:], "none"), 2)
    assert (len(trained_on), len(validation)) == (31, 2)
    assert len(said) == 1
    assert [len(part) for part in set_aside(named_split(dataset[[0, 20]], "none"), 1)] == [2, 0]


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
