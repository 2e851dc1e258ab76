"""Weights of Hugging Face's Decision Transformer as a run: the same actions, by the whole way of acting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from untrained import fallen_hoppers

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.interchange.checkpoint import HuggingFaceCheckpoint

transformers = pytest.importorskip("transformers")  # a development dependency; make test has it

N, SCALE, STEPS = 6, 500.0, 20
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heads": {"n_head": 4, "n_layer": 3},
    "other scales": {"n_head": 2, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
}


def model(**form: Any) -> Any:
    """Their model with weights large enough that everything in it moves the actions."""
    config = transformers.DecisionTransformerConfig(
        **{"state_dim": 11, "act_dim": 3, "hidden_size": 32, "max_ep_len": 50, "n_layer": 2, "n_head": 1} | form
    )
    torch.manual_seed(0)
    made = transformers.DecisionTransformerModel(config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            parameter.copy_((1.0 if "ln" in name and "weight" in name else 0.0) + 0.2 * torch.randn(parameter.shape))
    return made


def normalization() -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(1)
    return rng.normal(size=11).tolist(), rng.uniform(0.5, 2, size=11).tolist()


def their_actions(
    made: Any, seen: NDArray[np.float32], rewards: NDArray[np.float32], wanted: float
) -> NDArray[np.float32]:
    """Their way of acting: histories cut to N steps, padded on the left, masked; the return counted down."""
    mean, std = (torch.tensor(x) for x in normalization())
    states, actions = (torch.from_numpy(seen) - mean) / std, torch.zeros(len(seen), 3)
    earned = np.concatenate([[0.0], np.cumsum(rewards[:-1], dtype=np.float64)])
    returns = torch.tensor((wanted - earned) / SCALE, dtype=torch.float32)[:, None]
    for step in range(len(seen)):
        rows = torch.arange(max(0, step - N + 1), step + 1)
        pad = N - len(rows)

        def padded(values: torch.Tensor, pad: int = pad) -> torch.Tensor:
            return torch.cat([values.new_zeros(pad, *values.shape[1:]), values])[None]

        with torch.no_grad():
            actions[step] = made(
                states=padded(states[rows]),
                actions=padded(actions[rows]),
                rewards=padded(returns[rows]),
                returns_to_go=padded(returns[rows]),
                timesteps=padded(rows),
                attention_mask=padded(torch.ones(len(rows))),
            ).action_preds[0, -1]
    return actions.numpy()


@pytest.mark.filterwarnings("ignore:whether .* can be reached is not known")
@pytest.mark.parametrize("form", FORMS)
def test_the_same_actions_step_by_step(form: str, tmp_path: Path) -> None:
    made, (mean, std) = model(**FORMS[form]), normalization()
    made.save_pretrained(tmp_path / "theirs")
    settings: dict[str, Any] = {"state_mean": mean, "state_std": std, "return_scale": SCALE, "context": N}
    hm.import_hugging_face(tmp_path / "theirs", tmp_path / "run", task="hopper", **settings)
    rng = np.random.default_rng(0)
    seen, rewards = rng.normal(size=(STEPS, 11)).astype(np.float32), rng.uniform(-5, 40, STEPS).astype(np.float32)
    expected = their_actions(made, seen, rewards, 700.0)
    controller = hm.load(tmp_path / "run").controller("return(700)", conditioning="remaining")
    found = [controller.act(row, None if i == 0 else rewards[i - 1]) for i, row in enumerate(seen)]
    np.testing.assert_allclose(np.stack(found), expected, atol=1e-5)
    assert expected.std() > 0.1  # the comparison is of something
    unearned = their_actions(made, seen, 0 * rewards, 700.0)
    assert np.abs(unearned - expected).max() > 1e-3  # and returns matter in it


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    model().save_pretrained(tmp_path / "theirs")
    change(tmp_path / "theirs", max_length=N)  # as the checkpoints of 2022 have it
    return tmp_path / "theirs"


def change(folder: Path, **settings: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))


def test_a_run_that_matches(theirs: Path, tmp_path: Path) -> None:
    mean, std = normalization()
    policy = hm.import_hugging_face(theirs, tmp_path / "run", task="hopper", state_mean=mean, state_std=std)
    assert (policy.context, policy.method) == (N, hm.DT())
    assert isinstance(policy.statistic, hm.InformationStatistic)
    assert policy.statistic.spec()["aggregator"] == {"kind": "sum", "gamma": 1.0, "scale": 1000.0}
    with pytest.warns(HimatchWarning, match=r"whether return\(100\) can be reached is not known"):
        result = policy.match("return(100)", episodes=2)
    assert result.error == pytest.approx(abs(result.returns.mean() - 100), rel=1e-5)
    assert result.plot(tmp_path / "match.png").stat().st_size > 1000
    with pytest.raises(HimatchError, match=r"no training episodes are known to compare normal\(2,1\) with"):
        policy.match("normal(2,1)", episodes=1)


def test_a_context_that_nobody_states(theirs: Path, tmp_path: Path) -> None:
    change(theirs, max_length=None)
    mean, std = normalization()
    settings: dict[str, Any] = {"task": "hopper", "state_mean": mean, "state_std": std}
    with pytest.warns(HimatchWarning, match="theirs does not say how many steps it sees; 20 are assumed"):
        assert hm.import_hugging_face(theirs, tmp_path / "assumed", **settings).context == 20
    assert hm.import_hugging_face(theirs, tmp_path / "given", context=3, **settings).context == 3


def test_the_episodes_it_was_trained_on_say_the_rest(theirs: Path, tmp_path: Path) -> None:
    data = hm.load_dataset(fallen_hoppers(range(4)), "hopper")
    policy = hm.import_hugging_face(theirs, tmp_path / "run", data=data)
    assert policy.normalizers.state_high is not None
    np.testing.assert_array_equal(policy.normalizers.state_high, data.observations.max(axis=0))
    np.testing.assert_allclose(policy.normalizers.state_mean, data.observations.mean(0, dtype=np.float64), atol=1e-6)
    np.testing.assert_allclose(policy.normalizers.state_std, data.observations.std(0, dtype=np.float64), atol=1e-6)
    assert policy.task.name == "hopper"
    assert policy.description["data"]["hash"] == data.content_hash
    middle = float(np.median(data.returns))
    assert policy.reference().support(hm.parse_target(f"return({middle})")).inside
    assert policy.match(data[0], episodes=1).mixture.w1 == pytest.approx(0, abs=1e-6)  # type: ignore[union-attr]


def test_older_files_are_read_without_running_them(theirs: Path, tmp_path: Path) -> None:
    """Checkpoints of 2022 are pickles, in which masks of the attention lie beside the weights."""
    from safetensors.torch import load_file

    weights = load_file(theirs / "model.safetensors")
    weights |= {"encoder.h.0.attn.bias": torch.ones(1, 1, 8, 8), "encoder.h.0.attn.masked_bias": torch.tensor(-1e4)}
    (theirs / "model.safetensors").rename(tmp_path / "kept.safetensors")
    torch.save(weights, theirs / "pytorch_model.bin")
    mean, std = normalization()
    settings: dict[str, Any] = {"task": "hopper", "state_mean": mean, "state_std": std}
    old = hm.import_hugging_face(theirs, tmp_path / "old", **settings)
    (tmp_path / "kept.safetensors").rename(theirs / "model.safetensors")
    new = hm.import_hugging_face(theirs, tmp_path / "new", **settings)
    for name, tensor in new.agent.state_dict().items():
        assert torch.equal(tensor, old.agent.state_dict()[name])


class _Boom:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (Path.touch, (Path("boom"),))


def test_a_pickle_of_more_than_tensors_is_refused(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (theirs / "model.safetensors").unlink()
    torch.save({"embed_timestep.weight": _Boom()}, theirs / "pytorch_model.bin")
    with pytest.raises(HimatchError, match="a pickle of more than tensors, which is not read") as caught:
        HuggingFaceCheckpoint.read(theirs, "theirs")
    assert "\n" not in str(caught.value)
    assert not Path("boom").exists()
    torch.save([torch.zeros(1)], theirs / "pytorch_model.bin")
    with pytest.raises(HimatchError, match="not the weights of one model"):
        HuggingFaceCheckpoint.read(theirs, "theirs")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "describes a gpt2, not a decision_transformer"),
        ({"activation_function": "gelu_new"}, "activation_function is 'gelu_new'; himatch's policy has 'relu'"),
        ({"action_tanh": False}, "action_tanh is False"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon"),
        ({"n_inner": 100}, "n_inner is 100; himatch's policy has 128"),
        ({"n_layer": 3}, "the weights lack encoder.h.2"),
        ({"n_layer": "two"}, "n_layer must be a whole number of at least 1, got 'two'"),
        ({"hidden_size": 64}, "do not fit config.json"),
        ({"state_dim": 17}, "has 17 observations, the task hopper has 11"),
        ({"act_dim": 6}, "has 6 actions, the task hopper has 3"),
    ],
)
def test_checkpoints_that_are_something_else(
    changes: dict[str, Any], message: str, theirs: Path, tmp_path: Path
) -> None:
    change(theirs, **changes)
    mean, std = normalization()
    with pytest.raises(HimatchError) as caught:
        hm.import_hugging_face(theirs, tmp_path / "run", task="hopper", state_mean=mean, state_std=std)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": None}, "say which task the weights belong to"),
        ({"task": "moon"}, "moon"),
        ({"state_std": None}, "give both means and deviations"),
        ({"state_mean": None, "state_std": None}, "does not say how states were normalised"),
        ({"state_mean": [0.0]}, "1 means but 11 deviations"),
        ({"state_mean": [0.0], "state_std": [1.0]}, "sees 11 numbers, but 1 means were given"),
        ({"state_std": [0.0] * 11}, "must be positive"),
        ({"return_scale": 0.0}, "the scale of returns must be positive"),
        ({"context": -1}, "context must be at least 1"),
    ],
)
def test_what_has_to_be_said_besides(settings: dict[str, Any], message: str, theirs: Path, tmp_path: Path) -> None:
    mean, std = normalization()
    given = {"task": "hopper", "state_mean": mean, "state_std": std} | settings
    with pytest.raises(HimatchError, match=message):
        hm.import_hugging_face(theirs, tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_folders_that_hold_no_checkpoint(theirs: Path, tmp_path: Path) -> None:
    for source, message in (
        (tmp_path / "nowhere", r"holds no config\.json; to download one, write hf:USER/NAME"),
        (tmp_path, r"holds no config\.json$"),
    ):
        with pytest.raises(HimatchError, match=message):
            HuggingFaceCheckpoint.read(source, "x")
    (theirs / "model.safetensors").write_bytes(b"short")
    with pytest.raises(HimatchError, match=r"model\.safetensors: damaged"):
        HuggingFaceCheckpoint.read(theirs, "x")
    (theirs / "model.safetensors").unlink()
    with pytest.raises(HimatchError, match="holds neither"):
        HuggingFaceCheckpoint.read(theirs, "x")
    (theirs / "config.json").write_text("[1")
    with pytest.raises(HimatchError, match=r"config\.json: cannot be read"):
        HuggingFaceCheckpoint.read(theirs, "x")
