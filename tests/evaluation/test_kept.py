"""Rollouts that are kept: read back as they were played, with who played them, and trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from short_tasks import short_tasks  # noqa: F401  (a fixture of the module)
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import DataError


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> hm.Policy:
    data = hm.load_dataset(fallen_hoppers(range(8)), "hopper")
    return untrained(hm.CDT("x_velocity", bins=5), data, tmp_path_factory.mktemp("kept") / "run", seeds=(0, 3))


def facts_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "data" / "metadata.json").read_text())["himatch"]
    return found


def test_rollouts_are_read_back_as_they_were_played(policy: hm.Policy, tmp_path: Path) -> None:
    result = policy.match("normal(0.2,0.1)", episodes=3, seed=2)
    made = result.save(tmp_path / "rollouts")
    read = hm.load_dataset(tmp_path / "rollouts")
    assert read.content_hash == made.content_hash
    assert (len(read), read.task.name, read.env_id) == (6, "hopper", "Hopper-v5")
    assert read.labels == ("normal(0.2,0.1)",) * 6
    np.testing.assert_array_equal(read.lengths, result.lengths.ravel())
    np.testing.assert_allclose(read.returns, result.returns.ravel(), rtol=1e-6)
    np.testing.assert_array_equal(read.terminated, result.terminated.ravel())
    for episode, phi in zip(read, [phi for row in result.features for phi in row], strict=True):
        np.testing.assert_array_equal(policy.reference().frame.feature(episode), phi)
        assert episode.final_observation is not None


def test_who_played_is_written_down(policy: hm.Policy, tmp_path: Path) -> None:
    result = policy.match("normal(0.2,0.1)", episodes=2, seed=2)
    result.save(tmp_path / "rollouts")
    written = facts_of(tmp_path / "rollouts")
    facts = written["rollouts"]
    assert (facts["run"], facts["method"], facts["seeds"], facts["weights"]) == ("run", "cdt", [0, 3], "last")
    assert facts["weights_sha256"] == policy.agent.digests()
    assert (facts["env_id"], facts["conditioning"], facts["temperature"]) == ("Hopper-v5", "nominal", None)
    assert facts["data"]["hash"] == policy.description["data"]["hash"]
    (target,) = facts["targets"]
    assert (target["name"], target["episodes"]) == ("normal(0.2,0.1)", 4)
    assert target["error"] == pytest.approx(result.w1)
    assert {"himatch", "torch", "mujoco"} <= set(written["versions"])


def test_seeds_of_initial_states_are_those_that_were_played(policy: hm.Policy, tmp_path: Path) -> None:
    import h5py

    policy.match("normal(0.2,0.1)", episodes=2, seed=2).save(tmp_path / "rollouts")
    with h5py.File(tmp_path / "rollouts" / "data" / "main_data.hdf5") as file:
        seeds = [int(file[f"episode_{i}"].attrs["seed"]) for i in range(4)]
        first = file["episode_3"]["observations"][0]
    assert seeds[:2] == seeds[2:]
    simulator = hm.make_simulator("hopper", 1)
    np.testing.assert_array_equal(simulator.reset([seeds[3]])[0].astype(np.float32), first)


def test_an_evaluation_keeps_all_targets_where_it_is_told_to(policy: hm.Policy, tmp_path: Path) -> None:
    targets = [("slow", "point(0.5)"), ("fast", "point(0.1)")]
    found = policy.evaluate(targets, episodes=2, keep_rollouts=True)
    read = found.save(tmp_path / "rollouts")
    assert read.labels == ("point(0.5)",) * 4 + ("point(0.1)",) * 4
    assert [row["name"] for row in facts_of(tmp_path / "rollouts")["rollouts"]["targets"]] == [
        "point(0.5)",
        "point(0.1)",
    ]
    with pytest.raises(DataError, match=r"were not kept; those of policy\.match are"):
        policy.evaluate(targets, episodes=1).save(tmp_path / "none")


def test_given_initial_states_are_where_rollouts_begin(policy: hm.Policy) -> None:
    (results,) = policy.match_features(
        ["point(0.5)", "point(0.1)"], features=[policy.feature], episodes=2, keep_rollouts=True, starts=[5, 6, 7, 8]
    )
    simulator = hm.make_simulator("hopper", 4)
    begins = simulator.reset([5, 6, 7, 8])
    for number, result in enumerate(results):
        assert result.rollouts is not None
        assert result.rollouts.starts == (5 + 2 * number, 6 + 2 * number)
        for row in result.rollouts.episodes:
            np.testing.assert_array_equal(
                [e.observations[0] for e in row], begins[2 * number : 2 * number + 2].astype(np.float32)
            )


def test_another_folder_is_not_written_over(policy: hm.Policy, tmp_path: Path) -> None:
    result = policy.match("point(0.2)", episodes=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(DataError, match="exists already; choose another name"):
        result.save(tmp_path / "mine")
    with pytest.raises(DataError, match=r"'thesis\.txt' in it is no part of a dataset"):
        result.save(tmp_path / "mine", overwrite=True)
    result.save(tmp_path / "rollouts")
    assert len(result.save(tmp_path / "rollouts", overwrite=True)) == 2


def test_logs_with_names_of_their_own_can_be_joined_with_their_rollouts(tmp_path: Path) -> None:
    columns = [f"joint_{i}" for i in range(11)]
    lines = ["episode," + ",".join(columns) + ",act_0,act_1,act_2,reward"]
    for number, episode in enumerate(fallen_hoppers(range(6))):
        assert episode.rewards is not None
        for seen, done, reward in zip(episode.observations, episode.actions, episode.rewards, strict=True):
            lines.append(",".join([str(number), *(f"{x:.6f}" for x in (*seen, *done, reward))]))
    (tmp_path / "log.csv").write_text("\n".join(lines))
    data = hm.load_dataset(tmp_path / "log.csv", "hopper", columns={"observations": "joint_*"})
    policy = untrained(hm.CDT("x_velocity", bins=5), data, tmp_path / "run")
    read = policy.match("point(0.2)", episodes=1).save(tmp_path / "rollouts")
    assert read.observation_names == tuple(columns)
    joined = hm.load_dataset(f"{tmp_path / 'rollouts'}+{tmp_path / 'rollouts'}", "hopper")
    assert joined.observation_names == tuple(columns)


def test_rollouts_are_trained_on(policy: hm.Policy, tmp_path: Path) -> None:
    policy.match("point(0.2)", episodes=3).save(tmp_path / "rollouts")
    trained = hm.train(
        hm.CDT("x_velocity", bins=5), tmp_path / "rollouts", out=tmp_path / "run", preset="cpu", steps=2, quiet=True,
        width=16, layers=1, temperature=0.0,
    )  # fmt: skip
    assert trained.description["data"]["episodes"] == 6
