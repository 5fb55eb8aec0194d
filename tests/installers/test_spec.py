"""The spec, evaluated as PyInstaller would, for each system: what it makes and keeps."""

from __future__ import annotations

import sys
import tempfile
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


# A link stays where what it leads to does, whatever else has its name.
LINKS = {
    "libQt6XcbQpa.so.6": f"{QT}/lib/libQt6XcbQpa.so.6",
    "elsewhere/libffi.so.8": "../gone/libffi.so.8",
    "libQt6Only.so.6": f"{QT}/lib/libQt6Only.so.6",
}
KEPT |= {"libQt6XcbQpa.so.6"}
DATAS = [
    "x-1.dist-info/METADATA",
    "x-1.dist-info/direct_url.json",
    "x-1.dist-info/RECORD",
    "x-1.dist-info/INSTALLER",
    "x-1.dist-info/REQUESTED",
    "certifi/RECORD",
]


def evaluated(system: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the spec told PyInstaller on `system`."""
    licences = Path(tempfile.mkdtemp()) / "licences.json"
    told = SimpleNamespace(programs=[], bundle=None, analysis=None)
    elf = ModuleType("slipstream_package.elf")
    links = {Path(place).name: needed for place, needed in FILES.items()}
    elf.needs = lambda file: SimpleNamespace(libraries=links[file.name])  # type: ignore[attr-defined]
    package = ModuleType("slipstream_package")
    package.elf = elf  # type: ignore[attr-defined]
    package.parts = SimpleNamespace(  # type: ignore[attr-defined]
        parts=lambda inside, fonts: inside, write=lambda found, file: file.write_text("[]")
    )
    hooks = ModuleType("PyInstaller.utils.hooks")
    hooks.collect_data_files = lambda name: [(f"/from/{name}/data", name)]  # type: ignore[attr-defined]
    monkeypatch.setenv("SLIPSTREAM_LICENCES", str(licences))
    bindepend = ModuleType("PyInstaller.depend.bindepend")
    bindepend.resolve_library_path = lambda name: f"/usr/lib/{name}"  # type: ignore[attr-defined]
    for module in (elf, package, bindepend, hooks):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("PyInstaller", "PyInstaller.depend", "PyInstaller.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def analysis(scripts: list[str], **options: Any) -> SimpleNamespace:
        files = [(place, f"/from/{place}", "BINARY") for place in FILES]
        files += [(place, target, "SYMLINK") for place, target in LINKS.items()]
        datas = [(place, f"/from/{place}", "DATA") for place in DATAS]
        # Where PyInstaller lays those that it makes itself.
        datas.append(("libQt6Only.so.6", f"{QT}/lib/libQt6Only.so.6", "SYMLINK"))
        told.analysis = SimpleNamespace(
            scripts=scripts, options=options, binaries=files, datas=datas, pure=[]
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


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_formulas_have_their_data_and_licences_are_laid_with_the_rest(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = evaluated(system, monkeypatch)
    data = told.analysis.options["datas"]
    for package in ("ziamath", "ziafont", "latex2mathml"):
        assert (f"/from/{package}/data", package) in data
    # Before the folder is laid: on macOS the bundle is made of it at once.
    assert "app/assets/licences.json" in [place for place, _, _ in told.collected[-1]]


def test_notes_of_who_installed_a_distribution_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    told = evaluated("linux", monkeypatch)
    kept = [place for place, _, _ in told.analysis.datas]
    assert kept == ["x-1.dist-info/METADATA", "certifi/RECORD", "app/assets/licences.json"]
