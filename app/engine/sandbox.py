"""Where chat templates run: foreign code, that may read what it is given and write text.

jinja2's sandbox keeps a template from Python, not from the machine: loops in loops, texts that
double, or a field a billion wide would hold the engine for ever or fill its memory. So one
rendering has so much of the thread's time, looked at in each pass of a loop and each call, and so
many characters, counted where text and lists are made of others.
"""

from __future__ import annotations

import functools
import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from jinja2 import Template, TemplateError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_SECONDS: Final = 2.0  # of the thread's processor; a long chat takes milliseconds
_ROOM: Final = 1 << 27  # characters; a list has as many as it takes bytes of pointers
_NUMBER: Final = 1_000_000  # beyond it is no width, count or exponent of a template
_WIDE: Final = re.compile(r"[0-9]{7}")
_FORMS: Final = ("format", "format_map")
_POINTER: Final = 8  # bytes that each item of a list takes
_COUNTED: Final = tuple("batch center format indent join replace slice truncate wordwrap".split())


class TooMuch(TemplateError):
    """A rendering that was stopped."""


class Sandbox(ImmutableSandboxedEnvironment):
    """`begin` before each rendering; too much of anything is `TooMuch`."""

    intercepted_binops = frozenset("+ * ** %".split())

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=self._written, **options)
        self.begin()
        for name in _COUNTED:
            self.filters[name] = self.bounded(self.filters[name])
        self.filters["tilde"] = self._joined
        del self.globals["lipsum"]  # no chat needs it, and it takes a count

    def begin(self) -> None:
        self._until = time.thread_time() + _SECONDS
        self._room = _ROOM

    def compiled(self, source: str) -> Template:
        tree = self.parse(source)
        repeated: list[nodes.For | nodes.Macro | nodes.CallBlock] = [
            *tree.find_all(nodes.For),
            *tree.find_all(nodes.Macro),
            *tree.find_all(nodes.CallBlock),
        ]
        for block in repeated:
            block.body.insert(0, self._marked(block.lineno))
        return self.from_string(self._watched(tree))

    def step(self) -> str:
        """Raises TooMuch where time is up."""
        if time.thread_time() > self._until:
            raise TooMuch(f"it takes more than {_SECONDS:g} seconds")
        return ""

    def bounded(self, made: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that is looked at as calls are."""

        @functools.wraps(made)  # with what jinja2 notes on it
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.step()
            self._check(made.__name__.removeprefix("do_"), *args, *kwargs.values())
            return self._made(made(*args, **kwargs))

        return bounded

    # --- what jinja2 calls ---

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        __self.step()
        method = getattr(__obj, "__wrapped__", __obj)  # jinja2 wraps a text's own `format`
        __self._check(
            getattr(method, "__name__", ""),
            getattr(method, "__self__", ""),
            *args,
            *kwargs.values(),
        )
        return __self._made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.step()
        if operator == "**":
            self._check(operator, left, right)
        elif operator == "%" and isinstance(left, str):
            self._check("format", left, *(right if isinstance(right, tuple) else (right,)))
        elif operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, int) and isinstance(other, int):
                    self._take(one.bit_length())
                elif isinstance(other, int):
                    self._take(_size(one) * max(0, other))
        return self._made(super().call_binop(context, operator, left, right))

    # --- what there is left ---

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TooMuch("it makes more text than any context holds")

    def _made(self, value: Any) -> Any:
        self._take(_size(value))
        return value

    def _written(self, value: Any) -> Any:
        text = str(value)
        self._take(len(text))
        return text

    def _joined(self, values: Sequence[Any]) -> str:
        return str(self._made("".join(map(str, values))))

    def _check(self, name: str, *values: Any) -> None:
        """What something of that name is given: no number that would be a size, no form with a
        field that wide, no text that goes into another one in too many places."""
        for value in values:
            if isinstance(value, int) and abs(value) > _NUMBER:
                raise TemplateError(f"it asks for too much: {name} of {value}")
        texts = [value for value in values if isinstance(value, str)]
        if name in _FORMS and texts and _WIDE.search(texts[0]):
            raise TemplateError("it asks for too much: a field a million wide")
        if name == "join":
            self._take(math.prod(max(1, _size(value)) for value in values[:2]) // _POINTER)
        elif name == "replace" and len(texts) > 2:
            text, old, new = texts[:3]
            self._take(len(text) + (len(text) // max(1, len(old)) + 1) * len(new))

    # --- the template's tree ---

    def _marked(self, line: int) -> nodes.ExprStmt:
        step = nodes.EnvironmentAttribute("step", lineno=line)
        call = nodes.Call(step, [], [], None, None, lineno=line)
        return nodes.ExprStmt(call, lineno=line)

    def _watched(self, node: nodes.Template) -> nodes.Template:
        """With `a ~ b` as a filter, which can be counted: the operator itself cannot."""
        for parent in [node, *node.find_all(nodes.Node)]:
            for name, value in parent.iter_fields():
                if isinstance(value, nodes.Concat):
                    setattr(parent, name, _as_filter(value))
                elif isinstance(value, list):
                    value[:] = [_as_filter(v) if isinstance(v, nodes.Concat) else v for v in value]
        node.set_environment(self)
        return node


def _as_filter(concat: nodes.Concat) -> nodes.Filter:
    parts = nodes.List(concat.nodes, lineno=concat.lineno)
    return nodes.Filter(parts, "tilde", [], [], None, None, lineno=concat.lineno)


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return _POINTER * len(value) if isinstance(value, list | tuple) else 0
