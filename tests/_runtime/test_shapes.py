"""Shapes in signatures: tests check them, and users have nothing of it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

from himatch._runtime.shapes import Float, Int, shaped
from himatch.methods.batch import BatchSpec
from himatch.methods.window import cut
from himatch.networks.transformer import ModelConfig, SequencePolicy
from himatch.statistics.aggregators.aggregator import discounted_sums


def test_a_wrong_shape_is_refused_while_testing() -> None:
    with pytest.raises(TypeCheckError, match="parameter 'values'"):
        discounted_sums(np.zeros(5), 1.0)
    with pytest.raises(TypeCheckError, match="parameter 'ahead'"):
        cut(BatchSpec(2), torch.arange(3), torch.arange(2), torch.arange(0), torch.arange(4))


def test_an_axis_has_one_size_in_a_call() -> None:
    policy = SequencePolicy(ModelConfig(context=4, width=8, layers=1), 3, 2, 5, 10)
    z, states, actions = (torch.zeros(1, 6, 4, width) for width in (5, 3, 2))
    times = torch.arange(4).expand(1, 6, 4)
    assert policy(z, states, actions, times).shape == (1, 6, 4, 2)
    assert policy(z[:, :, :1], states, actions, times).shape == (1, 6, 4, 2)  # one z for the window
    with pytest.raises(TypeCheckError, match="parameter 'actions'"):
        policy(z, states, actions[:, :, 1:], times)


def test_results_are_checked_too() -> None:
    @shaped
    def halved(x: Float[Tensor, " T"]) -> Float[Tensor, " T"]:
        return x[::2]

    with pytest.raises(TypeCheckError, match="return value"):
        halved(torch.zeros(4))


def test_a_name_that_means_nothing_is_no_silence() -> None:
    def lost(x: Int[Nowhere, " T"]) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Jaxtyping alone would check nothing of it."""

    with pytest.raises(NameError, match="Nowhere"):
        shaped(lost)


def test_users_have_neither_checks_nor_their_libraries() -> None:
    code = (
        "import sys, torch, himatch; himatch.policy; himatch.train; himatch.experts\n"
        "from himatch._runtime.shapes import Float, Int, shaped\n"
        "assert not {'jaxtyping', 'beartype'} & sys.modules.keys()\n"
        "assert shaped(print) is print\n"
        "assert Float[torch.Tensor, 'K B'] is Int[torch.Tensor, ' K'] is torch.Tensor\n"
        "print(himatch.networks.stacked.Linear.forward.__code__.co_filename)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip().endswith("stacked.py")  # the function itself, not one around it


def test_a_user_of_jaxtyping_is_not_checked_either() -> None:
    code = "import beartype, jaxtyping\nfrom himatch._runtime.shapes import shaped\nassert shaped(print) is print"
    subprocess.run([sys.executable, "-c", code], check=True)
