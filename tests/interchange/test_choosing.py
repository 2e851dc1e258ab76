"""Which seed is bundled: the one that matches training episodes, whatever the held-out ones say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Run
from run_files import describe_anew
from untrained import fallen_hoppers

import himatch as hm
from himatch.errors import HimatchError
from himatch.evaluation import trial
from himatch.interchange import choice as choosing
from himatch.interchange.bundle import bundle
from himatch.interchange.card import _facts
from himatch.interchange.choice import Choice, choose_seed, training_targets
from himatch.models import find_model
from himatch.rehearsal import temperature
from himatch.rehearsal.temperature import some_episodes, training_scores
from himatch.rollout import OngoingRollouts, Player
from himatch.runs.folder import RunFolder
from himatch.simulation import Simulator
from himatch.statistics.aggregators import Histogram
from himatch.statistics.information import InformationStatistic

SMALL: dict[str, Any] = {
    "preset": "cpu",
    "head": "tanh",
    "steps": 2,
    "width": 16,
    "layers": 1,
    "seeds": 3,
    "quiet": True,
}


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(40)), "hopper")


@pytest.fixture(scope="module")
def trained(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choosing")
    hm.train(hm.CDT("x_velocity"), hm.paper_split(data), out=folder / "cdt", **SMALL)
    hm.train(hm.BDT(), hm.paper_split(data), out=folder / "bdt", **SMALL)
    return folder


def test_targets_say_what_the_training_episodes_said(trained: Path, data: hm.TrajectoryDataset) -> None:
    policy, train = hm.load(trained / "cdt"), hm.paper_split(data).train
    reference, statistic = policy.reference(), policy.statistic
    assert isinstance(statistic, InformationStatistic)
    assert isinstance(statistic.aggregator, Histogram)
    for number in (0, 11, len(train) - 1):
        phi = train[number].observations[:, 5:6]
        values = reference.episode(number)
        np.testing.assert_array_equal(values, phi)
        np.testing.assert_array_equal(statistic.aggregator(values), statistic.aggregator(phi))


def test_episodes_from_the_whole_order(trained: Path) -> None:
    reference = hm.load(trained / "cdt").reference()
    assert len(reference.totals) == 30
    assert some_episodes(reference) == np.argsort(reference.totals[:, 0])[1::2].tolist()
    few = hm.EpisodeReference.of(fallen_hoppers(range(3)), reference.frame.feature)
    assert sorted(some_episodes(few)) == [0, 1, 2]


def test_a_seed_that_falls_over_loses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pretrained policy against one whose weights were shaken."""
    bundled = find_model("hopper-cdt")
    assert bundled is not None
    run = Path(shutil.copytree(bundled, tmp_path / "run"))
    (known,) = RunFolder(run).description()["seeds"]
    folder = describe_anew(run, seeds=[4, known])
    generator = torch.Generator().manual_seed(0)
    good = folder.weights(known)
    shaken = {name: w.float() + 0.3 * torch.randn(w.shape, generator=generator) for name, w in good.items()}
    folder.write_weights(4, "last", shaken)
    monkeypatch.setattr(temperature, "EPISODES", 3)
    monkeypatch.setattr(choosing, "ROLLOUTS", 1)
    choice = choose_seed(hm.load(run))
    assert (choice.seed, choice.rule) == (known, "mean charged W1 to 3 training episodes, 1 rollouts each")
    assert choice.scores[known] < 0.5 < choice.scores[4]


