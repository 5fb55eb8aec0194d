"""Chat templates: a conversation in, the prompt's text out.

Templates come with models and are foreign code, so they run in jinja2's immutable
sandbox, with the few globals that Hugging Face templates expect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.conversation import ChatMessage, Role
from app.errors import TemplateError as BadTemplateError

THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"


class ChatTemplate:
    """A compiled template. Raises `app.errors.TemplateError`, naming `owner`."""

    def __init__(self, source: str | None, owner: str) -> None:
        self._owner = owner
        self._openings: dict[bool, str] = {}  # of an answer, by whether it thinks
        if not source:
            raise BadTemplateError(
                f"`{owner}` has no chat template.",
                remedy="Convert it again from a checkpoint with `chat_template.jinja`.",
            )
        try:
            self._template = _compile(source)
        except TemplateError as error:
            raise BadTemplateError(
                f"The chat template of `{owner}` is broken: {error}.",
                remedy="Convert the model again from an intact checkpoint.",
            ) from error

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
            return self._template.render(
                messages=list(_as_dicts(_systems_first(chat))),
                add_generation_prompt=answer,
                enable_thinking=think,
                tools=None,
            )
        except Exception as error:  # a template can fail in any way that Python can
            raise BadTemplateError(
                f"The chat template of `{self._owner}` refuses this conversation: {error}.",
                remedy="Change the conversation, or start a new chat.",
            ) from error


def begins_thinking(prompt: str) -> bool:
    """Whether the answer to a rendered prompt begins inside the reasoning."""
    return prompt.rstrip().endswith(THINK_OPEN)


def _systems_first(chat: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Templates take one system message, at the front: merge what there is into it."""
    systems = [m.content for m in chat if m.role is Role.SYSTEM and m.content.strip()]
    rest = [m for m in chat if m.role is not Role.SYSTEM]
    return [ChatMessage(Role.SYSTEM, "\n\n".join(systems)), *rest] if systems else rest


def _as_dicts(chat: Iterable[ChatMessage]) -> Iterable[dict[str, str]]:
    for message in chat:
        fields = {"role": message.role.value, "content": message.content}
        if message.reasoning:
            fields["reasoning_content"] = message.reasoning
        yield fields


def _compile(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    # jinja2's own filter escapes <, > and & for HTML, which a prompt must not.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
