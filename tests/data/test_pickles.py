"""Pickles are read without running what they carry."""

import builtins
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from builders import ARM, assert_same, episode_dicts, make_episodes

import himatch as hm
from himatch.data.pickles import _Encoded
from himatch.errors import DataError


class Calls:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class ForeignArray(np.ndarray):
    """A subclass, which a real unpickler would import."""


def dump(content, path, protocol=4):
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


def with_value(key, value):
    episodes = episode_dicts(make_episodes())
    episodes[0][key] = value
    return episodes


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("touch {}",), "posix.system"),
        (builtins.eval, ("open({!r}, 'w').close()",), "eval"),
        (builtins.exec, ("open({!r}, 'w').close()",), "exec"),
        (builtins.open, ("{}", "w"), "open"),
        (Path, ("{}",), "Path"),
        (os.mkdir, ("{}",), "posix.mkdir"),
        (np.save, ("{}", 1), "save"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_code_is_refused_by_name_and_does_not_run(function, arguments, name, protocol, tmp_path):
    witness = tmp_path / "witness"
    call = Calls(function, *(a.format(str(witness)) if isinstance(a, str) else a for a in arguments))
    path = dump(with_value("extra", call), tmp_path / "log.pkl", protocol)
    with pytest.raises(DataError, match=rf"log\.pkl: the pickle asks for .*{name}; only NumPy arrays") as caught:
        hm.load_dataset(path, ARM)
    assert not witness.exists()
    assert "\n" not in str(caught.value)


def test_the_witness_would_have_been_written_by_an_ordinary_unpickler(tmp_path):
    """The tests above prove something only if their pickles do run when they are let."""
    witness = tmp_path / "witness"
    pickle.loads(pickle.dumps(Calls(os.mkdir, str(witness))))
    assert witness.exists()


def test_a_class_of_the_user_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"asks for .*Calls"):
        hm.load_dataset(dump(with_value("extra", Calls), tmp_path / "log.pkl"), ARM)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (np.array([{"a": 1}, None], dtype=object), "array of type object"),
        (np.zeros(7, dtype=[("a", "f4"), ("b", "i4")]), "array of type"),
        (np.zeros((7, 3)).view(ForeignArray), "asks for .*ForeignArray"),
        (np.zeros(7, dtype="M8[s]"), "array of type"),
        (np.zeros(7, dtype=complex), "array of type complex128"),
        ([[[[[[1.0]]]]]], "nests containers too deeply"),
        ({1, 2}, "actions must have shape"),
        ([[1.0, 2.0], [3.0]], "ragged"),
        ("seven", "actions must have shape"),
        (None, "has no .actions."),
    ],
    ids=["objects", "structured", "subclass", "dates", "complex", "deep", "set", "ragged", "text", "none"],
)
def test_what_is_not_numbers_is_refused(value, complaint, tmp_path):
    with pytest.raises(DataError, match=complaint):
        hm.load_dataset(dump(with_value("actions", value), tmp_path / "log.pkl"), ARM)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda a: a.astype(">f4"),
        lambda a: a.astype(">f8"),
        lambda a: a[::-1][::-1],
        np.ndarray.tolist,
    ],
    ids=["fortran", "big-endian", "big-endian-double", "strided", "lists"],
)
def test_arrays_of_every_layout_are_read(convert, protocol, tmp_path):
    episodes = make_episodes()
    content = [
        {k: convert(v) if k in ("observations", "actions") else v for k, v in e.items()}
        for e in episode_dicts(episodes)
    ]
    dataset = hm.load_dataset(dump(content, tmp_path / "log.pkl", protocol), ARM)
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected)


@pytest.mark.parametrize("protocol", range(6))
def test_numpy_scalars_and_ordered_dictionaries_are_read(protocol, tmp_path):
    episodes = make_episodes()
    content = tuple(OrderedDict(e, rewards=list(e["rewards"]), seed=np.int64(3)) for e in episode_dicts(episodes))
    dataset = hm.load_dataset(dump(content, tmp_path / "log.pkl", protocol), ARM)
    for found, expected in zip(dataset, episodes, strict=True):
        assert_same(found, expected)


