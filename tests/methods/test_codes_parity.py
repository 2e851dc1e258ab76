"""BDT beside the paper's pseudocode and the authors' public code, written here once more: plain loops, one model.

Of himatch only the weights are used. Actions are read at state tokens, where the pseudocode says action tokens, which
would have seen the action that they predict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_episodes import episode
from torch import Tensor
from torch.nn.functional import layer_norm, relu
from untrained import untrained

import himatch as hm
from himatch.methods.batch import Batch

N, STEPS, OBS = 14, 20, 11  # a context wider than the state, so that the public mask hides something
MODEL: dict[str, Any] = {"context": N, "tokens": "triples", "layers": 2, "heads": 1}


class Plain:
    """One model of a policy: ``DecisionTransformer`` of the paper's appendix."""

    def __init__(self, policy: hm.Policy, model: int) -> None:
        self.weights = {name: tensor[model] for name, tensor in policy.agent.state_dict().items()}
        known = policy.normalizers
        self.mean, self.std = known.state_mean, known.state_std

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def norm(self, name: str, x: Tensor) -> Tensor:
        return layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def gpt(self, name: str, x: Tensor, hidden: tuple[int, ...] = ()) -> Tensor:
        """Causal attention, one position after the other; ``hidden`` ones are seen where nothing else is."""
        for layer in range(2):
            block = f"{name}.blocks.{layer}"
            q, k, v = self.linear(f"{block}.qkv", self.norm(f"{block}.attention_norm", x)).chunk(3, dim=-1)
            rows = []
            for i in range(len(x)):
                visible = [j for j in range(i + 1) if j not in hidden] or list(range(i + 1))
                scores = torch.stack([q[i] @ k[j] for j in visible]) / q.shape[1] ** 0.5
                rows.append(scores.softmax(0) @ v[visible])
            x = x + self.linear(f"{block}.attention_out", torch.stack(rows))
            inner = relu(self.linear(f"{block}.mlp_in", self.norm(f"{block}.mlp_norm", x)))
            x = x + self.linear(f"{block}.mlp_out", inner)
        return self.norm(f"{name}.norm", x)

    def act(self, codes: Tensor, s: Tensor, a: Tensor, t: list[int]) -> Tensor:
        """A prediction for every step, of normalised states ``(n, obs)``, actions, times and a code for each."""
        time = self.weights["policy.embed_time.weight"][t]
        z = self.linear("policy.embed_z", codes) + time
        s, a = self.linear("policy.embed_state", s) + time, self.linear("policy.embed_action", a) + time
        tokens = [token for step in zip(z, s, a, strict=True) for token in step]
        hidden = self.gpt("policy.transformer", self.norm("policy.embed_norm", torch.stack(tokens)))
        return torch.tanh(self.linear("policy.predict", hidden[1::3]))

    # -- the second transformer -------------------------------------------------------------------------------------

    def pseudocode(self, z: Tensor) -> Tensor:
        """``anti_causal_tf(flip(z))``; a GPT embeds the places in its input."""
        backwards = torch.stack([z[len(z) - 1 - i] for i in range(len(z))])
        x = self.linear("codes.embed", backwards) + self.weights["codes.position.weight"][: len(z)]
        return self.linear("codes.code", self.gpt("codes.transformer", x))

    def public(self, states: Tensor, times: list[int], hidden: tuple[int, ...] = ()) -> Tensor:
        """The authors' second transformer, on states and times that are in the order of reading."""
        x = self.linear("codes.embed", states) + self.weights["codes.position.weight"][times]
        x = self.norm("codes.embed_norm", x)
        return self.linear("codes.code", self.gpt("codes.transformer", x, hidden))

    def scaled(self, states: Any) -> Tensor:
        return (torch.as_tensor(np.array(states), dtype=torch.float32) - self.mean) / self.std


def trained_outputs(policy: hm.Policy, states: Tensor, actions: Tensor, times: Tensor) -> Tensor:
    """Actions ``(K, N, act)`` that himatch predicts in training for one window, its own target."""
    window = Batch(*(x.expand(2, 1, *x.shape) for x in (states, actions, times)))
    with torch.no_grad():
        outputs = policy.agent(window._replace(target_states=window.states, target_times=window.times))
    return torch.tanh(outputs[:, 0])


