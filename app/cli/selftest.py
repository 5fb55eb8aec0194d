"""``slipstream selftest``: does the chain work here, and is it lossless?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from typing import Final

from app.cli import loading
from app.cli.client import BlockingClient
from app.cli.command import FAILED, OK, Context, Job, Result
from app.conversation import ChatMessage, Role
from app.engine import Answer, AskParams, Decoded, RoundTotals
from app.errors import SlipstreamError
from app.loading import LoadChoice

HELP: Final = "check that everything works on this machine"

PROMPTS: Final = (
    "What is DFlash?",
    "Count from 1 to 12.",
    "Write a short story about a river.",
    "Greet me: 你好, नमस्ते, 👩‍👩‍👧‍👦!",
)
_PARAMS: Final = AskParams(max_tokens=64)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str


def add_options(parser: ArgumentParser) -> None:
    loading.add_options(parser)
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter answers, for a large model"
    )


def prepare(args: Namespace) -> Job:
    choice = loading.choice_of(args)

    def run(context: Context) -> Result:
        with ExitStack() as stack:
            checks = list(_Selftest(context, choice, stack, args.quick).checks())
        ok = all(check.ok for check in checks)
        lines = [f"{'ok    ' if c.ok else 'FAILED'}  {c.name}: {c.detail}" for c in checks]
        value: dict[str, object] = {"ok": ok, "checks": [asdict(check) for check in checks]}
        return Result(value, "\n".join(lines), OK if ok else FAILED)

    return run


class _Wrong(Exception):
    """A check came to a result, and it is the wrong one."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """An answer and the pieces in which it came."""

    prompt: str
    answer: Answer
    pieces: tuple[Decoded, ...]


class _Selftest:
    """Checks in order. A step gives its detail or raises; some are needed by the rest."""

    def __init__(
        self, context: Context, choice: LoadChoice, stack: ExitStack, quick: bool = False
    ) -> None:
        self._quick = quick
        self._prompts = PROMPTS[:2] if quick else PROMPTS
        self._params = replace(_PARAMS, max_tokens=24) if quick else _PARAMS
        self._context = context
        self._choice = choice
        self._stack = stack
        self._client: BlockingClient
        self._opened: loading.OpenModel
        self._plain: list[_Trial] = []
        self._drafted: list[_Trial] = []

    def checks(self) -> Iterator[Check]:
        needed = {
            "native library": self._open_library,
            "model": self._load_model,
            "answers": self._answer,
        }
        others = {
            "lossless": self._compare,
            "acceptance": self._acceptance,
            "stream": self._join,
        }
        if not self._quick:  # it loads the model once more
            others["second turn"] = self._second_turn
        failed = ""
        for name, step in (needed | others).items():
            if failed:
                yield Check(name, False, f"Not run, because `{failed}` failed.")
                continue
            try:
                yield Check(name, True, step())
            except (_Wrong, SlipstreamError) as error:
                failed = name if name in needed else ""
                yield Check(name, False, str(error))

    def _open_library(self) -> str:
        engine = self._stack.enter_context(closing(self._context.open_engine()))
        self._client = BlockingClient(engine.client())
        usable = (device for device in self._client.devices() if device.usable)
        return ", ".join(device.description for device in usable)

    def _load_model(self) -> str:
        pair = loading.open_pair(self._context, self._choice)
        self._opened = loading.load(
            self._context, self._client, pair, self._choice, measure=not self._quick
        )
        return f"{pair.title} on {self._opened.place} in {self._opened.seconds:.1f} s"

    def _answer(self) -> str:
        draft = self._opened.model.has_draft
        for done, prompt in enumerate(self._prompts):
            self._context.console.progress("Answering", done / len(self._prompts))
            self._plain.append(self._ask(prompt, draft=False))
            if draft:
                self._drafted.append(self._ask(prompt, draft=True))
        trials = self._plain + self._drafted
        if not all(trial.answer.token_ids for trial in trials):
            raise _Wrong("An answer is empty.")
        tokens = sum(trial.answer.completion_tokens for trial in trials)
        return f"{len(trials)} answers, {tokens} tokens"

    def _compare(self) -> str:
        """Word for word the same, or different where the target alone is undecided."""
        differing = []
        for plain, drafted in zip(self._plain, self._drafted, strict=bool(self._drafted)):
            ids = plain.answer.token_ids
            at = _difference(ids, drafted.answer.token_ids)
            if at is None:
                continue
            if at >= min(len(ids), len(drafted.answer.token_ids)):
                raise _Wrong(f"The answer to `{plain.prompt}` ends elsewhere with the drafter.")
            chat = [ChatMessage(Role.USER, plain.prompt)]
            found = self._client.compare(chat, self._params, ids, at)
            where = (
                f"the answer to `{plain.prompt}` differs from token {at} on, where the two best "
                f"logits are {found.gap:.2g} apart and rounding moves them by {found.spread:.2g}"
            )
            if not found.explains:
                raise _Wrong(f"{where[0].upper()}{where[1:]}.")
            differing.append(where)
        same = len(self._drafted) - len(differing)
        return "; ".join(
            [f"{same} of {len(self._drafted)} answers word for word the same", *differing]
        )

    def _acceptance(self) -> str:
        if not self._drafted:
            return "The model has no drafter."
        totals = sum((trial.answer.totals for trial in self._drafted), RoundTotals())
        length = totals.mean_accepted_length or 0.0
        if length <= 1.0:
            raise _Wrong(f"Nothing that was drafted was accepted in {totals.rounds} rounds.")
        return f"mean accepted length {length:.2f} in {totals.rounds} rounds"

    def _join(self) -> str:
        for trial in self._plain + self._drafted:
            for part in ("text", "reasoning"):
                joined = "".join(getattr(piece, part) for piece in trial.pieces)
                if joined != getattr(trial.answer, part):
                    raise _Wrong(f"The {part} that came for `{trial.prompt}` is not the answer's.")
        return "joined pieces equal whole answers"

    def _second_turn(self) -> str:
        first = (self._drafted or self._plain)[0]
        params = replace(self._params, draft=bool(self._drafted))
        chat = [
            ChatMessage(Role.USER, first.prompt),
            ChatMessage(Role.ASSISTANT, first.answer.text),
            ChatMessage(Role.USER, PROMPTS[1]),
        ]
        self._client.ask(chat[:1], params)
        warm = self._client.ask(chat, params)
        loading.load(self._context, self._client, self._opened.pair, self._choice)
        cold = self._client.ask(chat, params)
        at = _difference(warm.token_ids, cold.token_ids)
        if at is not None:
            raise _Wrong(f"It differs from a cold run from token {at} on.")
        return f"equals a cold run, {warm.reused} of {warm.prompt_tokens} prompt tokens reused"

    def _ask(self, prompt: str, *, draft: bool) -> _Trial:
        pieces: list[Decoded] = []
        params = replace(self._params, draft=draft)
        answer = self._client.ask([ChatMessage(Role.USER, prompt)], params, pieces.append)
        return _Trial(prompt, answer, tuple(pieces))


def _difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first position at which they are not the same."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return None if len(one) == len(other) else min(len(one), len(other))
