"""End to end on an environment of one's own: who uses its conditioning matches fast and slow targets, others do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import himatch as hm
from himatch.policy import Policy

STEPS, TOP = 25, 4.0


class Belt(gymnasium.Env[np.ndarray, np.ndarray]):
    """A belt that runs at the speed of its action; it stands still at first and shakes a little."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.seen = np.array([0.0, self.np_random.normal(0, 0.1)])
        return self.seen, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.seen = np.array([TOP * float(action[0]), 0.0]) + self.np_random.normal(0, 0.05, 2)
        return self.seen, float(self.seen[0]), False, False, {}


@pytest.fixture(scope="module", autouse=True)
def belt() -> Iterator[None]:
    gymnasium.register("himatch-tests/Belt-v0", Belt, max_episode_steps=STEPS)
    yield
    del gymnasium.registry["himatch-tests/Belt-v0"]


def episode(speed: float, seed: int) -> hm.Trajectory:
    rng, env = np.random.default_rng(seed), Belt()
    seen, _ = env.reset(seed=seed)
    observations, actions, rewards = [], [], []
    for _ in range(STEPS):
        action = np.clip(speed / TOP + rng.normal(0, 0.02, 1), -1, 1)
        observations.append(seen)
        seen, reward, *_ = env.step(action)
        actions.append(action)
        rewards.append(reward)
    return hm.Trajectory(np.array(observations), np.array(actions), np.array(rewards), seen)


FAST, SLOW = episode(3.4, 1000), episode(0.6, 1001)


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policy]:
    task = hm.Task("belt", STEPS, 2, 1, -1.0, 1.0, features={"speed": 0}, env_id="himatch-tests/Belt-v0")
    speeds = np.random.default_rng(0).uniform(0.2, 3.8, 60)
    data = hm.load_dataset([episode(speed, number) for number, speed in enumerate(speeds)], task)
    settings: dict[str, Any] = {"preset": "cpu", "steps": 400, "width": 32, "layers": 1, "context": 3, "batch_size": 64}
    folder = tmp_path_factory.mktemp("runs")
    methods: dict[str, Any] = {"cdt": hm.CDT("speed"), "counts": hm.CDT("speed", z="counts"), "bc": hm.BC()}
    return {name: hm.train(method, data, out=folder / name, quiet=True, **settings) for name, method in methods.items()}


def distances(policy: Policy, **settings: Any) -> np.ndarray:
    results = policy.match_all([hm.demo(FAST), hm.demo(SLOW)], episodes=5, feature="speed", **settings)
    return np.array([result.w1 for result in results])


def matches(policy: Policy, baseline: Policy) -> bool:
    return bool((distances(policy) < distances(baseline) / 2).all())


@pytest.mark.parametrize("name", ["cdt", "counts"])
def test_a_policy_that_uses_its_conditioning_matches_and_one_that_ignores_it_does_not(
    policies: dict[str, Policy], name: str
) -> None:
    cdt, bc = policies[name], policies["bc"]
    assert distances(bc).min() > 0.8  # one speed for everybody cannot be near both
    assert matches(cdt, bc)
    for conditioning in ("remaining", "planned"):
        assert (distances(cdt, conditioning=conditioning) < distances(bc) / 2).all()
    ignoring = hm.load(cdt.folder)
    assert ignoring.agent.policy.embed_z is not None
    with torch.no_grad():
        ignoring.agent.policy.embed_z.weight.zero_()
    assert not matches(ignoring, bc)
    assert not matches(bc, bc)


def test_the_controller_drives_the_same_belt(policies: dict[str, Policy]) -> None:
    cdt = policies["cdt"]
    for target in (FAST, SLOW):
        controller, env = cdt.controller(target), Belt()
        seen, _ = env.reset(seed=5)
        speeds = []
        for _ in range(STEPS):
            speeds.append(seen[0])
            seen, *_ = env.step(controller.act(seen))
        assert np.mean(speeds) == pytest.approx(target.observations[:, 0].mean(), abs=0.4)


def test_environments_that_are_not_registered(policies: dict[str, Policy]) -> None:
    cdt = policies["cdt"]
    expected = cdt.match(FAST, episodes=3)
    for env in (Belt, Belt(), "himatch-tests/Belt-v0"):
        result = cdt.match(FAST, episodes=3, env=env)
        np.testing.assert_allclose(result.pooled(0), expected.pooled(0), atol=1e-4)
        np.testing.assert_array_equal(result.lengths, STEPS)


def test_a_score_without_an_environment(policies: dict[str, Policy]) -> None:
    held_out = [FAST, SLOW, episode(2.0, 1002)]
    conditioned, unconditioned = policies["cdt"].score(held_out), policies["bc"].score(held_out)
    assert conditioned["action_error"].shape == conditioned["sensitivity"].shape == (1,)
    assert conditioned["sensitivity"][0] > 2.0
    assert unconditioned["sensitivity"][0] == 1.0
    assert conditioned["action_error"][0] == pytest.approx(policies["cdt"].action_error(held_out)[0])
    assert np.isnan(policies["cdt"].score(held_out[:1])["sensitivity"][0])  # there is no other episode to condition on
    with pytest.raises(hm.HimatchError, match="list of episodes"):
        policies["cdt"].score([])
