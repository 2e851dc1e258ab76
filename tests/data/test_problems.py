"""All that is wrong with a source in one message, and what may be left out of it."""

import numpy as np
import pytest
from builders import ARM, assert_same, make_episodes, table, write_npz, write_rows

import himatch as hm
from himatch.errors import DataError, HimatchWarning


def with_steps(lengths=(7, 20, 5, 9)):
    episodes = make_episodes(lengths)
    return {**table(episodes), "step": [t for e in episodes for t in range(len(e))]}


def spoiled(folder):
    """Of four episodes, one has text and another a missing number; a third has the same step twice, and no step."""
    columns = with_steps()
    columns["obs_1"][3] = "fast"
    columns["act_0"][10] = "slow"
    columns["obs_0"][12] = ""
    columns["step"][29] = 1
    columns["step"][30] = 1
    return write_rows(columns, folder / "log.csv")


def test_every_kind_of_problem_has_a_line(tmp_path):
    with pytest.raises(DataError) as caught:
        hm.load_dataset(spoiled(tmp_path), ARM)
    first, *others = str(caught.value).splitlines()
    assert first == f"{tmp_path / 'log.csv'}: 3 kinds of problems"
    assert len(others) == 3
    text = next(line for line in others if "no number" in line)
    assert "column obs_1 holds 'fast' in line 5" in text
    assert "affected: 2 of 4 episodes ('run 0', 'run 1')" in text
    assert any("'run 2' has the same step in line 30 and line 31; affected: 1 of 4" in line for line in others)
    assert any("column obs_0 is empty" in line and "(line 14)" in line for line in others)


def test_all_of_them_are_left_out_on_request(tmp_path):
    with pytest.warns(HimatchWarning) as notes:
        (left,) = hm.load_dataset(spoiled(tmp_path), ARM, drop_bad=True)
    assert_same(left, make_episodes()[3], final=False)
    (said,) = {str(note.message) for note in notes}
    assert "3 of 4 episodes ('run 0', 'run 1', 'run 2') left out, as requested: " in said
    assert "column act_0 holds 'slow' in line 12, which is no number; " in said
    assert "same step" in said


def test_of_rows_that_are_there_twice_one_is_kept(tmp_path):
    columns = with_steps((3, 2))
    path = write_rows(
        {name: [*column[:2], *column[1:], column[-1]] for name, column in columns.items()}, tmp_path / "x.csv"
    )
    with pytest.raises(DataError, match=r"same step in line 3 and line 4, with the same numbers, 2 in all; remove one"):
        hm.load_dataset(path, ARM)
    with pytest.warns(HimatchWarning, match="with the same numbers; 2 such left out, as requested"):
        dataset = hm.load_dataset(path, ARM, drop_bad=True)
    for found, expected in zip(dataset, make_episodes((3, 2)), strict=True):
        assert_same(found, expected, final=False)


def test_a_row_that_was_cut_off_leaves_its_episode_out(tmp_path):
    path = write_rows(with_steps((3, 2)), tmp_path / "log.csv")
    path.write_text(path.read_text().rstrip()[:-40])
    with pytest.raises(
        DataError, match=r"line 6 has \d columns, the header has 10; affected: 1 of 2 episodes \('run 1'\)"
    ):
        hm.load_dataset(path, ARM)
    with pytest.warns(HimatchWarning, match="left out, as requested: line 6 has"):
        assert hm.load_dataset(path, ARM, drop_bad=True).lengths.tolist() == [3]


def test_rows_with_more_cells_than_the_header_are_noticed(tmp_path):
    """Decimal commas, which would shift the columns."""
    path = tmp_path / "log.csv"
    path.write_text("episode,obs_0,act_0\na,0,5,0.1\na,0,6,0.2\n")
    with pytest.raises(DataError, match="line 2 has 4 columns, the header has 3"):
        hm.load_dataset(path)
    path.write_text("episode,obs_0,act_0\na,0.5,0.1,\na,0.6,0.2,\n")  # a comma at the end is nothing
    assert hm.load_dataset(path).steps == 2


