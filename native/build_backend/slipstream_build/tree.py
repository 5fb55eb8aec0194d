"""The source tree the compiler sees: pristine + patches + our files, synced by content.

DESIGN: the tree lives as long as the pinned source distribution and is only ever rewritten
file by file, where the content differs, so ninja recompiles what really changed. `tree.json`
beside it remembers size, time and digest of every file and which files are ours. A file somebody
edited in place is therefore noticed; it is neither built silently nor thrown away. A cache that
was copied or restored has new times and the same digests, and stays good.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import patches
from .errors import BuildError
from .upstream import NATIVE, Upstream, unpack

LIBRARY = "slipstream"  # the folder of our library inside the tree
LLAMA = "vendor/llama.cpp"
FORM = 2  # of tree.json; a tree with a record of another form is made anew
# Our files among upstream's, by folder here: where they lie in the tree. A patch hooks them in.
ENGINE = {"ggml": f"{LLAMA}/ggml", "llama": LLAMA}


def library_sources() -> Iterator[tuple[str, Path]]:
    """(path inside the tree, file here) of everything our library is built from."""
    yield f"{LIBRARY}/CMakeLists.txt", NATIVE / "cmake" / "CMakeLists.txt"
    yield release()
    for folder in ("include", "src"):
        for file in sorted((NATIVE / folder).rglob("*")):
            if file.is_file():
                yield f"{LIBRARY}/{file.relative_to(NATIVE).as_posix()}", file


def engine_sources() -> Iterator[tuple[str, Path]]:
    """The same of the files that llama.cpp and ggml have from us: kernels, graphs, shaders."""
    for folder, inside in ENGINE.items():
        for file in sorted((NATIVE / folder).rglob("*")):
            if file.is_file():
                yield f"{inside}/{file.relative_to(NATIVE / folder).as_posix()}", file


def program_sources() -> Iterator[tuple[str, Path]]:
    """The same of our native tests and benches, which only the tools need."""
    for folder in ("bench", "tests"):
        for file in sorted((NATIVE / folder).iterdir()):
            if file.name == "CMakeLists.txt" or file.suffix in (".cpp", ".h"):
                yield f"{LIBRARY}/{folder}/{file.name}", file


def release() -> tuple[str, Path]:
    """The same of what CMake is told besides where the outcome is given to others."""
    return f"{LIBRARY}/release.cmake", NATIVE / "cmake" / "release.cmake"


def backend_source() -> tuple[str, Path]:
    """The same of the project that compiles one GPU backend alone."""
    return f"{LIBRARY}/backend/CMakeLists.txt", NATIVE / "cmake" / "backend" / "CMakeLists.txt"


def prepare(upstream: Upstream) -> Path:
    """Bring the patched tree up to date and return it (it holds `vendor/llama.cpp`)."""
    pristine = unpack(upstream)
    overlay = patches.apply(patches.series(NATIVE / "patches"), pristine)
    overlay |= _engine_files(pristine, overlay)
    for sources in (library_sources(), program_sources(), [backend_source()]):
        overlay |= {inside: file.read_bytes() for inside, file in sources}
    init = "llama_cpp/__init__.py"
    text = overlay.get(init) or (pristine / init).read_bytes()
    plain = f'__version__ = "{upstream.version}"'.encode()
    if plain not in text:
        raise BuildError(f"{init}: {plain.decode()} not found")
    overlay[init] = text.replace(plain, f'__version__ = "{upstream.wheel_version}"'.encode())
    tree = upstream.home / "source"
    _sync(pristine, overlay, tree)
    return tree


def _engine_files(pristine: Path, patched: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """Our files among upstream's. None may hide one of upstream's or take turns with a patch."""
    files = {}
    for inside, file in engine_sources():
        if inside in patched or (pristine / inside).exists():
            raise BuildError(
                f"native/{file.relative_to(NATIVE).as_posix()}: upstream or a patch has this "
                "file; give it another name, or change upstream's by a patch"
            )
        files[inside] = file.read_bytes()
    return files


def _sync(pristine: Path, overlay: dict[str, bytes | None], tree: Path) -> None:
    record = _load_record(pristine, tree)
    files, ours = record["files"], set(record["overlay"])
    edited = []
    for path, known in files.items():
        if path in record["pending"] or known[:2] == _stat(tree / path):
            continue
        now = _state(tree / path)
        if now is None or now[2] != known[2]:
            edited.append(path)
        else:
            files[path] = now
    if edited:
        raise BuildError(
            f"edited in place under {tree}:\n  "
            + "\n  ".join(sorted(edited)[:20])
            + "\nMove the change into a patch or file of native/ (see native/README.md), or "
            "delete the folder to get a clean one."
        )
    # Written first, so that a crash in the loop below is not taken for somebody's edit.
    todo = sorted(ours | set(overlay) | set(record["pending"]))
    _save_record(tree, record | {"pending": todo})
    for path in todo:
        content = overlay[path] if path in overlay else _read(pristine / path)
        target = tree / path
        if content is None:
            target.unlink(missing_ok=True)
            files.pop(path, None)
            continue
        if _read(target) != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        files[path] = _state(target)
    _save_record(tree, record | {"overlay": sorted(overlay), "pending": []})


def _load_record(pristine: Path, tree: Path) -> dict[str, Any]:
    path = _record_path(tree)
    if tree.is_dir() and path.is_file():
        loaded: dict[str, Any] = json.loads(path.read_text())
        if loaded.get("form") == FORM:
            return loaded
    part = tree.with_name(tree.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(tree, ignore_errors=True)
    path.unlink(missing_ok=True)  # it would take the new tree for one that somebody edited
    # With new times: by those of upstream's files Ninja would take objects that a build folder has
    # of a patched file, which is upstream's again, for newer.
    shutil.copytree(pristine, part, copy_function=shutil.copyfile)
    part.replace(tree)
    files = {
        file.relative_to(tree).as_posix(): _state(file)
        for file in tree.rglob("*")
        if file.is_file()
    }
    return {"form": FORM, "files": files, "overlay": [], "pending": []}


def _save_record(tree: Path, record: dict[str, Any]) -> None:
    path = _record_path(tree)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(record))
    part.replace(path)


def _record_path(tree: Path) -> Path:
    return tree.with_name("tree.json")


def _stat(path: Path) -> list[int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return [stat.st_size, stat.st_mtime_ns]


def _state(path: Path) -> list[int | str] | None:
    stat, content = _stat(path), _read(path)
    if stat is None or content is None:
        return None
    return [*stat, hashlib.sha256(content).hexdigest()]


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
