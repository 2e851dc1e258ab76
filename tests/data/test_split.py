"""Which episodes are held out."""

import numpy as np
import pytest
from builders import ARM, make_episode

import himatch as hm
from himatch.data import named_split, paper_split, random_split
from himatch.data.split import ranked_groups
from himatch.errors import DataError


def with_returns(returns, labels=None):
    rng = np.random.default_rng(0)
    return hm.load_dataset(
        [
            hm.Trajectory(rng.normal(size=(2, 3)), np.zeros((2, 2)), [total, 0.0], label=labels and labels[i])
            for i, total in enumerate(returns)
        ],
        ARM,
    )


@pytest.mark.parametrize("n", [15, 16, 20, 21, 100])
def test_the_papers_split_is_the_benchmarks_protocol(n):
    """BENCHMARK.md: the five best and ranks n//2 - 2 to n//2 + 2, by return, ties by index."""
    returns = np.random.default_rng(n).integers(0, 6, n).astype(float)  # many ties
    ranked = sorted(range(n), key=lambda i: (returns[i], i))
    split = hm.paper_split(with_returns(returns))
    assert split.groups == ("expert",) * 5 + ("medium",) * 5
    assert split.held_out_index[:5].tolist() == ranked[-5:]
    assert split.held_out_index[5:].tolist() == ranked[n // 2 - 2 : n // 2 + 3]
    assert split.train_index.tolist() == sorted(set(range(n)) - set(split.held_out_index.tolist()))


def test_a_split_unpacks_and_its_groups_are_datasets():
    dataset = with_returns(np.arange(20.0))
    train, held_out = split = hm.paper_split(dataset)
    assert (len(train), len(held_out)) == (10, 10)
    assert split.group("expert").returns.tolist() == [15, 16, 17, 18, 19]
    assert split.group("medium").returns.tolist() == [8, 9, 10, 11, 12]
    assert len(split.group("worst")) == 0
    np.testing.assert_array_equal(train.returns, dataset[split.train_index].returns)


@pytest.mark.parametrize("per_group", [1, 2, 3, 5, 8])
def test_the_groups_never_overlap(per_group):
    fewest = next(n for n in range(1, 100) if _accepted(n, per_group))
    for n in range(fewest, fewest + 6):
        split = hm.paper_split(with_returns(np.arange(float(n))), per_group)
        assert len(set(split.held_out_index)) == 2 * per_group
        assert split.held_out_index.min() >= 0
        assert len(split.train) == n - 2 * per_group > 0


def _accepted(n, per_group):
    try:
        hm.paper_split(with_returns(np.arange(float(n))), per_group)
    except DataError:
        return False
    return True


def test_too_few_episodes_are_refused_with_the_number_needed():
    with pytest.raises(DataError, match=r"holds out 10 episodes and needs at least 15, .* has 14; split at random"):
        hm.paper_split(with_returns(np.arange(14.0)))


def test_empty_groups_are_refused():
    with pytest.raises(DataError, match="at least one episode, got 0"):
        hm.paper_split(with_returns(np.arange(20.0)), 0)


def test_a_log_without_rewards_has_no_best_episodes():
    dataset = hm.load_dataset([hm.Trajectory(np.zeros((2, 3)), np.zeros((2, 2)))] * 20, ARM)
    with pytest.raises(DataError, match="no rewards; split at random"):
        hm.paper_split(dataset)


def test_a_random_split_depends_on_its_seed_only():
    dataset = with_returns(np.arange(40.0))
    first, again, other = (hm.random_split(dataset, 0.25, seed=seed) for seed in (3, 3, 4))
    assert first.held_out_index.tolist() == again.held_out_index.tolist() != other.held_out_index.tolist()
    assert len(first.held_out) == 10
    assert sorted([*first.train_index, *first.held_out_index]) == list(range(40))
    assert first.groups == ("random",) * 10


@pytest.mark.parametrize("part", [0.0, 1.0, -0.1, 1.5, 0.01, 0.99, float("nan")])
def test_a_random_split_needs_both_parts(part):
    with pytest.raises(DataError, match="both parts need at least one"):
        hm.random_split(with_returns(np.arange(10.0)), part)


def test_a_label_split_keeps_whole_labels_out_of_training():
    labels = ["slow", "fast", None, "fast", "mid", "slow", "fast"]
    dataset = with_returns(np.arange(7.0), labels)
    split = hm.label_split(dataset, ["fast", "mid"], per_label=2)
    assert split.held_out_index.tolist() == [1, 3, 4]
    assert split.groups == ("fast", "fast", "mid")
    assert split.train.labels == ("slow", None, "slow")  # the third fast episode is in neither part
    assert split.group("mid").returns.tolist() == [4.0]


def test_a_label_nobody_carries_is_refused_with_those_there_are():
    dataset = with_returns(np.arange(3.0), ["slow", "fast", None])
    with pytest.raises(DataError, match="is labelled 'medium'; labels: fast, slow"):
        hm.label_split(dataset, ["fast", "medium"])


def test_numbers_stand_for_labels_and_each_counts_once():
    dataset = with_returns(np.arange(5.0), ["1", "1.0", "1", None, "2"])
    for wanted in ([1], ["1", "1"], ["1", 1], "1", (np.int64(1),)):
        split = hm.label_split(dataset, wanted)
        assert split.held_out_index.tolist() == [0, 2]
        assert split.name == "label:1"
    assert hm.label_split(dataset, [1.0, 2]).groups == ("1.0", "2")


def test_holding_out_every_label_leaves_nothing():
    with pytest.raises(DataError, match="nothing is left to train on"):
        hm.label_split(with_returns(np.arange(2.0), ["slow", "fast"]), ["fast", "slow"])


def test_a_split_shares_the_packed_arrays():
    rng = np.random.default_rng(0)
    dataset = hm.load_dataset([make_episode(rng, 4) for _ in range(20)], ARM)
    train, _ = hm.paper_split(dataset)
    assert np.shares_memory(train[0].observations, dataset.observations)


def test_a_split_of_ones_own():
    data = with_returns(np.arange(6.0))
    split = hm.Split(data[2:], data[:2], ["a", "b"], range(2, 6), [0, 1])
    assert split.group("b").returns.tolist() == [1]
    other = hm.load_dataset([make_episode(np.random.default_rng(i), 2) for i in range(6)], ARM)
    assert len(hm.Split(data, other, ("x",) * 6, range(6), range(6)).held_out) == 6


@pytest.mark.parametrize(
    ("train", "held_out", "more", "complaint"),
    [
        (slice(None), [5, 2], {}, r"^2 of 2 held-out episodes are in train too, the first of them held_out\[0\]; take"),
        (slice(3), [5, 2], {}, r"^1 of 2 .* the first of them held_out\[1\]; take"),
        (slice(3), [4, 5], {"groups": ()}, "2 episodes in held_out but 0 in groups"),
        (slice(3), [4, 5], {"groups": ("a", "b", "c")}, "2 episodes in held_out but 3 in groups"),
        (slice(3), [4, 5], {"train_index": [0]}, "3 episodes in train but 1 in train_index"),
        (slice(3), [4, 5], {"held_out_index": [0]}, "2 episodes in held_out but 1 in held_out_index"),
    ],
)
def test_a_split_that_contradicts_itself_is_refused(train, held_out, more, complaint):
    data = with_returns(np.arange(6.0))
    facts = {
        "groups": ("own",) * len(held_out),
        "train_index": np.arange(6)[train],
        "held_out_index": np.array(held_out),
    }
    with pytest.raises(DataError, match=complaint):
        hm.Split(data[train], data[held_out], **{**facts, **more})


@pytest.mark.parametrize("n", [15, 16, 40])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_ranked_groups(n, size):
    values = np.random.default_rng(n).integers(0, 6, n)  # many ties
    order = sorted(range(n), key=lambda i: (values[i], i))
    middle = n // 2 - size // 2
    found = {name: places.tolist() for name, places in ranked_groups(values, size).items()}
    assert found == {"best": order[-size:], "middle": order[middle : middle + size], "worst": order[:size]}
    assert len({i for places in found.values() for i in places}) == 3 * size


def test_ranked_groups_of_few_share_some():
    assert {name: len(places) for name, places in ranked_groups([3.0, 1.0], 5).items()} == dict.fromkeys(
        ("best", "middle", "worst"), 2
    )


def test_splits_by_name():
    data = with_returns(np.random.default_rng(1).normal(size=40))
    assert named_split(data, "none").held_out_index.tolist() == []
    assert named_split(data, "none").train_index.tolist() == list(range(40))
    assert named_split(data, "random").held_out_index.tolist() == random_split(data).held_out_index.tolist()
    assert named_split(data, "paper").groups == paper_split(data).groups
    with pytest.raises(DataError, match="labels: none"):
        named_split(data, "label:run, flip")
    for name in ("half", "label", "label:", "paper:3"):
        with pytest.raises(DataError, match="split must be paper, random, label:A,B or none"):
            named_split(data, name)
