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
