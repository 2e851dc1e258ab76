"""A folder that stands in for the Hugging Face Hub: the few requests of its protocol that runs need, on this machine.

Uploads and downloads go through the real ``huggingface_hub``; only the machine at the other end is replaced. A
repository is ``USER/NAME/``, and every commit in it a folder of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from waiting import PATIENCE

TOKEN = "hf_a_token_of_nobody"


class LocalHub:
    """Repositories in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.private: dict[str, bool] = {}
        self.downloads: list[str] = []

    def commits(self, repository: str) -> list[str]:
        return (self.root / repository / "commits").read_text().split()

    def files(self, repository: str, commit: str | None = None) -> dict[str, Path]:
        folder = self.root / repository / (commit or self.commits(repository)[-1])
        return {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}

    def create(self, repository: str, *, private: bool = False) -> None:
        if not (self.root / repository).exists():
            self.private[repository] = private
            self._store(repository, {".gitattributes": b""})

    def change(self, repository: str, new: dict[str, bytes], deleted: tuple[str, ...] = ()) -> str:
        kept = {name: path.read_bytes() for name, path in self.files(repository).items() if name not in deleted}
        return self._store(repository, kept | new)

    def _store(self, repository: str, content: dict[str, bytes]) -> str:
        place = self.root / repository
        place.mkdir(parents=True, exist_ok=True)
        before = self.commits(repository) if (place / "commits").exists() else []
        commit = hashlib.sha1(repr((len(before), sorted(content.items()))).encode()).hexdigest()
        shutil.rmtree(place / commit, ignore_errors=True)
        for name, data in content.items():
            (place / commit / name).parent.mkdir(parents=True, exist_ok=True)
            (place / commit / name).write_bytes(data)
        (place / "commits").write_text("\n".join([*before, commit]))
        return commit

    def resolve(self, repository: str, revision: str) -> str | None:
        return next((c for c in reversed(self.commits(repository)) if revision in ("main", c)), None)


class _Requests(BaseHTTPRequestHandler):
    hub: LocalHub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlparse(self.path).path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            repository, rest = "/".join(parts[2:4]), parts[4:]
        else:
            repository, rest = "/".join(parts[:2]), parts[2:]
        if not (self.hub.root / repository).is_dir():
            return self._reply(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        commit = self.hub.resolve(repository, rest[1] if len(rest) > 1 else "main")
        if commit is None:
            return self._reply(404, {"error": "Revision not found"}, {"X-Error-Code": "RevisionNotFound"})
        files = self.hub.files(repository, commit)
        if rest[:1] == ["resolve"]:
            return self._file(files, "/".join(rest[2:]), commit)
        if rest[:1] == ["tree"]:
            rows = [
                {"type": "file", "path": name, "size": path.stat().st_size, "oid": _oid(path)}
                for name, path in files.items()
            ]
            return self._reply(200, rows)
        siblings = [{"rfilename": name} for name in files]
        return self._reply(200, {"id": repository, "modelId": repository, "sha": commit, "siblings": siblings})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = urlparse(self.path).path
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self._reply(401, {"error": "Invalid credentials"})
        if path == "/api/repos/create":
            asked = json.loads(body)
            repository = f"{asked.get('organization', 'nobody')}/{asked['name']}"
            exists = (self.hub.root / repository).exists()
            private = asked.get("private") is True or asked.get("visibility") == "private"  # by version
            self.hub.create(repository, private=private)
            return self._reply(409 if exists else 200, {"url": f"{self._address}/{repository}"})
        if path == "/api/validate-yaml":
            return self._reply(200, {"errors": [], "warnings": []})
        parts = path.strip("/").split("/")
        repository = "/".join(parts[2:4])
        if parts[4] == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            rows = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return self._reply(200, {"files": rows})
        lines = [json.loads(line) for line in body.splitlines()]
        new = {x["value"]["path"]: base64.b64decode(x["value"]["content"]) for x in lines if x["key"] == "file"}
        deleted = tuple(x["value"]["path"] for x in lines if x["key"] == "deletedFile")
        commit = self.hub.change(repository, new, deleted)
        url = f"{self._address}/{repository}/commit/{commit}"
        return self._reply(200, {"success": True, "commitUrl": url, "commitOid": commit})

    @property
    def _address(self) -> str:
        return f"http://{self.headers['Host']}"

    def _file(self, files: dict[str, Path], name: str, commit: str) -> None:
        if name not in files:
            return self._reply(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
        if self.command == "GET":
            self.hub.downloads.append(name)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{_oid(files[name])}"'}
        return self._reply(200, files[name].read_bytes(), headers)

    def _reply(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _oid(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@contextmanager
def local_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """``huggingface_hub`` talks to a folder, is logged in there and has an empty cache."""
    from huggingface_hub import constants

    hub = LocalHub(folder / "hub")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Requests", (_Requests,), {"hub": hub}))
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "cache"))
    for patience in ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"):
        monkeypatch.setattr(constants, patience, PATIENCE)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
