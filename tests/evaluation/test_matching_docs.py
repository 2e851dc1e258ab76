"""What docs/matching.md shows is executed."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from short_tasks import short_tasks  # noqa: F401
from untrained import fallen_hoppers

import himatch as hm
from himatch.errors import HimatchWarning

DOCS = Path(__file__).parents[2] / "docs" / "matching.md"


def test_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = hm.load_dataset(fallen_hoppers(range(30)), "hopper")
    for method in (hm.CDT("x_velocity"), hm.DT()):
        small = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "split": "paper", "seeds": 2, "quiet": True}
        hm.train(method, data, out=Path("runs") / method.name, **small)  # type: ignore[arg-type]
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # so little data covers no target
        for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL):
            exec(block, names)
    assert Path("match.png").stat().st_size > 5000
    printed = capsys.readouterr().out
    assert re.findall(r"^(nominal|remaining|planned) \d", printed, re.MULTILINE) == ["nominal", "remaining", "planned"]
    assert isinstance(names["shaken"], hm.MatchResult)
    assert names["score"]["action_error"].shape == (2,)  # type: ignore[index]
