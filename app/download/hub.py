"""The hub through its own client. Only the child process imports this."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx2
from huggingface_hub import (
    HfApi,
    get_hf_file_metadata,
    get_session,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.constants import ENDPOINT, HF_HUB_CACHE
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import (
    HfFileMetadata,
    are_symlinks_supported,
    repo_folder_name,
)
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    parse_ratelimit_headers,
)

from app.catalog import HubSource
from app.download.listing import Found, Listing, RemoteFile, needed
from app.errors import AccessError, DownloadError

TRIES: Final = 6
"""Attempts in a row that bring nothing new, before we give up."""
FIRST_WAIT = 0.5
"""Seconds before the second attempt; each further one waits twice as long."""
_PROXIES: Final = ("http", "https", "socks5", "socks5h")  # that httpx2 goes through
_LONGEST_WAIT: Final = 300.0  # seconds that a server may ask for
_TIMEOUT: Final = 15.0  # seconds without an answer or a byte

Note = Callable[[str, float], None]
"""Called with what is being waited for, and how long."""


@dataclass(slots=True)
class Hub:
    """`endpoint` None and `token` None are the client's own, from the environment.

    A token that the hub refuses becomes False, which is none: what is for everybody needs none.
    """

    endpoint: str | None
    token: str | bool | None
    cache: Path
    note: Note
    whose: str = "the access token"
    refused: bool = False

    @property
    def host(self) -> str:
        return urlsplit(self._api().endpoint).hostname or "the hub"

    def list(self, source: HubSource) -> Listing:
        """What the repository has now, or at the revision that is wanted."""

        def ask() -> Any:
            return self._api().model_info(
                source.repo, revision=source.revision, files_metadata=True, timeout=_TIMEOUT
            )

        try:
            info = self.patiently(ask, f"`{source}`")
            files = _files(info)
        except (ValueError, LookupError, TypeError) as error:  # a page for people, say
            raise DownloadError(
                f"{self.host} answers with something that is no list of files.",
                remedy="Check `HF_ENDPOINT`, and whether the network wants you to sign in.",
            ) from error
        card = info.card_data
        licence = card.get("license") if card is not None else None
        files.sort(key=lambda file: file.bytes)  # what is refused early is known early
        chosen = needed(source.repo, files)
        return Listing(source.repo, info.sha, chosen, licence if isinstance(licence, str) else None)

    def found(self, listing: Listing) -> Found:
        here, missing = set(), 0
        for file in listing.files:
            if self.whole(listing, file):
                here.add(file.name)
            else:
                missing += file.bytes - size_of(self.part(listing, file))
        return Found(listing, self.cache, frozenset(here), missing)

    def whole(self, listing: Listing, file: RemoteFile) -> Path | None:
        """The file in the cache, if it has its full length there: any tool's download will do."""
        known = try_to_load_from_cache(
            listing.repo, file.name, cache_dir=self.cache, revision=listing.commit
        )
        for place in (Path(known) if isinstance(known, str) else None, self.blob(listing, file)):
            if place is not None and place.is_file() and size_of(place) == file.bytes:
                return place
        return None

    def blob(self, listing: Listing, file: RemoteFile) -> Path:
        return self._blobs(listing) / file.etag

    def home(self, listing: Listing, file: RemoteFile) -> Path:
        """Where a whole file belongs: without links the client would copy it from its blob."""
        if are_symlinks_supported(self._folder(listing)):
            return self.blob(listing, file)
        return self._folder(listing) / "snapshots" / listing.commit / file.name

    def part(self, listing: Listing, file: RemoteFile) -> Path:
        """Where a file grows, under a name that the hub's own tools know as unfinished."""
        return self._blobs(listing) / f"{file.etag}.slipstream.incomplete"

    def fetched(self, listing: Listing, file: RemoteFile, **options: Any) -> str:
        """The file's place in the cache, as the hub's own client brings it there."""
        place: str = hf_hub_download(
            listing.repo,
            file.name,
            revision=listing.commit,
            cache_dir=self.cache,
            endpoint=self.endpoint,
            token=self.token,
            **options,
        )
        return place

    def metadata(self, listing: Listing, file: RemoteFile) -> HfFileMetadata:
        """Where the file is to be had, at this moment: links expire."""
        address = hf_hub_url(
            listing.repo, file.name, revision=listing.commit, endpoint=self.endpoint
        )
        return get_hf_file_metadata(
            address, token=self.token, endpoint=self.endpoint, timeout=_TIMEOUT
        )

    def headers(self, location: str) -> dict[str, str]:
        """With the token only where it belongs: a link to elsewhere has a key of its own."""
        ours = (urlsplit(location).hostname or "") == self.host
        headers = build_hf_headers(token=self.token if ours else False)
        return {**headers, "Accept-Encoding": "identity"}

    def patiently(self, ask: Callable[[], Any], what: str) -> Any:
        """`ask`, again and again where that can help; raises `DownloadError` in the end."""
        for attempt in range(TRIES):
            try:
                return ask()
            except OfflineModeIsEnabled:
                raise offline(what) from None
            except LocalEntryNotFoundError as error:  # an `OSError`; it has tried long enough
                cause = error.__cause__ or error
                if isinstance(cause, OfflineModeIsEnabled):
                    raise offline(what) from None
                status = getattr(getattr(cause, "response", None), "status_code", None)
                raise self._meaning(cause, status, what) from None
            except (HfHubHTTPError, httpx2.HTTPError) as error:
                self.wait(error, attempt, what)
        raise AssertionError("the last attempt raises")

    def pause(self, attempt: int, note: str) -> None:
        seconds = FIRST_WAIT * 2**attempt
        self.note(note, seconds)
        time.sleep(seconds)

    def wait(self, error: Exception, attempt: int, what: str) -> None:
        """Wait as long as is right after `error`, or raise what it means."""
        response = getattr(error, "response", None)
        status = response.status_code if response is not None else None
        if _is_refused(error) and attempt + 1 < TRIES:
            self.token, self.refused = False, True
            self.note(f"{self.host} refuses {self.whose}; asking without it", 0.0)
            return
        final = status is not None and status not in (408, 425, 429) and status < 500
        if final or attempt + 1 >= TRIES:
            raise self._meaning(error, status, what) from None  # its text may hold keys
        asked = _retry_after(response) if response is not None else None
        seconds = min(_LONGEST_WAIT, FIRST_WAIT * 2**attempt if asked is None else asked)
        if status == 429:
            note = f"{self.host} asks to wait for {seconds:.0f} s"
        elif status is not None:
            note = f"{self.host} has trouble (status {status}); trying again"
        else:
            note = f"No connection to {self.host}; trying again"
        self.note(note, seconds)
        time.sleep(seconds)

    def _meaning(self, error: BaseException, status: int | None, what: str) -> DownloadError:
        if self.refused and status in (401, 403):
            return AccessError(
                f"{self.host} refuses {self.whose}, and does not give {what} without one.",
                remedy="Replace that token by a valid one, and check the name.",
            )
        if isinstance(error, GatedRepoError) or status == 403:
            return AccessError(
                f"{self.host} does not give {what} to everybody.",
                remedy="Accept its terms on its page there, and enter your access token.",
            )
        if isinstance(error, RevisionNotFoundError):
            return DownloadError(
                f"{what} is not on {self.host}: it has no such revision.",
                remedy="Check the revision.",
            )
        if isinstance(error, RepositoryNotFoundError) or status == 401:
            return AccessError(
                f"{what} is not on {self.host}, or not for everybody.",
                remedy="Check its name; if it is private or gated, enter your access token.",
            )
        if status == 404:
            return DownloadError(
                f"{what} is not on {self.host} any more.", remedy="Start the download anew."
            )
        if status is not None:
            kind = "asks to wait longer" if status == 429 else f"has trouble (status {status})"
            return DownloadError(
                f"{self.host} {kind}.", remedy="Try again later; what is here stays."
            )
        return DownloadError(
            f"There is no connection to {self.host}: {_cause(error)}.",
            remedy="Check the network and the proxy, then try again; what is here stays.",
        )

    def _api(self) -> HfApi:
        return HfApi(endpoint=self.endpoint, token=self.token, library_name="slipstream")

    def _folder(self, listing: Listing) -> Path:
        return self.cache / repo_folder_name(repo_id=listing.repo, repo_type="model")

    def _blobs(self, listing: Listing) -> Path:
        return self._folder(listing) / "blobs"


