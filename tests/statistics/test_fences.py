"""Between which values a feature usually lies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himatch.statistics import fences as fences_of
from himatch.statistics.fences import SAMPLE, Sample, fences

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=71_000)
RARE = RNG.random(71_000)


def changed(values, **at):
    values = values.copy()
    for row, value in at.items():
        values[int(row[1:])] = value
    return values


def fence(values):
    low, high = fences(np.asarray(values, dtype=np.float32)[:, None])
    return float(low[0]), float(high[0])


CONTACT = (RARE < 0.001).astype(float)
FORCE = np.where(RARE < 0.01, 5 + 300 * NORMAL**2, 0.0)


@pytest.mark.parametrize(
    ("spoiled", "clean"),
    [
        (changed(NORMAL, _5=9999), changed(NORMAL, _5=0)),
        (changed(NORMAL, _5=-9999, _9=1e30), changed(NORMAL, _5=0, _9=0)),
        (np.where(RARE < 0.03, -999, NORMAL), np.where(RARE < 0.03, 0, NORMAL)),
        (np.where(RARE < 0.03, -999, np.where(RARE > 0.98, 999, NORMAL)), NORMAL[(RARE >= 0.03) & (RARE <= 0.98)]),
        (changed(CONTACT, _7=9999), changed(CONTACT, _7=0)),
        (changed(FORCE, _7=1e7), changed(FORCE, _7=0)),
        (changed(NORMAL[:50], _3=500), changed(NORMAL[:50], _3=0)),
        (np.where(RARE < 0.06, -999, NORMAL), NORMAL[RARE >= 0.06]),
        (np.where(RARE < 0.29, 9999, NORMAL), NORMAL[RARE >= 0.29]),
        (np.where(RARE < 0.1, -999, np.where(RARE > 0.85, 9999, NORMAL)), NORMAL[(RARE >= 0.1) & (RARE <= 0.85)]),
        (np.where(RARE < 0.1, -999, np.where(RARE < 0.2, -998, NORMAL)), NORMAL[RARE >= 0.2]),
        (changed(np.where(RARE < 0.1, -999, NORMAL), _5=1e6, _9=-1e6), NORMAL[RARE >= 0.1]),
        (np.where(RARE < 0.1, -999, np.where(RARE > 0.99, RARE * 1e5, NORMAL)), NORMAL[(RARE >= 0.1) & (RARE <= 0.99)]),
        (np.where(RARE > 0.9, -1e6, FORCE), FORCE[RARE <= 0.9]),
        (np.where(RARE > 0.91, 5000 + 5000 * RARE**9, NORMAL), NORMAL[RARE <= 0.91]),
    ],
)
def test_faults_are_outside(spoiled, clean):
    assert fence(spoiled) == (np.float32(clean.min()), np.float32(clean.max()))


@pytest.mark.parametrize(
    "values",
    [
        NORMAL,
        CONTACT,
        FORCE,
        RNG.exponential(size=71_000),
        np.zeros(300),
        np.where(RARE[:2000] < 0.5, 0.0, 1.0),
        np.where(RARE < 0.004, 100.0, 0.0),  # a sparse reward
        np.where(RARE < 0.35, -999, NORMAL),  # too often for a mark
        np.where(RARE < 0.2, -20, NORMAL),  # standing still, and not far from the others
        np.where(RARE < 0.2, 0, 10 + 0.1 * NORMAL) + np.where(abs(RARE - 0.21) < 0.01, (RARE - 0.21) * 500, 0),
        np.where(RARE < 0.2, 0.1 * NORMAL, 100 + 0.1 * NORMAL),  # two behaviours, each in its own episodes
        np.where(RARE < 0.15, 999, np.round(3 * RARE)),  # a switch with an error code: few numbers all
        changed(NORMAL[:10], _3=500),  # of a few values none is unusual
        np.array([3.0]),
        np.where(np.arange(71_000) % 1000 < 920, 0.01 * NORMAL, 1 + 0.3 * RARE),  # mostly standing, running for a while
    ],
)
def test_what_is_usual_is_inside(values):
    assert fence(values) == (np.float32(values.min()), np.float32(values.max()))


def test_one_value_beyond_the_sample_is_outside():
    values = np.random.default_rng(1).normal(size=SAMPLE + 50_000)
    clean = fence(values)
    for row in range(1000, 1010):
        assert fence(changed(values, **{f"_{row}": 1e4})) == clean


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60), st.floats(0.5, 100), st.floats(-10, 10))
def test_fences_are_values_and_do_not_depend_on_order(values, scale, shift):
    low, high = fence(values)
    assert np.float32(low) in np.float32(values)
    assert np.float32(high) in np.float32(values)
    assert low <= high
    assert fence(values[::-1]) == (low, high)


def test_a_sample_of_very_many_rows_stays_small_and_shows_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fences_of, "SAMPLE", 100)
    sample, rows = Sample(), np.arange(10_000.0)[:, None]
    for first in range(0, 10_000, 37):
        sample.add(rows[first : first + 37])
    assert 100 <= len(sample.rows) <= 200
    assert np.ptp(np.diff(sample.rows[:, 0])) <= 0.6 * np.diff(sample.rows[:, 0]).mean()  # evenly spread
    assert sample.rows[0] < 200
    assert sample.rows[-1] > 9_800


def test_standing_and_running_are_no_marks_where_the_robot_moves_from_one_to_the_other() -> None:
    """One start in 71,000 steps, of which a sample of the values need not tell."""
    speed = np.where(np.arange(71_000) < 14_000, 0.0, 10 + 0.1 * NORMAL)
    started = changed(speed, **{f"_{14_000 + i}": i / 2 for i in range(20)})
    assert fence(started) == (0, np.float32(started.max()))
    assert fence(speed)[0] > 9  # nothing ever led from one to the other


def test_a_robot_that_falls_over_is_rare_and_not_a_fault() -> None:
    """It turns through everything between; a reading that nothing leads to is a fault."""
    pitch = np.concatenate([RNG.normal(0, 0.1, 70_000), np.linspace(0.3, 6.3, 300)])
    low, high = fences(pitch[:, None])
    assert (low[0], high[0]) == (pitch.min(), pitch.max())
    assert fences(np.append(pitch, 60.0)[:, None])[1][0] == pitch.max()


@pytest.mark.parametrize(
    "values",
    [RNG.standard_cauchy(71_000), np.where(RARE < 0.08, np.exp(2.5 * RNG.normal(size=71_000)), NORMAL)],
    ids=["tails", "impacts of all sizes"],
)
def test_what_thins_out_is_no_fault(values) -> None:
    assert fence(values)[1] > np.quantile(values, 0.999)  # single values far out may be


@pytest.mark.parametrize("share", [0.03, 0.06, 0.1])
def test_many_bad_readings_anywhere_are_faults(share: float) -> None:
    speed = np.abs(np.sin(np.arange(4800) / 50)) * 2
    spikes = np.random.default_rng(1).random(4800) < share
    low, high = fence(np.where(spikes, 5000 * NORMAL[:4800], speed))
    assert -8 <= low <= 0  # what is near the others cannot be told from them
    assert 1.99 <= high <= 10
