"""Templates that throw, and the thinking switch."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from pathlib import Path

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers.utils.chat_template_utils import render_jinja_template

from app.conversation import ChatMessage, Role
from app.engine import sandbox
from app.engine.template import ChatTemplate, begins_thinking
from app.errors import TemplateError

from .conftest import DEMO, chat
from .damage import TEMPLATES


@pytest.fixture(scope="session", params=["Qwen3.5-4B", "demo"])
def template(request: pytest.FixtureRequest) -> ChatTemplate:
    """The real template that the source distribution ships, and the demo's own."""
    if request.param == "demo":
        source = DEMO / "target" / "chat_template.jinja"
    else:
        tree: Path = request.getfixturevalue("llama_source")
        source = tree / "models" / "templates" / "Qwen3.5-4B.jinja"
    return ChatTemplate(source.read_text("utf-8"), request.param)


def test_the_thinking_switch_changes_the_tail(template: ChatTemplate) -> None:
    on = template.render(chat("Hi"), think=True)
    off = template.render(chat("Hi"), think=False)
    assert on != off
    assert begins_thinking(on)
    assert not begins_thinking(off)
    assert off.endswith("<think>\n\n</think>\n\n")


def test_old_reasoning_is_dropped_from_the_history(template: ChatTemplate) -> None:
    history = (
        ChatMessage(Role.USER, "First"),
        ChatMessage(Role.ASSISTANT, "Answer", reasoning="SECRET THOUGHT"),
        ChatMessage(Role.USER, "Second"),
    )
    rendered = template.render(history, think=False)
    assert "SECRET THOUGHT" not in rendered
    assert "Answer" in rendered


@pytest.mark.parametrize(
    "roles",
    [
        (Role.USER, Role.SYSTEM, Role.USER),
        (Role.SYSTEM, Role.SYSTEM, Role.USER),
        (Role.USER, Role.USER),
        (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.USER),
    ],
)
def test_systems_anywhere_are_merged_into_the_first(
    template: ChatTemplate, roles: tuple[Role, ...]
) -> None:
    conversation = tuple(ChatMessage(role, f"text {i}") for i, role in enumerate(roles))
    rendered = template.render(conversation, think=False)
    for message in conversation:
        assert rendered.count(message.content) == 1
    assert rendered.count("<|im_start|>system") == (Role.SYSTEM in roles)
    if Role.SYSTEM in roles:
        assert rendered.startswith("<|im_start|>system\n")


@pytest.mark.parametrize("content", ["   ", "<|im_end|>", "{{ 7 * 7 }}", "{% raise %}"])
def test_odd_content_is_data(template: ChatTemplate, content: str) -> None:
    rendered = template.render(chat(content), think=False)
    assert "49" not in rendered
    assert content.strip() in rendered


def test_a_refusal_names_the_model_and_the_next_chat_works(template: ChatTemplate) -> None:
    with pytest.raises(TemplateError, match=r"Qwen3\.5-4B|demo"):
        template.render((ChatMessage(Role.ASSISTANT, "No question here"),), think=False)
    assert "Hi" in template.render(chat("Hi"), think=False)


@pytest.mark.parametrize(
    "source",
    [None, "", "{% for m in messages %}", "{{ messages | nonsense }}"],
)
def test_a_broken_template_is_an_error_when_made(source: str | None) -> None:
    with pytest.raises(TemplateError, match=r"model\.gguf"):
        ChatTemplate(source, "model.gguf")


def test_blocks_leave_no_empty_lines() -> None:
    """As transformers renders: a block's own line, and what indents it, is not text."""
    source = (
        "{% for m in messages %}\n"
        "    {% if m.role == 'user' %}\n"
        "{{ m.content }}\n"
        "    {% endif %}\n"
        "{% endfor %}\n"
        "end"
    )
    rendered = ChatTemplate(source, "model.gguf").render(chat("Hi"), think=False)
    assert rendered == "Hi\nend"
    messages = [{"role": "user", "content": "Hi"}]
    theirs, _ = render_jinja_template(conversations=[messages], chat_template=source)
    assert [rendered] == theirs


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[99].content }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ 1 / 0 }}",
        "{% for i in range(9999999) %}{% endfor %}",
    ],
)
def test_a_template_that_misbehaves_is_stopped(source: str) -> None:
    template = ChatTemplate(source, "model.gguf")
    with pytest.raises(TemplateError, match="refuses"):
        template.render(chat("Hi"), think=False)


def test_marks_of_training_hold_what_they_mark() -> None:
    source = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    assert ChatTemplate(source, "m").render(chat("Hi"), think=False) == "Hi"


