"""A model's folder is whole or it is not there, whatever happens while it is made."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from app.errors import CheckpointError, ModelFileError, OptionError, OutputError
from app.jobs import CancelToken, JobCancelled
from app.library import Library, ModelState, Progress


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
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    for part in ("target", "draft"):
        folder = tmp_path / "assets" / "demo" / part
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    return tmp_path / "assets"


@pytest.fixture
def library(root: Path, assets: Path, convert: Converter) -> Library:
    return Library(root, assets, convert)


def state_of(library: Library, model: str) -> ModelState:
    return next(status.state for status in library.models() if status.id == model)


def make_folder(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"GGUF")
    return folder


def test_the_demo_is_converted_once(library: Library, convert: Converter, root: Path) -> None:
    assert state_of(library, "demo") is ModelState.BUNDLED
    fractions: list[float] = []
    pair = library.open("demo", progress=fractions.append)
    assert pair == library.open("demo")
    assert (convert.calls, fractions) == (1, [0.5])
    assert (pair.id, pair.title, pair.bytes) == ("demo", "Built-in guide", 10)
    assert [f.name for f in root.iterdir()] == [pair.target.parent.name]
    status = library.models()[0]
    assert (status.state, status.path, status.bytes) == (ModelState.READY, pair.target.parent, 10)


def test_a_changed_source_is_converted_anew(library: Library, assets: Path, root: Path) -> None:
    old = library.open("demo").target.parent
    (assets / "demo" / "draft" / "config.json").write_text('{"a": 1}')
    assert state_of(library, "demo") is ModelState.BUNDLED
    new = library.open("demo").target.parent
    assert new != old
    assert list(root.iterdir()) == [new]


@pytest.mark.parametrize("damage", ["cut", "removed", "no list"])
def test_a_damaged_copy_is_made_anew(library: Library, damage: str) -> None:
    pair = library.open("demo")
    assert pair.draft is not None
    if damage == "cut":
        pair.draft.write_bytes(pair.draft.read_bytes()[:-1])
    else:
        (pair.draft if damage == "removed" else pair.draft.with_name("pair.json")).unlink()
    assert state_of(library, "demo") is ModelState.BUNDLED
    assert library.open("demo").bytes == 10


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (CheckpointError("broken", remedy=""), CheckpointError),
        (OSError(errno.ENOSPC, "No space left on device"), OutputError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failed_conversion_leaves_nothing(
    library: Library,
    convert: Converter,
    root: Path,
    fault: BaseException,
    expected: type[BaseException],
) -> None:
    convert.fault = fault
    with pytest.raises(expected):
        library.open("demo")
    assert list(root.iterdir()) == []
    convert.fault = None
    assert library.open("demo").draft is not None


def test_a_cancelled_conversion_leaves_nothing(library: Library, root: Path) -> None:
    cancel = CancelToken()
    with pytest.raises(JobCancelled):
        library.open("demo", progress=lambda _: cancel.cancel(), cancel=cancel)
    assert list(root.iterdir()) == []


def test_a_killed_conversion_leaves_no_final_name(
    library: Library, root: Path, assets: Path
) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from app.library import Library

        def convert(target, draft, out, progress, cancel):
            (out / "target-F32.gguf").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)

        Library(Path(sys.argv[1]), Path(sys.argv[2]), convert).open("demo")
        """
    )
    killed = subprocess.run([sys.executable, "-c", script, root, assets], check=False)
    assert killed.returncode < 0
    (left,) = root.iterdir()
    assert left.name.startswith(".part-")
    assert state_of(library, "demo") is ModelState.BUNDLED
    assert len(library.models()) == 2

    library.open("demo")
    assert left.exists()  # it could be another process at work
    hour_ago = time.time() - 3600
    for path in (*left.iterdir(), left):
        os.utime(path, (hour_ago, hour_ago))
    library.open("demo")
    assert not left.exists()


def test_two_processes_at_once(root: Path, assets: Path, convert: Converter) -> None:
    def while_another_finishes(
        target: Path,
        draft: Path,
        out: Path,
        progress: Progress | None,
        cancel: CancelToken | None,
    ) -> None:
        convert(target, draft, out, progress, cancel)
        Library(root, assets, convert).open("demo")

    pair = Library(root, assets, while_another_finishes).open("demo")
    assert pair.bytes == 10
    assert list(root.iterdir()) == [pair.target.parent]


def test_a_root_that_cannot_be_written(root: Path, assets: Path, convert: Converter) -> None:
    root.parent.parent.mkdir(exist_ok=True)
    root.parent.write_text("a file")
    with pytest.raises(OutputError, match="models"):
        Library(root, assets, convert).open("demo")


def test_missing_assets(root: Path, tmp_path: Path, convert: Converter) -> None:
    library = Library(root, tmp_path / "nowhere", convert)
    assert state_of(library, "demo") is ModelState.BROKEN
    with pytest.raises(CheckpointError, match="nowhere"):
        library.open("demo")


def test_a_model_that_is_coming(library: Library, root: Path) -> None:
    assert state_of(library, "qwen3.5-4b") is ModelState.COMING
    with pytest.raises(OptionError, match=r"Qwen3\.5-4B"):
        library.open("qwen3.5-4b")
    make_folder(root / "qwen3.5-4b", "target-Q8_0.gguf", "draft-Q8_0.gguf")
    assert state_of(library, "qwen3.5-4b") is ModelState.READY
    assert library.open("qwen3.5-4b").draft is not None


def test_own_folders_are_listed_and_opened(library: Library, root: Path, tmp_path: Path) -> None:
    make_folder(root / "mine", "target.gguf")
    elsewhere = make_folder(tmp_path / "模型 😊", "target-BF16.gguf", "draft-BF16.gguf")
    assert state_of(library, "mine") is ModelState.READY
    assert library.open("mine").draft is None
    pair = library.open(str(elsewhere))
    assert (pair.title, pair.draft) == ("模型 😊", elsewhere / "draft-BF16.gguf")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), r"target\*\.gguf"),
        (("draft.gguf",), r"target\*\.gguf"),
        (("target-a.gguf", "target-b.gguf"), "target-a.*target-b"),
        (("target.gguf", "draft-a.gguf", "draft-b.gguf"), "draft-a.*draft-b"),
    ],
)
def test_folders_that_are_no_pair(
    library: Library, root: Path, names: tuple[str, ...], told: str
) -> None:
    make_folder(root / "odd", *names)
    assert state_of(library, "odd") is ModelState.BROKEN
    with pytest.raises(ModelFileError, match=told):
        library.open("odd")


@pytest.mark.parametrize("name", ["", ".", "nothing", "x" * 5000, "a\0b", "~nobody-here/x"])
def test_no_such_model(
    library: Library, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((OptionError, ModelFileError)):
        library.open(name)
