"""Last-token inference against the whole forward pass."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from torch import Tensor

from himatch._runtime.threads import one_thread
from himatch.networks import last_token
from himatch.networks.last_token import LastToken
from himatch.networks.transformer import ModelConfig, SequencePolicy

STACK, BATCH, HORIZON = 2, 7, 40
VARIANTS: dict[str, dict[str, Any]] = {
    "triples": {},
    "pairs": {"tokens": "pairs"},
    "states": {"tokens": "states"},
    "two heads": {"heads": 2},
    "gelu": {"activation": "gelu"},
    "one layer": {"layers": 1},
    "gaussian": {"head": "gaussian"},
    "squashed states": {"head": "squashed", "tokens": "states"},
    "no z": {"z_width": 0},
    "no z, pairs": {"z_width": 0, "tokens": "pairs"},
    "no z, states": {"z_width": 0, "tokens": "states"},
}


def policy(z_width: int = 4, **form: Any) -> SequencePolicy:
    """Weights so large that every token moves the outputs."""
    torch.manual_seed(0)
    made = SequencePolicy(ModelConfig(**{"context": 6, "width": 16, **form}), 5, 3, z_width, HORIZON, STACK).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape) + ("norm.weight" in name))
    return made


def windows(
    made: SequencePolicy, steps: int, first: int, batch: int = BATCH
) -> tuple[Tensor | None, Tensor, Tensor, Tensor]:
    shape = STACK, batch, steps
    z = torch.randn(*shape, made.z_width) if made.z_width else None
    return z, torch.randn(*shape, 5), 2 * torch.rand(*shape, 3) - 1, torch.arange(first, first + steps)


def whole(made: SequencePolicy, z: Tensor | None, states: Tensor, actions: Tensor, times: Tensor) -> Tensor:
    with torch.no_grad():
        return made(z, states, actions, times.expand(states.shape[:3]))[:, :, -1]  # type: ignore[no-any-return]


@pytest.mark.parametrize(("steps", "first"), [(1, 0), (4, 0), (6, 30), (6, HORIZON - 3)])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_numbers_of_the_whole_pass(name: str, steps: int, first: int) -> None:
    made = policy(**VARIANTS[name])
    z, states, actions, times = windows(made, steps, first)
    expected = whole(made, z, states, actions, times)
    actions[:, :, -1] = torch.nan  # not known yet
    found = LastToken(made)(z, states, actions, times, torch.arange(STACK * BATCH))
    assert found.shape == (STACK, BATCH, 6 if "head" in VARIANTS[name] else 3)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_one_code_serves_all_steps() -> None:
    made = policy()
    z, states, actions, times = windows(made, 6, 3)
    assert z is not None
    expected = whole(made, z[:, :, :1], states, actions, times)
    found = LastToken(made)(z[:, :, :1], states, actions, times, torch.arange(STACK * BATCH))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_chosen_windows_in_blocks_on_threads(threads: int) -> None:
    """So many windows that a model's are cut into blocks, and some left out, at one of the models all but one."""
    made, batch = policy(), 300
    z, states, actions, times = windows(made, 6, 3, batch)
    rows = torch.cat([torch.arange(0, batch, 2), torch.tensor([batch + 11])])
    expected = whole(made, z, states, actions, times).flatten(0, 1)
    last_token._workers.cache_clear()
    torch.set_num_threads(threads)
    try:
        found = LastToken(made)(z, states, actions, times, rows).flatten(0, 1)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(1)
    assert last_token._workers.cache_info().currsize == threads - 1
    torch.testing.assert_close(found[rows], expected[rows], atol=1e-5, rtol=1e-5)
    assert set(found.any(1).nonzero().flatten().tolist()) == set(rows.tolist())


def test_threads_that_share_the_rollouts_stay_on_one_core() -> None:
    """Else each brings its own team of threads, more than there are cores, and training after rollouts is slow, too."""
    before = torch.get_num_threads()
    pool = last_token._workers(os.getpid(), 3)
    assert torch.get_num_threads() == before
    assert set(pool.map(lambda _: torch.get_num_threads(), range(30))) == {1}
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
