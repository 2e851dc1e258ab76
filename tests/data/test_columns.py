"""Columns of tables: their names are features, their units and rates are kept, their mapping is named."""

import json
import pickle
from datetime import datetime, timedelta

import numpy as np
import pandas
import pytest
from builders import make_episodes, write_rows

import himatch as hm
from himatch.data.columns import split_units
from himatch.errors import DataError, HimatchWarning

LENGTHS = (20, 15, 30)


def robot(**changes):
    """A table with names of a robot's own, 50 steps a second."""
    episodes = make_episodes(LENGTHS)
    rows = np.concatenate([e.observations for e in episodes])
    actions = np.concatenate([e.actions for e in episodes])
    steps = [t for e in episodes for t in range(len(e))]
    columns = {
        "run": [f"r{i}" for i, e in enumerate(episodes) for _ in range(len(e))],
        "t": [0.02 * t for t in steps],
        "q1 [rad]": rows[:, 0],
        "dq1 (rad/s)": rows[:, 1],
        "torque": actions[:, 0],
    }
    return columns | changes


MAPPING = {"episode": "run", "step": "t", "observations": "q1,dq1", "actions": "torque"}


def load(columns=None, **more):
    return hm.load_dataset(pandas.DataFrame(robot() if columns is None else columns), columns=MAPPING | more)


# -- names are features -----------------------------------------------------------------------------------------------


def test_columns_are_features():
    dataset = load()
    episode = dataset[1]
    for name, rows in (("q1", episode.observations[:, 0]), ("dq1", episode.observations[:, 1])):
        np.testing.assert_array_equal(hm.resolve_feature(name, dataset.task)(episode)[:, 0], rows)
    np.testing.assert_array_equal(hm.resolve_feature("torque", dataset.task)(episode), episode.actions)
    assert [f.name for f in hm.inspect_dataset(dataset).features] == ["q1", "dq1", "torque"]
    assert hm.inspect_dataset(dataset, ("dq1,torque",)).features[1].name == "torque"


def test_features_of_a_task_come_before_columns():
    task = hm.Task(name="rig", horizon=30, features={"q1": 1})
    dataset = hm.load_dataset(pandas.DataFrame(robot()), task, columns=MAPPING)
    assert dict(dataset.task.features) == {"q1": 1, "dq1": 1, "torque": "act[0]"}
    assert dict(task.features) == {"q1": 1}


def test_joined_and_mapped_tables_have_them_too(tmp_path):
    one = write_rows(robot(), tmp_path / "one.csv")
    two = write_rows(dict(reversed(robot().items())), tmp_path / "two.csv")
    for dataset in [
        hm.load_dataset([one, two], columns=MAPPING, mmap=m) for m in (None, tmp_path / "m", tmp_path / "m")
    ]:
        assert list(dataset.task.features) == ["q1", "dq1", "torque"]
        assert dataset.units == {"q1": "rad", "dq1": "rad/s"}
        assert dataset.rate == 50


def test_names_that_would_be_ambiguous_are_no_features():
    columns = {**robot(), "a,b": np.zeros(65), "state": np.zeros(65)}
    dataset = load(columns, observations=["q1", "a,b", "state"])
    assert list(dataset.task.features) == ["q1", "torque"]


# -- units and rates --------------------------------------------------------------------------------------------------


def test_units_stand_in_brackets_after_a_blank():
    raw = ["q [rad]", "v (m/s)", "obs[3]", "f(x)", "p [m]", "p [mm]", "time"]
    names, units = split_units(raw)
    assert names == ["q", "v", "obs[3]", "f(x)", "p [m]", "p [mm]", "time"]
    assert units == {"q": "rad", "v": "m/s"}


def test_inspection_shows_units_and_rate():
    shown = repr(hm.inspect_dataset(load()))
    assert "q1 [rad], dq1 [rad/s]" in shown
    assert "50 Hz" in shown


def test_columns_may_be_named_with_their_units(tmp_path):
    dataset = load(observations=["dq1 (rad/s)", "q1 [rad]"])
    assert dataset.observation_names == ("dq1", "q1")


@pytest.mark.parametrize(
    ("times", "unit", "rate"),
    [
        (lambda t: t, None, None),  # counted
        (lambda t: 0.02 * t, None, 50),
        (lambda t: 20 * t, "ms", 50),
        (lambda t: 20 * t, None, None),
        (lambda t: 20_000_000 * t, "ns", 50),
        (lambda t: datetime(2024, 5, 1) + timedelta(milliseconds=10 * t), None, 100),
        (lambda t: f"2024-05-01T12:00:{t:02d}Z", None, 1),
    ],
)
def test_the_rate_is_that_of_times(times, unit, rate, tmp_path):
    steps = [times(t) for n in LENGTHS for t in range(n)]
    name = "t" if unit is None else f"t [{unit}]"
    columns = {name if key == "t" else key: column for key, column in robot(t=steps).items()}
    assert load(columns).rate == rate
    assert hm.load_dataset(write_rows(columns, tmp_path / "log.csv"), columns=MAPPING).rate == rate


