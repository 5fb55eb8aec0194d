"""A hub on loopback: it speaks the hub's API over real sockets, and fails on demand.

Files in the safetensors format and tokenizers are large ones, as on the hub: `resolve` sends
to another host (`localhost` where the hub itself is `127.0.0.1`), to a link that needs no token.
It says as well that they could be had in chunks (xet), which this hub has not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

Fault = Callable[["Exchange"], None]
"""Answers one request for a file in place of the hub."""


@dataclass
class Repo:
    folder: Path
    licence: str | None = "apache-2.0"
    gated: bool = False
    commit: str = ""

    def __post_init__(self) -> None:
        self.commit = hashlib.sha1(str(self.folder).encode()).hexdigest()

    def etag(self, name: str) -> str:
        data = (self.folder / name).read_bytes()
        if large(name):
            return hashlib.sha256(data).hexdigest()
        return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def large(name: str) -> bool:
    return name.endswith(".safetensors") or name == "tokenizer.json"


@dataclass
class Seen:
    """One request that the hub had."""

    method: str
    path: str
    headers: Message = field(repr=False)  # by names in any case


class Exchange:
    """A request for the contents of `data`, and the ways to answer it."""

    def __init__(self, handler: _Handler, data: bytes) -> None:
        self.handler, self.data = handler, data

    @property
    def start(self) -> int:
        wanted = self.handler.headers.get("Range", "")
        return int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        if self.handler.command != "HEAD":
            self.handler.wfile.write(body)

    def serve(self) -> None:
        """As it should be."""
        size, start = len(self.data), self.start
        if start >= size > 0:
            self.send(416, Content_Range=f"bytes */{size}")
        elif start:
            rest = f"bytes {start}-{size - 1}/{size}"
            self.send(206, self.data[start:], Content_Range=rest)
        else:
            self.send(200, self.data)

    def begin(self, length: int | None) -> None:
        """The head alone; without `length`, the end of the connection is the end of the body."""
        start, size = self.start, len(self.data)
        self.handler.send_response(206 if start else 200)
        if start:
            self.handler.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if length is not None:
            self.handler.send_header("Content-Length", str(length))
        self.handler.send_header("Connection", "close")
        self.handler.end_headers()
        self.handler.close_connection = True

    def write(self, body: bytes) -> None:
        self.handler.wfile.write(body)
        self.handler.wfile.flush()

    def reset(self) -> None:
        """End the connection as a crash would."""
        linger = b"\1\0\0\0\0\0\0\0"
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.handler.close_connection = True


def cut(share: float = 0.43, length: bool = True) -> Fault:
    """The connection ends after this share of what was asked for."""

    def answer(exchange: Exchange) -> None:
        rest = exchange.data[exchange.start :]
        exchange.begin(len(rest) if length else None)
        exchange.write(rest[: int(len(rest) * share)])

    return answer


def reset(share: float = 0.5) -> Fault:
    def answer(exchange: Exchange) -> None:
        rest = exchange.data[exchange.start :]
        exchange.begin(len(rest))
        exchange.write(rest[: int(len(rest) * share)])
        exchange.reset()

    return answer


def page(exchange: Exchange) -> None:
    """What a hotel's network says to everything."""
    exchange.send(200, b"<html>" + b"Please sign in. " * 39 + b"</htm", Content_Type="text/html")


def whole(exchange: Exchange) -> None:
    """The whole body, whatever range was asked for."""
    exchange.send(200, exchange.data)


def longer(exchange: Exchange) -> None:
    exchange.begin(None)
    exchange.write(exchange.data[exchange.start :] + b"and more")


def status(code: int, **headers: str) -> Fault:
    return lambda exchange: exchange.send(code, b"no", **headers)


def spoilt(exchange: Exchange) -> None:
    """The right length, another content."""
    exchange.data = exchange.data[:-1] + bytes([exchange.data[-1] ^ 1])
    exchange.serve()


def trickle(pause: float = 0.1, share: float = 0.2) -> Fault:
    """A part at once, then a byte now and then, until the other side has enough."""

    def answer(exchange: Exchange) -> None:
        rest = exchange.data[exchange.start :]
        exchange.begin(len(rest))
        at = int(len(rest) * share)
        exchange.write(rest[:at])
        with contextlib.suppress(OSError):
            while at < len(rest) and not exchange.handler.hub.closing.wait(pause):
                exchange.write(rest[at : at + 1])
                at += 1

    return answer


def slowly(rate: float) -> Fault:
    """So many bytes a second."""

    def answer(exchange: Exchange) -> None:
        rest = exchange.data[exchange.start :]
        exchange.begin(len(rest))
        step = max(1, int(rate / 50))
        with contextlib.suppress(OSError):
            for at in range(0, len(rest), step):
                exchange.write(rest[at : at + step])
                if exchange.handler.hub.closing.wait(0.02):
                    return

    return answer


