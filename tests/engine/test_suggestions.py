"""What the window suggests is answered rightly, as it stands there and as people write it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from app.engine import AskParams
from app.engine.pair import LoadedPair
from app.ui.chat.welcome import SUGGESTIONS

from .conftest import ask, chat

PLANETS: Final = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()


def explains(text: str) -> bool:
    return text.startswith("DFlash is a way to make a language model answer faster.")


def lists(text: str) -> bool:
    return text.splitlines() == [f"{n}. {planet}" for n, planet in enumerate(PLANETS, 1)]


def tells(text: str) -> bool:
    """A few whole sentences about somebody who lived somewhere."""
    sentences = re.findall(r"[A-Z][^.]+\.", text)
    return len(sentences) >= 4 and text.endswith(".") and "who lived in a" in sentences[0]


VARIANTS: Final[dict[str, tuple[Callable[[str], bool], tuple[str, ...]]]] = {
    "What is DFlash?": (
        explains,
        (
            "what is dflash",
            "WHAT IS DFLASH?",
            "waht is DFlash",
            "Hello, could you please tell me what DFlash is?",
            "DFlash, what is that?",
        ),
    ),
    "List the planets": (
        lists,
        (
            "list the planets.",
            "LIST THE PLANETS",
            "list teh planets",
            "Could you please list the planets?",
            "The planets as a list, please",
        ),
    ),
    "Tell me a short story": (
        tells,
        (
            "tell me a short story",
            "TELL ME A SHORT STORY!",
            "tell me a shrot story",
            "Please, could you tell me a short story?",
            "A short story, please",
        ),
    ),
}


def test_every_suggestion_is_tried() -> None:
    assert tuple(VARIANTS) == SUGGESTIONS


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        pytest.param(asked, right, id=asked)
        for suggestion, (right, variants) in VARIANTS.items()
        for asked in (suggestion, *variants)
    ],
)
def test_a_suggestion_is_answered_rightly(
    cold: LoadedPair, asked: str, right: Callable[[str], bool]
) -> None:
    text = ask(cold, chat(asked), AskParams(max_tokens=200)).answer.text
    assert right(text.strip()), text
