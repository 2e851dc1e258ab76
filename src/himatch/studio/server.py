"""The studio's server: one process on this machine, gone when it is interrupted."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress

import uvicorn

from himatch.errors import HimatchError, note
from himatch.studio.app import make_app
from himatch.studio.catalog import Catalog
from himatch.studio.guard import is_loopback
from himatch.studio.messages import BODY

PORT = 8450
TRIED = 20  # ports from there on, where none is named
# oneDNN keeps what it compiled for every number of robots that it has seen, megabytes each, up to 1,024 of these: a
# server that shows this many robots today and that many tomorrow would grow to a gigabyte.
PRIMITIVES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
GRACE = 1  # seconds for what is being answered when it is interrupted


def run_studio(
    runs: Sequence[str] = (),
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    demonstrations: Sequence[str] = (),
    device: str = "cpu",
) -> None:
    """Serve the page until somebody presses Ctrl-C; without ``runs`` with the models that come with himatch."""
    os.environ.setdefault(*PRIMITIVES)  # read when the first product is made
    listening = _listen(host, port)
    try:
        catalog = Catalog.read(runs, demonstrations, device)
        catalog.as_json()  # what is wrong with a run is said here, and the page need not wait for it
        token = None if is_loopback(host) else secrets.token_urlsafe(24)
        address = _address(listening, token)
        if token is not None:
            note(f"the studio listens on {host}, which other machines reach; the token in its address keeps them out")
        print(f"himatch studio: {address}\nCtrl-C ends it", flush=True)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        serve(catalog, listening, token)
    finally:
        listening.close()


def serve(catalog: Catalog, listening: socket.socket, token: str | None = None) -> None:
    """Answer on a socket until the process is interrupted."""
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(catalog, token),
            log_level="error",
            access_log=False,
            lifespan="on",
            loop="asyncio",
            http="h11",
            ws="websockets-sansio",
            ws_max_size=BODY,
            ws_max_queue=8,
            ws_per_message_deflate=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
        )
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises it again once everything is closed
        server.run(sockets=[listening])
    print("himatch studio: closed", file=sys.stderr)


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket on this port, or on the first one that is free."""
    if port is not None and not 0 <= port <= 65_535:
        raise HimatchError(f"a port is a number from 0 to 65535, got {port}")
    ports = range(PORT, PORT + TRIED) if port is None else [port]
    for number in ports:
        try:
            return socket.create_server((host, number), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as reason:
            said = reason.strerror or str(reason)
    which = f"port {port}" if port is not None else f"the ports {PORT} to {PORT + TRIED - 1}"
    raise HimatchError(f"cannot listen on {host}, {which} ({said}); give another (--port N)")


def _address(listening: socket.socket, token: str | None) -> str:
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:  # every address of this machine, whose name others know
        host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")
