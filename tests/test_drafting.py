"""A draft is sent as one text, and comes back from JSON as it was."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.drafting import Attachment, Draft

texts = st.text(st.characters(codec="utf-8"))
drafts = st.builds(
    Draft,
    texts,
    st.lists(st.builds(Attachment, texts, texts, st.booleans()), max_size=3).map(tuple),
)


@given(drafts)
def test_it_comes_back(draft: Draft) -> None:
    assert Draft.of_json(draft.json()) == draft


@pytest.mark.parametrize("text", ["", "[", "null", "3", '{"text": 1}', '{"attachments": [[1]]}'])
def test_rubbish_is_no_draft(text: str) -> None:
    assert Draft.of_json(text) == Draft()


def test_a_file_is_fenced_whatever_is_in_it() -> None:
    file = Attachment("a.md", "before\n````\ncode\n````\nafter")
    assert file.message() == f"File `a.md`:\n\n`````md\n{file.text}\n`````"
    assert Draft("Sum up", (file,)).message() == f"Sum up\n\n{file.message()}"


def test_a_paste_is_sent_as_it_is() -> None:
    assert (
        Draft("Decode:\n", (Attachment("Pasted text", "QUJD", True),)).message()
        == "Decode:\n\nQUJD"
    )


WORDS = ("", "Sum up", "Two\n\nparagraphs, `code`\n```\nfenced\n```")
PIECES = ("a", " ", "\n", "`", "```", "File `a`:\n\n", "é")
files = st.builds(
    Attachment,
    st.text(st.characters(codec="utf-8", exclude_characters="\n`"), min_size=1),
    st.lists(st.sampled_from(PIECES), min_size=1).map("".join),
)


@given(st.sampled_from(WORDS), st.lists(files))
def test_what_was_sent_is_told_apart_again(words: str, sent: list[Attachment]) -> None:
    message = Draft(words, tuple(sent)).message()
    found = Draft.of_message(message)
    assert found.text == words
    assert [a.name for a in found.attachments] == [a.name for a in sent]
    assert [a.message() for a in found.attachments] == [a.message() for a in sent]


@pytest.mark.parametrize("end", ["", "```"])
def test_headings_without_an_end_are_read_once(end: str) -> None:
    message = "File `a`:\n\n```\n" * 20_000 + end
    begin = time.process_time()
    assert not Draft.of_message(message).attachments
    assert time.process_time() - begin < 1  # 0.05 s; each beside all that follows: minutes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Plain words",
        "File `a.py`:\n\nwithout a fence",
        "File `a.py`:\n\n```py\nwithout its end",
        "File `a.py`:\n\n```txt\nof another kind\n```",
        "In a sentence: File `a`:\n\n```\nx\n```",
        "File `a`:\n\n```\nx\n``` and more",
    ],
)
def test_words_are_no_files(text: str) -> None:
    assert Draft.of_message(text) == Draft(text)


def test_a_paste_behind_a_file_is_read_with_the_words() -> None:
    draft = Draft("Sum up", (Attachment("a.md", "x\n"), Attachment("Pasted text", "more", True)))
    assert Draft.of_message(draft.message()) == Draft("Sum up\n\nmore", draft.attachments[:1])
