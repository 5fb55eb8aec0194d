"""``slipstream selftest``: does the chain work here, and is it lossless?"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from app.cli import loading
from app.cli.client import BlockingClient
from app.cli.command import FAILED, OK, Context, Job, Result
from app.conversation import ChatMessage, Role
from app.engine import Answer, AskParams, Decoded, RoundTotals, Sampling, Verify
from app.errors import SlipstreamError
from app.loading import LoadChoice
from app.proof import Proof, Run, Subject, difference

HELP: Final = "check that everything works on this machine"

PROMPTS: Final = (
    "What is DFlash?",
    "Count from 1 to 12.",
    "Write a short story about a river.",
    "Greet me: 你好, नमस्ते, 👩‍👩‍👧‍👦!",
)
_NO_DRAFTER: Final = "The model has no drafter."
_PARAMS: Final = AskParams(max_tokens=64)
_PENALISED: Final = Sampling(
    seed=1, presence_penalty=2.0, frequency_penalty=1.0, repeat_penalty=2.0
)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str
    ran: bool = True

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "ok": self.ok, "detail": self.detail}

    def __str__(self) -> str:
        state = "ok" if self.ok else "FAILED" if self.ran else "-"
        return f"{state:6}  {self.name}: {self.detail}"


def add_options(parser: ArgumentParser) -> None:
    loading.add_options(parser)
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter answers, for a large model"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="check what *Prove it* saved instead: ask the same again, and compare",
    )


def prepare(args: Namespace) -> Job:
    choice = loading.choice_of(args)
    record = Proof.read(args.record) if args.record else None
    if record is not None and choice.model == LoadChoice().model:  # no other was asked for
        choice = replace(choice, model=record.subject.model)

    def run(context: Context) -> Result:
        with ExitStack() as stack:
            if record is None:
                test: _Steps = _Selftest(context, choice, stack, args.quick)
            else:
                test = _RecordTest(context, choice, stack, record)
            checks = list(test.checks())
        ok = all(check.ok for check in checks)
        value: dict[str, object] = {"ok": ok, "checks": [check.as_json() for check in checks]}
        return Result(value, "\n".join(map(str, checks)), OK if ok else FAILED)

    return run


class _Wrong(Exception):
    """A check came to a result, and it is the wrong one."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """An answer and the pieces in which it came."""

    prompt: str
    answer: Answer
    pieces: tuple[Decoded, ...]


_Step = Callable[[], str]


class _Steps:
    """Checks in order. A step gives its detail or raises; some are needed by the rest."""

    def __init__(self, context: Context, choice: LoadChoice, stack: ExitStack) -> None:
        self._context = context
        self._choice = choice
        self._stack = stack
        self._measure = False
        self._client: BlockingClient
        self._opened: loading.OpenModel

    def checks(self) -> Iterator[Check]:
        needed: dict[str, _Step] = {
            "native library": self._open_library,
            "model": self._load_model,
            **self._needed(),
        }
        failed = ""
        for name, step in (needed | self._others()).items():
            if failed:
                yield Check(name, False, f"Not run, because `{failed}` failed.", ran=False)
                continue
            try:
                yield Check(name, True, step())
            except (_Wrong, SlipstreamError) as error:
                failed = name if name in needed else ""
                yield Check(name, False, str(error))

    def _needed(self) -> dict[str, _Step]:
        raise NotImplementedError

    def _others(self) -> dict[str, _Step]:
        raise NotImplementedError

    def _open_library(self) -> str:
        engine = self._stack.enter_context(closing(self._context.open_engine()))
        self._client = BlockingClient(engine.client())
        usable = (device for device in self._client.devices() if device.usable)
        return ", ".join(device.description for device in usable)

    def _load_model(self) -> str:
        pair = loading.open_pair(self._context, self._choice)
        self._opened = loading.load(
            self._context, self._client, pair, self._choice, measure=self._measure
        )
        return f"{pair.title} on {self._opened.place} in {self._opened.seconds:.1f} s"


class _Selftest(_Steps):
    def __init__(
        self, context: Context, choice: LoadChoice, stack: ExitStack, quick: bool = False
    ) -> None:
        super().__init__(context, choice, stack)
        self._quick = quick
        self._measure = not quick
        self._prompts = PROMPTS[:2] if quick else PROMPTS
        self._params = replace(_PARAMS, max_tokens=24) if quick else _PARAMS
        self._plain: list[_Trial] = []
        self._drafted: list[_Trial] = []

    def _needed(self) -> dict[str, _Step]:
        return {"answers": self._answer}

    def _others(self) -> dict[str, _Step]:
        others: dict[str, _Step] = {
            "logits": self._logits,
            "lossless": self._compare,
            "acceptance": self._acceptance,
            "stream": self._join,
            "penalties": self._penalties,
        }
        if not self._quick:
            others["lookup"] = self._look_up
            others["second turn"] = self._second_turn  # it loads the model once more
        return others

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

    def _logits(self) -> str:
        """Numbers that are none all lose against each other, and look like an answer."""
        trial = self._plain[0]
        chat = [ChatMessage(Role.USER, trial.prompt)]
        found = self._client.compare(chat, self._params, trial.answer.token_ids, 1)
        if not all(math.isfinite(x) for x in (found.gap, found.spread) if x is not None):
            raise _Wrong("The model computes numbers that are not finite: it cannot answer.")
        return f"all finite, the best {found.gap:.2g} above the second"

    def _compare(self) -> str:
        """Word for word the same, or different where the target alone is undecided."""
        if not self._drafted:
            return _NO_DRAFTER
        differing = []
        for plain, drafted in zip(self._plain, self._drafted, strict=True):
            chat = [ChatMessage(Role.USER, plain.prompt)]
            if where := self._differing(chat, plain.answer, drafted.answer):
                differing.append(where)
        same = len(self._drafted) - len(differing)
        return "; ".join(
            [f"{same} of {len(self._drafted)} answers word for word the same", *differing]
        )

    def _differing(
        self,
        chat: list[ChatMessage],
        plain: Answer,
        drafted: Answer,
        params: AskParams | None = None,
    ) -> str:
        """Where an answer leaves the plain one, if the target alone explains that."""
        ids, question = plain.token_ids, chat[-1].content
        at = difference(ids, drafted.token_ids)
        if at is None:
            return ""
        if at >= min(len(ids), len(drafted.token_ids)):
            raise _Wrong(f"The answer to `{question}` ends elsewhere, behind token {at}.")
        found = self._client.compare(chat, params or self._params, ids, at)
        where = f"the answer to `{question}` differs from token {at} on, "
        if found.spread is None:
            where += "and the target alone, over many rows, leaves its own one before"
        else:
            where += (
                f"where the two best logits are {found.gap:.2g} apart and rounding moves them by "
                f"{found.spread:.2g}"
            )
        if not found.explains:
            raise _Wrong(f"{where[0].upper()}{where[1:]}.")
        return where

    def _look_up(self) -> str:
        """A question that was answered before, so that its answer can be looked up."""
        first = self._plain[0]
        question = ChatMessage(Role.USER, first.prompt)
        chat = [question, ChatMessage(Role.ASSISTANT, first.answer.text), question]
        plain, drafted = (
            self._client.ask(chat, replace(self._params, draft=draft)) for draft in (False, True)
        )
        where = self._differing(chat, plain, drafted)
        totals = drafted.totals
        held = f"{totals.looked_up_accepted} of {totals.looked_up} tokens that were looked up held"
        return f"{held}; {where}" if where else held

    def _acceptance(self) -> str:
        if not self._drafted:
            return _NO_DRAFTER
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

    def _penalties(self) -> str:
        """They change the answer, which is the same with and without the drafter."""
        unpenalised, told = self._plain[1], []
        prompt, chat = unpenalised.prompt, [ChatMessage(Role.USER, unpenalised.prompt)]
        for verify in (Verify.GREEDY,) if self._quick else tuple(Verify):
            params = replace(self._params, verify=verify, sampling=_PENALISED)
            plain = self._ask(prompt, draft=False, params=params).answer
            if verify is Verify.GREEDY and plain.token_ids == unpenalised.answer.token_ids:
                raise _Wrong(f"They change nothing in the answer to `{prompt}`.")
            told.append(verify.value)
            if not self._drafted:
                continue
            drafted = self._ask(prompt, draft=True, params=params).answer
            if verify is Verify.GREEDY:
                told += filter(None, [self._differing(chat, plain, drafted, params)])
            elif drafted.token_ids != plain.token_ids:
                if self._client.exact():
                    raise _Wrong(f"With `{verify.value}` the drafted answer is another one.")
                told.append("rounding on this device decides what is drawn")
        return "; ".join(told)

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
        where = self._differing(chat, cold, warm, params)
        told = f"against a cold run {where}" if where else "equals a cold run"
        return f"{told}, {warm.reused} of {warm.prompt_tokens} prompt tokens reused"

    def _ask(self, prompt: str, *, draft: bool, params: AskParams | None = None) -> _Trial:
        pieces: list[Decoded] = []
        params = replace(params or self._params, draft=draft)
        answer = self._client.ask([ChatMessage(Role.USER, prompt)], params, pieces.append)
        return _Trial(prompt, answer, tuple(pieces))


class _RecordTest(_Steps):
    """What a record says is so here too: the same model gives the same two answers."""

    def __init__(
        self, context: Context, choice: LoadChoice, stack: ExitStack, record: Proof
    ) -> None:
        super().__init__(context, choice, stack)
        self._record = record
        self._runs: dict[bool, Run] = {}  # by whether it was drafted

    def _needed(self) -> dict[str, _Step]:
        return {"same model": self._same_model, "answers": self._answer}

    def _others(self) -> dict[str, _Step]:
        return {
            "record": self._consistent,
            "plain answer": lambda: self._as_recorded(self._record.plain, draft=False),
            "drafted answer": lambda: self._as_recorded(self._record.drafted, draft=True),
        }

    def _same_model(self) -> str:
        here = Subject.of(self._choice.model, self._opened.model)
        there = self._record.subject
        if not here.is_model_of(there):
            raise _Wrong(
                f"The record is of {there.name} ({there.quantisation}, {there.target_bytes:,} and "
                f"{there.draft_bytes:,} bytes), this is {here.name} ({here.quantisation}, "
                f"{here.target_bytes:,} and {here.draft_bytes:,} bytes)."
            )
        where = "the same" if here.is_place_of(there) else f"made on {there.device}"
        return f"{here.name} ({here.quantisation}); device: {where}"

    def _answer(self) -> str:
        for draft in (False, True):
            self._context.console.progress("Answering", draft / 2)
            params = replace(self._record.params, draft=draft)
            self._runs[draft] = Run.of(self._client.ask(self._record.chat, params))
        return f"2 answers, {sum(len(run.token_ids) for run in self._runs.values())} tokens"

    def _consistent(self) -> str:
        proof = self._record
        if not proof.same:
            raise _Wrong("The record compares nothing.")
        if not proof.holds:
            raise _Wrong(f"The record itself tells of a difference at token {proof.at}.")
        told = "identical" if proof.at is None else f"explained difference at token {proof.at}"
        return f"{told}, {proof.same} tokens the same"

    def _as_recorded(self, recorded: Run, *, draft: bool) -> str:
        """Token for token; on another device a control run may explain what differs."""
        run, proof = self._runs[draft], self._record
        here = replace(proof, plain=recorded, drafted=run)
        if here.at is None:
            return f"the same, {here.same} tokens"
        other_device = not Subject.of("", self._opened.model).is_place_of(proof.subject)
        if other_device and here.at < min(len(run.token_ids), len(recorded.token_ids)):
            found = self._client.compare(proof.chat, proof.params, run.token_ids, here.at)
            if found.explains:
                return (
                    f"the same up to token {here.at}, where rounding on this device decides: the "
                    f"two best logits are {found.gap:.2g} apart"
                )
        raise _Wrong(f"It differs from the recorded one from token {here.at} on.")