@pytest.mark.parametrize("codes", ["pseudocode", "public"])
def test_training(codes: Any, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.BDT(m=3, codes=codes), hopper, tmp_path, seeds=(3, 8), **MODEL)
    generator = torch.Generator().manual_seed(0)
    s, a = torch.randn(N, OBS, generator=generator), torch.rand(N, 3, generator=generator)
    t = list(range(4, 4 + N))
    found = trained_outputs(policy, s, a, torch.tensor(t))
    for model in range(2):
        plain = Plain(policy, model)
        z = plain.pseudocode(s) if codes == "pseudocode" else plain.public(s.flip(0), t[::-1])
        torch.testing.assert_close(found[model], plain.act(z, s, a, t), atol=2e-5, rtol=1e-4)


def in_rollout(policy: hm.Policy, seen: np.ndarray, target: hm.Trajectory) -> np.ndarray:
    """Actions ``(K, T, act)`` of himatch in rollouts that see these observations."""
    controllers = [policy.controller(target, seed=seed) for seed in policy.seeds]
    return np.stack([[controller.act(observation) for observation in seen] for controller in controllers])


def test_evaluation_of_the_pseudocode(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """The appendix's evaluation loop, with the states of an environment that does not care for actions."""
    policy = untrained(hm.BDT(m=3, codes="pseudocode"), hopper, tmp_path, seeds=(3, 8), **MODEL)
    rng = np.random.default_rng(0)
    target, seen = episode(rng, STEPS + 1), rng.normal(1, 1, (STEPS + 1, OBS)).astype(np.float32)
    found = in_rollout(policy, seen[:STEPS], target)
    for model in range(2):
        plain = Plain(policy, model)
        z, s, a, t = [target.observations[0]], [seen[0]], [], [0]
        for step in range(STEPS):
            unknown = torch.zeros(1, 3)  # nothing reads the action that is to come
            taken = torch.cat([torch.stack(a), unknown]) if a else unknown
            action = plain.act(plain.pseudocode(plain.scaled(z)), plain.scaled(s), taken, t)[-1]
            np.testing.assert_allclose(found[model, step], action, atol=2e-5)
            z, s, a, t = [*z, target.observations[step + 1]], [*s, seen[step + 1]], [*a, action], [*t, step + 1]
            z, s, a, t = z[-N:], s[-N:], a[-N + 1 :], t[-N:]


@pytest.mark.parametrize(("mask", "start"), [(False, False), (True, False), (False, True), (True, True)])
def test_evaluation_of_the_public_code(mask: bool, start: bool, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Its contexts are padded on the left, with a mask; without the padding the last codes are what is left."""
    method = hm.BDT(m=3, codes="public", public_mask=mask, public_start=start)
    policy = untrained(method, hopper, tmp_path, seeds=(3, 8), **MODEL)
    rng = np.random.default_rng(0)
    target, seen = episode(rng, STEPS + N), rng.normal(1, 1, (STEPS, OBS)).astype(np.float32)
    found = in_rollout(policy, seen, target)
    for model in range(2):
        plain, a = Plain(policy, model), []
        for step in range(STEPS):
            shown, times = target.observations[step : step + N], list(range(step + N - 1, step - 1, -1))
            hidden = tuple(range(N - OBS)) if mask else ()
            if step == 0 and start:
                shown, hidden = shown[:, ::-1], tuple(range(OBS, N)) if mask else ()
            else:
                shown = shown[::-1]
            t = list(range(max(step - N + 1, 0), step + 1))
            codes = plain.public(plain.scaled(shown), times, hidden)[-len(t) :]
            taken = torch.cat([torch.stack(a), torch.zeros(1, 3)]) if a else torch.zeros(1, 3)
            action = plain.act(codes, plain.scaled(seen[t]), taken, t)[-1]
            np.testing.assert_allclose(found[model, step], action, atol=2e-5)
            a = [*a, action][-N + 1 :]
