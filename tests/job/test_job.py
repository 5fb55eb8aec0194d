"""From a name to a pair, and nothing in between that could be taken for one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import catalog, download
from app.bundled import Bundled
from app.catalog import HubSource
from app.download import MARGIN, Access
from app.errors import (
    AccessError,
    CheckpointError,
    DownloadError,
    ModelFileError,
    NoSpaceError,
    OptionError,
    OutputError,
)
from app.files import check_writable
from app.job import Job, Jobs, Repair, State, Step, Tools
from app.job.journal import FOLDER, Journal
from app.jobs import CancelToken, JobCancelled
from app.library import Library, ModelState
from app.passport import Check, Made, Passport
from tests import hub as faults
from tests.convert import tiny
from tests.hub import Hub, wait_until
from tests.job import killed
from tests.job.conftest import DEMO, MODEL, long_folder, quickly

BIG = "model.safetensors"


class Checks:
    """Stands in for the engine."""

    def __init__(self, ok: bool = True) -> None:
        self.ok = ok
        self.folders: list[Path] = []

    def __call__(
        self, folder: Path, progress: Callable[[float, str], None], cancel: CancelToken
    ) -> Sequence[Check]:
        progress(0.5, "answering")
        self.folders.append(folder)
        return [Check("answers", self.ok, "two answers")]


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def tools(checks: Checks) -> Tools:
    return Tools(check=checks, convert=quickly, margin=0)


@pytest.fixture
def converter(checks: Checks) -> Tools:
    """With the real one."""
    return Tools(check=checks, margin=0)


def start(root: Path, tools: Tools, **options: Any) -> Job:
    return Job.start(root, MODEL, tools, **options)


def row(root: Path, tmp_path: Path) -> Any:
    library = Library(root, Bundled(tmp_path / "assets", tmp_path / "cache"))
    return next(row for row in library.models() if row.id == MODEL.id)


def test_from_a_name_to_a_pair(
    hub: Hub, cache: Path, root: Path, converter: Tools, checks: Checks, tmp_path: Path
) -> None:
    assert row(root, tmp_path).state is ModelState.AVAILABLE
    states: list[State] = []
    place = start(root, converter).run(states.append)
    assert place == root / MODEL.id
    assert checks.folders == [place]
    fractions = [state.fraction for state in states]
    assert fractions == sorted(fractions)
    assert {state.step for state in states} == set(Step)
    assert any(state.words.startswith("Downloading · ") for state in states)
    passport = Passport.read(place)
    assert passport is not None
    target = passport.sources["target"]
    assert (target.repo, target.licence) == ("Qwen/Qwen3.5-4B", "apache-2.0")
    assert target.commit == hub.repos[target.repo].commit
    assert passport.sources["draft"].licence is None
    assert passport.checks[0].ok
    passport.verify(place)
    assert row(root, tmp_path).state is ModelState.READY
    assert not (root / FOLDER / MODEL.id).exists()
    assert not [f for f in cache.rglob("*") if f.is_file() and f.stat().st_size > 1_000_000]


@pytest.mark.parametrize(("chosen", "used"), [("", "slipstream"), ("llama", "llama")])
def test_a_quantised_pair(root: Path, converter: Tools, chosen: str, used: str) -> None:
    model = catalog.own(*(catalog.HubSource(str(DEMO / part)) for part in ("target", "draft")))
    place = Job.start(root, model, converter, weight_type="q4_k_m", recipe=chosen).run()
    passport = Passport.read(place)
    assert passport is not None
    target = passport.files["target"]
    assert (passport.type, target.name) == ("q4_k_m", "target-q4_k_m.gguf")
    assert target.about["errors"]
    assert target.about["recipe"] == used


def test_the_originals_can_be_kept(hub: Hub, cache: Path, root: Path, tools: Tools) -> None:
    start(root, tools, keep_source=True).run()
    assert next(cache.rglob(f"snapshots/*/{BIG}")).is_file()


def test_a_model_that_is_here_is_not_written_over(root: Path, tools: Tools) -> None:
    (root / MODEL.id).mkdir(parents=True)
    with pytest.raises(OptionError, match="already"):
        start(root, tools)


def test_unfinished_until_it_has_been_tried(
    hub: Hub, cache: Path, root: Path, tmp_path: Path
) -> None:
    bad = Tools(check=Checks(ok=False), convert=quickly, margin=0)
    with pytest.raises(ModelFileError, match="answers"):
        start(root, bad).run()
    unfinished = row(root, tmp_path)
    assert unfinished.state is ModelState.UNFINISHED
    assert "answers" in unfinished.reason
    assert (unfinished.failure.repair, unfinished.failure.step) == (Repair.CONVERT, Step.CHECK)
    library = Library(root, Bundled(tmp_path / "assets", tmp_path / "cache"))
    with pytest.raises(OptionError, match="not finished"):
        library.open(MODEL.id)
    hub.seen.clear()
    job = Job.going(root, MODEL.id, Tools(check=Checks(), convert=quickly, margin=0))
    assert job is not None
    job.repair(Repair.CONVERT)
    job.run()
    assert row(root, tmp_path).state is ModelState.READY
    assert not hub.gets(BIG)  # the originals were here


def test_stopped_in_the_middle_and_continued(
    hub: Hub, cache: Path, root: Path, tools: Tools, tmp_path: Path
) -> None:
    hub.faults[BIG] = [faults.slowly(2_000_000)]
    cancel = CancelToken()

    def on_state(state: State) -> None:
        growing = any(size > 3_000_000 for size in faults.parts(cache))
        if state.step is Step.DOWNLOAD and growing:
            cancel.cancel()

    with pytest.raises(JobCancelled):
        start(root, tools).run(on_state, cancel)
    assert row(root, tmp_path).state is ModelState.UNFINISHED
    again = start(root, tools)
    assert again.journal.step is Step.DOWNLOAD
    again.run()
    assert any(r.headers.get("Range") for r in hub.gets(BIG))


def test_half_a_snapshot_is_not_converted(hub: Hub, cache: Path, root: Path, tools: Tools) -> None:
    """Someone clears a file of the hub's cache between download and conversion."""
    job = start(root, tools)
    job._list(lambda _: None, CancelToken())
    job._download(lambda _: None, CancelToken())
    next(cache.rglob("snapshots/*/tokenizer.json")).unlink()
    job._convert(lambda _: None, CancelToken())
    assert job.journal.step is Step.DOWNLOAD
    hub.seen.clear()
    job.run()
    assert not hub.gets(BIG)


