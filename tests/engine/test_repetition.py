"""What repeats itself without end, and what only looks like it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.binding import NativeRound, WidthReason
from app.engine import Answer, AskParams, Finished, FinishReason, LoadedModel, ThinkingEnd
from app.engine.answering import Answering
from app.engine.fake import FAKE_CPU
from app.engine.plain import PlainSpeed
from app.engine.prompt import Prompt
from app.engine.repetition import LONGEST, THOUGHT, TIMES, TOKENS, repeats
from app.engine.text import AnswerText

MODEL = LoadedModel("m", 1, 1, "F16", "cpu", FAKE_CPU, 8, 8, n_ctx=20_000, n_vocab=10, block=16)

tokens = st.integers(0, 248_319)
few = st.integers(0, 2)  # what is drawn of few tokens repeats itself here and there


def spoken(text: str) -> list[int]:
    """A token a character, which is more than a tokenizer gives."""
    return [ord(c) for c in text]


def end_of(text: Sequence[int], *, thinking: bool = False) -> int | None:
    """After how many tokens it is stopped."""
    return next((n for n in range(len(text) + 1) if repeats(text[:n], thinking=thinking)), None)


def periodic(text: Sequence[int], *, thinking: bool) -> bool:
    """The criterion, written down as it is read."""
    for period in range(1, LONGEST + 1):
        least = max(THOUGHT if thinking else TOKENS, TIMES * period)
        end = text[-least:]
        if len(end) == least and all(a == b for a, b in zip(end, end[period:], strict=False)):
            return True
    return False


@settings(max_examples=25, deadline=None)
@given(
    st.lists(few, max_size=300),
    st.lists(st.one_of(few, tokens), min_size=1, max_size=200),
    st.booleans(),
)
def test_whatever_comes_over_and_over_is_stopped(
    before: list[int], stretch: list[int], thinking: bool
) -> None:
    least = max(THOUGHT if thinking else TOKENS, TIMES * len(stretch))
    text = before + stretch * (1 + (least + 64) // len(stretch))
    end = end_of(text[: len(before) + least + 32], thinking=thinking)
    assert end is not None
    assert end >= (THOUGHT if thinking else TOKENS)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(few, max_size=40),
    st.integers(1, 400),
    st.integers(0, 3000),
    st.lists(st.integers(0, 3000), max_size=2),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_it_is_the_criterion_to_the_letter(
    before: list[int], period: int, length: int, faults: list[int], thinking: bool, chance: object
) -> None:
    draw = chance.randrange  # type: ignore[attr-defined]
    stretch = [draw(3) for _ in range(period)]
    text = before + list(itertools.islice(itertools.cycle(stretch), length))
    for fault in faults:
        if fault < len(text):
            text[fault] = 7
    text = text[: len(text) // 32 * 32]
    enough = len(text) >= (THOUGHT if thinking else TOKENS)
    assert repeats(text, thinking=thinking) == (enough and periodic(text, thinking=thinking))


@settings(max_examples=25, deadline=None)
@given(st.lists(few, min_size=1, max_size=60), st.booleans())
def test_what_counts_is_never_stopped(stretch: list[int], thinking: bool) -> None:
    """Lines of a table, of code or of a list that are the same but for a number or a name."""
    lines = ([1000 + n, *stretch] for n in range(5000 // (len(stretch) + 1)))
    assert end_of([t for line in lines for t in line], thinking=thinking) is None


def lists() -> Iterator[tuple[str, str]]:
    yield "numbers", ", ".join(map(str, range(1, 1200)))
    yield "powers", "\n".join(f"2^{n} = {2**n}" for n in range(1, 120))
    yield (
        "table",
        "| n | squared | even |\n|---|---|---|\n"
        + "".join(f"| {n} | {n * n} | {'yes' if n % 2 == 0 else 'no'} |\n" for n in range(300)),
    )
    yield "empty table", "| Day | Shift | Name |\n|---|---|---|\n" + "|  |  |  |\n" * 60
    yield "empty cells", "<tr>" + "<td></td>\n" * 150 + "</tr>"
    yield "zeros", "[" + ", ".join(["0"] * 600) + "]"
    yield (
        "identity",
        "\n".join(", ".join("1" if i == j else "0" for j in range(28)) for i in range(28)),
    )
    yield "code", "".join(f"    case {n}: return names[{n}];\n" for n in range(200))
    yield "no-ops", "    nop\n" * 200
    yield "lines", "I will not talk in class.\n" * 75
    yield "ruled", "-" * 1000 + "\n\n" + "=" * 1000
    yield "song", ("First verse, which is a new one. " + "La la la, says the chorus. " * 4) * 12
    yield "dump", "\n".join(f"{n:08x}  00 00 00 00 00 00 00 00" for n in range(0, 2048, 8))


@pytest.mark.parametrize(("name", "text"), list(lists()))
def test_what_people_ask_for_is_not_stopped(name: str, text: str) -> None:
    assert end_of(spoken(text)) is None


class Looping:
    """A pair that begins with something, then says the same for ever; every draft is right."""

    position = 0

    def __init__(self, begin: Sequence[int], stretch: Sequence[int]) -> None:
        self._tokens = itertools.chain(begin, itertools.cycle(stretch))

    def prompt(self, tokens: Sequence[int], **_options: object) -> tuple[int, int]:
        return next(self._tokens), 0

    def round(self, n_draft: int, *, governed: bool, hint: Sequence[int]) -> NativeRound:
        emitted = tuple(itertools.islice(self._tokens, n_draft + 1))
        drafted = emitted[:-1]
        return NativeRound(WidthReason.FIXED, drafted, emitted, n_draft, 0, 1, 1, 0, 0, None, 1)

    def round_given(self, draft: Sequence[int]) -> NativeRound:
        emitted: list[int] = []
        for token in (*draft, None):
            emitted.append(next(self._tokens))
            if emitted[-1] != token:
                break
        drafted = tuple(draft)
        return NativeRound(WidthReason.FIXED, drafted, tuple(emitted), 0, 0, 1, 1, 0, 0, None, 1)

    def is_end(self, token: int) -> bool:
        return False

    def token_bytes(self, token: int, *, special: bool = False) -> bytes:
        return f"{token} ".encode()


def answer_of(native: Looping, params: AskParams, closing: Sequence[int] = ()) -> Answer:
    text = AnswerText(native.token_bytes, None, 5000, params.think)
    prompt = Prompt([1, 2, 3], 3, thinking=params.think, begun=False)
    answering = Answering(
        native,  # type: ignore[arg-type]
        MODEL,
        1,
        prompt,
        params,
        text,
        PlainSpeed(),
        closing,
    )
    *_, last = answering.events()
    assert isinstance(last, Finished)
    return last.answer


@pytest.mark.parametrize("block", [1, 2, 7, 16])
@pytest.mark.parametrize("think", [False, True])
def test_a_loop_ends_the_answer_where_it_ends_the_plain_one(block: int, think: bool) -> None:
    begin, stretch = range(100), range(200, 253)
    params = AskParams(10_000, block=block, draft=block > 1, think=think)
    answer = answer_of(Looping(begin, stretch), params)
    assert answer.finish_reason is FinishReason.LOOP
    least = len(begin) + (THOUGHT if think else TOKENS)
    assert answer.completion_tokens == -(-least // 32) * 32
    assert (answer.reasoning if think else answer.text).split()[-1] == str(answer.token_ids[-1])
    if not think:
        thought = answer_of(Looping([*range(9), 5000], stretch), AskParams(10_000, think=True))
        assert thought.completion_tokens >= TOKENS, "what follows thinking is an answer"


@pytest.mark.parametrize("block", [1, 7, 16, 64])
def test_thinking_in_circles_is_ended_and_answered(block: int) -> None:
    params = AskParams(10_000, block=block, draft=block > 1, think=True)
    answer = answer_of(Looping(range(100), range(200, 253)), params, closing=(7, 5000, 8))
    assert answer.thinking_end is ThinkingEnd.LOOP
    assert answer.token_ids.index(5000) == -(-(100 + THOUGHT) // 32) * 32 + 64 + 1
    assert answer.text.startswith("8 ")
    assert answer.finish_reason is FinishReason.LOOP, "the answer goes round in circles as well"


@pytest.mark.parametrize("budget", [1, 30])
def test_no_mark_no_limit(budget: int) -> None:
    params = AskParams(300, block=16, think=True, think_budget=budget)
    answer = answer_of(Looping(range(400), [1]), params)
    assert (answer.token_ids, answer.thinking_end) == (tuple(range(300)), None)


def test_the_guard_can_be_left_out() -> None:
    answer = answer_of(Looping([], [5]), AskParams(9000, block=16, loop_guard=False))
    assert answer.finish_reason is FinishReason.LENGTH
    assert answer.completion_tokens == 9000
