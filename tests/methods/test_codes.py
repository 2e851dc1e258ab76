"""Which target states the codes of BDT and DT-X see, for every choice of ``codes``, and how encoders are trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import himatch as hm
from himatch.errors import HimatchError
from himatch.methods import method_from_spec, method_spec
from himatch.methods.batch import Batch, Dims
from himatch.methods.dtx.network import ContrastiveEncoder, SummedEncoder
from himatch.methods.learned import CodeAgent
from himatch.methods.normalizers import Normalizers
from himatch.networks.transformer import ModelConfig, initialize

N, OBS, HORIZON = 5, 4, 30
SIZES: dict[str, Any] = {"context": N, "layers": 2, "width": 16, "dropout": 0.0}
METHODS = {"bdt": hm.BDT, "dt-e2e": hm.DTE2E, "dt-ae": hm.DTAE}


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def agent_of(method: hm.methods.Method, observation: int = OBS) -> CodeAgent:
    agent = method.build(ModelConfig(**SIZES), Dims(observation, 2, 3, HORIZON), (0, 1))
    assert isinstance(agent, CodeAgent)
    return agent.eval()


def training_codes(agent: CodeAgent, states: Tensor) -> Tensor:
    """Codes ``(K, codes, m)`` of the training window that ends at step 9 of an episode ``(T, obs)``."""
    now = 9
    first = now + agent.spec.target_start
    rows = torch.arange(first, first + agent.spec.target_states)
    window = torch.arange(now - N + 1, now + 1).expand(2, 1, N)
    batch = Batch(states[window], torch.zeros(2, 1, N, 2), window)
    codes = agent.z(batch._replace(target_states=states[rows].expand(2, 1, -1, -1), target_times=rows.expand(2, 1, -1)))
    assert codes is not None
    return codes[:, 0]


def rollout_codes(agent: CodeAgent, states: Tensor, step: int) -> Tensor:
    """Codes ``(K, codes, m)`` of a rollout at a step, conditioned on an episode ``(T, obs)``."""
    target = hm.demo(hm.Trajectory(states.numpy(), np.zeros((len(states), 2))))
    shown = agent.conditioner([target], _no_scales(), torch.zeros(1, 1, dtype=torch.int64))
    windows = shown.target_states(torch.zeros(1, dtype=torch.int64), torch.tensor([step]))
    assert windows is not None
    return agent.encode(windows.expand(2, *windows.shape), torch.tensor([[step]]))[:, 0]


def _no_scales() -> Normalizers:
    """What the conditioner of codes has no use for."""
    return None  # type: ignore[return-value]


def steps_seen(codes: Any, states: Tensor) -> list[list[int]]:
    """The steps of an episode that each code depends on, found by changing one state after the other."""
    before, seen = codes(states), []
    for step in range(len(states)):
        changed = states.clone()
        changed[step] += 1.0
        seen.append((codes(changed) - before).abs().amax((0, 2)) > 1e-6)
    return [torch.nonzero(column).flatten().tolist() for column in torch.stack(seen).T]


def last(count: int, end: int) -> list[int]:
    return list(range(max(end - count + 1, 0), end + 1))


# -- what each position has seen --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_look_ahead_code_sees_a_window_from_the_present_on(name: str) -> None:
    agent, states = agent_of(METHODS[name](m=3, target_window=7)), torch.randn(25, OBS)
    assert steps_seen(lambda x: training_codes(agent, x), states) == [list(range(9, 16))]
    for step in (0, 2, 9):
        assert steps_seen(lambda x, t=step: rollout_codes(agent, x, t), states) == [list(range(step, step + 7))]


@pytest.mark.parametrize("codes", ["pseudocode", "public"])
@pytest.mark.parametrize("name", METHODS)
def test_in_training_the_first_code_sees_the_windows_last_state(name: str, codes: Any) -> None:
    """The codes are not flipped back: position j has seen the last j + 1 states, the last position all of them."""
    agent, states = agent_of(METHODS[name](m=3, codes=codes)), torch.randn(25, OBS)
    assert steps_seen(lambda x: training_codes(agent, x), states) == [last(j + 1, 9) for j in range(N)]


@pytest.mark.parametrize("name", METHODS)
def test_pseudocode_sees_the_targets_last_states_up_to_the_present(name: str) -> None:
    agent, states = agent_of(METHODS[name](m=3, codes="pseudocode")), torch.randn(25, OBS)
    for step in (0, 2, 4, 9):
        seen = steps_seen(lambda x, t=step: rollout_codes(agent, x, t), states)
        # Positions after that of the present step are not read.
        assert seen[: step + 1] == [last(j + 1, step) for j in range(min(step + 1, N))]


@pytest.mark.parametrize("name", METHODS)
def test_public_codes_see_the_targets_next_states(name: str) -> None:
    """The present step, at position t while the context fills, has the code of the whole window."""
    agent, states = agent_of(METHODS[name](m=3, codes="public")), torch.randn(25, OBS)
    for step in (0, 2, 4, 9):
        seen = steps_seen(lambda x, t=step: rollout_codes(agent, x, t), states)
        place = min(step, N - 1)
        assert seen[place] == list(range(step, step + N))
        assert seen[: place + 1] == [last(N - place + j, step + N - 1) for j in range(place + 1)]


@pytest.mark.parametrize("name", METHODS)
def test_the_public_mask_is_as_long_as_a_state_is_wide(name: str) -> None:
    agent, states = agent_of(METHODS[name](m=3, codes="public", public_mask=True), 3), torch.randn(25, 3)
    assert steps_seen(lambda x: rollout_codes(agent, x, 9), states)[N - 1] == [9, 10, 11]
    assert steps_seen(lambda x: rollout_codes(agent, x, 0), states)[0] == [0, 1, 2]
    assert steps_seen(lambda x: training_codes(agent, x), states)[N - 1] == last(N, 9)  # training has none
    wide = agent_of(METHODS[name](m=3, codes="public", public_mask=True), N + 1)
    assert steps_seen(lambda x: rollout_codes(wide, x, 9), torch.randn(25, N + 1))[N - 1] == list(range(9, 9 + N))


@pytest.mark.parametrize("mask", [False, True])
def test_the_public_start_flips_features_at_the_first_step(mask: bool) -> None:
    methods = [hm.BDT(m=3, codes="public", public_mask=mask, public_start=start) for start in (False, True)]
    usual, flipped = (agent_of(method, 3) for method in methods)
    states = torch.randn(25, 3)
    torch.testing.assert_close(rollout_codes(flipped, states, 1), rollout_codes(usual, states, 1))
    assert (rollout_codes(flipped, states, 0) - rollout_codes(usual, states, 0)).abs().max() > 1e-3
    # Read first to last at the times of last to first; the mask is at the other end, and the last state reads itself.
    seen = steps_seen(lambda x: rollout_codes(flipped, x, 0), states)[0]
    assert seen == ([0, 1, 2, 4] if mask else list(range(N)))
    if not mask:
        by_hand = states[:N].flip(0).flip(1)
        expected = usual.encode(by_hand.expand(2, 1, -1, -1), torch.tensor([[0]]))[:, 0, 0]
        torch.testing.assert_close(rollout_codes(flipped, states, 0)[:, 0], expected)


def test_summed_codes_are_sums_over_the_states_they_have_seen() -> None:
    agent, states = agent_of(hm.DTE2E(m=3, codes="pseudocode")), torch.randn(25, OBS)
    assert isinstance(agent.codes, SummedEncoder)
    features = agent.codes.encoder(states.expand(2, -1, -1))
    expected = torch.stack([features[:, last(j + 1, 9)].sum(1) / N for j in range(N)], dim=1)
    torch.testing.assert_close(training_codes(agent, states), expected, atol=1e-5, rtol=1e-4)


# -- settings ---------------------------------------------------------------------------------------------------------


def test_choices_are_checked() -> None:
    with pytest.raises(HimatchError, match=r"^codes must be one of look-ahead, pseudocode, public, got 'literal'$"):
        hm.BDT(codes="literal")  # type: ignore[arg-type]
    for slip in ("public_mask", "public_start"):
        with pytest.raises(HimatchError, match=f"^{slip} is of public codes, and codes are look-ahead$"):
            hm.make_method("dt-ae", **{slip: True})


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_earlier_versions(name: str) -> None:
    """Without the switch that there was, codes looked ahead; with it they were what nobody's code has."""
    method = METHODS[name](m=3)
    earlier = {key: value for key, value in method_spec(method).items() if not key.startswith(("codes", "public"))}
    assert method_from_spec({**earlier, "literal": False}) == method_from_spec(earlier) == method
    with pytest.raises(HimatchError, match=f"^its {name} has literal codes .* train it again with codes") as refused:
        method_from_spec({**earlier, "literal": True})
    assert "\n" not in str(refused.value)


# -- how encoders are trained -----------------------------------------------------------------------------------------


def test_info_nce_is_cross_entropy_over_the_batch() -> None:
    codes = ContrastiveEncoder(2, 4, 3, window=5, hidden=(8,))
    initialize(codes, (0, 1))
    states = torch.randn(2, 6, 4)
    torch.manual_seed(1)
    found = codes.unsupervised_loss(states).detach()
    torch.manual_seed(1)
    keys = codes.key_encoder(states + 0.1 * torch.randn_like(states))
    queries = codes.bilinear(codes.encoder(states))
    for model in range(2):
        expected = torch.nn.functional.cross_entropy(queries[model] @ keys[model].T, torch.arange(6))
        assert float(found[model]) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_key_encoder_follows_slowly() -> None:
    codes = ContrastiveEncoder(1, 4, 3, window=5, hidden=(8,))
    initialize(codes, (0,))
    slow, fast = codes.key_encoder.layers[0].weight.clone(), codes.encoder.layers[0].weight
    codes.after_step()
    torch.testing.assert_close(codes.key_encoder.layers[0].weight, 0.95 * slow + 0.05 * fast)
    assert not any(parameter.requires_grad for parameter in codes.key_encoder.parameters())