def test_offline_it_goes_on_where_all_is_here_and_else_names_what_is_not(
    hub: Hub, cache: Path, root: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(root, tools)
    job._list(lambda _: None, CancelToken())
    job._download(lambda _: None, CancelToken())
    lost = next(cache.rglob("snapshots/*/tokenizer.json"))
    kept = lost.read_bytes()
    lost.resolve().unlink()
    lost.unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match=r"`tokenizer\.json`.*not here"):
        start(root, tools).run()
    assert not list(root.rglob("*.gguf"))
    lost.write_bytes(kept)
    hub.seen.clear()
    place = start(root, tools).run()
    assert Passport.read(place) is not None
    assert not hub.seen


def test_a_checkpoint_that_cannot_be_converted(
    hub: Hub, cache: Path, root: Path, converter: Tools, tmp_path: Path
) -> None:
    broken = shutil.copytree(hub.repos["Qwen/Qwen3.5-4B"].folder, tmp_path / "broken")
    data = (broken / BIG).read_bytes()
    (broken / BIG).write_bytes(data[:-1])
    hub.add("Qwen/Qwen3.5-4B", broken)
    with pytest.raises(CheckpointError):
        start(root, converter).run()
    failed = row(root, tmp_path)
    assert (failed.state, failed.failure.repair) == (ModelState.UNFINISHED, Repair.FETCH)
    assert not (root / MODEL.id).exists()


