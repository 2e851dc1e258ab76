"""Damaged files: does himatch refuse them in one line, or read exactly what is there? Never anything else.

    python benchmarks/damage.py [--runs 1000] [--datasets 1000] [--seed 0] [--timeout 30]

A run folder that is damaged must be refused with a ``HimatchError``, or load to the same policy: the same actions on
fixed observations, the same W1 of the episode mixture, the same held-out episodes, the same state of training. A
dataset must be refused, or be read as an independent plain reader (h5py, NumPy, csv, json, pickle) reads the damaged
file: formats without checksums cannot know of a flipped bit in a number. Cases run in a process of their own, so that
one that crashes, hangs or allocates gigabytes is found too. Prints a table of damage and outcome, and ends with 1 if
there is any other outcome than ``refused``, ``same`` and ``as read``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import multiprocessing
import pickle
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import himatch as hm
from himatch.errors import HimatchError
from himatch.runs.folder import RunFolder

GOOD = ("refused", "same", "as read")
MOST_LINES = 12  # of a message
LARGEST = 500_000_000  # bytes that reading may take beside what the process had
EPISODES, STEPS, OBS, ACT = 24, 40, 3, 2

# -- damage ---------------------------------------------------------------------------------------------------------


def flip(content: bytes, draw: random.Random) -> bytes:
    damaged = bytearray(content)
    damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def scribble(content: bytes, draw: random.Random) -> bytes:
    place, size = draw.randrange(len(content)), draw.randint(1, 64)
    return content[:place] + draw.randbytes(min(size, len(content) - place)) + content[place + size :]


def zeros(content: bytes, draw: random.Random) -> bytes:
    place, size = draw.randrange(len(content)), draw.choice([1, 16, 512, 4096])
    return content[:place] + bytes(min(size, len(content) - place)) + content[place + size :]


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.choice([0, draw.randrange(len(content)), len(content) - 1])]


def insert(content: bytes, draw: random.Random) -> bytes:
    place = draw.randint(0, len(content))
    return content[:place] + draw.randbytes(draw.randint(1, 64)) + content[place:]


BYTES = {"bit flipped": flip, "bytes overwritten": scribble, "block zeroed": zeros, "cut": cut, "inserted": insert}
OTHERS: tuple[Any, ...] = (None, True, -1, 10**12, 0.5, "word", [], {}, [1, "a"])


def edit_json(content: bytes, draw: random.Random, *, remove: bool) -> bytes:
    """Remove a key somewhere, or give it a value of another kind."""
    whole = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = list(value) if isinstance(value, dict) else range(min(3, len(value))) if isinstance(value, list) else []
        for key in keys:
            places.append((value, key))
            walk(value[key])

    walk(whole)
    parent, key = draw.choice(places)
    if remove:
        del parent[key]
    else:
        parent[key] = draw.choice([other for other in OTHERS if other != parent[key]])
    return json.dumps(whole).encode()


def damage(place: Path, other: Path, draw: random.Random) -> tuple[str, str]:
    """Damage one file below ``place``; ``other`` holds the same files of other content. What was done, and to what."""
    files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    path = draw.choice([one for one in files if one.stat().st_size])
    kinds = [*BYTES, "removed", "of another"]
    kinds += ["swapped"] if len(files) > 1 else []
    kinds += 3 * ["key removed", "value changed"] if path.suffix == ".json" else []
    kind, content = draw.choice(kinds), path.read_bytes()
    if kind in BYTES:
        path.write_bytes(BYTES[kind](content, draw))
    elif kind == "removed":
        path.unlink()
    elif kind == "of another":
        twin = other / path.relative_to(place) if place.is_dir() else other
        path.write_bytes(twin.read_bytes())
    elif kind == "swapped":
        second = draw.choice([one for one in files if one != path])
        first = path.read_bytes()
        path.write_bytes(second.read_bytes())
        second.write_bytes(first)
    else:
        path.write_bytes(edit_json(content, draw, remove=kind == "key removed"))
    return kind, path.name


# -- run folders ----------------------------------------------------------------------------------------------------


RIG: dict[str, Any] = {"observation_width": OBS, "action_width": ACT, "action_low": -1.0, "action_high": 1.0}


def speed(obs: Any, act: Any, rew: Any) -> Any:
    return np.abs(obs[:, 0]) + 0.1 * obs[:, 1]


def task() -> hm.Task:
    """The same task, registered: a run of it is loaded by its name."""
    return hm.register_task("damage-rig", horizon=STEPS, features={"speed": speed}, **RIG)


def episodes(seed: int) -> list[hm.Trajectory]:
    rng = np.random.default_rng(seed)
    return [
        hm.Trajectory(
            rng.normal(size=(STEPS - i % 3, OBS)).astype(np.float32),
            rng.uniform(-0.9, 0.9, (STEPS - i % 3, ACT)).astype(np.float32),
            rng.normal(size=STEPS - i % 3).astype(np.float32),
            terminated=i % 3 > 0,
        )
        for i in range(EPISODES)
    ]


def make_run(out: Path, seed: int) -> None:
    task()
    small: dict[str, Any] = {"context": 4, "layers": 1, "width": 16, "steps": 6, "batch_size": 8, "preset": "cpu"}
    data = hm.load_dataset(episodes(seed), task())
    hm.train(hm.CDT("speed"), data, out=out, seeds=2, split="random", device="cpu", quiet=True, **small)


def run_content(run: Path) -> str:
    """A digest of everything that a run folder gives."""
    policy, seal = hm.load(run), hashlib.sha256()
    for seed in range(2):
        seal.update(policy.actions(episodes(5)[seed], "normal(1,0.5)").tobytes())
    reference = policy.reference()
    mixture = reference.mixture(policy.target("normal(1,0.5)"))
    held_out = policy.held_out
    seal.update(f"{mixture.w1!r} {policy.seeds} {policy.groups} {policy.temperature} {policy.run.stopped_at}".encode())
    seal.update((held_out.content_hash if held_out is not None else "nothing").encode())
    RunFolder(run).check_free(resume=True)  # refuses where there are weights and no state of training
    for name, tensor in sorted((RunFolder(run).training_state() or {}).items()):
        seal.update(name.encode() + tensor.cpu().numpy().tobytes())
    return seal.hexdigest()


def run_case(case: Path, origin: Path, wanted: str) -> str:
    return "same" if run_content(case) == wanted else "ANOTHER"


# -- datasets -------------------------------------------------------------------------------------------------------

Arrays = dict[str, Any]


def columns(data: list[hm.Trajectory]) -> Arrays:
    """Flat columns, as D4RL has them."""
    ends = np.cumsum([len(one) for one in data]) - 1
    flags = np.zeros((2, ends[-1] + 1), bool)
    for end, one in zip(ends, data, strict=True):
        flags[0 if one.terminated else 1, end] = True
    return {
        "observations": np.concatenate([one.observations for one in data]),
        "actions": np.concatenate([one.actions for one in data]),
        "rewards": np.concatenate([one.rewards for one in data if one.rewards is not None]),
        "terminals": flags[0],
        "timeouts": flags[1],
    }


def write_hdf5(out: Path, data: list[hm.Trajectory]) -> None:
    with h5py.File(out, "w") as file:
        for name, column in columns(data).items():
            file.create_dataset(name, data=column)


def write_packed_hdf5(out: Path, data: list[hm.Trajectory]) -> None:
    with h5py.File(out, "w") as file:
        for name, column in columns(data).items():
            file.create_dataset(name, data=column, compression="gzip", fletcher32=True)


def write_npz(out: Path, data: list[hm.Trajectory]) -> None:
    np.savez(out, **columns(data))


def write_pickle(out: Path, data: list[hm.Trajectory]) -> None:
    names = ("observations", "actions", "rewards")
    listed = [
        {name: getattr(one, name) for name in names} | {"terminals": np.eye(len(one))[-1] > 1 - one.terminated}
        for one in data
    ]
    out.write_bytes(pickle.dumps(listed))


def write_csv(out: Path, data: list[hm.Trajectory]) -> None:
    with out.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["episode", "obs0", "obs1", "obs2", "act0", "act1", "reward"])
        for number, one in enumerate(data):
            assert one.rewards is not None
            for step in range(len(one)):
                values = (*one.observations[step], *one.actions[step], one.rewards[step])
                rows.writerow([number, *(f"{value:.9g}" for value in values)])


def write_minari(out: Path, data: list[hm.Trajectory]) -> None:
    hm.write_minari(hm.load_dataset(data, task()), out)


def write_mapped(out: Path, data: list[hm.Trajectory]) -> None:
    out.mkdir()
    write_npz(out / "source.npz", data)
    hm.load_dataset(out / "source.npz", task(), mmap=out / "mapped")


def flat_episodes(found: Arrays) -> Iterator[Arrays]:
    ends = np.flatnonzero(found["terminals"].astype(bool) | found["timeouts"].astype(bool))
    starts = [0, *(ends + 1).tolist()]
    last = len(found["observations"])
    for start, stop in zip(starts, [*starts[1:], last], strict=True):
        if stop > start:
            yield {name: found[name][start:stop] for name in ("observations", "actions", "rewards")}


def plain_hdf5(path: Path) -> list[Arrays]:
    with h5py.File(path) as file:
        return list(flat_episodes({name: file[name][...] for name in columns(episodes(0))}))


def plain_npz(path: Path) -> list[Arrays]:
    with np.load(path) as file:
        return list(flat_episodes({name: file[name] for name in columns(episodes(0))}))


def plain_pickle(path: Path) -> list[Arrays]:
    return list(pickle.loads(path.read_bytes()))


def plain_csv(path: Path) -> list[Arrays]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(path.read_text())):
        found.setdefault(row["episode"], []).append(row)
    names = {"observations": ("obs0", "obs1", "obs2"), "actions": ("act0", "act1"), "rewards": ("reward",)}
    return [
        {what: np.array([[float(row[name]) for name in of] for row in rows]).squeeze() for what, of in names.items()}
        for rows in found.values()
    ]


def plain_minari(path: Path) -> list[Arrays]:
    with h5py.File(path / "data" / "main_data.hdf5") as file:
        groups = [file[f"episode_{i}"] for i in range(len(file))]
        return [
            {"observations": g["observations"][:-1], "actions": g["actions"][...], "rewards": g["rewards"][...]}
            for g in groups
        ]


def plain_mapped(path: Path) -> list[Arrays]:
    folder = path / "mapped"
    found = {name: np.load(folder / f"{name}.npy") for name in ("observations", "actions", "rewards")}
    stops = np.cumsum(json.loads((folder / "packed.json").read_text())["lengths"])
    return [
        {name: array[start:stop] for name, array in found.items()}
        for start, stop in zip([0, *stops[:-1]], stops, strict=True)
    ]


FORMATS: dict[str, tuple[Callable[[Path, list[hm.Trajectory]], None], Callable[[Path], list[Arrays]]]] = {
    "d4rl.hdf5": (write_hdf5, plain_hdf5),
    "packed.hdf5": (write_packed_hdf5, plain_hdf5),
    "arrays.npz": (write_npz, plain_npz),
    "episodes.pkl": (write_pickle, plain_pickle),
    "table.csv": (write_csv, plain_csv),
    "minari-v0": (write_minari, plain_minari),
    "map": (write_mapped, plain_mapped),
}


def load(path: Path) -> hm.TrajectoryDataset:
    if path.name == "map":
        return hm.load_dataset(path / "source.npz", task(), mmap=path / "mapped")
    return hm.load_dataset(path, task())


def dataset_case(case: Path, origin: Path, wanted: str) -> str:
    found = load(case)
    if found.content_hash == wanted:
        return "same"
    plain = FORMATS[origin.name][1](case)
    alike = len(plain) == len(found) and all(
        np.array_equal(np.asarray(one[name], np.float32).reshape(len(got), -1), array.reshape(len(got), -1))
        for one, got in zip(plain, found, strict=True)
        for name, array in (("observations", got.observations), ("actions", got.actions), ("rewards", got.rewards))
        if array is not None
    )
    return "as read" if alike else "ANOTHER"


# -- cases ----------------------------------------------------------------------------------------------------------


def outcome(check: Callable[[Path, Path, str], str], case: Path, origin: Path, wanted: str) -> tuple[str, str]:
    """How a damaged file ends, and what was said."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ended, said = check(case, origin, wanted), ""
    except HimatchError as reason:
        lines = len(str(reason).splitlines())  # all problems of a table come at once, a line each
        ended, said = ("refused" if lines <= MOST_LINES else "MANY LINES"), str(reason)
    except Exception:  # the bug that is looked for
        ended, said = "TRACEBACK", traceback.format_exc()
    if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 > LARGEST:
        ended = "HUGE"
    return ended, said


