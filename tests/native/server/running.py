"""Starts a llama-server, asks it, and says why a greedy answer may differ from another."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.library import Pair

START_S = 120
ANSWER_S = 120
N_CTX = 4608


@dataclass(frozen=True, slots=True)
class Reply:
    """What `/completion` gave: text, ids, and how it came about."""

    text: str
    ids: tuple[int, ...]
    reused: int
    drafted: int
    accepted: int
    body: dict[str, Any]


@dataclass(slots=True)
class Server:
    """A llama-server of `tools` on a free port; use it in `with`, which ends it.

    Leaving the block fails the test if the server ended by itself or did not end well.
    """

    tools: Path
    arguments: Sequence[object]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    answered: int = 0  # completions so far
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Server:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [self.tools / "llama-server", "--host", "127.0.0.1", "--port", self.port]
        # one thread: the demo is so small that a second one mostly waits
        command += ["--no-warmup", "-t", 1, "-lv", 4, *self.arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
            )
        for _ in range(START_S * 20):
            if self._is_ready():
                return self
            # waits for an early end, which would be the reason why it does not answer
            try:
                status = self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"llama-server ended with status {status}:\n{self.tail()}")
        self._kill()
        pytest.fail(f"llama-server did not answer in {START_S} s:\n{self.tail()}")

    def __exit__(self, *exc: object) -> None:
        assert self.process
        early = self.process.poll()
        self.process.terminate()
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self._kill()
            pytest.fail(f"llama-server does not stop:\n{self.tail()}")
        if early is not None or status != 0:
            pytest.fail(f"llama-server ended with status {status}:\n{self.tail()}")

    def _kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def _is_ready(self) -> bool:
        try:
            return self._ask("GET", "/health", None)[0] == 200
        except ConnectionError:
            return False

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def tail(self) -> str:
        return self.log.read_text("utf-8", "replace")[-3000:]

    def get(self, path: str) -> str:
        status, text = self._ask("GET", path, None)
        assert status == 200, text
        return text.decode()

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            status, text = self._ask("POST", path, body)
        except OSError as exc:
            pytest.fail(f"{path}: {exc!r}\n{self.tail()}")
        assert status == 200, f"{text.decode()}\n{self.tail()}"
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    def complete(self, prompt: str | Sequence[int], n: int = 24, **more: Any) -> Reply:
        """Greedy unless `more` says otherwise; a prompt of token ids is taken as it is."""
        asked: dict[str, Any] = {
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "n_predict": n,
            "temperature": 0,
            "return_tokens": True,
        }
        body = self.post("/completion", asked | more)
        with self._counting:
            self.answered += 1
        timings = body["timings"]
        return Reply(
            text=body["content"],
            ids=tuple(body["tokens"]),
            reused=body["tokens_cached"] if "cache_n" not in timings else timings["cache_n"],
            drafted=timings.get("draft_n", 0),
            accepted=timings.get("draft_n_accepted", 0),
            body=body,
        )

    def cold(self, prompt: str | Sequence[int], n: int = 24, **more: Any) -> Reply:
        """The same, with nothing of an earlier request used."""
        return self.complete(prompt, n, cache_prompt=False, **more)

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self.post("/tokenize", {"content": text, "parse_special": True})["tokens"]
        return ids

    def render(self, *turns: str, think: bool = False) -> str:
        """The prompt of a conversation of alternating user and assistant turns."""
        roles = ("user", "assistant")
        chat = [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]
        more = {"enable_thinking": think}
        prompt: str = self.post(
            "/apply-template", {"messages": chat, "chat_template_kwargs": more}
        )["prompt"]
        return prompt


def arguments(pair: Pair, *more: object, draft: bool = True, ctx: int = N_CTX) -> list[object]:
    """The demo pair on the processor, with its drafter or without."""
    drafter = ["-md", pair.draft, "--spec-type", "draft-dflash"] if draft else []
    return ["-m", pair.target, "-c", ctx, "-np", 1, *drafter, *more]


def check_same(plain: Server, prompt: Sequence[int], wanted: Reply, got: Reply) -> None:
    """Equal ids; a difference is forgiven only where the target itself is undecided.

    The control is the definition of "lossless": at the first differing position, the gap
    between the target's two best log-probabilities, from a pass of one row, must be below what a
    pass of many rows of the target alone makes of the same numbers.
    """
    if got.ids == wanted.ids:
        return
    pairs = enumerate(zip(wanted.ids, got.ids, strict=False))
    common = next((i for i, (a, b) in pairs if a != b), min(len(wanted.ids), len(got.ids)))
    prefix = [*prompt, *wanted.ids[:common]]
    many_rows = _candidates(plain.cold(prefix, 1, n_probs=20))[0]
    one_row = _candidates(plain.cold(prompt, common + 1, n_probs=20))[-1]
    spread = max(abs(one_row[i] - many_rows[i]) for i in one_row.keys() & many_rows.keys())
    best, second = sorted(one_row.values(), reverse=True)[:2]
    assert best - second <= spread, (
        f"differs at token {common}, where the best two are {best - second:.4f} apart and a pass "
        f"of many rows changes them by {spread:.2g}:\n{wanted.text!r}\n{got.text!r}"
    )


def _candidates(reply: Reply) -> list[dict[int, float]]:
    """For each generated token the log-probabilities of the likeliest ids."""
    return [
        {entry["id"]: entry["logprob"] for entry in position["top_logprobs"]}
        for position in reply.body["completion_probabilities"]
    ]
