from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch.errors import ExpressionError, HimatchError, TargetError
from himatch.statistics.features import resolve_feature
from himatch.targets import (
    Component,
    Distribution,
    Drawn,
    Frame,
    Goal,
    Patched,
    Return,
    Samples,
    ServedTask,
    Shifted,
    Synthetic,
)

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
components = st.one_of(
    st.builds(lambda m, s: Component("normal", (m, s)), numbers, st.floats(1e-6, 1e3)),
    st.builds(lambda a, w: Component("uniform", (a, a + w)), st.floats(-1e3, 1e3), st.floats(1, 1e3)),
    st.builds(lambda v: Component("point", (v,)), numbers),
)


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    parts = draw(st.lists(components, min_size=1, max_size=4))
    shares = np.array(draw(st.lists(st.integers(1, 9), min_size=len(parts), max_size=len(parts))), dtype=float)
    weights = shares / shares.sum()
    return Distribution(tuple(parts), tuple(float(w) for w in weights))


@given(st.lists(distributions(), min_size=1, max_size=3), st.booleans(), st.integers(0, 99))
def test_names_parse_back(parts: list[Distribution], shuffled: bool, seed: int) -> None:
    target = Synthetic(tuple(parts), seed if shuffled else 0, shuffled)
    assert hm.parse_target(target.name) == target


@given(st.lists(numbers, min_size=1, max_size=3))
def test_returns_and_goals_parse(values: list[float]) -> None:
    text = ", ".join(repr(value) for value in values)
    assert hm.parse_target(f" return ( {text} ) ") == Return(tuple(values))
    assert hm.parse_target(f"goal({text})") == Goal(tuple(values))


@given(st.lists(numbers, min_size=1, max_size=3))
def test_tasks_parse_back_and_ask_for_their_parameter(values: list[float]) -> None:
    target = ServedTask(tuple(values))
    assert hm.parse_target(target.name) == target
    bins = hm.Bins((-1.0,) * len(values), (1.0,) * len(values))
    frame = Frame(resolve_feature("state", hm.get_task("hopper")), bins, 7)
    np.testing.assert_array_equal(target.values(frame), np.tile(np.array(values, dtype=np.float32), (7, 1)))
    assert target.alike(target.values(frame), frame) is not None


def test_what_a_task_is_part_of_names_it_too() -> None:
    for text in ("task(1.5) for 200", "x_velocity ~ task(1.5)", "task(1.5) & height > 1", "(task(1.5))"):
        assert hm.parse_target(text, "hopper").task == (1.5,), text
    for text in (
        "task(1) for 9 then task(2)",
        "shift(task(1), 2)",
        "normal(1,2)",
        "x_velocity ~ task(1) & height ~ task(2)",
    ):
        assert hm.parse_target(text, "hopper").task is None, text
    for text, position in (("task()", 5), ("task(a)", 5), ("task(1", 6), ("0.5*task(1)+0.5*task(2)", 4)):
        with pytest.raises(ExpressionError) as caught:
            hm.parse_target(text)
        assert caught.value.position == position, text


@given(st.lists(numbers, min_size=1, max_size=3), st.none() | st.integers(1, 1000))
def test_deadlines_parse_back(values: list[float], within: int | None) -> None:
    for target in (Return(tuple(values), within), Goal(tuple(values), within)):
        assert hm.parse_target(target.name, "hopper") == target
    assert hm.parse_target("return( 9 , within = 200 )") == Return((9.0,), 200)


