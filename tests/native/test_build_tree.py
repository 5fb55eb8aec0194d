"""The build tree follows its inputs by content and never loses somebody's edit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from slipstream_build import toolchain, tree
from slipstream_build.errors import BuildError


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        file = tmp_path / "pristine" / f"src/{name}.cpp"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        os.utime(file, (1_000_000, 1_000_000))
    return tmp_path / "pristine"


@pytest.fixture
def built(pristine: Path) -> Path:
    folder = pristine.with_name("source")
    tree._sync(pristine, {"src/a.cpp": b"patched", "slipstream/x.cpp": b"ours"}, folder)
    return folder


def age(folder: Path) -> None:
    """Make every file old, and the record agree, to see which ones are written again."""
    record = tree._load_record(folder.with_name("pristine"), folder)
    for name in record["files"]:
        os.utime(folder / name, (2_000_000, 2_000_000))
        record["files"][name] = tree._state(folder / name)
    tree._save_record(folder, record)


def rewritten(folder: Path) -> set[str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {f.relative_to(folder).as_posix() for f in files if f.stat().st_mtime != 2_000_000}


def test_only_what_changed_is_written(pristine: Path, built: Path) -> None:
    age(built)
    tree._sync(pristine, {"src/a.cpp": b"patched", "slipstream/x.cpp": b"changed"}, built)
    assert rewritten(built) == {"slipstream/x.cpp"}


def test_a_dropped_patch_gives_the_file_back(pristine: Path, built: Path) -> None:
    age(built)
    tree._sync(pristine, {"src/b.cpp": None}, built)
    assert (built / "src/a.cpp").read_text() == "a"
    assert not (built / "src/b.cpp").exists()
    assert not (built / "slipstream/x.cpp").exists()
    assert rewritten(built) == {"src/a.cpp"}
    tree._sync(pristine, {}, built)
    assert (built / "src/b.cpp").read_text() == "b"


@pytest.mark.parametrize("name", ["src/a.cpp", "src/c.cpp"])
def test_an_edit_in_place_is_neither_built_nor_lost(pristine: Path, built: Path, name: str) -> None:
    (built / name).write_text("edited")
    with pytest.raises(BuildError, match=name):
        tree._sync(pristine, {}, built)
    assert (built / name).read_text() == "edited"


def test_a_copied_cache_is_nobodys_edit(pristine: Path, built: Path) -> None:
    """Copied or restored, every file has a new time; what is written still follows content."""
    age(built)
    for file in built.rglob("*.cpp"):
        os.utime(file, (3_000_000, 3_000_000))
    tree._sync(pristine, {"src/a.cpp": b"patched", "slipstream/x.cpp": b"changed"}, built)
    kept = {file.name for file in built.rglob("*.cpp") if file.stat().st_mtime == 3_000_000}
    assert kept == {"a.cpp", "b.cpp", "c.cpp"}
    age(built)
    (built / "src/c.cpp").write_text("d")  # as long as before
    with pytest.raises(BuildError, match=r"src/c\.cpp"):
        tree._sync(pristine, {}, built)


def test_a_record_of_another_form_is_not_believed(pristine: Path, built: Path) -> None:
    record = tree._record_path(built)
    record.write_text('{"files": {"src/a.cpp": [1, 2]}, "overlay": [], "pending": []}')
    tree._sync(pristine, {"src/a.cpp": b"patched"}, built)
    assert (built / "src/a.cpp").read_text() == "patched"
    assert not (built / "slipstream/x.cpp").exists()


@pytest.mark.parametrize("gone", ["source", "tree.json"])
def test_a_tree_made_anew_is_newer_than_what_was_built_of_the_last(
    pristine: Path, built: Path, gone: str
) -> None:
    """Else Ninja would go on with the object of a file that was patched then, and is not now."""
    built_at = (built / "src/a.cpp").stat().st_mtime
    path = built.with_name(gone)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    tree._sync(pristine, {}, built)
    assert all(file.stat().st_mtime >= built_at for file in built.rglob("*.cpp"))


def test_a_tree_whose_making_was_interrupted_is_nobodys_edit(
    pristine: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def power_cut(path: Path) -> None:
        raise KeyboardInterrupt

    shutil.rmtree(built)
    with monkeypatch.context() as patch:
        patch.setattr(tree, "_state", power_cut)
        with pytest.raises(KeyboardInterrupt):
            tree._sync(pristine, {}, built)
    tree._sync(pristine, {}, built)
    assert (built / "src/a.cpp").read_text() == "a"


def test_an_interrupted_sync_is_finished_by_the_next(
    pristine: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def power_cut(path: Path, content: bytes) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", power_cut)
        with pytest.raises(KeyboardInterrupt):
            tree._sync(pristine, {"src/c.cpp": b"patched"}, built)
    (built / "src/c.cpp").write_text("half")
    tree._sync(pristine, {"src/c.cpp": b"patched"}, built)
    assert (built / "src/c.cpp").read_text() == "patched"
    assert (built / "src/a.cpp").read_text() == "a"


@pytest.fixture
def native(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "native/ggml/src").mkdir(parents=True)
    (tmp_path / "native/llama").mkdir()
    monkeypatch.setattr(tree, "NATIVE", tmp_path / "native")
    return tmp_path / "native"


def test_our_files_lie_among_those_of_upstream(pristine: Path, native: Path) -> None:
    (native / "ggml/src/kernel.cu").write_text("kernel")
    (native / "llama/graph.cpp").write_text("graph")
    assert tree._engine_files(pristine, {}) == {
        "vendor/llama.cpp/ggml/src/kernel.cu": b"kernel",
        "vendor/llama.cpp/graph.cpp": b"graph",
    }


def test_our_files_hide_none_of_upstream(pristine: Path, native: Path) -> None:
    file = pristine / "vendor/llama.cpp/ggml/src/kernel.cu"
    file.parent.mkdir(parents=True)
    file.write_text("upstream's, new in this version")
    (native / "ggml/src/kernel.cu").write_text("ours")
    with pytest.raises(BuildError, match=r"native/ggml/src/kernel\.cu"):
        tree._engine_files(pristine, {})


def test_a_patch_changes_none_of_our_files(pristine: Path, native: Path) -> None:
    (native / "ggml/src/kernel.cu").write_text("ours")
    with pytest.raises(BuildError, match=r"native/ggml/src/kernel\.cu"):
        tree._engine_files(pristine, {"vendor/llama.cpp/ggml/src/kernel.cu": b"patched"})


@pytest.mark.parametrize("of", ["a copy", "what was moved"])
def test_a_build_folder_serves_the_place_it_was_made_in(tmp_path: Path, of: str) -> None:
    """In another one CMake goes on building the sources of the first, and says it built."""
    built, other = tmp_path / "built", tmp_path / "other"
    toolchain.drop_copy(built)  # nothing there yet
    built.mkdir()
    toolchain.drop_copy(built)  # nothing configured yet
    (built / "CMakeCache.txt").write_text(f"# x\nCMAKE_CACHEFILE_DIR:INTERNAL={built}\nA:B=C\n")
    toolchain.drop_copy(built)
    assert built.is_dir()
    if of == "a copy":
        shutil.copytree(built, other)
    else:
        built.rename(other)
    toolchain.drop_copy(other)
    assert not other.exists()
    assert built.is_dir() == (of == "a copy")