class Hub:
    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.seen: list[Seen] = []
        self.token: str | None = None
        self.refused = ""
        """A token that is none of anybody's any more."""
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        """By file name, or `api` for listings: each answers one request, in order."""
        self.always: dict[str, Fault] = {}
        self.closing = threading.Event()
        self._expired: set[str] = set()
        self._links = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.hub = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Hub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, name: str, folder: Path, **options: Any) -> Repo:
        self.repos[name] = Repo(folder, **options)
        return self.repos[name]

    def expire_links(self) -> None:
        """What has been handed out so far is no longer valid."""
        self._expired |= {str(n) for n in range(1, self._links + 1)}

    def link(self, path: str) -> str:
        self._links += 1
        return f"http://localhost:{self.port}/cdn/{path}?signature={self._links}"

    def expired(self, query: str) -> bool:
        return parse_qs(query).get("signature", [""])[0] in self._expired

    def gets(self, name: str) -> list[Seen]:
        """The requests for the contents of a file."""
        return [s for s in self.seen if s.method == "GET" and urlsplit(s.path).path.endswith(name)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        return self.server.hub  # type: ignore[attr-defined,no-any-return]

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.hub.seen.append(Seen(self.command, self.path, self.headers))
        with contextlib.suppress(OSError):  # the client may leave when it likes
            self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        words = parts.path.strip("/").split("/")
        match words:
            case ["api", "models", _, _, "xet-read-token", _]:
                Exchange(self, b"").send(404)
            case ["api", "models", owner, name, *_]:
                self._list(f"{owner}/{name}", words[4:])
            case [owner, name, "resolve", revision, *file]:
                self._resolve(f"{owner}/{name}", revision, "/".join(file))
            case ["cdn", owner, name, file]:
                if self.hub.expired(parts.query):
                    Exchange(self, b"").send(403, b"expired")
                else:
                    self._contents(self.hub.repos[f"{owner}/{name}"], file)
            case _:
                Exchange(self, b"").send(404)

    def _repo(self, name: str) -> Repo | None:
        if self.headers.get("Authorization") == f"Bearer {self.hub.refused}":
            words = "Invalid credentials in Authorization header"
            Exchange(self, b"").send(401, X_Error_Message=words)
            return None
        repo = self.hub.repos.get(name)
        known = self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if repo is None:
            Exchange(self, b"").send(401, X_Error_Code="RepoNotFound")
        elif repo.gated and not known:
            Exchange(self, b"").send(403, X_Error_Code="GatedRepo")
            return None
        return repo

    def _list(self, name: str, rest: list[str]) -> None:
        fault = self._fault("api")
        if fault:
            fault(Exchange(self, b"{}"))
            return
        repo = self._repo(name)
        if repo is None:
            return
        if rest[:1] == ["revision"] and rest[1:] not in (["main"], [repo.commit]):
            Exchange(self, b"").send(404, X_Error_Code="RevisionNotFound")
            return
        siblings = []
        for file in sorted(repo.folder.iterdir()):
            size, etag = file.stat().st_size, repo.etag(file.name)
            entry: dict[str, Any] = {"rfilename": file.name, "size": size, "blobId": etag}
            if large(file.name):
                entry["blobId"] = hashlib.sha1(etag.encode()).hexdigest()
                entry["lfs"] = {"size": size, "sha256": etag, "pointerSize": 135}
            siblings.append(entry)
        card = {} if repo.licence is None else {"license": repo.licence}
        value = {
            "_id": "1", "id": name, "modelId": name, "sha": repo.commit, "private": False,
            "tags": [], "downloads": 0, "siblings": siblings, "cardData": card,
        }  # fmt: skip
        body = json.dumps(value).encode()
        Exchange(self, b"").send(200, body, Content_Type="application/json")

    def _resolve(self, name: str, revision: str, file: str) -> None:
        repo = self._repo(name)
        if repo is None:
            return
        if revision not in ("main", repo.commit) or not (repo.folder / file).is_file():
            Exchange(self, b"").send(404, X_Error_Code="EntryNotFound")
            return
        etag = repo.etag(file)
        if large(file):
            size = str((repo.folder / file).stat().st_size)
            Exchange(self, b"").send(
                302,
                Location=self.hub.link(f"{name}/{file}"),
                X_Repo_Commit=repo.commit,
                X_Linked_Etag=f'"{etag}"',
                X_Linked_Size=size,
                X_Xet_Hash=etag,
                X_Xet_Refresh_Route=f"{self.hub.endpoint}/api/models/{name}/xet-read-token/main",
            )
            return
        data = (repo.folder / file).read_bytes()
        if self.command == "HEAD":
            Exchange(self, data).send(200, data, X_Repo_Commit=repo.commit, ETag=f'"{etag}"')
        else:
            self._contents(repo, file)

    def _contents(self, repo: Repo, file: str) -> None:
        exchange = Exchange(self, (repo.folder / file).read_bytes())
        fault = self._fault(file)
        if fault:
            fault(exchange)
        else:
            exchange.serve()

    def _fault(self, name: str) -> Fault | None:
        if self.command == "HEAD":
            return None
        if self.hub.faults[name]:
            return self.hub.faults[name].pop(0)
        return self.hub.always.get(name)


@contextlib.contextmanager
def running() -> Iterator[Hub]:
    with Hub() as hub:
        yield hub


def empty_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the hub's client keeps files from now on; nothing of the user's own is asked."""
    monkeypatch.setenv("HF_HOME", str(folder / "hf"))
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return folder / "hf" / "hub"


def parts(cache: Path) -> list[int]:
    """Sizes of the files that are growing in the cache of the hub at this moment."""
    sizes = []
    for file in cache.rglob("*.incomplete"):
        with contextlib.suppress(FileNotFoundError):  # it has just got its name
            sizes.append(file.stat().st_size)
    return sizes


def wait_until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)
