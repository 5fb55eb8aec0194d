"""``slipstream ask``: one answer."""

from __future__ import annotations

import logging
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from app.cli import loading
from app.cli.client import BlockingClient, Interrupted
from app.cli.command import INTERRUPTED, OK, Context, Job, Result
from app.cli.console import Console
from app.conversation import ChatMessage, Role
from app.engine import (
    Answer,
    AskParams,
    Decoded,
    FinishReason,
    LoadedModel,
    Sampling,
    Verify,
)
from app.errors import OptionError, SlipstreamError, is_text
from app.loading import LoadChoice

HELP: Final = "answer one prompt"

_log = logging.getLogger(__name__)

_DEFAULTS: Final = Sampling()
_SHAPING: Final = {  # option of `Sampling`: letter, type, what it does
    "temperature": ("T", float, "evens out (above 1) or sharpens the choice; 0 is greedy"),
    "top_k": ("K", int, "choose among the k most likely tokens; 0 is all"),
    "top_p": ("P", float, "choose among the fewest tokens that reach this probability; 1 is all"),
    "min_p": ("M", float, "drop tokens less likely than this share of the best; 0 is none"),
}
_PENALTIES: Final = {  # the same
    "presence_penalty": ("P", float, "taken off the logit of a token that came before"),
    "frequency_penalty": ("F", float, "taken off it for each time it came"),
    "repeat_penalty": ("R", float, "divides it, or multiplies it where it is negative"),
    "penalty_last_n": ("N", int, "tokens of prompt and answer that these look back on; -1 is all"),
}
_MASKS: Final = ("json_schema", "json_schema_file", "grammar", "grammar_file")  # as llama.cpp's


def add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("prompt", metavar="PROMPT", help="what to answer; - reads it from stdin")
    add("--system", metavar="TEXT", help="a system message before the prompt")
    loading.add_options(parser)
    add(
        "--verify",
        choices=[verify.value for verify in Verify],
        help="how the target chooses each token (default: greedy, but host-sample where one of "
        "the sampling options below is given; greedy together with them is refused)",
    )
    for name, (letter, kind, does) in _SHAPING.items():
        shown = f"{does} (default when sampling: {getattr(_DEFAULTS, name)})"
        add(_option(name), type=kind, metavar=letter, help=shown)
    for name, (letter, kind, does) in _PENALTIES.items():
        shown = f"{does} (default: {getattr(_DEFAULTS, name)})"
        add(_option(name), type=kind, metavar=letter, help=shown)
    add(
        "--logit-bias",
        type=_bias,
        metavar="TOKEN=BIAS",
        action="append",
        default=[],
        help="added to the logit of the token of this id; may be given more than once",
    )
    add("--seed", type=int, metavar="S", help="the same seed gives the same text (default: fresh)")
    add(
        "--max-tokens",
        type=int,
        metavar="N",
        default=AskParams().max_tokens,
        help="the most tokens of an answer (default: %(default)s)",
    )
    for name in _MASKS:
        add(_option(name), help=SUPPRESS)
    add(
        "--stop",
        metavar="TEXT",
        action="append",
        default=[],
        help="end the answer before this text; may be given more than once",
    )
    add(
        "--block",
        type=_block_length,
        metavar="N|auto",
        help="positions verified in a round: the last token and N - 1 drafted ones (default: auto)",
    )
    add("--no-draft", action="store_true", help="plain decoding, nothing drafted")
    add(
        "--no-lookup",
        action="store_true",
        help="draft nothing out of the text itself where it repeats",
    )
    add(
        "--think",
        action=BooleanOptionalAction,
        default=False,
        help="let the model think before it answers (default: no)",
    )
    add(
        "--think-budget",
        type=int,
        metavar="N",
        help="the most tokens of thinking, after which it answers (default: no limit)",
    )
    add(
        "--loop-guard",
        action=BooleanOptionalAction,
        default=True,
        help="end an answer that repeats itself without end (default: yes)",
    )


def prepare(args: Namespace) -> Job:
    """Raises `OptionError` for options that cannot be used, or not together."""
    _refuse_masks(args)
    chat = [ChatMessage(Role.USER, _prompt(args.prompt))]
    if args.system:
        chat.insert(0, ChatMessage(Role.SYSTEM, _typed("The system message", args.system)))
    params = AskParams(
        max_tokens=args.max_tokens,
        verify=_verify(args),
        sampling=replace(
            _DEFAULTS,
            **_given(args, *_SHAPING, *_PENALTIES, "seed"),
            logit_bias=tuple(args.logit_bias),
        ),
        block=args.block,
        draft=not args.no_draft,
        lookup=not args.no_lookup,
        think=args.think,
        stop=tuple(_typed("A stop text", stop) for stop in args.stop),
        loop_guard=args.loop_guard,
        think_budget=args.think_budget,
    )
    return _Ask(replace(loading.choice_of(args), draft=params.draft), tuple(chat), params)


@dataclass(frozen=True, slots=True)
class _Ask:
    choice: LoadChoice
    chat: tuple[ChatMessage, ...]
    params: AskParams

    def __call__(self, context: Context) -> Result:
        console = context.console
        with loading.loaded(context, self.choice) as opened:
            status = OK
            try:
                answer = opened.client.ask(self.chat, self.params, _Streaming(console))
            except Interrupted as interrupted:
                if interrupted.answer is None:
                    raise
                answer, status = interrupted.answer, INTERRUPTED
            console.stream("\n")
            console.note(_summary(answer))
            exact = opened.model.exact
            if exact is None and console.as_json and status == OK:
                try:
                    exact = _probed(opened.client)
                except KeyboardInterrupt:  # the answer is there all the same
                    status = INTERRUPTED
        return Result(_fields(answer, exact, opened.model), status=status)


