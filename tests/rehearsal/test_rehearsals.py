"""A rehearsal as a user has it: repertoire and programs of a small policy, kept in its run folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from command_line import Run, assert_refused
from known_programs import know_programs
from short_tasks import HORIZON, short_tasks  # noqa: F401
from small_searches import shrink
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError, TargetError
from himatch.rehearsal import rehearsals, repertoire
from himatch.rehearsal.arena import SEED
from himatch.rollout.programs import REMAINING, ProgramPart
from himatch.runs.folder import RunFolder
from himatch.targets import Samples

TARGET = "normal(0,0.2)"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset([one[:HORIZON] for one in fallen_hoppers(range(8))], "hopper")


@pytest.fixture
def policy(data: hm.TrajectoryDataset, tmp_path: Path) -> hm.Policy:
    made = untrained(hm.CDT("x_velocity"), data, tmp_path / "run", seeds=(0, 1))
    for place, seed in enumerate(made.seeds):
        weights = {name: tensor[place].clone() for name, tensor in made.agent.state_dict().items()}
        made.run.folder.write_weights(seed, "last", weights)
    return made


def count(patch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    called, real = [], getattr(module, name)

    def counted(arena: Any, given: Any, *rest: Any, **more: Any) -> Any:
        called.append(len(given))
        return real(arena, given, *rest, **more)

    patch.setattr(module, name, counted)
    return called


@pytest.mark.filterwarnings("ignore:.*lies where no training episode goes")
def test_what_was_achieved_is_what_rollouts_do(policy: hm.Policy) -> None:
    """Under every entry, from the same initial states: as ``match`` plays it under that entry as a target."""
    policy.rehearse(keep=False)
    found = policy.repertoire
    assert found is not None
    assert len(found) == 3 + 2
    for n, entry in enumerate(found.entries):
        if entry.startswith("episode"):
            values = policy.reference().episode(int(entry[8:-1]))
            target: Any = Samples(values, entry, HORIZON)
            if len(values) < HORIZON:
                continue  # a target of its own length
        else:
            target = entry
        played = policy.match(target, episodes=repertoire.ROLLOUTS, seed=SEED)
        for k in range(2):
            for e in range(repertoire.ROLLOUTS):
                rows = played.features[k][e]
                assert found.lengths[k, n, e] == len(rows)
                np.testing.assert_allclose(found.values[k, n, e, : len(rows)], rows, atol=2e-3)


def test_programs_are_kept_and_not_searched_for_again(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = count(monkeypatch, rehearsals, "search")
    first = policy.rehearse([TARGET, "normal(0.1,0.1)"])
    assert searched == [2]
    again = hm.load(policy.folder)
    assert again.rehearse([TARGET, "normal(0.1,0.1)"]) == first
    assert searched == [2]
    assert again.rehearse(["normal(0.1,0.1)", "normal(0.9,0.1)"])[0] == first[1]
    assert searched == [2, 1]
    again.temperature = 0.5  # it does other things now
    again.rehearse([TARGET])
    assert searched == [2, 1, 1]
    content = json.loads((policy.folder / "programs.json").read_text())["targets"]
    assert {record["target"] for record in content.values()} == {TARGET, "normal(0.1,0.1)", "normal(0.9,0.1)"}
    for record in content.values():
        assert set(record["programs"]) == {"0", "1"}
        assert all(sum(steps for _, steps in parts) == HORIZON for parts in record["programs"].values())
        assert {"torch", "himatch"} <= record["versions"].keys()


def test_a_repertoire_goes_on_where_it_stopped(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    real, played = repertoire._played, []

    def stops(arena: Any, entries: Any, *rest: Any) -> Any:
        if played:
            raise KeyboardInterrupt
        played.append(list(entries))
        return real(arena, entries, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(repertoire, "_played", stops)
        with pytest.raises(KeyboardInterrupt):
            policy.rehearse()
    assert len(played[0]) == 3
    rest = count(monkeypatch, repertoire, "_played")
    again = hm.load(policy.folder)
    again.rehearse()
    assert rest == [2]
    whole = hm.load(policy.folder)
    whole.rehearse()
    assert rest == [2]
    assert whole.repertoire is not None
    assert again.repertoire is not None
    assert whole.repertoire.entries == again.repertoire.entries
    assert torch.equal(whole.repertoire.values, again.repertoire.values)


def test_rehearsed_conditioning_plays_the_program(policy: hm.Policy) -> None:
    """Of each seed its own; the entries' z at the rollout's clock, and nothing else."""
    target = policy.target(TARGET)
    halves = (ProgramPart("episode(1)", 20), ProgramPart("episode(2)", HORIZON - 20))
    know_programs(policy, [target], halves, (ProgramPart("target", HORIZON),))
    found = policy.match(target, conditioning="rehearsed", episodes=2)
    nominal = policy.match(target, episodes=2)
    np.testing.assert_array_equal(found.features[1][0], nominal.features[1][0])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(found.features[0][0], nominal.features[0][0])
    tables = [policy.statistic.of_values(policy.reference().episode(i)) for i in (1, 2)]
    one = policy.controller(target, seed=0, conditioning="rehearsed")
    z = one._player.conditioner.z
    for step, table in ((0, tables[0]), (19, tables[0]), (20, tables[1]), (40, tables[1])):
        expected_z = table[min(step, len(table) - 1)]
        np.testing.assert_allclose(z(torch.tensor([[step]]))[0, 0], expected_z, atol=1e-6)


def test_a_controller_needs_no_simulator_only_the_programs(
    policy: hm.Policy, data: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    (promised,) = policy.rehearse([TARGET])
    monkeypatch.setattr("himatch.simulation.make_simulator", lambda *_, **__: pytest.fail("simulated"))
    loaded = hm.load(policy.folder)
    controller = loaded.controller(TARGET, conditioning="rehearsed")
    assert loaded.expected(TARGET) == promised
    assert loaded.expected("normal(5,1)") is None
    assert f"{TARGET}" in str(loaded.show()).partition("rehearsed targets")[2]
    assert "rehearsed target" in loaded.show()._repr_html_()
    assert controller.act(data[0].observations[0]).shape == (3,)
    with pytest.raises(TargetError, match=r"normal\(5,1\) was not rehearsed; policy.rehearse"):
        controller.retarget("normal(5,1)")


def test_other_weights_are_another_policy(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that went on: neither programs nor the repertoire of before are used."""
    policy.rehearse([TARGET])
    moved = {name: tensor + 0.01 for name, tensor in policy.run.folder.weights(1).items()}
    policy.run.folder.write_weights(1, "last", moved)
    again = hm.load(policy.folder)
    with pytest.raises(TargetError, match="was not rehearsed with these weights, at this temperature"):
        again.controller(TARGET, seed=1, conditioning="rehearsed")
    again.controller(TARGET, seed=0, conditioning="rehearsed")  # which are the same
    played = count(monkeypatch, repertoire, "_played")
    searched = count(monkeypatch, rehearsals, "search")
    again.rehearse([TARGET])
    assert (played, searched) == ([3, 2], [1])
    again.controller(TARGET, seed=1, conditioning="rehearsed")


