"""Chat templates: a conversation in, the prompt's text out.

Templates come with models and are foreign code, so they run in a sandbox, with what
transformers gives them: a few globals, the texts of the model's own tokens, the mark of
training `{% generation %}`, and `tojson` as JSON and not as HTML.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from app.conversation import ChatMessage, Role
from app.engine.sandbox import Sandbox, TooMuch
from app.errors import TemplateError as BadTemplateError

THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"

_PROBE: Final = "slipstream"


class ChatTemplate:
    """A compiled template. Raises `app.errors.TemplateError`, naming `owner`.

    `bos` and `eos` are the texts of the tokens that begin a text and end an answer.
    """

    def __init__(self, source: str | None, owner: str, *, bos: str = "", eos: str = "") -> None:
        self._owner = owner
        self._openings: dict[bool, str] = {}  # of an answer, by whether it thinks
        self._tokens = {"bos_token": bos, "eos_token": eos}
        if not source:
            raise BadTemplateError(
                f"`{owner}` has no chat template.",
                remedy="Convert it again from a checkpoint with `chat_template.jinja`.",
            )
        self._sandbox = _sandbox()
        try:
            self._template = self._sandbox.compiled(source)
        except Exception as error:  # too deep for the parser, or for Python
            raise BadTemplateError(
                f"The chat template of `{owner}` is broken: {error}.",
                remedy="Convert the model again from an intact checkpoint.",
            ) from error
        self._in_parts = self._reads_parts()

    def without_opening(self, rendered: str, *, think: bool) -> str:
        """A prompt up to where its last message ends: what the next turn's begins with.

        No second rendering: the opening of an answer is the same one for every chat. Where it
        is not, the whole prompt is given back, and the next turn has a little more to read.
        """
        if think not in self._openings:
            one = (ChatMessage(Role.USER, "."),)
            whole = self.render(one, think=think)
            bare = self._render(one, think=think, answer=False)
            self._openings[think] = whole[len(bare) :] if whole.startswith(bare) else ""
        return rendered.removesuffix(self._openings[think])

    def render(self, chat: Sequence[ChatMessage], *, think: bool) -> str:
        """The prompt for `chat`, up to where the answer begins."""
        return self._render(chat, think=think, answer=True)

    def _render(self, chat: Sequence[ChatMessage], *, think: bool, answer: bool) -> str:
        try:
            return self._written(chat, think, answer, self._in_parts)
        except Exception as error:  # a template can fail in any way that Python can
            raise BadTemplateError(
                f"The chat template of `{self._owner}` refuses this conversation: {error}.",
                remedy="Change the conversation, or start a new chat.",
            ) from error

    def _written(
        self, chat: Sequence[ChatMessage], think: bool, answer: bool, in_parts: bool
    ) -> str:
        self._sandbox.begin()
        return self._template.render(
            messages=list(_as_dicts(_systems_first(chat), in_parts)),
            add_generation_prompt=answer,
            enable_thinking=think,
            tools=None,
            **self._tokens,
        )

    def _reads_parts(self) -> bool:
        """Whether a message shows only as a list of parts, as in chats with pictures.

        Raises `TemplateError` if it shows in neither form: the question would vanish.
        """
        failed = False
        for in_parts in (False, True):
            try:
                shown = self._written([ChatMessage(Role.USER, _PROBE)], False, True, in_parts)
            except TooMuch as error:
                raise BadTemplateError(
                    f"The chat template of `{self._owner}` does not end: {error}.",
                    remedy="Convert the model again from an intact checkpoint.",
                ) from error
            except Exception:  # it may want more than this one message
                failed = True
                continue
            if _PROBE in shown:
                return in_parts
        if failed:
            return False
        raise BadTemplateError(
            f"The chat template of `{self._owner}` leaves out what is asked.",
            remedy="Convert the model again with the template of the original.",
        )


def begins_thinking(prompt: str) -> bool:
    """Whether the answer to a rendered prompt begins inside the reasoning."""
    return prompt.rstrip().endswith(THINK_OPEN)


def _systems_first(chat: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Templates take one system message, at the front: merge what there is into it."""
    systems = [m.content for m in chat if m.role is Role.SYSTEM and m.content.strip()]
    rest = [m for m in chat if m.role is not Role.SYSTEM]
    return [ChatMessage(Role.SYSTEM, "\n\n".join(systems)), *rest] if systems else rest


def _as_dicts(chat: Iterable[ChatMessage], in_parts: bool) -> Iterable[dict[str, Any]]:
    for message in chat:
        content: Any = message.content
        if in_parts:
            content = [{"type": "text", "text": message.content}]
        fields = {"role": message.role.value, "content": content}
        if message.reasoning:
            fields["reasoning_content"] = message.reasoning
        yield fields


def _sandbox() -> Sandbox:
    made = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    made.filters["tojson"] = made.bounded(_to_json)
    made.globals["raise_exception"] = _refuse
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return made


class _Generation(Extension):
    """``{% generation %}`` marks what a model shall learn to write; here it is what it holds."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 has it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own filter escapes <, > and & for HTML, which a prompt must not.
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
