"""Promises from logged episodes alone: each part of a plan is played by episodes like the one that it names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import TargetError
from himatch.rehearsal import from_logs, logged
from himatch.rehearsal.arena import Achieved, Judge
from himatch.rehearsal.promise import expectation
from himatch.rollout.programs import place_of
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import EpisodeReference, Frame

HORIZON = 40
FRAME = Frame(resolve_feature("reward", hm.get_task("hopper")), Bins.fit([np.linspace(0, 10, 50)[:, None]]), HORIZON)


def reference(*speeds: float, steps: int = HORIZON) -> EpisodeReference:
    return EpisodeReference.of_rows(FRAME, [np.full((steps, 1), speed, np.float32) for speed in speeds])


def test_where_episodes_of_a_kind_are_alike_the_plan_is_what_is_promised() -> None:
    found = from_logs(reference(*[2.0] * 8, *[8.0] * 8), hm.parse_target("0.5*point(2)+0.5*point(8)"), 20)
    assert (found.score, found.low) == pytest.approx((0.0, 0.0), abs=1e-6)
    assert found.high == pytest.approx(logged.SLIPS * 6.0, abs=1e-6)  # a policy departs from what episodes do
    assert (found.played, found.episodes, found.basis) == (1.0, 20, "logs")
    assert "not tried" in str(found)


def test_episodes_like_those_of_the_plan_stand_in_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, where there are no more: then it is what these episodes score themselves, drawn evenly."""
    speeds = np.linspace(3.0, 5.0, logged.ALIKE)
    known, target = reference(*speeds), hm.parse_target("point(4.3)")
    monkeypatch.setattr(logged, "ROLLOUTS", 2_000)
    found = from_logs(known, target, 1)
    each = np.abs(speeds - 4.3)
    assert np.quantile(each, 0.4) <= found.score <= np.quantile(each, 0.6)
    assert found.low == pytest.approx(each.min(), abs=0.1)
    assert each.max() < found.high < 1.3 * each.max()


def test_a_stand_in_that_fell_ends_the_rollout() -> None:
    lasting = [np.full((HORIZON, 1), 4.0, np.float32)] * 4
    fallen = [np.full((HORIZON // 2, 1), 4.0, np.float32)] * 4
    mixed = EpisodeReference.of_rows(FRAME, [*lasting, *fallen])
    found = from_logs(mixed, hm.parse_target("point(4)"), 20)
    assert 0.6 < found.played < 0.9  # half of the stand-ins last half of the time


def test_targets_one_after_another_have_a_plan_each() -> None:
    known = reference(*[2.0] * 8, *[8.0] * 8)
    target = hm.parse_target("point(8) for 10 then point(2)")
    found = from_logs(known, target, 5)
    assert found.score == pytest.approx(0.0, abs=1e-6)
    rows = np.repeat([8.0, 2.0], [10, HORIZON - 10]).astype(np.float32)[:, None]
    assert expectation(Judge(target, known), [[[Achieved(rows)] * 4]], 5).score == pytest.approx(0.0, abs=1e-6)


def test_an_entry_is_an_episode_or_a_stretch_of_one() -> None:
    assert place_of("episode(3)") == (3, None, None)
    assert place_of("episode(3)[20:40]") == (3, 20, 40)
    with pytest.raises(TargetError, match="no training episode"):
        place_of("normal(5,1)")


# -- as a user has it -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> hm.Policy:
    data = hm.load_dataset(fallen_hoppers(range(8)), "hopper")
    made = untrained(hm.CDT("x_velocity"), data, tmp_path_factory.mktemp("logged") / "run", seeds=(0, 1))
    for place, seed in enumerate(made.seeds):
        weights = {name: tensor[place].clone() for name, tensor in made.agent.state_dict().items()}
        made.run.folder.write_weights(seed, "last", weights)
    return made


def test_a_controller_says_what_its_plans_promise(policy: hm.Policy) -> None:
    one = policy.controller("normal(0.1,0.2)", conditioning="planned")
    assert one.expected == policy.expected("normal(0.1,0.2)", conditioning="planned", episodes=1)
    assert one.expected is not None
    several = policy.controller(["normal(0.1,0.2)", "normal(0,0.1)"], conditioning="planned")
    assert isinstance(several.expected, tuple)
    assert several.expected[0] == one.expected
    assert several.expected[1] == policy.expected("normal(0,0.1)", conditioning="planned", episodes=1)
    one.retarget("normal(0,0.1)")
    assert one.expected == several.expected[1]
    assert policy.controller("normal(0.1,0.2)").expected is None


def test_nothing_is_promised_of_what_no_plan_is_for(policy: hm.Policy) -> None:
    assert policy.expected("return(3)", conditioning="planned") is None
    assert policy.expected("normal(0.1,0.2)", conditioning="nominal") is None
    assert policy.expected("normal(0.1,0.2)") is None  # not rehearsed


def test_show_says_what_to_expect_of_targets(policy: hm.Policy, run: Run) -> None:
    folder = str(Path(policy.folder))
    code, out, _ = run("show", folder, "--target", "normal(0.1,0.2)", "return(3)")
    assert code == 0
    promised = policy.expected("normal(0.1,0.2)", conditioning="planned")
    assert f"  planned    expected {promised}" in out
    assert "  planned    nothing is promised" in out
    assert out.count("not rehearsed yet") == 2
    _, text, _ = run("show", folder, "--json", "--target", "normal(0.1,0.2)")
    content = json.loads(text)["normal(0.1,0.2)"]
    assert promised is not None
    assert content == {"rehearsed": None, "planned": promised.as_json()}
    code, out, err = run("show", folder, "--target", "normal(0.3")
    assert (code, out) == (2, "")
    assert "expected ')'" in err
