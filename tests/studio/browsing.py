"""What a hand does on the studio's page, and what it reads there."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# No sandbox within a container; software draws WebGL; nothing is fetched from elsewhere.
FLAGS = (
    *("--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
)

LEFT, RIGHT, TOP, BOTTOM = 42, 8, 24, 36  # of the chart within its canvas, as target_chart.js has them


def draw(page: Page, points: Sequence[tuple[float, float]]) -> None:
    """One stroke through points whose places and heights go from 0 to 1."""
    box = page.locator("#target").bounding_box()
    assert box is not None

    def at(point: tuple[float, float]) -> tuple[float, float]:
        across, up = box["width"] - LEFT - RIGHT, box["height"] - TOP - BOTTOM
        return box["x"] + LEFT + point[0] * across, box["y"] + TOP + (1 - point[1]) * up

    page.mouse.move(*at(points[0]))
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*at(point))
    page.mouse.up()


def two_modes(low: float, high: float) -> list[tuple[float, float]]:
    """A stroke with two humps."""

    def height(place: float) -> float:
        return 0.8 * math.exp(-(((place - low) / 0.05) ** 2)) + 0.6 * math.exp(-(((place - high) / 0.04) ** 2))

    places = [0.2 + 0.78 * k / 60 for k in range(61)]
    return [(place, height(place)) for place in places]


def typed(page: Page, expression: str) -> None:
    """Type a target and wait until the page shows it."""
    page.fill("#expression", expression)
    page.press("#expression", "Enter")
    page.wait_for_function("text => new URLSearchParams(location.hash.slice(1)).get('target') === text", arg=expression)


def settled(page: Page, before: str) -> str:
    """The expression once it is another than before."""
    page.wait_for_function("before => !['', before].includes(document.querySelector('#expression').value)", arg=before)
    return page.input_value("#expression")


def chosen(page: Page, **settings: str | int) -> None:
    """Choose conditioning, robots or seed."""
    for name, value in settings.items():
        if name == "conditioning":
            page.select_option("#conditioning", str(value))
        else:
            page.fill(f"#{name}", str(value))
            page.press(f"#{name}", "Tab")


def run_to_the_end(page: Page) -> float:
    """Run as fast as it goes; W1 at the end, all its digits."""
    page.select_option("#speed", "50")
    page.click("#play")
    return w1_at_the_end(page)


def w1_at_the_end(page: Page) -> float:
    """Wait for it."""
    page.wait_for_selector("body[data-status=ended]")
    return float(page.get_attribute("#w1", "data-value") or "nan")
