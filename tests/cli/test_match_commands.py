"""``himatch match`` and ``himatch evaluate`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run
from scipy.stats import bootstrap
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.divergences import interquartile_mean


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A barely trained Categorical DT for Hopper, which falls early."""
    folder = tmp_path_factory.mktemp("match")
    data = hm.make_dataset("hopper-medium-expert", folder / "hopper-v0", episodes=16, quiet=True)
    settings = {"preset": "cpu", "steps": 3, "seeds": 2, "quiet": True}
    hm.train(hm.CDT("x_velocity"), hm.paper_split(data), out=folder / "run", head="tanh", **settings)  # type: ignore[arg-type]
    hm.train(hm.BDT(), hm.paper_split(data), out=folder / "bdt", **settings)  # type: ignore[arg-type]
    return folder


@pytest.mark.parametrize("conditioning", ["nominal", "remaining", "planned"])
def test_match(trained: Path, run: Run, tmp_path: Path, conditioning: str) -> None:
    picture = tmp_path / "match.png"
    settings = ("--episodes", 2, "--conditioning", conditioning, "--plot", picture)
    code, out, _ = run("match", trained / "run", "--target", "normal(2,0.3)", *settings)
    assert code == 0
    assert "W1 " in out
    assert "episode mixture" in out
    assert f"4 rollouts of 2 seed(s), {conditioning}" in out
    assert picture.stat().st_size > 1000


def test_plans_over_stretches_made_again(trained: Path, run: Run, tmp_path: Path) -> None:
    plans = ("--conditioning", "planned", "--stretches", 5, "--replan", 4, "--episodes", 2)
    code, out, _ = run("match", trained / "run", "--target", "normal(2,0.3)", *plans)
    assert code == 0
    assert "4 rollouts of 2 seed(s), planned (stretches of 5, again every 4)" in " ".join(out.split())
    (tmp_path / "mine.txt").write_text("point(1)")
    _, out, _ = run("evaluate", trained / "run", "--targets", tmp_path / "mine.txt", *plans)
    name = Path("".join(out.partition("written to ")[2].split())).name
    assert name == "evaluation-mine-planned-stretches-5-replan-4-episodes-2.json"
    assert json.loads((trained / "run" / name).read_text())["conditioning"] == "planned (stretches of 5, again every 4)"


def test_the_order_of_targets_has_a_line_of_its_own(trained: Path, run: Run) -> None:
    for target, in_order in (("normal(1,0.3) for 5 then normal(2,0.3)", True), ("normal(2,0.3)", False)):
        _, out, _ = run("match", trained / "run", "--target", target, "--episodes", 1)
        assert ("\nW1 in order " in out) == in_order


def test_a_held_out_episode_and_another_feature(trained: Path, run: Run) -> None:
    for target in ("heldout(3)", "shift(heldout(3), -1)", "patch(heldout(0), heldout(5), 20)"):
        assert run("match", trained / "run", "--target", target, "--episodes", 1)[0] == 0
    code, out, _ = run("match", trained / "bdt", "--target", "heldout(0)", "--episodes", 1, "--feature", "reward")
    assert code == 0
    assert "bdt on hopper, reward" in out


def test_the_target_of_a_whole_episode_and_what_was_reached(trained: Path, run: Run, tmp_path: Path) -> None:
    for target, what in (("return(50)", "total x_velocity"), ("goal(2)", "last x_velocity")):
        picture = tmp_path / "whole.png"
        code, out, _ = run("match", trained / "run", "--target", target, "--episodes", 2, "--plot", picture)
        assert code == 0
        assert f"target {target[:-1].partition('(')[2]}" in out.partition(what)[2]
        assert "sum of rewards" in out
        assert picture.stat().st_size > 1000
        picture.unlink()


def test_a_goal_of_robots_that_fell(trained: Path, run: Run) -> None:
    _, out, _ = run("match", trained / "run", "--target", "goal(2)", "--episodes", 2)
    said = " ".join(out.split())
    assert " a rollout, played " in said
    assert ", charged " in said
    assert "100% of the rollouts ended early, and what they would have ended at is not known" in said
    _, out, _ = run("match", trained / "run", "--target", "return(50)", "--episodes", 2)
    assert "100% of the rollouts ended early: their totals are what they had earned" in " ".join(out.split())


