"""`--rebase`: what another upstream source distribution leaves of our patches, hunk by hunk.

Each patch is applied as strictly as in a build, but file by file and hunk by hunk: what fits is
applied and the rest is named. So one run shows all that has to be mended, in the order in which
to mend it.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import patches, tree, upstream
from .cache import cache_dir
from .errors import BuildError


@dataclass(frozen=True)
class Misfit:
    """What of a patch does not fit; `hunk` counts from 1, None is the whole file."""

    patch: str
    file: str
    hunk: int | None
    hunks: int
    line: int
    follows: str | None  # an earlier patch that did not fit in the same file

    def __str__(self) -> str:
        what = (
            f"hunk {self.hunk} of {self.hunks}, line {self.line}" if self.hunk else "no such file"
        )
        cause = f" (after {self.follows}, which may be the cause)" if self.follows else ""
        return f"{self.patch}: {self.file}: {what}{cause}"


def rebase(what: str) -> Path:
    """The patched tree of `what`, a version on the package index or a file.

    Raises BuildError with all that does not fit; the tree then holds what does, and beside each
    file its rejected hunks, `FILE.PATCH.rej`.
    """
    with tempfile.TemporaryDirectory(prefix="slipstream-sdist-") as folder:
        archive = Path(what) if Path(what).is_file() else upstream.download(what, Path(folder))
        name = archive.name.removesuffix(".tar.gz")
        place = cache_dir() / "native" / "rebase" / name
        shutil.rmtree(place, ignore_errors=True)
        upstream.extract(archive, place)
    series = patches.series(upstream.NATIVE / "patches")
    taken = [inside for inside, _ in tree.engine_sources() if (place / inside).exists()]
    misfits = apply(series, place)
    total = sum(len(section.lines) for patch in series for section in patches.sections(patch))
    print(f"{name}: {total - len(misfits)} of {total} hunks of {len(series)} patches fit")
    if misfits or taken:
        lines = [str(misfit) for misfit in misfits]
        lines += [f"{inside}: upstream has a file of this name now, so have we" for inside in taken]
        raise BuildError(f"to mend in {place}:\n  " + "\n  ".join(lines))
    return place


def apply(series: list[Path], place: Path) -> list[Misfit]:
    """Apply to the tree `place` what fits; what does not, in order."""
    misfits: list[Misfit] = []
    failed: dict[str, str] = {}  # by file: the first patch that did not fit
    for patch in series:
        for section in patches.sections(patch):
            file = section.path
            if section.creates or (place / file).is_file():
                wrong: list[int | None] = [*patches.apply_hunks(section, place)]
            else:
                wrong = [None]
            for hunk in wrong:
                line = section.lines[hunk - 1] if hunk else 0
                follows = failed.get(file)
                misfits.append(Misfit(patch.stem, file, hunk, len(section.lines), line, follows))
            if wrong:
                failed.setdefault(file, patch.stem)
            rejected = place / f"{file}.rej"
            if rejected.is_file():
                rejected.replace(place / f"{file}.{patch.stem}.rej")
    return misfits
