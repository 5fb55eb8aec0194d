"""native/patches, applied strictly: in order, without fuzz, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import BuildError

NAME = re.compile(r"(\d{4})-[a-z0-9][a-z0-9-]*\.patch")
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


def _git_apply(patch: Path, stage: Path) -> None:
    """`git apply` never fuzzes: every context line must match (a pure line shift is fine)."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    # Inside somebody's checkout `git apply` would silently skip files outside of it.
    env |= {"GIT_CEILING_DIRECTORIES": str(stage.resolve().parent), "LC_ALL": "C"}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "apply", "--whitespace=nowarn", "--verbose", str(patch.resolve())]
    try:
        done = subprocess.run(command, cwd=stage, env=env, text=True, capture_output=True)
    except FileNotFoundError as exc:
        raise BuildError("git is not installed; it applies native/patches") from exc
    if done.returncode != 0:
        wrong = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        raise BuildError(
            f"native/patches/{patch.name} does not apply:\n  " + "\n  ".join(wrong or [done.stderr])
        )
