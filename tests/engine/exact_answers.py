"""Drafted answers against plain ones, token by token, with the demo pair in one type after the
other: `python3 dev.py exact [--backend gpu] [--types q8_0,q4_k_m] [--prompts 121] [--tokens 200]`.

All held-out prompts of the demo: questions, free text, and dialogues up to their last question.
Rounds take widths in turns, so that many a number of rows is met. A type is a line: how many of
the answers are the same, where the others part, and what the probe says. Status 1 if a probe says
exact and an answer differs, or says not on the CPU.

`--pairs DIR` keeps the files, or takes them from there: what a machine without the converter needs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from app.binding import library_path
from app.conversation import ChatMessage, Role
from app.engine import Backend, LoadParams
from app.engine.pair import LoadedPair

DEMO: Final = Path(__file__).resolve().parents[2] / "assets" / "demo"
TYPES: Final = ("f32", "bf16", "f16", "q8_0", "q4_k_m")
WIDTHS: Final = (15, 15, 7, 3, 11, 1)  # drafted tokens of a round

Chat = tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """`parted`: (prompt, token) of each answer that differs."""

    exact: bool  # by the probe
    device: str
    prompts: int
    rounds: int
    parted: tuple[tuple[int, int], ...]


def load_named_backend() -> None:
    """What llama.cpp's programs do by themselves: load the backend that GGML_BACKEND_PATH names."""
    if named := os.environ.get("GGML_BACKEND_PATH"):
        ggml = ctypes.CDLL(str(library_path().with_name("libggml.so")))
        ggml.ggml_backend_load.restype = ctypes.c_void_p
        assert ggml.ggml_backend_load(named.encode()), f"`{named}` does not load"


def chat(*turns: str) -> Chat:
    """A conversation of alternating user and assistant turns."""
    roles = (Role.USER, Role.ASSISTANT)
    return tuple(ChatMessage(roles[i % 2], turn) for i, turn in enumerate(turns))


def heldout_chats() -> list[Chat]:
    held: dict[str, list[Any]] = json.loads((DEMO / "train" / "heldout.json").read_text("utf-8"))
    chats = [chat(entry["prompt"]) for entry in held["guide"]]
    chats += [chat(prompt) for prompt in held["free_text"]]
    for dialogue in held["dialogues"]:
        before = zip(dialogue["prompts"], dialogue["answers"], strict=True)
        turns = [turn for prompt, answers in before for turn in (prompt, answers[0])]
        chats.append(chat(*turns[:-1]))
    return chats


def spread(chats: Sequence[Chat], n: int) -> list[Chat]:
    """n of them, from all over."""
    return [chats[i * len(chats) // n] for i in range(min(n, len(chats)))]


def demo_pair(weights: str, folder: Path) -> tuple[Path, Path]:
    """The demo's target and drafter in this type, made in `folder` unless they are there."""
    files = folder / f"target-{weights}.gguf", folder / f"draft-{weights}.gguf"
    if all(file.is_file() for file in files):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    if weights == "q4_k_m":
        for made, whole in zip(files, demo_pair("bf16", folder), strict=True):
            quantise(whole, made)
        return files
    from app.convert import WeightType, convert_pair

    pair = convert_pair(DEMO / "target", DEMO / "draft", folder, WeightType(weights))
    for made, file in zip(files, (pair.target, pair.draft), strict=True):
        Path(file.path).rename(made)
    return files


def quantise(source: Path, made: Path) -> None:
    """As llama-quantize does: what cannot be Q4_K takes a type with shorter blocks."""
    # In a process of its own: llama_cpp takes llama's log for itself when it is imported.
    code = (
        "import ctypes, os, sys, llama_cpp\n"
        "params = llama_cpp.llama_model_quantize_default_params()\n"
        "params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M\n"
        "files = map(os.fsencode, sys.argv[1:])\n"
        "sys.exit(llama_cpp.llama_model_quantize(*files, ctypes.byref(params)))"
    )
    command = [sys.executable, "-c", code, source, made]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"`{source}` cannot be quantised:\n{done.stderr[-2000:]}"


def compared(
    files: tuple[Path, Path], backend: Backend, chats: Sequence[Chat], tokens: int, threads: int
) -> Compared:
    """Plain and drafted answers of `tokens` tokens, whatever ends in between."""
    loaded = LoadedPair(LoadParams(*files, backend, n_ctx=2048, threads=threads))
    try:
        parted, rounds = [], 0
        for index, asked in enumerate(chats):
            prompt = loaded.prompt(asked, think=False).tokens
            plain, _ = _answer(loaded, prompt, (0,), tokens)
            drafted, took = _answer(loaded, prompt, WIDTHS, tokens)
            rounds += took
            if plain != drafted:
                parted.append((index, next(i for i in range(tokens) if plain[i] != drafted[i])))
        exact = loaded.native.probe_exact().exact
        device = loaded.model.device.description
        return Compared(exact, device, len(chats), rounds, tuple(parted))
    finally:
        loaded.close()


def _answer(
    loaded: LoadedPair, prompt: Sequence[int], widths: Sequence[int], tokens: int
) -> tuple[list[int], int]:
    """The first tokens, and how many rounds they took."""
    pair = loaded.native
    pair.reset()
    out = [pair.prompt(prompt, drafting=any(widths))[0]]
    for rounds, width in enumerate(cycle(widths)):
        if len(out) >= tokens:
            return out[:tokens], rounds
        out += pair.round(width).emitted
    raise AssertionError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="dev.py exact")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--backend", type=Backend, choices=list(Backend), default=Backend.CPU)
    add("--types", default=",".join(TYPES), help="default: %(default)s")
    add("--prompts", type=int, default=10_000, help="default: all")
    add("--tokens", type=int, default=200, help="of each answer; default: %(default)s")
    add("--threads", type=int, default=1, help="on the CPU; default: %(default)s")
    add("--pairs", type=Path, metavar="DIR", help="where the files are, or go")
    options = parser.parse_args()
    load_named_backend()
    chats = spread(heldout_chats(), options.prompts)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for weights in options.types.split(","):
            files = demo_pair(weights, options.pairs or Path(folder))
            start = time.monotonic()
            found = compared(files, options.backend, chats, options.tokens, options.threads)
            same = found.prompts - len(found.parted)
            length = found.prompts * (options.tokens - 1) / found.rounds
            parted = "".join(f", prompt {i} parts at {at}" for i, at in found.parted)
            print(
                f"{weights}: {same} of {found.prompts} answers the same{parted}; "
                f"probe: {'exact' if found.exact else 'not exact'}; "
                f"mean accepted length {length:.1f}; {found.device}; "
                f"{time.monotonic() - start:.0f} s",
                flush=True,
            )
            promised = found.exact or options.backend is Backend.CPU
            wrong += promised and (bool(found.parted) or not found.exact)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
