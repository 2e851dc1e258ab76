"""Values far beyond the others of their column."""

import json

import numpy as np
import pytest
from builders import ARM, make_episodes, table, write_rows

import himatch as hm
from himatch.errors import DataError, HimatchWarning

LENGTHS = (40, 30, 50, 35)


def spoiled_table(folder, name="log.csv"):
    columns = table(make_episodes(LENGTHS))
    columns["obs_1"][45] = 9999.0  # run 1, step 5
    columns["reward"][0] = -1e6
    return write_rows(columns, folder / name)


LONG = hm.Task(name="arm", horizon=50, observation_width=3, action_width=2, action_low=-1.0, action_high=1.0)


def test_they_are_named_with_their_place_and_the_usual_range(tmp_path, recwarn):
    dataset = hm.load_dataset(spoiled_table(tmp_path), LONG)
    assert not recwarn.list  # loading says nothing
    observed, reward = dataset.extremes()
    assert (observed.name, observed.count) == ("obs_1", 1)
    assert (reward.name, reward.count) == ("reward", 1)
    (first,) = observed.first
    assert (first.value, first.episode, first.step) == (9999, 1, 5)
    assert first.place == "episode 'run 1', step 5 (line 47)"
    others = np.delete(dataset.observations[:, 1], 45)
    assert (observed.low, observed.high) == (others.min(), others.max())
    assert "9999 in episode 'run 1', step 5 (line 47)" in str(observed)
    assert dataset.extremes() is dataset.extremes()


def test_lines_survive_mapping_joining_and_selecting(tmp_path):
    path = spoiled_table(tmp_path)
    other = write_rows(table(make_episodes((20,), seed=3)), tmp_path / "other.csv")
    mapped = [hm.load_dataset(path, LONG, mmap=tmp_path / "map") for _ in range(2)]
    for dataset in (*mapped, hm.load_dataset(path, LONG)[1:]):
        assert dataset.extremes()[0].first[0].place == "episode 'run 1', step 5 (line 47)"
    joined = hm.load_dataset([other, path], LONG)
    found = next(one for one in joined.extremes() if one.name == "obs_1")
    assert found.first[0].place == "episode 'run 1', step 5 (log.csv, line 47)"
    assert (found.first[0].episode, found.first[0].step) == (2, 5)


def test_columns_without_names_are_numbered():
    episodes = [{"observations": np.array(e.observations), "actions": e.actions} for e in make_episodes(LENGTHS)]
    episodes[2]["observations"][7, 0] = -5e5
    (found,) = hm.load_dataset(episodes, LONG).extremes()
    assert (found.name, found.first[0].place) == ("obs[0]", "episode 2, step 7")


def test_good_data_has_none():
    assert hm.load_dataset(make_episodes(LENGTHS), LONG).extremes() == ()
    assert hm.load_dataset(make_episodes(), ARM)[:0].extremes() == ()


def test_inspection_shows_them(run, tmp_path):
    path = spoiled_table(tmp_path)
    code, out, _ = run("data", "inspect", path)
    assert code == 0
    assert "obs_1 has 1 extreme value" in " ".join(out.split())
    _, out, _ = run("data", "inspect", path, "--json")
    report = json.loads(out)
    (observed, _) = report["extremes"]
    assert (observed["name"], observed["count"], observed["first"][0]["value"]) == ("obs_1", 1, 9999)
    assert any("bins of obs_1 will span" in said and "9999: values" in said for said in report["warnings"])


@pytest.mark.parametrize(("values", "said"), [([0.0, 1.0], False), ([0.5], False), ([0.0, 0.01, 0.02, 1.0], True)])
def test_features_that_fill_few_bins_are_remarked(values, said):
    rng = np.random.default_rng(0)
    episodes = [
        {
            "observations": np.stack([rng.choice(values, 30), rng.normal(size=30), rng.normal(size=30)], 1),
            "actions": rng.uniform(-1, 1, (30, 2)),
        }
        for _ in range(4)
    ]
    task = hm.Task(name="arm", horizon=50, features={"odd": 0, "fine": 1})
    remarks = hm.inspect_dataset(hm.load_dataset(episodes, task)).warnings
    assert any("odd fills 2 of 31 bins" in remark for remark in remarks) == said
    assert not any("fine fills" in remark for remark in remarks)