def _probed(client: BlockingClient) -> bool | None:
    """The answer is there: what cannot be found out any more is told as unknown."""
    try:
        return client.exact()
    except SlipstreamError as error:
        _log.warning("Whether it is exact could not be probed: %s", error)
        return None


class _Streaming:
    """Text goes to stdout as it comes, thinking to stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._thinking = False

    def __call__(self, decoded: Decoded) -> None:
        if decoded.reasoning:
            self._console.aside(decoded.reasoning)
            self._thinking = True
        if decoded.text:
            if self._thinking:
                self._console.note("\n")
                self._thinking = False
            self._console.stream(decoded.text)


def _prompt(argument: str) -> str:
    if argument != "-":
        text = _typed("The prompt", argument)
    else:
        try:
            raw = sys.stdin.buffer.read() if sys.stdin else b""  # it may be closed
            text = raw.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeError as error:
            raise _not_utf8("The prompt") from error
        except OSError as error:
            raise OptionError(
                f"The prompt cannot be read: {error.strerror or error}.",
                remedy="Give it as an argument, or by another file.",
            ) from error
    if not text.strip():
        raise OptionError("The prompt is empty.", remedy="Give it some text.")
    return text


def _typed(what: str, argument: str) -> str:
    """An argument as text; one that is no UTF-8 comes with lone surrogates."""
    if not is_text(argument):
        raise _not_utf8(what)
    return argument


def _not_utf8(what: str) -> OptionError:
    return OptionError(f"{what} is not UTF-8.", remedy="Convert it first.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(args: Namespace, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def _verify(args: Namespace) -> Verify:
    """The mode that was asked for, or the one that the sampling options mean."""
    shaping = {} if args.temperature == 0 else _given(args, *_SHAPING)
    if args.verify is None:
        sampled = shaping or (args.seed is not None and args.temperature != 0)
        return Verify.HOST_SAMPLE if sampled else Verify.GREEDY
    verify = Verify(args.verify)
    if verify is Verify.GREEDY and shaping:
        options = ", ".join(f"`{_option(name)}`" for name in shaping)
        raise OptionError(
            f"`--verify greedy` does not sample, so {options} would have no effect.",
            remedy="Leave one of them out.",
        )
    return verify


def _refuse_masks(args: Namespace) -> None:
    """Whoever comes from llama.cpp asks for one by these names, and an answer that does not keep to
    it would be worse than none."""
    for name in _given(args, *_MASKS):
        drafts = "without a drafter too" if args.no_draft else "with a drafter or without"
        verify = f"`--verify {args.verify}`" if args.verify else "any `--verify`"
        raise OptionError(
            f"`{_option(name)}` cannot be used with {verify}, {drafts}: nothing here keeps the "
            "tokens of a round to a grammar.",
            remedy="llama-server does, while it drafts: `llama-server -m TARGET -md DRAFT "
            "--spec-type draft-dflash` (`dev.py native --tools`) with the same option.",
        )


def _bias(text: str) -> tuple[int, float]:
    token, _, bias = text.partition("=")
    try:
        return int(token), float(bias)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no TOKEN=BIAS, such as 11=-2.5") from None


def _block_length(text: str) -> int | None:
    try:
        return None if text == "auto" else int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is neither a number nor auto") from None


def _fields(answer: Answer, exact: bool | None, model: LoadedModel) -> dict[str, object]:
    totals, gain = answer.totals, answer.speedup
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "token_ids": answer.token_ids,
        "finish_reason": answer.finish_reason.value,
        "thinking_end": answer.thinking_end and answer.thinking_end.value,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "rounds": totals.rounds,
        "drafted": totals.drafted,
        "accepted": totals.accepted,
        "accepted_per_round": totals.accepted_per_round,
        "rows_from": totals.rows_from,
        "mean_accepted_length": totals.mean_accepted_length,
        "tokens_per_s": totals.tokens_per_s,
        "plain_tokens_per_s": gain.plain_tokens_per_s,
        "speedup": gain.times,
        "speedup_not_measured": gain.why and gain.why.words,
        "exact": exact,
        "n_ctx": model.n_ctx,
        "memory": asdict(model.footprint),
        "backend": answer.backend,
        "device": answer.device,
        "phase_ms": {
            "draft": totals.draft_ms,
            "verify": totals.verify_ms,
            "host": totals.host_ms,
        },
        "syncs_per_round": totals.per_round(totals.syncs),
        "graphs_rebuilt": totals.graphs_rebuilt if totals.rounds else None,
        "graphs_run_per_round": totals.per_round(totals.graphs_run),
        "bytes_to_host_per_round": totals.per_round(totals.bytes_to_host),
    }


def _summary(answer: Answer) -> str:
    totals = answer.totals
    parts = [f"{answer.completion_tokens} tokens in {totals.rounds} rounds"]
    if totals.drafted and totals.mean_accepted_length is not None:
        parts.append(f"mean accepted length {totals.mean_accepted_length:.2f}")
    if totals.looked_up:
        parts.append(f"{totals.looked_up_accepted} tokens out of the text so far")
    if totals.tokens_per_s is not None:
        parts.append(f"{totals.tokens_per_s:.0f} tokens/s")
    if (gain := answer.speedup).times is not None:
        parts.append(f"{gain.times:.2f} × plain")
    elif gain.why and totals.drafted:
        parts.append(f"speed-up not measured ({gain.why.words})")
    parts.append(f"{answer.backend} ({answer.device})")
    if answer.finish_reason is not FinishReason.STOP:
        parts.append(f"ended by: {answer.finish_reason.value}")
    if answer.thinking_end:
        parts.append(f"thinking ended by: {answer.thinking_end.value}")
    return " · ".join(parts)
