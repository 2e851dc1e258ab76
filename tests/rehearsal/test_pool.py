"""Rollouts that share a target out among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_searches import shrink
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError, TargetError
from himatch.rehearsal import pool
from himatch.rollout.plans import nearest_shares
from himatch.rollout.programs import ProgramPart, Shares
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import EpisodeReference, Frame

FRAME = Frame(resolve_feature("reward", hm.get_task("hopper")), Bins((0.0,), (10.0,)), 10)


def alone(entry: str) -> tuple[ProgramPart, ...]:
    return (ProgramPart(entry, 10),)


def constant(value: float, steps: int = 10) -> np.ndarray:
    return np.full((steps, 1), value, np.float32)


@given(st.lists(st.floats(0.05, 1), min_size=1, max_size=5), st.integers(1, 40))
def test_every_episode_plays_one_program_and_each_has_its_part(parts: list[float], episodes: int) -> None:
    shares = Shares(tuple(alone(str(n)) for n in range(len(parts))), tuple(parts))
    dealt = shares.dealt(episodes)
    assert len(dealt) == episodes
    for n, part in enumerate(parts):
        assert abs(dealt.count(n) - episodes * part / sum(parts)) < 1
    assert Shares.from_json(shares.as_json()).programs == shares.programs


def test_shares_are_those_of_the_nearest_mixture_of_what_lasted() -> None:
    rolled = {"slow": constant(1.0), "fast": constant(5.0), "falls": constant(9.0, 4)}
    reference = EpisodeReference.of_rows(FRAME, list(rolled.values()))
    found = nearest_shares(hm.parse_target("0.3*point(1)+0.7*point(5)"), reference, tuple(rolled), 10)
    assert dict(zip((one[0].entry for one in found.programs), found.parts, strict=True)) == pytest.approx(
        {"fast": 0.7, "slow": 0.3}
    )
    found = nearest_shares(hm.parse_target("point(9)"), reference, tuple(rolled), 10)
    assert found.programs == (alone("fast"),)


def test_of_nothing_that_lasts_the_nearest_is_taken() -> None:
    reference = EpisodeReference.of_rows(FRAME, [constant(1.0, 3), constant(9.0, 4)])
    assert nearest_shares(hm.parse_target("point(9)"), reference, ("a", "b"), 10).programs == (alone("b"),)


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hm.Policy:
    shrink(monkeypatch)
    for name, number in (("MIXED", 2), ("FINAL", 3), ("CHECKED", 4)):
        monkeypatch.setattr(pool, name, number)
    data = hm.load_dataset([one[:40] for one in fallen_hoppers(range(8))], "hopper")
    return untrained(hm.CDT("x_velocity"), data, tmp_path / "run", seeds=(0, 1))


def test_rollouts_of_a_pool_are_promised_and_kept_apart_from_those_within_episodes(policy: hm.Policy) -> None:
    target = "uniform(-0.3,0.3)"
    expected = policy.rehearse([target], within="pool", episodes=4)[0]
    assert policy.expected(target) is None
    assert policy.expected(target, within="pool") == expected
    result = policy.match(target, episodes=4, conditioning="rehearsed", within="pool")
    assert result.conditioning == "rehearsed (pooled)"
    assert policy.match(target, episodes=4, conditioning="rehearsed").conditioning == "rehearsed"
    assert policy.expected(target) is not None
    kept = policy.run.folder.programs().values()
    assert sorted(one["within"] for one in kept) == ["episode", "pool"]


def test_planned_rollouts_of_a_pool_follow_one_training_episode_each(policy: hm.Policy) -> None:
    first, second = (policy.reference().episode(n) for n in (0, 1))
    both = (
        hm.as_target(np.concatenate([first, second])) if hasattr(hm, "as_target") else np.concatenate([first, second])
    )
    result = policy.match(both, episodes=4, conditioning="planned", within="pool")
    assert result.conditioning == "planned (pooled)"
    assert result.lengths.shape == (2, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conditioning": "nominal"}, "a pool is for planned and rehearsed conditioning, not for nominal"),
        ({"conditioning": "planned", "stretches": 10}, "stretches is for plans within an episode"),
        ({"conditioning": "planned", "replan": 10}, "replan is for plans within an episode"),
    ],
)
def test_a_pool_that_would_have_no_effect_is_refused(
    policy: hm.Policy, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(HimatchError, match=message):
        policy.match("normal(0,0.2)", episodes=2, within="pool", **settings)  # type: ignore[arg-type]


def test_what_is_of_every_episode_cannot_be_shared_out(policy: hm.Policy) -> None:
    with pytest.raises(TargetError, match="cannot be shared out"):
        policy.match("normal(0,0.1) for 20 then normal(0.2,0.1)", conditioning="planned", within="pool")
    with pytest.raises(TargetError, match="cannot be shared out"):
        policy.rehearse(["return(3)"], within="pool")
    with pytest.raises(HimatchError, match="within is episode or pool"):
        policy.rehearse(["normal(0,0.1)"], within="pools")  # type: ignore[arg-type]
