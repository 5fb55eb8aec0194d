"""From tokens to text: bytes to characters, reasoning apart from answer, stop strings.

`AnswerText` takes tokens one at a time and gives the text that is certain by then.
What it gave, joined, is the whole text: no character is split, none comes twice.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Piece:
    """New text of one token; `stopped` when a stop string began in it or before."""

    text: str = ""
    reasoning: str = ""
    stopped: bool = False


@dataclass(slots=True)
class AnswerText:
    """`token_bytes` gives a token's bytes; `think_open` and `think_close` are the ids
    of the markers (None: the model has none); `thinking` says where the answer begins.
    """

    token_bytes: Callable[[int], bytes]
    think_open: int | None
    think_close: int | None
    thinking: bool
    stop: Sequence[str] = ()
    begun: bool = False  # what comes goes on with what was said, which is not here
    text: str = ""
    reasoning: str = ""
    _decoder: codecs.IncrementalDecoder = field(init=False)
    _held: str = ""  # the start of a stop string, or space that may be the last

    def __post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token: int) -> Piece:
        if token == self.think_close and self.thinking:
            piece = self.finish()
            self.thinking = self.begun = False
            return piece
        opens = token == self.think_open and not self.begun
        if opens and not self.thinking and not self.text.strip():
            self.text, self._held = "", ""
            self.thinking = True
            return Piece()
        return self._add(self._decoder.decode(self.token_bytes(token)))

    def finish(self) -> Piece:
        """What is still held. A character that never became whole is replaced, once."""
        piece = self._add(self._decoder.decode(b"", final=True))
        self._decoder.reset()
        held, self._held = self._held, ""
        if self.thinking or piece.stopped:
            return piece  # held space at the end of reasoning is no part of it
        self.text += held
        return Piece(piece.text + held, piece.reasoning)

    def _add(self, new: str) -> Piece:
        return self._add_reasoning(new) if self.thinking else self._add_text(new)

    def _add_reasoning(self, new: str) -> Piece:
        new = self._held + new
        if not self.reasoning and not self.begun:
            new = new.lstrip()
        shown = new.rstrip()
        self._held = new[len(shown) :]
        self.reasoning += shown
        return Piece(reasoning=shown)

    def _add_text(self, new: str) -> Piece:
        new = self._held + new
        if not self.text and not self.begun:
            new = new.lstrip("\n")
        found = [at for at in (new.find(s) for s in self.stop) if at >= 0]
        shown = new[: min(found)] if found else new[: len(new) - self._open_stop(new)]
        self._held = "" if found else new[len(shown) :]
        if found:
            self._decoder.reset()  # half of a character that began behind the stop
        self.text += shown
        return Piece(text=shown, stopped=bool(found))

    def _open_stop(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop string."""
        longest = 0
        for stop in self.stop:
            for n in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:n]):
                    longest = n
                    break
        return longest
