"""What README and docs show is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import himatch as hm
from himatch.cli import main
from himatch.tasks import registry

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    return


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def write_logs(path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = ["episode", *(f"obs_{i}" for i in range(8)), "act_0", "act_1", "reward"]
    rows = [
        ",".join([str(episode), *(f"{x:.5f}" for x in rng.normal(0.4, 0.2, 11))])
        for episode in range(20)
        for _ in range(30)
    ]
    path.write_text("\n".join([",".join(columns), *rows]))


def test_readme_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_logs(tmp_path / "logs.csv")
    (code,) = blocks("README.md", "python")
    names: dict[str, object] = {}
    exec(code, names)
    z = names["z"]
    assert isinstance(z, np.ndarray)
    assert z.shape == (300, 31)
    assert "Support(" in capsys.readouterr().out


def test_registering_tasks_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("docs/data.md", "python")
    exec(code.replace("MyArm-v0", "Pendulum-v1").replace('"speed": 7', '"speed": 2'), {})
    assert hm.get_task("arm").horizon == 200
    assert hm.get_task("rig").horizon == 300


def test_the_documented_mapping_is_understood(tmp_path: Path) -> None:
    (mapping,) = blocks("docs/data.md", "toml")
    (tmp_path / "logs.toml").write_text(mapping)
    header = "run,tick,q_0,q_1,dq_0,u_0,score"
    (tmp_path / "logs.csv").write_text(f"{header}\na,0,1,2,3,4,5\na,1,1,2,3,4,6\nb,0,1,2,3,4,7\n")
    data = hm.load_dataset(tmp_path / "logs.csv")
    assert (len(data), data.observations.shape[1], data.actions.shape[1]) == (2, 3, 1)
    assert data.returns.tolist() == [11.0, 7.0]


def test_documented_targets_parse() -> None:
    table = (ROOT / "docs" / "data.md").read_text().partition("# Targets")[2]
    for expression in re.findall(r"`([a-z0-9.*+(),]+\))`", table):
        if "EXPR" not in expression and "PATH" not in expression:
            assert hm.parse_target(expression).name


def test_the_table_of_experts_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """Mend it with the output of himatch experts list --all --markdown."""
    with pytest.raises(SystemExit):
        main(["experts", "list", "--all", "--markdown"])
    printed = capsys.readouterr().out.strip()
    assert printed.count("\n| `") == 40
    assert printed in (ROOT / "docs" / "experts.md").read_text()


def test_experts_act_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("docs/experts.md", "python")
    names: dict[str, object] = {}
    exec(code, names)
    assert isinstance(names["actions"], np.ndarray)
    assert names["actions"].shape == (4, 3)
    assert "mean" in capsys.readouterr().out


def test_readme_shows_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    for command in ("make quickstart", "make test"):
        assert command in text
        assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
