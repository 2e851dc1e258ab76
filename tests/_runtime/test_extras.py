"""Without the extra ``sim`` logs are read, written and inspected; what simulates says in one line what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from himatch._runtime.extras import import_extra, installed, installed_versions
from himatch.errors import HimatchError

WITHOUT_SIMULATORS = """
import sys
sys.modules["gymnasium"] = sys.modules["mujoco"] = None  # as if they were not installed
import numpy as np
import himatch as hm
from himatch._runtime.extras import installed
assert not installed("gymnasium") and not installed("mujoco")

episodes = [hm.Trajectory(np.ones((20, 11)) * i, np.zeros((20, 3)), np.ones(20)) for i in range(3)]
dataset = hm.load_dataset(episodes, "hopper")
dataset.env_id = "Hopper-v5"
folder = hm.write_minari(dataset, sys.argv[1])
again = hm.load_dataset(folder)
assert (again.env_id, again.task.name, len(again)) == ("Hopper-v5", "hopper", 3)
again.env_id = None
assert any("which version of Hopper" in remark for remark in hm.inspect_dataset(again).warnings)

def refused(call, *arguments, **settings):
    try:
        call(*arguments, **settings)
    except hm.HimatchError as reason:
        print(reason)
    else:
        raise AssertionError("it was not refused")

refused(hm.make_simulator, "hopper", 2)
refused(hm.register_task, "pole", env_id="Pendulum-v1")
refused(hm.make_simulator, "hopper", 1, make_env=lambda: None)
"""


def test_logs_need_no_simulator(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_SIMULATORS, str(tmp_path / "log-v0")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all('needs the extra sim: pip install "himatch[sim]"' in line for line in lines)


@pytest.mark.parametrize(
    "rooms", ["himatch.tasks, himatch.data, himatch.data.inspection", "himatch.datagen, himatch.simulation.replay"]
)
def test_rooms_are_imported_without_their_heavy_libraries(rooms: str) -> None:
    heavy = {"gymnasium", "mujoco", "h5py", "matplotlib", "ot", "torch"}
    code = f"import sys, {rooms}; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_library_that_lacks_something_itself_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_a_library.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        import_extra("half_a_library", "half", "a test")
    with pytest.raises(HimatchError, match=r'^a test needs the extra none: pip install "himatch\[none\]"$'):
        import_extra("no_library.part", "none", "a test")


def test_versions_of_what_is_installed() -> None:
    assert installed("numpy")
    assert set(installed_versions("numpy", "no-library")) == {"numpy"}
