"""Two builds of one commit: `python -m slipstream_package.compare DIST OTHER` says which of their
files differ, and of archives what in them. Status 1 where one does.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

KINDS = ("*.deb", "*.tar.zst", "*.whl", "*.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="slipstream_package.compare", description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("other", type=Path)
    args = parser.parse_args()
    names = {f.name for dist in (args.dist, args.other) for kind in KINDS for f in dist.glob(kind)}
    told = {name: differing(args.dist / name, args.other / name) for name in sorted(names)}
    for name, inside in told.items():
        print(f"{name}: {'the same' if not inside else 'differs: ' + ', '.join(inside)}")
    return 1 if any(told.values()) or not told else 0


def differing(one: Path, other: Path) -> list[str]:
    """What differs, by place inside; empty where every byte is the same."""
    if not (one.is_file() and other.is_file()):
        return ["only one of the builds has it"]
    if one.read_bytes() == other.read_bytes():
        return []
    ours, theirs = members(one), members(other)
    unequal = [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)]
    return sorted(unequal) or ["the same inside, otherwise packed"]


def members(archive: Path) -> dict[str, tuple[object, ...]]:
    """By place inside: rights, owner, time and what is there. Empty for what is no archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as content:
            return {
                row.filename: (row.external_attr, row.date_time, row.CRC)
                for row in content.infolist()
            }
    if archive.suffix == ".deb":
        return {
            f"{part}{name}": told
            for part, which in (("", "--fsys-tarfile"), ("DEBIAN/", "--ctrl-tarfile"))
            for name, told in _of_tar(
                subprocess.run(["dpkg-deb", which, archive], capture_output=True, check=True).stdout
            ).items()
        }
    if archive.suffix == ".zst":
        import zstandard  # in the environment that packs, and no other

        with archive.open("rb") as packed:
            return _of_tar(zstandard.ZstdDecompressor().stream_reader(packed).read())
    return {}


def _of_tar(content: bytes) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for row in tar:
            file = tar.extractfile(row) if row.isreg() else None
            digest = hashlib.sha256(file.read()).hexdigest() if file else row.linkname
            found[row.name] = (row.mode, row.uname, row.gname, row.mtime, digest)
    return found


if __name__ == "__main__":
    sys.exit(main())
