"""Headers for the Vulkan backend: the pinned package and nothing else, read without dpkg."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from slipstream_build import vulkan
from slipstream_build.errors import BuildError, UnavailableError


def debian_package(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": made.getvalue()}
    package = b"!<arch>\n"
    for name, content in members.items():
        package += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        package += content + b"\n" * (len(content) % 2)
    return package


def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reply: bytes | OSError) -> None:
    def urlopen(url: str, timeout: float) -> io.BytesIO:
        if isinstance(reply, OSError):
            raise reply
        return io.BytesIO(reply)

    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(vulkan.urllib.request, "urlopen", urlopen)


def test_the_headers_of_a_package() -> None:
    package = debian_package(
        {
            "./usr/include/vulkan/vulkan.hpp": b"new",
            "./usr/share/doc/libvulkan-dev/changelog": b"old",
        }
    )
    assert list(vulkan._headers_of(package)) == [(PurePosixPath("vulkan/vulkan.hpp"), b"new")]


def test_another_package_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve(monkeypatch, tmp_path, debian_package({"./usr/include/vulkan/vulkan.hpp": b"evil"}))
    with pytest.raises(BuildError, match="sha256"):
        vulkan._headers()
    assert not list(tmp_path.rglob("*.hpp"))


def test_without_network_it_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve(monkeypatch, tmp_path, OSError("no route to host"))
    with pytest.raises(UnavailableError, match="no route to host"):
        vulkan._headers()


def test_the_key_follows_our_shaders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan.toolchain, "describe", lambda: "chain")
    monkeypatch.setattr(vulkan.toolchain, "output", lambda *command: "glslc")
    plain = vulkan._key()
    assert vulkan._key() == plain
    sources = [pair for pair in vulkan.tree.engine_sources() if pair[1].suffix != ".comp"]
    monkeypatch.setattr(vulkan.tree, "engine_sources", lambda: sources)
    assert vulkan._key() != plain


def test_a_build_folder_serves_every_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CMake refuses a build folder whose sources have moved: none of them lies in the clone."""
    seen: list[str] = []

    def cmake(*args: object) -> None:
        seen.extend(map(str, args))
        if "--build" in args:
            library = Path(str(args[1])) / "bin" / vulkan.LIBRARY
            library.parent.mkdir(parents=True)
            library.write_bytes(b"")

    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path))
    monkeypatch.setattr(vulkan.toolchain, "cmake", cmake)
    monkeypatch.setattr(vulkan.toolchain, "describe", lambda: "chain")
    monkeypatch.setattr(vulkan.tree, "prepare", lambda upstream: upstream.home / "source")
    monkeypatch.setattr(vulkan, "_headers", lambda: tmp_path / "headers")
    monkeypatch.setattr(vulkan, "_key", lambda: "key")
    assert vulkan.build().is_file()
    assert "-S" in seen
    assert not any(str(vulkan.NATIVE) in arg for arg in seen)
