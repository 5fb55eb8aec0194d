"""One answer and the next, on the demo pair: where it stops, how it is fed, what came before."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from app.conversation import ChatMessage, Role
from app.engine import (
    Answer,
    AskParams,
    Backend,
    FinishReason,
    LoadParams,
    Plain,
    Sampling,
    Verify,
)
from app.engine.pair import LoadedPair
from app.errors import ContextFullError
from app.library import Pair

from .conftest import ask, chat

QUESTION = chat("What is DFlash?")
PLAIN = AskParams(max_tokens=96, draft=False)
DRAFTED = AskParams(max_tokens=96)


def same(a: Answer, b: Answer) -> bool:
    return (a.token_ids, a.text, a.reasoning, a.finish_reason) == (
        b.token_ids,
        b.text,
        b.reasoning,
        b.finish_reason,
    )


def check_counts(answer: Answer) -> None:
    """What design.md defines, on any answer with at least one token."""
    totals = answer.totals
    assert answer.completion_tokens == 1 + totals.accepted + totals.rounds
    assert sum(totals.accepted_per_round) == totals.accepted
    assert len(totals.accepted_per_round) == totals.rounds
    assert 0 <= totals.accepted <= totals.drafted
    for value in (totals.tokens_per_s, totals.mean_accepted_length, answer.speedup.times):
        assert value is None or 0 < value < float("inf")


@pytest.mark.parametrize("think", [False, True])
def test_a_drafted_answer_is_the_plain_one(cold: LoadedPair, think: bool) -> None:
    for params in (PLAIN, DRAFTED):
        check_counts(ask(cold, QUESTION, dataclasses.replace(params, think=think)).answer)
    cold.native.reset()
    plain = ask(cold, QUESTION, dataclasses.replace(PLAIN, think=think)).answer
    cold.native.reset()
    # Whole blocks: beside a busy machine's other work the governor may do without.
    drafted = ask(cold, QUESTION, dataclasses.replace(DRAFTED, think=think, block=16)).answer
    assert same(plain, drafted)
    assert drafted.totals.rounds < plain.totals.rounds
    assert plain.totals.mean_accepted_length == 1.0


def test_the_stream_joined_is_the_answer(cold: LoadedPair) -> None:
    asked = ask(cold, QUESTION, dataclasses.replace(DRAFTED, think=True))
    assert asked.text == asked.answer.text
    assert asked.reasoning == asked.answer.reasoning
    records = [d.round for d in asked.stream if d.round]
    assert [r.accepted for r in records] == list(asked.answer.totals.accepted_per_round)
    emitted = [t for r in records for t in r.token_ids]
    assert tuple(emitted) == asked.answer.token_ids[1:]


@pytest.mark.parametrize("max_tokens", range(35))
def test_the_token_limit_is_kept_wherever_it_falls(cold: LoadedPair, max_tokens: int) -> None:
    answer = ask(cold, QUESTION, AskParams(max_tokens=max_tokens)).answer
    plain = ask(cold, QUESTION, AskParams(max_tokens=max_tokens, draft=False)).answer
    assert same(answer, plain)
    assert answer.completion_tokens == max_tokens
    assert answer.finish_reason is FinishReason.LENGTH
    if max_tokens:
        check_counts(answer)


@pytest.mark.parametrize("offset", range(17))
def test_an_end_token_ends_the_answer_wherever_it_falls(cold: LoadedPair, offset: int) -> None:
    whole = ask(cold, QUESTION, DRAFTED).answer.token_ids
    stop = whole[offset]
    expected = whole[: whole.index(stop) + 1]
    params = dataclasses.replace(DRAFTED, stop_tokens=frozenset({stop}))
    answer = ask(cold, QUESTION, params).answer
    assert answer.token_ids == expected
    assert answer.finish_reason is FinishReason.STOP
    check_counts(answer)
    followed_by_a_cold_run(cold, answer)


@pytest.mark.parametrize("offset", range(0, 60, 7))
@pytest.mark.parametrize("length", [1, 4, 23])
def test_a_stop_string_ends_the_text_before_it(cold: LoadedPair, offset: int, length: int) -> None:
    whole = ask(cold, QUESTION, DRAFTED).answer.text
    stop = whole[offset : offset + length]
    for draft in (True, False):
        params = dataclasses.replace(DRAFTED, stop=(stop,), draft=draft)
        asked = ask(cold, QUESTION, params)
        assert asked.answer.text == asked.text == whole[: whole.index(stop)]
        assert asked.answer.finish_reason is FinishReason.STOP
        check_counts(asked.answer)


def followed_by_a_cold_run(loaded: LoadedPair, first: Answer) -> None:
    """The next turn gives what it gives on a pair that holds nothing."""
    turn = (*QUESTION, ChatMessage(Role.ASSISTANT, first.text), *chat("And what is a round?"))
    warm = ask(loaded, turn, DRAFTED).answer
    loaded.native.reset()
    assert same(warm, ask(loaded, turn, DRAFTED).answer)


@pytest.fixture(scope="module", params=[512, 8, 10, 16, 64])
def micro(request: pytest.FixtureRequest, demo_files: Pair) -> object:
    """The pair with a micro-batch of that many tokens."""
    params = LoadParams(
        demo_files.target,
        demo_files.draft,
        Backend.CPU,
        n_ctx=4608,
        n_ubatch=request.param,
        threads=1,
    )
    loaded = LoadedPair(params)
    yield loaded
    loaded.close()


LENGTHS = (1, 2, 15, 16, 17, 511, 512, 513, 1024, 1025, 4097)


@pytest.fixture(scope="module")
def expected(demo_files: Pair) -> dict[int, tuple[int, ...]]:
    """Tokens behind prompts of each length, plain, with the default micro-batch."""
    loaded = LoadedPair(LoadParams(demo_files.target, None, Backend.CPU, n_ctx=4608, threads=1))
    out = {length: tokens_behind(loaded, length, draft=False) for length in LENGTHS}
    loaded.close()
    return out


def tokens_behind(loaded: LoadedPair, length: int, *, draft: bool, n: int = 20) -> tuple[int, ...]:
    pair = loaded.native
    filler = pair.tokenize("A round is one draft and one verify. " * 600)
    tail = pair.tokenize(" What is DFlash?")
    prompt = (filler[: max(0, length - len(tail))] + tail)[-length:]
    assert len(prompt) == length
    first, _ = pair.prompt(prompt, drafting=draft)
    out = [first]
    while len(out) < n:
        out += pair.round(15 if draft else 0).emitted
    return tuple(out[:n])


def test_prompts_of_any_length_against_the_micro_batch(
    micro: LoadedPair, expected: dict[int, tuple[int, ...]]
) -> None:
    for length in LENGTHS:
        micro.native.reset()
        assert tokens_behind(micro, length, draft=True) == expected[length], length
        short = tokens_behind(micro, 3, draft=True)
        micro.native.reset()
        assert short == tokens_behind(micro, 3, draft=True), length


def test_a_second_turn_equals_a_cold_run(cold: LoadedPair) -> None:
    first = ask(cold, QUESTION, DRAFTED).answer
    followed_by_a_cold_run(cold, first)


def test_edit_regenerate_and_switch_between_chats(cold: LoadedPair) -> None:
    told = chat("My password is walnut-58. Please remember it.")
    answer = ask(cold, told, DRAFTED).answer
    asked = (*told, ChatMessage(Role.ASSISTANT, answer.text), *chat("What is my password?"))
    first = ask(cold, asked, DRAFTED).answer
    assert "walnut-58" in first.text
    assert same(ask(cold, asked, DRAFTED).answer, first)  # regenerate

    edited = (
        *chat("My password is lemon-77. Please remember it."),
        ChatMessage(Role.ASSISTANT, answer.text.replace("walnut-58", "lemon-77")),
        *chat("What is my password?"),
    )
    second = ask(cold, edited, DRAFTED).answer
    assert "lemon-77" in second.text
    assert "walnut" not in second.text

    other = ask(cold, chat("Count from 3 to 9."), DRAFTED).answer  # another chat between
    assert same(ask(cold, asked, DRAFTED).answer, first)
    cold.native.reset()
    assert same(ask(cold, asked, DRAFTED).answer, first)
    cold.native.reset()
    assert same(ask(cold, edited, DRAFTED).answer, second)
    cold.native.reset()
    assert same(ask(cold, chat("Count from 3 to 9."), DRAFTED).answer, other)


def test_the_state_of_the_last_turn_is_reused(cold: LoadedPair) -> None:
    first = ask(cold, QUESTION, DRAFTED).answer
    turn = (*QUESTION, ChatMessage(Role.ASSISTANT, first.text), *chat("And why?"))
    second = ask(cold, turn, DRAFTED).answer
    # all of the first question; how its answer was opened is dropped from the history
    opened = cold.prompt(QUESTION, think=False).tokens
    assert 0 < second.reused < second.prompt_tokens
    assert second.reused == opened.index(opened[0], 1)


def test_plain_and_drafted_turns_may_alternate(cold: LoadedPair) -> None:
    params = [PLAIN, DRAFTED, PLAIN, DRAFTED]
    turn: tuple[ChatMessage, ...] = QUESTION
    for p in params:
        answer = ask(cold, turn, p).answer
        cold_pair = ask_cold_then_restore(cold, turn)
        assert same(answer, cold_pair)
        turn = (*turn, ChatMessage(Role.ASSISTANT, answer.text), *chat("And what is a block?"))


def ask_cold_then_restore(loaded: LoadedPair, turn: tuple[ChatMessage, ...]) -> Answer:
    loaded.native.reset()
    cold_answer = ask(loaded, turn, PLAIN).answer
    loaded.native.reset()
    ask(loaded, turn, DRAFTED)
    return cold_answer


def test_the_same_seed_gives_the_same_text_with_and_without_a_drafter(cold: LoadedPair) -> None:
    story = chat("Tell me a short story about a cat.")
    texts = set()
    for seed in (1, 2, 3):
        sampling = Sampling(temperature=1.0, top_k=0, top_p=1.0, seed=seed)
        params = AskParams(max_tokens=80, verify=Verify.HOST_SAMPLE, sampling=sampling)
        cold.native.reset()
        drafted = ask(cold, story, params).answer
        cold.native.reset()
        plain = ask(cold, story, dataclasses.replace(params, draft=False)).answer
        cold.native.reset()
        narrow = ask(cold, story, dataclasses.replace(params, block=4)).answer
        assert same(drafted, plain)
        assert same(drafted, narrow)
        assert drafted.seed == seed
        texts.add(drafted.text)
    assert len(texts) > 1


def test_without_a_seed_every_answer_has_its_own(cold: LoadedPair) -> None:
    sampling = Sampling(temperature=1.5, top_k=0, top_p=1.0)
    params = AskParams(max_tokens=40, verify=Verify.HOST_SAMPLE, sampling=sampling)
    first = ask(cold, chat("Tell me a story."), params).answer
    second = ask(cold, chat("Tell me a story."), params).answer
    assert first.seed != second.seed
    again = dataclasses.replace(params, sampling=dataclasses.replace(sampling, seed=first.seed))
    cold.native.reset()
    assert same(ask(cold, chat("Tell me a story."), again).answer, first)


@pytest.mark.parametrize("block", [1, 2, 5, 16, 64])
def test_any_block_gives_the_same_text(cold: LoadedPair, block: int) -> None:
    plain = ask(cold, QUESTION, PLAIN).answer
    asked = ask(cold, QUESTION, dataclasses.replace(DRAFTED, block=block))
    assert same(asked.answer, plain)
    assert max(len(d.round.drafted) for d in asked.stream if d.round) <= min(block, 16) - 1


def test_a_prompt_that_does_not_fit_is_refused_and_the_next_one_works(cold: LoadedPair) -> None:
    long = chat("round " * 3000)
    with pytest.raises(ContextFullError, match=r"\d+ tokens"):
        ask(cold, long, DRAFTED)
    assert ask(cold, QUESTION, DRAFTED).answer.text


@pytest.mark.parametrize("left", [0, 1, 2, 15, 16, 17, 40])
def test_the_last_block_before_the_context_ends(demo_files: Pair, left: int) -> None:
    loaded = LoadedPair(
        LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=256, threads=1)
    )
    try:
        filler = "word " * 400
        tokens = loaded.native.tokenize(filler)[: 256 - left]
        first, _ = loaded.native.prompt(tokens)
        out = [first]
        while len(tokens) + len(out) <= 256:
            out += loaded.native.round(15).emitted
        with pytest.raises(ContextFullError):
            loaded.native.round(15)
        # the last token needs no place: it is never run
        assert len(tokens) + len(out) == 257
        loaded.native.reset()
        plain = [loaded.native.prompt(tokens, drafting=False)[0]]
        while len(plain) < len(out):
            plain += loaded.native.round(0).emitted
        assert plain == out
    finally:
        loaded.close()


def test_an_answer_ends_when_the_context_is_full(demo_files: Pair) -> None:
    loaded = LoadedPair(
        LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=256, threads=1)
    )
    try:
        params = AskParams(max_tokens=4000, stop_tokens=frozenset())
        asked = ask(loaded, chat("round " * 225), params)
        assert asked.answer.finish_reason in (FinishReason.CONTEXT, FinishReason.STOP)
        assert asked.answer.prompt_tokens + asked.answer.completion_tokens <= 257
    finally:
        loaded.close()


def test_the_plain_rate_is_measured_and_used(demo_files: Pair) -> None:
    loaded = LoadedPair(
        LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=512, threads=1)
    )
    try:
        fixed = replace(DRAFTED, block=8)  # takes no plain step
        assert ask(loaded, QUESTION, fixed).answer.plain == Plain()
        plain = loaded.measure_plain()
        assert plain.tokens_per_s
        answer = ask(loaded, QUESTION, fixed).answer
        assert answer.plain == plain
        # On a busy machine there is none; where there is one, it is what it is by definition.
        if (told := answer.speedup.times) is not None:
            assert answer.totals.tokens_per_s == pytest.approx(told * plain.tokens_per_s)
        # Plain steps of the answer itself count as well.
        ask(loaded, QUESTION, replace(DRAFTED, draft=False, max_tokens=100))
        assert ask(loaded, QUESTION, fixed).answer.plain != plain
    finally:
        loaded.close()
