"""The arithmetic of SAC against calculations of its own, agent by agent."""

from __future__ import annotations

import math

import pytest
import torch
from pretended_gpu import GPU, PretendedGPU
from random_tensors import some
from torch import Tensor
from torch.distributions import Normal, TanhTransform, TransformedDistribution
from torch.nn import functional

from himatch._runtime.graphs import GraphedStep
from himatch.experts.networks import Actor, Critics, NetworkDims, initialize
from himatch.experts.replay_buffer import Experience, ReplayBuffer
from himatch.experts.sac import SAC, SACConfig, chosen_agents

CPU = torch.device("cpu")
DIMS = NetworkDims(5, 3, (16, 16))
ACTIONS = (1, 3)  # the first agent has one action coordinate, two are padding
SMALL = SACConfig(hidden=(16, 16), copies=2, batch_size=8, memory=64, first=8, learning_rate=1e-2, discount=0.9)


def actor(seed: int = 0) -> Actor:
    made = Actor(ACTIONS, DIMS)
    initialize(made, Critics(2, DIMS), (seed, seed + 1))
    return made


def some_experience(agents: int = 2, batch: int = 8, seed: int = 0) -> Experience:
    width = some(2, agents, batch, DIMS.observation, seed=seed)
    actions = torch.tanh(some(agents, batch, DIMS.action, seed=seed + 1))
    ended = (some(agents, batch, seed=seed + 3) > 1.0).float()
    return Experience(width[0], actions, some(agents, batch, seed=seed + 2), width[1], ended)


def make(seeds: tuple[int, ...] = (3, 4), config: SACConfig = SMALL, actions: tuple[int, ...] = ACTIONS) -> SAC:
    return SAC(config, DIMS, actions, seeds, CPU)


# -- the actor ------------------------------------------------------------------------------------------------------


def test_likelihood_is_that_of_a_squashed_gaussian() -> None:
    one = actor().double()
    seen, noise = 3.0 * some(2, 50, 5).double(), some(2, 50, 3, seed=1).double()
    actions, likelihood = one.sample(seen, noise)
    mean, log_std = one.gaussian(seen)
    oracle = TransformedDistribution(Normal(mean, log_std.exp()), [TanhTransform(cache_size=1)])
    squashed = torch.tanh(mean + log_std.exp() * noise)
    expected = oracle.log_prob(squashed)
    torch.testing.assert_close(likelihood[0], expected[0, :, 0])
    torch.testing.assert_close(likelihood[1], expected[1].sum(-1))
    torch.testing.assert_close(actions[1], squashed[1])
    assert one.act(seen, noise).equal(actions)
    torch.testing.assert_close(one.act(seen, None)[1], torch.tanh(mean[1]))


def test_likelihood_stays_finite_where_tanh_saturates() -> None:
    one = actor()
    with torch.no_grad():
        one.layers[-1].bias[:, :3] = 30.0  # type: ignore[index, operator]
    actions, likelihood = one.sample(some(2, 10, 5), some(2, 10, 3))
    assert actions[1].eq(1.0).all()
    assert likelihood.isfinite().all()