@given(st.text(alphabet="normaluifpthe()+*,.0123456789-e 'x~&<>=[]", max_size=40))
def test_nonsense_gives_an_error_that_points_into_the_text(text: str) -> None:
    found: HimatchError | None = None
    try:
        hm.parse_target(text)
    except HimatchError as error:
        found = error
    assert found is None or (isinstance(found, ExpressionError) and 0 <= found.position <= len(text))


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("normal(5,1", 10, r"expected '\)'"),
        ("normal(5,0)", 9, "positive"),
        ("0.5*point(1) + 0.5*normal( 1 , -0.2 )", 31, "positive"),
        ("normal(5)", 0, "takes 2 numbers"),
        ("normal(5,-1,2)", 0, "takes 2 numbers"),
        ("uniform(4,2)", 10, "low below high"),
        ("0.5*normal(5,1)+0.4*normal(13,1)", 0, "add up to 0.9"),
        ("0.5*normal(5,1)+normal(13,1)", 16, "every part"),
        ("0.5*normal(5,1)+0.5*return(3)", 20, "cannot be part of a mixture"),
        ("0*normal(5,1)+1*normal(1,1)", 0, "positive"),
        ("normall(5,1)", 0, "unknown target 'normall'"),
        ("normal(5,1) normal(2,1)", 12, "expected the end"),
        ("normal(five,1)", 7, "expected a number"),
        ("", 0, "expected a target"),
        ("0.5 normal(1,1)", 4, r"expected '\*'"),
        ("shift(normal(1,1))", 17, "expected ','"),
        ("shift(return(3), 1)", 6, "cannot shift"),
        ("patch(normal(1,1), goal(2, 3), 5)", 19, "cannot patch"),
        ("patch(normal(1,1), normal(2,1), 0)", 32, "cannot take over at step 0"),
        ("joint(return(3))", 6, "one distribution"),
        ("shuffled(return(3))", 9, "only drawn"),
        ("patch(normal(1,1), normal(2,1), 2.5)", 32, "whole number"),
        ("demo('x.npz", 5, "never closed"),
        ("demo(, 3)", 5, "file name"),
        ("demo(nowhere.hdf5, 3)", 5, "no such file"),
        ("histogram(nowhere.json)", 10, "cannot be opened"),
        ("shift(samples(nowhere.npy), 1)", 14, "not a readable"),
        ("normal(2", 8, r"expected '\)' or a comma"),
        ("return(1, 1e999)", 10, "too large"),
        ("goal(3, within=0)", 15, "within is a whole number of steps, one or more"),
        ("goal(3, within=-4)", 15, "within is a whole number of steps"),
        ("goal(3, within=2.5)", 15, "within is a whole number of steps"),
        ("goal(3, within=1001)", 15, "1001 steps go beyond the horizon, which is 1000"),
        ("return(3, within=1e999)", 17, "too large"),
        ("return(3, within)", 16, "expected '=' after within"),
        ("return(3, within=)", 17, r"expected a number \(how many steps\)"),
        ("return(within=9)", 7, "expected a number"),
        ("goal(3, within=9, 4)", 16, "within=STEPS comes last"),
        ("goal(3, within=9", 16, r"expected '\)' or a comma"),
        ("goal(3, by=9)", 8, "expected a number"),
        ("normal(3, within=9)", 10, "expected a number"),
        ("goal(3) for 9", 0, "of a whole episode"),
        ("(" * 60 + "normal(1,1)" + ")" * 60, 40, "too many brackets"),
        ("__import__('os')", 0, "unknown target"),
        ("hight > 1 & normal(1,1)", 0, "task hopper has no feature 'hight'; it has .*; did you mean height"),
        ("x_velocity ~ point(1) & 1 < hight", 28, "no feature 'hight'"),
        ("height > 1", 0, "bounds are only scored"),
        ("normal(1,1) & normal(2,1)", 14, "say which feature this is for"),
        ("x_velocity ~ point(1) & point(2)", 24, "say which feature this is for"),
        ("point(1) & height ~ point(2)", 11, "the target before has no feature"),
        ("point(1) &", 10, "say which feature"),
        ("1 < height > 2 & point(1)", 11, "both signs of a range"),
        ("point(1) & 2 < height < 1", 11, "no height lies between 2 and 1"),
        ("point(1) & 2 < height <= 2", 11, "no height lies between"),
        ("height = 3 & point(1)", 7, r"one of < <= > >=; a single value is NAME ~ point\(3\)"),
        ("x_velocity ~ point(1) & x_velocity ~ point(2)", 24, "x_velocity has a target already"),
        ("x_velocity ~ return(1) & height ~ point(1)", 0, "is no distribution"),
        ("x_velocity ~", 12, "expected a target"),
        ("point(1) & height > fast", 20, r"expected a number \(a bound\)"),
        ("height > 1 < 2 & point(1)", 11, "expected the end"),
        ("x_velocity ~ point(1) height > 1", 22, "expected the end"),
        ("1 < 2 & point(1)", 4, "expected the name of a feature"),
        ("(x_velocity ~ point(1))", 1, "unknown target 'x_velocity'"),
        ("normal(1,1) for", 15, r"expected a number \(how many steps\)"),
        ("normal(1,1) for then normal(2,1)", 16, "expected a number"),
        ("normal(1,1) for 0 then normal(2,1)", 16, "a whole number of steps, one or more"),
        ("normal(1,1) for 2.5 then normal(2,1)", 16, "a whole number of steps"),
        ("normal(1,1) for -3", 16, "a whole number of steps"),
        ("normal(1,1) for 1e999", 16, "too large"),
        ("normal(1,1) for 5 then", 22, "expected a target"),
        ("normal(1,1) for 5 then for 5", 23, "unknown target 'for'"),
        ("normal(1,1) then normal(2,1)", 12, "say for how many steps"),
        ("normal(1,1) for 5 then normal(2,1) then point(1)", 35, "say for how many steps"),
        ("normal(1,1) for 5 normal(2,1)", 18, "expected the end"),
        ("normal(1,1) forth 5", 12, "expected the end"),
        ("point(1) for 5 then return(3)", 20, r"return\(3\) is of a whole episode"),
        ("shift(point(1) for 5 then goal(2) for 3, 1)", 26, "of a whole episode"),
        ("0.5*point(1) + 0.5*(point(2) for 3)", 19, "cannot be part of a mixture"),
        ("shuffled(point(2) for 3)", 9, "only drawn"),
        ("patch(point(2) for 3 then point(1), point(3), 0)", 46, "cannot take over at step 0"),
    ],
)
def test_mistakes_are_pointed_at(text: str, position: int, message: str) -> None:
    with pytest.raises(ExpressionError, match=message) as caught:
        hm.parse_target(text, "hopper")
    assert caught.value.position == position
    assert str(caught.value).splitlines()[-1].index("^") == position + 2


