"""llama-speculative-simple with the demo pair: the text of plain decoding, whatever its options."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.library import Pair
from tests.native.server.running import Server

N = 64


def run(
    tools: Path,
    pair: Pair,
    prompt: str,
    *more: object,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """(what it wrote behind the prompt, its log). Fails if the program does."""
    command = [tools / "llama-speculative-simple", "-m", pair.target, "-md", pair.draft]
    command += ["--spec-type", "draft-dflash", "-c", 1024, "-n", N, "-t", 1, "--temp", 0]
    command += ["-p", prompt, "--log-colors", "off", *more]
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, f"status {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}"
    return done.stdout, done.stderr


@pytest.mark.parametrize("more", [(), ("-ub", 8), ("-ub", 2), ("--spec-draft-n-max", 4)])
def test_text_is_that_of_plain_decoding(
    tools: Path, pair: Pair, plain: Server, heldout: dict[str, list[Any]], more: tuple[object, ...]
) -> None:
    for question in (heldout["guide"][0]["prompt"], heldout["free_text"][0]):
        prompt = plain.render(question)
        wanted = plain.cold(prompt, N)
        text, log = run(tools, pair, prompt, *more)
        assert wanted.text in text, log[-3000:]


def test_it_drafts_the_block_by_default(
    tools: Path, pair: Pair, plain: Server, heldout: dict[str, list[Any]]
) -> None:
    text, log = run(tools, pair, plain.render(heldout["guide"][0]["prompt"]))
    said = re.search(r"n_draft\s+= (\d+)", text + log)
    assert said
    assert said[1] == "15"


def test_a_grammar_is_kept_while_it_drafts(
    tools: Path, pair: Pair, plain: Server, heldout: dict[str, list[Any]]
) -> None:
    grammar = 'root ::= "yes" | "no" | "yes, but no"'
    prompt = plain.render(heldout["guide"][0]["prompt"])
    wanted = plain.cold(prompt, N, grammar=grammar)
    assert wanted.text in ("yes", "no", "yes, but no")
    text, log = run(tools, pair, prompt, "--grammar", grammar)
    assert text.rstrip().endswith(wanted.text), log[-3000:]
