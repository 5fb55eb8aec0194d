"""What a pair on disk was made from, and how: a file of JSON beside its weights."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from app.errors import ModelFileError, is_text
from app.files import replace_text
from app.jobs import CancelToken, Progress

NAME: Final = "passport.json"
FORMAT: Final = 1

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A commit of a repository, and the names, sizes and digests of what was read of it."""

    repo: str
    commit: str
    licence: str | None
    files: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A file of the pair. `about` is what the converter tells of it, errors per tensor too."""

    name: str
    bytes: int
    sha256: str
    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Passport:
    """`sources` and `files` are by role, `target` and `draft`; `made` is a time in ISO 8601.

    `checks` is empty until the pair has been tried.
    """

    id: str
    title: str
    type: str
    converter: str
    made: str
    sources: dict[str, Source]
    files: dict[str, Made]
    checks: tuple[Check, ...] = ()
    checked: str = ""

    def write(self, folder: Path) -> None:
        """Raises `OSError`."""
        replace_text(folder / NAME, json.dumps({"format": FORMAT, **asdict(self)}, indent=1))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """That of the pair in `folder`; None where there is none that can be read."""
        try:
            text = (folder / NAME).read_text(encoding="utf-8")
            value = json.loads(text, parse_float=_finite, parse_constant=_finite)
            value.pop("format")
            value["sources"] = {
                role: Source(**{**of, "files": tuple(of["files"])})
                for role, of in value["sources"].items()
            }
            value["files"] = {role: Made(**of) for role, of in value["files"].items()}
            value["checks"] = tuple(Check(**check) for check in value["checks"])
            passport = cls(**value)
            passport._check()
            return passport
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def _check(self) -> None:
        """Raise `ValueError` unless all that is shown or compared is of its kind."""
        texts: list[object] = [self.id, self.title, self.type, self.converter, self.made]
        texts.append(self.checked)
        for source in self.sources.values():
            texts += [source.repo, source.commit, source.licence or ""]
        for made in self.files.values():
            texts += [made.name, made.sha256]
            if type(made.bytes) is not int or "\0" in made.name:
                raise ValueError("a file without a size, or with no name for one")
        for check in self.checks:
            texts += [check.name, check.detail]
        if not all(map(is_text, texts)):
            raise ValueError("something else in place of a text")

    def check_sizes(self, folder: Path) -> None:
        """Raise `ModelFileError` where a file in `folder` lacks some of what was written."""
        for file in self.files.values():
            place = folder / file.name
            try:
                size = place.stat().st_size
            except OSError:  # who reads it is told
                continue
            if size < file.bytes:
                raise ModelFileError(
                    f"`{place}` is incomplete: it has {size:,} bytes of {file.bytes:,}.",
                    remedy="Convert the model again, or move it to the trash and get it again.",
                )

    def verify(
        self,
        folder: Path,
        progress: Progress | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        """Raise `ModelFileError` unless the files in `folder` are those that were made."""
        self.check_sizes(folder)
        total, before = sum(file.bytes for file in self.files.values()) or 1, 0
        for file in self.files.values():
            place = folder / file.name

            def on_bytes(count: int, at: int = before) -> None:
                if cancel is not None:
                    cancel.check()
                if progress is not None:
                    progress(min(1.0, (at + count) / total))

            try:
                found = sha256_of(place, on_bytes)
            except OSError as error:
                raise ModelFileError(
                    f"`{place}` cannot be read: {error.strerror or error}.",
                    remedy="Check its disk, then convert the model again.",
                ) from error
            if found != file.sha256:
                raise ModelFileError(
                    f"`{place}` is damaged: its contents are not those that were written.",
                    remedy="Convert the model again; if it happens once more, check the disk.",
                )
            before += file.bytes


def _finite(text: str) -> float:
    """A number of the file, which is shown as JSON again, where infinity is none."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def sha256_of(file: Path, on_bytes: Callable[[int], None] = lambda _: None) -> str:
    """In hex. `on_bytes` is called with the bytes that were read so far."""
    digest, done = hashlib.sha256(), 0
    buffer = memoryview(bytearray(_CHUNK))
    with file.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
            done += count
            on_bytes(done)
    return digest.hexdigest()