def test_two_features_are_measured_in_spreads(run: Run, tmp_path: Path) -> None:
    data = hm.load_dataset(fallen_hoppers(range(12)), "hopper")
    policy = untrained(hm.CDT("x_velocity,z_velocity", bins=5), data, tmp_path / "run")
    weights = {name: tensor[0] for name, tensor in policy.agent.state_dict().items()}
    policy.run.folder.write_weights(0, "last", weights)
    target = "joint(normal(0,0.3),normal(0,0.3))"
    _, out, _ = run("match", tmp_path / "run", "--target", target, "--episodes", 1)
    assert "(in feature units)" in " ".join(out.split())
    (tmp_path / "mine.txt").write_text(target)
    code, out, _ = run("evaluate", tmp_path / "run", "--targets", tmp_path / "mine.txt", "--episodes", 1)
    assert code == 0
    said = " ".join(out.split())
    assert "W1 is joint, in spreads of each feature (x_velocity" in said
    assert "the columns x_velocity, z_velocity are each feature's own W1, in its units" in said
    assert "mine: joint W1, in spreads " in said


def test_evaluations_do_not_write_over_one_another(trained: Path, run: Run, tmp_path: Path) -> None:
    targets = tmp_path / "two.txt"
    targets.write_text("point(1)\nheldout(0)\n")
    names = []
    for more in (
        (),
        ("--conditioning", "remaining"),
        ("--feature", "x_velocity", "--weights", "best"),
        ("--episodes", 1, "--seed", 1_234_567),
    ):
        code, out, _ = run("evaluate", trained / "run", "--targets", targets, *more)
        assert code == 0
        names.append(Path("".join(out.partition("written to ")[2].split())).name)
    assert names == [
        "evaluation-two.json",
        "evaluation-two-remaining.json",
        "evaluation-two-x_velocity-best.json",
        "evaluation-two-episodes-1-seed-1234567.json",
    ]


def test_a_glance_is_not_what_cards_show(trained: Path, run: Run) -> None:
    """The plain name is that of the usual rollouts."""
    assert run("evaluate", trained / "run", "--episodes", 1)[0] == 0
    assert (trained / "run" / "evaluation-episodes-1.json").is_file()
    assert not (trained / "run" / "evaluation.json").exists()


def test_evaluate_writes_what_it_prints(trained: Path, run: Run, tmp_path: Path) -> None:
    code, out, _ = run("evaluate", trained / "run", "--episodes", 1, "--out", tmp_path / "e.json")
    assert code == 0
    content = json.loads((tmp_path / "e.json").read_text())
    assert len(content["targets"]) == 10
    assert set(content["summary"]) == {"expert", "medium", "total"}
    assert f"total: W1 {content['summary']['total']['mean']:.3f}" in out
    assert content["provenance"]["data"]["hash"]
    seeds = np.array([target["w1_per_seed"] for target in content["targets"]])
    oracle = bootstrap((seeds.mean(axis=0),), np.mean, method="percentile", rng=0).confidence_interval
    total = content["summary"]["total"]  # a seed is drawn with all its targets
    assert (total["mean_low"], total["mean_high"]) == pytest.approx((oracle.low, oracle.high))
    each = [interquartile_mean(seeds[:, [k, k]]) for k in range(2)]
    assert (total["low"], total["high"]) == pytest.approx((min(each), max(each)))
    assert f"interquartile mean {total['iqm']:.3f} ({total['low']:.3f} to {total['high']:.3f})" in out
    assert {"name", "group", "w1", "energy", "return_mean", "episodes", "seed"} <= set(content["targets"][0])
    assert f", played {total['played']:.0%}, charged {total['charged']:.3f}" in " ".join(out.split())


