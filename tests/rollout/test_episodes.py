"""Episodes that are handed over: a dataset's columns are found by name, and what are no episodes is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from untrained import untrained

import himatch as hm
from himatch.errors import DataError, HimatchError, HimatchWarning

NAMES = ("q1 [rad]", "q2 [rad]", "v", "w")
TASK = hm.Task(name="arm", horizon=12, action_low=-1.0, action_high=1.0, features={"speed": 2})


def table(path: Path, names: tuple[str, ...] = NAMES, actions: tuple[str, ...] = ("a", "b"), **more: Any) -> Any:
    """The same numbers under these names, in this order."""
    rng = np.random.default_rng(0)
    known = dict(zip(("q1", "q2", "v", "w", "a", "b"), rng.uniform(-1, 1, (6, 60)), strict=True))
    columns = [known.get(name.split()[0], known["w"]) for name in (*names, *actions)]
    rows = [",".join(("episode", *names, *actions))]
    rows += [",".join(map(str, (i // 12, *(column[i] for column in columns)))) for i in range(60)]
    path.write_text("\n".join(rows))
    mapping = {"observations": [name.split()[0] for name in names], "actions": list(actions), **more}
    return hm.load_dataset(path, TASK, columns=mapping)


@pytest.fixture
def policy(tmp_path: Path) -> hm.Policy:
    return untrained(hm.CDT("speed"), table(tmp_path / "data.csv", rate=50.0), tmp_path / "run")


def test_columns_are_found_by_name(policy: hm.Policy, tmp_path: Path) -> None:
    same = table(tmp_path / "same.csv", rate=50.0)
    other = table(tmp_path / "other.csv", ("v", "q2 [rad]", "w", "q1 [rad]"), ("b", "a"), rate=50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected, found = policy.score(same), policy.score(other)
    for key in expected:
        np.testing.assert_array_equal(found[key], expected[key])
    np.testing.assert_array_equal(policy.action_error(other, other), policy.action_error(same))
    assert policy.action_error(list(other)) != policy.action_error(same)  # a bare episode has no names


def test_other_columns_are_refused(policy: hm.Policy, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"observations are not those of .*: w is missing, x is too much; load it with"):
        policy.score(table(tmp_path / "other.csv", ("q1", "q2", "v", "x")))


def test_other_rates_and_units_are_noted(policy: hm.Policy, tmp_path: Path) -> None:
    with pytest.warns(HimatchWarning) as caught:
        policy.score(table(tmp_path / "other.csv", ("q1 [deg]", *NAMES[1:]), rate=25.0))
    rate, units = (str(one.message) for one in caught)
    assert "was recorded at 25 Hz, the data of" in rate
    assert "measures q1 in deg, not rad as" in units


def test_what_are_no_episodes(policy: hm.Policy, tmp_path: Path) -> None:
    for given in ("clean.csv", Path("clean.csv"), ["clean.csv"]):
        with pytest.raises(HimatchError, match=r"load (them|it) first: himatch.load_dataset\('clean.csv'\)"):
            policy.score(given)  # type: ignore[arg-type]
        with pytest.raises(HimatchError, match=r"an episode .*is needed"):
            policy.actions(given)  # type: ignore[arg-type]
    with pytest.raises(HimatchError, match=r"choose it by its number, such as dataset\[0\]"):
        policy.actions(table(tmp_path / "same.csv"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, 3])
def test_a_run_has_a_name(name: Any) -> None:
    with pytest.raises(HimatchError, match=f"named by its folder, a model or hf:USER/NAME, not by {name}"):
        hm.load(name)
