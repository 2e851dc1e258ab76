"""One command a method: its flags are its fields."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from command_line import Run, assert_refused

import himatch as hm
from himatch.cli.method_commands import check_flags, own_flags, summary, take_imports
from himatch.cli.methods import TARGETS, rows
from himatch.errors import HimatchError
from himatch.methods import METHODS
from himatch.networks.transformer import ModelConfig
from himatch.training import default_preset

TINY = ["--steps", "2", "--width", "16", "--layers", "1", "--batch-size", "8"]

OWN = """
from dataclasses import dataclass
from typing import ClassVar
from himatch.methods import CDT, METHODS, Method

@dataclass(frozen=True)
class Coarse(CDT):
    \"\"\"A Categorical DT with coarse bins.

    And more.
    \"\"\"
    name: ClassVar[str] = "coarse"
    bins: int = 5
    resolution: float = 0.5
    \"\"\"How coarse.\"\"\"

METHODS["coarse"] = Coarse
"""


@pytest.fixture
def methods() -> Iterator[None]:
    """Methods that a test registers are forgotten with it."""
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


@pytest.fixture
def own(tmp_path: Path, methods: None) -> Path:
    path = tmp_path / "coarse.py"
    path.write_text(OWN)
    return path


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal with one panel below the other."""
    monkeypatch.setenv("COLUMNS", "100")


def words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_help_lists_the_methods(run: Run) -> None:
    code, out, _ = run("train", "--help")
    assert code == 0
    for name, method in METHODS.items():
        assert f"• {name} {summary(method)}" in words(out)


@pytest.mark.parametrize("name", METHODS)
def test_the_flags_of_a_method_are_its_fields(name: str, run: Run, wide: None) -> None:
    code, out, _ = run("train", name, "--help")
    assert code == 0
    assert summary(METHODS[name]) in words(out)
    shown = {word.strip(",").removeprefix("--").replace("-", "_") for word in out.split() if word.startswith("--")}
    assert {f.name for f in fields(METHODS[name])} <= shown
    for f in fields(ModelConfig):
        assert (f.name in shown) == (f.name not in METHODS[name].unused)
    others = set().union(*map(own_flags, METHODS)) - own_flags(name)
    assert not others & shown
    titles = re.findall(r"^\W*(?:([a-z.]+) )?options\W*$", out, re.MULTILINE)
    assert titles == [
        "",
        *(["method"] if fields(METHODS[name]) else []),
        "model",
        "training",
        "data",
        "data.columns",
        "run",
    ]
    assert "None" not in out


def test_defaults_are_those_of_the_presets(run: Run, wide: None) -> None:
    out = words(run("train", "cdt", "--help")[1])
    assert "Width of the layers. (default: paper 128, fast 128, cpu 64)" in out
    assert "Bins of the histogram. (default: 31)" in out
    assert "(default: paper 256, fast 256, cpu 128)" in words(run("train", "focal", "--help")[1])


def test_a_flag_that_nobody_has_is_refused_by_name(run: Run) -> None:
    code, out, err = run("train", "cdt", "--data", "x", "--out", "y", "--binz", "3")
    assert (code, out) == (2, "")
    assert "Unrecognized options: --binz, 3" in err
    assert "--bins INT" in err
    assert "himatch train cdt --help" in err


def test_what_is_missing_is_named(run: Run) -> None:
    code, _, err = run("train", "cdt")
    assert code == 2
    assert "--data SOURCE" in err
    assert "--out RUN" in err
    assert_refused(run("train"), "himatch train bc|dt|cdt|")


def test_values_of_flags_do_not_count_as_flags() -> None:
    check_flags("bc", ["--data", "bins", "--out", "feature"])
    with pytest.raises(HimatchError, match="--target-window"):
        check_flags("bc", ["--target_window", "3"])


# -- methods of one's own ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
def test_a_method_of_ones_own_is_a_command(
    before: bool, own: Path, hopper: hm.TrajectoryDataset, tmp_path: Path, run: Run
) -> None:
    source = hm.write_minari(hopper, tmp_path / "hopper-v0")
    imported, flags = ["--import", own], ["--resolution", 0.25, "--feature", "x_velocity", "--preset", "cpu", *TINY]
    place = [*imported, "coarse", *flags] if before else ["coarse", *flags, *imported]
    code, out, err = run("train", *place, "--data", source, "--out", tmp_path / "run")
    assert code == 0, err
    assert out.startswith("coarse of x_velocity, 1 seed(s)")
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["method"]
    settings = {"feature": "x_velocity", "gamma": 1.0, "bins": 5, "z": "histogram", "resolution": 0.25}
    assert stored == {"name": "coarse", **settings}