def test_weights_multiply_through_brackets() -> None:
    target = hm.parse_target("0.5*(0.5*normal(1,1)+0.5*normal(2,1)) + 0.5*point(3)")
    assert isinstance(target, Synthetic)
    assert target.parts[0].weights == (0.25, 0.25, 0.5)
    equal = hm.parse_target("normal(1,1) + normal(2,1)")
    assert isinstance(equal, Synthetic)
    assert equal.parts[0].weights == (0.5, 0.5)


def test_combinations() -> None:
    shifted = hm.parse_target("shift(0.5*normal(5,1)+0.5*normal(13,1), -2)")
    assert isinstance(shifted, Shifted)
    assert shifted.bins == -2
    patched = hm.parse_target("patch(normal(1,1), shuffled(normal(2,1), 4), 30)")
    assert isinstance(patched, Patched)
    assert patched.at == 30
    assert isinstance(patched.second, Synthetic)
    assert patched.second.seed == 4


def test_files(tmp_path: Path, hopper: hm.TrajectoryDataset) -> None:
    (tmp_path / "h.json").write_text(json.dumps({"edges": [0, 1, 2], "weights": [1, 3]}))
    drawn = hm.parse_target(f"histogram({tmp_path}/h.json)")
    assert isinstance(drawn, Drawn)
    np.save(tmp_path / "s.npy", np.arange(4.0))
    assert isinstance(hm.parse_target(f"samples('{tmp_path}/s.npy')"), Samples)
    hm.write_minari(hopper, tmp_path / "set-v0")
    target = hm.parse_target(f"demo({tmp_path}/set-v0, 3)", "hopper")
    frame = Frame(resolve_feature("x_velocity", hopper.task), hm.Bins((-5.0,), (5.0,)), 1000)
    np.testing.assert_array_equal(target.values(frame), hopper[3].observations[:, [5]])
    text = f"demo({tmp_path}/set-v0, 20)"
    with pytest.raises(ExpressionError, match="there is no episode 20") as caught:
        hm.parse_target(text)
    assert caught.value.position == text.index("20)")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"edges": [0, 1]}',
        '{"edges": [0, 1], "weights": [1, 2]}',
        '{"edges": [1, 0], "weights": [1]}',
        '{"edges": [0, 1], "weights": [-1]}',
        '{"edges": [0, 1], "weights": [0]}',
        '{"edges": "ab", "weights": [0]}',
        '{"edges": [[0, 1], [0, 1]], "weights": [1]}',
        '{"edges": [0, 1], "weights": ["x"]}',
        '{"edges": 3, "weights": 4}',
    ],
)
def test_badly_drawn_histograms_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "h.json").write_text(content)
    with pytest.raises(TargetError):
        hm.parse_target(f"histogram({tmp_path}/h.json)")


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(3, [("x", "f8"), ("y", "f8")]),
        np.array([1.0 + 2.0j]),
        np.array(["2026-11-16"], dtype="datetime64[D]"),
        np.array(["1.5"]),
    ],
    ids=["structured", "complex", "dates", "text"],
)
def test_samples_that_are_no_real_numbers_are_refused(values: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", values)
    with pytest.raises(TargetError, match=r"^[^\n]*s\.npy: samples must be real numbers, not .*; save what they stand"):
        hm.targets.read_samples(str(tmp_path / "s.npy"))


def test_samples_may_be_whole_numbers_and_flags(tmp_path: Path) -> None:
    for values in (np.array([1, 0], np.int16), np.array([1, 0], np.uint8), np.array([True, False])):
        np.save(tmp_path / "s.npy", values)
        assert hm.targets.read_samples(str(tmp_path / "s.npy")).samples.tolist() == [[1.0], [0.0]]


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s.npy").write_bytes(b"nonsense")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object))
    np.savez(tmp_path / "z.npz", np.arange(4.0))
    for text in ("samples(s.npy)", "samples(o.npy)", "samples(z.npz)", "samples(none.npy)", "histogram(none.json)"):
        name, path = text[:-1].split("(")
        with pytest.raises(TargetError):
            hm.parse_target(f"{name}({tmp_path / path})")
