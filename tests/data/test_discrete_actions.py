"""Numbers of discrete actions, in every format: read as one-hot rows, and refused where they are none."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest
from builders import write_columns, write_rows
from grid_world import ACTIONS, ENV, FIRST, grid, task, walks
from minari.data_collector import EpisodeBuffer

import himatch as hm
from himatch.data.inspection import inspect_dataset
from himatch.errors import DataError, HimatchWarning

__all__ = ["grid"]

WALKS = walks(6)


def columns() -> dict[str, Any]:
    """Flat columns of the walks, with the numbers as whole numbers."""
    found = {name: np.concatenate([walk[name] for walk in WALKS]) for name in ("observations", "actions", "rewards")}
    return {**found, "lengths": np.array([len(walk["actions"]) for walk in WALKS])}


def npz(folder: Path, shape: tuple[int, ...] = (-1,), kind: type = np.int64, **more: Any) -> Path:
    stored = {**columns(), **more}
    np.savez(folder / "log.npz", **{**stored, "actions": stored["actions"].reshape(shape).astype(kind)})
    return folder / "log.npz"


def hdf5(folder: Path, shape: tuple[int, ...] = (-1,)) -> Path:
    stored = columns()
    return write_columns({**stored, "actions": stored["actions"].reshape(shape)}, folder / "log.hdf5")


def pickled(folder: Path, shape: tuple[int, ...] = (-1,)) -> Path:
    episodes = [{**walk, "actions": walk["actions"].reshape(shape)} for walk in WALKS]
    (folder / "log.pkl").write_bytes(pickle.dumps(episodes))
    return folder / "log.pkl"


def rows() -> dict[str, list[Any]]:
    stored = columns()
    return {
        "episode": np.repeat(np.arange(len(WALKS)), stored["lengths"]).tolist(),
        "obs_x": stored["observations"][:, 0].tolist(),
        "obs_y": stored["observations"][:, 1].tolist(),
        "push": stored["actions"].tolist(),
        "reward": stored["rewards"].tolist(),
    }


def csv(folder: Path, change: Callable[[dict[str, list[Any]]], None] = lambda rows: None, name: str = "log") -> Path:
    found = rows()
    change(found)
    (folder / f"{name}.toml").write_text('actions = "push"\n')
    return write_rows(found, folder / f"{name}.csv")


def with_minari(folder: Path, form: str = "hdf5") -> Path:
    """What Minari itself writes for a Discrete space."""
    buffers = [
        EpisodeBuffer(
            id=i,
            observations=np.concatenate([walk["observations"], walk["final_observation"][None]]),
            actions=walk["actions"],
            rewards=walk["rewards"],
            terminations=np.zeros(len(walk["actions"]), bool),
            truncations=np.arange(len(walk["actions"])) == len(walk["actions"]) - 1,
        )
        for i, walk in enumerate(WALKS)
    ]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        warnings.simplefilter("ignore")  # Minari would like an author, an e-mail address, ...
        minari.create_dataset_from_buffers("grid-v0", buffers, env=ENV, data_format=form)
    return folder / "grid-v0"


FORMATS: dict[str, Callable[[Path], Any]] = {
    "npz (T,)": npz,
    "npz (T, 1)": partial(npz, shape=(-1, 1)),
    "npz int8": partial(npz, kind=np.int8),
    "npz floats": partial(npz, shape=(-1, 1), kind=np.float32),
    "hdf5 (T,)": hdf5,
    "hdf5 (T, 1)": partial(hdf5, shape=(-1, 1)),
    "pickle (T,)": pickled,
    "pickle (T, 1)": partial(pickled, shape=(-1, 1)),
    "csv": csv,
    "dictionary": lambda folder: columns(),
    "dictionaries": lambda folder: WALKS,
    "rows of a trajectory": lambda folder: list(hm.load_dataset(WALKS, task())),
    **{f"minari {form}": partial(with_minari, form=form) for form in ("hdf5", "arrow", "parquet")},
}


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_become_rows(name: str, tmp_path: Path) -> None:
    dataset = hm.load_dataset(FORMATS[name](tmp_path), task())
    assert dataset.discrete == ACTIONS
    assert dataset.action_width == 5
    for found, walk in zip(dataset, WALKS, strict=True):
        np.testing.assert_array_equal(found.actions.sum(axis=1), 1.0)
        np.testing.assert_array_equal(ACTIONS.numbers(found.actions), walk["actions"])
        np.testing.assert_array_equal(found.observations, walk["observations"])
    assert "5 discrete actions" in repr(dataset)
    assert "one of the 5 discrete ones (1 to 5) a step" in " ".join(repr(inspect_dataset(dataset)).split())


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
def test_a_space_of_minari_needs_no_task(form: str, tmp_path: Path) -> None:
    dataset = hm.load_dataset(with_minari(tmp_path, form))
    assert dataset.discrete == dataset.task.discrete == ACTIONS
    mapped = hm.load_dataset(tmp_path / "grid-v0", mmap=tmp_path / "map")
    again = hm.load_dataset(tmp_path / "grid-v0", mmap=tmp_path / "map")
    assert mapped.discrete == again.discrete == ACTIONS
    assert dataset.content_hash == mapped.content_hash == again.content_hash


@pytest.mark.usefixtures("registered")
def test_minari_opens_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = hm.load_dataset(csv(tmp_path), "grid")
    assert dataset.action_names == tuple(f"push={i}" for i in range(1, 6))
    hm.write_minari(dataset, tmp_path / "written-v0")
    opened = minari.load_dataset("written-v0")
    assert opened.action_space == gymnasium.spaces.Discrete(5, start=FIRST)
    for episode, walk in zip(opened.iterate_episodes(), WALKS, strict=True):
        np.testing.assert_array_equal(episode.actions, walk["actions"])
        assert episode.actions.dtype == np.int64
    back = hm.load_dataset("written-v0")
    assert (back.content_hash, back.discrete, back.action_names) == (
        dataset.content_hash,
        ACTIONS,
        dataset.action_names,
    )
    assert hm.resolve_feature("push=2", back.task)(back[0])[:, 0].tolist() == back[0].actions[:, 1].tolist()


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from himatch.tasks import registry

    monkeypatch.setitem(registry._registry, "grid", task())


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        (csv, {"discrete": 6}),
        (csv, {"discrete": "auto"}),
        (npz, None),
        (partial(npz, shape=(-1, 1), kind=np.float64), {"discrete": 6}),
    ],
)
def test_without_a_task_somebody_says_how_many_or_the_data_shows_it(
    source: Callable[[Path], Path], columns: dict[str, Any] | None, tmp_path: Path
) -> None:
    (tmp_path / "again").mkdir()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = hm.load_dataset(source(tmp_path), columns=columns)
    assert dataset.discrete == hm.Discrete(6)  # numbers up to 5
    counted = columns is None or columns["discrete"] == "auto"
    assert any("as many as the data shows" in str(w.message) for w in caught) == counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            mapped = hm.load_dataset(source(tmp_path / "again"), columns=columns, mmap=tmp_path / "map")
            assert (mapped.content_hash, mapped.discrete) == (dataset.content_hash, dataset.discrete)


def test_a_table_says_so_beside_it(tmp_path: Path) -> None:
    path = csv(tmp_path)
    path.with_suffix(".toml").write_text('actions = "push"\ndiscrete = 6\n')
    assert hm.load_dataset(path).discrete == hm.Discrete(6)


@pytest.mark.filterwarnings("ignore:.*as many as the data shows:himatch.HimatchWarning")
def test_joined_sources_share_their_actions(tmp_path: Path) -> None:
    low, high = tmp_path / "low", tmp_path / "high"
    low.mkdir()
    high.mkdir()
    both = [npz(low, actions=np.minimum(columns()["actions"], 3)), npz(high)]
    for mmap in (None, tmp_path / "map"):
        joined = hm.load_dataset(both, mmap=mmap)
        assert joined.discrete == hm.Discrete(6)
        assert ACTIONS.count + 1 == joined.action_width
        assert joined.discrete.numbers(joined[0].actions).max() <= 3
        assert joined.discrete.numbers(joined[-1].actions).tolist() == WALKS[-1]["actions"].tolist()
    path = csv(tmp_path)
    path.with_suffix(".toml").write_text('actions = "push"\ndiscrete = 7\n')
    with pytest.raises(DataError, match=r"actions differ: those of .* are 5 discrete ones .*; those of .* are 7"):
        hm.load_dataset([with_minari(tmp_path), path])


def changed(value: Any) -> Callable[[dict[str, list[Any]]], None]:
    return lambda rows: rows["push"].__setitem__(12, value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, r"action 0 \(column push\) in episode '1', step 2 \(line 14\) is none of the actions, which are 5"),
        (6, "action 6 .*is none of the actions, which are 5 discrete ones \\(1 to 5\\)"),
        (-1, "action -1 .*none"),
        (1.5, r"action 1\.5 .*none"),
        ("nan", "column push holds 'nan', which is no finite number, in episode '1', step 2"),
        ("", "column push is empty in episode '1', step 2"),
        ("left", "column push holds 'left' in line 14, which is no number"),
    ],
)
def test_what_is_no_action_is_refused_by_its_place(value: Any, said: str, tmp_path: Path) -> None:
    path = csv(tmp_path, changed(value))
    with pytest.raises(DataError, match=said) as caught:
        hm.load_dataset(path, task())
    assert len(str(caught.value).splitlines()) == 1
    with pytest.warns(HimatchWarning, match=r"1 of 6 episodes \('1'\) left out, as requested"):
        assert len(hm.load_dataset(path, task(), drop_bad=True)) == 5


@pytest.mark.parametrize(
    ("source", "task", "columns", "said"),
    [
        (partial(npz, actions=np.zeros(60)), None, None, "greatest number of an action is 0; say how many"),
        (partial(npz, actions=np.full(60, 10**6)), None, None, "is 1e\\+06; say how many"),
        (partial(npz, actions=np.full(60, -1)), None, {"discrete": 5}, "episode 0, step 0 is none of the actions"),
        (partial(npz, shape=(-1, 2), actions=np.ones(120)), None, None, r"discrete \(int64\) with 2 numbers a step"),
        (partial(npz, shape=(-1, 2), kind=float, actions=np.ones(120)), task(), None, "so a step has one number, and"),
        (partial(npz, shape=(-1, 5), kind=float, actions=np.full(300, 0.2)), task(), None, r"action \[0\.2, 0\.2"),
        (npz, hm.Task("arm", 10, 2, 1, -1.0, 1.0), None, "is discrete, and that of task arm is continuous"),
        (npz, hm.Task("arm", 10, 2, 3), None, "is discrete, and that of task arm is continuous"),
        (npz, task(), {"discrete": 5}, r"actions differ: those of task grid are 5 discrete ones \(1 to 5\); those of"),
        (with_minari, None, {"discrete": 4}, "as it says, and 4 discrete ones"),
        (csv, None, {"discrete": 1}, "'discrete' is how many actions there are"),
        (csv, None, {"discrete": "many"}, "'discrete' is how many actions there are"),
        (csv, None, {"discrete": 6, "continuous": True}, "continuous or discrete, not both"),
    ],
)
def test_contradictions_are_refused(
    source: Callable[[Path], Path], task: hm.Task | None, columns: dict[str, Any] | None, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        hm.load_dataset(source(tmp_path), task, columns=columns)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("value", [0, 6])
def test_a_space_of_minari_is_kept_to(value: int, tmp_path: Path) -> None:
    import h5py

    path = with_minari(tmp_path)
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        file["episode_3/actions"][4] = value
    with pytest.raises(DataError, match=rf"episode 3: action {value} is none of the actions"):
        hm.load_dataset(path)


def test_whole_numbers_may_be_continuous_all_the_same(tmp_path: Path) -> None:
    dataset = hm.load_dataset(npz(tmp_path), columns={"continuous": True})
    assert dataset.discrete is None
    np.testing.assert_array_equal(dataset.actions[:, 0], columns()["actions"])


def test_rare_actions_are_no_extreme_values(tmp_path: Path) -> None:
    actions = np.ones(1000, np.int64)
    actions[500] = 5
    dataset = hm.load_dataset({"observations": np.zeros((1000, 2)), "actions": actions, "lengths": [10] * 100}, task())
    assert dataset.extremes() == ()
