"""Fetching one file: behind what is here already, until its contents are what the hub lists.

A part only ever holds the beginning of one file, because its name is that of the contents. It
goes on where the server answers 206 for exactly the rest, else the file begins anew. In the
end the digest decides; a part that fails it is thrown away once, and then it is an error.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
from huggingface_hub import get_session
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils.tqdm import tqdm as hub_tqdm

from app.download.hub import TRIES, Hub, offline, size_of
from app.download.listing import Listing, RemoteFile
from app.errors import DownloadError, NoSpaceError
from app.files import is_full

_CHUNK: Final = 1 << 20
_REPORT: Final = 0.1  # seconds between two
_CONNECT: Final = 15.0
_READ: Final = 30.0

OnBytes = Callable[[int], None]
"""Called with the number of bytes that are new; negative where some were thrown away."""


class _Wrong(Exception):
    """An answer that is not the file. The text says so."""


def fetch_file(
    hub: Hub,
    listing: Listing,
    file: RemoteFile,
    on_bytes: OnBytes,
    on_here: OnBytes,
    on_check: Callable[[str], None],
) -> None:
    """Have `file` whole and checked in the cache of the hub, where its tools find it.

    `on_bytes` is told what comes, `on_here` what was here already. Raises `DownloadError` and its
    kinds, `NoSpaceError`.
    """
    counted = 0  # of this file's bytes, what was told

    def tell(count: int, to: OnBytes = on_bytes) -> None:
        nonlocal counted
        counted += count
        to(count)

    for last in (False, True):
        place = hub.whole(listing, file)
        if place is None:
            place = hub.part(listing, file)
            tell(size_of(place), on_here)
            if not place.is_file() or size_of(place) != file.bytes:  # else it ended before a check
                _grow(hub, listing, file, place, tell)
            tell(file.bytes - counted)
        else:
            tell(file.bytes, on_here)
        on_check(file.name)
        found = _digest(place, file, lambda: on_check(file.name))
        if found == file.etag:
            _lay(hub, listing, file, place)
            return
        with suppress(OSError):
            _drop(hub, listing, file, place)
        tell(-counted)
        if last:
            raise DownloadError(
                f"`{file.name}` of `{listing.repo}` arrives with other contents than the hub "
                f"lists: wanted {file.etag[:12]}…, got {found[:12]}….",
                remedy="Something between here and the hub changes it. Try another network.",
            )


def _grow(hub: Hub, listing: Listing, file: RemoteFile, part: Path, tell: OnBytes) -> None:
    part.parent.mkdir(parents=True, exist_ok=True)
    attempt = 0
    while True:
        before = size_of(part)
        if before > file.bytes:  # it cannot be a beginning
            _cut(part, tell)
            before = 0
        try:
            _ask(hub, listing, file, part, tell)
        except _Wrong as error:
            if attempt + 1 >= TRIES:
                raise DownloadError(
                    f"`{file.name}` of `{listing.repo}` does not arrive whole: {error}.",
                    remedy="Try again later, or over another network; what is here stays.",
                ) from None
            hub.pause(attempt, f"{hub.host} sent something else; trying again")
        except (HfHubHTTPError, httpx2.HTTPError) as error:
            # What has moved is no failed attempt, however often it breaks off.
            moved = size_of(part) > before
            hub.wait(error, 0 if moved else attempt, f"`{file.name}` of `{listing.repo}`")
        except OfflineModeIsEnabled:  # an `OSError` too
            raise offline(f"`{file.name}` of `{listing.repo}`") from None
        except OSError as error:
            raise _disk_error(error, part) from error
        have = size_of(part)
        if have == file.bytes:
            return
        attempt = 0 if have > before else attempt + 1


def _ask(hub: Hub, listing: Listing, file: RemoteFile, part: Path, tell: OnBytes) -> None:
    """One request for what is missing of `part`."""
    about = hub.metadata(listing, file)
    if about.etag != file.etag:
        raise _Wrong(f"the hub has {about.etag} where it listed {file.etag}")
    if about.size is not None and about.size != file.bytes:
        raise _Wrong(f"wanted {file.bytes:,} bytes, the hub offers {about.size:,}")
    have = size_of(part)
    if (
        about.xet_file_data is not None
        and not os.environ.get("HF_HUB_DISABLE_XET")
        and have == 0  # else the rest of what is here is less
        and _came_in_chunks(hub, listing, file, part, tell)
    ):
        return
    headers = hub.headers(about.location)
    if have:
        headers["Range"] = f"bytes={have}-"
    timeout = httpx2.Timeout(_READ, connect=_CONNECT)
    with get_session().stream(
        "GET", about.location, headers=headers, timeout=timeout, follow_redirects=True
    ) as response:
        elsewhere = hub.host != httpx2.URL(about.location).host
        if response.status_code in (401, 403) and elsewhere:
            raise _Wrong("the link to it has expired")  # the next attempt asks for a new one
        if response.status_code == 416 or (
            response.status_code == 206 and not _is_rest(response, have, file.bytes)
        ):
            _cut(part, tell)
            raise _Wrong("the server did not continue where it was asked to")
        response.raise_for_status()
        if response.status_code == 200 and have:
            _cut(part, tell)
            have = 0
        told = response.headers.get("Content-Length")
        if told is not None and told.isdigit() and have + int(told) != file.bytes:
            raise _Wrong(f"wanted {file.bytes:,} bytes, got {have + int(told):,}")
        _write(response, file, part, have, tell)


def _write(response: Any, file: RemoteFile, part: Path, have: int, tell: OnBytes) -> None:
    told, due = have, 0.0
    try:
        with part.open("ab", buffering=0) as stream:
            for chunk in response.iter_bytes(_CHUNK if file.bytes > 64 * _CHUNK else 65_536):
                stream.write(chunk)
                have += len(chunk)
                if have > file.bytes:
                    stream.truncate(0)  # it is not that file at all
                    raise _Wrong(f"wanted {file.bytes:,} bytes, got {have:,} and more")
                if time.monotonic() >= due:
                    tell(have - told)
                    told, due = have, time.monotonic() + _REPORT
            os.fsync(stream.fileno())
    finally:
        tell(size_of(part) - told)
    if have < file.bytes:
        raise httpx2.RemoteProtocolError("it ended early")


def _came_in_chunks(
    hub: Hub, listing: Listing, file: RemoteFile, part: Path, tell: OnBytes
) -> bool:
    """By the hub's own protocol of chunks, in its own library, which writes to another place.

    False where that fails, whatever of: then it is to be had as one file.
    """
    counted = 0

    class Told(hub_tqdm):
        def update(self, n: float | None = 1) -> bool | None:
            nonlocal counted
            counted += int(n or 0)
            tell(int(n or 0))
            return None

    try:
        place = hub.fetched(listing, file, tqdm_class=Told)
    except Exception as error:  # a library in Rust, with errors of its own
        if isinstance(error, OSError) and is_full(error):
            raise
        tell(-counted)
        hub.note("The hub's chunks do not come; fetching the whole file", 0.0)
        return False
    came = Path(place)  # to be checked like any other
    (hub.blob(listing, file) if came.is_symlink() else came).replace(part)
    return True


def _is_rest(response: Any, have: int, total: int) -> bool:
    return str(response.headers.get("Content-Range", "")) == f"bytes {have}-{total - 1}/{total}"


def _cut(part: Path, tell: OnBytes) -> None:
    tell(-size_of(part))
    part.unlink(missing_ok=True)


def _digest(place: Path, file: RemoteFile, on_step: Callable[[], None]) -> str:
    """The name that the hub would give to these contents."""
    digest = hashlib.sha256()
    if len(file.etag) != 64:  # as git names them
        digest = hashlib.sha1(f"blob {size_of(place)}\0".encode(), usedforsecurity=False)
    buffer = memoryview(bytearray(_CHUNK))
    due = time.monotonic() + 1.0
    with place.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
            if time.monotonic() >= due:
                on_step()
                due = time.monotonic() + 1.0
    return digest.hexdigest()


def _lay(hub: Hub, listing: Listing, file: RemoteFile, place: Path) -> None:
    """Give the checked file its place; the client then makes its own links to it."""
    try:
        if place == hub.part(listing, file):
            home = hub.home(listing, file)
            home.parent.mkdir(parents=True, exist_ok=True)
            place.replace(home)
        hub.patiently(lambda: hub.fetched(listing, file), f"`{file.name}` of `{listing.repo}`")
    except (HfHubHTTPError, httpx2.HTTPError):
        raise
    except OSError as error:
        raise _disk_error(error, place) from error


def _drop(hub: Hub, listing: Listing, file: RemoteFile, place: Path) -> None:
    """Remove what is not the file. A blob may be a link too: what models share is left to them."""
    if place.is_symlink():
        hub.blob(listing, file).unlink(missing_ok=True)
    place.unlink(missing_ok=True)


def _disk_error(error: OSError, place: Path) -> Exception:
    if is_full(error):
        return NoSpaceError(
            f"The disk of `{place.parent}` is full.",
            remedy="Free some space, then continue; what is here stays.",
        )
    return DownloadError(
        f"`{place.parent}` cannot be written: {error.strerror or error}.",
        remedy="Check its permissions, or set `HF_HOME` to another folder.",
    )
