"""The wheel without any extra: what loading a policy and acting needs, and what it does not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

PROGRAM = """
import sys
from importlib.machinery import PathFinder

SPARED = {"gymnasium", "mujoco", "matplotlib", "h5py", "ot"}

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, *arguments):
        return None if name.partition(".")[0] in SPARED else super().find_spec(name, *arguments)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
import himatch as hm
import numpy as np

assert hm.__file__.startswith(sys.argv[1]), hm.__file__
policy = hm.load("hopper-cdt")
controller = policy.controller("0.5*normal(1, 0.2) + 0.5*normal(2, 0.2)")
actions = [controller.act(np.full(11, 0.1 * step)) for step in range(8)]
assert np.isfinite(actions).all()
assert not SPARED & sys.modules.keys()
try:
    policy.match("normal(2, 0.2)", episodes=1)
except hm.HimatchError as reason:
    print(reason)
"""


def test_a_bundled_model_acts_without_any_extra(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("himatch-*.whl")
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as packed:  # what pip would copy
        packed.extractall(place)
    environment = {"PYTHONPATH": str(place), "PATH": ""}
    command = [sys.executable, "-c", PROGRAM, str(place)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'pip install "himatch[sim]"' in done.stdout
