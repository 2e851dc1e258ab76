"""``himatch data make``, ``list`` and ``collect`` as a user runs them."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest
from command_line import Run, assert_refused
from waiting import ORPHANED, PATIENCE, program, wait_for

import himatch as hm
from himatch.datagen.cache import cached_dataset
from himatch.datagen.recipes import Recipe, RecipePart


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.py"
    path.write_text(
        "import numpy as np\n"
        "def still(observations):\n    return np.zeros((len(observations), 3))\n"
        "def nan(observations):\n    return np.full((len(observations), 3), np.nan)\n"
        "def wide(observations):\n    return np.zeros((len(observations), 5))\n"
        "def fails(observations):\n    raise RuntimeError('tired')\n"
    )
    return path


# -- make -----------------------------------------------------------------------------------------------------------


def test_make_and_inspect(run: Run, bundled: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets" / "hop-v0"
    command = ("data", "make", "hopper-medium-expert", "--out", out, "--episodes", 16, "--seed", 3, "--threads", 1)
    code, text, err = run(*command)
    assert (code, err) == (0, "")
    dataset = hm.load_dataset(out)
    assert text.startswith(f"16 episodes, {dataset.steps} steps, sha256 {dataset.content_hash[:16]} written to")
    code, text, _ = run("data", "inspect", out, "--json", "--plot", tmp_path / "hop.png")
    assert code == 0
    assert json.loads(text)["episodes"] == 16
    assert (tmp_path / "hop.png").is_file()
    assert_refused(run(*command), "exists already", "--overwrite")
    assert run(*command, "--overwrite")[0] == 0
    assert hm.load_dataset(out).content_hash == dataset.content_hash


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("hopper-mediun",), ("no dataset called 'hopper-mediun'", "did you mean hopper-medium")),
        (("tango",), ("no dataset called 'tango'", "known: halfcheetah-medium", "cheetah-vel")),
        (("hopper-medium", "--episodes", "0"), ("hopper-medium needs at least one episode; got 0",)),
        (("cheetah-vel", "--episodes", "7"), ("needs at least 31 episodes, one for each of its parts; got 7",)),
        (("hopper-medium", "--seed", "-1"), ("the seed must be 0 or more",)),
        (("hopper-medium", "--threads", "-1"), ("threads must be 0",)),
        (("hopper-medium", "--out", "/dev/null/set"), ("/dev/null/set: cannot be written", "not a folder")),
        (("hopper-medium", "--experts", "/nowhere"), ("the expert 'hopper-medium', which is not in /nowhere",)),
    ],
)
def test_make_refuses(
    run: Run, bundled: Path, tmp_path: Path, arguments: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    out = () if "--out" in arguments else ("--out", tmp_path / "set-v0")
    assert_refused(run("data", "make", *arguments, *out), *fragments)
    assert [path for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_make_says_that_experts_are_missing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himatch.experts.cards.BUNDLED", tmp_path / "empty")
    assert_refused(run("data", "make", "ant-expert", "--out", tmp_path / "set-v0"), "the expert 'ant-expert', which")


def test_a_full_disk_is_one_line(run: Run, bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", full)
    result = run("data", "make", "hopper-medium", "--episodes", 2, "--out", tmp_path / "sets" / "set-v0")
    assert_refused(result, "set-v0: cannot be written, the disk is full")
    assert list((tmp_path / "sets").iterdir()) == []


def test_a_file_that_cannot_grow_is_one_line(policy: Path, tmp_path: Path) -> None:
    """HDF5 itself would crash on what a full disk does to it."""
    pytest.importorskip("resource")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
        "from himatch.cli import main; main(sys.argv[1:])"
    )
    out = tmp_path / "sets" / "set-v0"
    arguments = ["data", "collect", "--task", "hopper", "--policy", f"{policy}:still", "--out", str(out)]
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert_refused((result.returncode, result.stdout, result.stderr), "File too large")
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    out, policy = tmp_path / "sets" / "set-v0", tmp_path / "policy.py"
    policy.write_text(
        ORPHANED + "from pathlib import Path\nimport numpy as np\n"
        "def still(observations):\n"
        "    Path(__file__).with_name('acted').touch()\n"
        "    return np.zeros((len(observations), 6))\n"
    )
    command = ["data", "collect", "--task", "halfcheetah", "--out", out, "--policy", f"{policy}:still"]
    heard = functools.partial(signal.signal, number, signal.SIG_DFL)  # shells have background jobs ignore SIGINT
    with program(*command, "--episodes", 100_000, preexec_fn=heard) as process:
        wait_for((tmp_path / "acted").exists, "the policy to act", process)
        assert len(list(out.parent.iterdir())) == 1  # it is at work in a folder of another name
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout, stderr) == (130, "", "himatch: interrupted\n")
    assert list(out.parent.iterdir()) == []


# -- names as sources -----------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small recipe under a real name."""
    small = {"hopper-medium": Recipe("hopper-medium", "hopper", (RecipePart("hopper-medium", 3, "hop"),))}
    for module in ("datagen.recipes", "datagen.cache"):
        monkeypatch.setattr(f"himatch.{module}.RECIPES", small)
    monkeypatch.setattr("himatch.datagen.cache.MAZES", {})


