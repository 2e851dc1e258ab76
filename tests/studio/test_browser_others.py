"""Runs that are not of one feature, or not of MuJoCo, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from browsing import chosen, draw, run_to_the_end, settled
from conftest import Studio
from playwright.sync_api import Page
from test_other_runs import Cart, Unseen, pushed
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.policy import Policy
from himatch.studio.catalog import Catalog
from himatch.studio.run import StudioRun


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policy]:
    hoppers = hm.load_dataset(fallen_hoppers(range(12)), "hopper")
    return {
        "plane": untrained(hm.CDT("x_velocity,z_velocity", bins=7), hoppers, tmp_path_factory.mktemp("plane")),
        "pictures": pushed(Cart, tmp_path_factory.mktemp("pictures")),
        "traces": pushed(Unseen, tmp_path_factory.mktemp("traces")),
    }


@pytest.fixture(scope="module")
def studio(policies: dict[str, Policy]) -> Iterator[Studio]:
    made = Studio(lambda: Catalog([StudioRun(name, name, policy) for name, policy in policies.items()]))
    made.start()
    yield made
    made.stop()


def of(page: Page, run: str) -> None:
    """Show another run."""
    page.select_option("#run", run)
    page.wait_for_function("run => new URLSearchParams(location.hash.slice(1)).get('run') === run", arg=run)
    page.wait_for_function("() => !document.querySelector('#play').disabled")
    chosen(page, robots=2, conditioning="nominal")


def test_two_features_are_painted_on_their_plane(open_page: Callable[..., Page], policies: dict[str, Policy]) -> None:
    page = open_page()
    page.click("#clear")
    chosen(page, robots=2, conditioning="nominal")
    draw(page, [(0.3, 0.4), (0.5, 0.6)])
    expression = settled(page, "")
    assert expression.startswith("shuffled(joint(")
    assert not page.locator("[data-tool=bars]").is_visible()
    assert run_to_the_end(page) == policies["plane"].match(expression, episodes=2).w1


def test_an_environment_shows_its_own_pictures(open_page: Callable[..., Page]) -> None:
    page = open_page()
    of(page, "pictures")
    run_to_the_end(page)
    page.wait_for_function("() => document.querySelector('#view img').naturalWidth === 60")
    assert not page.locator("#follow").is_visible()


def test_an_environment_without_pictures_shows_traces(open_page: Callable[..., Page]) -> None:
    page = open_page()
    of(page, "traces")
    canvas = page.locator("#view canvas")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    run_to_the_end(page)
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before