def test_a_temperature_at_which_it_falls_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pretrained policy with a Gaussian head: far too much noise and it stays where it began."""
    policy = hm.load("halfcheetah-cdt")
    before, targets = policy.temperature, training_targets(policy.reference())[:1]
    scores = training_scores(policy.run, policy.agent, targets, (0.7, 20.0), 1)
    assert (temperature.lowest_noise(scores), policy.temperature) == (0.7, before)
    assert scores[20.0].shape == (1, 1)


def test_scores_on_training_episodes_start_elsewhere_than_evaluation(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[int] = []

    class Watched(OngoingRollouts):
        def __init__(self, player: Player, simulator: Simulator, lengths: Any, reset_seeds: Any, *rest: Any) -> None:
            starts.extend(reset_seeds.ravel().tolist())
            super().__init__(player, simulator, lengths, reset_seeds, *rest)

    monkeypatch.setattr(trial, "OngoingRollouts", Watched)
    policy = hm.load(trained / "cdt").only(0)
    target = training_targets(policy.reference())[0]
    training_scores(policy.run, policy.agent, [target], (0.0,), 5)
    first = set(starts)
    training_scores(policy.run, policy.agent, [target], (0.0,), 5, start=temperature.FINAL_START)
    chosen_by = set(starts)
    assert len(chosen_by) == 2 * len(first) == 10
    starts.clear()
    policy.match(target, episodes=50)
    assert len(starts) == 50
    assert not chosen_by & set(starts)


def test_a_bundle_keeps_its_temperature(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    settings = SMALL | {"seeds": 2, "head": "gaussian", "temperature": 0.3}
    hm.train(hm.CDT("x_velocity"), hm.paper_split(data), out=tmp_path / "run", **settings)
    chosen = bundle(tmp_path / "run", tmp_path / "chosen", episodes=1)
    assert chosen.temperature == hm.load(tmp_path / "chosen").temperature == 0.3
    named = bundle(tmp_path / "run", tmp_path / "named", seed=1, episodes=1)
    assert (named.seeds, named.temperature) == ((1,), 0.3)


def test_a_bundle_says_how_its_seed_was_chosen(trained: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "models" / "fallen"
    code, printed, err = run("models", "bundle", trained / "cdt", "--out", out, "--episodes", 1)
    assert code == 0, err
    facts = json.loads((out / "run.json").read_text())["bundled"]
    scores = {int(seed): score for seed, score in facts["scores"].items()}
    best = min(scores, key=lambda seed: scores[seed])
    assert (facts["seeds"], sorted(scores), hm.load(out).seeds) == ([0, 1, 2], [0, 1, 2], (best,))
    chosen = "chosen by mean charged W1 to 15 training episodes, 5 rollouts each"
    said = f"seed {best} out of 3, {chosen} (0: {scores[0]:.4g}, "
    assert said in printed
    assert f"fallen: {said}" in run("models", "list", out.parent)[1]
    assert f"- `fallen`: {said}" in run("models", "list", out.parent, "--markdown")[1]
    assert _facts(hm.load(out))["seeds"].startswith(said)
    # Held-out episodes have no say.
    bare = Path(shutil.copytree(trained / "cdt", tmp_path / "bare", ignore=shutil.ignore_patterns("held_out")))
    assert choose_seed(hm.load(bare)).scores == scores


def test_a_seed_that_was_named(trained: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "named"
    code, printed, _ = run("models", "bundle", trained / "cdt", "--out", out, "--episodes", 1, "--seed", 2)
    assert (code, hm.load(out).seeds) == (0, (2,))
    assert "seed 2 out of 3, chosen by hand\n" in printed


def test_methods_that_imitate_are_judged_by_their_loss(trained: Path, run: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(trained / "bdt", tmp_path / "bdt"))
    for seed, losses in enumerate(((0.5, 0.4), (0.2, 0.6), (0.3, 0.3))):  # the last weights count
        rows = [{"step": i, "loss": 1.0, "validation": loss} for i, loss in enumerate(losses)]
        (copy / f"seed-{seed}" / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, printed, err = run("models", "bundle", copy, "--out", tmp_path / "out", "--episodes", 1)
    assert code == 0, err
    rule = "validation loss, since the run keeps no demonstrations"
    assert f"seed 2 out of 3, chosen by {rule} (0: 0.4, 1: 0.6, 2: 0.3)\n" in printed
    losses = copy / "seed-2" / "metrics.jsonl"
    losses.write_text("[1]\n")
    with pytest.raises(HimatchError, match=r"seed-2/metrics.jsonl: line 1 is damaged"):
        bundle(copy, tmp_path / "other")
    losses.unlink()
    with pytest.raises(HimatchError, match=r"bdt holds no losses of seed 2.*name a seed \(--seed\)"):
        bundle(copy, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_only_seed_of_a_method_that_imitates(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """It keeps the temperature that its training selected; no loss has a say."""
    settings = SMALL | {"seeds": 1, "head": "gaussian", "temperature": 0.5}
    policy = hm.train(hm.BDT(), hm.paper_split(data), out=tmp_path / "run", **settings)
    (tmp_path / "run" / "seed-0" / "metrics.jsonl").unlink()
    assert choose_seed(policy) == Choice(0, "the only one", {})
    assert bundle(tmp_path / "run", tmp_path / "out", episodes=1).temperature == 0.5


def test_no_training_episodes_to_choose_by(trained: Path) -> None:
    policy = hm.load(trained / "cdt")
    policy.add_reference(hm.EpisodeReference.empty(policy.reference().frame))
    with pytest.raises(HimatchError, match=r"holds no training episodes .*\(--seed\)"):
        choose_seed(policy)
