from __future__ import annotations

from pathlib import Path

import pytest

import himatch as hm
from himatch import quickstart
from himatch.errors import HimatchError
from himatch.tasks import Task


def test_quickstart_from_nothing_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {**vars(hm.get_task("halfcheetah")), "horizon": 20}
    monkeypatch.setattr(quickstart, "get_task", lambda name: Task(**short))
    quickstart.run_quickstart(tmp_path, episodes=16, steps=20)
    folder = tmp_path / "halfcheetah-gaits-16-0-v0"
    first = hm.load_dataset(folder).content_hash
    output = capsys.readouterr().out
    assert "episodes    16" in output
    assert "mixture" in output
    assert "always the mean action" in output
    assert (tmp_path / "dataset.png").exists()
    monkeypatch.setattr(quickstart, "_generate", lambda *_: pytest.fail("the dataset was there already"))
    quickstart.run_quickstart(tmp_path, episodes=16, steps=20)
    assert hm.load_dataset(folder).content_hash == first


def test_too_few_episodes(tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match="15"):
        quickstart.run_quickstart(tmp_path, episodes=3)
