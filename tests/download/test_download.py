"""Nothing counts that is not the file the hub lists, and nothing that has come is lost."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx2
import pytest
from huggingface_hub.errors import (
    FileMetadataError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
)

from app.catalog import HubSource
from app.download import (
    Access,
    Found,
    Listing,
    Pace,
    Patience,
    RemoteFile,
    fetch,
    forget,
    look,
)
from app.download import hub as client_module
from app.download.listing import needed
from app.download.meter import Meter
from app.download.service import _Here, _quiet, _Watch
from app.download.transfer import _came_in_chunks, fetch_file
from app.errors import AccessError, DownloadError, NoSpaceError, UnsupportedModelError
from app.jobs import CancelToken, JobCancelled
from tests import hub as faults
from tests.download.conftest import REPO
from tests.hub import Hub, parts, wait_until
from tests.socks import socks

BIG = "model.safetensors"
ACCESS = Access()


def stored(cache: Path) -> int:
    """Bytes of all files in the cache of the hub, each counted where it lies."""
    return sum(f.stat().st_size for f in cache.rglob("*") if f.is_file() and not f.is_symlink())


def found(source: str = REPO) -> Found:
    return look([HubSource.parse(source)], ACCESS)[0]


def get(one: Found) -> Path:
    return fetch([one.listing], ACCESS, margin=0).folders[0]


@pytest.fixture
def client(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """What runs in the child, here: most of what can go wrong needs no process of its own."""
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    return Client(client_module.Hub(hub.endpoint, None, cache, lambda note, seconds: None))


class Client:
    def __init__(self, hub: client_module.Hub) -> None:
        self.hub = hub
        self.bytes = 0
        self.here = 0

    def list(self) -> Listing:
        return self.hub.list(HubSource(REPO))

    def get(self) -> Path:
        """The folder, in `bytes` what came and in `here` what was here already."""
        listing, self.bytes, self.here = self.list(), 0, 0
        for file in listing.files:
            fetch_file(self.hub, listing, file, self._count, self._count_here, lambda name: None)
        assert self.bytes + self.here == listing.bytes
        return self.hub.cache / "models--maker--model" / "snapshots" / listing.commit

    def _count(self, count: int) -> None:
        self.bytes += count

    def _count_here(self, count: int) -> None:
        self.here += count


def same(folder: Path, hub: Hub) -> bool:
    served = hub.repos[REPO].folder
    return all(
        (folder / name).read_bytes() == (served / name).read_bytes()
        for name in ("config.json", "tokenizer.json", BIG)
    )


def test_listing_first_then_files_that_the_hubs_tools_find(hub: Hub, cache: Path) -> None:
    one = found()
    assert one.listing.commit == hub.repos[REPO].commit
    assert one.listing.licence == "apache-2.0"
    assert {f.name for f in one.listing.files} == {"config.json", "tokenizer.json", BIG}
    assert (one.missing, one.here) == (one.listing.bytes, frozenset())
    assert not hub.gets(BIG)
    paces: list[Pace] = []
    folder = fetch([one.listing], ACCESS, paces.append, margin=0).folders[0]
    assert folder == cache / "models--maker--model" / "snapshots" / one.listing.commit
    assert same(folder, hub)
    assert not parts(cache)
    assert paces[-1].total == one.listing.bytes
    again = found()
    assert (again.missing, len(again.here)) == (0, 3)


def test_what_is_in_the_cache_is_used(hub: Hub, client: Client) -> None:
    client.get()
    hub.seen.clear()
    assert same(client.get(), hub)
    assert not hub.gets(BIG)


def test_a_damaged_file_in_the_cache_is_fetched_again(hub: Hub, client: Client) -> None:
    folder = client.get()
    data = bytearray((folder / BIG).read_bytes())
    data[99] ^= 1
    (folder / BIG).resolve().write_bytes(data)
    assert same(client.get(), hub)


def test_only_what_is_missing_is_fetched(hub: Hub, client: Client) -> None:
    folder = client.get()
    (folder / "tokenizer.json").resolve().unlink()
    (folder / "tokenizer.json").unlink()
    one = client.hub.found(client.list())
    assert one.missing == (hub.repos[REPO].folder / "tokenizer.json").stat().st_size
    hub.seen.clear()
    assert same(client.get(), hub)
    assert (len(hub.gets("tokenizer.json")), len(hub.gets(BIG))) == (1, 0)


RECOVERED = {
    "cut": [faults.cut()],
    "cut often": [faults.cut(0.1) for _ in range(9)],
    "cut without a length": [faults.cut(length=False)],
    "reset": [faults.reset()],
    "a page, then the file": [faults.page],
    "the whole body for a range": [faults.cut(), faults.whole],
    "longer": [faults.longer],
    "429": [faults.status(429, Retry_After="0.1")],
    "503 twice": [faults.status(503), faults.status(502)],
    "other contents, once": [faults.spoilt],
    "not the rest": [faults.cut(), faults.status(206, Content_Range="bytes 0-1/2")],
}


@pytest.mark.parametrize("name", RECOVERED)
def test_it_comes_through(hub: Hub, client: Client, cache: Path, name: str) -> None:
    hub.faults[BIG] = list(RECOVERED[name])
    assert same(client.get(), hub)
    assert not parts(cache)
    assert not hub.faults[BIG]


def test_a_rest_is_asked_for_and_not_the_whole(hub: Hub, client: Client) -> None:
    hub.faults[BIG] = [faults.cut(0.5)]
    client.get()
    ranges = [r.headers.get("Range") for r in hub.gets(BIG) if r.path.startswith("/cdn")]
    assert ranges == [None, "bytes=524288-"]


def test_a_link_that_expires_in_the_middle(hub: Hub, client: Client) -> None:
    def expire(exchange: faults.Exchange) -> None:
        faults.cut(0.5)(exchange)
        hub.expire_links()

    hub.faults[BIG] = [expire]
    assert same(client.get(), hub)


def test_contents_that_change_between_two_attempts(hub: Hub, client: Client) -> None:
    """A part of the old ones is never continued with the new."""
    served = hub.repos[REPO].folder / BIG

    def change(exchange: faults.Exchange) -> None:
        faults.cut(0.5)(exchange)
        served.write_bytes(bytes(1 << 20))

    hub.faults[BIG] = [change]
    with pytest.raises(DownloadError, match="listed"):
        client.get()
    folder = client.get()  # which lists anew
    assert (folder / BIG).read_bytes() == bytes(1 << 20)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (faults.page, [BIG, "1,048,576", "635"]),
        (faults.spoilt, [BIG, "other contents"]),
        (faults.status(500), ["status 500"]),
    ],
)
def test_it_gives_up_and_says_why(
    hub: Hub, client: Client, cache: Path, fault: faults.Fault, words: list[str]
) -> None:
    hub.always[BIG] = fault
    with pytest.raises(DownloadError) as caught:
        client.get()
    assert all(word in caught.value.message for word in words)
    assert not (
        cache / "models--maker--model" / "snapshots" / hub.repos[REPO].commit / BIG
    ).exists()
    hub.always.clear()
    assert same(client.get(), hub)


def test_cancelled_within_two_seconds_and_continued(hub: Hub, cache: Path) -> None:
    one, cancel = found(), CancelToken()
    hub.faults[BIG] = [faults.trickle(share=0.5)]
    ended: list[float] = []

    def work() -> None:
        with pytest.raises(JobCancelled):
            fetch([one.listing], ACCESS, cancel=cancel, margin=0)
        ended.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: any(size >= 500_000 for size in parts(cache)))
    asked = time.monotonic()
    cancel.cancel()
    thread.join()
    assert ended[0] - asked < 2.0
    rest = found()
    assert rest.missing <= one.missing - 500_000
    assert same(get(rest), hub)
    assert any(r.headers.get("Range") for r in hub.gets(BIG))


def test_a_stall_is_seen_by_bytes_over_time(hub: Hub, cache: Path) -> None:
    hub.faults[BIG] = [faults.trickle(share=0.3)]
    one = found()
    fetched = fetch([one.listing], ACCESS, patience=Patience(3.0, 1000), margin=0)
    assert same(fetched.folders[0], hub)


def test_a_stall_without_end(hub: Hub, cache: Path) -> None:
    hub.always[BIG] = faults.trickle(share=0.0)
    one = found()
    with pytest.raises(DownloadError, match="Nothing has come"):
        fetch([one.listing], ACCESS, patience=Patience(1.0, 1000, 2), margin=0)


def test_rate_and_time_left(hub: Hub, cache: Path) -> None:
    hub.faults[BIG] = [faults.slowly(400_000)]
    paces: list[Pace] = []
    fetch([found().listing], ACCESS, paces.append, margin=0)
    rates = [pace.rate for pace in paces if pace.rate]
    assert rates
    assert any(pace.seconds_left for pace in paces)
    assert all(0 <= pace.done <= pace.total for pace in paces)


def test_what_is_here_already_did_not_come(client: Client, hub: Hub) -> None:
    """At 1 MB/s the time left of 20 GB was told as seconds where a whole file was found."""
    client.get()
    assert (client.bytes, client.here) == (client.list().bytes, 0)
    file = next(file for file in client.list().files if file.name == BIG)
    whole = client.hub.blob(client.list(), file).read_bytes()
    client.hub.blob(client.list(), file).unlink()
    client.hub.part(client.list(), file).write_bytes(whole[:1000])
    client.get()
    assert client.bytes == len(whole) - 1000
    client.get()
    assert client.bytes == 0


def test_what_had_come_whole_before_it_was_checked_is_not_fetched_again(
    hub: Hub, client: Client
) -> None:
    """Killed while gigabytes are checked."""
    listing = client.list()
    file = next(file for file in listing.files if file.name == BIG)
    part = client.hub.part(listing, file)
    part.parent.mkdir(parents=True)
    part.write_bytes((hub.repos[REPO].folder / BIG).read_bytes())
    assert same(client.get(), hub)
    assert not hub.gets(BIG)


def test_the_pace_is_that_of_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("app.download.service.Meter", lambda patience: Meter(patience, lambda: now))
    paces: list[Pace] = []
    watch = _Watch(20_000, paces.append, Patience(30.0, 100, 1), margin=0)
    for now in range(8):
        watch.take(10)
        if now == 4:
            watch.take(_Here(8_000))
        watch.look()
    assert paces[-1].done == 8_080
    assert paces[-1].rate == pytest.approx(10)
    assert paces[-1].seconds_left == pytest.approx((20_000 - 8_080) / 10)


def test_a_disk_that_fills_pauses_the_download(hub: Hub, cache: Path) -> None:
    hub.faults[BIG] = [faults.slowly(300_000)]
    with pytest.raises(NoSpaceError, match="nearly full"):
        fetch([found().listing], ACCESS, margin=1 << 60)


def test_a_token_goes_to_the_hub_alone_and_into_no_log(
    hub: Hub, cache: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    hub.repos[REPO].gated = True
    hub.token = "hf_secret"
    with pytest.raises(AccessError, match="token"):
        found()
    access = Access(token="hf_secret")
    assert "hf_secret" not in repr(access)
    one = look([HubSource(REPO)], access)[0]
    hub.faults[BIG] = [faults.reset()]
    fetch([one.listing], access, margin=0)
    told = {r.path.startswith("/cdn"): "Authorization" in r.headers for r in hub.seen}
    assert told[True] is False
    assert any(r.headers.get("Authorization") == "Bearer hf_secret" for r in hub.seen)
    out = capfd.readouterr()
    assert "hf_secret" not in caplog.text + out.out + out.err
    assert "signature" not in caplog.text + out.out + out.err


def test_the_environments_token(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos[REPO].gated, hub.token = True, "hf_of_environment"
    monkeypatch.setenv("HF_TOKEN", "hf_of_environment")
    assert found().missing


@pytest.mark.parametrize("token", ["hf_of_environment\n", " hf_of_environment\r\n"])
def test_a_token_as_an_editor_leaves_it(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    hub.repos[REPO].gated, hub.token = True, "hf_of_environment"
    monkeypatch.setenv("HF_TOKEN", token)
    assert found().missing


def test_a_token_that_is_blank_is_none(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[REPO].gated, hub.token = True, "hf_kept"
    monkeypatch.setenv("HF_TOKEN", " ")
    assert look([HubSource(REPO)], Access(token="hf_kept"))[0].missing


def test_with_a_token_that_has_expired_what_is_for_everybody_comes(
    hub: Hub, client: Client
) -> None:
    client.hub.token = hub.refused = "hf_expired"
    assert same(client.get(), hub)
    client.hub.token, hub.repos[REPO].commit = "hf_expired", "0" * 40
    assert same(client.get(), hub)


def test_a_token_that_has_expired_is_told_by_its_place(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[REPO].gated, hub.refused = True, "hf_expired"
    with pytest.raises(AccessError, match="refuses the access token"):
        look([HubSource(REPO)], Access(token="hf_expired"))
    monkeypatch.setenv("HF_TOKEN", "hf_expired")
    with pytest.raises(AccessError, match="`HF_TOKEN`") as caught:
        found()
    assert "hf_expired" not in str(caught.value)


def test_a_token_with_what_came_along_when_it_was_copied(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_\u200bx")
    with pytest.raises(AccessError, match="`HF_TOKEN`"):
        found()


def xet_requests(hub: Hub) -> int:
    return sum("xet-read-token" in r.path for r in hub.seen)


def test_chunks_are_not_asked_for_unless_they_are_allowed(hub: Hub, cache: Path) -> None:
    assert same(get(found()), hub)
    assert not xet_requests(hub)


def test_where_chunks_fail_the_file_comes_as_one(hub: Hub, cache: Path) -> None:
    access = Access(xet=True)
    one = look([HubSource(REPO)], access)[0]
    assert same(fetch([one.listing], access, margin=0).folders[0], hub)
    assert xet_requests(hub)
    assert not parts(cache)


def test_what_models_share_is_not_taken_from_the_others(
    hub: Hub, client: Client, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where chunks come, the hub's client keeps one file for all repositories that have it."""
    listing = client.list()
    one = client.hub.found(listing)
    file = next(file for file in listing.files if file.name == BIG)
    store, blob = cache / "blobs" / "ab" / "abcd", client.hub.blob(listing, file)
    store.parent.mkdir(parents=True)
    store.write_bytes((hub.repos[REPO].folder / BIG).read_bytes())

    def fetched(self: object, listing: Listing, file: RemoteFile, **_: object) -> str:
        place = cache / "models--maker--model" / "snapshots" / listing.commit / file.name
        for link, to in ((blob, store), (place, blob)):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(to)
        return str(place)

    monkeypatch.setattr(client_module.Hub, "fetched", fetched)
    part = client.hub.part(listing, file)
    assert _came_in_chunks(client.hub, listing, file, part, lambda count: None)
    assert part.is_symlink()
    part.unlink()
    fetched(client.hub, listing, file)
    forget([one])
    assert (store.exists(), blob.is_symlink()) == (True, False)


