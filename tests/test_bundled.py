"""A copy of the bundled pair is whole or it is not there, whatever happens while it is made."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import bundled, catalog, paths
from app.bundled import Bundled
from app.catalog import DEMO
from app.errors import CheckpointError, OutputError
from app.jobs import CancelToken, JobCancelled, Progress


class Converter:
    """In place of the real one: writes two small files, or what `fault` does."""

    def __init__(self) -> None:
        self.calls = 0
        self.fault: BaseException | None = None

    def __call__(
        self,
        target: Path,
        draft: Path,
        out: Path,
        progress: Progress | None,
        cancel: CancelToken | None,
    ) -> None:
        self.calls += 1
        (out / "target-F32.gguf").write_bytes((target / "config.json").read_bytes() * 3)
        if progress is not None:
            progress(0.5)
        if cancel is not None:
            cancel.check()
        if self.fault is not None:
            raise self.fault
        (out / "draft-F32.gguf").write_bytes((draft / "config.json").read_bytes() * 2)


@pytest.fixture
def convert() -> Converter:
    return Converter()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


@pytest.fixture
def former(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    for part in ("target", "draft"):
        checkpoint = tmp_path / "assets" / "demo" / part
        checkpoint.mkdir(parents=True)
        (checkpoint / "config.json").write_text("{}")
    return tmp_path / "assets"


@pytest.fixture
def pairs(folder: Path, assets: Path, former: Path, convert: Converter) -> Bundled:
    return Bundled(assets, folder, former=former, convert=convert)


def files(copy: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in copy.iterdir() if f.name != "pair.json"}


def found_in(folder: Path) -> list[Path]:
    """But for the lock, which stays: who waits for it has it open."""
    return sorted(found for found in folder.iterdir() if found.name != bundled._LOCK)


WHOLE = {"target-F32.gguf": b"{}" * 3, "draft-F32.gguf": b"{}" * 2}


def test_it_is_converted_once(pairs: Bundled, convert: Converter, folder: Path) -> None:
    assert pairs.made(DEMO) is None
    fractions: list[float] = []
    copy = pairs.open(DEMO, fractions.append)
    assert pairs.open(DEMO) == copy == pairs.made(DEMO)
    assert (convert.calls, fractions) == (1, [0.5])
    assert files(copy) == WHOLE
    assert found_in(folder) == [copy]


def test_looking_for_a_copy_reads_no_weights(
    pairs: Bundled, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = pairs.open(DEMO)

    def refuse(*_: object) -> str:
        raise AssertionError("a file was read")

    monkeypatch.setattr(bundled, "_sha256", refuse)
    monkeypatch.setattr(bundled, "_crc32", refuse)
    assert pairs.made(DEMO) == copy


def test_what_nobody_has_written_since_is_not_read_again(
    pairs: Bundled, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = pairs.open(DEMO)
    read: list[Path] = []
    monkeypatch.setattr(bundled, "_sha256", read.append)
    monkeypatch.setattr(bundled, "_crc32", read.append)
    assert pairs.open(DEMO) == place
    assert not read


def test_another_way_to_convert_makes_it_anew(
    pairs: Bundled, convert: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pairs.open(DEMO)
    monkeypatch.setattr(bundled, "RECIPE", "2-f32")
    assert pairs.made(DEMO) is None
    assert pairs.open(DEMO) != before
    assert convert.calls == 2


def test_a_damage_that_keeps_size_and_time_is_seen(pairs: Bundled, convert: Converter) -> None:
    file = pairs.open(DEMO) / "target-F32.gguf"
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    pairs.open(DEMO)
    assert convert.calls == 2


def test_a_changed_source_is_converted_anew(pairs: Bundled, assets: Path, folder: Path) -> None:
    old = pairs.open(DEMO)
    (assets / "demo" / "draft" / "config.json").write_text('{"a": 1}')
    assert pairs.made(DEMO) is None
    new = pairs.open(DEMO)
    assert new != old
    assert found_in(folder) == [new]


def test_a_source_of_the_same_size_and_time_is_told_apart(pairs: Bundled, assets: Path) -> None:
    old = pairs.open(DEMO)
    config = assets / "demo" / "draft" / "config.json"
    before = config.stat()
    config.write_text("[]")
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))  # as some packages do
    assert pairs.open(DEMO) != old


def test_a_source_laid_anew_costs_no_conversion(
    pairs: Bundled, assets: Path, convert: Converter
) -> None:
    copy = pairs.open(DEMO)
    os.utime(assets / "demo" / "draft" / "config.json", (1, 1))
    assert pairs.open(DEMO) == copy == pairs.made(DEMO)
    assert convert.calls == 1


def test_a_copy_that_cannot_be_written_is_used(
    pairs: Bundled, assets: Path, convert: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    copy = pairs.open(DEMO)
    os.utime(assets / "demo" / "draft" / "config.json", (1, 1))
    monkeypatch.setattr(Path, "write_text", refuse)
    assert pairs.open(DEMO) == copy
    assert convert.calls == 1


@pytest.mark.parametrize("damage", ["cut", "removed", "other bytes", "no list", "list of lists"])
def test_a_damaged_copy_is_made_anew(pairs: Bundled, convert: Converter, damage: str) -> None:
    copy = pairs.open(DEMO)
    weights, manifest = copy / "draft-F32.gguf", copy / "pair.json"
    match damage:
        case "cut":
            weights.write_bytes(weights.read_bytes()[:-1])
        case "removed":
            weights.unlink()
        case "other bytes":
            weights.write_bytes(weights.read_bytes()[::-1])
        case "no list":
            manifest.unlink()
        case _:
            manifest.write_text("[" * 10_000)
    assert files(pairs.open(DEMO)) == WHOLE
    assert convert.calls == 2
    pairs.open(DEMO)
    assert convert.calls == 2


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (CheckpointError("broken", remedy=""), CheckpointError),
        (OSError(errno.ENOSPC, "No space left on device"), OutputError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failed_conversion_leaves_nothing(
    pairs: Bundled,
    convert: Converter,
    folder: Path,
    fault: BaseException,
    expected: type[BaseException],
) -> None:
    convert.fault = fault
    with pytest.raises(expected):
        pairs.open(DEMO)
    assert found_in(folder) == []
    convert.fault = None
    assert files(pairs.open(DEMO)) == WHOLE


def test_a_cancelled_conversion_leaves_nothing(pairs: Bundled, folder: Path) -> None:
    cancel = CancelToken()
    with pytest.raises(JobCancelled):
        pairs.open(DEMO, progress=lambda _: cancel.cancel(), cancel=cancel)
    assert found_in(folder) == []


def test_a_killed_conversion_leaves_no_final_name(
    pairs: Bundled, folder: Path, assets: Path
) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from app.bundled import Bundled
        from app.catalog import DEMO

        def convert(target, draft, out, progress, cancel):
            (out / "target-F32.gguf").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)

        Bundled(Path(sys.argv[1]), Path(sys.argv[2]), convert=convert).open(DEMO)
        """
    )
    killed = subprocess.run([sys.executable, "-c", script, assets, folder], check=False)
    assert killed.returncode < 0
    (left,) = found_in(folder)
    assert left.name.startswith(".part-")
    assert pairs.made(DEMO) is None

    pairs.open(DEMO)
    assert left.exists()  # it could be another process at work
    hour_ago = time.time() - 3600
    for path in (*left.iterdir(), left):
        os.utime(path, (hour_ago, hour_ago))
    pairs.open(DEMO)
    assert not left.exists()


