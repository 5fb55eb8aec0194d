"""Files out of packages of Debian 13, fetched by hash and unpacked beside the system's.

A release keeps a version only until the next one of its updates; the archive of all that ever was
has it under its SHA-1, so it is asked second.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import tarfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .cache import cache_dir
from .errors import BuildError, UnavailableError

POOL = "http://deb.debian.org/debian/pool/main/"
ARCHIVE = "https://snapshot.debian.org/file/"
ATTEMPTS = 3


@dataclass(frozen=True)
class Package:
    """`path` below the pool; `sha1` is the name in the archive, `sha256` what is relied on."""

    path: str
    sha256: str
    sha1: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name.removesuffix(".deb")


def unpacked(name: str, packages: Sequence[Package], below: str) -> Path:
    """The folder `downloads/NAME` of the cache, with all files that lie `below` a folder of them.

    Raises UnavailableError without a connection, BuildError for a package with another hash.
    """
    folder = cache_dir() / "downloads" / name
    if folder.is_dir():
        return folder
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    for package in packages:
        for inside, content in files_of(_fetch(package), below):
            file = part / inside
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    part.replace(folder)
    return folder


def _fetch(package: Package) -> bytes:
    places = (POOL + package.path, ARCHIVE + package.sha1)
    for attempt in range(1, ATTEMPTS + 1):
        print(f"fetching {package.name} (attempt {attempt} of {ATTEMPTS})", flush=True)
        for place in places:
            try:
                with urllib.request.urlopen(place, timeout=60) as reply:
                    content: bytes = reply.read()
            except OSError as exc:
                problem = f"could not fetch {place}: {exc}"
                continue
            got = hashlib.sha256(content).hexdigest()
            if got != package.sha256:
                raise BuildError(f"{place}: sha256 is {got}, wanted {package.sha256}; not used")
            return content
        if attempt < ATTEMPTS:
            time.sleep(attempt * 3)
    raise UnavailableError(problem)


def files_of(package: bytes, below: str) -> Iterator[tuple[PurePosixPath, bytes]]:
    """(path below that folder, content) of each file there in a Debian package; of a link, what
    it leads to, if that is in the package too."""
    # An ar archive: a magic line, then members, each with a header of 60 bytes, padded to even.
    at = 8
    while at < len(package):
        name, size = package[at : at + 16].decode().strip(), int(package[at + 48 : at + 58])
        at += 60
        if name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(package[at : at + size])) as tar:
                for member in tar.getmembers():
                    path = PurePosixPath(member.name)
                    if not path.is_relative_to(below) or member.isdir():
                        continue
                    with contextlib.suppress(KeyError):
                        if content := tar.extractfile(member):
                            yield path.relative_to(below), content.read()
        at += size + size % 2
