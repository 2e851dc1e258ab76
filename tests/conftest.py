"""What all tests share: reproducible property tests, commands, small random episodes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import beartype  # noqa: F401  (with jaxtyping before himatch: shapes are checked)
import jaxtyping  # noqa: F401
import numpy as np
import pytest
import torch
from command_line import Result, Run, fresh_modules
from hypothesis import HealthCheck, settings
from random_episodes import episode

import himatch as hm
from himatch import api
from himatch.cli import main
from himatch.evaluation import sensitivity
from himatch.experts.expert import Expert, write_family
from himatch.experts.networks import Actor, NetworkDims
from himatch.rehearsal.temperature import select_temperature
from himatch.rollout import scoring
from himatch.viz import losses

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
torch.set_num_threads(1)  # tests run side by side
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background; some tests interrupt themselves
    signal.signal(signal.SIGINT, signal.default_int_handler)


def unpainted(figure: object, path: Path) -> Path:
    """In place of drawing the picture of a training's losses."""
    path.write_bytes(b"")
    return path


def mean_action(*_: object, **__: object) -> dict[str, object]:
    """In place of rollouts that select a temperature."""
    return {"value": 0.0, "tried": {}, "rule": "not selected in tests"}


# The end of a training takes longer than a few steps. So its curves are plotted but not drawn, few episodes are scored,
# and the mean action is the policy's, unless a test is about that.
QUICK = {
    (losses, "save"): unpainted,
    (scoring, "OTHERS"): 1,
    (sensitivity, "SCORED"): 4,
    (api, "select_temperature"): mean_action,
}
WHOLE = {(module, name): getattr(module, name) for module, name in QUICK}


@pytest.fixture(scope="session", autouse=True)
def quick_ends() -> Iterator[None]:
    """Trainings end quickly."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in QUICK.items():
            patch.setattr(module, name, value)
        yield


@pytest.fixture
def whole_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings end as for a user: losses drawn, all episodes scored that should be, a temperature selected."""
    for (module, name), value in WHOLE.items():
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def selecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings select the temperature of stochastic policies by rollouts."""
    monkeypatch.setattr(api, "select_temperature", select_temperature)


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from files of its own (``--import``) is forgotten with it."""
    with fresh_modules(tmp_path_factory.getbasetemp()):
        yield


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line and gives its exit code, output and error output."""

    def run(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return run


@pytest.fixture
def hopper() -> hm.TrajectoryDataset:
    """Twenty episodes of different lengths and levels."""
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng, 20 + i, level=i / 5) for i in range(20)], "hopper")


def random_expert(name: str, task: str, number: int, **settings: float) -> Expert:
    """A small agent that nobody trained."""
    known, generator = hm.get_task(task), torch.Generator().manual_seed(number)
    dims = NetworkDims(known.observation_width or 0, known.action_width or 0, (16, 16))
    weights = {
        key: torch.randn(tensor.shape[1:], generator=generator) / 4
        for key, tensor in Actor((dims.action,), dims).state_dict().items()
    }
    scores = {"episodes": 20, "mean": 100.0 * number, "std": 1.0, "length": float(known.horizon)}
    card = {"settings": settings, "seed": 0, "steps": 0, "stochastic": scores, "deterministic": scores}
    return Expert(name, known, weights, card)


@pytest.fixture(scope="session")
def expert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Experts of every name that a dataset is made from."""
    folder = tmp_path_factory.mktemp("experts")
    for task in ("halfcheetah", "hopper", "walker2d", "ant"):
        levels = [random_expert(f"{task}-{level}", task, i) for i, level in enumerate(("medium", "expert"), 1)]
        write_family(folder, task, levels)
    write_family(folder, "backflip", [random_expert("backflip", "backflip", 3)])
    velocities = [random_expert(f"cheetah-vel-{i / 10:.1f}", "cheetah-vel", i, velocity=i / 10) for i in range(31)]
    write_family(folder, "cheetah-vel", velocities)
    return folder


@pytest.fixture
def bundled(expert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Those experts in place of the bundled ones, and an empty cache."""
    monkeypatch.setattr("himatch.experts.cards.BUNDLED", expert_folder)
    monkeypatch.setenv("HIMATCH_CACHE", str(tmp_path / "cache"))
    return expert_folder