def offline(what: str) -> DownloadError:
    return DownloadError(
        f"{what} is not here, and the hub's client is set to stay offline.",
        remedy="Unset `HF_HUB_OFFLINE`, then try again.",
    )


def open_hub(access: Any, note: Note) -> Hub:
    """As `service.Access` says; the environment's token goes before one that is kept.

    Raises `DownloadError` for an address or a proxy that the client cannot use, `AccessError`
    for a token.
    """
    address = urlsplit(access.endpoint or ENDPOINT)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise DownloadError(
            "`HF_ENDPOINT` is no address of a hub: that begins with `https://`.",
            remedy="Add this to it, or unset it.",
        )
    try:
        get_session()
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        raise _proxy_error() from error
    hub = Hub(access.endpoint, access.token, Path(HF_HUB_CACHE), note)
    if token := os.environ.get("HF_TOKEN", "").strip():
        hub.token, hub.whose = token, "the token in `HF_TOKEN`"
    if hub.token and not (str(hub.token).isascii() and str(hub.token).isprintable()):
        raise AccessError(
            f"There are characters in {hub.whose} that no token has.", remedy="Copy it once more."
        )
    return hub


def _proxy_error() -> DownloadError:
    """Names the setting, and not the address, which may hold a password."""
    for use, address in getproxies().items():
        kind, _, rest = address.partition("://")
        if use in ("http", "https", "all") and rest and kind not in _PROXIES:
            names = (name for name in os.environ if name.lower() == f"{use}_proxy")
            where = next((f"`{name}`" for name in names), "The system's setting")
            return DownloadError(
                f"{where} names a proxy of the kind `{kind}`, which downloads cannot go through.",
                remedy="Begin it with `http://` or `socks5://`, as the proxy is, or unset it.",
            )
    return DownloadError(
        "The address of the proxy cannot be read.",
        remedy="Check `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`.",
    )


