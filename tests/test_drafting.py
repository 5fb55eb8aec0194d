"""A draft is sent as one text, and comes back from JSON as it was."""

from __future__ import annotations

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