def test_evaluate_targets_of_a_file_shifts_and_gaussians(trained: Path, run: Run, tmp_path: Path) -> None:
    targets = tmp_path / "mine.txt"
    targets.write_text("# two of them\nnormal(2,0.3)\nslow | normal(1,0.3)  # with a group\n")
    code, _, _ = run("evaluate", trained / "run", "--targets", targets, "--episodes", 1, "--out", tmp_path / "e.json")
    assert code == 0
    assert [t["group"] for t in json.loads((tmp_path / "e.json").read_text())["targets"]] == ["mine", "slow"]
    for name, count in (("shift", 70), ("synthetic", 6)):
        code, _, _ = run("evaluate", trained / "run", "--targets", name, "--episodes", 1, "--out", tmp_path / "e.json")
        assert code == 0
        assert len(json.loads((tmp_path / "e.json").read_text())["targets"]) == count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "normal(2"), "character"),
        (("--target", "normal(2,0.3)", "--episodes", 0), "at least one episode"),
        (("--target", "heldout(99)"), "has 10 held-out episodes"),
        (("--target", "joint(normal(1,1),normal(2,1))"), "describes 2 features"),
        (("--target", "normal(2,0.3)", "--feature", "moon"), "moon"),
        (("--target", "normal(2,0.3)", "--env", "NoSuchEnv-v0"), "NoSuchEnv"),
        (("--target", "normal(2,0.3)", "--stretches", 0), "stretches is a number of steps, 1 or more, got 0"),
        (("--target", "normal(2,0.3)", "--replan", 0), "replan is a number of steps, 1 or more, got 0"),
        (("--target", "normal(2,0.3)", "--stretches", 5), "stretches is for planned conditioning, not for nominal"),
        (("--target", "normal(2,0.3)", "--temperature", 0.5), "is a deterministic policy; --temperature"),
    ],
)
def test_mistakes_are_one_line(trained: Path, run: Run, arguments: tuple[object, ...], message: str) -> None:
    code, _, err = run("match", trained / "run", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_a_temperature(run: Run) -> None:
    """The pretrained cheetah has a stochastic policy; sampled actions are the same unless the temperature differs."""
    command = ("match", "halfcheetah-cdt", "--target", "normal(5,1)", "--episodes", 1)
    _, usual, _ = run(*command)
    _, again, _ = run(*command)
    _, mean, _ = run(*command, "--temperature", 0)
    assert usual == again != mean
    code, _, err = run(*command, "--temperature", -1)
    assert (code, "must be 0 or more" in err) == (2, True)


def test_a_folder_that_is_no_run_and_targets_that_are_no_file(trained: Path, run: Run, tmp_path: Path) -> None:
    code, _, err = run("match", tmp_path, "--target", "normal(2,0.3)")
    assert (code, "is not a run folder" in err) == (2, True)
    code, _, err = run("evaluate", trained / "run", "--targets", tmp_path / "none.txt")
    assert (code, "there is no file" in err) == (2, True)
    bad = tmp_path / "bad.txt"
    bad.write_text("normal(2,0.3)\nnormal(2;1)\n")
    code, _, err = run("evaluate", trained / "run", "--targets", bad)
    assert (code, "line 2" in err) == (2, True)


def test_a_target_outside_the_data_is_noted(trained: Path, run: Run) -> None:
    code, _, err = run("match", trained / "run", "--target", "normal(50,1)", "--episodes", 1)
    assert code == 0
    assert "lies where no training episode goes" in err


def test_rollouts_are_saved_as_a_dataset(trained: Path, run: Run, tmp_path: Path) -> None:
    code, out, _ = run("match", trained / "run", "--target", "point(1)", "--episodes", 1, "--save", tmp_path / "one")
    assert code == 0
    assert "2 episodes, " in out
    (tmp_path / "two.txt").write_text("point(1)\npoint(2)")
    more = ("--targets", tmp_path / "two.txt", "--out", tmp_path / "e.json", "--save", tmp_path / "two")
    assert run("evaluate", trained / "run", "--episodes", 1, *more)[0] == 0
    read = hm.load_dataset(f"{tmp_path / 'one'}+{tmp_path / 'two'}")
    assert read.labels == ("point(1)",) * 4 + ("point(2)",) * 2
    code, _, said = run("match", trained / "run", "--target", "point(1)", "--save", tmp_path / "one")
    assert (code, said.count("\n")) == (2, 1)
    assert "exists already; choose another name or remove it first (--overwrite)" in said
