"""Numbers and states as words: the same for the eye and for a screen reader."""

from __future__ import annotations

import math
import re

from app.conversation import End, Turn
from app.engine import Figures, FinishReason, Speedup, ThinkingEnd, WidthReason
from app.ui.look.language import tr

UNKNOWN = "not measured yet"
UNMEASURED = "not measured"
"""Of what has ended, where nothing more comes."""


def quoted(text: str) -> str:
    """Names between backticks, as a console has them, in the quotes that people read."""
    return re.sub(r"`([^`\n]+)`", "“\\1”", text)


def rate(value: float | None, *, ended: bool = False) -> str:
    """Tokens per second, of an answer that has ended or still comes; nothing but a finite,
    positive number is shown."""
    if value is None or not math.isfinite(value) or value <= 0:
        return tr(UNMEASURED if ended else UNKNOWN)
    return f"{value:.0f} tok/s" if value >= 10 else f"{value:.1f} tok/s"


def times(value: float | None) -> str:
    """A speed-up; below 1 it is said as it is."""
    if value is None or not math.isfinite(value) or value <= 0:
        return tr(UNKNOWN)
    return f"×{value:.1f}" if value >= 0.95 else f"×{value:.2f}"


def speedup(found: Speedup) -> str:
    """Its figure, or why there is none."""
    if found.why is None:
        return times(found.times)
    return tr("not measured ({why})").format(why=tr(found.why.words))


def length(value: float | None) -> str:
    return tr(UNKNOWN) if value is None or not math.isfinite(value) else f"{value:.1f}"


def count(tokens: int) -> str:
    return str(tokens) if tokens < 1000 else f"{tokens / 1000:.1f}k"


def use(used: int, size: int) -> str:
    """Of a context: both in the same thousands, and what is not full never reads as if it were."""
    unit = 1024 if size % 1024 == 0 else 1000
    shown = (str(n) if n < 1000 else f"{n * 10 // unit / 10:g}k" for n in (used, size))
    return " / ".join(shown)


def tokens(amount: int) -> str:
    return f"{amount:,} token" if amount == 1 else f"{amount:,} tokens"


def reading(done: int, total: int) -> str:
    return f"Reading the prompt … {done:,} of {tokens(total)}"


def number(amount: int, noun: str) -> str:
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def choice(*ways: str) -> str:
    """What can be done, as a sentence; nothing where there is nothing."""
    *others, last = ways or ("",)
    told = f"{', '.join(others)}, or {last}" if others else last
    return f"{told[:1].upper()}{told[1:]}." if told else ""


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
        WidthReason.PAYS: ", pays most",
        WidthReason.PLAIN: ", paused",
        WidthReason.PROBE: ", a try",
    }.get(reason, "")
    return f"{width} of {of}{why}"


def exactness(exact: bool | None) -> tuple[str, str]:
    """The badge and what it means, in the words of the README."""
    if exact is None:
        return "—", tr(UNKNOWN)
    if exact:
        return tr("exact"), tr("Drafted text is plain text on this device, token for token.")
    return (
        tr("lossless"),
        tr(
            "Drafted text is plain text, unless two tokens are so near to each other "
            "that this device decides by the number of rows in a pass."
        ),
    )


def duration(spent_ms: float) -> str:
    """For people: tenths of seconds, less in milliseconds, and minutes where there are any.

    What it is told in is chosen by the rounded number, so that none reads "60.0 s".
    """
    if round(spent_ms) < 1000:
        return milliseconds(spent_ms)
    seconds = round(spent_ms / 1000, 1)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(spent_ms / 1000), 60)
    return f"{minutes} min {seconds} s"


def thought(milliseconds: int, *, ongoing: bool = False) -> str:
    if ongoing:
        return tr("thinking for {n} s").format(n=f"{milliseconds / 1000:.0f}")
    seconds = round(milliseconds / 1000)
    return tr("thought for {n} s").format(n=seconds) if seconds else tr("thought for a moment")


def footer(figures: Figures) -> str:
    """Tokens, rate of decoding, time to the first token, mean accepted length, speed-up; nothing
    of an answer that never began."""
    totals = figures.totals
    if not figures.completion_tokens:
        return ""
    parts = [f"{figures.completion_tokens} tok"]
    if totals.tokens_per_s is not None:
        parts.append(rate(totals.tokens_per_s))
    if figures.first_token_ms:
        parts.append(f"first after {duration(figures.first_token_ms)}")
    if totals.drafted and totals.mean_accepted_length is not None:
        parts.append(f"{totals.mean_accepted_length:.1f} per round")
        if figures.speedup.times is not None:
            parts.append(times(figures.speedup.times))
    return " · ".join(parts)


def finish_note(turn: Turn) -> str:
    """Why an answer ended, where the model did not end it itself."""
    thinking = " while thinking" if turn.reasoning and not turn.text else ""
    why = {
        End.STOPPED: "Stopped by you",
        End.REPLACED: "Stopped for another answer",
        End.LOOPED: "Stopped: it repeated itself",
        End.RELOADED: "Stopped: a model was loaded",
        End.CLOSED: "Interrupted: the window was closed",
        End.LOST: "Interrupted: Slipstream ended without a word",
    }.get(turn.end)
    if why is not None and turn.said:
        return f"{why}{thinking}."
    if why is not None:
        read = " while it read the prompt" if isinstance(turn.figures, Figures) else ""
        return f"{why.replace('Interrupted', 'Not answered')}{read}."
    reason = turn.figures.finish_reason if isinstance(turn.figures, Figures) else None
    match reason:
        case FinishReason.LENGTH:
            return f"Stopped at the token limit{thinking}."
        case FinishReason.CONTEXT:
            return f"Stopped because the context is full{thinking}."
    if turn.end is End.DONE and not turn.text:
        return "The model ended its answer without text."
    ended = turn.figures.thinking_end if isinstance(turn.figures, Figures) else ""
    match ended:
        case ThinkingEnd.BUDGET:
            return "Thinking was ended at its limit."
        case ThinkingEnd.ASKED:
            return "Thinking was ended by you."
        case ThinkingEnd.LOOP:
            return "Thinking was ended: it repeated itself."
    return ""


def details(figures: Figures) -> str:
    """What an answer's speed was made of."""
    totals, gain = figures.totals, figures.speedup
    new = figures.prompt_tokens - figures.reused
    reused = f", {figures.reused} reused" if figures.reused else ""
    by = f"{figures.model} on " if figures.model else ""
    lines = [
        f"{rate(totals.tokens_per_s, ended=True)} with {by}{figures.device}; "
        f"speed-up over plain decoding: {speedup(gain)}"
        + (f" (plain {rate(gain.plain_tokens_per_s)})" if gain.plain_tokens_per_s else ""),
        f"Decoding: {number(figures.completion_tokens, 'token')} in {duration(figures.decode_ms)}."
        + (f" All in all {duration(figures.wall_ms)}." if figures.wall_ms else ""),
        f"Prompt: {number(new, 'token')} read in {milliseconds(figures.prefill_ms)}{reused}.",
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
    if figures.parts > 1:
        lines.append(f"It was gone on with: these are the figures of {figures.parts} parts.")
    if gain.times is not None and gain.times < 1:
        lines.append("Drafting cost more here than it saved.")
    return "\n".join(lines)
