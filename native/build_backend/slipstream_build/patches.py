"""native/patches, applied strictly: in order, without fuzz, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import BuildError

NAME = re.compile(r"(\d{4})-[a-z0-9][a-z0-9-]*\.patch")
REJECTED = re.compile(r"^Rejected hunk #(\d+)\.", re.MULTILINE)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
TOUCHED = re.compile(r"^(?:--- a/|\+\+\+ b/|rename from |rename to )([^\t\r\n]+)", re.MULTILINE)


def series(folder: Path) -> list[Path]:
    """The patches of `folder` in order; numbers are 0001, 0002, ... without holes."""
    found = sorted(folder.glob("*.patch"))
    for number, patch in enumerate(found, start=1):
        match = NAME.fullmatch(patch.name)
        if match is None or int(match[1]) != number:
            raise BuildError(
                f"native/patches/{patch.name}: expected a name like {number:04}-what-it-does.patch"
            )
    return found


def apply(patches: list[Path], pristine: Path) -> dict[str, bytes | None]:
    """The files the patches touch, by path: new content, or None where one is deleted.

    Only those files are copied out of `pristine`, so this costs milliseconds.
    Raises BuildError with the patch and the file where a hunk does not fit.
    """
    with tempfile.TemporaryDirectory(prefix="slipstream-patches-") as staging:
        stage = Path(staging)
        touched: set[str] = set()
        for patch in patches:
            text = patch.read_text(encoding="utf-8")
            for path in TOUCHED.findall(text):
                if path not in touched and (pristine / path).is_file():
                    (stage / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(pristine / path, stage / path)
                touched.add(path)
            _git_apply(patch, stage)
        return {
            path: (stage / path).read_bytes() if (stage / path).is_file() else None
            for path in sorted(touched)
        }


@dataclass(frozen=True)
class Section:
    """What a patch does to one file; `lines` are where its hunks begin in the old one."""

    path: str
    text: str
    lines: list[int]
    creates: bool


def sections(patch: Path) -> list[Section]:
    """The files of a patch, in order. It may not rename or copy: no patch here does."""
    lines = patch.read_text(encoding="utf-8").splitlines(keepends=True)
    found: list[Section] = []
    at = 0
    while at < len(lines):
        begin, starts = at, []
        if not lines[at].startswith("--- ") or at + 1 == len(lines):
            at += 1
            continue
        old, new = (line[4:].split("\t")[0].rstrip("\n") for line in lines[at : at + 2])
        at += 2
        # Hunks say how long they are: a line that is taken out may look like a file's head.
        while at < len(lines) and (hunk := HUNK.match(lines[at])):
            starts.append(int(hunk[1]))
            left, right = int(hunk[2] or 1), int(hunk[3] or 1)
            at += 1
            while at < len(lines) and (left > 0 or right > 0 or lines[at][0] == "\\"):
                left -= lines[at][0] in " -"
                right -= lines[at][0] in " +"
                at += 1
        path = (old if new == "/dev/null" else new).partition("/")[2]
        found.append(Section(path, "".join(lines[begin:at]), starts, old == "/dev/null"))
    return found


def apply_hunks(section: Section, stage: Path) -> list[int]:
    """Apply the hunks that fit; the numbers of the others, from 1, which go to `FILE.rej`."""
    with tempfile.TemporaryDirectory(prefix="slipstream-patches-") as folder:
        patch = Path(folder) / "section.patch"
        patch.write_text(section.text, encoding="utf-8", newline="")
        done = _git("apply", "--reject", "--whitespace=nowarn", "--verbose", str(patch), cwd=stage)
    rejected = [int(number) for number in REJECTED.findall(done.stderr)]
    if done.returncode != 0 and not rejected:
        return list(range(1, len(section.lines) + 1))
    return rejected


def _git_apply(patch: Path, stage: Path) -> None:
    """`git apply` never fuzzes: every context line must match (a pure line shift is fine)."""
    done = _git("apply", "--whitespace=nowarn", "--verbose", str(patch.resolve()), cwd=stage)
    if done.returncode != 0:
        wrong = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        raise BuildError(
            f"native/patches/{patch.name} does not apply:\n  " + "\n  ".join(wrong or [done.stderr])
        )


def _git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    # Inside somebody's checkout `git apply` would silently skip files outside of it.
    env |= {"GIT_CEILING_DIRECTORIES": str(cwd.resolve().parent), "LC_ALL": "C"}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    try:
        return subprocess.run(
            ["git", *arguments], cwd=cwd, env=env, text=True, capture_output=True, check=False
        )
    except FileNotFoundError as exc:
        raise BuildError("git is not installed; it applies native/patches") from exc
