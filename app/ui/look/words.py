"""Numbers and states as words: the same for the eye and for a screen reader."""

from __future__ import annotations

import math

from app.engine import Answer, FinishReason, WidthReason

UNKNOWN = "not measured yet"


def rate(value: float | None) -> str:
    """Tokens per second; nothing but a finite, positive number is shown."""
    if value is None or not math.isfinite(value) or value <= 0:
        return UNKNOWN
    return f"{value:.0f} tok/s" if value >= 10 else f"{value:.1f} tok/s"


def times(value: float | None) -> str:
    """A speed-up; below 1 it is said as it is."""
    if value is None or not math.isfinite(value) or value <= 0:
        return UNKNOWN
    return f"×{value:.1f}" if value >= 0.95 else f"×{value:.2f}"


def length(value: float | None) -> str:
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.1f}"


def count(tokens: int) -> str:
    if tokens >= 1024 and tokens % 1024 == 0:
        return f"{tokens // 1024}k"
    return str(tokens) if tokens < 1000 else f"{tokens / 1000:.1f}k"


def tokens(amount: int) -> str:
    return f"{amount:,} token" if amount == 1 else f"{amount:,} tokens"


def reading(done: int, total: int) -> str:
    return f"Reading the prompt … {done:,} of {tokens(total)}"


def number(amount: int, noun: str) -> str:
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def size(octets: int) -> str:
    gigabytes = octets / 1e9
    return f"{gigabytes:.1f} GB" if gigabytes >= 0.1 else f"{octets / 1e6:.0f} MB"


def milliseconds(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def phases(
    times: tuple[float | None, float, float], drafted: bool = True
) -> list[tuple[str, float]]:
    """Draft, verify and host with their times; the first two as one where only both were timed."""
    draft, verify, host = times
    if draft is None:
        return [("draft and verify" if drafted else "verify", verify), ("host", host)]
    return [("draft", draft), ("verify", verify), ("host", host)]


def block(width: int, of: int, reason: WidthReason) -> str:
    """How much of the block was verified, and why not all of it."""
    why = {
        WidthReason.PAYS: " pays most",
        WidthReason.PLAIN: ": nothing pays",
        WidthReason.PROBE: ": a try",
    }.get(reason, "")
    return f"{width} of {of}{why}"


def exactness(exact: bool | None) -> tuple[str, str]:
    """The badge and what it means, in the words of the README."""
    if exact is None:
        return "—", UNKNOWN
    if exact:
        return "exact", "Drafted text is plain text on this device, token for token."
    return (
        "lossless",
        "Drafted text is plain text, unless two tokens are so near to each other "
        "that this device decides by the number of rows in a pass.",
    )


def footer(answer: Answer) -> str:
    decoding = (answer.totals.draft_ms or 0.0) + answer.totals.verify_ms + answer.totals.host_ms
    seconds = (decoding + answer.prefill_ms) / 1000
    parts = [f"{answer.completion_tokens} tok", f"{seconds:.1f} s"]
    if answer.totals.drafted and answer.totals.mean_accepted_length is not None:
        parts.append(f"{answer.totals.mean_accepted_length:.1f} per round")
    return " · ".join(parts)


def finish_note(answer: Answer) -> str:
    """Why the answer ended, where the model did not end it itself."""
    thinking = " while thinking" if answer.reasoning and not answer.text else ""
    match answer.finish_reason:
        case FinishReason.LENGTH:
            return f"Stopped at the token limit{thinking}."
        case FinishReason.CONTEXT:
            return f"Stopped because the context is full{thinking}."
        case FinishReason.CANCELLED if not answer.completion_tokens:
            return "Stopped by you before it began: the prompt was still being read."
        case FinishReason.CANCELLED:
            return f"Stopped by you{thinking}."
    return "" if answer.text else "The model ended its answer without text."


def details(answer: Answer) -> str:
    """What an answer's speed was made of."""
    totals = answer.totals
    new = answer.prompt_tokens - answer.reused
    reused = f", {answer.reused} reused" if answer.reused else ""
    lines = [
        f"{rate(totals.tokens_per_s)} on {answer.device}; "
        f"speed-up over plain decoding: {times(answer.speedup)}"
        + (f" (plain {rate(answer.plain_tokens_per_s)})" if answer.plain_tokens_per_s else ""),
        f"Prompt: {number(new, 'token')} read in {milliseconds(answer.prefill_ms)}{reused}.",
    ]
    if totals.drafted:
        share = totals.accepted / totals.drafted
        lines.append(
            f"{number(totals.rounds, 'round')}: {totals.accepted} of {totals.drafted} drafted "
            f"tokens accepted ({share:.0%})."
        )
    else:
        lines.append(f"{number(totals.rounds, 'plain step')}: nothing was drafted.")
    if totals.rounds:
        parts = phases((totals.draft_ms, totals.verify_ms, totals.host_ms), bool(totals.drafted))
        round_ = ", ".join(f"{name} {total / totals.rounds:.1f} ms" for name, total in parts)
        lines.append(f"A round: {round_}.")
    if answer.speedup is not None and answer.speedup < 1:
        lines.append("Drafting cost more here than it saved.")
    return "\n".join(lines)
