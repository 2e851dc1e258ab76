"""Views: rollouts that are watched are those of ``policy.match``, and end when nobody watches."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest
from hostile import hostile_command
from starlette.testclient import TestClient
from studios import RUN, catalog, head, opened, say, start, studio, until
from waiting import wait_for

import himatch as hm
from himatch.simulation import make_simulator
from himatch.simulation.poses import Poses
from himatch.studio.catalog import VIEWS
from himatch.studio.messages import Start
from himatch.studio.view import View

MESSAGES = 120


def views() -> list[threading.Thread]:
    """Threads that simulate."""
    return [thread for thread in threading.enumerate() if thread.name == "himatch studio view"]


@pytest.fixture
def client() -> Iterator[TestClient]:
    with studio() as client:
        yield client
    assert not views()


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_what_is_watched_is_what_match_plays(client: TestClient, conditioning: str) -> None:
    with opened(client) as view:
        ready = start(view, conditioning=conditioning, seed=3, robots=3)
        received = until(view, "end")
    result = hm.load(RUN).match("(normal(5,1)) for 30", episodes=3, seed=3, conditioning=conditioning)  # type: ignore[arg-type]
    states = [one for one in received if one["type"] == "state"]
    assert received[-1]["result"]["w1"] == states[-1]["w1"] == result.w1
    assert states[-1]["w1_charged"] == result.charged
    assert states[-1]["returns"] == pytest.approx(result.returns[0].tolist())
    assert received[-1]["result"]["command"] == ready["command"]
    assert states[-1]["step"] == ready["steps"] == 30


def test_several_views_at_once_do_not_disturb_one_another(client: TestClient) -> None:
    with opened(client) as first, opened(client) as second, opened(client) as third:
        views = (first, second, third)
        for seed, view in enumerate(views):
            start(view, seed=seed, steps=60, paused=True)
        for view in views:
            say(view, "play")
        found = [until(view, "end")[-1]["result"]["w1"] for view in views]
    policy = hm.load(RUN)
    assert found == [policy.match("(normal(5,1)) for 60", episodes=2, seed=seed).w1 for seed in range(3)]


def test_frames_are_poses(client: TestClient) -> None:
    """The first is the initial state that match begins with; the last shows all robots at rest."""
    with opened(client) as view:
        ready = start(view, seed=1, paused=True)
        first = until(view, "frame")
        say(view, "play")
        frames = [one["frame"] for one in [*first, *until(view, "end")] if one["type"] == "frame"]
    assert {len(frame) for frame in frames} == {2 + 2 * (1 + 7 * ready["bodies"])}
    steps = [head(frame)[0] for frame in frames]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1], head(frames[0])[1]) == (0, 30, 2)
    simulator = make_simulator("halfcheetah", 2, threads=1)
    simulator.reset([2**31 + 1_000_000, 2**31 + 1_000_001])
    poses = Poses.of(simulator)
    assert poses is not None
    shown = frames[0][2:].reshape(2, -1)
    np.testing.assert_array_equal(shown[:, 0], 1.0)
    np.testing.assert_array_equal(shown[:, 1:].reshape(2, 7, 7), poses())
    np.testing.assert_array_equal(frames[-1][2:].reshape(2, -1)[:, 0], 0.0)


def test_a_pause_holds_the_robots(client: TestClient) -> None:
    with opened(client) as view:
        start(view, paused=True)
        assert until(view, "state")[-1] | {"rate": 0.0} == until_again(view)
        say(view, "play")
        received = until(view, "end")
        assert received[-1]["result"]["w1"] > 0


def until_again(view: object) -> dict[str, object]:
    """The state after another pause: nothing has moved."""
    say(view, "pause")  # type: ignore[arg-type]
    return until(view, "state")[-1]  # type: ignore[arg-type]


def test_speed_and_reset(client: TestClient) -> None:
    with opened(client) as view:
        start(view)
        first = until(view, "end")[-1]["result"]
        say(view, "speed", value=20.0)
        assert until(view, "state")[-1]["speed"] == 20.0
        say(view, "reset")
        assert until(view, "ready")[-1]["expression"] == "normal(5,1)"
        assert until(view, "end")[-1]["result"]["w1"] == first["w1"]


def test_another_target_counts_from_the_step_at_which_it_was_given(client: TestClient) -> None:
    with opened(client) as view:
        start(view, steps=None, expression="normal(4,1)", speed=2.0, paused=True)
        say(view, "target", expression="normal(9,1)")
        assert until(view, "target")[-1]["since"] == 0
        say(view, "play")
        while until(view, "state")[-1]["step"] < 5:
            pass
        say(view, "target", expression="normal(2,1) for 60")
        answer = until(view, "target")[-1]
        say(view, "speed", value=50.0)
        received = until(view, "end")
    since = answer["since"]
    assert since >= 5
    assert answer["steps"] == since + 60
    np.testing.assert_allclose(answer["heights"], bars("normal(2,1) for 60"), atol=1e-6)
    states = [one for one in received if one["type"] == "state"]
    assert {one["since"] for one in states} == {since}
    result = received[-1]["result"]
    assert [change["step"] for change in result["changes"]] == [0, since]
    assert result["w1_since"] == states[-1]["w1"]
    assert result["name"] == f"normal(9,1) for {since} then normal(2,1) for 60"
    assert result["lengths"] == [[since + 60] * 2]
    assert result["command"] is None


def bars(expression: str) -> np.ndarray:
    """Those of a target."""
    policy = hm.load(RUN)
    return policy.target(expression).histogram(policy.reference().frame)[0]


def test_what_cannot_be_is_said_and_what_plays_goes_on(client: TestClient) -> None:
    with opened(client) as view:
        for kind in ("pause", "play", "reset", "target"):
            say(view, kind, **({"expression": "normal(5,1)"} if kind == "target" else {}))
            assert "send start" in until(view, "error")[-1]["error"]
        start(view, paused=True)
        say(view, "target", expression="normal(5,")
        assert until(view, "error")[-1]["at"] == [9, 9]
        say(view, "start", run="nothing", expression="normal(5,1)")
        assert until(view, "error")[-1]["error"].startswith("no run")
        say(view, "start", run=RUN, expression="normal(5,1)", conditioning="rehearsed")
        assert "rehearse" in until(view, "error")[-1]["error"]
        say(view, "play")
        assert until(view, "end")[-1]["result"]["played"] == 1.0
        say(view, "target", expression="normal(6,1)")
        assert "are over" in until(view, "error")[-1]["error"]
        say(view, "stop")
        until(view, "stopped")


def test_bad_messages_get_one_answer_each_and_the_view_still_plays(client: TestClient) -> None:
    rng, found = random.Random(2), Counter[str]()
    with opened(client) as view:
        for _ in range(MESSAGES):
            text = hostile_command(rng)
            if '"start"' in text and RUN in text:
                continue
            view.send_text(text)
            found[until(view, "error", "stopped")[-1]["type"]] += 1
        view.send_bytes(b"\x00" * 10)
        assert until(view, "error")[-1]["error"] == "messages are JSON texts, not bytes"
        start(view)
        until(view, "end")
    assert found["error"] > MESSAGES // 3


def test_closing_the_page_frees_its_simulation(client: TestClient) -> None:
    simulated = client.app.app.state.views  # type: ignore[attr-defined]
    with opened(client) as view:
        start(view, steps=None)
        assert len(simulated) == len(views()) == 1
    wait_for(lambda: not views() and not len(simulated), "the end of its simulation")


def test_only_so_many_views_fit(client: TestClient) -> None:
    with ExitStack() as stack:
        for _ in range(VIEWS):
            stack.enter_context(opened(client))
        with opened(client) as late:
            assert "no more fit" in json.loads(late.receive_text())["error"]
            assert late.receive()["code"] == 1013
    wait_for(lambda: not views(), "the end of all simulations")
    with opened(client) as view:
        start(view)


def test_a_browser_that_reads_nothing_does_not_hold_the_robots_up() -> None:
    """All steps are made meanwhile; of their frames only the latest waits."""
    gone: list[View] = []
    view = View(catalog(), lambda: None, gone.append)
    view.do(Start(type="start", run=RUN, expression="normal(5,1)", robots=2, steps=200, speed=50.0))
    wait_for(lambda: '"type":"end"' in str(view.outbox.latest), "the end")
    kinds = []
    while (payload := view.outbox.take()) is not None:
        kinds.append("frame" if isinstance(payload, bytes) else json.loads(payload)["type"])
    assert kinds == ["ready", "frame", "state", "end"]
    view.close()
    view.join(60)
    assert gone == [view]
