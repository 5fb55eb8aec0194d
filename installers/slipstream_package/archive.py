"""Archives in which only the content tells: one order, no owners, one time."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

# Levels above take hundreds of MB of whoever unpacks it. One thread: several cut it otherwise.
LEVEL, QUICK = 19, 1


def tar(folder: Path, top: str, epoch: int) -> bytes:
    """`folder` with all below as a tar whose paths begin with `top`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in (folder, *sorted(folder.rglob("*"))):
            inside = path.relative_to(folder).as_posix()
            name = top if inside == "." else f"{top}/{inside}"
            member = archive.gettarinfo(path, name)
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            member.mtime = epoch
            if member.islnk():  # two names of one file here are two files there
                member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
            if member.isreg():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            else:
                archive.addfile(member)
    return out.getvalue()


def zstd(content: bytes, level: int = LEVEL) -> bytes:
    import zstandard  # in the environment that packs, and no other

    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, write_content_size=True, write_checksum=True
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(content)
