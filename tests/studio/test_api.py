"""The studio's API: what it says of a run and of targets, matches, and what it refuses."""

from __future__ import annotations

import json
import random
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import BAD, hostile_content, hostile_request
from starlette.testclient import TestClient
from studios import ADDRESS, RUN, catalog, studio

import himatch as hm
from himatch.cli.main import parse
from himatch.cli.match import Match
from himatch.studio.catalog import Catalog
from himatch.studio.run import StudioRun

MESSAGES = 300


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with studio() as client:
        yield client


def asked(client: TestClient, path: str = "target", **content: Any) -> Any:
    answer = client.post(f"/api/{path}", json={"run": RUN, **content})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: TestClient, path: str = "target", status: int = 422, **content: Any) -> Any:
    answer = client.post(f"/api/{path}", json={"run": RUN, **content})
    assert answer.status_code == status, answer.text
    return answer.json()


# -- what it says ---------------------------------------------------------------------------------------------------


def test_runs_say_what_can_be_chosen(client: TestClient) -> None:
    found = client.get("/api/runs").json()
    (run,) = found["runs"]
    assert (run["name"], run["view"], run["dt"], run["horizon"]) == (RUN, "geometry", 0.05, 1000)
    assert run["conditionings"] == ["nominal", "remaining", "planned", "rehearsed"]
    assert run["features"][0] | {"units": None, "unit": None} == {
        **dict.fromkeys(("units", "unit")),
        "name": "x_velocity",
        "dims": 1,
        "labels": ["x_velocity"],
        "bins": 31,
        "drawable": True,
    }
    assert found["limits"]["robots"] >= 8
    first = asked(client, expression=run["default"]["expression"])
    assert first["covered"] > 0.9


def test_a_chart_has_the_data_and_targets_that_are_understood(client: TestClient) -> None:
    found = client.get(f"/api/runs/{RUN}/chart").json()
    reference = hm.load(RUN).reference()
    np.testing.assert_allclose(found["edges"], reference.frame.bins.edges)
    np.testing.assert_allclose(found["data"], reference.frame.bins.histogram(reference.values)[0], atol=1e-6)
    assert len(found["presets"]) >= 3
    for preset in found["presets"]:
        assert np.isclose(sum(asked(client, expression=preset["expression"])["heights"]), 1.0, atol=1e-5)


def test_geometry_is_that_of_the_robot(client: TestClient) -> None:
    found = client.get(f"/api/runs/{RUN}/geometry").json()
    assert found["bodies"][found["follow"]] == "torso"
    assert len(found["bodies"]) == 7
    kinds = Counter(geom["type"] for geom in found["geoms"])
    assert kinds == {"plane": 1, "capsule": 8}
    assert {geom["body"] for geom in found["geoms"]} == set(range(-1, 7))


def test_a_target_says_what_the_data_covers_and_what_comes_near(client: TestClient) -> None:
    policy = hm.load(RUN)
    found = asked(client, expression="normal(5,1)")
    target, reference = policy.target("normal(5,1)"), policy.reference()
    np.testing.assert_allclose(found["heights"], target.histogram(reference.frame)[0], atol=1e-6)
    assert found["mixture"]["w1"] == pytest.approx(reference.mixture(target).w1)
    assert sum(found["mixture"]["heights"]) == pytest.approx(1.0, abs=1e-4)
    assert found["promise"] is None
    assert asked(client, expression="normal(40,1)")["covered"] == 0.0
    planned = asked(client, expression="normal(5,1)", conditioning="planned", robots=8)
    expected = policy.expected("normal(5,1)", conditioning="planned", episodes=8)
    assert expected is not None
    assert planned["promise"]["w1"] == pytest.approx(expected.score)


def test_what_is_drawn_is_an_expression_that_gives_it_back(client: TestClient) -> None:
    heights = [0.0] * 31
    heights[8:12] = [1.0, 3.0, 3.0, 1.0]
    drawn = asked(client, heights=heights)
    again = asked(client, expression=drawn["expression"])
    np.testing.assert_allclose(again["heights"], np.array(heights) / 8, atol=2e-3)
    assert again["heights"] == drawn["heights"]


def test_a_return_is_a_number_and_no_bars(client: TestClient) -> None:
    found = asked(client, expression="return(5000)")
    assert (found["matches"], found["heights"], found["value"]) == ("return", None, [pytest.approx(5000.0, rel=1e-5)])


def test_the_command_repeats_what_is_chosen(client: TestClient) -> None:
    chosen = {"conditioning": "planned", "seed": 7, "robots": 3, "temperature": 0.25}
    command = asked(client, expression="0.5*normal(4,1)+0.5*normal(9,1)", **chosen)["command"]
    words = shlex.split(command)
    assert words[0] == "himatch"
    parsed = parse(words[1:])
    assert isinstance(parsed, Match)
    assert (parsed.run_folder, parsed.target) == (RUN, "0.5*normal(4,1)+0.5*normal(9,1)")
    options = parsed.rollouts
    assert (options.conditioning, options.seed, options.episodes, options.temperature) == ("planned", 7, 3, 0.25)


def test_a_match_is_that_of_the_policy(client: TestClient) -> None:
    found = asked(client, "match", expression="normal(5,1)", robots=3, seed=2, steps=40)
    result = hm.load(RUN).match("(normal(5,1)) for 40", episodes=3, seed=2)
    assert found["w1"] == result.w1
    assert found["returns"] == result.returns.tolist()
    assert sum(found["achieved"]) == pytest.approx(1.0, abs=1e-5)


