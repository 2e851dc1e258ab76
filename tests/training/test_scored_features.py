"""What rollouts of a run may be scored on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import himatch as hm

SMALL: dict[str, Any] = {"preset": "cpu", "steps": 1, "width": 16, "layers": 1, "context": 3, "quiet": True}


def test_a_feature_that_fails_only_matters_to_those_who_match_it(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    features = {"double": lambda obs, act, rew: rew * 2, "height": 0}
    hm.register_task("scored-logs", horizon=100, features=features)
    logs = [hm.Trajectory(episode.observations, episode.actions) for episode in hopper]
    data = hm.load_dataset(logs, "scored-logs")
    with pytest.warns(hm.HimatchWarning, match="cannot be scored on double: .*TypeError.*no rewards"):
        policy = hm.train(hm.BDT(m=2, target_window=4), data, out=tmp_path / "bdt", **SMALL)
    assert np.array_equal(policy.reference("height").lengths, data.lengths)
    with pytest.raises(hm.HimatchError, match="nothing about the feature 'double'"):
        policy.reference("double")
    with pytest.raises(hm.HimatchError, match="'double' failed with TypeError"):
        hm.train(hm.CDT("double"), data, out=tmp_path / "cdt", **SMALL)
    assert not (tmp_path / "cdt").exists()


@pytest.mark.parametrize("method", [hm.CDT("uneven"), hm.DT("uneven")])
def test_a_feature_has_one_width_in_all_episodes(
    method: hm.Method, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    task = hm.Task("uneven-logs", 100, features={"uneven": lambda obs, act, rew: obs[:, : 1 + len(obs) % 2]})
    data = hm.load_dataset(list(hopper), task)
    with pytest.raises(hm.HimatchError, match="it must have the same in all of them"):
        hm.train(method, data, out=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()
    with pytest.raises(hm.HimatchError, match="width 1 in episode 0 and 2 in episode 1"):
        hm.inspect_dataset(data, ("uneven",))
    assert list(hm.inspect_dataset(data).failed) == ["uneven"]