def test_a_damaged_file_that_models_share_is_left_to_them(
    hub: Hub, client: Client, cache: Path
) -> None:
    folder = client.get()
    blob, store = (folder / BIG).resolve(), cache / "shared"
    store.write_bytes(bytes(blob.stat().st_size))
    blob.unlink()
    blob.symlink_to(store)
    assert same(client.get(), hub)
    assert not blob.is_symlink()
    assert not any(store.read_bytes())


def test_the_client_shares_no_files_between_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(logging, "disable", lambda _: None)
    _quiet(Access(xet=True))
    shown = "from huggingface_hub.utils import _shared_blobs as s; print(s.shared_blobs_enabled())"
    done = subprocess.run([sys.executable, "-c", shown], env=os.environ, stdout=subprocess.PIPE)
    assert done.stdout.split() == [b"False"]


@pytest.mark.parametrize("source", ["maker/absent", f"{REPO}@nothing"])
def test_what_is_not_there(client: Client, source: str) -> None:
    with pytest.raises(DownloadError, match=source):
        client.hub.list(HubSource.parse(source))


def test_no_network(client: Client) -> None:
    hub = replace(client.hub, endpoint="http://127.0.0.1:9")
    with pytest.raises(DownloadError, match="no connection"):
        hub.list(HubSource(REPO))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (httpx2.ConnectError("no route"), "no connection .* cannot be reached"),
        (httpx2.ConnectTimeout("late"), "no connection .* does not answer"),
        (FileMetadataError("no etag"), "something else answers"),
        (OfflineModeIsEnabled("offline"), "offline"),
    ],
)
def test_no_network_once_a_file_has_come_whole(
    hub: Hub, client: Client, monkeypatch: pytest.MonkeyPatch, cause: Exception, words: str
) -> None:
    """The client wants to be told about the file before it makes its link."""

    def fetched(*_: object, **__: object) -> str:
        raise LocalEntryNotFoundError("An error happened") from cause

    with monkeypatch.context() as broken:
        broken.setattr(client_module.Hub, "fetched", fetched)
        with pytest.raises(DownloadError, match=words):
            client.get()
    assert same(client.get(), hub)
    assert len(hub.gets("config.json")) == 1


