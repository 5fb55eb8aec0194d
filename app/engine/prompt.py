"""From a conversation to token ids: the template may write control tokens, people may not.

Whatever spells a special token in a message is replaced by a stand-in before the template
sees it, so that the special tokens of the rendering are the template's own. The rendering
is split at those, longest first as transformers does, and the text between them is
tokenised as text, with the typed characters back in it, and composed (NFC), as the tokenizer
of Qwen3.5 does and the library does not: a name from a Mac's file list is no other name.
Without such spellings the ids are those of the whole rendering. Long text is tokenised in
pieces that end between two words, so that it can be cancelled, and ends where the context is
full.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from app.conversation import ChatMessage, Role
from app.engine.template import THINK_CLOSE, ChatTemplate, begins_thinking
from app.errors import ContextFullError, OptionError, valid_text

_PIECE: Final = 1 << 16  # characters that are tokenised at once, or a few more...
_LONGEST: Final = 1 << 19  # ... but never more than this: what no border parts, no context holds

# Between a letter and a space or mark, and between a digit and a letter, every pre-tokenizer
# of a byte-level BPE parts what it merges.
_BORDER: Final = re.compile(r"(?<=[^\W\d_])(?=[ \n,.;:!?，。、！？；：])|(?<=[0-9])(?=[A-Za-z])")

_REMEMBERED: Final = 64  # pieces whose tokens are remembered: a few megabytes at most

_STAND_INS: Final = range(0xF0000, 0xFFFFE)  # private use: no tokenizer gives them a meaning


@dataclass(frozen=True, slots=True)
class Prompt:
    """`tokens` up to where the answer begins. The first `keep` of them will probably begin
    the next turn's prompt too. `thinking`: the answer begins inside the reasoning, `begun`: it
    is gone on with, where the prompt ends."""

    tokens: list[int]
    keep: int
    thinking: bool
    begun: bool = False


class PromptWriter:
    """Writes prompts for one template and vocabulary.

    `specials` are the special tokens by their text; `tokenize` gives the ids of text that
    spells none of them.
    """

    def __init__(
        self,
        template: ChatTemplate,
        specials: Mapping[str, int],
        tokenize: Callable[[str], list[int]],
    ) -> None:
        self._template = template
        self._ids = {text: id_ for text, id_ in specials.items() if len(text) > 1}
        # Most of a chat is the same from one prompt to the next, and from one count to another.
        self._read = lru_cache(_REMEMBERED)(lambda text: tuple(tokenize(text)))
        longest_first = sorted(self._ids, key=len, reverse=True)
        # Without special tokens: a pattern that matches nowhere.
        self._special = re.compile("(" + ("|".join(map(re.escape, longest_first)) or "(?!)") + ")")

    def write(
        self,
        chat: Sequence[ChatMessage],
        *,
        think: bool,
        limit: int,
        check: Callable[[], None] = lambda: None,
    ) -> Prompt:
        """The prompt for `chat`, of at most `limit` tokens.

        Where the last message is an answer, the prompt ends with what there is of it.
        `check` is called now and then; what it raises ends the work. Raises
        ContextFullError, TemplateError where the template refuses the conversation, and
        OptionError for text that cannot be read in pieces.
        """
        chat = _changed(chat, valid_text)  # half a surrogate pair is nothing to tokenise
        mark = _unused_character(chat)
        stand_in = {text: f"{mark}{i}{mark}" for i, text in enumerate(self._ids)}
        stands_for = {stands: text for text, stands in stand_in.items()}

        def disarmed(text: str) -> str:
            return self._special.sub(lambda found: stand_in[found[0]], text)

        def typed(text: str) -> str:
            def spelt(found: re.Match[str]) -> str:
                return stands_for.get(found[0], found[0])  # the template may write what it likes

            return re.sub(f"{mark}[0-9]+{mark}", spelt, text)

        chat = _changed(chat, disarmed)
        begun = chat.pop() if chat and chat[-1].role is Role.ASSISTANT else None
        check()
        rendered = self._template.render(chat, think=think)
        # The next turn renders this one without the opening of the answer: its reasoning is
        # dropped from the history.
        bare = self._template.without_opening(rendered, think=think)
        thinking = begins_thinking(rendered)
        if begun:
            rendered += _opening(begun, thinking)
        check()
        fragments, of_bare = self._special.split(rendered), self._special.split(bare)
        shared = _common_length(fragments, of_bare)

        tokens: list[int] = []
        keep = 0
        for i, fragment in enumerate(fragments):
            if i == shared:
                keep = len(tokens)
            if i % 2:  # the split leaves text and special tokens by turns
                tokens.append(self._ids[fragment])
                continue
            for part in self._parts(unicodedata.normalize("NFC", typed(fragment))):
                for piece in _pieces(part):
                    check()
                    tokens += self._read(piece)
                    if len(tokens) > limit:
                        raise ContextFullError(
                            f"The prompt has more than the {limit} tokens that the context holds.",
                            remedy="Shorten it, start a new chat, or choose a larger context.",
                        )
        if shared == len(fragments):
            keep = len(tokens)
        inside = thinking and not (begun and begun.content)
        return Prompt(tokens, keep, inside, begun is not None)

    def _parts(self, text: str) -> Iterator[str]:
        """`text` cut so that no part spells a special token: libraries read some as one
        wherever they find it."""
        start = 0
        while found := self._special.search(text, start):
            cut = found.start() + _cut(found[0])
            yield from self._parts(text[start:cut])
            start = cut
        if start < len(text):
            yield text[start:]


def _opening(begun: ChatMessage, thinking: bool) -> str:
    """What there is of an answer, behind the template's opening of one."""
    if not thinking:
        return begun.content
    close = f"\n{THINK_CLOSE}\n\n" if begun.content else ""
    return f"{begun.reasoning}{close}{begun.content}"


def _cut(spelling: str) -> int:
    """Where to cut it: behind its last word, where the pre-tokenizer cuts as well."""
    for i in range(len(spelling) - 1, 0, -1):
        if spelling[i - 1].isalnum() and not spelling[i].isalnum():
            return i
    return len(spelling) - 1


def _pieces(text: str) -> Iterator[str]:
    """`text` in pieces whose tokens, joined, are those of the whole.

    Raises OptionError where there is no place to cut.
    """
    start = 0
    while border := _BORDER.search(text, start + _PIECE, start + _LONGEST):
        yield text[start : border.start()]
        start = border.start()
    if len(text) - start > _LONGEST:
        raise OptionError(
            f"The text has more than {_LONGEST:,} characters without a space or a mark.",
            remedy="Shorten that part, or leave it out.",
        )
    yield text[start:]


def _changed(chat: Sequence[ChatMessage], change: Callable[[str], str]) -> list[ChatMessage]:
    return [replace(m, content=change(m.content), reasoning=change(m.reasoning)) for m in chat]


def _unused_character(chat: Sequence[ChatMessage]) -> str:
    used = set().union(*(set(m.content) | set(m.reasoning) for m in chat))
    for c in map(chr, _STAND_INS):
        if c not in used:
            return c
    raise OptionError(
        "The text has all characters of private use, as a list of all of Unicode.",
        remedy="Shorten that part, or leave it out.",
    )


def _common_length(a: Sequence[str], b: Sequence[str]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
