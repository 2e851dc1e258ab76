"""Who may talk to the studio: pages of its own address, with its token where it is not on loopback, within bounds."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from himatch.studio.answers import Answer
from himatch.studio.messages import BODY

COOKIE = "himatch-studio"
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?")
LOCAL = ("localhost", "127.0.0.1", "::1")
# Scripts and styles come from the page's own files; its robots are drawn without anything from elsewhere.
POLICY = (
    "default-src 'self'; connect-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Answers whatever may not reach the application, and bounds what does.

    A page elsewhere on the web can send requests here from a browser on this machine. It cannot choose their ``Host``
    (a name of its own that it points at this machine stays in there) nor their ``Origin``. With a ``token`` any
    ``Host`` will do: whoever has the token was given it.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = _headers(scope)
        why = self._objection(scope, headers)
        if why is not None:
            await _refuse(scope, receive, send, 403, why)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or len(declared) > 12 or int(declared) > BODY:
            await _refuse(scope, receive, send, 413, f"a message has at most {BODY} bytes")
            return
        body = await _body(receive)
        if body is None:
            await _refuse(scope, receive, send, 413, f"a message has at most {BODY} bytes")
            return
        await self.app(scope, _replayed(body, receive), self._with_headers(scope, send))

    def _objection(self, scope: Scope, headers: Mapping[str, str]) -> str | None:
        host = headers.get("host", "")
        if self.token is None and _name(host) not in LOCAL:
            return "this studio answers on localhost only; open it by the address that it printed"
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return "this comes from a page of another address; open the studio itself"
        if self.token is not None and not self._known(scope, headers):
            return "the token is missing or wrong; open the studio by the address that it printed"
        return None

    def _known(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        assert self.token is not None
        given = [_cookie(headers), headers.get("authorization", "").removeprefix("Bearer "), _of_query(scope)]
        return any(secrets.compare_digest(one.encode(), self.token.encode()) for one in given if one)

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = dict(HEADERS)
                if self.token is not None and _of_query(scope) == self.token:
                    added["set-cookie"] = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                message["headers"] = [
                    *message.get("headers", ()),
                    *((k.encode(), v.encode()) for k, v in added.items()),
                ]
            await send(message)

        return sent


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _name(host: str) -> str:
    """The name or address in a ``Host``, without its port."""
    found = HOST.fullmatch(host.lower())
    return "" if found is None else found[1].strip("[]")


def _same(origin: str, host: str) -> bool:
    """Whether a page is from where it asks."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return str(found.value) if found else ""


def _of_query(scope: Scope) -> str:
    try:
        found = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20)
    except ValueError:
        return ""
    return str(found.get("token", [""])[0])


async def _body(receive: Receive) -> bytes | None:
    """All of it; ``None`` where it is too long."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # whoever sent it is gone
            return b""
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":  # closed before it is accepted, which is answered with 403
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    answer = Answer({"error": why, "at": None}, status_code=status, headers={"connection": "close", **HEADERS})
    await answer(scope, receive, send)