def test_a_proxy_is_honoured(cache: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("http_proxy", hub.endpoint)
    monkeypatch.setenv("no_proxy", "")
    assert found().missing
    assert all("hub.invalid" in r.headers.get("Host", "") for r in hub.seen)


@pytest.mark.parametrize("kind", ["socks5", "socks5h"])
@pytest.mark.parametrize("login", [None, ("somebody", "s3cret")])
def test_a_socks_proxy_is_honoured(
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    hub: Hub,
    kind: str,
    login: tuple[str, str] | None,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("no_proxy", "")
    port = urlsplit(hub.endpoint).port
    assert port
    with socks(port, login) as proxy:
        monkeypatch.setenv("all_proxy", proxy.address(kind))
        assert found().missing
    assert set(proxy.asked) == {"hub.invalid"}


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "hub.invalid", "https://", ""])
def test_an_address_that_is_none(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(DownloadError, match="`HF_ENDPOINT` is no address"):
        found()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        # as some desktops set them side by side
        (
            {"ALL_PROXY": "socks://u:secret@x:1", "HTTPS_PROXY": "http://x:1"},
            "`ALL_PROXY`.*`socks`",
        ),
        ({"https_proxy": "socks4://u:secret@127.0.0.1:9"}, "`https_proxy`.*`socks4`"),
        ({"HTTP_PROXY": "http://u:secret@x:port"}, "cannot be read"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DownloadError, match=words) as caught:
        found()
    assert "PROXY" in caught.value.remedy or "socks5://" in caught.value.remedy
    assert "secret" not in str(caught.value)


def test_offline(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match="offline"):
        found()


def test_a_listing_that_is_none(hub: Hub, client: Client) -> None:
    hub.always["api"] = faults.page
    with pytest.raises(DownloadError, match="no list of files"):
        client.list()


def test_a_hub_that_is_busy_when_it_is_asked_for_a_list(hub: Hub, client: Client) -> None:
    hub.faults["api"] = [faults.status(429, Retry_After="0"), faults.status(503)]
    assert client.list().files


def test_the_hubs_own_words_for_how_long_to_wait(
    hub: Hub, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(client_module, "time", SimpleNamespace(sleep=waited.append))
    hub.faults["api"] = [
        faults.status(429, RateLimit='"api";r=0;t=40', RateLimit_Policy='"api";q=500;w=300'),
        faults.status(429, RateLimit='"api";r=0;t=40', Retry_After="7"),
        faults.status(429, RateLimit="nonsense"),
    ]
    assert client.list().files
    assert waited == [41.0, 7.0, client_module.FIRST_WAIT * 4]


def test_a_repository_without_safetensors(hub: Hub, client: Client) -> None:
    (hub.repos[REPO].folder / BIG).rename(hub.repos[REPO].folder / "model.gguf")
    with pytest.raises(UnsupportedModelError, match="GGUF"):
        client.list()


def test_room_is_given_back_but_not_what_was_there_before(
    hub: Hub, client: Client, cache: Path
) -> None:
    client.get()
    folder = cache / "models--maker--model"
    (next(folder.rglob(f"snapshots/*/{BIG}")).resolve()).unlink()
    one = client.hub.found(client.list())
    assert one.here == {"config.json", "tokenizer.json"}
    client.get()
    assert forget([one]) == 1 << 20
    assert client.hub.found(client.list()).here == {"config.json", "tokenizer.json"}


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on exFAT, or on Windows for who is no developer."""
    monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", "1")  # in the child
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_SYMLINKS", True)


@pytest.mark.usefixtures("no_links")
def test_without_links_nothing_is_stored_twice(hub: Hub, cache: Path) -> None:
    one = found()
    assert same(get(one), hub)
    assert not list(cache.rglob("*.incomplete"))
    assert one.listing.bytes <= stored(cache) < one.listing.bytes + 1000
    assert forget([one]) == one.listing.bytes
    assert stored(cache) < 1000


@pytest.mark.usefixtures("no_links")
def test_a_copy_goes_with_the_blob_that_it_was_made_of(
    hub: Hub, client: Client, cache: Path
) -> None:
    """Where links were possible when the file came, or an earlier version fetched it."""
    listing = client.list()
    one = client.hub.found(listing)
    served = hub.repos[REPO].folder
    for file in listing.files:
        client.hub.blob(listing, file).parent.mkdir(parents=True, exist_ok=True)
        client.hub.blob(listing, file).write_bytes((served / file.name).read_bytes())
    assert same(client.get(), hub)
    forget([one])
    assert stored(cache) < 1000


@pytest.mark.parametrize(
    ("there", "weights"),
    [
        (["model", "mtp"], ["model"]),  # no index names the other one
        (["index", "model-1", "mtp"], ["model-1", "mtp"]),
        (["index", "pytorch_model-1"], ["pytorch_model-1"]),
        (["index", "model-1", "consolidated", "adapter_model"], ["model-1"]),
        (["index", "model-1", "model"], ["model-1", "model"]),
    ],
)
def test_which_files_are_weights(there: list[str], weights: list[str]) -> None:
    names = [f"{name}.safetensors" for name in there if name != "index"]
    names += ["model.safetensors.index.json"] * ("index" in there)
    chosen = needed(REPO, [RemoteFile(name, 1, "ab") for name in names])
    assert [file.name for file in chosen if file.name.endswith("s")] == [
        f"{name}.safetensors" for name in weights
    ]


@pytest.mark.parametrize(
    "there",
    [[], ["mtp.safetensors"], ["adapter_model.safetensors", "model.safetensors.index.json"]],
)
def test_what_are_no_weights(there: list[str]) -> None:
    with pytest.raises(UnsupportedModelError, match="model"):
        needed(REPO, [RemoteFile(name, 1, "ab") for name in there])


@pytest.mark.parametrize("etag", ["../../x", ""])
def test_a_file_whose_contents_would_lead_elsewhere_is_none(etag: str) -> None:
    with pytest.raises(ValueError, match="no file"):
        RemoteFile("config.json", 7, etag)
    with pytest.raises(ValueError, match="no file"):
        RemoteFile("../config.json", 7, "ab")
