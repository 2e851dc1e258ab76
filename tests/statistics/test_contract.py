"""One contract for every fixed aggregator there is and will be: it runs over the registry."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from himatch.errors import HimatchError
from himatch.statistics.aggregators import (
    AGGREGATORS,
    Additive,
    Aggregator,
    Stretchwise,
    aggregator_from_spec,
    aggregator_spec,
)

ALL = sorted(AGGREGATORS.values(), key=lambda cls: cls.kind)
each = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.kind)
features = arrays(np.float32, st.tuples(st.integers(1, 25), st.integers(1, 3)), elements=st.floats(-100, 100, width=32))


def variants(cls: type[Any]) -> list[Aggregator]:
    """The aggregator as it comes, and discounted where it can be."""
    made = [cls()]
    if "gamma" in cls.__dataclass_fields__:
        made += [cls(gamma=0.9), cls(gamma=0.05)]
    return made


def fitted(cls: type[Any], phi: np.ndarray) -> list[Aggregator]:
    return [aggregator.fit([phi]) for aggregator in variants(cls)]


@each
@given(phi=features)
def test_shape(cls: type[Any], phi: np.ndarray) -> None:
    for aggregator in fitted(cls, phi):
        z = aggregator(phi)
        assert z.shape == (len(phi), aggregator.width(phi.shape[1]))
        assert z.dtype == np.float32
        assert np.isfinite(z).all()


@each
@given(phi=features, data=st.data())
def test_anti_causal(cls: type[Any], phi: np.ndarray, data: st.DataObject) -> None:
    """Perturb the past and nothing changes, to the bit."""
    t = data.draw(st.integers(0, len(phi) - 1))
    changed = phi.copy()
    changed[:t] = data.draw(arrays(np.float32, phi[:t].shape, elements=st.floats(-100, 100, width=32)))
    for aggregator in fitted(cls, phi):
        np.testing.assert_array_equal(aggregator(phi)[t:], aggregator(changed)[t:])


@each
@given(phi=features, data=st.data())
def test_the_rest_alone_gives_the_same(cls: type[Any], phi: np.ndarray, data: st.DataObject) -> None:
    """Row t is the first row of the trajectory cut at t; the last row is the statistic of the last step alone."""
    t = data.draw(st.integers(0, len(phi) - 1))
    for aggregator in fitted(cls, phi):
        for start in (t, len(phi) - 1):
            np.testing.assert_allclose(aggregator(phi)[start], aggregator(phi[start:])[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("cls", [c for c in ALL if isinstance(c(), Additive)], ids=lambda cls: cls.kind)
@given(phi=features, data=st.data())
def test_totals_tell_the_statistic_of_every_rest(cls: type[Any], phi: np.ndarray, data: st.DataObject) -> None:
    """What remaining conditioning relies on: what remains of a total is the statistic of the steps that remain."""
    aggregator = cls().fit([phi])
    assert isinstance(aggregator, Additive)
    t = data.draw(st.integers(0, len(phi) - 1))
    parts = aggregator.contributions(phi)
    rest = aggregator.of_total(parts.sum(axis=0) - parts[:t].sum(axis=0), np.array([float(len(phi) - t)]))
    assert rest.shape == (aggregator.width(phi.shape[1]),)
    slack = 0.05 if cls.kind == "moments" else 1e-3  # a root magnifies rounding of powers
    z = np.where(np.isnan(rest), aggregator(phi)[0], rest)  # nothing remains of a goal, which stays throughout
    np.testing.assert_allclose(z, aggregator(phi)[t], rtol=1e-4, atol=slack)
    nothing = aggregator.of_total(np.zeros_like(parts[0]), np.zeros(1))
    assert np.isnan(nothing).all() or (nothing == 0).all()


@pytest.mark.parametrize("cls", [c for c in ALL if isinstance(c(), Stretchwise)], ids=lambda cls: cls.kind)
@given(phi=features, data=st.data())
def test_what_is_kept_tells_the_statistic_of_every_stretch(
    cls: type[Any], phi: np.ndarray, data: st.DataObject
) -> None:
    """What hindsight relies on: from two rows, the statistic that the stretch between them has by itself."""
    aggregator = cls().fit([phi])
    first = data.draw(st.integers(0, len(phi) - 1))
    last = data.draw(st.integers(first, len(phi) - 1))
    kept = aggregator.kept(phi)
    assert kept.shape == (len(phi), aggregator.width(phi.shape[1]))
    a, b = aggregator.signs(kept.shape[1])
    beyond = np.concatenate([kept, np.zeros_like(kept[:1])])[last + aggregator.beyond]
    np.testing.assert_allclose(a * kept[first] + b * beyond, aggregator(phi[first : last + 1])[0], atol=1e-3)


@each
@given(phi=features)
def test_the_input_is_left_alone(cls: type[Any], phi: np.ndarray) -> None:
    before = phi.copy()
    for aggregator in fitted(cls, phi):
        aggregator(phi)
    np.testing.assert_array_equal(phi, before)


@each
def test_spec_round_trip(cls: type[Any]) -> None:
    phi = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
    for aggregator in fitted(cls, phi):
        again = aggregator_from_spec(json.loads(json.dumps(aggregator_spec(aggregator))))
        assert again == aggregator
        np.testing.assert_array_equal(again(phi), aggregator(phi))


@each
def test_fitting_uses_training_data_only_once(cls: type[Any]) -> None:
    """A generator can be consumed once; fitting must not need more."""
    phi = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
    assert cls().fit(x for x in [phi, phi * 2]) == cls().fit([phi, phi * 2])


@pytest.mark.parametrize("cls", [c for c in ALL if "gamma" in c.__dataclass_fields__], ids=lambda cls: cls.kind)
@pytest.mark.parametrize("gamma", [0.0, -0.5, 1.5, float("nan")])
def test_impossible_discounts_are_refused(cls: type[Any], gamma: float) -> None:
    with pytest.raises(HimatchError, match="gamma"):
        cls(gamma=gamma)


def test_unknown_specs_are_refused() -> None:
    with pytest.raises(HimatchError, match="unknown aggregator"):
        aggregator_from_spec({"kind": "mystery"})
    with pytest.raises(HimatchError, match="does not fit"):
        aggregator_from_spec({"kind": "sum", "surprise": 1})