def test_irregular_times_have_no_rate():
    rng = np.random.default_rng(0)
    steps = np.concatenate([np.cumsum(rng.exponential(size=n)) for n in LENGTHS])
    columns = {"t [s]" if key == "t" else key: column for key, column in robot(t=steps).items()}
    with pytest.warns(HimatchWarning, match="times of its steps are irregular"):
        assert load(columns).rate is None


def test_data_without_a_time_has_the_rate_of_its_task():
    task = hm.Task("rig", 30, rate=125)
    counted = robot(t=[t for n in LENGTHS for t in range(n)])
    irregular = robot(t=np.concatenate([np.cumsum(0.1 + np.arange(n) % 3) for n in LENGTHS]))

    def rate(columns, **more):
        return hm.load_dataset(pandas.DataFrame(columns), task, columns=MAPPING | more).rate

    assert hm.load_dataset(make_episodes(), task).rate == 125
    assert hm.load_dataset(make_episodes(), task, columns={"rate": 10}).rate == 10
    assert (rate(counted), rate(counted, rate=25), rate(robot())) == (125, 25, 50)
    assert rate(irregular) is None  # it has times, which say that there is no one rate


@pytest.mark.filterwarnings("ignore:.*is stated as its rate")
def test_a_rate_may_be_stated_for_any_source(tmp_path):
    assert load(rate=25).rate == 25
    assert hm.load_dataset(make_episodes(), columns={"rate": 10}).rate == 10
    with pytest.raises(DataError, match="'rate' must be a number of steps a second"):
        load(rate=-1)
    path = write_rows(robot(), tmp_path / "log.csv")
    mapping = "\n".join(f'{key} = "{value}"' for key, value in MAPPING.items())
    (tmp_path / "columns.toml").write_text(f'{mapping}\nrate = 40\n[units]\ntorque = "Nm"\n')
    dataset = hm.load_dataset(path)
    assert (dataset.rate, dataset.units["torque"], dataset.units["q1"]) == (40, "Nm", "rad")
    assert hm.load_dataset(path, columns={"rate": 30}).rate == 30


def test_another_rate_than_the_stated_one_is_noted(tmp_path, recwarn):
    columns = robot(t=[0.02 * t for n in LENGTHS for t in range(n)])
    with pytest.warns(
        HimatchWarning, match="100 Hz is stated as its rate, the times of its steps say 50 Hz; 100 Hz is"
    ):
        assert load(columns, rate=100).rate == 100
    recwarn.clear()
    assert load(columns, rate=50).rate == 50
    assert not recwarn.list


@pytest.mark.parametrize("unit", [None, "ms"])
@pytest.mark.parametrize("slow", [1, 3])
def test_rates_that_differ_within_a_table_are_noted(unit, slow, recwarn):
    name, factor = ("t", 0.02) if unit is None else ("t [ms]", 20)
    lengths = (30,) * 12
    steps = [(2 if i < slow else 1) * factor * t for i, n in enumerate(lengths) for t in range(n)]
    rng = np.random.default_rng(0)
    columns = {"run": np.repeat([f"r{i}" for i in range(12)], 30), name: steps}
    columns |= {one: rng.normal(size=360) for one in ("q1", "dq1", "torque")}
    mapping = {"episode": "run", "observations": "q1,dq1", "actions": "torque", "step": "t"}
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    with pytest.warns(HimatchWarning) as notes:
        assert hm.load_dataset(frame, columns=mapping).rate is None
    (said,) = {str(one.message) for one in notes}
    assert f"{slow} episode{'s' * (slow > 1)} ('r0'" in said
    assert "recorded at 25 Hz, the others at 50 Hz" in said
    recwarn.clear()
    assert hm.load_dataset(frame, columns={**mapping, "rate": 50}).rate == 50
    assert not recwarn.list


def test_rates_that_differ_are_not_joined(tmp_path):
    one = write_rows(robot(), tmp_path / "one.csv")
    slow = robot(t=[0.1 * t for n in LENGTHS for t in range(n)])
    two = write_rows(slow, tmp_path / "two.csv")
    with pytest.raises(DataError, match=r"different rates \(10 and 50 Hz\)"):
        hm.load_dataset([one, two], columns=MAPPING)


def test_all_of_it_survives_writing_selecting_and_splitting(tmp_path):
    dataset = load()
    again = hm.load_dataset(hm.write_minari(dataset, tmp_path / "robot-v0"))
    for one in (dataset[1:], hm.random_split(dataset, 0.4).train, again):
        assert (one.rate, dict(one.units)) == (50, {"q1": "rad", "dq1": "rad/s"})
        assert (one.observation_names, one.action_names) == (("q1", "dq1"), ("torque",))
        assert list(one.task.features) == ["q1", "dq1", "torque"]