def test_two_that_begin_at_once_make_one(folder: Path, assets: Path, convert: Converter) -> None:
    """The second finds what the first made, and removes nothing of it."""
    begun = threading.Barrier(2)

    def open_one(_: int) -> Path:
        pairs = Bundled(assets, folder, convert=convert)
        assert pairs.made(DEMO) is None
        begun.wait(60)
        return pairs.open(DEMO)

    with ThreadPoolExecutor(2) as pool:
        copies = set(pool.map(open_one, range(2)))
    assert convert.calls == 1
    assert [files(copy) for copy in copies] == [WHOLE]


def test_another_that_hangs_is_not_waited_for_for_ever(
    folder: Path, assets: Path, convert: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundled, "_LOCK_WAIT", 0.1)

    def while_another_finishes(
        target: Path,
        draft: Path,
        out: Path,
        progress: Progress | None,
        cancel: CancelToken | None,
    ) -> None:
        convert(target, draft, out, progress, cancel)
        Bundled(assets, folder, convert=convert).open(DEMO)

    copy = Bundled(assets, folder, convert=while_another_finishes).open(DEMO)
    assert files(copy) == WHOLE
    assert found_in(folder) == [copy]


def test_a_folder_that_cannot_be_written(folder: Path, pairs: Bundled) -> None:
    folder.parent.write_text("a file")
    with pytest.raises(OutputError, match="models"):
        pairs.open(DEMO)


def test_missing_assets(folder: Path, tmp_path: Path, convert: Converter) -> None:
    pairs = Bundled(tmp_path / "nowhere", folder, convert=convert)
    for look in (pairs.made, pairs.open):
        with pytest.raises(CheckpointError, match="nowhere"):
            look(DEMO)


def test_other_folders_in_the_cache_stay(pairs: Bundled, folder: Path) -> None:
    for name in ("demo-mine", "demo-0123456789abcdef0", "other"):
        (folder / name).mkdir(parents=True)
    (folder / "demo-0123456789abcdef").mkdir()  # as a copy of other weights is called
    copy = pairs.open(DEMO)
    left = {"demo-mine", "demo-0123456789abcdef0", "other", copy.name}
    assert {f.name for f in found_in(folder)} == left


class TestFormer:
    """Copies that an earlier version made among the user's models."""

    @pytest.fixture
    def old(self, former: Path, pairs: Bundled) -> Path:
        old = former / pairs.open(DEMO).name
        old.mkdir(parents=True)
        for name, content in WHOLE.items():
            (old / name).write_bytes(content)
        sizes = {name: len(content) for name, content in WHOLE.items()}
        (old / "pair.json").write_text(json.dumps(sizes))
        return old

    def test_it_goes(self, pairs: Bundled, old: Path) -> None:
        pairs.open(DEMO)
        assert not old.exists()
        assert old.parent.is_dir()

    @pytest.mark.parametrize("change", ["a file more", "another size", "another name", "a link"])
    def test_what_may_be_the_users_stays(self, pairs: Bundled, old: Path, change: str) -> None:
        match change:
            case "a file more":
                (old / "notes.txt").touch()
            case "another size":
                (old / "draft-F32.gguf").write_bytes(b"mine!")
            case "another name":
                old = old.rename(old.with_name("demo-mine"))
            case _:
                elsewhere = old.rename(old.parent.parent / "elsewhere")
                old.symlink_to(elsewhere)
        before = sorted(old.iterdir())
        pairs.open(DEMO)
        assert sorted(old.iterdir()) == before


def test_every_bundled_model_has_its_checkpoints() -> None:
    pairs = Bundled(paths.assets(), Path("nowhere"))
    for model in catalog.MODELS:
        if model.bundled:
            assert pairs.made(model) is None  # and no CheckpointError
