"""What slipstream.h promises of calls that are refused or cancelled, and near the context's end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.binding import NativePair, Sampling, Verify
from app.binding.inspection import eval_draft, eval_target, measure_costs
from app.errors import ContextFullError, OptionError
from app.jobs import JobCancelled
from app.library import Pair

PROMPT = list(range(40, 90))
OTHER = list(range(140, 190))


@pytest.fixture
def pair(demo_files: Pair) -> Iterator[NativePair]:
    made = NativePair(demo_files.target, demo_files.draft, n_ctx=256, threads=1)
    yield made
    made.close()


@pytest.fixture
def plain(demo_files: Pair) -> Iterator[NativePair]:
    """A pair without a drafter."""
    made = NativePair(demo_files.target, None, n_ctx=256, threads=1)
    yield made
    made.close()


def steps(pair: NativePair, n: int) -> list[int]:
    return [token for _ in range(n) for token in pair.round(0).emitted]


def test_a_refused_prompt_leaves_the_pair_as_it_was(plain: NativePair) -> None:
    plain.prompt(PROMPT, drafting=False)
    whole = steps(plain, 20)
    plain.reset()
    plain.prompt(PROMPT, drafting=False)
    begun = steps(plain, 10)
    hot = Sampling(temperature=5.0, top_k=0, top_p=1.0)
    sampled = {"verify": Verify.HOST_SAMPLE, "sampling": hot, "seed": 1}
    with pytest.raises(OptionError, match="no drafter"):
        plain.prompt(OTHER, drafting=True, **sampled)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="vocabulary"):
        plain.prompt([*OTHER, 10**6], drafting=False, **sampled)  # type: ignore[arg-type]
    with pytest.raises(ContextFullError):
        plain.prompt(OTHER * 6, drafting=False, **sampled)  # type: ignore[arg-type]
    assert begun + steps(plain, 10) == whole


@pytest.mark.parametrize("width", [0, 15])
def test_a_cancelled_prompt_has_no_answer(pair: NativePair, width: int) -> None:
    token, _ = pair.prompt(PROMPT)
    answer = [token, *pair.round(width).emitted]
    pair.cancel(True)
    with pytest.raises(JobCancelled):
        pair.prompt(OTHER)
    held = pair.position
    pair.cancel(False)
    with pytest.raises(OptionError, match="prompt"):
        pair.round(width)
    assert pair.position == held
    token, reused = pair.prompt(PROMPT)
    assert reused <= held
    assert [token, *pair.round(width).emitted] == answer


@pytest.mark.parametrize("n_ctx", [2, 3, 16, 17, 18, 63, 64, 65, 70, 80, 100, 128, 200])
def test_costs_in_a_short_context(demo_files: Pair, n_ctx: int) -> None:
    pair = NativePair(demo_files.target, demo_files.draft, n_ctx=n_ctx, threads=1)
    try:
        costs = measure_costs(pair)
        assert pair.position == 0
        assert costs.plain > 0
        assert costs.draft > 0
        widest = min(16, n_ctx - 1)  # behind a prompt of one token
        measured = [width for width, ms in enumerate(costs.verify) if ms > 0]
        assert max(measured, default=1) == widest
        assert set(measured) <= {2, 3, 4, 6, 8, 12, widest}  # as many as there is time for
        pair.prompt([1])
        assert pair.round(15).emitted
    finally:
        pair.close()


def test_a_context_without_room_for_a_step_has_no_costs(demo_files: Pair) -> None:
    pair = NativePair(demo_files.target, demo_files.draft, n_ctx=1, threads=1)
    try:
        pair.prompt([1])
        with pytest.raises(ContextFullError):
            measure_costs(pair)
        assert pair.position == 1
    finally:
        pair.close()


def test_a_token_that_is_none_leaves_the_pair_as_it_was(pair: NativePair) -> None:
    pair.prompt(PROMPT)
    whole = steps(pair, 6)
    pair.reset()
    pair.prompt(PROMPT)
    begun, held = steps(pair, 3), pair.position
    for call in (eval_target, lambda pair, tokens: eval_draft(pair, tokens, 5)):
        with pytest.raises(OptionError, match="4096 is not in the vocabulary"):
            call(pair, [1, 2, 3, 4096])
    assert pair.position == held
    assert begun + steps(pair, 3) == whole


def test_a_drafter_does_not_know_what_a_plain_prompt_read(demo_files: Pair) -> None:
    """Its window has gone so far that it could not be taken back to what the prompts share."""
    pair = NativePair(demo_files.target, demo_files.draft, n_ctx=4096, threads=1)
    try:
        long, other = (
            [token % 3000 + 40 for token in range(2600)],
            [7 * token % 3000 + 40 for token in range(400)],
        )
        pair.prompt([*PROMPT[:8], *long])
        pair.prompt([*PROMPT[:8], *other], drafting=False)
        _, reused = pair.prompt([*PROMPT[:8], *other, *OTHER])
        assert reused <= 8
    finally:
        pair.close()
