"""A title says what a chat is about, whatever its first question looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.titles import LONGEST, title_of


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What is DFlash?", "What is DFlash?"),
        ("Hi there, could you please explain rewinds?", "Explain rewinds?"),
        ("hello! what's the capital of France? I forgot.", "What's the capital of France?"),
        ("Please tell me a short story", "A short story"),
        ("# A plan\n\nfor the week", "A plan"),
        ("```python\nx = 1\n```\nWhy does this fail?", "Why does this fail?"),
        ("```\nx = 1\n```", "X = 1"),
        ("**Bold** _words_ and `code`", "Bold _words_ and code"),
        ("什么是 DFlash？请解释。", "什么是 DFlash？"),
        ("Hi", ""),
        ("  \n ?!", ""),
        (
            "Help me to write a letter to the landlord about the heating since May",
            "Write a letter to the landlord about the…",
        ),
    ],
)
def test_it_is_to_the_point(question: str, title: str) -> None:
    assert title_of(question) == title


@given(st.text(max_size=80))
def test_any_text_gives_one_short_line(question: str) -> None:
    title = title_of(question)
    assert len(title) <= LONGEST
    assert len(title.splitlines()) <= 1
