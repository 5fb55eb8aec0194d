"""Only the pinned archive is used, whatever the network or the cache holds."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from slipstream_build import upstream
from slipstream_build.errors import BuildError


def archive(*names: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(f"llama_cpp_python-0.3.36/{name}")
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    return made.getvalue()


CONTENT = archive("CMakeLists.txt", ".git/HEAD", "vendor/llama.cpp/docs/a.md", "vendor/x.cpp")
PIN = replace(upstream.load(), sha256=hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return tmp_path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path]]:
    """`served(a, b)`: the first download gives a, the second b; None fails."""

    def serve(*contents: bytes | None) -> list[Path]:
        asked: list[Path] = []

        def download(pin: upstream.Upstream, folder: Path) -> subprocess.CompletedProcess[str]:
            content = contents[min(len(asked), len(contents) - 1)]
            asked.append(folder)
            if content is not None:
                (folder / pin.sdist).write_bytes(content)
            return subprocess.CompletedProcess([], 0 if content else 1, "", "no route to host")

        monkeypatch.setattr(upstream, "_pip_download", download)
        return asked

    return serve


def test_it_tries_again(cache: Path, served: Callable[..., list[Path]]) -> None:
    asked = served(None, None, CONTENT)
    assert upstream.fetch(PIN).read_bytes() == CONTENT
    assert len(asked) == 3
    assert upstream.fetch(PIN).is_file()
    assert len(asked) == 3
    assert not list(cache.rglob("*.part"))


def test_no_network_is_said(cache: Path, served: Callable[..., list[Path]]) -> None:
    served(None)
    with pytest.raises(BuildError, match="no route to host"):
        upstream.fetch(PIN)
    assert not list(cache.rglob("*llama*"))


def test_another_archive_never_gets_the_name(
    cache: Path, served: Callable[..., list[Path]]
) -> None:
    served(b"something else")
    with pytest.raises(BuildError, match="sha256"):
        upstream.fetch(PIN)
    assert not (cache / "downloads" / PIN.sdist).exists()


def test_a_damaged_cache_heals(cache: Path, served: Callable[..., list[Path]]) -> None:
    served(CONTENT)
    upstream.fetch(PIN).write_bytes(CONTENT[:50])
    assert upstream.fetch(PIN).read_bytes() == CONTENT


def test_unpacking_leaves_out_what_is_never_built(served: Callable[..., list[Path]]) -> None:
    served(CONTENT)
    folder = upstream.unpack(PIN)
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert files == {"CMakeLists.txt", "vendor/x.cpp"}
