"""What the device chooses: greedy tokens in place of logits, and samples by seed and position."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.binding import NativePair, Sampling, Verify
from app.library import Pair
from tests.native.server.running import N_CTX, Server, arguments, check_same
from tests.native.server.test_speculative_simple import run

ON = {"LLAMA_SPEC_GPU_SAMPLE": "1"}
N, BLOCK = 64, 16
WHOLE = 512  # a schema lets each of its places have 22 blanks, and a model may take them all
SAMPLED: dict[str, Any] = {"temperature": 1.0, "top_k": 40, "top_p": 0.95, "min_p": 0.02}
# What is not left to the device: neither greedy nor sampled.
HOST = [
    {"repeat_penalty": 1.3},
    {"presence_penalty": 1.5},
    {"logit_bias": [[300, 2.0]]},
    {"ignore_eos": True},
    {"n_probs": 2},
    {"grammar": 'root ::= "yes" | "no" | "yes, but no"'},
    {"typical_p": 0.9},
    {"samplers": ["top_k", "temperature", "xtc"], "xtc_probability": 0.5},
]

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"enum": ["yes", "no"]},
        "share": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["answer", "share"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def questions(plain: Server, heldout: dict[str, list[Any]]) -> list[list[int]]:
    chosen = [entry["prompt"] for entry in heldout["guide"][:3]] + heldout["free_text"][:3]
    return [plain.tokens(plain.render(prompt)) for prompt in chosen]


@pytest.fixture(scope="module")
def drafted(tools: Path, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("greedy") / "log"
    with Server(tools, arguments(pair), log) as server:
        yield server


@pytest.fixture(scope="module")
def sampling(
    tools: Path, pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """With the device's sampler on: without a drafter, and with one."""
    folder = tmp_path_factory.mktemp("sampling")
    alone = Server(tools, arguments(pair, draft=False), folder / "alone", ON)
    with alone, Server(tools, arguments(pair), folder / "drafted", ON) as drafted:
        yield alone, drafted


def chosen_on_device(server: Server) -> list[int]:
    """For each request so far, how many of its tokens came as ids."""
    for _ in range(200):
        log = server.log.read_text("utf-8", "replace")
        counts = [int(count) for count in re.findall(r"device argmax =\s+(\d+) /", log)]
        if len(counts) == server.answered:
            return counts
        # the log is written by a thread of its own, which may come after the reply
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert server.process
            server.process.wait(0.05)
    pytest.fail(f"{len(counts)} lines in the log for {server.answered} requests")


def test_a_greedy_request_copies_no_logits_after_its_first_token(
    drafted: Server, plain: Server, questions: list[list[int]]
) -> None:
    for server in (plain, drafted):
        for question in questions:
            reply = server.cold(question, N)
            # The last round of an answer that ended may have chosen what would have come behind it.
            behind = chosen_on_device(server)[-1] - (len(reply.ids) - 1)
            assert behind == 0 or (server is drafted and len(reply.ids) < N and 0 < behind < BLOCK)
            # probabilities are the host's: the same greedy request by the other way
            by_host = server.cold(question, N, n_probs=1)
            assert chosen_on_device(server)[-1] == 0
            check_same(plain, question, by_host, reply)


@pytest.mark.parametrize("more", HOST, ids=lambda more: next(iter(more)))
def test_what_needs_logits_gets_them(
    drafted: Server, plain: Server, questions: list[list[int]], more: dict[str, Any]
) -> None:
    """Token by token as without a drafter, also right behind a request that needed none."""
    drafted.cold(questions[1], N)
    got = drafted.cold(questions[0], N, **more)
    assert chosen_on_device(drafted)[-1] == 0
    wanted = plain.cold(questions[0], N, **more)
    assert got.ids == wanted.ids
    assert chosen_on_device(plain)[-1] == 0


def test_a_schema_is_kept_with_a_drafter_and_without(
    drafted: Server, plain: Server, sampling: tuple[Server, Server], questions: list[list[int]]
) -> None:
    """Greedy, and with a seed: also where the device's sampler is on, which leaves it to the
    host and says so. Behind a chat's own path too."""
    alone, on_device = sampling
    for question in questions[:3]:
        for more in ({}, {**SAMPLED, "seed": 5}):
            texts = {
                server.cold(question, WHOLE, json_schema=SCHEMA, **more).text
                for server in (plain, drafted, alone, on_device)
            }
            assert len(texts) == 1
            assert_kept(texts.pop())
    assert "a grammar" in on_device.log.read_text("utf-8", "replace")
    answer = drafted.post(
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": "Is DFlash a decoder?"}],
            "max_tokens": WHOLE,
            "chat_template_kwargs": {"enable_thinking": False},
            "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        },
    )
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert_kept(choice["message"]["content"])


def assert_kept(text: str) -> None:
    told = json.loads(text)
    assert set(told) == {"answer", "share"}
    assert told["answer"] in ("yes", "no")
    assert 0 <= told["share"] <= 99


