"""The spec, evaluated as PyInstaller would, for each system: what it makes and keeps."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import dev
from app.frozen import APP_ID

SPEC = dev.ROOT / "installers" / "slipstream.spec"
QT = "PySide6/Qt"
# place, and what of it links to which
FILES = {
    "libpython3.11.so.1.0": [],
    "libffi.so.8": [],
    "python3.11/lib-dynload/_ctypes.so": ["libffi.so.8"],
    f"{QT}/plugins/platforms/libqxcb.so": ["libQt6XcbQpa.so.6", "libxcb.so.1"],
    f"{QT}/plugins/platforms/libqlinuxfb.so": ["libQt6Only.so.6"],
    f"{QT}/plugins/platformthemes/libqgtk3.so": ["libgtk-3.so.0"],
    f"{QT}/plugins/tls/libqopensslbackend.so": [],
    f"{QT}/lib/libQt6XcbQpa.so.6": ["libxcb-cursor.so.0"],
    f"{QT}/lib/libQt6Only.so.6": [],
    f"{QT}/lib/libQt6Quick.so.6": [],
    f"{QT}/qml/QtQuick/libqtquick2plugin.so": [],
    "libxcb-cursor.so.0": ["libxcb.so.1"],
    "libxcb.so.1": [],
    "libgtk-3.so.0": [],
    "libstdc++.so.6": [],
}
KEPT = {
    "libpython3.11.so.1.0",
    "libffi.so.8",
    "python3.11/lib-dynload/_ctypes.so",
    f"{QT}/plugins/platforms/libqxcb.so",
    f"{QT}/lib/libQt6XcbQpa.so.6",
    "libxcb-cursor.so.0",
}


def evaluated(system: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the spec told PyInstaller on `system`."""
    told = SimpleNamespace(programs=[], bundle=None, analysis=None)
    elf = ModuleType("slipstream_package.elf")
    links = {Path(place).name: needed for place, needed in FILES.items()}
    elf.needs = lambda file: SimpleNamespace(libraries=links[file.name])  # type: ignore[attr-defined]
    package = ModuleType("slipstream_package")
    package.elf = elf  # type: ignore[attr-defined]
    bindepend = ModuleType("PyInstaller.depend.bindepend")
    bindepend.resolve_library_path = lambda name: f"/usr/lib/{name}"  # type: ignore[attr-defined]
    for module in (elf, package, bindepend):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("PyInstaller", "PyInstaller.depend"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def analysis(scripts: list[str], **options: Any) -> SimpleNamespace:
        files = [(place, f"/from/{place}", "BINARY") for place in FILES]
        told.analysis = SimpleNamespace(
            scripts=scripts, options=options, binaries=files, datas=[], pure=[]
        )
        return told.analysis

    def exe(*_: object, name: str, console: bool, **__: object) -> str:
        told.programs.append((name, console))
        return name

    def bundle(*_: object, **options: Any) -> None:
        told.bundle = options

    known = {
        "SPECPATH": str(SPEC.parent),
        "Analysis": analysis,
        "PYZ": lambda pure: None,
        "EXE": exe,
        "COLLECT": lambda *parts, **options: told.__dict__.update(collected=parts),
        "BUNDLE": bundle,
    }
    exec(compile(SPEC.read_text(encoding="utf-8"), str(SPEC), "exec"), known)
    return told


@pytest.mark.parametrize(
    ("system", "programs"),
    [
        ("linux", [("slipstream", True)]),
        ("win32", [("slipstream", True), ("slipstreamw", False)]),
        ("darwin", [("slipstream", False)]),
    ],
)
def test_the_programs_of_each_system(
    system: str, programs: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = evaluated(system, monkeypatch)
    assert told.programs == programs
    assert (told.bundle is not None) is (system == "darwin")
    if told.bundle:
        assert told.bundle["bundle_identifier"] == APP_ID
    (script,) = told.analysis.scripts
    assert Path(script).parts[-2:] == ("app", "__main__.py")


def test_assets_engine_and_versions_lie_where_the_app_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = evaluated("linux", monkeypatch)
    places = [place for _, place in told.analysis.options["datas"]]
    assert {"app/assets", "llama_cpp", "llama_cpp/lib"} <= set(places)
    assert sum(place.endswith(".dist-info") for place in places) == 3
    assert ("/usr/lib/libgomp.so.1", "llama_cpp/lib") in told.analysis.options["binaries"]


def test_only_what_the_window_needs_is_kept_with_what_that_links_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = evaluated("linux", monkeypatch)
    assert {place for place, _, _ in told.analysis.binaries} == KEPT