def test_another_environment_is_rehearsed_for_itself(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    policy.rehearse([TARGET])
    own = policy.repertoire
    played = count(monkeypatch, repertoire, "_played")
    policy.rehearse([TARGET], env="Hopper-v4", keep=False)
    assert played == [3, 2]
    assert policy.repertoire is not own
    policy.rehearse(keep=False)
    assert played == [3, 2]
    assert policy.repertoire is own


def test_environments_that_are_handed_over_are_told_apart(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two functions may have the same name and make different worlds; neither is written down."""
    searched = count(monkeypatch, rehearsals, "search")

    def made() -> Any:
        return gymnasium.make("Hopper-v5", max_episode_steps=HORIZON)

    for env in (lambda: made(), lambda: made()):
        for _ in range(2):
            policy.rehearse([TARGET], env=env)
    assert searched == [1, 1]
    assert not (policy.folder / "programs.json").exists()
    assert not (policy.folder / "repertoire.safetensors").exists()


def test_what_is_promised_is_of_this_policy(policy: hm.Policy) -> None:
    policy.rehearse([TARGET])
    assert policy.expected(TARGET) is not None
    before, policy.temperature = policy.temperature, 0.5
    assert policy.expected(TARGET) is None
    assert "rehearsed targets" not in str(policy.show())
    with pytest.raises(TargetError, match="was not rehearsed with these weights, at this temperature"):
        policy.controller(TARGET, conditioning="rehearsed")
    policy.rehearse([TARGET])
    policy.temperature = before
    assert policy.expected(TARGET) is not None  # that of before is still there


def test_programs_of_what_remains_are_not_varied(policy: hm.Policy) -> None:
    """They stand alone: a near target is searched for without them."""
    know_programs(policy, [TARGET], *[(ProgramPart(REMAINING, HORIZON),)] * 2)
    assert policy.match(TARGET, conditioning="rehearsed", episodes=1).conditioning == "rehearsed"
    assert len(policy.rehearse(["normal(0.01,0.2)"])) == 1


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_features_of_any_size_can_be_rehearsed(scale: float, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    task = replace(data.task, name="scaled", features={"speed": lambda obs, act, rew: scale * obs[:, 5]})
    scaled = hm.load_dataset(list(data), task)
    policy = untrained(hm.CDT("speed"), scaled, tmp_path / "run")
    expected = policy.rehearse([f"normal(0,{0.2 * scale:g})"], keep=False)[0]
    assert 0 < expected.score < 10 * scale


def test_bad_arguments_are_one_line(policy: hm.Policy) -> None:
    with pytest.raises(TargetError, match="a list of targets"):
        policy.rehearse(TARGET)
    with pytest.raises(HimatchError, match="at least one episode"):
        policy.rehearse([TARGET], episodes=0)
    with pytest.raises(HimatchError, match="more than 0 seconds"):
        policy.rehearse([TARGET], seconds=-1)


def test_other_statistics_have_numbers_in_their_library(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.DT("x_velocity"), data, tmp_path / "run")
    expected = policy.rehearse(["return(20)"])[0]
    assert policy.repertoire is not None
    assert all(entry.startswith("return(") for entry in policy.repertoire.entries)
    result = policy.match("return(20)", conditioning="rehearsed", episodes=2)
    assert result.conditioning == "rehearsed"
    assert expected.low <= expected.score <= expected.high


def test_policies_without_a_statistic_are_refused(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="rehearsed conditioning is for policies that are conditioned on a statistic"):
        untrained(hm.BC(), data, tmp_path / "run").rehearse()


def test_commands(policy: hm.Policy, run: Run) -> None:
    code, out, _ = run("rehearse", policy.folder, "--target", TARGET, "--rehearsal", "30s")
    assert code == 0
    assert "5 conditionings rolled out, played " in out
    assert f"{TARGET}: expected W1 " in out
    assert "  seed 1: " in out
    code, out, _ = run("match", policy.folder, "--target", TARGET, "--conditioning", "rehearsed", "--episodes", 2)
    assert code == 0
    assert out.startswith("expected W1 ")
    assert "2 seed(s), rehearsed" in out
    assert RunFolder(policy.folder).programs()
    assert_refused(run("match", policy.folder, "--target", TARGET, "--rehearsal", "30s"), "--conditioning rehearsed")
    assert_refused(
        run("rehearse", policy.folder, "--rehearsal", "soon"), "a time is written 30s or 2m and more than 0, got 'soon'"
    )
    assert_refused(run("rehearse", policy.folder, "--conditioning", "planned"), "not planned")
    (policy.folder / "programs.json").write_text('{"targets": {}}')
    assert_refused(run("rehearse", policy.folder, "--target", TARGET), "programs.json", "himatch rehearse")
    (policy.folder / "programs.json").write_text('{"targets"')
    assert_refused(run("show", policy.folder), "programs.json", "remove it, himatch rehearse finds programs again")
    (policy.folder / "programs.json").unlink()
    whole = (policy.folder / "repertoire.safetensors").read_bytes()
    (policy.folder / "repertoire.safetensors").write_bytes(whole[:3000])
    assert_refused(
        run("rehearse", policy.folder), "repertoire.safetensors", "remove it, himatch rehearse makes it again"
    )
    assert_refused(run("rehearse", policy.folder, "--feature", "reward"), "leave out --feature")


def test_models_that_come_with_himatch_are_not_written_to(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himatch.runs.finder.BUNDLED", policy.folder.parent)
    policy.rehearse([TARGET])
    assert not (policy.folder / "programs.json").exists()
    assert not (policy.folder / "repertoire.safetensors").exists()
