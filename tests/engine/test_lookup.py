"""Drafts out of the text itself: what is found, when it is believed, and that no text changes."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.binding import NativeRound
from app.conversation import ChatMessage, Role
from app.engine import AskParams, LoadParams, Sampling, Verify, answering, stats
from app.engine.lookup import LEAST, SHORT, Lookup, Match
from app.engine.pair import LoadedPair
from app.engine.stats import Origin
from app.library import Pair

from .conftest import BACKEND, Asked, ask, chat, opened


def brute(text: list[int], most: int) -> Match | None:
    """By the definition: the longest end of the text that stood before, the latest of equals."""
    best, place = 0, 0
    for end in range(LEAST, len(text)):
        length = 0
        while length < end and text[end - 1 - length] == text[-1 - length]:
            length += 1
        if length >= LEAST and length >= best:
            best, place = length, end
    n = min(most, best)
    if n < 1:
        return None
    period = len(text) - place
    return Match(best, place, tuple(text[place + i % period] for i in range(n)))


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(st.integers(0, 2), max_size=90), most=st.integers(0, 20), parts=st.integers(1, 4)
)
def test_it_finds_what_the_definition_says(text: list[int], most: int, parts: int) -> None:
    lookup = Lookup()
    for i in range(parts):
        lookup.extend(text[i * len(text) // parts : (i + 1) * len(text) // parts])
    found, wanted = lookup.find(most), brute(text, most)
    if wanted is None or found is None:
        assert found is wanted
    else:  # of many places only the latest are compared
        assert found.length <= wanted.length
        assert found == wanted or found.length < wanted.length


@settings(max_examples=300, deadline=None)
@given(
    texts=st.lists(st.lists(st.integers(0, 2), max_size=60), min_size=2, max_size=4),
    most=st.integers(1, 20),
)
def test_what_was_known_of_another_text_leaves_no_trace(texts: list[list[int]], most: int) -> None:
    kept = Lookup()
    for before, after in pairwise(texts):
        text = before[: len(before) // 2] + after
        kept.begin(before)
        kept.begin(text)
        fresh = Lookup(text)
        assert kept.find(most) == fresh.find(most)
        assert (kept._tokens, kept._long, kept._short) == (text, fresh._long, fresh._short)


def test_nothing_is_found_in_what_never_repeats() -> None:
    lookup = Lookup(range(1000))
    assert lookup.find(15) is None
    lookup.extend(range(LEAST - 1))
    assert lookup.find(15) is None
    lookup.extend([LEAST - 1])
    assert lookup.find(15) == Match(LEAST, LEAST, tuple(range(LEAST, 2 * LEAST)))
    assert lookup.find(3) == Match(LEAST, LEAST, (8, 9, 10))
    assert lookup.find(0) is None


def test_a_longer_match_gives_more() -> None:
    source = list(range(200))
    lookup = Lookup(source)
    lookup.extend(source[:40])
    assert lookup.find(100) == Match(40, 40, tuple(range(40, 80)))


def test_a_short_match_is_a_hint_for_the_drafter_until_one_does_not_hold() -> None:
    lookup = Lookup([*range(20), *range(SHORT - 1)])
    assert lookup.hint(15) == ()
    lookup.extend([SHORT - 1])
    assert lookup.find(15) is None
    assert lookup.hint(15) == tuple(range(SHORT, SHORT + 15))
    assert lookup.hint(18)[-3:] == (19, 0, 1)  # behind its end what stands there now
    long = Match(LEAST, 9, ())
    assert lookup.hint(2, long) == (9, 10)
    lookup.record_hint(True)
    assert lookup.hint(1)
    lookup.record_hint(False)
    assert lookup.hint(1) == ()
    lookup.record(long, 7, 8)
    assert lookup.hint(1) == ()
    lookup.record(long, 8, 8)  # a copy that holds
    assert lookup.hint(1)
    lookup.record_hint(False)
    lookup.begin([*range(20), *range(SHORT)])  # another answer
    assert lookup.hint(1)


def test_what_fails_is_believed_less_until_it_holds_again() -> None:
    lookup, short, long = Lookup(), Match(8, 8, (1,) * 8), Match(16, 16, (1,) * 15)
    assert lookup.trusts(short)
    lookup.record(short, 2, 8)
    assert not lookup.trusts(short)
    assert lookup.trusts(long)
    lookup.record(long, 15, 15)
    assert lookup.trusts(short)


@pytest.mark.parametrize("other", [[900], [900, 901, 902], []], ids=["changed", "more", "less"])
def test_a_copy_goes_on_behind_a_difference(other: list[int]) -> None:
    source = list(range(100))
    lookup = Lookup([*source, *source[:40]])
    match = lookup.find(15)
    assert match
    lookup.record(match, 0, 15)  # token 40 does not come
    lookup.extend([*other, 41, 42])
    assert lookup.find(15) is None
    lookup.extend([43])
    again = lookup.find(15)
    assert again == Match(LEAST, 44, tuple(range(44, 44 + LEAST)))
    assert lookup.find(15)


@pytest.mark.parametrize("row_steps", [0.05, 0.1, 0.22])
def test_no_text_makes_it_lose_more_than_three_in_a_hundred(row_steps: float) -> None:
    """Whatever the lengths of matches and of what holds of them, in answers of 500 tokens and
    more: a row of a verify costs up to that many plain steps on the devices that were measured."""
    chance = random.Random(7)
    for _ in range(400):
        lookup, tokens, steps = Lookup(), 0, 0.0
        like = chance.random()
        while tokens < 500:
            length = chance.choice([8, 9, 12, 16, 20, 31, 64, 128])
            match = Match(length, length, (0,) * min(15, length))
            n = len(match.tokens)
            if chance.random() < 0.5 or not lookup.trusts(match):
                tokens, steps = tokens + 1, steps + 1
                continue
            accepted = n if chance.random() < like else chance.randrange(n)
            lookup.record(match, accepted, n)
            tokens, steps = tokens + 1 + accepted, steps + 1 + row_steps * n
        assert steps <= 1.03 * tokens


def test_the_worst_a_text_can_do_is_little() -> None:
    """It can make every draft fail just so that the next is still made."""
    lookup, failed = Lookup(), 0
    for length in [8, *range(8, 129)] * 3:
        match = Match(length, length, (0,) * min(15, length))
        if lookup.trusts(match):
            lookup.record(match, 0, len(match.tokens))
            failed += 1
    assert failed <= 5


# --- on texts, with a target that is known to say what is wanted ----------------------------

CODE = inspect.getsource(answering)
PROSE = "\n".join(inspect.getdoc(of) or "" for of in (stats, AskParams, LoadParams, Lookup))


def length_of(prompt: str, answer: str, most: int = 15) -> float:
    """The mean accepted length of an answer to a prompt, in words and signs."""
    ids: dict[str, int] = {}

    def tokens(text: str) -> list[int]:
        return [ids.setdefault(word, len(ids)) for word in re.findall(r"\s?\w+|\s+|.", text)]

    lookup, wanted = Lookup(tokens(prompt)), tokens(answer)
    at = rounds = 0
    while at < len(wanted):
        match = lookup.find(min(most, len(wanted) - at - 1))
        drafted = match.tokens if match and lookup.trusts(match) else ()
        accepted = 0
        while accepted < len(drafted) and drafted[accepted] == wanted[at + accepted]:
            accepted += 1
        if drafted:
            lookup.record(match, accepted, len(drafted))
        lookup.extend(wanted[at : at + accepted + 1])
        at, rounds = at + accepted + 1, rounds + 1
    return len(wanted) / rounds


@pytest.mark.parametrize(
    ("prompt", "answer", "least"),
    [
        pytest.param(f"Repeat this text.\n\n{PROSE}", PROSE, 11.0, id="repeat this text"),
        pytest.param(
            f"Say 'token' as 'piece'.\n\n{PROSE}",
            PROSE.replace("token", "piece"),
            4.5,  # a word of about twenty is another one
            id="rewrite with a small change",
        ),
        pytest.param(
            f"Fix this code.\n\n{CODE.replace('self.native', 'self.naitve', 3)}",
            CODE,
            12.0,
            id="fix this code",
        ),
        pytest.param("Tell me more.", PROSE, 1.0, id="nothing to copy"),
    ],
)
def test_what_copying_gives(prompt: str, answer: str, least: float) -> None:
    assert length_of(prompt, answer) >= least


# --- with the demo pair ---------------------------------------------------------------------

QUESTION = "What is DFlash?"


@pytest.fixture(scope="module")
def again(demo: LoadedPair) -> tuple[ChatMessage, ...]:
    """A chat whose next answer stands in it word for word."""
    demo.native.reset()
    first = ask(demo, chat(QUESTION), AskParams(max_tokens=120)).answer.text
    answer = ChatMessage(Role.ASSISTANT, first)
    return (*chat(QUESTION), answer, *chat(QUESTION))


@pytest.fixture(scope="module")
def alone(demo_files: Pair, _named_backend: None) -> Iterator[LoadedPair]:
    """The target without its drafter."""
    yield from opened(replace(demo_files, draft=None), BACKEND, n_ctx=2048)


def origins(asked: Asked) -> list[Origin]:
    return [d.round.origin for d in asked.stream if d.round and d.round.drafted]


def test_an_answer_that_was_given_before_is_looked_up(
    cold: LoadedPair, again: tuple[ChatMessage, ...]
) -> None:
    params = AskParams(max_tokens=120, block=8)
    with_, without = (ask(cold, again, replace(params, lookup=on)) for on in (True, False))
    assert with_.answer.token_ids == without.answer.token_ids
    assert Origin.LOOKUP in origins(with_)
    assert set(origins(without)) == {Origin.DRAFTER}
    totals = with_.answer.totals
    assert totals.rows_from["lookup"] == totals.looked_up > 0
    assert sum(totals.rows_from.values()) == totals.drafted
    assert totals.looked_up_accepted > totals.looked_up // 2
    # by position only what the drafter did
    rounds = sum(origin is Origin.DRAFTER for origin in origins(with_))
    assert (totals.drafted_at or (0,))[0] == rounds
    assert sum(totals.accepted_at) == totals.accepted - totals.looked_up_accepted


@pytest.mark.parametrize("governed", [False, True])
def test_a_hint_goes_on_where_the_drafter_agrees_with_it(cold: LoadedPair, governed: bool) -> None:
    """Whatever it says, the text is the target's."""
    native, tokens = cold.native, cold.prompt(chat(QUESTION), think=False).tokens

    def rounds(hint: Callable[[int], Sequence[int]]) -> list[NativeRound]:
        first, _ = native.prompt(tokens)
        held, made = [first], []
        while len(held) < 80:
            told = hint(len(held))
            made.append(native.round(15, governed=governed, hint=told))
            drafted, own = made[-1].drafted, made[-1].own
            assert own == len(drafted) or (own >= 2 and drafted == tuple(told[: len(drafted)]))
            held += made[-1].emitted
        assert held[:80] == text[:80]
        return made

    text = [native.prompt(tokens)[0]]
    while len(text) < 110:
        text += native.round(0).emitted
    alone = rounds(lambda _: ())
    assert all(made.own == len(made.drafted) for made in alone)
    # The text itself: what the drafter does not know comes out of it.
    right = rounds(lambda at: text[at : at + 15])
    hinted = [made for made in right if made.own < len(made.drafted)]
    assert all(len(made.emitted) == len(made.drafted) + 1 for made in hinted)
    # As the drafter begins, and then nonsense: as far as both agree it holds.
    wrong = rounds(lambda at: [*text[at : at + 3], *[5] * 12])
    if not governed:  # by how many rows pay here, none of them may come out of the hint
        assert hinted
        assert len(right) < len(alone)
        assert any(made.own < len(made.drafted) for made in wrong)
    # Another beginning, or too few tokens: as if there were none.
    for other in ([5] * 15, text[:1]):
        assert all(made.own == len(made.drafted) for made in rounds(lambda _, o=other: o))


