"""The making of one answer: prefill, rounds, stop rules, counters.

A generator of events, so that the caller decides when the next round runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from app.binding import NativePair, NativeRound
from app.engine.lookup import ROWS, Lookup, Match
from app.engine.messages import (
    Answer,
    Decoded,
    Event,
    Finished,
    FinishReason,
    LoadedModel,
    Prefilled,
    Reading,
    ThinkingEnd,
)
from app.engine.params import AskParams
from app.engine.plain import PlainSpeed
from app.engine.repetition import repeats
from app.engine.stats import Origin, Pace, Rest, RoundRecord, RoundTally
from app.engine.text import AnswerText, Piece
from app.errors import ContextFullError, NonFiniteError
from app.jobs import JobCancelled
from app.limits import RANGES

if TYPE_CHECKING:
    from app.engine.prompt import Prompt

_READ_AT_ONCE: Final = 2048  # tokens of a prompt, between two words about it


@dataclass(slots=True)
class Answering:
    """One answer of `native` to `prompt`, decoded into `text`.

    `closing` are the tokens that end thinking, which `answer_now` asks for; none where the model
    has no mark for it.
    """

    native: NativePair
    model: LoadedModel
    request: int
    prompt: Prompt
    params: AskParams
    text: AnswerText
    plain: PlainSpeed
    closing: Sequence[int] = ()
    answer_now: Callable[[], bool] = lambda: False
    lookup: Lookup = field(default_factory=Lookup)
    _ids: list[int] = field(default_factory=list)
    _outside: dict[int, str] = field(default_factory=dict)  # what belongs to no round, as shown
    _tally: RoundTally = field(default_factory=RoundTally)
    _pace: Pace = field(default_factory=Pace)
    _rest: Rest = field(default_factory=Rest)
    _reason: FinishReason | None = None
    _reused: int = 0
    _prefill_ms: float = 0.0
    _seed: int = 0
    _was_plain: bool = False
    _thought: int = 0  # tokens of thinking
    _most_thought: int | None = None  # how many there may be, and why no more
    _end_of_thinking: ThinkingEnd = ThinkingEnd.BUDGET
    _thinking_end: ThinkingEnd | None = None

    def __post_init__(self) -> None:
        import secrets  # here: no start needs it

        seed = self.params.sampling.seed
        self._seed = secrets.randbits(64) if seed is None else seed
        self._most_thought = self.params.think_budget

    def events(self) -> Iterator[Event]:
        """The last of them is `Finished`."""
        try:
            if self.params.max_tokens == 0:
                self._reason = FinishReason.LENGTH
            else:
                yield from self._prefill()
            while self._reason is None:
                yield self._end_thinking() if self._thinks_no_more() else self._round()
        except JobCancelled:
            self._reason = FinishReason.CANCELLED
        tail = self.text.finish()
        if tail.text or tail.reasoning:
            yield Decoded(self.request, tail.text, tail.reasoning, None)
        yield Finished(self.request, self._answer())

    def _prefill(self) -> Iterator[Event]:
        tokens, keep = self.prompt.tokens, self.prompt.keep
        start = time.perf_counter()
        try:
            # In parts, so that one can be told how far it is. The first one holds whatever the
            # target holds already, the last one begins no later than what is to be kept.
            reused: int | None = None
            for end in range(self.native.position + _READ_AT_ONCE, keep, _READ_AT_ONCE):
                _, held = self._read(tokens[:end], keep=0)
                reused = held if reused is None else reused
                yield Reading(self.request, end, len(tokens))
            first, held = self._read(tokens, keep)
            self._reused = held if reused is None else reused
        finally:
            self._prefill_ms = (time.perf_counter() - start) * 1000
        yield Prefilled(self.request, len(self.prompt.tokens), self._reused, self._prefill_ms)
        check_numbers(first, self.native, self.model)
        if self._looking_up:
            self.lookup.begin(tokens)
        yield self._take_outside((first,))

    def _read(self, tokens: Sequence[int], keep: int) -> tuple[int, int]:
        return self.native.prompt(
            tokens,
            keep=keep,
            drafting=self._drafting,
            verify=self.params.verify,
            sampling=self.params.sampling,
            seed=self._seed,
        )

    def _thinks_no_more(self) -> bool:
        if not (self.text.thinking and self.closing):
            return False
        if self._most_thought is not None and self._thought >= self._most_thought:
            return True
        if self.answer_now():
            self._end_of_thinking = ThinkingEnd.ASKED
            return True
        return False

    def _end_thinking(self) -> Event:
        """Has the target read the end of thinking as if it had chosen it, and go on from there.

        What it holds stays, so that nothing but these tokens is read.
        """
        tokens = tuple(self.closing)
        if len(tokens) < self.params.max_tokens - len(self._ids):
            start = time.perf_counter()
            try:
                first, _ = self._read([*self.prompt.tokens, *self._ids, *tokens], keep=0)
            except ContextFullError:
                self._reason = FinishReason.CONTEXT
                return Decoded(self.request, "", "", None)
            self._prefill_ms += (time.perf_counter() - start) * 1000
            check_numbers(first, self.native, self.model)
            self._was_plain = False
            tokens = (*tokens, first)
        self._thinking_end = self._end_of_thinking
        return self._take_outside(tokens)

    def _round(self) -> Event:
        room = self.params.max_tokens - len(self._ids)  # tokens this round may still give
        if self.text.thinking and self.closing and self._most_thought is not None:
            room = min(room, self._most_thought - self._thought)
        width = self.params.block or self.model.block or ROWS
        most = max(0, min(width, room) - 1)
        match = self.lookup.find(most) if self._looking_up else None
        copied = match if match and self.lookup.trusts(match) else None
        hint = self.lookup.hint(most, match) if self._looking_up and not copied else ()
        start = time.perf_counter()
        try:
            native = self._decode(most, copied, hint)
        except ContextFullError:
            self._reason = FinishReason.CONTEXT
            return Decoded(self.request, "", "", None)
        seconds = time.perf_counter() - start
        if not native.drafted and self._was_plain:
            self.plain.add(self._context, seconds)
        self._was_plain = not native.drafted
        check_numbers(native.emitted[-1], self.native, self.model)
        origin, agreed = Origin.DRAFTER, _agreed(hint, native.drafted)
        accepted = len(native.emitted) - 1
        if copied:
            origin, agreed = Origin.LOOKUP, 0
            self.lookup.record(copied, accepted, len(native.drafted))
        elif native.own < len(native.drafted):
            origin, agreed = Origin.BOTH, native.own
            if accepted >= native.own:
                self.lookup.record_hint(accepted > native.own)
        piece, used = self._take(native.emitted)
        record = self._record(native, used, seconds, origin, agreed)
        for counted in (self._tally, self._pace, self._rest):
            counted.add(record)
        return Decoded(self.request, piece.text, piece.reasoning, record)

    def _decode(self, most: int, match: Match | None, hint: Sequence[int]) -> NativeRound:
        """A round of at most `most` drafted tokens: those of `match`, or the drafter's, or of
        `hint` where that begins as they do."""
        if match:
            return self.native.round_given(match.tokens)
        n_draft = most if self._drafting else 0
        return self.native.round(n_draft, governed=self.params.block is None, hint=hint)

    def _take_outside(self, tokens: Sequence[int]) -> Event:
        """Adds tokens that belong to no round."""
        piece, used = self._take(tokens)
        self._outside |= {token: self._shown(token) for token in tokens[:used]}
        return Decoded(self.request, piece.text, piece.reasoning, None)

    def _take(self, tokens: Sequence[int]) -> tuple[Piece, int]:
        """Adds tokens up to one that ends the answer; returns their text and number."""
        text = reasoning = ""
        used = 0
        for token in tokens:
            used += 1
            self._ids.append(token)
            if self.native.is_end(token) or token in self.params.stop_tokens:
                self._reason = FinishReason.STOP
                break
            self._thought += self.text.thinking
            piece = self.text.feed(token)
            text, reasoning = text + piece.text, reasoning + piece.reasoning
            if piece.stopped:
                self._reason = FinishReason.STOP
                break
            if len(self._ids) == self.params.max_tokens:
                self._reason = FinishReason.LENGTH
                break
            if self.params.loop_guard and repeats(self._ids, thinking=self.text.thinking):
                if self.text.thinking and self.closing:
                    self._think_little_more()
                    continue
                self._reason = FinishReason.LOOP
                break
        if self._looking_up:
            self.lookup.extend(tokens[:used])
        return Piece(text, reasoning), used

    def _think_little_more(self) -> None:
        """It goes round in circles: it is to answer, once no round can have gone beyond that place,
        which so is the same one with and without drafts."""
        most = self._thought + int(RANGES["block"].most)
        if self._most_thought is None or most < self._most_thought:
            self._most_thought, self._end_of_thinking = most, ThinkingEnd.LOOP

    def _record(
        self, native: NativeRound, used: int, seconds: float, origin: Origin, agreed: int
    ) -> RoundRecord:
        draft_ms = None if native.draft_us is None else native.draft_us / 1000
        verify_ms = native.verify_us / 1000
        return RoundRecord(
            drafted=tuple(self._shown(t) for t in native.drafted),
            accepted=used - 1,
            emitted=tuple(self._shown(t) for t in native.emitted[:used]),
            token_ids=native.emitted[:used],
            draft_ms=draft_ms,
            verify_ms=verify_ms,
            host_ms=max(0.0, seconds * 1000 - (draft_ms or 0.0) - verify_ms),
            reason=native.reason,
            syncs=native.syncs,
            graphs_run=native.graphs_run,
            graphs_rebuilt=native.graphs_rebuilt,
            bytes_to_host=native.bytes_to_host,
            origin=origin,
            agreed=agreed,
        )

    def _shown(self, token: int) -> str:
        """A token's text for a tooltip; parts of characters come as U+FFFD."""
        return self.native.token_bytes(token, special=True).decode("utf-8", "replace")

    @property
    def _context(self) -> int:
        return len(self.prompt.tokens) + len(self._ids)

    @property
    def _drafting(self) -> bool:
        return self.params.draft and self.model.has_draft

    @property
    def _looking_up(self) -> bool:
        return self.params.draft and self.params.lookup and self.params.block != 1

    def _answer(self) -> Answer:
        return Answer(
            text=self.text.text,
            reasoning=self.text.reasoning,
            token_ids=tuple(self._ids),
            finish_reason=self._reason or FinishReason.STOP,
            prompt_tokens=len(self.prompt.tokens),
            reused=self._reused,
            prefill_ms=self._prefill_ms,
            totals=self._tally.totals,
            plain=self.plain.at(self._context),
            backend=self.model.backend,
            device=self.model.device.description,
            seed=self._seed,
            thinking_end=self._thinking_end,
            outside=self._outside,
            pace=self._pace.change,
            paused=self._rest.ever,
            rests=self._rest.now,
        )


def _agreed(hint: Sequence[int], drafted: Sequence[int]) -> int:
    """How many of the first `drafted` tokens the text would have given too."""
    pairs = zip(hint, drafted, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def check_numbers(token: int, native: NativePair, model: LoadedModel) -> None:
    """Raises NonFiniteError where that is no token, since a logit that it was to be chosen by was
    not finite. What is held is of no use any more."""
    if token < 0:
        native.reset()
        raise NonFiniteError(
            f"`{model.name}` computes numbers that are not finite on {model.device.description}, "
            "so no token can be chosen.",
            remedy="Check its files or get it again; if it comes again, use another device.",
        )
