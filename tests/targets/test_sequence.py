"""Targets that follow one another in time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_expression import distributions

import himatch as hm
from himatch.errors import ExpressionError, TargetError
from himatch.statistics.features import resolve_feature
from himatch.targets import Frame, Lasting, Samples, Shifted, Successive, Synthetic, Target

FRAME = Frame(resolve_feature("x_velocity", hm.get_task("hopper")), hm.Bins((-1.0,), (6.0,)), 1000)

plain = st.one_of(
    st.builds(lambda d: Synthetic((d,)), distributions()),
    st.builds(lambda d, seed: Synthetic((d,), seed, shuffled=True), distributions(), st.integers(0, 9)),
)
steps = st.integers(1, 10**6)


def longer(parts: st.SearchStrategy[Target]) -> st.SearchStrategy[Target]:
    lasting = st.builds(Lasting, parts, steps)
    ends = st.one_of(parts, lasting)
    first = st.lists(lasting, min_size=1, max_size=3)
    return st.one_of(lasting, st.builds(lambda many, last: Successive((*many, last)), first, ends))


@given(st.recursive(plain, longer, max_leaves=6))
def test_names_parse_back(target: Target) -> None:
    assert hm.parse_target(target.name) == target
    assert hm.parse_target(f" ( {target.name} ) ") == target


def test_one_part_comes_after_the_other() -> None:
    values = hm.parse_target("normal(4,0.1) for 200 then normal(1,0.1) for 300 then point(2)").values(FRAME)[:, 0]
    assert len(values) == 1000
    assert values[:200].min() > 3 > 1.5 > values[200:500].max()
    assert (values[500:] == 2).all()
    turned = hm.parse_target("normal(1,0.1) for 200 then normal(4,0.1) for 300 then point(2)").values(FRAME)[:, 0]
    assert turned[:200].max() < 1.5


def test_a_part_is_laid_out_whole_in_its_stretch() -> None:
    values = hm.parse_target("0.5*point(1)+0.5*point(2) for 100 then 0.25*point(3)+0.75*point(4)").values(FRAME)[:, 0]
    np.testing.assert_array_equal(values, np.repeat([1, 2, 3, 4], [50, 50, 225, 675]))
    nested = hm.parse_target("(point(1) for 10 then point(2)) for 30 then point(3) for 5").values(FRAME)[:, 0]
    np.testing.assert_array_equal(nested, np.repeat([1, 2, 3], [10, 20, 5]))
    np.testing.assert_array_equal(
        Successive((Lasting(Samples(np.arange(4.0)), 8), Samples(np.zeros(1)))).values(FRAME)[:8, 0],
        np.repeat(np.arange(4), 2),
    )


def test_it_ends_where_its_last_part_does() -> None:
    assert len(hm.parse_target("point(1) for 200 then point(2) for 300").values(FRAME)) == 500
    assert len(hm.parse_target("normal(1,1) for 30").values(FRAME)) == 30


def test_it_is_in_time_and_its_histogram_is_that_of_all_parts() -> None:
    target = hm.parse_target("point(1) for 250 then point(3)")
    assert target.in_time
    assert not hm.parse_target("normal(1,1) for 30").in_time
    expected = hm.parse_target("0.25*point(1)+0.75*point(3)").histogram(FRAME)
    np.testing.assert_array_equal(target.histogram(FRAME), expected)
    moved = Shifted(target, 2)
    assert moved.in_time
    np.testing.assert_allclose(moved.values(FRAME), target.values(FRAME) + 2 * FRAME.bins.widths, rtol=1e-6)
    parts = [part.values(FRAME) for part in moved.stretches(FRAME)]
    assert [len(part) for part in parts] == [250, 750]
    np.testing.assert_array_equal(np.concatenate(parts), moved.values(FRAME))


def test_episodes_give_their_first_steps(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    hm.write_minari(hopper, tmp_path / "set-v0")
    path = tmp_path / "set-v0"
    target = hm.parse_target(f"demo({path}, 3) for 10 then demo({path}, 5)", "hopper")
    expected = np.concatenate([hopper[3].observations[:10], hopper[5].observations])
    np.testing.assert_array_equal(target.values(FRAME), expected[:, [5]])
    shown = target.demonstration()
    assert shown is not None
    np.testing.assert_array_equal(shown.observations, expected)
    assert hm.parse_target(f"demo({path}, 3) for 10 then point(1)", "hopper").demonstration() is None
    assert hm.parse_target(target.name, "hopper").name == target.name
    text = f"demo({path}, 3) for 100"
    with pytest.raises(ExpressionError, match=r"has 23 steps, and is to last 100") as caught:
        hm.parse_target(text, "hopper")
    assert caught.value.position == text.index("100")


def test_what_goes_beyond_the_horizon_is_refused() -> None:
    text = "point(1) for 600 then point(2) for 401 then point(3)"
    with pytest.raises(ExpressionError, match="401 steps go beyond the horizon, of which 400 are left") as caught:
        hm.parse_target(text, "hopper")
    assert caught.value.position == text.index("401")
    text = "point(1) for 1000 then point(2)"
    with pytest.raises(ExpressionError, match="nothing is left of the horizon") as caught:
        hm.parse_target(text, hm.get_task("hopper"))
    assert caught.value.position == text.index("point(2)")
    # Without a task it is found out when the horizon is known.
    for text in ("point(1) for 1001", "point(1) for 1000 then point(2)", "(point(1) for 20 then point(2)) for 20"):
        with pytest.raises(TargetError, match=r"^[^\n]*goes beyond the horizon, which is (1000|20) steps$"):
            hm.parse_target(text).values(FRAME)


def test_what_cannot_be_a_part_is_refused() -> None:
    one = Lasting(hm.parse_target("point(1)"), 3)
    with pytest.raises(TargetError, match="of a whole episode"):
        Lasting(hm.parse_target("return(1)"), 3)
    with pytest.raises(TargetError, match="one or more"):
        Lasting(hm.parse_target("point(1)"), 0)
    with pytest.raises(TargetError, match="two targets"):
        Successive((one,))
    with pytest.raises(TargetError, match="nothing says for how many steps"):
        Successive((hm.parse_target("point(1)"), one))
    with pytest.raises(TargetError, match="has 5 steps, and is to last 10"):
        Lasting(Samples(np.zeros(3), steps=5), 10).values(FRAME)


def test_a_sequence_that_is_too_short_for_its_steps_is_refused() -> None:
    target = hm.parse_target("(point(0) for 5 then point(1) for 5) for 12 then point(2)")
    with pytest.raises(TargetError, match="has 10 steps, and is to last 12"):
        target.values(FRAME)
