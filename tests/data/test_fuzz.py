"""Damaged files of every format either load or are refused; nothing else comes out."""

import json
import pickle
import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from builders import ARM, FORMATS, episode_dicts, flat_columns, make_episodes, table, write_csv, write_npz

import himatch as hm

pytestmark = pytest.mark.filterwarnings("ignore::himatch.HimatchWarning")  # repairs are allowed

ROUNDS = 50  # benchmarks/damage.py does thousands
BYTEWISE = [name for name in FORMATS if name in ("npz", "csv", "parquet") or name.startswith("pickle")]


def flip(rng, content):
    damaged = bytearray(content)
    for place in rng.integers(0, len(content), rng.integers(1, 9)):
        damaged[place] = rng.integers(256)
    return bytes(damaged)


def truncate(rng, content):
    return content[: rng.integers(len(content))]


def delete(rng, content):
    start, size = rng.integers(len(content)), rng.integers(1, 64)
    return content[:start] + content[start + size :]


def duplicate(rng, content):
    start, size = rng.integers(len(content)), rng.integers(1, 64)
    return content[: start + size] + content[start:]


BYTE_DAMAGE = (flip, truncate, delete, duplicate)


def survives(path, task=ARM):
    """Whether it loads; refusing is as good, anything else is the bug these tests look for."""
    try:
        dataset = hm.load_dataset(path, task)
    except hm.HimatchError as error:
        message = str(error)
    else:
        assert np.isfinite(dataset.observations).all()
        assert np.isfinite(dataset.actions).all()
        return True
    first, *others = message.splitlines()
    heads = (f": {len(others)} kinds of problems", f": {len(others)} episodes cannot be read")
    assert not others or first.endswith(heads), message
    return False


def outcomes(path, damage, rounds=ROUNDS):
    """How often it loaded, over seeded damage; the failing seed is the round a traceback shows."""
    loaded = 0
    for seed in range(rounds):
        damage(np.random.default_rng(seed))
        loaded += survives(path)
    return loaded


@pytest.mark.parametrize("name", BYTEWISE)
def test_bytes(name, tmp_path):
    path = FORMATS[name].write(make_episodes(), tmp_path)
    content = path.read_bytes()

    def damage(rng):
        path.write_bytes(BYTE_DAMAGE[rng.integers(len(BYTE_DAMAGE))](rng, content))

    assert outcomes(path, damage, 3 * ROUNDS) < 3 * ROUNDS  # some damage is noticed


def test_bytes_of_an_uncompressed_npz(tmp_path):
    """Compressed archives fail their checksum; here the damage reaches NumPy's own header as well."""
    path = tmp_path / "log.npz"
    member = tmp_path / "observations.npy"
    columns = flat_columns(make_episodes())
    np.save(member, columns["observations"])
    content = member.read_bytes()

    def damage(rng):
        np.savez(path, **{name: column for name, column in columns.items() if name != "observations"})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("observations.npy", BYTE_DAMAGE[rng.integers(len(BYTE_DAMAGE))](rng, content[:200]))

    assert outcomes(path, damage) == 0


@pytest.mark.parametrize("form", ["minari-arrow", "minari-parquet"])
def test_bytes_of_arrow_files(form, tmp_path):
    folder = FORMATS[form].write(make_episodes((4, 3)), tmp_path)
    path = next((folder / "data" / "0").glob("part-0.*"))
    content = path.read_bytes()

    def damage(rng):
        path.write_bytes(BYTE_DAMAGE[rng.integers(len(BYTE_DAMAGE))](rng, content))

    assert outcomes(folder, damage) < ROUNDS


@pytest.mark.parametrize("place", ["data/metadata.json", "data/1/metadata.json"])
def test_bytes_of_minari_metadata(place, tmp_path):
    folder = FORMATS["minari-arrow"].write(make_episodes((4, 3)), tmp_path)
    content = (folder / place).read_bytes()

    def damage(rng):
        (folder / place).write_bytes(BYTE_DAMAGE[rng.integers(len(BYTE_DAMAGE))](rng, content))

    assert outcomes(folder, damage) < ROUNDS


