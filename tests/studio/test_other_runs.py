"""Studios of other runs than the bundled cheetah: several seeds and features, no MuJoCo, policies that imitate."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from known_programs import know_programs
from PIL import Image
from random_episodes import episode
from starlette.testclient import TestClient
from studios import opened, say, studio, until
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError
from himatch.policy import Policy
from himatch.studio.catalog import Catalog, _unlike
from himatch.studio.run import StudioRun

STEPS = 12


def of(policy: Policy, name: str = "mine") -> TestClient:
    """The studio of a policy."""
    return studio(runs=Catalog([StudioRun(name, name, policy)]))


# -- several seeds and features ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    data = hm.load_dataset(fallen_hoppers(range(12)), "hopper")
    folder = tmp_path_factory.mktemp("joint")
    return untrained(hm.CDT("x_velocity,z_velocity", bins=7), data, folder, seeds=(0, 3))


@pytest.fixture
def joined(joint: Policy) -> Iterator[TestClient]:
    with of(joint) as client:
        yield client


def test_two_features_are_drawn_on_a_plane(joint: Policy, joined: TestClient) -> None:
    chart = joined.get("/api/runs/mine/chart").json()
    assert (chart["dims"], chart["labels"]) == (2, ["x_velocity", "z_velocity"])
    data = np.array(chart["data"])
    reference = joint.reference()
    assert data.shape == (7, 7)
    np.testing.assert_allclose(data.sum(axis=1), reference.frame.bins.histogram(reference.values)[0], atol=1e-5)
    heights = np.eye(7).tolist()
    found = joined.post("/api/target", json={"run": "mine", "heights": heights}).json()
    np.testing.assert_allclose(found["heights"], np.eye(7) / 7, atol=2e-3)
    assert np.array(found["mixture"]["heights"]).shape == (7, 7)


def test_every_seed_plays_and_the_score_is_their_mean(joint: Policy, joined: TestClient) -> None:
    expression = "joint(normal(0.5,0.2), normal(0,0.1))"
    with opened(joined) as view:
        start = {"run": "mine", "expression": expression, "robots": 2, "speed": 50.0, "seed": 5}
        say(view, "start", **start)
        ready = until(view, "ready")[-1]
        received = until(view, "end")
    assert (ready["robots"], ready["robots_per_seed"], ready["seeds"]) == (4, 2, [0, 3])
    states = [one for one in received if one["type"] == "state"]
    assert np.array(states[-1]["achieved"]).shape == (7, 7)
    assert np.array(states[-1]["conditioning"]).shape == (2, 7)
    assert np.array(states[-1]["values"]).shape == (4, 2)
    with pytest.warns(hm.errors.HimatchWarning, match="."):
        result = joint.match(expression, episodes=2, seed=5)
    assert received[-1]["result"]["w1"] == result.w1
    assert received[-1]["result"]["returns"] == result.returns.tolist()


def test_what_was_rehearsed_is_promised_and_played(tmp_path: Path) -> None:
    data = hm.load_dataset(fallen_hoppers(range(12)), "hopper")
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path, seeds=(0, 3))
    known, unknown = "normal(0.5,0.2)", "normal(0.4,0.2)"
    know_programs(policy, [known])
    with of(policy) as client:
        assert client.get("/api/runs").json()["runs"][0]["rehearsed"] == [known]
        chosen = {"run": "mine", "conditioning": "rehearsed", "robots": 2}
        found = client.post("/api/target", json=chosen | {"expression": known}).json()
        assert (found["promise"]["w1"], found["promise"]["basis"]) == (1.0, "rehearsal")
        assert client.post("/api/target", json=chosen | {"expression": unknown}).json()["promise"] is None
        played = client.post("/api/match", json=chosen | {"expression": known}).json()
        refused = client.post("/api/match", json=chosen | {"expression": unknown})
    assert refused.status_code == 422
    assert "rehearse" in refused.json()["error"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hm.errors.HimatchWarning)
        assert played["w1"] == policy.match(known, episodes=2, conditioning="rehearsed").w1


def test_more_robots_than_fit_are_refused(joined: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himatch.studio.run.MOST_ROBOTS", 6)
    answer = joined.post("/api/match", json={"run": "mine", "expression": "normal(1,1)", "robots": 4})
    assert answer.status_code == 422
    assert answer.json()["error"] == "robots: mine has 2 seeds; 3 at most"


# -- environments without MuJoCo ------------------------------------------------------------------------------------


class Cart(gymnasium.Env):
    """A point that is pushed, and draws itself as one grey."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=3)
        return self.state.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.state[0] += float(action[0])
        return self.state.copy(), 1.0, False, False, {}

    def render(self) -> np.ndarray:
        return np.full((40, 60, 3), 99, np.uint8)