def test_padded_actions_are_zero_and_count_for_nothing() -> None:
    one = actor()
    seen, noise = some(2, 20, 5), some(2, 20, 3, seed=1)
    actions, likelihood = one.sample(seen, noise)
    assert actions[0, :, 1:].eq(0.0).all()
    assert actions[1].ne(0.0).all()
    noise[0, :, 1:] += 5.0
    with torch.no_grad():
        one.layers[-1].bias[0, [1, 2, 4, 5]] += 1.0  # type: ignore[index, operator]
    others, other_likelihood = one.sample(seen, noise)
    torch.testing.assert_close(others, actions, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(other_likelihood, likelihood, rtol=0.0, atol=1e-6)


# -- the losses -----------------------------------------------------------------------------------------------------


def by_hand(critics: Critics, model: int, seen: Tensor, action: Tensor) -> Tensor:
    """One critic of one agent, from its weights: ``(B,)``."""
    x = torch.cat([seen, action], dim=-1)
    for layer, norm in zip(critics.layers, critics.norms, strict=True):
        x = functional.linear(x, layer.weight[model].T, layer.bias[model])  # type: ignore[index, union-attr]
        x = torch.relu(functional.layer_norm(x, x.shape[-1:], norm.weight[model], norm.bias[model]))  # type: ignore[index, arg-type]
    return functional.linear(x, critics.last.weight[model].T, critics.last.bias[model]).squeeze(-1)


def test_twin_critic_target_by_hand() -> None:
    sac, batch, noise = make(), some_experience(), some(2, 8, 3, seed=9)
    with torch.no_grad():
        sac.flat_targets.master.add_(0.05 * some(*sac.flat_targets.master.shape))  # not the critics themselves
        sac.log_temperature.copy_(torch.tensor([-1.0, 0.5]))
        found = sac.critic_loss(batch, noise)
        assert 0.0 < batch.terminated.mean() < 1.0
        for agent in range(2):
            mean, log_std = (x[agent, :, : ACTIONS[agent]] for x in sac.actor.gaussian(batch.next_observations))
            density = TransformedDistribution(Normal(mean, log_std.exp()), [TanhTransform()])
            action = torch.tanh(mean + log_std.exp() * noise[agent, :, : ACTIONS[agent]])
            likelihood = density.log_prob(action).sum(-1)
            padded = functional.pad(action, (0, 3 - ACTIONS[agent]))
            pair = [by_hand(sac.targets, 2 * agent + i, batch.next_observations[agent], padded) for i in range(2)]
            soft = torch.minimum(*pair) - math.exp((-1.0, 0.5)[agent]) * likelihood
            goal = batch.rewards[agent] + 0.9 * (1.0 - batch.terminated[agent]) * soft
            expected = torch.zeros(())
            for i in range(2):
                value = by_hand(sac.critics, 2 * agent + i, batch.observations[agent], batch.actions[agent])
                expected = expected + (value - goal).square().mean()
            torch.testing.assert_close(found[agent], expected, rtol=1e-4, atol=1e-4)


def test_actor_loss_by_hand() -> None:
    sac, batch, noise = make(), some_experience(), some(2, 8, 3, seed=9)
    with torch.no_grad():
        sac.log_temperature.copy_(torch.tensor([-1.0, 0.5]))
        found, likelihood = sac.actor_loss(batch.observations, noise)
        actions, each = sac.actor.sample(batch.observations, noise)
        for agent in range(2):
            pair = [by_hand(sac.critics, 2 * agent + i, batch.observations[agent], actions[agent]) for i in range(2)]
            expected = (math.exp((-1.0, 0.5)[agent]) * each[agent] - torch.minimum(*pair)).mean()
            torch.testing.assert_close(found[agent], expected, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(likelihood[agent], each[agent].mean())


@pytest.mark.parametrize(("likelihood", "rises"), [(10.0, True), (-10.0, False)])
def test_temperature_rises_where_actions_are_too_sure(
    likelihood: float, rises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Target entropies are -1 and -3: a log-likelihood of 10 means too little entropy, -10 too much."""
    sac = make()
    sac.replay.draw = lambda batch: some_experience()  # type: ignore[method-assign]
    real = sac._actor_loss
    sac._actor_loss = lambda seen, noise: (real(seen, noise)[0], torch.full((2,), likelihood))
    sac.update()
    assert ((sac.log_temperature > 0) == rises).all()


def test_targets_follow_slowly() -> None:
    sac = make()
    sac.replay.draw = lambda batch: some_experience()  # type: ignore[method-assign]
    with torch.no_grad():
        sac.flat_targets.master.add_(1.0)
    before = sac.flat_targets.master.clone()
    sac.update()
    expected = 0.995 * before + 0.005 * sac.flat_critics.master
    torch.testing.assert_close(sac.flat_targets.master, expected)
    assert sac.targets.last.bias.data_ptr() != sac.critics.last.bias.data_ptr()


# -- nothing passes between agents ----------------------------------------------------------------------------------


def fed(sac: SAC, batches: list[Experience], noises: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates on given batches with given noise."""
    for batch, noise in zip(batches, noises, strict=True):
        sac.replay.draw = lambda _, batch=batch: batch  # type: ignore[method-assign, misc]
        with monkeypatch.context() as patch:
            patch.setattr(torch, "randn", lambda *shape, noise=noise, **_: noise.view(shape))
            sac.update()


def test_a_stack_of_two_learns_what_two_stacks_of_one_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [some_experience(seed=10 * i) for i in range(3)]
    noises = [some(2, 2, 8, 3, seed=100 + i) for i in range(3)]
    both = make((3, 4))
    fed(both, batches, noises, monkeypatch)
    for agent, seed in enumerate((3, 4)):
        one = slice(agent, agent + 1)
        alone = make((seed,), actions=(ACTIONS[agent],))
        begun = alone.state()
        own = [Experience._make(part[one] for part in batch) for batch in batches]
        fed(alone, own, [noise[:, one] for noise in noises], monkeypatch)
        found, expected = chosen_agents(both.state(), [agent]), alone.state()
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(found[name], tensor, rtol=0.0, atol=1e-5, msg=name)
        for name in ("actor", "critics", "targets", "temperature"):
            assert (begun[name] - expected[name]).abs().max() > 1e-4, name


def test_a_stored_state_goes_on_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [some_experience(seed=10 * i) for i in range(4)]
    noises = [some(2, 2, 8, 3, seed=100 + i) for i in range(4)]
    whole, first, second = make(), make(), make((8, 9))
    fed(whole, batches, noises, monkeypatch)
    fed(first, batches[:2], noises[:2], monkeypatch)
    second.load_state(first.state())
    fed(second, batches[2:], noises[2:], monkeypatch)
    for name, tensor in whole.state().items():
        assert tensor.equal(second.state()[name]), name


@pytest.mark.parametrize("fails", ["", "no graphs on this machine"])
@pytest.mark.filterwarnings("ignore:no CUDA graph for training here")
def test_recording_and_going_without_leave_learning_as_it_is(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a fresh start and in mid-run: the bits of a run that was never recorded."""
    PretendedGPU(monkeypatch, record_fails=fails)
    plain, recorded = make(), make()
    for sac in (plain, recorded):
        torch.manual_seed(5)
        for step in range(6):
            sac.replay.add(some_experience(batch=2, seed=step))
            if sac is recorded and step in (0, 3):
                parts = sac._critic_loss, sac._actor_loss
                sac._learn = GraphedStep(sac._update, GPU, snapshot=sac._snapshot, parts=parts, purpose="training")
            sac.update()
    assert recorded.how == ("compiled" if fails else "compiled CUDA graph")
    for name, tensor in plain.state().items():
        assert tensor.equal(recorded.state()[name]), name
    assert recorded.losses.equal(plain.losses)


# -- memory ---------------------------------------------------------------------------------------------------------


def lived(step: int, agents: int = 2, copies: int = 3) -> Experience:
    """A row whose every number says who lived it, in which copy and when."""
    mark = torch.arange(agents).view(-1, 1) * 10_000 + torch.arange(copies) * 1000 + float(step)
    wide = mark.unsqueeze(-1)
    return Experience(wide.expand(-1, -1, 4), wide.expand(-1, -1, 2), mark, wide.expand(-1, -1, 4) + 0.5, mark)


def test_memory_is_a_ring_of_each_agents_own() -> None:
    replay = ReplayBuffer(5, 2, 3, 4, 2, CPU)
    for step in range(13):
        replay.add(lived(step))
        kept = range(max(0, step - 4), step + 1)
        drawn = replay.draw(400)
        for agent in range(2):
            marks = set(drawn.rewards[agent].int().tolist())
            assert marks == {agent * 10_000 + copy * 1000 + when for copy in range(3) for when in kept}
        for part in (drawn.observations, drawn.actions, drawn.next_observations - 0.5):
            assert part.eq(drawn.rewards.unsqueeze(-1)).all()  # a transition stays together
        assert drawn.terminated.equal(drawn.rewards)


# -- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"copies": 0}, "copies must be at least 1"),
        ({"updates": 0}, "updates must be at least 1"),
        ({"hidden": ()}, "hidden layers"),
        ({"hidden": (8, 0)}, "hidden layers"),
        ({"memory": 10, "first": 20}, r"memory \(10\) must hold the first 20"),
        ({"memory": 10, "first": 0, "copies": 16}, r"memory \(10\) must hold the first 16"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"learning_rate": math.nan}, "learning rate"),
        ({"discount": 1.5}, "discount must lie between 0 and 1"),
    ],
)
def test_settings_are_checked(settings: dict[str, float], message: str) -> None:
    from himatch.errors import HimatchError

    with pytest.raises(HimatchError, match=message):
        SACConfig(**settings)  # type: ignore[arg-type]