def test_a_name_is_a_source(run: Run, tiny: None, tmp_path: Path) -> None:
    code, text, err = run("data", "inspect", "hopper-medium", "--cache", tmp_path / "mine", "--json")
    assert (code, err) == (0, "")
    assert json.loads(text)["episodes"] == 3
    assert len(list((tmp_path / "mine").iterdir())) == 1
    code, text, _ = run("data", "convert", "hopper-medium+hopper-medium", tmp_path / "twice-v0")
    assert code == 0
    assert text.startswith("6 episodes")
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_list(run: Run, tiny: None, tmp_path: Path) -> None:
    code, text, err = run("data", "list")
    assert (code, err) == (0, "")
    assert "hopper-medium" in text
    assert "MB" not in text
    cached_dataset("hopper-medium", quiet=True)
    code, text, _ = run("data", "list")
    assert "0 MB" in text
    (entry,) = json.loads(run("data", "list", "--json")[1])
    assert entry["name"] == "hopper-medium"
    assert entry["parts"][0]["expected"]["mean"] == 100.0
    assert entry["cached"]["episodes"] == 3
    (entry,) = json.loads(run("data", "list", "--json", "--cache", tmp_path / "other")[1])
    assert entry["cached"] is None


def test_list_shows_everything(run: Run, bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text, _ = run("data", "list")
    assert code == 0
    row = next(line.split() for line in text.splitlines() if "cheetah-vel" in line)
    assert row == ["cheetah-vel", "0.0", "...", "3.0", "7,750", "1,550,000", "0", "...", "3,000"]
    monkeypatch.setattr("himatch.experts.cards.BUNDLED", tmp_path / "empty")
    assert run("data", "list")[1].count("expert not bundled") == 15


# -- collect --------------------------------------------------------------------------------------------------------


def test_collect(run: Run, policy: Path, tmp_path: Path) -> None:
    out = tmp_path / "still-v0"
    command = ("data", "collect", "--task", "hopper", "--policy", f"{policy}:still", "--out", out, "--episodes", 3)
    code, text, err = run(*command, "--label", "fall", "--slots", 2)
    assert (code, err) == (0, "")
    dataset = hm.load_dataset(out)
    assert dataset.labels == ("fall",) * 3
    assert f"sha256 {dataset.content_hash[:16]}" in text
    assert f"mean {dataset.returns.mean():.1f}" in text
    assert_refused(run(*command), "exists already")


def test_collect_in_a_task_of_the_users_own(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from himatch.tasks import registry

    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    (tmp_path / "mine.py").write_text(
        "import himatch\nhimatch.register_task('swing', env_id='Pendulum-v1', horizon=20)\n"
        "def swing(observations):\n    return observations[:, 1:2]\n"
    )
    names = ("--import", tmp_path / "mine.py", "--task", "swing", "--policy", f"{tmp_path / 'mine.py'}:swing")
    code, text, _ = run("data", "collect", *names, "--out", tmp_path / "swing-v0", "--episodes", 2)
    assert code == 0
    assert text.startswith("2 episodes, 40 steps")


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("--policy", "POLICY:nan"), ("policy.py:nan returned NaN or infinity in episode 0, step 0",)),
        (("--policy", "POLICY:wide"), ("returned shape (2, 5)", "needs (2, 3)")),
        (("--policy", "POLICY:fails"), ("policy.py:fails failed: RuntimeError: tired",)),
        (("--policy", "POLICY:flies"), ("no function 'flies'", "still")),
        (("--policy", "no_such_module:f"), ("--policy no_such_module:f: no such module",)),
        (("--policy", "POLICY:still", "--episodes", "0"), ("episodes must be at least 1",)),
        (("--policy", "POLICY:still", "--task", "moon"), ("unknown task 'moon'",)),
        (("--policy", "POLICY:still", "--out", "/dev/null/x"), ("/dev/null/x: cannot be written",)),
        (("--policy", "sb3:POLICY"), ("policy.py",)),
        (("--policy", "expert:nobody"), ("no expert called 'nobody' comes with himatch",)),
    ],
)
def test_collect_refuses(
    run: Run, bundled: Path, policy: Path, tmp_path: Path, arguments: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    defaults = {"--task": "hopper", "--episodes": "2", "--out": str(tmp_path / "set-v0")}
    flags = [x.replace("POLICY", str(policy)) for pair in {**defaults, **given}.items() for x in pair]
    assert_refused(run("data", "collect", *flags), *fragments)
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["policy.py"]


def test_help(run: Run) -> None:
    for command in ("make", "list", "collect"):
        code, text, _ = run("data", command, "--help")
        assert code == 0
        assert "himatch data" in text


def test_help_needs_no_torch() -> None:
    code = "import sys, himatch.cli, himatch.data; print('torch' in sys.modules, 'mujoco' in sys.modules)"
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.split() == ["False", "False"]
