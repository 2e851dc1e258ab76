"""Demonstrations from files: aligned by the names of columns, and found by the names of episodes."""

import numpy as np
import pytest
from builders import make_episodes, table, write_npz, write_rows
from untrained import untrained

import himatch as hm
from himatch.errors import ExpressionError, HimatchWarning

NAMES = {"obs_0": "q1", "obs_1": "dq1", "obs_2": "height", "act_0": "left", "act_1": "right", "episode": "run"}
MAPPING = {"episode": "run", "observations": "q1,dq1,height", "actions": "left,right"}
COLUMNS = {"observations": ["q1", "dq1", "height"], "actions": ["left", "right"]}


def robot(order=1):
    columns = {NAMES.get(name, name): column for name, column in table(make_episodes()).items()}
    return {**dict(list(columns.items())[::order]), "battery": columns["reward"]}


def write(columns, folder):
    (folder / "columns.toml").write_text('episode = "run"\nobservations = "*q1"\nactions = "battery"\n')
    return write_rows(columns, folder / "demos.csv")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("called", ["1", "run 1", "'run 1'"])
def test_columns_are_aligned_by_name_and_episodes_found_by_theirs(order, called, tmp_path):
    target = hm.parse_target(f"demo({write(robot(order), tmp_path)}, {called})", columns=COLUMNS)
    expected = make_episodes()[1]
    np.testing.assert_array_equal(target.trajectory.observations, expected.observations)
    np.testing.assert_array_equal(target.trajectory.actions, expected.actions)


def test_a_name_comes_before_a_number(tmp_path):
    columns = {**robot(), "run": [f"{3 - i}" for i, e in enumerate(make_episodes()) for _ in range(len(e))]}
    target = hm.parse_target(f"demo({write(columns, tmp_path)}, 3)", columns=COLUMNS)
    assert len(target.trajectory) == 7


def test_what_is_missing_is_named(tmp_path):
    columns = robot()
    del columns["dq1"]
    path = write(columns, tmp_path)
    with pytest.raises(ExpressionError, match=r"no column matches 'dq1' .*the run's columns are observations q1, dq1"):
        hm.parse_target(f"demo({path}, 0)", columns=COLUMNS)
    path = write(robot(), tmp_path)
    with pytest.raises(ExpressionError, match=r"has 4 episodes, there is no episode walk \(it has 'run 0', 'run 1'"):
        hm.parse_target(f"demo({path}, walk)", columns=COLUMNS)


def test_other_formats_with_names_are_aligned_and_those_without_taken_as_they_are(tmp_path):
    path = write(robot(-1), tmp_path)
    shuffled = hm.load_dataset(path, columns={"observations": "height,q1,dq1", "actions": "right,left"})
    hm.write_minari(shuffled, tmp_path / "demos-v0")
    for source in (tmp_path / "demos-v0", write_npz(make_episodes(), tmp_path)):
        target = hm.parse_target(f"demo({source}, 2)", columns=COLUMNS)
        np.testing.assert_array_equal(target.trajectory.observations, make_episodes()[2].observations)


def test_a_policy_aligns_demonstrations_to_its_run(tmp_path):
    log = write_rows(robot(), tmp_path / "log.csv")
    policy = untrained(hm.methods.CDT(feature="dq1"), hm.load_dataset(log, columns=MAPPING), tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    path = write(robot(-1), tmp_path / "elsewhere")
    target = policy.target(f"demo({path}, run 1)")
    np.testing.assert_array_equal(target.trajectory.observations, make_episodes()[1].observations)
    assert policy.run.reference().frame.feature.name == "dq1"


def test_other_units_than_the_runs_are_refused_and_another_rate_is_noted(tmp_path):
    def log(unit, rate, name):
        columns = {name if name != "dq1" else f"dq1 [{unit}]": column for name, column in robot().items()}
        times = [t / rate for e in make_episodes() for t in range(len(e))]
        return write_rows({**columns, "step": times}, tmp_path / name)

    data = hm.load_dataset(log("rad/s", 20, "log.csv"), columns=MAPPING)
    policy = untrained(hm.methods.CDT(feature="dq1"), data, tmp_path / "run")
    (tmp_path / "columns.toml").write_text('episode = "run"\n')
    with pytest.raises(ExpressionError, match=r"measures dq1 in deg/s, not rad/s as the run does; convert it"):
        policy.target(f"demo({log('deg/s', 20, 'units.csv')}, 1)")
    with pytest.warns(HimatchWarning, match=r"recorded at 100 Hz, the data of the run at 20 Hz"):
        policy.target(f"demo({log('rad/s', 100, 'fast.csv')}, 1)")


@pytest.mark.parametrize("called", ["3", "run 3"])
def test_only_the_episode_that_is_taken_must_be_healthy(called, tmp_path, recwarn):
    columns = robot()
    columns["q1"][2], columns["left"][30] = "", "inf"  # runs 0 and 2
    path = write(columns, tmp_path)
    short = hm.Task(name="short", horizon=5)
    target = hm.parse_target(f"demo({path}, {called})", short, columns=COLUMNS)
    np.testing.assert_array_equal(target.trajectory.observations, make_episodes()[3].observations)
    assert not recwarn.list  # what is wrong with the others, and how long they are, is of no concern
    for bad in ("0", "run 0"):
        with pytest.raises(ExpressionError, match=r"episode 'run 0' cannot be a demonstration, .*column q1 is empty"):
            hm.parse_target(f"demo({path}, {bad})", columns=COLUMNS)
    with pytest.raises(ExpressionError, match="episode 'run 0' cannot be a demonstration"):
        hm.parse_target(f"demo({path})", columns=COLUMNS)
    with pytest.raises(ExpressionError, match="has 4 episodes, there is no episode 4"):
        hm.parse_target(f"demo({path}, 4)", columns=COLUMNS)