def test_too_little_room_is_said_before_the_first_byte(
    hub: Hub, cache: Path, root: Path, checks: Checks
) -> None:
    with pytest.raises(NoSpaceError, match=r"to download and .* to convert"):
        start(root, Tools(check=checks, margin=1 << 60)).run()
    assert not hub.gets(BIG)


def test_a_gated_model_asks_for_a_token(hub: Hub, root: Path, tools: Tools) -> None:
    hub.repos["z-lab/Qwen3.5-4B-DFlash"].gated, hub.token = True, "hf_x"
    job = start(root, tools)
    with pytest.raises(AccessError):
        job.run()
    assert job.journal.failure.repair == Repair.TOKEN
    token = replace(tools, access=Access("hf_x"))
    start(root, token).run()


def test_two_at_a_time(hub: Hub, root: Path, tools: Tools) -> None:
    hub.faults[BIG] = [faults.trickle()]
    cancel = CancelToken()
    first = start(root, tools)

    def work() -> None:
        with pytest.raises(JobCancelled):
            first.run(cancel=cancel)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: (root / FOLDER / MODEL.id / "journal.json").exists())
    with pytest.raises(OutputError, match="another"):
        start(root, tools).run()
    cancel.cancel()
    thread.join()


@pytest.mark.parametrize(
    "options", [{"weight_type": "q4_k_m"}, {"recipe": "slipstream"}, {"keep_source": True}]
)
def test_what_is_under_way_is_not_another_job(
    hub: Hub, root: Path, tools: Tools, options: dict[str, Any]
) -> None:
    begun = start(root, tools, weight_type="q8_0")
    begun._note(begun.journal)
    with pytest.raises(OptionError, match="is under way as q8_0") as refused:
        start(root, tools, **options)
    assert "--discard" in refused.value.remedy
    start(root, tools, weight_type="q8_0").run()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"target": HubSource("Other/Qwen3.5-4B")}, "is under way from Qwen/Qwen3.5-4B, not Other"),
        ({"target": HubSource("Qwen/Qwen3.5-4B", "v2")}, "not Qwen/Qwen3.5-4B@v2"),
        (
            {"draft": HubSource("other/draft")},
            "with the drafter z-lab/.*, not other",
        ),
    ],
)
def test_what_is_under_way_from_elsewhere_is_another_job(
    root: Path, tools: Tools, named: dict[str, HubSource], told: str
) -> None:
    begun = start(root, tools)
    begun._note(begun.journal)
    with pytest.raises(OptionError, match=told) as refused:
        start(root, tools, named=named)
    assert "--discard" in refused.value.remedy
    same = {"target": HubSource("Qwen/Qwen3.5-4B"), "draft": begun.journal.draft}
    assert start(root, tools, named=same).journal == begun.journal


def test_what_is_under_way_is_given_up_and_not_removed(
    root: Path, tools: Tools, tmp_path: Path
) -> None:
    begun = start(root, tools)
    begun._note(begun.journal)
    with pytest.raises(OptionError) as kept:
        Library(root, Bundled(tmp_path / "assets", tmp_path / "cache")).remove(MODEL.id)
    assert f"pull {MODEL.id} --discard" in kept.value.remedy


def test_what_is_under_way_without_a_drafter_gets_none(root: Path, tools: Tools) -> None:
    begun = Job.start(root, replace(MODEL, draft=None), tools)
    begun._note(begun.journal)
    with pytest.raises(OptionError, match="under way without a drafter, not a/b"):
        start(root, tools, named={"draft": HubSource("a/b")})


