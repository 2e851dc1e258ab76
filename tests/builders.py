"""Small episodes, and the same episodes written in every format himatch reads."""

from __future__ import annotations

import csv
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np

import himatch as hm

OBS, ACT = 3, 2
ARM = hm.Task(name="arm", horizon=20, observation_width=OBS, action_width=ACT, action_low=-1.0, action_high=1.0)


def make_episode(
    rng: np.random.Generator, steps: int, *, terminated: bool = False, obs: int = OBS, act: int = ACT, **more: Any
) -> hm.Trajectory:
    return hm.Trajectory(
        rng.normal(size=(steps, obs)),
        rng.uniform(-1, 1, (steps, act)),
        rng.normal(size=steps),
        rng.normal(size=obs),
        terminated,
        **more,
    )


def make_episodes(lengths: Sequence[int] = (7, 20, 5, 9), seed: int = 0) -> list[hm.Trajectory]:
    """Episodes that terminate (even ones) or time out (odd ones), with labels."""
    rng = np.random.default_rng(seed)
    return [
        make_episode(rng, n, terminated=i % 2 == 0, label="walk" if i < 2 else "flip") for i, n in enumerate(lengths)
    ]


def assert_same(found: hm.Trajectory, expected: hm.Trajectory, *, final: bool = True, label: bool = True) -> None:
    np.testing.assert_array_equal(found.observations, expected.observations)
    np.testing.assert_array_equal(found.actions, expected.actions)
    if expected.rewards is None:
        assert found.rewards is None
    else:
        np.testing.assert_array_equal(found.rewards, expected.rewards)
    assert found.terminated == expected.terminated
    if final and expected.final_observation is not None:
        np.testing.assert_array_equal(found.final_observation, expected.final_observation)
    else:
        assert found.final_observation is None
    assert found.label == (expected.label if label else None)


# -- the formats --------------------------------------------------------------------------------------------------


def flat_columns(episodes: Sequence[hm.Trajectory]) -> dict[str, np.ndarray]:
    """D4RL's columns, all of them; a test deletes what it wants missing."""
    ends = np.cumsum([len(e) for e in episodes]) - 1
    terminals = np.zeros(ends[-1] + 1, dtype=bool)
    terminals[ends] = [e.terminated for e in episodes]
    timeouts = np.zeros_like(terminals)
    timeouts[ends] = [not e.terminated for e in episodes]
    columns = {
        "observations": np.concatenate([e.observations for e in episodes]),
        "actions": np.concatenate([e.actions for e in episodes]),
        "rewards": np.concatenate([e.rewards for e in episodes]),
        "terminals": terminals,
        "timeouts": timeouts,
    }
    if all(e.final_observation is not None for e in episodes):
        columns["next_observations"] = np.concatenate([following(e) for e in episodes])
    return columns


def following(episode: hm.Trajectory) -> np.ndarray:
    return np.concatenate([episode.observations[1:], episode.final_observation[None]])


def write_columns(columns: dict[str, np.ndarray], path: Path) -> Path:
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file[name] = column
    return path


def write_flat(episodes: Sequence[hm.Trajectory], folder: Path) -> Path:
    return write_columns(flat_columns(episodes), folder / "log.hdf5")


def write_npz(episodes: Sequence[hm.Trajectory], folder: Path) -> Path:
    columns = flat_columns(episodes)
    del columns["timeouts"]
    columns["lengths"] = np.array([len(e) for e in episodes])
    columns["labels"] = np.array([e.label or "" for e in episodes])
    np.savez_compressed(folder / "log.npz", **columns)
    return folder / "log.npz"


def episode_dicts(episodes: Sequence[hm.Trajectory]) -> list[dict[str, Any]]:
    return [
        {
            "observations": np.array(e.observations),
            "next_observations": following(e),
            "actions": np.array(e.actions),
            "rewards": np.array(e.rewards),
            "terminals": np.arange(1, len(e) + 1) == len(e) * e.terminated,
            "label": e.label,
        }
        for e in episodes
    ]


def write_pickle(episodes: Sequence[hm.Trajectory], folder: Path, protocol: int = 4) -> Path:
    path = folder / "log.pkl"
    path.write_bytes(pickle.dumps(episode_dicts(episodes), protocol=protocol))
    return path


def table(episodes: Sequence[hm.Trajectory]) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"episode": [], "reward": [], "terminated": [], "label": []}
    for i, e in enumerate(episodes):
        rows["episode"] += [f"run {i}"] * len(e)
        rows["reward"] += [] if e.rewards is None else e.rewards.tolist()
        rows["terminated"] += [False] * (len(e) - 1) + [e.terminated]
        rows["label"] += [e.label] * len(e)
    for prefix, name in (("obs", "observations"), ("act", "actions")):
        block = np.concatenate([getattr(e, name) for e in episodes])
        rows |= {f"{prefix}_{i}": block[:, i].tolist() for i in range(block.shape[1])}
    return {name: column for name, column in rows.items() if column}


def write_rows(columns: dict[str, list[Any]], path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_csv(episodes: Sequence[hm.Trajectory], folder: Path) -> Path:
    return write_rows(table(episodes), folder / "log.csv")


def write_parquet(episodes: Sequence[hm.Trajectory], folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(table(episodes)), folder / "log.parquet")
    return folder / "log.parquet"


def write_with_minari(
    episodes: Sequence[hm.Trajectory],
    folder: Path,
    form: str = "hdf5",
    dataset_id: str = "arm/log-v0",
    env: str | None = None,
) -> Path:
    """What Minari itself writes below ``folder``, in one of its three formats."""
    import minari
    import pytest
    from minari.data_collector import EpisodeBuffer

    buffers = [
        EpisodeBuffer(
            id=i,
            observations=np.concatenate([e.observations, e.final_observation[None]]).astype(np.float64),
            actions=np.array(e.actions),
            rewards=e.rewards.astype(np.float64),
            terminations=np.arange(1, len(e) + 1) == len(e) * e.terminated,
            truncations=np.arange(1, len(e) + 1) == len(e) * (not e.terminated),
        )
        for i, e in enumerate(episodes)
    ]
    widths = episodes[0].observations.shape[1], episodes[0].actions.shape[1]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        warnings.simplefilter("ignore")  # Minari would like an author, an e-mail address, ...
        minari.create_dataset_from_buffers(
            dataset_id,
            buffers,
            env=env,
            observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (widths[0],), np.float64),
            action_space=gymnasium.spaces.Box(-1, 1, (widths[1],), np.float32),
            data_format=form,
        )
    return folder / dataset_id


def write_with_himatch(episodes: Sequence[hm.Trajectory], folder: Path) -> Path:
    return hm.write_minari(hm.load_dataset(episodes, ARM), folder / "written-v0")


@dataclass(frozen=True)
class Format:
    """How a format is written and what it cannot keep."""

    write: Callable[[Sequence[hm.Trajectory], Path], Path]
    final: bool = True
    label: bool = True


FORMATS = {
    "flat": Format(write_flat, label=False),
    "npz": Format(write_npz),
    **{f"pickle-{p}": Format(partial(write_pickle, protocol=p)) for p in (2, 3, 4, 5)},
    "csv": Format(write_csv, final=False),
    "parquet": Format(write_parquet, final=False),
    **{f"minari-{f}": Format(partial(write_with_minari, form=f), label=False) for f in ("hdf5", "arrow", "parquet")},
    "himatch": Format(write_with_himatch),
}