def test_out_of_band_objects_are_refused(tmp_path):
    with (tmp_path / "log.pkl").open("wb") as file:
        pickler = pickle.Pickler(file)
        pickler.persistent_id = lambda value: "elsewhere" if isinstance(value, np.ndarray) else None
        pickler.dump(episode_dicts(make_episodes()))
    with pytest.raises(DataError, match="objects outside the file"):
        hm.load_dataset(tmp_path / "log.pkl", ARM)


@pytest.mark.parametrize("content", [3, "text", [1, 2], [[1.0]], None])
def test_what_is_not_a_list_of_episodes_is_refused(content, tmp_path):
    with pytest.raises(DataError, match="expected a list of episodes, each a dictionary of arrays"):
        hm.load_dataset(dump(content, tmp_path / "log.pkl"), ARM)


def test_one_dictionary_is_one_episode(tmp_path):
    (episode,) = make_episodes((5,))
    (found,) = hm.load_dataset(dump(episode_dicts([episode])[0], tmp_path / "log.pickle"), ARM)
    assert_same(found, episode)


def test_the_readers_own_classes_cannot_be_tampered_with(tmp_path):
    """BUILD sets attributes of whatever lies on the stack; here it would change how text is decoded afterwards."""
    tampering = b"c_codecs\nencode\n(N}X\x0c\x00\x00\x00__defaults__X\x05\x00\x00\x00utf-8\x85stb."
    before = dict(vars(_Encoded))
    (tmp_path / "log.pkl").write_bytes(tampering)
    with pytest.raises(DataError, match="sets the state of something that is not an array"):
        hm.load_dataset(tmp_path / "log.pkl", ARM)
    assert dict(vars(_Encoded)) == before


def test_a_damaged_pickle_cannot_claim_all_memory(tmp_path):
    """An index of two thousand million in the memo makes the unpickler written in C allocate 32 GB."""
    (tmp_path / "log.pkl").write_bytes(b"]r\xff\xff\xff\x7f.")
    with pytest.raises(DataError, match="no episodes"):
        hm.load_dataset(tmp_path / "log.pkl", ARM)


@pytest.mark.parametrize("lists", [False, True])
def test_one_observation_more_than_actions_is_the_final_one(lists, tmp_path):
    """What Gym's loop leaves: the first observation from reset, and one after each action."""
    episodes = make_episodes((1, 7, 5))
    content = episode_dicts(episodes)
    for episode in content:
        final = episode.pop("next_observations")[-1:]
        episode["observations"] = np.concatenate([episode["observations"], final])
        if lists:
            episode["observations"] = list(episode["observations"])
    for found, expected in zip(hm.load_dataset(dump(content, tmp_path / "log.pkl"), ARM), episodes, strict=True):
        assert_same(found, expected)


@pytest.mark.parametrize("surplus", [2, -1])
def test_any_other_number_of_observations_is_refused(surplus, tmp_path):
    (content,) = episode_dicts(make_episodes((7,)))
    del content["next_observations"]
    content["observations"] = np.resize(content["observations"], (7 + surplus, 3))
    with pytest.raises(DataError, match=rf"{7 + surplus} observations but actions has shape \(7, 2\)"):
        hm.load_dataset(dump(content, tmp_path / "log.pkl"), ARM)


@pytest.mark.parametrize(
    ("flags", "terminated"),
    [
        ({"terminations": [0, 0, 1]}, True),
        ({"terminated": [False, False, True]}, True),
        ({"terminated": True}, True),
        ({"terminated": np.bool_(False), "truncated": True}, False),
        ({"done": [False, False, True]}, True),
        ({"dones": [False, False, True], "truncations": [False, False, True]}, False),
        ({"dones": True, "timeouts": False}, True),
        ({"truncated": [0, 0, 1]}, False),
        ({}, False),
    ],
)
def test_end_flags_of_an_episode_have_many_names(flags, terminated, tmp_path):
    (content,) = episode_dicts(make_episodes((3,)))
    del content["terminals"]
    (found,) = hm.load_dataset(dump({**content, **flags}, tmp_path / "log.pkl"), ARM)
    assert found.terminated == terminated


def test_dones_at_the_horizon_are_a_time_out(tmp_path):
    content = episode_dicts(make_episodes((20, 5)))
    for episode in content:
        episode["dones"] = np.arange(len(episode.pop("terminals"))) == len(episode["actions"]) - 1
    assert hm.load_dataset(dump(content, tmp_path / "log.pkl"), ARM).terminated.tolist() == [False, True]
