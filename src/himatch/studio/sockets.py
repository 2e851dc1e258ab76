"""The WebSocket of a view: commands go to its thread one by one, and what that says goes out as fast as it can."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from himatch.errors import HimatchError
from himatch.studio.answers import refusal, text_of
from himatch.studio.catalog import VIEWS, Catalog
from himatch.studio.messages import BODY, command
from himatch.studio.view import View

RATE, BURST = 50.0, 20.0  # messages a second, and at once
MOST_WAITING = 32  # commands and answers; whoever sends more waits
NAP = 0.02  # seconds
TRY_AGAIN_LATER = 1013


class Views:
    """All views that are open, at most :data:`VIEWS`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self._open = catalog, set[View]()

    def __len__(self) -> int:
        """How many simulations are not freed yet."""
        return len(self._open)

    async def serve(self, socket: WebSocket) -> None:
        """Show what a browser asks for until it leaves."""
        try:
            await socket.accept()
        except (OSError, RuntimeError, WebSocketDisconnect):  # it has left already
            return
        if len(self._open) >= VIEWS:
            await _leave(socket, f"{VIEWS} views are open, and no more fit; close another")
            return
        loop, wake = asyncio.get_running_loop(), asyncio.Event()

        def deliver() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(wake.set)

        view = View(self._catalog, deliver, self._open.discard)
        self._open.add(view)
        sending = asyncio.create_task(_send(socket, view, wake))
        try:
            await _receive(socket, view)
        finally:
            view.close()
            sending.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await sending

    def close(self, seconds: float = 10.0) -> None:
        """Free all simulations."""
        views = list(self._open)
        for view in views:
            view.close()
        until = time.monotonic() + seconds
        for view in views:
            view.join(max(0.0, until - time.monotonic()))


async def _send(socket: WebSocket, view: View, wake: asyncio.Event) -> None:
    """A browser that reads slowly is waited for here; meanwhile its outbox keeps the latest picture only."""
    while True:
        await wake.wait()
        wake.clear()
        while (payload := view.outbox.take()) is not None:
            if isinstance(payload, bytes):
                await socket.send_bytes(payload)
            else:
                await socket.send_text(payload)


async def _receive(socket: WebSocket, view: View) -> None:
    left, at = BURST, time.monotonic()
    while True:
        message = await socket.receive()
        if message["type"] != "websocket.receive":
            return
        try:
            view.do(command(_content(message)))
        except HimatchError as reason:
            view.outbox.put(text_of({"type": "error", **refusal(reason)}))
        now = time.monotonic()
        left, at = min(BURST, left + RATE * (now - at)) - 1.0, now
        if left < 0:
            await asyncio.sleep(-left / RATE)
        while view.waiting > MOST_WAITING:
            await asyncio.sleep(NAP)


def _content(message: Any) -> Any:
    text = message.get("text")
    if text is None:
        raise HimatchError("messages are JSON texts, not bytes")
    if len(text) > BODY:
        raise HimatchError(f"a message has at most {BODY} characters")
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise HimatchError("this message is not JSON") from None


def _no_number(text: str) -> Any:
    raise ValueError(text)


async def _leave(socket: WebSocket, why: str) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_text(text_of({"type": "error", **refusal(why)}))
        await socket.close(TRY_AGAIN_LATER)
