"""A GPU backend that came by itself: an archive, put into the folder of backends.

DESIGN: such a backend is larger than the app with all the rest, so it is no part of it: an archive
of the library, what it links to, and a manifest beside it, `libggml-NAME.json`, that says for which
engine it was built and which bytes its files have. Nothing of it is loaded before that was checked.
`dev.py package --cuda` makes one.
"""

from __future__ import annotations

import hashlib
import json
import sysconfig
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from app.binding.library import ABI
from app.errors import DeviceError, OutputError

_REMEDY: Final = "Install the archive that belongs to this version of Slipstream."


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says of itself; `files` are SHA-256 in hex by name."""

    library: str  # libggml-cuda.so
    engine: str  # for which it was built, as `engine()` says
    architectures: tuple[str, ...]  # that it has code for
    files: dict[str, str]


def engine() -> str:
    """What a backend must be built for to be loaded here: version, ABI and system."""
    return f"{metadata.version('llama_cpp_python')} abi{ABI} {sysconfig.get_platform()}"


def manifest_of(library: Path) -> Path:
    """Where the manifest of a backend lies; one that was built here has none."""
    return library.with_suffix(".json")


def check(library: Path) -> None:
    """Whether a backend is what its manifest says. Raises DeviceError; does nothing without one."""
    path = manifest_of(library)
    if not path.is_file():
        return
    manifest = _read(path.name, path.read_bytes())
    _check_engine(manifest)
    for name, wanted in manifest.files.items():
        try:
            with (library.parent / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DeviceError(f"`{name}` cannot be read: {error}.", remedy=_REMEDY) from error
        if found != wanted:
            raise DeviceError(
                f"`{name}` is damaged: its SHA-256 is not what `{path.name}` says.", remedy=_REMEDY
            )


def install(archive: Path, folder: Path) -> Manifest:
    """Puts what the archive holds into `folder`, once all of it is seen to be whole.

    A folder that cannot be written any more in between leaves the backend refused by its manifest.

    Raises DeviceError for an archive that is damaged or for another engine, OutputError where it
    cannot be read or the folder not be written.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            names = set(opened.namelist())
            [listed] = [name for name in names if name.endswith(".json")]
            manifest = _read(listed, opened.read(listed))
            _check_engine(manifest)
            if names != {listed, *manifest.files}:
                raise DeviceError(f"`{archive}` holds other files than it says.", remedy=_REMEDY)
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as place:
                opened.extractall(place)
                check(Path(place, manifest.library))
                # The library last: whoever looks meanwhile finds it only with all that it needs.
                for name in sorted(names, key=lambda name: name == manifest.library):
                    Path(place, name).replace(folder / name)
    # An archive with a secret is a RuntimeError, and so is one that is packed in a way not known.
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError) as error:
        raise DeviceError(
            f"`{archive}` is no whole archive of a backend.", remedy="Get it again."
        ) from error
    except OSError as error:
        raise OutputError(
            f"`{archive}` cannot be installed into `{folder}`: {error}.",
            remedy="See that the one can be read and the other be written.",
        ) from error
    return manifest


def _check_engine(manifest: Manifest) -> None:
    if manifest.engine != engine():
        raise DeviceError(
            f"It was built for another engine: {manifest.engine}, and this is {engine()}.",
            remedy=_REMEDY,
        )


def _read(name: str, content: bytes) -> Manifest:
    try:
        found: dict[str, Any] = json.loads(content)
        manifest = Manifest(
            str(found["library"]),
            str(found["engine"]),
            tuple(map(str, found["architectures"])),
            {str(file): str(value) for file, value in found["files"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(f"`{name}` is no manifest of a backend.", remedy=_REMEDY) from error
    inside = all(Path(file).name == file not in ("", "..") for file in (name, *manifest.files))
    if (
        not inside
        or manifest.library not in manifest.files
        or Path(manifest.library).stem != Path(name).stem
    ):
        raise DeviceError(f"`{name}` does not say which files are its own.", remedy=_REMEDY)
    return manifest
