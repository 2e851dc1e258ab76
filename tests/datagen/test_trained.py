"""``himatch data collect --policy run:RUN``: a policy of himatch's as an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run
from short_tasks import short_tasks  # noqa: F401  (a fixture of the module)
from untrained import fallen_hoppers

import himatch as hm
from himatch.datagen.slots import reset_seeds

TARGETS = ("point(0.5)", "point(0.1)")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agent") / "run"
    data = hm.load_dataset(fallen_hoppers(range(8)), "hopper")
    settings: dict[str, Any] = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "temperature": 0.5}
    hm.train(hm.CDT("x_velocity", bins=5), data, out=folder, seeds=2, quiet=True, **settings)
    return folder


def collect(run: Path, out: Path, **settings: Any) -> hm.TrajectoryDataset:
    given: dict[str, Any] = {"targets": TARGETS, "quiet": True, **settings}
    return hm.collect_dataset("hopper", f"run:{run}", out, **given)


def test_episodes_are_dealt_evenly_and_labelled(trained: Path, tmp_path: Path) -> None:
    made = collect(trained, tmp_path / "set-v0", episodes=7, seed=3)
    read = hm.load_dataset(tmp_path / "set-v0")
    assert read.content_hash == made.content_hash
    assert read.labels == (TARGETS[0],) * 4 + (TARGETS[1],) * 3
    facts = json.loads((tmp_path / "set-v0" / "data" / "metadata.json").read_text())["himatch"]["rollouts"]
    assert (facts["run"], facts["method"], facts["seeds"], facts["temperature"]) == ("run", "cdt", [0, 1], 0.5)
    assert [(row["name"], row["episodes"]) for row in facts["targets"]] == [(TARGETS[0], 4), (TARGETS[1], 3)]
    assert (facts["seed"], facts["env_id"]) == (3, "Hopper-v5")


def test_initial_states_are_those_of_collected_data(trained: Path, tmp_path: Path) -> None:
    made = collect(trained, tmp_path / "set-v0", episodes=8, seed=3)
    simulator = hm.make_simulator("hopper", 4)
    begins = simulator.reset(reset_seeds(3, 0, 4)).astype(np.float32)
    first = [episode.observations[0] for episode in made]
    for number, place in enumerate((0, 1, 0, 1, 2, 3, 2, 3)):  # both seeds of the policy begin alike
        np.testing.assert_array_equal(first[number], begins[place])


def test_noise_label_and_seed(trained: Path, tmp_path: Path) -> None:
    made = [
        collect(trained, tmp_path / f"{number}-v0", episodes=4, label="mine", **settings)
        for number, settings in enumerate(({}, {}, {"seed": 1}, {"deterministic": True}))
    ]
    assert made[0].labels == ("mine",) * 4
    assert made[0].content_hash == made[1].content_hash
    assert len({one.content_hash for one in made}) == 3


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("hopper", {"targets": ()}, r"acts under targets; name some for .* \(--target EXPR\)"),
        ("hopper", {"vecnormalize": "x.pkl"}, "belongs to a Stable-Baselines3 agent"),
        ("walker2d", {}, "is a policy of task hopper, not of walker2d"),
        ("hopper", {"targets": ("normal(",)}, "normal"),
    ],
)
def test_what_cannot_be_is_refused(
    trained: Path, tmp_path: Path, task: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(hm.HimatchError, match=message):
        hm.collect_dataset(
            task, f"run:{trained}", tmp_path / "set-v0", **{"targets": TARGETS, "quiet": True, **settings}
        )
    assert not (tmp_path / "set-v0").exists()


def test_targets_are_for_policies_of_himatchs(tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match=r"for a policy of himatch's \(--policy run:RUN\)"):
        hm.collect_dataset("hopper", lambda seen: seen[:, :3], tmp_path / "set-v0", targets=TARGETS)


def test_the_command(trained: Path, run: Run, tmp_path: Path) -> None:
    how = ("--task", "hopper", "--policy", f"run:{trained}", "--target", *TARGETS, "--episodes", 2)
    code, out, _ = run("data", "collect", *how, "--out", tmp_path / "set-v0")
    assert code == 0
    assert out.startswith("2 episodes, ")
    assert hm.load_dataset(tmp_path / "set-v0").labels == TARGETS