def work(line: Connection) -> None:
    """Cases as they come, in a process that may be lost."""
    task()
    checks = {"run": run_case, "dataset": dataset_case}
    while (case := line.recv()) is not None:
        line.send(outcome(checks[case[0]], *case[1:]))


class Worker:
    """A process that takes cases, made anew where one is lost."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.begin()

    def begin(self) -> None:
        """Start a process."""
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()

    def __call__(self, *case: Any) -> tuple[str, str]:
        """How a case ends."""
        self.line.send(case)
        try:
            if self.line.poll(self.timeout):
                ended: tuple[str, str] = self.line.recv()
                return ended
            lost = "HANG"
        except EOFError:
            lost = "CRASH"
        self.process.kill()
        self.process.join()
        self.begin()
        return lost, ""

    def close(self) -> None:
        """No more cases."""
        self.line.send(None)
        self.process.join()


def origins(place: Path, kind: str) -> list[tuple[Path, Path, str]]:
    """Whole files, the same with other content, and the digest of the first."""
    made = []
    if kind == "run":
        for name, seed in (("run", 0), ("other", 1)):
            make_run(place / name, seed)
        return [(place / "run", place / "other", run_content(place / "run"))]
    for name, (write, _) in FORMATS.items():
        for folder, seed in (("whole", 0), ("other", 1)):
            (place / folder).mkdir(exist_ok=True)
            write(place / folder / name, episodes(seed))
        whole = place / "whole" / name
        made.append((whole, place / "other" / name, load(whole).content_hash))
    return made


def copied(origin: Path, out: Path) -> Path:
    """A copy to damage, times included: the mapped arrays belong to a source of that time."""
    if origin.is_dir():
        return Path(shutil.copytree(origin, out / origin.name))
    return Path(shutil.copy2(origin, out / origin.name))


def measure(
    kind: str, count: int, seed: int, judge: Callable[..., tuple[str, str]], place: Path
) -> tuple[Counter[tuple[str, str, str]], list[str]]:
    """So many damaged copies, counted by format, damage and outcome; what was wrong, in words."""
    draw, table, wrong = random.Random(seed), Counter[tuple[str, str, str]](), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = origins(place, kind)
    for number in range(count):
        origin, other, wanted = made[number % len(made)]
        folder = place / f"case{number}"
        folder.mkdir()
        case = copied(origin, folder)
        if case.name == "map":  # its request names the source's path: that of the copy
            shutil.rmtree(case / "mapped")
            load(case)
            how, what = damage(case / "mapped", other / "mapped", draw)
        else:
            how, what = damage(case, other, draw)
        ended, said = judge(kind, case, origin, wanted)
        table[origin.name, how, ended] += 1
        if ended not in GOOD:
            wrong.append(f"case {number}: {origin.name}, {what}, {how}: {ended}\n{said}")
        shutil.rmtree(folder)
    return table, wrong


def markdown(table: Counter[tuple[str, str, str]], by: int) -> str:
    """Counts by format (0) or damage (1) and outcome."""
    rows = sorted({key[by] for key in table})
    ends = [*GOOD, *sorted({key[2] for key in table} - set(GOOD))]
    lines = ["| | " + " | ".join(ends) + " |", "|---" * (len(ends) + 1) + "|"]
    for row in rows:
        counts = (sum(n for key, n in table.items() if (key[by], key[2]) == (row, end)) for end in ends)
        lines.append(f"| {row} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=30.0)
    given = parser.parse_args()
    task()
    failed = []
    for kind, count in (("run", given.runs), ("dataset", given.datasets)):
        if not count:
            continue
        worker = Worker(given.timeout)
        with tempfile.TemporaryDirectory() as folder:
            table, wrong = measure(kind, count, given.seed, worker, Path(folder))
        worker.close()
        print(f"\n{count} damaged {kind}s\n\n{markdown(table, 1)}")
        if kind == "dataset":
            print(f"\n{markdown(table, 0)}")
        failed += wrong
    print("\n".join(failed), file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
