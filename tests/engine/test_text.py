"""Text out of tokens, however characters, markers and stop strings are cut."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.text import AnswerText

OPEN, CLOSE = 1000, 1001
HARD = "👩‍👩‍👧‍👦 안녕하세요 𠮷野家 नमस्ते é <|x|>\n\n``` tail"


def feed(
    pieces: Sequence[bytes | int], *, thinking: bool = False, stop: Sequence[str] = ()
) -> tuple[AnswerText, str, str]:
    """Feeds bytes (or marker ids); returns the state and the joined stream."""
    table = {i: piece for i, piece in enumerate(pieces) if isinstance(piece, bytes)}
    answer = AnswerText(lambda t: table.get(t, b""), OPEN, CLOSE, thinking, stop)
    text = reasoning = ""
    for i, piece in enumerate(pieces):
        new = answer.feed(piece if isinstance(piece, int) else i)
        text, reasoning = text + new.text, reasoning + new.reasoning
        if new.stopped:
            break
    tail = answer.finish()
    return answer, text + tail.text, reasoning + tail.reasoning


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(st.integers(0, 10_000)))
def test_any_cut_of_hard_text_joins_back(cuts: list[int]) -> None:
    answer, stream, _ = feed(cut(HARD.encode(), cuts))
    assert stream == HARD == answer.text


@given(st.text(), st.lists(st.integers(0, 10_000)))
def test_any_cut_of_any_text_joins_back(text: str, cuts: list[int]) -> None:
    answer, stream, _ = feed(cut(text.encode(), cuts))
    assert stream == answer.text == text.lstrip("\n")


def test_an_unfinished_character_is_replaced_once() -> None:
    data = "ok 👩".encode()
    for missing in (1, 2, 3):
        answer, stream, _ = feed([bytes([b]) for b in data[:-missing]])
        assert stream == answer.text == "ok \ufffd"


def test_reasoning_is_apart_and_trimmed_at_its_ends() -> None:
    answer, text, reasoning = feed(
        [b"\nI think", b" so. ", b" Yes.\n", b"\n", CLOSE, b"\n\n", b"Answer\n"], thinking=True
    )
    assert reasoning == answer.reasoning == "I think so.  Yes."
    assert text == answer.text == "Answer\n"


def test_reasoning_that_never_ends_leaves_no_text() -> None:
    answer, text, reasoning = feed([b"Let me", b" see"], thinking=True)
    assert (text, reasoning) == ("", "Let me see")
    assert answer.thinking


def test_a_model_may_open_its_reasoning_itself() -> None:
    _, text, reasoning = feed([b"\n", OPEN, b"hm", CLOSE, b"yes"])
    assert (text, reasoning) == ("yes", "hm")


@given(st.lists(st.integers(0, 10_000)), st.sampled_from(["STOP", "ST", "P", "\n\nSTOP"]))
def test_a_stop_string_ends_the_text_before_it(cuts: list[int], stop: str) -> None:
    whole = "One STEP, then\n\nSTOP and more STOP"
    answer, stream, _ = feed(cut(whole.encode(), cuts), stop=[stop])
    assert stream == answer.text == whole[: whole.index(stop)]


def test_the_start_of_a_stop_string_that_does_not_come_is_not_lost() -> None:
    answer, stream, _ = feed([b"a ST", b"O"], stop=["STOP"])
    assert stream == answer.text == "a STO"


def test_half_a_character_behind_a_stop_string_is_none() -> None:
    answer, stream, _ = feed([b"Hello", b" \xf0\x9f", b"\x98\x80"], stop=[" "])
    assert stream == answer.text == "Hello"


def test_several_stop_strings_end_at_the_first() -> None:
    _, stream, _ = feed([b"x END y STOP"], stop=["STOP", "END"])
    assert stream == "x "


@pytest.mark.parametrize(("thinking", "said"), [(False, "\n\nand on"), (True, " and on")])
def test_what_goes_on_keeps_the_space_between(thinking: bool, said: str) -> None:
    pieces = [said.encode(), CLOSE, b"\n\nText"] if thinking else [said.encode()]
    table = {i: piece for i, piece in enumerate(pieces) if isinstance(piece, bytes)}
    answer = AnswerText(lambda t: table.get(t, b""), OPEN, CLOSE, thinking, begun=True)
    for i, piece in enumerate(pieces):
        answer.feed(piece if isinstance(piece, int) else i)
    answer.finish()
    assert (answer.reasoning, answer.text) == ((said, "Text") if thinking else ("", said))
