"""What is written and not sent: a text, and the files that go with it, whole."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Final, Self

_FENCES: Final = re.compile(r"^`{3,}", re.MULTILINE)
_HEAD: Final = re.compile(r"(?:\A|(?<=\n\n))File `([^\n]+)`:\n\n(`{3,})[^\n`]*(?=\n)")
"""With which `Attachment.message` begins a file."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file's text, or a long pasted one, which has no name of a file."""

    name: str
    text: str
    pasted: bool = False

    def message(self) -> str:
        """As the model is given it: under its name, and fenced where it is a file's."""
        if self.pasted:
            return self.text
        longest = max((len(fence) for fence in _FENCES.findall(self.text)), default=2)
        fence = "`" * (longest + 1)
        kind = self.name.rpartition(".")[2] if "." in self.name else ""
        text = self.text if self.text.endswith("\n") else f"{self.text}\n"
        return f"File `{self.name}`:\n\n{fence}{kind}\n{text}{fence}"


@dataclass(frozen=True, slots=True)
class Draft:
    text: str = ""
    attachments: tuple[Attachment, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to send."""
        return bool(self.attachments or self.text.strip())

    def with_attachment(self, attachment: Attachment, place: int | None = None) -> Self:
        """With one more, behind the others or at its `place`."""
        files = list(self.attachments)
        files.insert(len(files) if place is None else place, attachment)
        return replace(self, attachments=tuple(files))

    def message(self) -> str:
        """All of it as one text: what was written first, then each attachment."""
        parts = (self.text.strip("\n"), *(a.message() for a in self.attachments))
        return "\n\n".join(part for part in parts if part.strip())

    @classmethod
    def of_message(cls, message: str) -> Self:
        """What `message` made one text of, as far as that can be seen: a paste is text."""
        words: list[str] = []
        files: list[Attachment] = []
        end, ended = 0, f"{message}\n\n"
        for head in _HEAD.finditer(message):
            # No line of a file begins with its fence, so the next one that does ends it.
            last = ended.find(f"\n{head[2]}", head.end()) + 1
            after = last + len(head[2])
            if head.start() < end or not last or not ended.startswith("\n\n", after):
                continue
            file = Attachment(head[1], ended[head.end() + 1 : last])
            if file.message() == ended[head.start() : after]:
                words.append(message[end : head.start()])
                files.append(file)
                end = after + 2
        words.append(message[end:])
        text = "\n\n".join(part for part in (w.strip("\n") for w in words) if part)
        return cls(text if files else message, tuple(files))

    def json(self) -> str:
        """Empty where there is nothing."""
        if not self.text and not self.attachments:
            return ""
        files = [[a.name, a.text, a.pasted] for a in self.attachments]
        return json.dumps({"text": self.text, "attachments": files})

    @classmethod
    def of_json(cls, text: str) -> Self:
        """What `json` wrote; nothing where it is something else."""
        try:
            found = json.loads(text)
            files = tuple(
                Attachment(str(name), str(content), bool(pasted))
                for name, content, pasted in found["attachments"]
            )
            return cls(str(found["text"]), files)
        except (ValueError, TypeError, KeyError, RecursionError):
            return cls()
