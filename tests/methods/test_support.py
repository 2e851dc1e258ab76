"""Z of a policy in use is clipped to the training support: histograms that training never showed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from himatch.methods import support
from himatch.methods.normalizers import Normalizers
from himatch.methods.support import fit_support

BINS, HORIZON = 6, 40


def histograms(rng: np.random.Generator, lengths: list[int], dimensions: int = 1, reach: int = BINS) -> np.ndarray:
    """Random z of episodes, with mass in the first ``reach`` bins only."""
    z = np.zeros((sum(lengths), dimensions, BINS), dtype=np.float32)
    z[..., :reach] = rng.dirichlet(np.ones(reach), size=(sum(lengths), dimensions))
    return z.reshape(len(z), -1)


def fitted(z: np.ndarray, lengths: list[int]) -> Normalizers:
    one = torch.zeros(1)
    return Normalizers(one, one, one, one, support=fit_support(z, np.array(lengths), BINS, HORIZON))


def times_of(lengths: list[int]) -> torch.Tensor:
    return torch.cat([torch.arange(length) for length in lengths])


@pytest.mark.parametrize("dimensions", [1, 2])
def test_training_z_stay_as_they_are(dimensions: int) -> None:
    rng, lengths = np.random.default_rng(0), [40, 25, 31]
    z = histograms(rng, lengths, dimensions)
    clipped = fitted(z, lengths).clipped_z(torch.from_numpy(z), times_of(lengths))
    np.testing.assert_allclose(clipped, z, atol=1e-5)


def test_a_bin_that_training_never_visits_is_clipped_to_known_ones() -> None:
    rng, lengths = np.random.default_rng(1), [40] * 5
    normalizers = fitted(histograms(rng, lengths, reach=4), lengths)
    strange = torch.zeros(3, BINS)
    strange[:, -1] = 1.0
    clipped = normalizers.clipped_z(strange, torch.tensor([0]))
    torch.testing.assert_close(clipped.sum(1), torch.ones(3))
    torch.testing.assert_close(clipped[:, 4:], torch.zeros(3, 2), atol=1e-5, rtol=0)


def test_the_support_depends_on_the_time() -> None:
    """Early z of training lie in the low bins, late ones in the high bins."""
    rng, lengths = np.random.default_rng(2), [40] * 8
    z = histograms(rng, lengths, reach=3)
    late = np.tile(np.arange(40) >= 20, len(lengths))
    z[late] = z[late][:, ::-1]
    normalizers = fitted(z, lengths)
    low, high = torch.eye(BINS)[0], torch.eye(BINS)[-1]
    assert (normalizers.clipped_z(low, torch.tensor([0])) - low).abs().max() < 0.3
    assert (normalizers.clipped_z(low, torch.tensor([30])) - low).abs().max() > 0.5
    both = torch.stack([low, high])
    one_by_one = [normalizers.clipped_z(both, torch.tensor([t])) for t in (3, 35)]
    together = normalizers.clipped_z(both.expand(2, 2, BINS), torch.tensor([[3], [35]]).expand(2, 2))
    torch.testing.assert_close(together, torch.stack(one_by_one))


def test_past_the_longest_training_episode_its_last_part_holds() -> None:
    rng, lengths = np.random.default_rng(3), [7, 9]
    normalizers = fitted(histograms(rng, lengths), lengths)
    z = torch.from_numpy(histograms(rng, [1]))[0]
    torch.testing.assert_close(
        normalizers.clipped_z(z, torch.tensor([39])), normalizers.clipped_z(z, torch.tensor([8]))
    )


def test_nothing_is_read_back_from_the_device() -> None:
    """A CUDA graph could not; tensors without numbers refuse it just so."""
    rng, lengths = np.random.default_rng(4), [40, 40]
    normalizers, z = fitted(histograms(rng, lengths), lengths), torch.zeros(2, 3, BINS)
    with FakeTensorMode() as mode:
        pretended = Normalizers.of({name: mode.from_tensor(tensor) for name, tensor in normalizers.tensors().items()})
        clipped = pretended.clipped_z(mode.from_tensor(z), mode.from_tensor(torch.tensor([7])))
    assert clipped.shape == z.shape


@pytest.mark.parametrize("every", [1, 3, 50])
def test_every_so_many_steps_of_a_part(every: int) -> None:
    lengths = np.array([40, 5, 25, 31])
    for part in range(4):
        expected = [row for row, time in enumerate(times_of(lengths.tolist()).tolist()) if time // 10 == part]
        rows = support._rows(lengths, part, 10, every)
        assert len(rows) == -(-len(expected) // every)
        assert [expected.index(row) // every for row in rows] == list(range(len(rows)))


def test_a_sample_of_many_steps_shows_what_all_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, lengths = np.random.default_rng(3), [40] * 500
    z = histograms(rng, lengths, reach=4)
    everything = fit_support(z, np.array(lengths), BINS, HORIZON)
    monkeypatch.setattr(support, "MOST", 5_000)
    sampled = fit_support(z, np.array(lengths), BINS, HORIZON)
    strange = torch.zeros(1, BINS)
    strange[:, -1] = 1.0
    for found in (everything, sampled):
        torch.testing.assert_close(found(strange, torch.tensor([0]))[:, 4:], torch.zeros(1, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(sampled.mean, everything.mean, atol=0.06, rtol=0)  # 250 steps a part
