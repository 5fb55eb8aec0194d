"""What the application asks of the hub: a listing, the files, and the room back."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.catalog import HubSource
from app.download.child import Child, Report
from app.download.listing import Found, Listing
from app.download.meter import USUAL, Meter, Pace, Patience
from app.errors import DownloadError, NoSpaceError
from app.jobs import CancelToken

MARGIN: Final = 256_000_000
"""Bytes that stay free on the disk; below that a download pauses by itself."""

_log = logging.getLogger(__name__)

OnPace = Callable[[Pace], None]


@dataclass(frozen=True, slots=True)
class Access:
    """How the hub is reached. What is None comes from `HF_ENDPOINT`, `HF_TOKEN` and so on.

    `xet` allows the hub's protocol of chunks, which begins a file anew after an interruption.
    """

    token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    xet: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """The folders in the hub's cache, in the order of the listings."""

    folders: tuple[Path, ...]


def look(
    sources: Sequence[HubSource], access: Access, cancel: CancelToken | None = None
) -> tuple[Found, ...]:
    """What the hub has of `sources`, and how much of that is here. Fetches no file.

    Raises `DownloadError` and its kinds, `UnsupportedModelError`, `JobCancelled`.
    """
    with Child(_look, tuple(sources), access) as child:
        found: tuple[Found, ...] = child.result(_ignore, lambda: None, cancel or CancelToken())
    return found


def look_here(
    listings: Sequence[Listing], access: Access, cancel: CancelToken | None = None
) -> tuple[Found, ...]:
    """What of `listings` is on this machine, in the cache that is set now. Asks no hub."""
    with Child(_look_here, tuple(listings), access) as child:
        found: tuple[Found, ...] = child.result(_ignore, lambda: None, cancel or CancelToken())
    return found


def fetch(
    listings: Sequence[Listing],
    access: Access,
    on_pace: OnPace = lambda _: None,
    cancel: CancelToken | None = None,
    *,
    patience: Patience = USUAL,
    margin: int = MARGIN,
) -> Fetched:
    """Have all files of `listings` whole and checked on this machine.

    A transfer that stalls is begun again behind what is here. Raises `DownloadError` and its
    kinds, `NoSpaceError` before the disk is full, and `JobCancelled` within two seconds;
    what has come by then stays in each case.
    """
    total = sum(listing.bytes for listing in listings)
    best, stalls = -1, 0
    while True:
        watch = _Watch(total, on_pace, patience, margin)
        try:
            with Child(_fetch, tuple(listings), access) as child:
                folders: tuple[Path, ...] = child.result(
                    watch.take, watch.look, cancel or CancelToken()
                )
            return Fetched(folders)
        except _Stalled:
            stalls = 0 if watch.done > best + patience.bytes else stalls + 1
            best = max(best, watch.done)
            if stalls >= patience.restarts:
                raise DownloadError(
                    f"Nothing has come for {patience.seconds * patience.restarts:.0f} s.",
                    remedy="Check the network, then try again; what is here stays.",
                ) from None
            _log.info("The download stalled; connecting again.")


def forget(found: Iterable[Found]) -> int:
    """Free the room of what was fetched: files that were not there before. Returns bytes.

    `found` tells, from before the download, which files were there already.
    """
    freed = 0
    for one in found:
        snapshot = _snapshot(one.cache, one.listing)
        for file in one.listing.files:
            place = snapshot / file.name
            if file.name in one.here:
                continue
            blobs = _blobs(one.cache, one.listing)
            freed += _unlink(place) + _unlink(blobs / file.etag)  # a copy too, where links are none
            for rest in blobs.glob(f"{file.etag}*.incomplete"):
                rest.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # others may have files in it
            snapshot.rmdir()
    return freed


def _unlink(place: Path) -> int:
    """Remove a file, or a link alone; returns the bytes that it took."""
    with contextlib.suppress(OSError):
        taken = place.lstat().st_size if not place.is_symlink() else 0
        place.unlink()
        return taken
    return 0


@dataclass(frozen=True, slots=True)
class _Here:
    """Bytes of a file that no transfer brought: they tell nothing of its pace."""

    bytes: int


class _Stalled(Exception):
    """Too few bytes in too long a time."""


class _Watch:
    """The parent's eyes on a child that fetches: pace, stall, room on the disk."""

    def __init__(self, total: int, on_pace: OnPace, patience: Patience, margin: int) -> None:
        self.done = 0
        self._total, self._on_pace, self._margin = total, on_pace, margin
        self._meter = Meter(patience)
        self._cache: Path | None = None
        self._note, self._until = "Connecting", 0.0
        self._due = 0.0

    def take(self, message: object) -> None:
        match message:
            case Path():
                self._cache = message
                self._meter.forgive()  # until here the child only started
            case _Here():
                self.done += message.bytes
            case int():
                self.done += message
                self._meter.add(max(0, message))
                self._note = ""
            case (str(note), float(seconds)):
                self._note = note
                self._meter.forgive(seconds)

    def look(self) -> None:
        self._on_pace(self._meter.pace(self.done, self._total, self._note))
        if self._cache is None:
            return
        if self._meter.stalled():
            raise _Stalled
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + 0.5
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(self._cache).free
            if free < self._margin and self.done < self._total:
                raise NoSpaceError(
                    f"The disk of `{self._cache}` is nearly full, so the download was paused.",
                    remedy="Free some space, then continue; what is here stays.",
                )


def _snapshot(cache: Path, listing: Listing) -> Path:
    return cache / _folder_name(listing) / "snapshots" / listing.commit


def _blobs(cache: Path, listing: Listing) -> Path:
    return cache / _folder_name(listing) / "blobs"


def _folder_name(listing: Listing) -> str:
    return "models--" + listing.repo.replace("/", "--")  # the layout of the hub's cache


def _ignore(_: object) -> None: ...


# --- in the child process ---------------------------------------------------------


def _look(report: Report, sources: tuple[HubSource, ...], access: Access) -> tuple[Found, ...]:
    _quiet(access)
    from app.download.hub import open_hub

    hub = open_hub(access, lambda note, seconds: report((note, seconds)))
    return tuple(hub.found(hub.list(source)) for source in sources)


def _look_here(_: Report, listings: tuple[Listing, ...], access: Access) -> tuple[Found, ...]:
    _quiet(access)
    from app.download.hub import open_hub

    hub = open_hub(access, lambda note, seconds: None)
    return tuple(hub.found(listing) for listing in listings)


def _fetch(report: Report, listings: tuple[Listing, ...], access: Access) -> tuple[Path, ...]:
    _quiet(access)
    from app.download.hub import open_hub
    from app.download.transfer import fetch_file

    hub = open_hub(access, lambda note, seconds: report((note, float(seconds))))
    hub.cache.mkdir(parents=True, exist_ok=True)
    report(hub.cache)
    for listing in listings:
        for file in listing.files:
            fetch_file(
                hub,
                listing,
                file,
                on_bytes=report,
                on_here=lambda count: report(_Here(count)),
                on_check=lambda name: report((f"Checking {name}", 5.0)),
            )
    return tuple(_snapshot(hub.cache, listing) for listing in listings)


def _quiet(access: Access) -> None:
    """Before the client is imported, because that is when it reads its environment."""
    import os

    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_DISABLE_SYMLINKS_WARNING"] = "1"  # what it warns of is not so here
    os.environ["HF_HUB_DISABLE_SHARED_BLOBS"] = "1"  # what we remove would be other models' too
    if not access.xet:
        os.environ["HF_HUB_DISABLE_XET"] = "1"
    logging.disable(logging.CRITICAL)  # what it logs are addresses, with keys in them