class Unseen(Cart):
    """The same, which does not."""

    metadata = {"render_modes": []}  # noqa: RUF012


def pushed(cart: type[Cart], folder: Path) -> Policy:
    """An untrained policy for it."""
    name = f"himatch-studio/{cart.__name__}-v0"
    if name not in gymnasium.registry:
        gymnasium.register(name, cart)
    task = hm.register_task(f"studio-{cart.__name__}", horizon=STEPS, env_id=name, features={"place": 0})
    rng = np.random.default_rng(0)
    episodes = [
        hm.Trajectory(
            rng.normal(size=(STEPS, 3)).astype(np.float32),
            rng.uniform(-1, 1, (STEPS, 2)).astype(np.float32),
            np.ones(STEPS, np.float32),
        )
        for _ in range(6)
    ]
    return untrained(hm.CDT("place"), hm.load_dataset(episodes, task), folder)


def test_an_environment_without_shapes_is_shown_by_traces(tmp_path: Path) -> None:
    with of(pushed(Unseen, tmp_path)) as client:
        assert client.get("/api/runs").json()["runs"][0]["view"] == "traces"
        answer = client.get("/api/runs/mine/geometry")
        assert (answer.status_code, "not simulated by MuJoCo" in answer.json()["error"]) == (422, True)
        with opened(client) as view:
            say(view, "start", run="mine", expression="normal(0,1)", robots=3, speed=50.0)
            assert until(view, "ready")[-1]["view"] == "traces"
            received = until(view, "end")
    frames = [one["frame"] for one in received if one["type"] == "frame"]
    assert all(len(frame) == 2 + 3 * 2 for frame in frames)
    assert np.isfinite(frames[-1]).all()


def test_an_environment_that_draws_itself_is_shown_by_its_pictures(tmp_path: Path) -> None:
    with of(pushed(Cart, tmp_path)) as client:
        assert client.get("/api/runs").json()["runs"][0]["view"] == "frames"
        with opened(client) as view:
            say(view, "start", run="mine", expression="normal(0,1)", robots=2, speed=50.0, paused=True)
            assert until(view, "ready")[-1]["view"] == "frames"
            while (payload := view.receive().get("bytes")) is None:
                pass
            assert np.frombuffer(payload[:8], "<f4").tolist() == [0.0, 2.0]
            with Image.open(io.BytesIO(payload[8:])) as picture:
                assert (picture.format, picture.size) == ("JPEG", (60, 40))


def test_logs_without_an_environment_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = hm.load_dataset([episode(rng, 30) for _ in range(4)], hm.Task("studio-logs", 30, features={"x": 0}))
    with pytest.raises(HimatchError, match="there is nothing to watch"):
        StudioRun("logs", "logs", untrained(hm.CDT("x"), data, tmp_path))


# -- what imitates --------------------------------------------------------------------------------------------------


def test_a_policy_that_imitates_says_what_it_takes() -> None:
    with studio(runs=Catalog.read(["halfcheetah-bdt"])) as client:
        (run,) = client.get("/api/runs").json()["runs"]
        assert run["default"]["expression"] == ""
        answer = client.post("/api/match", json={"run": "halfcheetah-bdt", "expression": "normal(5,1)", "steps": 3})
        assert answer.status_code == 422
        assert "imitates demonstrations" in answer.json()["error"]


def test_runs_of_one_name_are_told_apart() -> None:
    assert _unlike(["cdt"], "cdt") == "cdt-2"
    assert _unlike(["cdt", "cdt-2"], "cdt") == "cdt-3"
    assert _unlike([], "cdt") == "cdt"
