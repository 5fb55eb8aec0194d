"""How the installed app is made: what is in it, and that it is the same each time.

The build itself is `dev.py package`, and what it makes is tried out by `dev.py smoke`.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import plistlib
import re
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

import dev
from app.cli.tool import COMMANDS
from app.frozen import APP_ID
from app.ui.window.porting import SUFFIXES
from installers.slipstream_package import archive, deb, elf, freeze, parts, sbom
from installers.slipstream_package.crates import Crate
from installers.slipstream_package.desktop import PLACES, TEMPLATES, filled, packed
from installers.slipstream_package.errors import PackageError
from installers.slipstream_package.parts import Part

INSTALLERS = dev.ROOT / "installers"
SPEC = (INSTALLERS / "slipstream.spec").read_text(encoding="utf-8")
KNOWN = {"ID": APP_ID, "HOME": "https://example.org", "VERSION": "1.2", "DATE": "2026-01-02",
         "DEVELOPER": "org.example"}  # fmt: skip


def template(name: str) -> str:
    return filled((TEMPLATES / name).read_text(encoding="utf-8"), KNOWN)


def constant(name: str) -> Any:
    """A value of the spec, which PyInstaller alone can run."""
    for node in ast.parse(SPEC).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


class TestSpec:
    def test_no_module_that_the_app_imports_is_left_out(self) -> None:
        imported = set()
        for file in (dev.ROOT / "app").rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    imported.add(node.module)
                    imported |= {f"{node.module}.{alias.name}" for alias in node.names}
        assert "PySide6.QtSvg" in imported
        assert "PySide6.QtCore.Qt" in imported
        left_out = constant("LEFT_OUT")
        assert "tkinter" in left_out
        for module in left_out:
            assert not [name for name in imported if f"{name}.".startswith(f"{module}.")]

    def test_every_module_that_is_left_out_has_a_reason_beside_it(self) -> None:
        lines = SPEC[SPEC.index("LEFT_OUT = [") :].partition("]  #")[0].splitlines()[1:]
        above = ""  # what stands on a line of its own is said of all until one has its own again
        for line in lines:
            names, _, said = line.partition("#")
            if names.strip():
                assert said or above, line
                above = "" if said else above
            else:
                above = said

    def test_what_a_desktop_needs_is_kept(self) -> None:
        plugins = constant("PLUGINS")
        assert set(plugins["platforms"].split()) >= {"qxcb", "qwayland", "qwindows", "qcocoa"}
        assert "ibus" in plugins["platforminputcontexts"].split()
        assert "qsvgicon" in plugins["iconengines"].split()

    @pytest.mark.parametrize(
        ("library", "of_system"),
        [
            ("libstdc++.so.6", True),
            ("libX11.so.6", True),
            ("libwayland-client.so.0", True),
            ("libGLX_mesa.so.0", True),
            ("libxcb.so.1", True),
            ("libvulkan.so.1", True),
            ("libxcb-cursor.so.0", False),
            ("libxcb-icccm.so.4", False),
            ("libpython3.11.so.1.0", False),
            ("libssl.so.3", False),
            ("libQt6Core.so.6", False),
            ("libzstd.so.1", False),
        ],
    )
    def test_which_libraries_are_the_systems(self, library: str, of_system: bool) -> None:
        (pattern,) = (
            node.value.args[0]
            for node in ast.parse(SPEC).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SYSTEM"
            if isinstance(node.value, ast.Call)
        )
        found = re.fullmatch(ast.literal_eval(pattern), library)
        assert (found is not None) is of_system


class TestDesktop:
    def test_all_files_have_the_name_by_which_the_window_is_known(self) -> None:
        for place in PLACES.values():
            assert APP_ID in filled(place, KNOWN)
        assert f"Icon={APP_ID}\n" in template("ID.desktop")
        assert f"<id>{APP_ID}</id>" in template("ID.metainfo.xml")

    @pytest.mark.parametrize("name", ["ID.metainfo.xml", "ID.mime.xml", "icon.svg"])
    def test_they_are_xml_with_everything_filled_in(self, name: str) -> None:
        text = template(name)
        ElementTree.fromstring(text)
        assert not re.search(r"@[A-Z]+@", text)

    def test_a_chat_that_is_exported_has_the_type_that_the_entry_opens(self) -> None:
        types = ElementTree.fromstring(template("ID.mime.xml"))
        space = {"m": "http://www.freedesktop.org/standards/shared-mime-info"}
        (glob,) = types.findall("m:mime-type/m:glob", space)
        assert glob.get("pattern") == f"*{SUFFIXES['json']}"
        (kind,) = types.findall("m:mime-type", space)
        assert f"MimeType={kind.get('type')};" in template("ID.desktop")
        assert str(kind.get("type")) in template("ID.metainfo.xml")

    def test_the_manual_page_tells_every_command(self) -> None:
        text = template("slipstream.1")
        assert {name for name in COMMANDS if f".B {name}" in text} == set(COMMANDS)

    @pytest.mark.skipif(not shutil.which("appstreamcli"), reason="not installed")
    def test_the_metadata_are_valid(self, tmp_path: Path) -> None:
        file = tmp_path / f"{APP_ID}.metainfo.xml"
        file.write_text(template("ID.metainfo.xml"), encoding="utf-8")
        command = ["appstreamcli", "validate", "--no-net", file]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout

    @pytest.mark.skipif(not shutil.which("desktop-file-validate"), reason="not installed")
    def test_the_entry_is_valid(self, tmp_path: Path) -> None:
        file = tmp_path / f"{APP_ID}.desktop"
        file.write_text(template("ID.desktop"), encoding="utf-8")
        done = subprocess.run(["desktop-file-validate", file], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")


class TestOthers:
    """Windows and macOS, as far as that can be looked at from here."""

    def test_every_program_that_the_installer_names_is_made(self) -> None:
        text = (INSTALLERS / "windows/slipstream.iss").read_text(encoding="utf-8")
        named = set(re.findall(r"\{app\}\\(\w+)\.exe", text))
        made = set(re.findall(r"program\(\"(\w+)\"", SPEC))
        assert named <= made == {"slipstream", "slipstreamw"}
        assert "PrivilegesRequired=lowest" in text
        assert f'AppUserModelID: "{APP_ID}"' in text

    def test_the_entitlements_are_a_property_list(self) -> None:
        content = (INSTALLERS / "macos/entitlements.plist").read_bytes()
        value = plistlib.loads(content)
        assert value
        assert all(value.values())

    def test_the_workflow_runs_what_is_there(self) -> None:
        text = (INSTALLERS / "ci/github.yml").read_text(encoding="utf-8")
        (job,) = yaml.safe_load(text)["jobs"].values()
        systems = [one["name"] for one in job["strategy"]["matrix"]["include"]]
        assert systems == ["linux", "windows", "macos"]
        assert all(("run" in step) ^ ("uses" in step) for step in job["steps"])
        for script in re.findall(r"installers/\S+\.(?:ps1|sh)", text):
            assert (dev.ROOT / script).is_file()
        for command in re.findall(r"dev\.py (\w+)", text):
            assert f'"{command}"' in (dev.ROOT / "dev.py").read_text(encoding="utf-8")

    @pytest.mark.skipif(not shutil.which("shellcheck"), reason="not installed")
    def test_scripts_pass_shellcheck(self) -> None:
        scripts = sorted(INSTALLERS.rglob("*.sh"))
        assert len(scripts) == 3
        done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")


PARTS = [
    Part("PySide6_Essentials", "6.11", "pypi", "LGPL-3.0-only", "text"),
    Part("libffi8", "3.4.4-1", "deb", "Expat", "text"),
    Part("Inter", "", "generic", "OFL-1.1", "text"),
]


def test_the_bill_names_parts_and_files(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(b"\x7fELF of a library")
    (tmp_path / "slipstream").write_bytes(b"\x7fELF of the program")
    (tmp_path / "text.so.txt").write_bytes(b"no program")
    text = sbom.bill(PARTS, tmp_path, "1.2", 0)
    value = json.loads(text)
    assert value["bomFormat"] == "CycloneDX"
    assert [c.get("purl", c["name"]) for c in value["components"]] == [
        "pkg:pypi/pyside6-essentials@6.11",
        "pkg:deb/debian/libffi8@3.4.4-1",
        "pkg:generic/Inter",
        "libx.so",
        "slipstream",
    ]
    assert value["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert text == sbom.bill(PARTS, tmp_path, "1.2", 0)
    refs = [component["bom-ref"] for component in value["components"]]
    assert len(refs) == len(set(refs))


def test_the_bill_names_crates_within_a_part(tmp_path: Path) -> None:
    inside = (
        Crate("a", "1.0.0", "pkg:cargo/a@1.0.0", "MIT", ""),
        Crate("b", "2.0.0", "pkg:cargo/b@2.0.0", "ISC", ""),
    )
    part = Part("Crates within x", "3", "generic", "each its own", "text", inside)
    text = sbom.bill([part], tmp_path, "1.2", 0)
    (component,) = json.loads(text)["components"]
    assert [one["purl"] for one in component["components"]] == [crate.url for crate in inside]
    assert [one["licenses"][0]["expression"] for one in component["components"]] == ["MIT", "ISC"]


class TestParts:
    @pytest.fixture
    def found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        starter = Part("PyInstaller's starter", "6", "generic", "GPL", "t" * parts.SHORTEST)
        monkeypatch.setattr(parts, "_starter", lambda: starter)
        monkeypatch.setattr(parts, "_of_debian", lambda libraries: [])
        monkeypatch.setattr(parts, "_owners", dict)

    @pytest.mark.usefixtures("found")
    def test_a_file_of_nobodys_ends_the_build(self, tmp_path: Path) -> None:
        file = Path(sys.prefix, "lib", "somebody.so")
        with pytest.raises(PackageError, match=r"somebody\.so.*whose is that"):
            parts.parts({"somebody.so": str(file)}, tmp_path)
        # but for backends, which dev.py lays
        parts.parts({"llama_cpp/lib/backends/libggml-vulkan.so": str(file)}, tmp_path)

    @pytest.mark.usefixtures("found")
    def test_others_work_within_a_part_is_a_part(self, tmp_path: Path) -> None:
        names = ["libllama.so", "libicudata.so.73", "libQt6Gui.so.6", "STIXTwoMath-Regular.ttf",
                 "DejaVuSans.ttf", "unimathsymbols.txt"]  # fmt: skip
        inside = {f"llama_cpp/lib/backends/{name}": f"/nowhere/{name}" for name in names}
        found = {part.name: part for part in parts.parts(inside, tmp_path)}
        assert {within.name for within in parts.WITHIN} == set(found) - {"PyInstaller's starter"}
        assert found["ICU"].version == "73"
        assert "Unicode, Inc." in found["ICU"].text
        assert "The ggml authors" in found["llama.cpp and ggml"].text
        assert "STIX Fonts Project Authors" in found["STIX Two Math"].text
        (within_qt,) = (part for name, part in found.items() if "Qt" in name)
        assert "harfbuzz-ng" in within_qt.text

    @pytest.mark.usefixtures("found")
    def test_a_name_is_no_text_of_a_licence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "x.so"
        file.touch()
        monkeypatch.setattr(parts, "_owners", lambda: {file.resolve(): Wheel("x", "MIT")})
        with pytest.raises(PackageError, match=r"no text of the licence of x \(MIT\)"):
            parts.parts({"x.so": str(file)}, tmp_path)

    @pytest.mark.parametrize("name", ["tokenizers", "latex2mathml", "PySide6_Essentials"])
    def test_texts_that_wheels_do_not_bring_are_added(self, name: str) -> None:
        part = parts._of_distribution(Wheel(name, "somehow"))
        assert len(part.text) > 1000
        assert part.licence in ("Apache-2.0", "MIT", "LGPL-3.0-only")

    @pytest.mark.usefixtures("found")
    def test_what_of_pyinstaller_is_inside_is_its_starter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "x.py"
        monkeypatch.setattr(parts, "_owners", lambda: {file.resolve(): Wheel("pyinstaller", "")})
        (part,) = parts.parts({"x": str(file)}, tmp_path)
        assert part.name == "PyInstaller's starter"

    def test_they_are_read_as_they_were_written(self, tmp_path: Path) -> None:
        parts.write(PARTS, tmp_path / "licences.json")
        assert parts.read(tmp_path / "licences.json") == PARTS
        inside = (Crate("a", "1.0.0", "pkg:cargo/a@1.0.0", "MIT", "https://example.org"),)
        within = [Part("Crates within x", "1", "generic", "each its own", "text", inside)]
        parts.write(within, tmp_path / "licences.json")
        assert parts.read(tmp_path / "licences.json") == within


class Wheel(metadata.Distribution):
    """Of a name and a licence, and without files."""

    def __init__(self, name: str, licence: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\nLicense: {licence}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise AssertionError("it has no files")


def test_a_folder_of_whoever_built_it_is_found(tmp_path: Path) -> None:
    built, cache = tmp_path / "built", tmp_path / "cache"
    built.mkdir()
    (built / "others.so").write_text("/root/.cargo/registry")
    freeze.look_for_builder(built, [cache])
    (built / "note.json").write_text(f'"file://{cache}/x.whl"')
    with pytest.raises(PackageError, match=r"named in note\.json"):
        freeze.look_for_builder(built, [cache])


def test_what_an_installation_takes_is_counted_as_debian_does(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(bytes(1025))
    (tmp_path / "link").symlink_to("folder/file")
    assert deb.installed_size(tmp_path) == 1 + 2 + 1


def test_strip_that_fails_ends_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        elf.subprocess, "run", functools.partial(subprocess.run, executable="false")
    )
    with pytest.raises(PackageError, match="`strip` failed"):
        elf.strip([])


class TestArchive:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "made"
        (folder / "b").mkdir(parents=True)
        (folder / "b/program").write_bytes(b"\x7fELF")
        (folder / "b/program").chmod(0o755)
        (folder / "a.txt").write_text("a")
        (folder / "link").symlink_to("b/program")
        return folder

    def test_who_made_it_and_when_does_not_tell(self, folder: Path) -> None:
        first = archive.tar(folder, "slipstream", 1_000)
        os.utime(folder / "a.txt", (5, 5))
        shutil.move(folder, folder.with_name("elsewhere"))
        again = archive.tar(folder.with_name("elsewhere"), "slipstream", 1_000)
        assert first == again

    def test_what_it_holds(self, folder: Path, tmp_path: Path) -> None:
        file = tmp_path / "x.tar"
        file.write_bytes(archive.tar(folder, "slipstream", 1_000))
        with tarfile.open(file) as opened:
            members = {m.name: m for m in opened.getmembers()}
        assert list(members) == ["slipstream", "slipstream/a.txt", "slipstream/b",
                                 "slipstream/b/program", "slipstream/link"]  # fmt: skip
        assert members["slipstream/link"].linkname == "b/program"
        assert members["slipstream/b/program"].mode & 0o111
        assert {m.mtime for m in members.values()} == {1_000}
        assert {m.uname for m in members.values()} == {"root"}


def test_texts_are_packed_without_a_time() -> None:
    assert packed(b"text") == packed(b"text")
    assert packed(b"text")[4:8] == b"\0\0\0\0"


class TestInstallScript:
    @pytest.fixture
    def unpacked(self, tmp_path: Path) -> Path:
        """As the archive has it, with a program of two lines."""
        folder = tmp_path / "slipstream-1.2-linux-x86_64"
        desktop = folder / "share/desktop/applications"
        desktop.mkdir(parents=True)
        (folder / "_internal").mkdir()
        (folder / "slipstream").write_text("#!/bin/sh\necho started\n")
        (folder / "slipstream").chmod(0o755)
        (folder / "LICENSE").write_text("MIT")
        (folder / "share/system-libraries").write_text("libc.so.6 libc6 glibc\n")
        (folder / "share/glibc").write_text("2.17\n")
        (desktop / f"{APP_ID}.desktop").write_text(template("ID.desktop"))
        for name in ("install.sh", "uninstall.sh"):
            shutil.copy(TEMPLATES / name, folder / name)
        return folder

    def run(self, script: Path, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
        home.mkdir(exist_ok=True)
        environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        return subprocess.run(
            [script, *options], env=environment, capture_output=True, text=True, check=False
        )

    def test_it_is_put_there_started_and_taken_away(self, unpacked: Path, tmp_path: Path) -> None:
        home = tmp_path / "Jörg Müller"
        done = self.run(unpacked / "install.sh", home)
        assert done.returncode == 0, done.stderr
        program = home / ".local/bin/slipstream"
        assert subprocess.check_output([program], text=True) == "started\n"
        entry = (home / f".local/share/applications/{APP_ID}.desktop").read_text()
        assert f'\nExec="{program}" %F\n' in entry
        assert f"\nTryExec={program}\n" in entry
        (home / ".local/share/slipstream").mkdir()
        (home / ".local/share/slipstream/chats.db").write_text("mine")
        assert self.run(unpacked / "install.sh", home).returncode == 0  # over itself
        done = self.run(home / ".local/lib/slipstream/uninstall.sh", home)
        assert done.returncode == 0, done.stderr
        left = {f.relative_to(home).as_posix() for f in home.rglob("*") if f.is_file()}
        assert {f for f in left if "mime" not in f} == {".local/share/slipstream/chats.db"}

    def test_a_home_that_is_a_link_is_left_as_it_was(self, unpacked: Path, tmp_path: Path) -> None:
        (tmp_path / "disk/home").mkdir(parents=True)
        home = tmp_path / "home"
        home.symlink_to("disk/home")
        done = self.run(unpacked / "install.sh", home)
        assert done.returncode == 0, done.stderr
        done = self.run(home / ".local/lib/slipstream/uninstall.sh", home)
        assert done.returncode == 0, done.stderr
        assert not [f for f in home.rglob("*") if f.is_file() and "mime" not in str(f)]
        assert not (home / ".local/bin/slipstream").is_symlink()

    def test_dots_in_the_prefix_are_gone_into(self, unpacked: Path, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        prefix = tmp_path / "a/../b"
        done = self.run(unpacked / "install.sh", tmp_path / "home", "--prefix", str(prefix))
        assert done.returncode == 0, done.stderr
        done = self.run(tmp_path / "b/lib/slipstream/uninstall.sh", tmp_path / "home")
        assert done.returncode == 0, done.stderr
        assert not [f for f in prefix.rglob("*") if f.is_file() and "mime" not in str(f)]

    @pytest.mark.parametrize("kind", ["file", "link"])
    def test_a_program_that_pip_put_there_stays(
        self, kind: str, unpacked: Path, tmp_path: Path
    ) -> None:
        program = tmp_path / "home/.local/bin/slipstream"
        program.parent.mkdir(parents=True)
        if kind == "link":
            program.symlink_to("../share/pipx/venvs/slipstream/bin/slipstream")
        else:
            program.write_text("of pip")
        done = self.run(unpacked / "install.sh", tmp_path / "home")
        assert done.returncode == 1
        assert str(program) in done.stderr
        assert program.is_symlink() is (kind == "link")
        assert not (tmp_path / "home/.local/lib/slipstream").exists()

    def test_the_entry_names_a_folder_of_any_name(self, unpacked: Path, tmp_path: Path) -> None:
        prefix = tmp_path / """a&b|c %d "e" 'f' $g `h` \\i"""
        done = self.run(unpacked / "install.sh", tmp_path / "home", "--prefix", str(prefix))
        assert done.returncode == 0, done.stderr
        entry = (prefix / f"share/applications/{APP_ID}.desktop").read_text()
        rows = dict(line.split("=", 1) for line in entry.splitlines() if "=" in line)
        program = str(prefix / "bin/slipstream")
        # As the specification reads it: what holds for all texts, then within the quotes.
        assert rows["TryExec"].replace("\\\\", "\\") == program
        quoted = rows["Exec"].replace("\\\\", "\\").removeprefix('"').removesuffix('" %F')
        assert re.sub(r"\\([\\\"`$])", r"\1", quoted).replace("%%", "%") == program
        done = self.run(prefix / "lib/slipstream/uninstall.sh", tmp_path / "home")
        assert done.returncode == 0, done.stderr
        assert not [f for f in prefix.rglob("*") if f.is_file() and "mime" not in str(f)]

    def test_backends_that_were_added_are_kept(self, unpacked: Path, tmp_path: Path) -> None:
        ours = unpacked / "_internal/llama_cpp/lib/backends"
        ours.mkdir(parents=True)
        (ours / "libggml-vulkan.so").write_text("old")
        home = tmp_path / "home"
        assert self.run(unpacked / "install.sh", home).returncode == 0
        there = home / ".local/lib/slipstream/_internal/llama_cpp/lib/backends"
        for name in ("libggml-cuda.so", "libcudart.so.12", "libggml-cuda.json"):
            (there / name).write_text("added")
        (ours / "libggml-vulkan.so").write_text("new")
        done = self.run(unpacked / "install.sh", home)
        assert done.returncode == 0, done.stderr
        assert {f.name: f.read_text() for f in there.iterdir()} == {
            "libggml-vulkan.so": "new",
            "libggml-cuda.so": "added",
            "libcudart.so.12": "added",
            "libggml-cuda.json": "added",
        }

    def test_an_old_one_that_cannot_be_removed_is_no_hindrance(
        self, unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "home"
        assert self.run(unpacked / "install.sh", home).returncode == 0
        rm = tmp_path / "bin/rm"
        rm.parent.mkdir()
        rm.write_text(f'#!/bin/sh\nfor f; do [ ! -e "$f/installed" ] || exit 1; done\n'
                      f'exec {shutil.which("rm")} "$@"\n')  # fmt: skip
        rm.chmod(0o755)
        monkeypatch.setenv("PATH", f"{rm.parent}{os.pathsep}{os.environ['PATH']}")
        done = self.run(unpacked / "install.sh", home)
        assert done.returncode == 0, done.stderr
        assert f"yourself: {home}/.local/lib/slipstream.old" in done.stderr
        program = home / ".local/bin/slipstream"
        assert subprocess.check_output([program], text=True) == "started\n"

    def test_what_it_leaves_beside_the_app(self, unpacked: Path, tmp_path: Path) -> None:
        assert self.run(unpacked / "install.sh", tmp_path / "home").returncode == 0
        assert (tmp_path / "home/.local/lib/slipstream/LICENSE").read_text() == "MIT"

    def test_without_a_home_it_asks_where(self, unpacked: Path, tmp_path: Path) -> None:
        environment = {"PATH": os.environ["PATH"]}
        script = str(unpacked / "install.sh")
        done = subprocess.run([script], env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (
            1, "install.sh: HOME is not set; say where by --prefix\n",
        )  # fmt: skip
        done = subprocess.run(
            [script, "--prefix", str(tmp_path / "p")], env=environment, capture_output=True
        )
        assert done.returncode == 0
        done = subprocess.run([tmp_path / "p/lib/slipstream/uninstall.sh"], env=environment)
        assert done.returncode == 0

    def test_an_older_glibc_is_told(self, unpacked: Path, tmp_path: Path) -> None:
        (unpacked / "share/glibc").write_text("2.999\n")
        done = self.run(unpacked / "install.sh", tmp_path / "home")
        assert done.returncode == 1
        assert "needs glibc 2.999 or newer; this system has 2." in done.stderr
        assert not (tmp_path / "home/.local").exists()

    def test_a_library_that_is_missing_is_named_with_its_package(
        self, unpacked: Path, tmp_path: Path
    ) -> None:
        with (unpacked / "share/system-libraries").open("a") as rows:
            rows.write("libnone.so.1 libnone1 none-libs\n")
        done = self.run(unpacked / "install.sh", tmp_path / "home")
        assert done.returncode == 1
        assert "libnone.so.1  (Debian, Ubuntu: libnone1; Fedora: none-libs)" in done.stderr
        assert not (tmp_path / "home/.local").exists()

    def test_a_folder_of_somebody_elses_is_left_alone(self, unpacked: Path, tmp_path: Path) -> None:
        theirs = tmp_path / "home/.local/lib/slipstream"
        theirs.mkdir(parents=True)
        (theirs / "file").write_text("theirs")
        assert self.run(unpacked / "install.sh", tmp_path / "home").returncode == 1
        assert (theirs / "file").read_text() == "theirs"
        shutil.copy(TEMPLATES / "uninstall.sh", theirs)
        assert self.run(theirs / "uninstall.sh", tmp_path / "home").returncode == 1
        assert (theirs / "file").exists()
