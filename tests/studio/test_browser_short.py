"""The studio's page in a real browser, briefly: it opens, draws the robot, runs, and says what policy.match says."""

from __future__ import annotations

from collections.abc import Callable

from browsing import chosen, run_to_the_end, typed
from playwright.sync_api import Page

import himatch as hm

TARGET = "normal(4,1) for 120"


def test_the_page_runs_a_target_as_match_does(open_page: Callable[..., Page]) -> None:
    page = open_page()
    chosen(page, robots=2, seed=5, conditioning="nominal")
    typed(page, TARGET)
    assert run_to_the_end(page) == hm.load("halfcheetah-cdt").match(TARGET, episodes=2, seed=5).w1
    assert page.locator("#view canvas").count() == 1
    assert page.evaluate("window.shifted") < 0.01