def test_slots_of_one_batch_need_not_agree(
    tools: Path, pair: Pair, plain: Server, questions: list[list[int]], tmp_path: Path
) -> None:
    """Three greedy slots, and one that asks for probabilities and ends before them."""
    kinds: list[tuple[int, dict[str, Any]]] = [(N, {}), (N // 4, {"n_probs": 2}), (N, {}), (N, {})]
    with Server(tools, arguments(pair, "-np", 4, ctx=8192), tmp_path / "log") as server:
        for question in questions:
            with ThreadPoolExecutor(4) as pool:
                asked = [pool.submit(server.cold, question, n, **more) for n, more in kinds]
                replies = [one.result() for one in asked]
            for (n, _), reply in zip(kinds, replies, strict=True):
                check_same(plain, question, plain.cold(question, n), reply)
            assert min(len(reply.ids) for reply in replies) == N // 4  # or nothing is shown
            # Beside the one that needs logits all get them, and none do once it is done.
            counts = chosen_on_device(server)[-len(kinds) :]
            assert 0 < sum(counts) < sum(len(reply.ids) for reply in replies)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_seeds_text_is_the_same_with_a_drafter_and_without(
    sampling: tuple[Server, Server], questions: list[list[int]], seed: int
) -> None:
    alone, drafted = sampling
    for question in questions:
        more = {**SAMPLED, "seed": seed}
        wanted = alone.cold(question, N, **more)
        got = drafted.cold(question, N, **more)
        assert got.ids == wanted.ids
        # whatever came before it: no generator went on from there
        assert drafted.cold(question, N, **more).ids == wanted.ids


def test_the_engine_draws_the_same_text(
    sampling: tuple[Server, Server], pair: Pair, questions: list[list[int]]
) -> None:
    """Server and engine, each sampling on the device, key their numbers alike."""
    native = NativePair(pair.target, n_ctx=N_CTX, kv_type="f16", threads=1)  # as the server's
    try:
        for seed, question in enumerate(questions):
            first, _ = native.prompt(
                question,
                drafting=False,
                verify=Verify.GPU_SAMPLE,
                sampling=Sampling(**SAMPLED),
                seed=seed,
            )
            wanted = sampling[0].cold(question, N, **SAMPLED, seed=seed).ids
            drawn = [first]
            while len(drawn) < len(wanted):
                drawn += native.round(0).emitted
            assert tuple(drawn) == wanted
    finally:
        native.close()


def test_seeds_differ(sampling: tuple[Server, Server], questions: list[list[int]]) -> None:
    _, drafted = sampling
    texts = {drafted.cold(questions[-1], N, **SAMPLED, seed=seed).text for seed in range(8)}
    assert len(texts) > 4


def test_seeds_of_two_slots_do_not_mix(
    tools: Path,
    pair: Pair,
    sampling: tuple[Server, Server],
    questions: list[list[int]],
    tmp_path: Path,
) -> None:
    alone, _ = sampling
    asked = [(question, seed) for question in questions for seed in (1, 2)]
    two = Server(tools, arguments(pair, "-np", 2), tmp_path / "log", ON)
    with two as server, ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda one: server.cold(one[0], N, **SAMPLED, seed=one[1]), asked))
    for (question, seed), reply in zip(asked, got, strict=True):
        assert reply.ids == alone.cold(question, N, **SAMPLED, seed=seed).ids


def test_temperature_zero_is_greedy(
    sampling: tuple[Server, Server], plain: Server, questions: list[list[int]]
) -> None:
    for server in sampling:
        for question in questions[-2:]:
            reply = server.cold(question, N)
            check_same(plain, question, plain.cold(question, N), reply)
            # The last round of an answer that ended may have chosen what would have come behind it.
            behind = chosen_on_device(server)[-1] - (len(reply.ids) - 1)
            assert behind == 0 or (server is drafted and len(reply.ids) < N and 0 < behind < BLOCK)


@pytest.mark.parametrize("more", HOST, ids=lambda more: next(iter(more)))
def test_the_rest_is_sampled_on_the_host_and_says_so(
    sampling: tuple[Server, Server], plain: Server, questions: list[list[int]], more: dict[str, Any]
) -> None:
    asked = {**SAMPLED, "seed": 5, **more}
    wanted = plain.cold(questions[0], N, **asked)  # a server that knows of no device sampler
    for server in sampling:
        said = server.log.read_text("utf-8", "replace").count("sampled on the host")
        assert server.cold(questions[0], N, **asked).ids == wanted.ids
        chosen_on_device(server)  # waits for the log
        assert server.log.read_text("utf-8", "replace").count("sampled on the host") == said + 1


def test_speculative_simple_samples_what_the_server_does(
    tools: Path,
    pair: Pair,
    sampling: tuple[Server, Server],
    plain: Server,
    heldout: dict[str, list[Any]],
) -> None:
    prompt = plain.render(heldout["free_text"][0])
    wanted = sampling[0].cold(prompt, N, **SAMPLED, seed=7)
    options = ["--temp", 1.0, "--top-k", 40, "--top-p", 0.95, "--min-p", 0.02, "--seed", 7]
    for length in (15, 4):
        more = [*options, "--spec-draft-n-max", length]
        text, log = run(tools, pair, prompt, *more, environment=ON)
        assert wanted.text in text, log[-3000:]