# The HDF5 library is C and may crash on a damaged file; a process of its own keeps the tests alive, and what counts is
# that no other exception comes out before.
HDF5_BYTES = """
import sys, warnings
from pathlib import Path
import numpy as np
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
warnings.simplefilter("ignore")
from test_fuzz import BYTE_DAMAGE, survives
path, source = Path(sys.argv[2]), Path(sys.argv[3])
content = path.read_bytes()
for seed in range(int(sys.argv[4]), int(sys.argv[5])):
    rng = np.random.default_rng(seed)
    path.write_bytes(BYTE_DAMAGE[rng.integers(len(BYTE_DAMAGE))](rng, content))
    print(seed, survives(source), flush=True)
"""


@pytest.mark.parametrize("name", ["flat", "himatch"])
def test_bytes_of_hdf5_files(name, request, tmp_path):
    source = FORMATS[name].write(make_episodes((4, 3)), tmp_path)
    path = source if source.is_file() else source / "data" / "main_data.hdf5"
    content, folder = path.read_bytes(), str(request.path.parent)
    start, crashes = 0, 0
    while start < ROUNDS:
        path.write_bytes(content)
        arguments = [folder, str(path), str(source), str(start), str(ROUNDS)]
        done = subprocess.run(
            [sys.executable, "-c", HDF5_BYTES, *arguments], capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        start += len(done.stdout.splitlines())
        if done.returncode:
            start, crashes = start + 1, crashes + 1  # the C library died of this one; go on after it
    assert crashes < 5


# -- damage that the file format does not notice ----------------------------------------------------------------------


def corrupt(rng, value):
    """A wrong shape, type or number in place of an array, or None to leave it out."""
    value = np.asarray(value)
    poked = value.astype(np.float64) if value.dtype.kind in "fiub" else value.copy()
    if value.dtype.kind in "fiub" and value.size:
        poked[tuple(int(rng.integers(n)) for n in value.shape)] = rng.choice(
            [np.nan, np.inf, -np.inf, 1e300, -1e39, 1e9, 0, -1]
        )
    choices = [
        None,
        poked,
        value[: rng.integers(0, len(value) + 1)] if value.ndim else value,
        value[..., None],
        value.ravel()[:1].reshape(()) if value.size else value,
        value.reshape(-1),
        value.astype(str),
        value.astype("S"),
        np.zeros_like(value, dtype=complex) if value.dtype.kind in "fiub" else value,
        np.zeros_like(value, dtype=np.int64) if value.dtype.kind in "fiub" else value,
        np.zeros((0, *value.shape[1:])),
        np.concatenate([value, value]) if value.ndim else value,
        value.T,
        rng.integers(-(2**62), 2**62, size=value.shape),
        np.zeros((*value.shape, 0)),
    ]
    return choices[rng.integers(len(choices))]


def corrupted(rng, columns):
    """Two of the columns corrupted, or one twice."""
    columns = dict(columns)
    for _ in range(2):
        name = sorted(columns)[rng.integers(len(columns))]
        value = corrupt(rng, columns.pop(name))
        if value is not None:
            columns[name] = value
    return columns


def test_columns_of_a_dictionary_and_of_npz_and_hdf5(tmp_path):
    with np.load(write_npz(make_episodes(), tmp_path)) as file:
        with_lengths = {name: file[name] for name in file.files}
    loaded = 0
    for columns in (with_lengths, flat_columns(make_episodes())):
        for seed in range(3 * ROUNDS):
            damaged = corrupted(np.random.default_rng(seed), columns)
            loaded += survives(damaged)
            if seed % 3 == 0:
                np.savez(tmp_path / "log.npz", **damaged)
                survives(tmp_path / "log.npz", None)
            if seed % 3 == 1:
                with h5py.File(tmp_path / "log.hdf5", "w") as file:
                    for name, column in damaged.items():
                        file[name] = column.astype("S") if column.dtype.kind == "U" else column
                survives(tmp_path / "log.hdf5", None)
    assert 0 < loaded < 6 * ROUNDS


def test_episodes_of_a_pickle(tmp_path):
    def damage(rng):
        episodes = episode_dicts(make_episodes((4, 3)))
        which = rng.integers(2)
        episodes[which] = corrupted(rng, {k: v for k, v in episodes[which].items() if k != "label"})
        (tmp_path / "log.pkl").write_bytes(pickle.dumps(episodes))

    assert 0 < outcomes(tmp_path / "log.pkl", damage, 3 * ROUNDS) < 3 * ROUNDS


def test_episodes_of_a_minari_folder(tmp_path):
    folder = FORMATS["himatch"].write(make_episodes((4, 3)), tmp_path)
    path = folder / "data" / "main_data.hdf5"
    content = path.read_bytes()

    def damage(rng):
        path.write_bytes(content)
        with h5py.File(path, "a") as file:
            group = file[f"episode_{rng.integers(2)}"]
            columns = {name: group[name][...] for name in group}
            damaged = corrupted(rng, columns)
            for name in columns:
                del group[name]
            for name, value in damaged.items():
                group[name] = value.astype("S") if value.dtype.kind == "U" else value

    assert 0 < outcomes(folder, damage, 2 * ROUNDS) < 2 * ROUNDS


JUNK = (
    None,
    True,
    -1,
    0,
    1e99,
    10**12,
    "",
    "{",
    "[]",
    "null",
    '{"type": "Box"}',
    '{"id": 3}',
    [],
    {},
    [1],
    {"task": 3},
)


def test_values_of_minari_metadata(tmp_path):
    folder = FORMATS["himatch"].write(make_episodes((4, 3)), tmp_path)
    path = folder / "data" / "metadata.json"
    metadata = json.loads(path.read_text())
    loaded = 0
    for key in (*metadata, "env_spec"):
        for junk in JUNK:
            path.write_text(json.dumps({**metadata, key: junk}))
            loaded += survives(folder, None)
    assert 0 < loaded < len(JUNK) * (len(metadata) + 1)


CELLS = (
    "",
    "nan",
    "inf",
    "1e400",
    "x",
    '"',
    "'",
    "#",
    "1,2",
    "\x00",
    "\r",
    "\n",
    "ü",
    " ",
    "-",
    "0x10",
    "1_0",
    "9" * 200000,
)


def test_cells_of_csv(tmp_path):
    path = write_csv(make_episodes((4, 3)), tmp_path)
    lines = path.read_text().splitlines()

    def damage(rng):
        row = rng.integers(len(lines))
        cells = lines[row].split(",")
        cells[rng.integers(len(cells))] = CELLS[rng.integers(len(CELLS))]
        path.write_text("\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]]), newline="")

    assert 0 < outcomes(path, damage, 2 * ROUNDS) < 2 * ROUNDS


def test_columns_of_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    rows = table(make_episodes((4, 3)))
    odd = (
        [None] * 7,
        ["a"] * 7,
        [[1.0]] * 7,
        [{"a": 1}] * 7,
        [True] * 7,
        [b"\xff"] * 7,
        [10**18] * 7,
        [1.0, None] * 3 + [1.0],
    )

    def damage(rng):
        columns = dict(rows)
        name = sorted(columns)[rng.integers(len(columns))]
        columns.pop(name)
        if rng.integers(5):
            columns[name] = odd[rng.integers(len(odd))]
        pyarrow.parquet.write_table(pyarrow.table(columns), path)

    assert 0 < outcomes(path, damage) < ROUNDS


@pytest.mark.parametrize("damage", BYTE_DAMAGE, ids=lambda damage: damage.__name__)
def test_bytes_of_a_toml_mapping(damage, tmp_path):
    path = write_csv(make_episodes((4, 3)), tmp_path)
    content = b'episode = "episode"\nobservations = ["obs_0", "obs_1", "obs_2"]\nactions = "act*"\n'
    mapping = path.with_suffix(".toml")

    def write(rng):
        mapping.write_bytes(damage(rng, content))

    assert outcomes(path, write, 40) < 40
