"""A studio in this process and a real browser. Browser tests are collected where a Chromium is on PATH, the long ones
when their files are named, as ``make test-browser`` does."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from browsing import CHROMIUM, FLAGS

if TYPE_CHECKING:
    import uvicorn
    from playwright.sync_api import Browser, Page

    from himatch.studio.catalog import Catalog

SHORT = "test_browser_short.py"
PATIENCE = 120_000  # milliseconds, on a machine that has other things to do


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without a Chromium there is nothing to run these in."""
    if not collection_path.name.startswith("test_browser"):
        return None
    named = any(Path(one.partition("::")[0]).name == collection_path.name for one in config.invocation_params.args)
    wanted = CHROMIUM is not None and (named or collection_path.name == SHORT)
    return None if wanted else True


@dataclass
class Studio:
    """A studio on a port of its own, which can go away and come back."""

    catalog: Callable[[], Catalog]
    port: int = 0
    _served: list[tuple[uvicorn.Server, Thread, socket.socket]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Begin to answer, again at the same address."""
        import uvicorn

        from himatch.studio.app import make_app

        app = make_app(self.catalog())
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(app, log_level="error", ws="websockets-sansio", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        self._served.append((server, thread, listening))

    def stop(self) -> None:
        """Answer no more."""
        server, thread, listening = self._served.pop()
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    """The studio of a bundled run."""
    from himatch.studio.catalog import Catalog

    made = Studio(lambda: Catalog.read(["halfcheetah-cdt"]))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(studio: Studio, chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the studio in a window of its own; whatever the browser complains of fails the test."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def opened(*, quiet: bool = True, width: int = 1280, height: int = 900) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(WATCH_SHIFTS)
        if quiet:
            page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda reason: complaints.append(str(reason)))
        page.on("request", lambda asked: complaints.append(asked.url) if studio.address[7:] not in asked.url else None)
        page.goto(studio.address)
        page.wait_for_function(
            "() => !document.querySelector('#play').disabled && document.querySelector('#mixture').textContent > 'W'"
        )
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


WATCH_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
