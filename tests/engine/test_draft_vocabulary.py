"""Drafts that read few rows of the head: the tokens of the whole head where they are among those,
the same text wherever, and the whole head again where too much of a text is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.binding import NativePair, Sampling, devices, estimate
from app.engine import Backend
from app.engine.pair import LoadedPair
from app.errors import OptionError
from app.library import Pair

from .conftest import BACKEND, WHOLE, chat
from .exact_answers import demo_pair

pytestmark = pytest.mark.usefixtures("_named_backend")

FEW, LOWEST = 1024, 400  # rows of 4,096; ids that are never given up for others
DRAFT = 15
QUESTIONS, TOKENS = (4, 48) if WHOLE else (1, 16)


def place() -> str | None:
    gpus = [d.name for d in devices() if d.kind == "gpu" and d.usable]
    return gpus[0] if BACKEND is Backend.GPU else None


def opened(target: Path, draft: Path | None, rows: int | None) -> NativePair:
    return NativePair(target, draft, device=place(), n_ctx=512, threads=1, draft_rows=rows)


@pytest.fixture(scope="module", params=["f32", "q8_0"])
def pairs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _named_backend: None
) -> Iterator[tuple[NativePair, NativePair]]:
    """With few rows and with all of them."""
    files = demo_pair(request.param, tmp_path_factory.mktemp("pairs"))
    few, whole = opened(*files, FEW), opened(*files, None)
    yield few, whole
    few.close()
    whole.close()


@pytest.fixture(scope="module")
def questions(demo: LoadedPair, heldout: dict[str, Any]) -> list[list[int]]:
    texts = [entry["prompt"] for entry in heldout["guide"]][:: len(heldout["guide"]) // 8]
    return [list(demo.prompt(chat(text), think=False).tokens) for text in texts]


def answered(pair: NativePair, prompt: list[int], n: int, width: int = DRAFT) -> list[int]:
    """The first `n` tokens, whatever ends in between."""
    out = [pair.prompt(prompt, drafting=width > 0)[0]]
    while len(out) < n:
        out += pair.round(width).emitted
    return out[:n]


def test_what_is_in_the_set_is_drafted_as_by_the_whole_head(
    pairs: tuple[NativePair, NativePair], questions: list[list[int]]
) -> None:
    few, whole = pairs
    assert (few.info.draft_rows, whole.info.draft_rows) == (FEW, few.info.n_vocab)
    begun = set(range(FEW)) | set(few.special_tokens().values())
    seen: set[int] = set()
    same = learned = rounds = 0
    for question in questions[:QUESTIONS]:
        text = question + answered(whole, question, TOKENS)
        seen |= {*text, few.prompt(text)[0]}
        for end in range(len(question), len(text), 8):
            anchors = [pair.prompt(text[:end])[0] for pair in pairs]
            seen |= set(anchors)
            drafts = [pair.round(DRAFT) for pair in pairs]
            assert drafts[1].head_rows == whole.info.n_vocab
            if drafts[0].head_rows != FEW:  # the set suffers, see below
                continue
            rounds += 1
            assert set(drafts[0].drafted) <= begun | seen
            for ours, wanted in zip(drafts[0].drafted, drafts[1].drafted, strict=True):
                if wanted < LOWEST or wanted in seen:
                    assert ours == wanted
                    same += 1
                    learned += wanted not in begun
            seen |= set(drafts[0].emitted)
    assert rounds >= QUESTIONS * TOKENS // 16  # of twice as many
    assert same > (100 if WHOLE else 0)
    assert learned > (10 if WHOLE else 0)  # rows that came in with the text


def test_no_text_depends_on_the_rows(
    pairs: tuple[NativePair, NativePair], questions: list[list[int]]
) -> None:
    few, whole = pairs
    for question in questions:
        plain = answered(whole, question, 64, width=0)
        assert answered(few, question, 64) == plain
        few.reset()
        whole.reset()


def test_a_text_outside_of_the_set_takes_the_whole_head_until_another_one(
    demo_files: Pair, questions: list[list[int]]
) -> None:
    """64 rows hold hardly any word; what they are then read for is one token, said for ever."""
    pair = opened(demo_files.target, demo_files.draft, 64)
    try:
        read = set()
        for question in questions:
            pair.prompt(question)
            read |= {pair.round(DRAFT).head_rows for _ in range(12)}
        assert read == {64, pair.info.n_vocab}
        assert pair.round(DRAFT).head_rows == pair.info.n_vocab
        word = Sampling(logit_bias=((LOWEST, 100.0),))
        pair.prompt(questions[0], sampling=word)
        rounds = [pair.round(DRAFT) for _ in range(80)]
        assert {token for found in rounds for token in found.emitted} == {LOWEST}
        assert rounds[-1].head_rows == 64
    finally:
        pair.close()


def test_the_rows_are_part_of_what_a_load_takes(demo_files: Pair) -> None:
    files = (demo_files.target, demo_files.draft)
    whole, few = (estimate(*files, device=place(), n_ctx=512, draft_rows=n) for n in (None, FEW))
    pair = opened(*files, FEW)
    taken = pair.info.footprint
    rows = FEW * (pair.info.n_embd + 1) * 4  # in F32, with the tokens they stand for
    pair.close()
    assert few.footprint.total - whole.footprint.total == pytest.approx(rows, rel=0.01)
    assert taken.total == pytest.approx(few.footprint.total, rel=0.01)


def test_without_a_drafter_there_are_none(demo_files: Pair) -> None:
    pair = opened(demo_files.target, None, FEW)
    assert pair.info.draft_rows == 0
    pair.prompt([1, 2, 3], drafting=False)
    assert pair.round(0).head_rows == 0
    pair.close()


def test_a_number_below_none_is_refused(demo_files: Pair) -> None:
    with pytest.raises(OptionError):
        opened(demo_files.target, demo_files.draft, -1)
