"""Which files of a folder are the target and its drafter, whatever their names are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import ModelFileError, SlipstreamError, UnsupportedModelError
from app.gguf_header import read_keys

TARGET: Final = "qwen35"
DRAFT: Final = "dflash"

_FIRST_PART: Final = re.compile(r"-00001-of-(\d{5})\.gguf$")
_LATER_PART: Final = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
_NAMED: Final = 5  # files in a message


@dataclass(frozen=True, slots=True)
class PairFiles:
    """Of a model in parts, the first."""

    target: Path
    draft: Path | None


def find_pair(place: Path) -> PairFiles:
    """The target and at most one drafter in the folder `place`, or beside the target `place`.

    Files named `target*` and `draft*` are taken for what they say, unread; where there is no
    such target, the others are told apart by the architecture that they name. Raises
    `ModelFileError`, or `UnsupportedModelError` where all that is there is other models.
    """
    if is_gguf(place):
        return _beside(place)
    files = _models(place)
    targets = [file for file in files if file.name.startswith("target")]
    drafts = [file for file in files if file.name.startswith("draft")]
    if not targets:
        targets, drafts = _told_apart(place, files)
    for found in (targets, drafts):
        if len(found) > 1:
            raise ModelFileError(
                f"`{place}` has more than one candidate: {_listed(found)}.",
                remedy="Keep one target and one drafter in a folder, or name the target's file.",
            )
    for file in (*targets, *drafts):
        if not file.is_file():
            raise ModelFileError(f"`{file}` is not a file that can be read.", remedy=_reach(file))
    return PairFiles(targets[0], drafts[0] if drafts else None)


def parts(file: Path) -> list[Path]:
    """All files of a model in parts, of which `file` is the first; else `file` alone."""
    found = _FIRST_PART.search(file.name)
    if found is None:
        return [file]
    prefix, count = file.name[: found.start()], found[1]
    return [file.with_name(f"{prefix}-{i:05d}-of-{count}.gguf") for i in range(1, int(count) + 1)]


def is_gguf(place: Path) -> bool:
    """Whether `place` names a model by its file, be it there or not."""
    return place.suffix == ".gguf" and not place.is_dir()


def _beside(target: Path) -> PairFiles:
    """A target by its file: with the drafter of its folder if the names say that it has one."""
    if not target.is_file():
        raise ModelFileError(f"`{target}` is not a file that can be read.", remedy=_reach(target))
    if _LATER_PART.search(target.name):
        raise ModelFileError(
            f"`{target}` is a later part of a model.",
            remedy="Choose the part `…-00001-of-…`, with the others beside it.",
        )
    drafts = [file for file in _models(target.parent) if file.name.startswith("draft")]
    if target.name.startswith("target") and len(drafts) == 1 and drafts[0].is_file():
        return PairFiles(target, drafts[0])
    return PairFiles(target, None)


def _models(folder: Path) -> list[Path]:
    """The GGUF files of `folder`, of a model in parts only the first."""
    try:
        return sorted(
            file
            for file in folder.iterdir()
            if file.suffix == ".gguf" and not _LATER_PART.search(file.name)
        )
    except OSError as error:
        raise ModelFileError(
            f"`{folder}` cannot be read: {error.strerror or error}.", remedy=_reach(folder)
        ) from error


def _told_apart(folder: Path, files: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    kinds = {file: _architecture(file) for file in files}
    targets = [file for file, kind in kinds.items() if kind == TARGET]
    if targets:
        return targets, [file for file, kind in kinds.items() if kind == DRAFT]
    raise _nothing(folder, kinds)


def _architecture(file: Path) -> str:
    """What the file says that it holds; "" if it cannot be read as GGUF."""
    try:
        return str(read_keys(file, ("general.architecture",)).get("general.architecture", ""))
    except (OSError, ValueError):
        return ""


def _nothing(folder: Path, kinds: dict[Path, str]) -> SlipstreamError:
    if not kinds:
        return ModelFileError(
            f"`{folder}` has no `target*.gguf`.",
            remedy="Name a folder that `slipstream convert` wrote, or one with a Qwen3.5 GGUF.",
        )
    told = [f"`{file.name}` ({kind or 'damaged'})" for file, kind in kinds.items()]
    listed = ", ".join(told[:_NAMED]) + (" and more" if len(told) > _NAMED else "")
    if set(kinds.values()) == {""}:
        return ModelFileError(
            f"`{folder}` has no GGUF file that can be read: {listed}.",
            remedy="Download or convert it again.",
        )
    if DRAFT in kinds.values():
        return ModelFileError(
            f"`{folder}` has a drafter, but not its target: {listed}.",
            remedy="Put the GGUF of the Qwen3.5 model beside it that it was made for.",
        )
    return UnsupportedModelError(
        f"`{folder}` has no Qwen3.5 model: {listed}.",
        remedy="Choose a GGUF of Qwen3.5; Slipstream runs no other architecture.",
    )


def _listed(files: Iterable[Path]) -> str:
    return ", ".join(f"`{file.name}`" for file in files)


def _reach(path: Path) -> str:
    """What to do about a path that leads nowhere."""
    if not os.path.lexists(path):
        return "It is not there: check how it is written."
    if not path.is_symlink():
        return "Check its permissions."
    return f"It is a link to `{path.readlink()}`: connect that disk, or remove the link."