def _files(info: Any) -> list[RemoteFile]:
    files = []
    for sibling in info.siblings or ():
        etag = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id
        size = sibling.lfs.size if sibling.lfs else sibling.size
        if "/" not in sibling.rfilename and etag and size is not None:
            files.append(RemoteFile(sibling.rfilename, size, etag))
    return files


def size_of(file: Path) -> int:
    with contextlib.suppress(OSError):
        return file.stat().st_size
    return 0


def _is_refused(error: Exception) -> bool:
    """Whether it is the token that the hub does not accept, whatever was asked for with it."""
    if not isinstance(error, HfHubHTTPError) or error.response.status_code != 401:
        return False
    known = isinstance(error, RepositoryNotFoundError)  # and gated ones: it knows who asks
    return not known and "Authorization" in error.response.request.headers


def _retry_after(response: Any) -> float | None:
    """Seconds that the server asks for: in the header of all servers, or in the hub's own."""
    with contextlib.suppress(KeyError, ValueError):  # none, or a date, which hubs do not send
        return max(0.0, float(response.headers["Retry-After"]))
    limit = parse_ratelimit_headers(response.headers) if response.status_code == 429 else None
    return None if limit is None else limit.reset_in_seconds + 1.0  # it counts whole ones


def _cause(error: BaseException) -> str:
    """In few words, and without an address."""
    match error:
        case httpx2.ProxyError():
            return "the proxy refuses"
        case httpx2.TimeoutException():
            return "it does not answer"
        case httpx2.ConnectError() if "CERTIFICATE" in str(error):
            return "its certificate is not trusted"
        case httpx2.ConnectError():
            return "it cannot be reached"
        case FileMetadataError():
            return "something else answers in its place"
        case _:
            return "it breaks off"