def test_without_a_drafter_too(
    cold: LoadedPair, alone: LoadedPair, again: tuple[ChatMessage, ...]
) -> None:
    plain = ask(cold, again, AskParams(max_tokens=120, draft=False)).answer
    asked = ask(alone, again, AskParams(max_tokens=120))
    assert asked.answer.token_ids == plain.token_ids
    assert set(origins(asked)) == {Origin.LOOKUP}
    length = asked.answer.totals.mean_accepted_length
    assert length is not None
    assert length > 2
    assert not ask(alone, again, AskParams(max_tokens=60, lookup=False)).answer.totals.drafted


@pytest.mark.parametrize("verify", [Verify.HOST_SAMPLE, Verify.GPU_SAMPLE])
def test_a_seed_gives_its_text_with_and_without(
    cold: LoadedPair, alone: LoadedPair, again: tuple[ChatMessage, ...], verify: Verify
) -> None:
    params = AskParams(
        max_tokens=48, verify=verify, sampling=Sampling(temperature=0.6, top_p=0.95, seed=11)
    )
    texts = {
        ask(pair, again, replace(params, lookup=on, block=block)).answer.token_ids
        for pair in (cold, alone)
        for on in (True, False)
        for block in (None, 2, 16)
    }
    assert len(texts) == 1


# As the model's vendor advises for thinking.
THINKING = Sampling(temperature=1.0, top_k=20, top_p=0.95, presence_penalty=1.5, seed=11)


@pytest.mark.timeout(900)  # beside whatever else runs
@pytest.mark.parametrize("verify", [Verify.HOST_SAMPLE, Verify.GPU_SAMPLE])
def test_a_seed_gives_its_text_in_every_way(
    cold: LoadedPair, alone: LoadedPair, again: tuple[ChatMessage, ...], verify: Verify
) -> None:
    """Drafter and lookups on and off, any block, with a penalty."""
    params = AskParams(max_tokens=48, verify=verify, sampling=THINKING)
    ways = [
        (pair, replace(params, lookup=on, block=block))
        for pair, blocks in ((cold, range(2, 17)), (alone, (2, 16)))
        for on in (True, False)
        for block in (None, *blocks)
    ]
    ways.append((cold, replace(params, draft=False)))
    assert len({ask(pair, again, way).answer.token_ids for pair, way in ways}) == 1
