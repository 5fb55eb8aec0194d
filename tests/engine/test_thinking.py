"""Thinking that is cut short: at its limit, when it is asked for, and where it goes in circles."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from app.conversation import ChatMessage, Role
from app.engine import (
    Answer,
    AskParams,
    Backend,
    Decoded,
    Finished,
    FinishReason,
    LoadParams,
    Sampling,
    ThinkingEnd,
    Verify,
)
from app.engine.pair import LoadedPair
from app.library import Pair

from .conftest import BACKEND, ask, chat

# The guide thinks little: it goes on with a thought that is about what it knows.
BEGUN = (*chat("What is a round?"), ChatMessage(Role.ASSISTANT, "", "A round"))
PLAIN = AskParams(max_tokens=90, think=True, draft=False)
DRAFTED = replace(PLAIN, draft=True, block=16)


def closing(loaded: LoadedPair) -> tuple[int, ...]:
    return loaded._closing()


@pytest.mark.parametrize("budget", [1, 2, 15, 16, 17, 33])
def test_after_its_limit_it_answers(cold: LoadedPair, budget: int) -> None:
    whole = ask(cold, BEGUN, PLAIN).answer
    assert whole.thinking_end is None
    assert whole.reasoning
    answers = []
    for params in (PLAIN, DRAFTED, replace(DRAFTED, block=5)):
        cold.native.reset()
        answers.append(ask(cold, BEGUN, replace(params, think_budget=budget)))
    answer = answers[0].answer
    end = budget + len(closing(cold))
    assert answer.token_ids[:budget] == whole.token_ids[:budget]
    assert answer.token_ids[budget:end] == closing(cold)
    assert answer.thinking_end is ThinkingEnd.BUDGET
    assert answer.reasoning.endswith("directly now.")
    assert "".join(answer.outside[t] for t in closing(cold)).strip().startswith("Considering")
    assert answer.text
    for other in answers:
        assert (other.text, other.reasoning) == (answer.text, answer.reasoning)
        assert (other.answer.token_ids, other.answer.finish_reason) == (
            answer.token_ids,
            answer.finish_reason,
        )
        totals = other.answer.totals
        forced = len(closing(cold)) + 1  # and the token that follows them
        assert other.answer.completion_tokens == 1 + totals.accepted + totals.rounds + forced
    assert answers[1].answer.totals.accepted > 0


def test_thinking_within_its_limit_is_left_alone(cold: LoadedPair) -> None:
    whole = ask(cold, BEGUN, DRAFTED).answer
    cold.native.reset()
    limited = ask(cold, BEGUN, replace(DRAFTED, think_budget=60)).answer
    assert (limited.token_ids, limited.thinking_end) == (whole.token_ids, None)


@pytest.mark.parametrize("verify", [Verify.HOST_SAMPLE, Verify.GPU_SAMPLE])
def test_with_a_seed_drafted_text_is_plain_text(cold: LoadedPair, verify: Verify) -> None:
    sampled = {"verify": verify, "sampling": Sampling(temperature=1.0, seed=7), "think_budget": 9}
    texts = set()
    for params in (PLAIN, DRAFTED, replace(DRAFTED, block=3)):
        cold.native.reset()
        answer = ask(cold, BEGUN, dataclasses.replace(params, **sampled)).answer
        texts.add(answer.token_ids)
    assert len(texts) == 1


@pytest.mark.parametrize("draft", [True, False])
def test_what_it_holds_is_what_a_cold_run_would(cold: LoadedPair, draft: bool) -> None:
    params = replace(DRAFTED if draft else PLAIN, think_budget=12)
    answer = ask(cold, BEGUN, params).answer
    logits = cold.native.last_logits()
    # The whole as one prompt: what follows the end of thinking is the same text.
    end = 12 + len(closing(cold))
    tokens = [*cold.prompt(BEGUN, think=True).tokens, *answer.token_ids[:end]]
    cold.native.reset()
    token, reused = cold.native.prompt(tokens, drafting=False)
    assert reused == 0
    again = [token]
    while len(again) < len(answer.token_ids) - end:
        again += cold.native.round(0).emitted
    assert tuple(again) == answer.token_ids[end:]
    if not draft:
        assert abs(cold.native.last_logits() - logits).max() < 1e-3
    # And the next turn, on what is held, is that of a pair that holds nothing.
    turn = (*BEGUN[:1], ChatMessage(Role.ASSISTANT, answer.text), *chat("And what is a draft?"))
    warm = ask(cold, turn, DRAFTED).answer
    cold.native.reset()
    assert ask(cold, turn, DRAFTED).answer.token_ids == warm.token_ids


def test_the_token_limit_is_kept_wherever_it_falls(cold: LoadedPair) -> None:
    whole = ask(cold, BEGUN, replace(DRAFTED, think_budget=4)).answer
    for most in range(1, 4 + len(closing(cold)) + 4):
        answer = ask(cold, BEGUN, replace(DRAFTED, think_budget=4, max_tokens=most)).answer
        assert answer.token_ids == whole.token_ids[:most]
        assert answer.finish_reason is FinishReason.LENGTH


def test_a_context_that_has_no_room_for_the_end_of_thinking(demo_files: Pair) -> None:
    params = LoadParams(demo_files.target, demo_files.draft, Backend.CPU, n_ctx=256, threads=1)
    loaded = LoadedPair(params)
    try:
        begun = (*chat("round " * 215), BEGUN[1])
        asked = ask(loaded, begun, replace(DRAFTED, think_budget=3)).answer
        assert asked.finish_reason is FinishReason.CONTEXT
        assert (asked.completion_tokens, asked.thinking_end) == (3, None)
    finally:
        loaded.close()


@pytest.mark.parametrize("after", [1, 2, 4])
def test_it_answers_as_soon_as_it_is_asked_to(cold: LoadedPair, after: int) -> None:
    seen: list[Decoded] = []
    answer: Answer | None = None
    params = replace(DRAFTED, block=4)
    for event in cold.answer(1, BEGUN, params, lambda: len(seen) >= after):
        if isinstance(event, Decoded):
            seen.append(event)
        if isinstance(event, Finished):
            answer = event.answer
    assert answer is not None
    assert answer.thinking_end is ThinkingEnd.ASKED
    assert answer.text
    thought = 1 + sum(len(d.round.token_ids) for d in seen[1:after] if d.round)
    ids = answer.token_ids
    assert ids[thought : thought + len(closing(cold))] == closing(cold)


def test_an_answer_without_thinking_goes_on_as_it_is(cold: LoadedPair) -> None:
    params = AskParams(max_tokens=40)
    plain = ask(cold, chat("What is DFlash?"), params).answer
    *_, last = cold.answer(1, chat("What is DFlash?"), params, lambda: True)
    assert isinstance(last, Finished)
    assert (last.answer.token_ids, last.answer.thinking_end) == (plain.token_ids, None)


def test_the_control_reads_what_ended_the_thinking(cold: LoadedPair) -> None:
    """It was not chosen, by the plain answer neither: behind it a fault is one."""
    params = replace(PLAIN, think_budget=12)
    plain = ask(cold, BEGUN, params).answer.token_ids
    behind = 12 + len(closing(cold))
    for at in (behind, behind + 5):
        found = cold.control(BEGUN, params, plain, at)
        assert not found.explains
        if BACKEND is Backend.CPU:
            assert found.spread == 0
    wrong = list(plain)
    wrong[behind + 2] = (wrong[behind + 2] + 1) % cold.model.n_vocab
    assert cold.control(BEGUN, params, wrong, behind + 5).flips
