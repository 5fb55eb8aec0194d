"""What the Vulkan backend is built with: pinned packages and nothing else, read without dpkg; and
a compiler of shaders that knows what cards can do."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from slipstream_build import debian, shaders, vulkan
from slipstream_build.debian import Package
from slipstream_build.errors import BuildError, UnavailableError
from slipstream_build.upstream import NATIVE


def debian_package(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": made.getvalue()}
    package = b"!<arch>\n"
    for name, content in members.items():
        package += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        package += content + b"\n" * (len(content) % 2)
    return package


def serve(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, replies: dict[str, bytes | OSError]
) -> None:
    """What each place answers, by how its address begins."""

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        [reply] = [reply for place, reply in replies.items() if url.startswith(place)]
        if isinstance(reply, OSError):
            raise reply
        return io.BytesIO(reply)

    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(debian.urllib.request, "urlopen", urlopen)


HEADER = debian_package(
    {
        "./usr/include/vulkan/vulkan.hpp": b"new",
        "./usr/share/doc/libvulkan-dev/changelog": b"old",
    },
    links={"./usr/include/vulkan.hpp": "vulkan/vulkan.hpp", "./usr/include/gone": "../lib/gone"},
)


def test_the_files_of_a_package() -> None:
    assert dict(debian.files_of(HEADER, "usr/include")) == {
        PurePosixPath("vulkan/vulkan.hpp"): b"new",
        PurePosixPath("vulkan.hpp"): b"new",
    }


def test_another_package_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve(monkeypatch, tmp_path, {"": HEADER})
    with pytest.raises(BuildError, match="sha256"):
        vulkan._headers()
    assert not list(tmp_path.rglob("*.hpp"))


def test_without_network_it_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve(monkeypatch, tmp_path, {"": OSError("no route to host")})
    with pytest.raises(UnavailableError, match="no route to host"):
        vulkan._headers()


def test_what_the_release_keeps_no_more_comes_from_the_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve(monkeypatch, tmp_path, {debian.POOL: OSError("404"), f"{debian.ARCHIVE}1": HEADER})
    package = Package("h/headers_1.deb", hashlib.sha256(HEADER).hexdigest(), "1")
    folder = debian.unpacked("headers", [package], "usr/include")
    assert (folder / "vulkan" / "vulkan.hpp").read_bytes() == b"new"


class TestCompiler:
    """Which glslc compiles the shaders."""

    @pytest.fixture
    def asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The folder of feature tests; the system's glslc compiles those that hold its word."""
        monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path / "cache"))
        program = tmp_path / "bin" / "glslc"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\nfor last; do :; done\nexec grep -q known "$last"\n')
        program.chmod(0o755)
        monkeypatch.setattr(shaders.shutil, "which", lambda name: str(program))
        tests = tmp_path / "tests"
        tests.mkdir()
        for name in shaders.WANTED | {"bfloat16"}:
            (tests / f"{name}.comp").write_text("known")
        return tests

    def test_the_systems_where_it_knows_enough(self, asked: Path, tmp_path: Path) -> None:
        program = shaders.compiler(asked)
        assert program == tmp_path / "bin" / "glslc"
        assert shaders.features(program, asked) == shaders.WANTED | {"bfloat16"}

    def test_debian_13s_where_it_does_not(
        self, asked: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (asked / "coopmat2.comp").write_text("new")
        monkeypatch.setattr(shaders, "_fetched", lambda: Path("newer"))
        assert shaders.compiler(asked) == Path("newer")

    def test_the_systems_all_the_same_where_no_other_can_be_had(
        self,
        asked: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        (asked / "coopmat2.comp").write_text("new")

        def unavailable(*_: object) -> Path:
            raise UnavailableError("no route to host")

        monkeypatch.setattr(shaders.debian, "unpacked", unavailable)
        assert shaders.compiler(asked) == tmp_path / "bin" / "glslc"
        assert "without coopmat2:" in capsys.readouterr().out

    def test_none_at_all(self, asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unavailable(*_: object) -> Path:
            raise UnavailableError("no route to host")

        monkeypatch.setattr(shaders.shutil, "which", lambda name: None)
        monkeypatch.setattr(shaders.debian, "unpacked", unavailable)
        with pytest.raises(UnavailableError):
            shaders.compiler(asked)


def test_the_key_follows_our_shaders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan.toolchain, "describe", lambda: "chain")
    monkeypatch.setattr(vulkan.toolchain, "output", lambda *command: "glslc")
    glslc = Path("glslc")
    plain = vulkan._key(glslc)
    assert vulkan._key(glslc) == plain
    sources = [pair for pair in vulkan.tree.engine_sources() if pair[1].suffix != ".comp"]
    monkeypatch.setattr(vulkan.tree, "engine_sources", lambda: sources)
    assert vulkan._key(glslc) != plain


def test_a_build_folder_serves_every_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CMake refuses a build folder whose sources have moved: none of them lies in the clone."""
    seen: list[str] = []

    def cmake(*args: object) -> None:
        seen.extend(map(str, args))
        if "--build" in args:
            library = Path(str(args[1])) / "bin" / "libggml-vulkan.so"
            library.parent.mkdir(parents=True)
            library.write_bytes(b"")

    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path))
    monkeypatch.setattr(vulkan.toolchain, "cmake", cmake)
    monkeypatch.setattr(vulkan.toolchain, "describe", lambda: "chain")
    monkeypatch.setattr(vulkan.tree, "prepare", lambda upstream: upstream.home / "source")
    monkeypatch.setattr(vulkan, "_headers", lambda: tmp_path / "headers")
    monkeypatch.setattr(vulkan, "_key", lambda glslc: "key")
    monkeypatch.setattr(vulkan, "_feature_tests", lambda upstream: tmp_path)
    monkeypatch.setattr(vulkan.shaders, "compiler", lambda tests: tmp_path / "glslc")
    assert vulkan.build().is_file()
    assert "-S" in seen
    assert not any(str(NATIVE) in arg for arg in seen)