def test_it_goes_on_in_another_folder(
    hub: Hub, cache: Path, root: Path, tmp_path: Path, tools: Tools
) -> None:
    def full(target: Path, draft: Path | None, out: Path, *_: object) -> dict[str, Made]:
        (out / "target.gguf.part").write_bytes(b"half")
        raise NoSpaceError("The disk is full.", remedy="Free some.")

    with pytest.raises(NoSpaceError):
        start(root, replace(tools, convert=full), weight_type="q4_k_m").run()
    hub.seen.clear()
    other = tmp_path / "other"
    jobs = Jobs(lambda: root, lambda: tools)
    jobs.move(other, but=MODEL.id)
    assert jobs.going(MODEL.id)
    jobs.move(other)
    assert not list((root / FOLDER).iterdir())
    job = Job.going(other, MODEL.id, tools)
    assert job is not None
    assert (job.journal.type, job.journal.failure.message) == ("q4_k_m", "")
    assert job.run() == other / MODEL.id
    assert not hub.gets(BIG)
    assert row(other, tmp_path).state is ModelState.READY
    assert not list(cache.rglob(BIG))  # what it fetched before it moved is its own to remove


def test_nothing_begins_or_moves_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    def gone() -> Path:
        raise OutputError("The folder for models is not there.", remedy="Connect its drive.")

    jobs = Jobs(gone, Tools)
    with pytest.raises(OutputError, match="Connect its drive"):
        jobs.start(MODEL)
    jobs.move(tmp_path)  # so that another one can be chosen
    assert not list(tmp_path.iterdir())