def marked_episodes(share, mark=-999.0, lengths=(100,) * 6):
    rng = np.random.default_rng(0)
    episodes = [
        {"observations": rng.normal(size=(n, 2)), "actions": rng.uniform(-1, 1, (n, 1)), "rewards": rng.normal(size=n)}
        for n in lengths
    ]
    for one in episodes:
        one["observations"][: int(share * len(one["actions"])), 1] = mark
    return episodes


@pytest.mark.parametrize("mark", [-999.0, 1e4])
@pytest.mark.parametrize("share", [0.08, 0.25])
def test_a_number_that_marks_missing_values_is_extreme_however_often(mark, share):
    dataset = hm.load_dataset(marked_episodes(share, mark))
    (found,) = dataset.extremes()
    assert (found.name, found.count, found.share) == ("obs[1]", round(600 * share), pytest.approx(share))
    values = dataset.observations[:, 1]
    assert (found.low, found.high) == (values[values != mark].min(), values[values != mark].max())
    assert f"obs[1] is {mark:g} in {round(600 * share)} steps ({100 * share:.2g} %)" in str(found)
    report = hm.inspect_dataset(dataset, ("obs[1]",))
    assert str(found) in report.warnings
    assert report.features[0].usual == (found.low, found.high)
    assert sum("bins of obs[1] will span" in remark for remark in report.warnings) == 1


def test_two_marks_and_a_bad_reading_are_found_together():
    episodes = marked_episodes(0.1)
    for one in episodes:
        one["observations"][85:, 1] = 9999.0
    episodes[3]["observations"][50, 1] = 1e7
    (found,) = hm.load_dataset(episodes).extremes()
    assert (found.count, found.share) == (6 * 25 + 1, None)
    assert -5 < found.low < found.high < 5


def test_other_numbers_are_no_marks():
    assert hm.load_dataset(marked_episodes(0.4)).extremes() == ()  # too often
    assert hm.load_dataset(marked_episodes(0.1, 20.0)).extremes() == ()  # too near
    switch = marked_episodes(0.0)
    for one in switch:
        one["observations"][:, 1] = np.arange(100) % 10 == 0  # two values
    assert hm.load_dataset(switch).extremes() == ()


def test_episodes_that_hold_them_are_left_out_on_request(run, tmp_path):
    path = spoiled_table(tmp_path)  # in runs 0 and 1
    said = r"2 of 4 episodes \('run 0', 'run 1'\) left out for extreme values, as requested: obs_1 has 1 .*line 47"
    for options in ({}, {"mmap": tmp_path / "map"}, {"mmap": tmp_path / "map"}):
        with pytest.warns(HimatchWarning, match=said):
            dataset = hm.load_dataset(path, drop_extremes=True, **options)
        assert dataset.lengths.tolist() == [50, 35]
        assert dataset.extremes() == ()
    with pytest.warns(HimatchWarning, match="left out for extreme values"):
        mixed = hm.load_dataset(marked_episodes(0.0) + marked_episodes(0.2, lengths=(200,)), drop_extremes=True)
    assert mixed.task.horizon == 100
    code, out, _ = run("data", "inspect", path, "--drop-extremes")
    assert code == 0
    assert "left out for extreme values" in " ".join(out.split())


def test_something_must_be_left_without_them(recwarn):
    with pytest.raises(DataError, match=r"obs\[1\] is -999 in 48 steps .*nothing is left; clean the log"):
        hm.load_dataset(marked_episodes(0.08), drop_extremes=True)
    assert len(hm.load_dataset(marked_episodes(0.0), drop_extremes=True)) == 6
    assert not recwarn.list
