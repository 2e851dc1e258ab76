"""Arrays of ``.npz`` files, a part at a time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import himatch as hm
from himatch.data import flat
from himatch.data.npz import open_npz
from himatch.errors import DataError


def arrays(steps: int = 50) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "observations": rng.normal(size=(steps, 3)),
        "actions": np.asfortranarray(rng.normal(size=(steps, 2)).astype(np.float32)),
        "rewards": rng.normal(size=(steps, 1)).astype(">f4"),
        "lengths": np.array([20, steps - 20]),
    }


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_rows_in_any_order_are_those_of_the_array(save, tmp_path: Path) -> None:
    save(tmp_path / "log.npz", **arrays())
    with open_npz(tmp_path / "log.npz", "log") as columns:
        for name, array in arrays().items():
            column = columns[name]
            assert (column.shape, column.dtype) == (array.shape, array.dtype)
            for start, stop in ((0, 7), (7, 20), (40, 50), (3, 5), (5, 5)):
                np.testing.assert_array_equal(column[start:stop], array[start:stop])
            np.testing.assert_array_equal(column[...], array)
        np.testing.assert_array_equal(columns["observations"][2:4, :2], arrays()["observations"][2:4, :2])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_blocks_make_the_whole(save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "log.npz", **arrays())
    monkeypatch.setattr(flat, "BLOCK", 7)
    data = hm.load_dataset(tmp_path / "log.npz")
    for name in ("observations", "actions"):
        np.testing.assert_array_equal(getattr(data, name), arrays()[name].astype(np.float32))
    np.testing.assert_array_equal(data.rewards, arrays()["rewards"][:, 0])
    assert data.lengths.tolist() == [20, 30]


def test_a_damaged_row_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez(path, **arrays())
    content = bytearray(path.read_bytes())
    place = content.index(arrays()["observations"][30].tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"log\.npz"):
        hm.load_dataset(path)


def test_mapping_a_file_does_not_read_it_into_memory(tmp_path: Path) -> None:
    steps = 400_000
    observations, lengths = np.ones((steps, 20), dtype=np.float32), np.full(steps // 1000, 1000)
    np.savez(tmp_path / "log.npz", observations=observations, actions=np.ones((steps, 1)), lengths=lengths)
    tracemalloc.start()
    try:
        hm.load_dataset(tmp_path / "log.npz", mmap=tmp_path / "map")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < observations.nbytes / 2