def test_a_held_out_episode_and_a_demonstration_of_a_file_are_targets(tmp_path: Path) -> None:
    """Of files only those that were named at start."""
    shown = hm.load_dataset([_walk(5)], "halfcheetah")
    path = str(tmp_path / "shown.npz")
    np.savez(
        path,
        observations=shown[0].observations,
        actions=shown[0].actions,
        rewards=shown[0].rewards,
        terminals=np.zeros(5, bool),
        timeouts=np.arange(5) == 4,
    )
    run = StudioRun("r", RUN, hm.load(RUN), [path])
    with studio(runs=Catalog([run])) as client:
        presets = client.get("/api/runs/r/chart").json()["presets"]
        assert presets[-1] == {"label": "shown.npz", "expression": f"demo({path}, 0)"}
        found = client.post("/api/target", json={"run": "r", "expression": presets[-1]["expression"]})
        assert found.json()["steps"] == 5
    with studio() as client:
        said = refused(client, expression=f"demo({path}, 0)")
        assert said == {"error": "this file cannot be named here; none may be", "at": [5, said["at"][1]]}


def _walk(steps: int) -> hm.Trajectory:
    rng = np.random.default_rng(0)
    numbers = (rng.uniform(-1, 1, (steps, width)).astype(np.float32) for width in (17, 6))
    return hm.Trajectory(*numbers, rng.normal(size=steps).astype(np.float32))


def test_openapi_describes_the_api(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"/api/runs", "/api/target", "/api/match", "/api/runs/{name}/chart"} <= paths.keys()


def test_the_page_and_its_files_are_served(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    script = client.get("/page/studio.js")
    assert (script.status_code, script.headers["content-type"].split(";")[0]) == (200, "text/javascript")


# -- what it refuses ------------------------------------------------------------------------------------------------


def test_a_mistake_in_an_expression_is_pointed_at(client: TestClient) -> None:
    said = refused(client, expression="normal(5,1) + wobble(3)")
    assert said["error"].startswith("unknown target 'wobble'")
    assert said["at"] == [14, 20]
    assert refused(client, expression="normal(5,1")["at"] == [10, 10]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "an expression, or heights"),
        ({"expression": "normal(5,1)", "heights": [1.0] * 31}, "one of them"),
        ({"expression": "normal(5,1)", "robots": 10_000}, "robots: input should be less than or equal to 32"),
        ({"expression": "normal(5,1)", "seed": -1}, "seed: "),
        ({"expression": "normal(5,1)", "seed": "1"}, "seed: input should be a valid integer"),
        ({"expression": "normal(5,1)", "temperature": 1e9}, "temperature: "),
        ({"expression": "normal(5,1)", "conditioning": "wishful"}, "conditioning: "),
        ({"expression": "normal(5,1)", "feature": "height"}, "feature: "),
        ({"expression": "normal(5,1)", "episodes": 3}, "episodes: extra inputs are not permitted"),
        ({"expression": "x" * 100_000}, "expression: string should have at most"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(client: TestClient, content: dict[str, Any], said: str) -> None:
    found = refused(client, **content)
    assert said in found["error"]
    assert found["at"] is None


def test_an_unknown_run_is_not_found(client: TestClient) -> None:
    assert refused(client, run="../../etc", status=404, expression="normal(5,1)")["error"].startswith("no run")
    assert client.get("/api/runs/nothing/chart").status_code == 404


@pytest.mark.parametrize("expression", BAD)
def test_no_expression_breaks_it(client: TestClient, expression: str) -> None:
    body = json.dumps({"run": RUN, "expression": expression})
    answer = client.post("/api/target", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        assert answer.json()["error"]


def test_no_match_breaks_it(client: TestClient) -> None:
    rng, found = random.Random(1), Counter[int]()
    for _ in range(MESSAGES // 10):
        body = json.dumps(hostile_content(rng) | {"steps": 3})
        answer = client.post("/api/match", content=body, headers={"content-type": "application/json"})
        found[answer.status_code] += 1
        assert answer.json()
    assert found.keys() <= {200, 404, 422}
    assert min(found[200], found[422]) > 0


def test_bad_messages_get_one_clear_answer_each(client: TestClient) -> None:
    rng, found = random.Random(0), Counter[int]()
    for _ in range(MESSAGES):
        one = hostile_request(rng)
        if one.path == "/api/match":
            continue
        headers = {name: value for name, value in one.headers.items() if name != "Content-Length"}
        named = {name.encode(): value.encode("latin-1", "replace") for name, value in headers.items()}
        answer = client.request(one.method, ADDRESS + "/" + one.path.lstrip("/"), content=one.body, headers=named)
        found[answer.status_code] += 1
        if answer.status_code >= 400 and one.method != "HEAD":
            assert set(answer.json()) == {"error", "at"}
    assert found.keys() <= {200, 400, 403, 404, 405, 413, 422}
    assert min(found[403], found[404], found[422]) > 0


def test_one_match_at_a_time(client: TestClient) -> None:
    """Somebody who asks for another one meanwhile is told so."""
    run = catalog()[RUN]
    trial = run.trial

    def asks_again(wanted: Any) -> Any:
        run.trial = trial  # type: ignore[method-assign]
        assert refused(client, "match", 429, expression="normal(5,1)", steps=3)["error"].startswith("another match")
        return trial(wanted)

    run.trial = asks_again  # type: ignore[method-assign]
    assert asked(client, "match", expression="normal(5,1)", steps=3)["w1"] > 0