def test_the_originals_go_from_every_cache_that_they_came_to(
    hub: Hub, cache: Path, root: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a full disk advises: `HF_HOME` elsewhere, where a tool of the hub's has been already."""
    assert MODEL.target

    def use(name: str) -> Path:
        monkeypatch.setenv("HF_HOME", str(cache.parent / name))
        return cache.parent / name

    def stored(folder: Path) -> set[Path]:
        return {f for f in folder.rglob("*") if f.is_file() and f.stat().st_size > 1000}

    second = use("second")
    found = download.look([MODEL.target], tools.access)
    small = replace(found[0].listing, files=found[0].listing.files[:-1])
    download.fetch([small], tools.access, margin=0)
    kept = stored(second)
    assert kept
    first = use("first")
    hub.always[BIG] = faults.status(404)
    for name in ("first", "second", "first"):
        use(name)
        with pytest.raises(DownloadError, match="not on"):
            start(root, tools).run()
    assert stored(first)
    hub.always.clear()
    use("second")
    start(root, tools).run()
    assert (stored(first), stored(second)) == (set(), kept)


def test_what_is_made_already_stays_where_it_is(hub: Hub, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        start(root, Tools(check=Checks(ok=False), convert=quickly, margin=0)).run()
    Jobs(lambda: root, Tools).move(tmp_path / "other")
    assert Job.going(root, MODEL.id, Tools()) is not None
    assert not (tmp_path / "other").exists()


def test_given_up(hub: Hub, cache: Path, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        start(root, Tools(check=Checks(ok=False), convert=quickly, margin=0)).run()
    job = Job.going(root, MODEL.id, Tools())
    assert job is not None
    job.discard()
    assert not (root / MODEL.id).exists()
    assert row(root, tmp_path).state is ModelState.AVAILABLE
    assert not list(cache.rglob(BIG))


def test_a_folder_that_came_into_its_place_meanwhile_stays(
    hub: Hub, cache: Path, root: Path, tools: Tools
) -> None:
    other = root / MODEL.id / "target.gguf"

    def meanwhile(state: State) -> None:
        if state.step is Step.VERIFY and not other.exists():
            other.parent.mkdir()
            other.write_text("somebody's own")

    job = start(root, tools)
    with pytest.raises(OptionError, match="there already"):
        job.run(meanwhile)
    job.repair(Repair.CONVERT)
    assert other.exists()
    with pytest.raises(OptionError, match="there already"):
        job.run()
    job.discard()
    assert other.read_text() == "somebody's own"
    assert not list(cache.rglob(BIG))


def test_a_journal_that_cannot_be_read_costs_no_list(root: Path, tmp_path: Path) -> None:
    folder = root / FOLDER / MODEL.id
    folder.mkdir(parents=True)
    (folder / "journal.json").write_text(json.dumps({"id": 5}))
    assert row(root, tmp_path).state is ModelState.AVAILABLE


def test_a_journal_leads_nowhere_else(root: Path, tools: Tools, tmp_path: Path) -> None:
    journal = start(root, tools).journal
    folder = root / FOLDER / MODEL.id
    folder.mkdir(parents=True, exist_ok=True)
    journal.write(folder)
    assert Journal.read(folder) == journal
    replace(journal, id="../..").write(folder)
    with pytest.raises(OptionError, match="cannot be read"):
        Journal.read(folder)
    assert row(root, tmp_path).state is ModelState.AVAILABLE


def test_a_journal_that_cannot_be_read_is_begun_anew(
    hub: Hub, root: Path, tools: Tools, tmp_path: Path
) -> None:
    folder = root / FOLDER / MODEL.id
    folder.mkdir(parents=True)
    (folder / "journal.json").write_text("{")
    assert Job.going(root, MODEL.id, tools) is None
    start(root, tools).run()
    assert row(root, tmp_path).state is ModelState.READY


def test_from_folders_on_this_machine(root: Path, converter: Tools) -> None:
    target, draft = (catalog.HubSource.parse(str(DEMO / part)) for part in ("target", "draft"))
    model = catalog.own(target, draft)
    assert model.id == "target"
    place = Job.start(root, model, converter).run()
    passport = Passport.read(place)
    assert passport is not None
    assert passport.sources["target"].repo == str(DEMO / "target")
    assert set(passport.files) == {"target", "draft"}
    assert (DEMO / "target" / BIG).exists()


def test_a_target_alone(hub: Hub, cache: Path, root: Path, tools: Tools) -> None:
    model = catalog.own(catalog.HubSource("Qwen/Qwen3.5-4B"), None)
    place = Job.start(root, model, tools).run()
    assert sorted(f.name for f in place.iterdir()) == ["passport.json", "target-q4_k_m.gguf"]


def test_a_model_that_is_not_there(root: Path, hub: Hub, tools: Tools) -> None:
    model = catalog.own(catalog.HubSource("nobody/nothing"), None)
    with pytest.raises(DownloadError, match="nobody/nothing"):
        Job.start(root, model, tools).run()


def test_the_margin_is_kept_by_default() -> None:
    assert Tools().margin == MARGIN > 0


@pytest.fixture
def sharded(hub: Hub, tmp_path: Path) -> Path:
    """As the real one is laid out: several shards, a vision tower, a head for MTP."""
    shape = tiny.Target(layers=4, shards=3, vision=True, mtp=True)
    folder = tiny.write_target(tmp_path / "sharded", shape)
    hub.add("Qwen/Qwen3.5-4B", folder)
    hub.add("z-lab/Qwen3.5-4B-DFlash", tiny.write_draft(tmp_path / "draft"))
    return folder


def test_shards_vision_and_mtp(
    hub: Hub, sharded: Path, cache: Path, root: Path, converter: Tools
) -> None:
    (sharded / "README.md").write_text("for people")
    (sharded / "consolidated.bin").write_bytes(b"not needed")
    start(root, converter).run()
    fetched = {Path(r.path.split("?")[0]).name for r in hub.seen if r.method == "GET"}
    shards = {file.name for file in sharded.glob("model-*.safetensors")}
    assert len(shards) == 3
    assert shards | {"model.safetensors.index.json", "tokenizer.json"} <= fetched
    assert not fetched & {"README.md", "consolidated.bin"}


def test_a_shard_by_another_name(
    hub: Hub, sharded: Path, cache: Path, root: Path, converter: Tools
) -> None:
    """As `mtp.safetensors`, which some save beside the weights; the index knows."""
    last = next(sharded.glob("model-00003*"))
    index = sharded / "model.safetensors.index.json"
    index.write_text(index.read_text().replace(last.name, "mtp.safetensors"))
    last.rename(sharded / "mtp.safetensors")
    for name in ("consolidated.safetensors", "adapter_model.safetensors"):
        (sharded / name).write_bytes(b"not needed")
    start(root, converter).run()
    assert not hub.gets("consolidated.safetensors") + hub.gets("adapter_model.safetensors")


def test_a_shard_that_the_repository_lacks(
    hub: Hub, sharded: Path, cache: Path, root: Path, converter: Tools
) -> None:
    next(sharded.glob("model-00002*")).unlink()
    with pytest.raises(CheckpointError, match="model-00002"):
        start(root, converter).run()
    assert not list(root.rglob("*.gguf"))


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on(tmp_path: Path) -> None:
    """Three of what `python -m tests.job.killed` does twenty times."""
    assert len(killed.torture(tmp_path, times=3, seed=7)) == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of so many bytes."""
    places: list[Path] = []

    def mount(size: int) -> Path:
        place = tmp_path / f"disk{len(places)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            pytest.skip("mounting needs more rights")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a disk")
class TestSmallDisks:
    def test_a_disk_that_is_read_only(
        self, hub: Hub, small_disk: Callable[[int], Path], tools: Tools
    ) -> None:
        disk = small_disk(30_000_000)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(OutputError, match="Read-only"):
            start(disk / "models", tools).run()
        with pytest.raises(OutputError, match="Read-only"):
            check_writable(disk)

    def test_said_before_the_first_byte(
        self, hub: Hub, small_disk: Callable[[int], Path], tools: Tools
    ) -> None:
        with pytest.raises(NoSpaceError, match="to convert"):
            start(small_disk(5_000_000), tools).run()
        assert not hub.gets(BIG)

    def test_it_fills_while_downloading(
        self,
        hub: Hub,
        root: Path,
        small_disk: Callable[[int], Path],
        tools: Tools,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Someone else takes the room that was there when it was counted."""
        disk = small_disk(30_000_000)
        monkeypatch.setenv("HF_HOME", str(disk / "hf"))

        def take(exchange: faults.Exchange) -> None:
            (disk / "other").write_bytes(bytes(12_000_000))
            exchange.serve()

        hub.faults[BIG] = [take]
        job = start(root, tools)
        with pytest.raises(NoSpaceError, match="full"):
            job.run()
        assert job.journal.failure.repair == Repair.ROOM
        (disk / "other").unlink()
        start(root, tools).run()

    def test_it_fills_while_converting(
        self, hub: Hub, small_disk: Callable[[int], Path], converter: Tools
    ) -> None:
        disk = small_disk(16_000_000)

        def convert(*args: Any) -> dict[str, Made]:
            (disk / "other").write_bytes(bytes(12_000_000))
            return converter.convert(*args)

        with pytest.raises(OutputError, match=r"full|free"):
            start(disk, replace(converter, convert=convert)).run()
        assert not list(disk.rglob("*.gguf"))
        (disk / "other").unlink()
        start(disk, converter).run()


def test_paths(hub: Hub, tmp_path: Path, converter: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    base = long_folder(tmp_path)
    assert len(str(base)) >= 249
    monkeypatch.setenv("HF_HOME", str(base / "hf"))
    place = start(base / "models", converter).run()
    passport = Passport.read(place)
    assert passport is not None
    passport.verify(place)
    assert passport.files["draft"].bytes > 100_000


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_folder_that_cannot_be_written(hub: Hub, tmp_path: Path, tools: Tools) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputError, match="another folder"):
        start(tmp_path / "file" / "models", tools).run()