def test_help_knows_methods_of_ones_own(own: Path, run: Run, wide: None) -> None:
    assert "• coarse A Categorical DT with coarse bins." in words(run("train", f"--import={own}", "--help")[1])
    out = words(run("train", "coarse", "--help", "--import", own)[1])
    assert "--resolution FLOAT How coarse. (default: 0.5)" in out
    assert "--bins INT Bins of the histogram. (default: 5)" in out


def test_a_field_without_a_default_is_a_flag_that_is_required(own: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "needy.py"
    path.write_text(OWN.replace("coarse", "needy").replace("Method\n", "BC\n").replace("(CDT)", "(BC)"))
    path.write_text(path.read_text().replace("    bins: int = 5\n", "").replace("float = 0.5", "float"))
    code, _, err = run("train", "needy", "--import", path, "--data", "x", "--out", "y")
    assert code == 2
    assert "--resolution FLOAT" in err
    assert "--data" not in err


def test_a_field_that_is_a_flag_already_is_refused(own: Path, run: Run) -> None:
    own.write_text(OWN.replace("resolution", "steps"))
    assert_refused(
        run("train", "coarse", "--import", own, "--data", "x", "--out", "y"),
        "method coarse has a field 'steps', which is a flag of every himatch train; give it another name",
    )
    assert run("train", "cdt", "--import", own, "--help")[0] == 0


def test_a_class_without_a_docstring_has_no_summary() -> None:
    from dataclasses import make_dataclass

    assert summary(make_dataclass("Plain", [("x", int)])) == ""


@pytest.mark.parametrize(
    ("arguments", "imported", "others"),
    [
        (["cdt", "--import", "a.py", "--data", "x"], ["a.py"], ["cdt", "--data", "x"]),
        (["--import=a.py", "cdt", "--import", "b"], ["a.py", "b"], ["cdt"]),
        (["cdt", "--import"], [], ["cdt", "--import"]),
        (["cdt", "--important", "a"], [], ["cdt", "--important", "a"]),
    ],
)
def test_imports_are_taken_from_anywhere(arguments: list[str], imported: list[str], others: list[str]) -> None:
    assert take_imports(arguments) == (imported, others)


# -- presets ----------------------------------------------------------------------------------------------------------


def test_without_a_gpu_the_preset_is_cpu(hopper: hm.TrajectoryDataset, tmp_path: Path, run: Run) -> None:
    source = hm.write_minari(hopper, tmp_path / "hopper-v0")
    command = ["train", "dt", "--data", source, *TINY, "--device", "cpu", "--out"]
    code, _, err = run(*command, tmp_path / "run")
    assert code == 0
    assert "himatch: no GPU in use: preset cpu, smaller and shorter than fast and paper (--preset)" in err.splitlines()
    made = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (made["train"]["learning_rate"], made["model"]["context"]) == (1e-3, 5)
    assert "preset" not in run(*command, tmp_path / "other", "--preset", "cpu")[2]


def test_the_default_preset_follows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_preset("cpu") == "cpu"
    for there, preset in ((False, "cpu"), (True, "fast")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert default_preset(None) == preset


def test_help_is_quick() -> None:
    """PyTorch and NumPy stay out of it."""
    code = "import sys; from himatch.cli.main import main\ntry: main([%s])\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules, 'numpy' in sys.modules, file=sys.stderr)"
    for arguments in ("'--help'", "'match', '--help'", "'trian'"):
        found = subprocess.run([sys.executable, "-c", code % arguments], capture_output=True, text=True, check=True)
        assert found.stderr.splitlines()[-1] == "False False"


def test_all_methods_are_listed(own: Path, run: Run) -> None:
    code, out, _ = run("methods", "--json", "--import", own)
    assert code == 0
    found = {row["method"]: row for row in json.loads(out)}
    assert found.keys() == METHODS.keys()
    assert all(all(row.values()) for row in found.values())
    assert found["gcsl"]["targets"] == "goal(X), goal(X, within=N)"
    assert found["bdt"]["targets"].startswith("demo(")
    assert found["coarse"]["system"] == found["cdt"]["system"]  # of a subclass of it
    code, out, _ = run("methods")
    assert code == 0
    for name in METHODS:
        assert f"\n{name} " in f"\n{out}"


def test_a_method_that_says_nothing_of_itself_is_listed_by_its_docstring(methods: None) -> None:
    class Silent(hm.methods.Method):
        """Says nothing."""

        name = "silent"

    METHODS["silent"] = Silent
    assert list(rows())[-1] == ("silent", "Says nothing.", "see its documentation", TARGETS["distribution"])
