"""What stays with an answer of how it was made, small enough to be kept with it for ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from app.engine.messages import Answer, FinishReason
from app.engine.plain import Plain
from app.engine.speedup import Speedup
from app.engine.stats import RoundTotals, steady


@dataclass(frozen=True, slots=True)
class Figures:
    """See `stats` for the definitions. Times are milliseconds.

    `first_token_ms` is from when it was asked of the engine to the first token, `wall_ms` to
    the end; both by the clock of who asked, 0 where nobody timed it. `parts` counts how
    often the answer was begun: more than once where it was gone on with. `waited_ms` is how
    long it waited for its turn, `fallback` why it ran on the CPU where a GPU was wanted,
    `loaded_tokens_per_s` the plain rate when the model was loaded, `pace` how much longer a
    round took than at its beginning, and `temperature` that at which tokens were drawn, 0 where
    none were; None where that is not known. `thinking_end` is why its thinking was ended, empty
    where it was not. `paused`: a round was plain because no draft seemed to pay; `rests`: so were
    the last ones. `plain_uneven` as in `Plain`.
    """

    finish_reason: FinishReason
    completion_tokens: int
    prompt_tokens: int
    reused: int  # prompt tokens that the target held already
    prefill_ms: float
    totals: RoundTotals
    plain_tokens_per_s: float | None
    backend: str
    device: str
    seed: int | None
    model: str = ""
    first_token_ms: float = 0.0
    wall_ms: float = 0.0
    parts: int = 1
    waited_ms: float = 0.0
    fallback: str = ""
    loaded_tokens_per_s: float | None = None
    pace: float | None = None
    temperature: float | None = None
    thinking_end: str = ""
    paused: bool = False
    rests: bool = False
    plain_uneven: bool = False

    @classmethod
    def of(cls, answer: Answer, **known: Any) -> Figures:
        """Of an answer; `known` is what its engine does not tell."""
        return cls(
            finish_reason=answer.finish_reason,
            completion_tokens=answer.completion_tokens,
            prompt_tokens=answer.prompt_tokens,
            reused=answer.reused,
            prefill_ms=answer.prefill_ms,
            totals=answer.totals,
            plain_tokens_per_s=answer.plain.tokens_per_s,
            plain_uneven=answer.plain.uneven,
            pace=answer.pace,
            paused=answer.paused,
            rests=answer.rests,
            backend=answer.backend,
            device=answer.device,
            seed=answer.seed,
            thinking_end=answer.thinking_end or "",
            **known,
        )

    @property
    def plain(self) -> Plain:
        return Plain(self.plain_tokens_per_s, self.plain_uneven)

    @property
    def speedup(self) -> Speedup:
        return Speedup.of(self.totals, self.plain, self.pace)

    @property
    def context(self) -> int:
        """Tokens of prompt and answer."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def decode_ms(self) -> float:
        """Of all rounds; the prompt is not among them."""
        return self.totals.total_ms

    def then(self, more: Figures) -> Figures:
        """Those of an answer that was gone on with: how it began, and how it ended."""
        plain = _beside((self, more))
        return replace(
            more,
            completion_tokens=self.completion_tokens + more.completion_tokens,
            prompt_tokens=self.prompt_tokens or more.prompt_tokens,
            reused=self.reused,
            prefill_ms=self.prefill_ms + more.prefill_ms,
            totals=self.totals + more.totals,
            first_token_ms=self.first_token_ms or more.first_token_ms,
            wall_ms=self.wall_ms + more.wall_ms,
            parts=self.parts + more.parts,
            waited_ms=self.waited_ms + more.waited_ms,
            thinking_end=more.thinking_end or self.thinking_end,
            paused=self.paused or more.paused,
            plain_tokens_per_s=plain.tokens_per_s,
            plain_uneven=plain.uneven,
            pace=more.pace if steady(self.pace) else self.pace,
        )

    # --- as it is kept ------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Of what JSON knows."""
        return asdict(self)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Figures | None:
        """What `as_dict` gave, in this version or another; None where it cannot be that."""
        try:
            totals = _known(RoundTotals, kept["totals"])
            for name in ("accepted_per_round", "drafted_at", "accepted_at"):
                totals[name] = tuple(int(n) for n in totals.get(name, ()))
            if not all(isinstance(v, tuple) or _number(v) for v in totals.values()):
                return None
            known = _known(cls, kept)
            known["totals"] = RoundTotals(**totals)
            known["finish_reason"] = FinishReason(known["finish_reason"])
            result = cls(**known)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        text = {"backend", "device", "model", "fallback", "thinking_end"}
        flags = {"paused", "rests", "plain_uneven"}
        numbers = {f.name for f in fields(cls)} - text - flags - {"finish_reason", "totals"}
        fits = all(isinstance(getattr(result, name), bool) for name in flags)
        fits = fits and all(isinstance(getattr(result, name), str) for name in text)
        fits = fits and all(_number(getattr(result, name)) for name in numbers)
        return result if fits else None


def _beside(parts: Iterable[Figures]) -> Plain:
    """What plain decoding does over parts of an answer, each at its own time."""
    decoded = [part for part in parts if part.totals.rounds]
    tokens = spent = 0.0
    for part in decoded:
        if not part.plain_tokens_per_s:
            return Plain()
        tokens += (told := part.totals.accepted + part.totals.rounds)
        spent += told / part.plain_tokens_per_s
    return Plain(tokens / spent, any(p.plain_uneven for p in decoded)) if decoded else Plain()


def _known(kind: type, kept: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    return {name: value for name, value in kept.items() if name in names}


def _number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
