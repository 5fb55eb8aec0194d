"""``slipstream bench``: plain decoding against DFlash, by block length.

All modes take turns on every prompt, so that a machine that slows down slows all of
them. Rates and mean accepted lengths are medians over the answers of a mode, prefill not
included. With
``--busy N`` plain decoding and the governor are measured again beside 1, 2 ... N
other programs that take all the processor they get, as a browser or a build does.

Drafts are the drafter's alone, but for the last row: there a question is asked that the
chat has answered already, so that they can be looked up.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.synchronize import Barrier
from typing import Final

from app.cli import loading
from app.cli.command import Context, Job, Result
from app.conversation import ChatMessage, Role
from app.engine import Answer, AskParams, Plain, RoundTotals, Speedup, Unmeasured
from app.errors import OptionError
from app.loading import LoadChoice
from app.processes import belong_to_parent

HELP: Final = "measure plain decoding against DFlash"

PROMPTS: Final = (
    "What is DFlash?",
    "Count from 1 to 30.",
    "Write a short story about a river.",
)
_BLOCKS: Final = (2, 4, 8, 12, 16)
_MOST_BUSY: Final = 64
_STARTS_S: Final = 120.0  # within which a busy program has begun, on a busy machine too
_MOST_RUNS: Final = 1000


@dataclass(slots=True)
class _Mode:
    """One way to decode and what was measured of it."""

    name: str
    params: AskParams
    rates: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)  # mean accepted, of the same answers
    totals: RoundTotals = field(default_factory=RoundTotals)

    def measure(self, opened: loading.OpenModel, prompt: str) -> Answer:
        return self.ask(opened, [ChatMessage(Role.USER, prompt)])

    def ask(self, opened: loading.OpenModel, chat: list[ChatMessage]) -> Answer:
        answer = opened.client.ask(chat, self.params)
        self.add(answer)
        return answer

    def add(self, answer: Answer) -> None:
        rate, length = answer.totals.tokens_per_s, answer.totals.mean_accepted_length
        if rate is not None and length is not None:
            self.rates.append(rate)
            self.lengths.append(length)
        self.totals += answer.totals

    @property
    def rate(self) -> float | None:
        return statistics.median(self.rates) if self.rates else None

    @property
    def length(self) -> float | None:
        return statistics.median(self.lengths) if self.lengths else None

    def speedup(self, plain: _Mode) -> Speedup:
        """No answer is faster than by its length; so the one in the middle is not either."""
        if not self.totals.drafted:
            return Speedup(None, plain.rate, Unmeasured.UNDRAFTED)
        return Speedup.between(self.rate, Plain(plain.rate), self.length)

    def again(self) -> _Mode:
        return _Mode(self.name, self.params)


def add_options(parser: ArgumentParser) -> None:
    loading.add_options(parser)
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        default=3,
        help="how often each prompt is answered in each mode (default: %(default)s)",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        default=128,
        help="the most tokens of an answer (default: %(default)s)",
    )
    parser.add_argument(
        "--busy",
        type=int,
        metavar="N",
        default=0,
        help="measure again beside 1 to N busy programs",
    )


def prepare(args: Namespace) -> Job:
    """Raises `OptionError` for numbers that measure nothing."""
    if args.runs < 1 or args.max_tokens < 2:
        raise OptionError("There is nothing to measure.", remedy="Use 1 run and 2 tokens or more.")
    if args.runs > _MOST_RUNS:
        raise OptionError(
            f"{args.runs} runs would never end.", remedy=f"Use 1 to {_MOST_RUNS} of them."
        )
    if not 0 <= args.busy <= _MOST_BUSY:
        raise OptionError(
            f"{args.busy} busy programs cannot be started.", remedy=f"Use 0 to {_MOST_BUSY}."
        )
    # As many tokens, whatever they are, and drafted by the drafter alone.
    params = AskParams(max_tokens=args.max_tokens, loop_guard=False, lookup=False)
    return _Bench(loading.choice_of(args), args.runs, args.busy, params)


@dataclass(frozen=True, slots=True)
class _Bench:
    choice: LoadChoice
    runs: int
    busy: int
    params: AskParams

    def __call__(self, context: Context) -> Result:
        with loading.loaded(context, self.choice) as opened:
            plain = _Mode("plain", replace(self.params, draft=False))
            governor = _Mode("auto", self.params)
            blocks = {
                block: _Mode(f"block {block}", replace(self.params, block=block))
                for block in _block_lengths(opened.model.block)
            }
            drafting = [*blocks.values(), governor] if opened.model.has_draft else []
            self._take_turns(context, opened, [plain, *drafting])
            busy = {}
            for programs in range(1, self.busy + 1):
                busy[programs] = [plain.again(), *([governor.again()] if drafting else [])]
                with _busy_programs(programs):
                    self._take_turns(context, opened, busy[programs])
            again = [plain.again(), _Mode("lookup", replace(self.params, lookup=True))]
            if opened.model.has_draft:
                again.insert(1, governor.again())
            self._ask_again(context, opened, again)
        value: dict[str, object] = {
            "model": opened.pair.id,
            "machine": opened.model.device.description,
            "backend": opened.model.backend,
            "plain_tokens_per_s": plain.rate,
            "rows": [{"block": block, **_row(mode, plain)} for block, mode in blocks.items()],
            "governor": {
                "tokens_per_s": governor.rate,
                **_told(governor.speedup(plain)),
                "of_best_fixed": _share(governor.rate, _best([plain, *blocks.values()])),
            },
            "busy": [
                {"programs": programs, **_kept(modes, [plain, governor])}
                for programs, modes in busy.items()
            ],
            "answered_before": {mode.name: _row(mode, again[0]) for mode in again},
        }
        lines = [_line(mode, plain) for mode in (plain, *drafting)]
        for programs, modes in busy.items():
            lines.append(f"beside {programs} busy program{'s' if programs > 1 else ''}:")
            lines += [_line(mode, modes[0]) for mode in modes]
        lines.append("a question that was answered before:")
        lines += [_line(mode, again[0]) for mode in again]
        return Result(value, "\n".join([f"{opened.pair.title} on {opened.place}", *lines]))

    def _take_turns(self, context: Context, opened: loading.OpenModel, modes: list[_Mode]) -> None:
        for mode in modes:  # the first answer of a mode builds its graphs
            mode.again().measure(opened, PROMPTS[0])
        turns = [(p, mode) for _ in range(self.runs) for p in PROMPTS for mode in modes]
        for done, (prompt, mode) in enumerate(turns):
            context.console.progress("Measuring", done / len(turns))
            mode.measure(opened, prompt)

    def _ask_again(self, context: Context, opened: loading.OpenModel, modes: list[_Mode]) -> None:
        """Each prompt once more behind its plain answer, which so can be looked up."""
        for run in range(self.runs):
            for prompt in PROMPTS:
                context.console.progress("Asking again", run / self.runs)
                question = ChatMessage(Role.USER, prompt)
                first = modes[0].again().measure(opened, prompt)
                chat = [question, ChatMessage(Role.ASSISTANT, first.text), question]
                for mode in modes:
                    mode.ask(opened, chat)


@contextlib.contextmanager
def _busy_programs(count: int) -> Iterator[None]:
    """`count` other processes that compute all the time."""
    context = multiprocessing.get_context("spawn")
    begun = context.Barrier(count + 1)
    programs = [context.Process(target=_compute, args=(begun,), daemon=True) for _ in range(count)]
    for program in programs:
        program.start()
    try:
        begun.wait(_STARTS_S)  # each imports what this one has before it computes
        yield
    finally:
        for program in programs:
            program.kill()
            program.join()


def _compute(begun: Barrier) -> None:
    belong_to_parent()
    begun.wait()
    while True:
        pass


def _best(modes: list[_Mode]) -> float | None:
    return max((mode.rate for mode in modes if mode.rate is not None), default=None)


def _kept(busy: list[_Mode], quiet: list[_Mode]) -> dict[str, float | None]:
    """Rates of plain decoding and of the governor, and what that is of their quiet rates."""
    value: dict[str, float | None] = {}
    for name, now, before in zip(("plain", "governor"), busy, quiet, strict=False):
        value[f"{name}_tokens_per_s"] = now.rate
        value[f"{name}_kept"] = _share(now.rate, before.rate)
    return value


def _block_lengths(trained: int) -> list[int]:
    """Up to the length the drafter was trained for, 0 where there is no drafter."""
    return sorted({block for block in (*_BLOCKS, trained) if 1 < block <= trained})


def _share(rate: float | None, of: float | None) -> float | None:
    return rate / of if rate and of else None


def _told(found: Speedup) -> dict[str, float | str | None]:
    return {"speedup": found.times, "speedup_not_measured": found.why and found.why.words}


def _row(mode: _Mode, plain: _Mode) -> dict[str, float | str | None]:
    return {
        "tokens_per_s": mode.rate,
        "mean_accepted_length": mode.length,
        **_told(mode.speedup(plain)),
    }


def _line(mode: _Mode, plain: _Mode) -> str:
    figures = (
        (mode.rate, "tokens/s"),
        (mode.length, "mean accepted length"),
        ((gain := mode.speedup(plain)).times, "× plain"),
    )
    cells = ["-" if value is None else f"{value:.2f} {unit}" for value, unit in figures]
    if mode.rate and gain.why:
        cells[-1] = f"speed-up not measured: {gain.why.words}"
    return f"{mode.name:10}{'  '.join(cells)}"