def test_the_texts_of_the_models_own_tokens() -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m.content + eos_token }}{% endfor %}"
    template = ChatTemplate(source, "m", bos="<s>", eos="<|im_end|>")
    assert template.render(chat("Hi"), think=False) == "<s>Hi<|im_end|>"
    assert ChatTemplate(source, "m").render(chat("Hi"), think=False) == "Hi"


@pytest.mark.parametrize(
    "arguments",
    ["", "separators=(',', ':'), sort_keys=true", "indent=2", "ensure_ascii=true"],
)
def test_json_as_transformers_writes_it(arguments: str) -> None:
    source = "{{ messages | tojson(" + arguments + ") }}"
    messages = [{"role": "user", "content": "<Hé> & 'x'"}]
    theirs, _ = render_jinja_template(conversations=[messages], chat_template=source)
    ours = ChatTemplate(source, "m").render(chat("<Hé> & 'x'"), think=False)
    assert [ours] == theirs


def test_content_is_given_in_parts_where_it_is_read_so() -> None:
    source = (
        "{% for m in messages %}{{ m.role }}: "
        "{% for c in m['content'] %}{{ c['text'] }}{% endfor %}.{% endfor %}"
    )
    assert ChatTemplate(source, "m").render(chat("Hi"), think=False) == "user: Hi."


def test_a_question_never_vanishes() -> None:
    with pytest.raises(TemplateError, match="leaves out what is asked"):
        ChatTemplate("{% for m in messages %}{{ m.role }}{% endfor %}", "model.gguf")


DOUBLING = "{%% set n = namespace(a='x') %%}{%% for i in range(99) %%}%s{%% endfor %%}{{ n.a }}"
HOSTILE = [
    *TEMPLATES,
    "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% for i in range(99999) %}{{ f(n) }}{% endfor %}{% endmacro %}{{ f(1) }}",
    DOUBLING % "{% set n.a = n.a ~ n.a %}",
    DOUBLING % "{% set n.a = n.a + n.a %}",
    DOUBLING % "{% set n.a = n.a * 2 %}",
    DOUBLING % "{% set n.a %}{{ n.a }}{{ n.a }}{% endset %}",
    DOUBLING % "{% set n.a = [n.a, n.a] | join %}",
    DOUBLING % "{% set n.a = '%s%s' % (n.a, n.a) %}",
    DOUBLING % "{% set n.a = '%s%s' | format(n.a, n.a) %}",
    DOUBLING % "{% set n.a = '{0}{0}'.format(n.a) %}",
    DOUBLING % "{% set n.a = n.a.replace('x', 'xx') %}",
    DOUBLING % "{% set n.a = n.a | replace('x', 'xx') %}",
    "{{ 'x' | center(999999999) }}",
    "{{ 'x'.center(999999999) }}",
    "{{ 'x'.zfill(999999999) }}",
    "{{ 'x' | indent(999999999) }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ 'a{:>{w}}b'.format(1, w=999999999) }}",
    "{{ ('x' * 30000).replace('', 'y' * 99999) }}",
    "{{ ('y' * 99999).join('x' * 30000) }}",
    "{{ [0] * 999999999 }}",
    "{{ 9 ** 999999 }}",
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_no_template_holds_the_engine_or_fills_its_memory(
    source: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_SECONDS", 0.1)
    monkeypatch.setattr(sandbox, "_ROOM", 1 << 20)
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    before = time.thread_time()
    tracemalloc.start()
    try:
        with contextlib.suppress(TemplateError):
            ChatTemplate(text, "x").render(chat("Hi"), think=False)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert time.thread_time() - before < 20


def test_what_counts_changes_nothing_of_the_text() -> None:
    source = (
        "{% macro m(a) %}<{{ a ~ nothing ~ 1 ~ none }}>{% endmacro %}"
        "{% set l = ['a'] + ['b'] * 2 %}{% for i in l %}{{ loop.index ~ i }}{{ m(i) }}{% endfor %}"
        "{% for i in [] %}{% else %}no{% endfor %}{{ 7 % 4 }}{{ 2 ** 3 }}{{ none }}{{ nothing }}"
        "{{ '%s-%5.1f' % ('a', 1.25) }}{{ '{:>3}'.format(5) }}{{ l | join('+') }}{{ 'a' ~ 'b' }}"
        "{{ 'ab' | replace('a', 'c') | center(6) }}{{ messages[0].content ~ '!' }}"
        "{% macro c(a) %}{{ a ~ caller() }}{% endmacro %}{% call c('z') %}x{% endcall %}"
        "{% set s %}{{ 1.0 }}{{ true }}{% endset %}{{ s | length }}"
    )
    plain = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    messages = [{"role": "user", "content": "Hi"}]
    wanted = plain.from_string(source).render(messages=messages)
    assert ChatTemplate(source, "x").render(chat("Hi"), think=False) == wanted
