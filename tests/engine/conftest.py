"""The demo pair, converted once and loaded once; and how to ask it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from app.binding import devices, preferred_gpu
from app.conversation import ChatMessage
from app.engine import Answer, AskParams, Backend, Decoded, Finished, LoadParams
from app.engine.pair import LoadedPair
from app.library import Library, Pair

from .exact_answers import DEMO, load_named_backend
from .exact_answers import chat as chat

# Where the pair runs. A software renderer has a fortieth of the CPU's speed: the longest tests do
# less on "gpu", unless they are asked for whole.
BACKEND = Backend(os.environ.get("SLIPSTREAM_TEST_BACKEND", Backend.CPU))
WHOLE = BACKEND is Backend.CPU or bool(os.environ.get("SLIPSTREAM_TEST_WHOLE"))
# Needs a second device; tests/native/test_vulkan.py asks for it.
collect_ignore = ["test_two_devices.py"] if BACKEND is Backend.CPU else []


@dataclass(slots=True)
class Asked:
    """An answer with the stream that led to it."""

    answer: Answer
    stream: list[Decoded] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(d.text for d in self.stream)

    @property
    def reasoning(self) -> str:
        return "".join(d.reasoning for d in self.stream)


def ask(loaded: LoadedPair, chat: tuple[ChatMessage, ...], params: AskParams) -> Asked:
    stream: list[Decoded] = []
    for event in loaded.answer(1, chat, params):
        if isinstance(event, Decoded):
            stream.append(event)
        if isinstance(event, Finished):
            return Asked(event.answer, stream)
    raise AssertionError("no Finished")


@pytest.fixture(scope="session")
def demo_files() -> Pair:
    return Library.of_user().open("demo")


@pytest.fixture(scope="session")
def _named_backend() -> None:
    load_named_backend()


@pytest.fixture(scope="session")
def device(_named_backend: None) -> str | None:
    """On which these tests run; None: the CPU."""
    gpu = preferred_gpu(devices()) if BACKEND is Backend.GPU else None
    return gpu and gpu.name


def opened(files: Pair, backend: Backend, n_ctx: int) -> Iterator[LoadedPair]:
    # one thread: the demo is so small that a second one mostly waits
    loaded = LoadedPair(LoadParams(files.target, files.draft, backend, n_ctx=n_ctx, threads=1))
    yield loaded
    loaded.close()


@pytest.fixture(scope="session")
def demo(demo_files: Pair, _named_backend: None) -> Iterator[LoadedPair]:
    yield from opened(demo_files, BACKEND, n_ctx=2048)


@pytest.fixture
def cold(demo: LoadedPair) -> LoadedPair:
    """The loaded pair, holding nothing."""
    demo.native.reset()
    demo.native.cancel(False)
    return demo


@pytest.fixture(scope="session")
def heldout() -> dict[str, list[object]]:
    loaded: dict[str, list[object]] = json.loads(
        (DEMO / "train" / "heldout.json").read_text("utf-8")
    )
    return loaded
