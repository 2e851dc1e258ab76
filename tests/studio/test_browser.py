"""Everything one does on the studio's page, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browsing import chosen, draw, run_to_the_end, settled, two_modes, typed, w1_at_the_end
from conftest import Studio
from playwright.sync_api import Page

import himatch as hm

RUN = "halfcheetah-cdt"


@pytest.mark.parametrize("tool", ["curve", "bars"])
def test_two_modes_drawn_with_the_mouse_are_matched(open_page: Callable[..., Page], tool: str) -> None:
    page = open_page()
    chosen(page, robots=2, seed=3, conditioning="planned")
    page.click("#clear")
    page.click(f"[data-tool={tool}]")
    draw(page, two_modes(0.45, 0.9))
    expression = settled(page, "")
    w1 = run_to_the_end(page)
    target = hm.load(RUN).match(expression, episodes=2, seed=3, conditioning="planned")
    assert w1 == target.w1
    assert page.inner_text("#w1") == f"{w1:.3g}".ljust(5, "0")[: len(page.inner_text("#w1"))]
    assert RUN in page.inner_text("#command")


def test_erasing_smoothing_and_undoing(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.click("#clear")
    draw(page, two_modes(0.45, 0.9))
    both = settled(page, "")
    page.click("[data-tool=erase]")
    draw(page, [(0.8, 0.1), (0.99, 0.1)])
    one = settled(page, both)
    assert len(one) < len(both)
    page.click("[data-tool=smooth]")
    draw(page, [(0.3, 0.1), (0.6, 0.1), (0.3, 0.1)])
    smooth = settled(page, one)
    assert smooth.count("uniform") > one.count("uniform")
    page.click("#undo")
    assert settled(page, smooth) == one


def test_bins_are_drawn_with_the_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    before = page.input_value("#expression")
    page.focus("#target")
    page.keyboard.press("End")
    said = page.get_attribute("#target", "aria-valuetext") or ""
    page.keyboard.press("ArrowUp")
    assert settled(page, before) != before
    assert page.get_attribute("#target", "aria-valuetext") != said


@pytest.mark.parametrize(("text", "place"), [("0.5*normal(4,1) + 0.5*nrmal(10,1)", "nrmal"), ("normal(4,-1)", "-1")])
def test_a_mistake_is_shown_where_it_is(open_page: Callable[..., Page], text: str, place: str) -> None:
    page = open_page(quiet=False)  # the browser says that an answer was 422
    shown = page.get_attribute("#target", "aria-valuetext")
    page.fill("#expression", text)
    page.press("#expression", "Enter")
    page.wait_for_selector("#behind mark", state="attached")
    assert page.locator("#behind mark").inner_text().startswith(place)
    assert page.locator("#behind").evaluate("element => element.textContent").strip() == text
    assert len(page.inner_text("#problem")) > 10
    assert page.get_attribute("#expression", "aria-invalid") == "true"
    assert page.get_attribute("#target", "aria-valuetext") == shown
    typed(page, "normal(4,1)")
    assert page.locator("#behind mark").count() == 0


def test_the_target_changes_while_it_runs(open_page: Callable[..., Page]) -> None:
    page = open_page()
    chosen(page, robots=2, seed=1, conditioning="nominal")
    typed(page, "normal(10,1)")
    page.select_option("#speed", "0.5")
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#progress').value >= 3")
    typed(page, "normal(4,1)")
    page.select_option("#speed", "50")
    w1 = w1_at_the_end(page)
    assert w1 != hm.load(RUN).match("normal(4,1)", episodes=2, seed=1).w1
    assert w1 != hm.load(RUN).match("normal(10,1)", episodes=2, seed=1).w1


def test_pause_reset_and_run_again(open_page: Callable[..., Page]) -> None:
    page = open_page()
    chosen(page, robots=2, seed=1)
    page.select_option("#speed", "1")
    page.keyboard.press("Escape")
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#progress').value >= 5")
    page.click("#play")
    page.wait_for_selector("body[data-status=paused]")
    page.click("#reset")
    page.wait_for_function("() => document.querySelector('#progress').value === 0")
    assert page.get_attribute("body", "data-status") == "paused"
    page.select_option("#speed", "50")
    page.click("#play")
    first = w1_at_the_end(page)
    assert run_to_the_end(page) == first


def test_two_pages_run_at_once(open_page: Callable[..., Page]) -> None:
    pages = [open_page(), open_page()]
    targets = ["normal(4,1)", "normal(11,1)"]
    for page, target in zip(pages, targets, strict=True):
        chosen(page, robots=2, seed=7, conditioning="nominal")
        typed(page, target)
    for page in pages:
        page.select_option("#speed", "2")
        page.click("#play")
    policy = hm.load(RUN)
    for page, target in zip(pages, targets, strict=True):
        assert w1_at_the_end(page) == policy.match(target, episodes=2, seed=7).w1


def test_a_lost_connection_is_regained(open_page: Callable[..., Page], studio: Studio) -> None:
    page = open_page(quiet=False)  # the browser says that it cannot connect
    chosen(page, robots=2, seed=2, conditioning="nominal")
    page.select_option("#speed", "0.25")
    page.click("#play")
    page.wait_for_selector("body[data-status=playing]")
    expression = page.input_value("#expression")
    studio.stop()
    page.wait_for_selector("#link[data-state=lost]")
    assert "lost" in page.inner_text("#banner")
    studio.start()
    page.wait_for_selector("#link[data-state=open]")
    page.wait_for_selector("body[data-status=playing]")
    page.select_option("#speed", "50")
    assert w1_at_the_end(page) == hm.load(RUN).match(expression, episodes=2, seed=2).w1


def test_a_phone_has_room_for_it(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#play").is_visible()
    run_to_the_end(page)
    assert page.evaluate("window.shifted") < 0.01


def test_light_and_dark(open_page: Callable[..., Page]) -> None:
    page = open_page()
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#theme")
    assert page.evaluate(background) != light
    page.reload()
    assert page.evaluate(background) != light


def test_a_picture_and_a_film_are_saved(open_page: Callable[..., Page]) -> None:
    page = open_page()
    typed(page, "normal(4,1) for 40")
    page.click("#save summary")
    with page.expect_download() as picture:
        page.click("[data-save=picture]")
    assert picture.value.path().read_bytes().startswith(b"\x89PNG")
    page.click("#save summary")
    page.click("[data-save=film]")
    with page.expect_download() as film:
        page.select_option("#speed", "1")
        page.click("#play")
        w1_at_the_end(page)
    content = film.value.path().read_bytes()
    assert content.startswith(b"\x1aE\xdf\xa3") or content[4:8] == b"ftyp"  # WebM, or MP4
    assert len(content) > 5_000
