from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filming import no_opengl, painted

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.quickstart import stages
from himatch.training.update import Update


def test_quickstart_interrupted_continued_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step, done = Update._one_step, 0

    def signalled(self: Update) -> None:
        nonlocal done
        step(self)
        done += 1
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Update, "_one_step", signalled)
    rates: list[float] = []

    @contextmanager
    def bar(*_: object, **__: object) -> Iterator[Callable[[int, float, str], None]]:
        yield lambda done, rate, note: rates.append(rate)

    monkeypatch.setattr(stages, "ROLLOUTS", 1)
    monkeypatch.setattr(stages, "progress_bar", bar)
    monkeypatch.setattr(stages, "SECONDS", 0.1)
    with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
        stages.run_quickstart(tmp_path, episodes=16, steps=4)
    assert done == 2
    folder = tmp_path / "halfcheetah-medium-expert-16-1-v0"
    first = hm.load_dataset(folder)
    assert first.returns[:8].max() < 5000 < 8000 < first.returns[8:].min()  # medium, then expert

    monkeypatch.setattr(stages, "make_dataset", lambda *_, **__: pytest.fail("the dataset was there already"))
    with monkeypatch.context() as patch:
        painted(patch)
        stages.run_quickstart(tmp_path, episodes=16, steps=4)
    assert done == 8  # two policies, no step taken twice
    assert len(rates) == 5
    assert min(rates) > 0
    output = capsys.readouterr().out
    assert re.search(r"episodes +16", output)
    assert (tmp_path / "quickstart.png").stat().st_size > 5_000
    page = (tmp_path / "quickstart.html").read_text()
    for text in (*stages.TARGETS, "mixture", "planned", "held-out expert", "pretrained CDT"):
        assert text in page
    assert "pretrained" in output
    assert f"himatch studio halfcheetah-cdt {tmp_path}" in output.splitlines()[-1]
    trained = hm.load(tmp_path / "halfcheetah-medium-expert-16-1-v0-cpu-4-steps" / "cdt")
    assert trained.description["data"]["hash"][:16] in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # nothing to fetch
    assert "data:image/webp" in page
    assert (tmp_path / "cheetah.webp").is_file()

    no_opengl(monkeypatch)
    with pytest.warns(HimatchWarning, match="the cheetah is not filmed: there is no OpenGL here"):
        stages.run_quickstart(tmp_path, episodes=16, steps=4)
    page = (tmp_path / "quickstart.html").read_text()
    assert "There is no film: there is no OpenGL here to draw robots with" in page
    assert "data:image/webp" not in page
    assert not (tmp_path / "cheetah.webp").exists()
    assert done == 8  # the policies were there already
    assert hm.load_dataset(folder).content_hash == first.content_hash


def test_an_interrupt_before_training_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "make_dataset", interrupted)
    with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
        stages.run_quickstart(tmp_path, episodes=16, steps=4)


def test_too_few_episodes(tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match="15"):
        stages.run_quickstart(tmp_path, episodes=3)
