"""The API of the studio, which its own page uses; OpenAPI describes it at ``/api/openapi.json``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.websockets import WebSocket

from himatch._runtime.memory import give_back
from himatch._version import __version__
from himatch.errors import HimatchError, collected_notes
from himatch.evaluation import play
from himatch.studio.answers import Answer, refusal
from himatch.studio.catalog import Catalog, UnknownRunError
from himatch.studio.guard import Guard
from himatch.studio.messages import Asked, Wanted, mistake
from himatch.studio.sockets import Views

PAGE = Path(__file__).parent / "page"
THREADS = 8  # that answer requests
TYPES = {
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
SAID = {
    404: "there is nothing here; the API is described at /api/openapi.json",
    405: "this address wants another method (GET or POST)",
}


def make_app(catalog: Catalog, token: str | None = None) -> Guard:
    """The application behind its guard; ``token`` is what browsers must know."""
    views, matching, closing = Views(catalog), Lock(), Event()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        closing.set()
        await anyio.to_thread.run_sync(views.close)

    app = FastAPI(
        title="himatch studio",
        version=__version__,
        description="Draw what a robot's future should look like, and watch it happen.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
        default_response_class=Answer,
    )
    app.state.views = views
    _add_refusals(app)
    _add_page(app)

    @app.get("/api/runs", summary="The runs that were named at start, and the bounds of every number")
    def runs() -> Answer:
        return Answer(catalog.as_json())

    @app.get("/api/runs/{name}/chart", summary="Bins, the data's shares of them, and targets to begin with")
    def chart(name: str, feature: str | None = None) -> Answer:
        return Answer(catalog[name].chart(feature))

    @app.get("/api/runs/{name}/geometry", summary="The robot as shapes by body, and a camera that follows it")
    def geometry(name: str) -> Answer:
        found = catalog[name].geometry
        if found is None:
            raise HimatchError(f"{name} is not simulated by MuJoCo; its views send traces of its features")
        return Answer(found)

    @app.post("/api/target", summary="A target before anything is rolled out: bars, coverage, mixture, promise")
    def target(asked: Asked) -> Answer:
        return Answer(catalog[asked.run].assessed(asked))

    @app.post("/api/match", summary="Rollouts under a target and how they compare with it, as policy.match")
    def match(wanted: Wanted) -> Answer:
        if not matching.acquire(blocking=False):
            raise HTTPException(429, "another match is being played; try again when it is over")
        try:
            return Answer(_matched(catalog, wanted, closing))
        finally:
            give_back()
            matching.release()

    @app.websocket("/ws/view")
    async def view(socket: WebSocket) -> None:
        await views.serve(socket)

    return Guard(app, token)


def _matched(catalog: Catalog, wanted: Wanted, closing: Event) -> dict[str, Any]:
    def go_on(_: int) -> None:
        if closing.is_set():
            raise HimatchError("the studio is closed")

    run = catalog[wanted.run]
    with collected_notes() as notes:
        trial = run.trial(wanted)
        try:
            play(trial, go_on)
            (result,) = trial.results()[0]
        finally:
            trial.close()
        return run.scored(result, wanted) | {"notes": notes}


def _add_refusals(app: FastAPI) -> None:
    """Every mistake is one sentence, and where in an expression it stands."""

    @app.exception_handler(HimatchError)
    async def bad(_: Request, reason: Exception) -> Response:
        return Answer(refusal(reason), status_code=404 if isinstance(reason, UnknownRunError) else 422)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, reason: Exception) -> Response:
        assert isinstance(reason, RequestValidationError)
        return Answer(refusal(mistake(reason.errors())), status_code=422)

    @app.exception_handler(HTTPException)
    async def elsewhere(_: Request, reason: Exception) -> Response:
        assert isinstance(reason, HTTPException)
        said = SAID.get(reason.status_code, str(reason.detail))
        return Answer(refusal(said), status_code=reason.status_code, headers=reason.headers)


def _add_page(app: FastAPI) -> None:
    """The page's own files, which are listed once: no name that comes from outside is looked up anywhere."""
    files = {path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.is_file()}

    def handler(path: Path) -> Callable[[], Response]:
        def page() -> Response:
            return FileResponse(path, media_type=TYPES[path.suffix])

        return page

    for name, path in files.items():
        if path.suffix in TYPES:
            app.add_api_route(f"/page/{name}", handler(path), methods=["GET"], include_in_schema=False)
    if "index.html" in files:
        app.add_api_route("/", handler(files["index.html"]), methods=["GET"], include_in_schema=False)