def test_hdf5_may_state_its_rate(tmp_path):
    h5py = pytest.importorskip("h5py")
    for i, (key, value) in enumerate((("control_freq", 20), ("dt", 0.05))):
        with h5py.File(tmp_path / f"{i}.hdf5", "w") as file:
            file["observations"], file["actions"] = np.zeros((5, 2)), np.zeros((5, 1))
            file["lengths"] = np.array([5])
            file.attrs[key] = value
        assert hm.load_dataset(tmp_path / f"{i}.hdf5").rate == 20


# -- the mapping, and actions that are choices ------------------------------------------------------------------------


def test_the_mapping_file_is_named(run, tmp_path):
    path = write_rows(robot(), tmp_path / "log.csv")
    mapping = "\n".join(f'{key} = "{value}"' for key, value in MAPPING.items())
    (tmp_path / "columns.toml").write_text(mapping)
    assert hm.load_dataset(path).mapping_files == (str(tmp_path / "columns.toml"),)
    code, out, _ = run("data", "inspect", path, "--json")
    assert code == 0
    assert json.loads(out)["mapping_files"] == [str(tmp_path / "columns.toml")]
    assert "columns from" in run("data", "inspect", path)[1]
    (tmp_path / "columns.toml").write_text(mapping.replace("torque", "force"))
    code, _, err = run("data", "inspect", path)
    assert code == 2
    assert "columns.toml says which is which" in err


def choices(values, rows=150):
    rng = np.random.default_rng(0)
    action = rng.choice(values, rows)
    return {"episode": ["a"] * rows, "obs_0": rng.normal(size=rows), "act_0": action, "act_1": rng.normal(size=rows)}


@pytest.mark.parametrize("values", [[0, 1], [0, 1, 2, 3], [-1.0, 1.0]])
def test_actions_that_are_choices_are_refused(values, run, tmp_path):
    path = write_rows(choices(values), tmp_path / "log.csv")
    arguments = ("data", "inspect", path, "--columns.actions", "act_0")
    code, _, err = run(*arguments)
    assert code == 2
    assert "the actions (act_0) hold a few whole numbers only" in err
    assert run(*arguments, "--columns.continuous")[0] == 0
    ranged = hm.Task(name="rig", horizon=150, action_low=-5, action_high=5)
    assert hm.load_dataset(path, ranged, columns={"actions": "act_0"}).action_width == 1
    with pytest.warns(HimatchWarning, match="act_0 among the actions hold a few whole numbers only"):
        hm.load_dataset(path)


def test_choices_are_refused_in_other_sources_too(tmp_path):
    columns = choices([0.0, 1.0])
    arrays = {"observations": columns["obs_0"][:, None], "actions": columns["act_0"][:, None]}
    np.savez(tmp_path / "log.npz", **arrays, lengths=[150])
    (tmp_path / "log.pkl").write_bytes(pickle.dumps([arrays]))
    pieces = [{name: array[i : i + 50] for name, array in arrays.items()} for i in (0, 50, 100)]
    sources = [tmp_path / "log.npz", tmp_path / "log.pkl", {**arrays, "lengths": [150]}, pieces]
    for source in sources:
        with pytest.raises(DataError, match=r"the actions \(act\[0\]\) hold a few whole numbers only"):
            hm.load_dataset(source)
    said = [hm.load_dataset(source, columns={"continuous": True}) for source in sources]
    hm.write_minari(said[0], tmp_path / "log-v0")
    assert hm.load_dataset(tmp_path / "log-v0").steps == 150  # which says so


@pytest.mark.parametrize("values", [[0.0, 0.5], [0], range(40)])
def test_other_actions_are_not(values, tmp_path):
    path = write_rows(choices(values), tmp_path / "log.csv")
    assert hm.load_dataset(path, columns={"actions": "act_0"}).steps == 150


@pytest.mark.parametrize("name", ["time", "Timestamp [s]", "tick"])
def test_a_column_of_times_that_nobody_names_is_pointed_out(name, tmp_path):
    columns = {name if key == "t" else key: column for key, column in robot().items()}
    path = write_rows(columns, tmp_path / "log.csv")
    mapping, short = {key: value for key, value in MAPPING.items() if key != "step"}, name.split()[0]
    said = f"column {short} is not used; name it with --columns.step {short} to check order and rate"
    for options in ({}, {"mmap": tmp_path / "map"}):
        assert said in hm.inspect_dataset(hm.load_dataset(path, columns=mapping, **options)).warnings
    for step in (short, ""):
        found = hm.inspect_dataset(hm.load_dataset(path, columns={**mapping, "step": step}))
        assert not any("not used" in remark for remark in found.warnings)


def test_columns_are_a_mapping():
    with pytest.raises(DataError, match=r"columns must be a mapping, such as \{'episode': 'run'\}, not 'run'"):
        hm.load_dataset(make_episodes(), columns="run")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_another_encoding_is_named(encoding, tmp_path):
    (tmp_path / "log.csv").write_text("episode,obs_0,act_0\na,0.5,0.1\n", encoding=encoding)
    with pytest.raises(DataError, match=r"log\.csv: its text is UTF-16; save it as UTF-8"):
        hm.load_dataset(tmp_path / "log.csv")