@pytest.mark.parametrize("what", ["step", "label", "terminated", "flag"])
def test_episodes_that_contradict_themselves_may_be_left_out(what, tmp_path):
    columns = with_steps()
    columns[what if what != "flag" else "terminated"][8] = {"step": "", "label": "x", "terminated": 1, "flag": "maybe"}[
        what
    ]
    path = write_rows(columns, tmp_path / "log.csv")
    with pytest.raises(DataError, match=r"drop_bad=True"):
        hm.load_dataset(path, ARM)
    with pytest.warns(HimatchWarning, match=r"1 of 4 episodes \('run 1'\) left out"):
        assert hm.load_dataset(path, ARM, drop_bad=True).lengths.tolist() == [7, 5, 9]


def test_actions_out_of_range_are_named_beside_the_rest(tmp_path):
    columns = with_steps()
    columns["act_1"][2] = 3.0
    columns["obs_0"][12] = ""
    with pytest.raises(DataError, match=r"(?s)2 kinds.*action 3 in .*--clip-actions"):
        hm.load_dataset(write_rows(columns, tmp_path / "log.csv"), ARM)


def test_every_joined_source_says_what_is_wrong_with_it(tmp_path):
    other = write_npz(make_episodes(), tmp_path)
    arrays = dict(np.load(other))
    arrays["rewards"][3] = np.nan
    np.savez(other, **arrays)
    with pytest.raises(DataError, match=r"(?s)log\.csv: 3 kinds.*log\.npz: rewards hold NaN"):
        hm.load_dataset([spoiled(tmp_path), other], ARM)


def test_all_episodes_of_a_list_that_do_not_fit_are_named():
    episodes = [{"observations": np.zeros((3, 3)), "actions": np.zeros((n, 2))} for n in (3, 7, 8)]
    with pytest.raises(DataError, match=r"(?s)2 episodes .*episode 1: .*episode 2: "):
        hm.load_dataset(episodes, ARM)


def test_each_episode_with_something_missing_has_its_cell_named(tmp_path):
    columns = with_steps()
    columns["obs_1"][3], columns["act_0"][10], columns["act_1"][11], columns["obs_0"][28] = "", "N/A", "", "nan"
    path = write_rows(columns, tmp_path / "log.csv")
    with pytest.raises(DataError) as caught:
        hm.load_dataset(path, ARM)
    said = str(caught.value)
    assert "column obs_1 is empty in episode 'run 0', step 3 (line 5)" in said
    assert "column act_0 holds 'N/A', which is text, in episode 'run 1', step 3 (line 12)" in said
    assert "column obs_0 holds 'nan', which is no finite number, in episode 'run 2', step 1 (line 30)" in said
    assert "act_1" not in said
    with pytest.warns(HimatchWarning, match=r"3 of 4 episodes .* left out, .*obs_1 .*obs_0 .*act_0") as notes:
        hm.load_dataset(path, ARM, drop_bad=True)
    assert "others" not in str(notes[0].message)


@pytest.mark.filterwarnings("ignore:.*rows are missing")
@pytest.mark.parametrize("steps", [True, False])
def test_rows_without_an_episode_are_a_problem(steps, tmp_path):
    columns = with_steps() if steps else table(make_episodes())
    columns["episode"][3], columns["obs_0"][3] = "", "fast"  # which nobody asks for any more
    path = write_rows(columns, tmp_path / "log.csv")
    with pytest.raises(DataError, match=r"the episode is missing in line 5; fill it in, or have such rows left out"):
        hm.load_dataset(path, ARM)
    with pytest.warns(HimatchWarning) as notes:
        assert hm.load_dataset(path, ARM, drop_bad=True).lengths.tolist() == [6, 20, 5, 9]
    assert any("missing in line 5; 1 such left out, as requested" in str(one.message) for one in notes)
    columns["episode"] = [""] * len(columns["episode"])
    with pytest.raises(DataError, match=r"no row says which episode it belongs to; .*--columns.episode ''"):
        hm.load_dataset(write_rows(columns, path), ARM)
