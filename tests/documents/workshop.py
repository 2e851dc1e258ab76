"""What the pages take for granted: a robot arm and its logs, a D4RL file, trained runs, datasets of a few episodes."""

from __future__ import annotations

import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import fresh_modules
from random_episodes import episode
from untrained import fallen_hoppers

import himatch as hm
from himatch.datagen import recipes
from himatch.tasks import import_tasks

TASKS = """
import gymnasium
import numpy as np
import himatch as hm

class Arm(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (8,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=8).astype(np.float32), {}

    def step(self, action):
        return self.np_random.normal(size=8).astype(np.float32), 1.0, False, False, {}

if "MyArm-v0" not in gymnasium.registry:
    gymnasium.register("MyArm-v0", Arm, max_episode_steps=30)
hm.register_task("arm", env_id="MyArm-v0", features={"speed": 7})
"""

POLICY = """
import numpy as np

def act(observations):
    return np.zeros((len(observations), 2))
"""

RUNS = {"docs/matching.md": ("cdt", "dt"), "docs/interchange.md": ("cdt", "dt")}
"""Pages that begin with trained runs of Hopper."""

FEWEST = 16  # episodes of every dataset that is made by name


def furnish(folder: Path, page: str) -> None:
    """Put the files there that a page names without making them."""
    rng = np.random.default_rng(0)
    (folder / "my_tasks.py").write_text(TASKS)
    with fresh_modules(folder):  # a page may write a file of that name itself
        import_tasks(str(folder / "my_tasks.py"))  # Gymnasium knows the arm, as it would on its owner's machine
    (folder / "my_policy.py").write_text(POLICY)
    names = [*(f"q_{i}" for i in range(4)), *(f"dq_{i}" for i in range(4)), "u_0", "u_1"]
    same = [*(f"obs_{i}" for i in range(8)), "act_0", "act_1"]  # the columns under the default names too
    rows = [
        ",".join(map(str, [number, *values, *values, values[0]]))
        for number in range(20)
        for values in rng.uniform(0.0, 0.8, (30, 10)).round(5)
    ]
    (folder / "logs.csv").write_text("\n".join([",".join(["episode", *names, *same, "reward"]), *rows]))
    arms = [episode(rng, 20, obs=8, act=2) for _ in range(FEWEST)]
    keys = ("observations", "actions", "rewards")
    with (folder / "old_episodes.pkl").open("wb") as file:
        pickle.dump([{key: np.array(getattr(arm, key)) for key in keys} for arm in arms], file)
    hoppers = [episode(rng, 20 + i, level=i / 5) for i in range(20)]
    ends = np.cumsum([len(hopper) for hopper in hoppers]) - 1
    with h5py.File(folder / "hopper_medium_expert-v2.hdf5", "w") as file:
        for key in keys:
            file[key] = np.concatenate([getattr(hopper, key) for hopper in hoppers])
        file["terminals"] = np.isin(np.arange(ends[-1] + 1), ends)
        file["timeouts"] = np.zeros(ends[-1] + 1, dtype=bool)
    if page in RUNS:
        data = hm.load_dataset(fallen_hoppers(range(FEWEST), 0.3), "hopper")
        methods = {"cdt": hm.CDT("x_velocity"), "dt": hm.DT()}
        for name in RUNS[page]:
            out = folder / "runs" / name
            hm.train(methods[name], hm.paper_split(data), out=out, preset="cpu", steps=2, layers=1, quiet=True)


def small_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name as a source makes a few episodes, not thousands."""
    small = {name: recipe.with_episodes(max(FEWEST, len(recipe.parts))) for name, recipe in recipes.RECIPES.items()}
    for module in ("datagen.recipes", "datagen.cache"):
        monkeypatch.setattr(f"himatch.{module}.RECIPES", small)
