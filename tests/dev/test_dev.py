"""dev.py: what a user sees of it, and what it does on systems other than this one."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import dev

COMMANDS = "setup run test check fix native lock package smoke bench server-tests".split()


def dev_py(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(dev.ROOT / "dev.py"), *args]
    return subprocess.run(command, text=True, capture_output=True, check=False)


def test_help_names_every_command() -> None:
    shown = dev_py("--help").stdout
    # a long name stands in a line of its own
    assert {command for command in COMMANDS if f"\n    {command}" in shown} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = dev_py(command, "--help")
    assert done.returncode == 0
    assert f"dev.py {command}" in done.stdout


def test_the_bench_of_the_native_part_explains_itself_without_building_anything() -> None:
    done = dev_py("bench", "native", "--help")
    assert done.returncode == 0
    assert "--pair" in done.stdout


@pytest.mark.parametrize("args", [[], ["native", "--fast"], ["check", "app"], ["nonsense"]])
def test_wrong_use_is_status_2(args: list[str]) -> None:
    assert dev_py(*args).returncode == 2


def test_an_older_python_understands_what_it_is_told() -> None:
    ast.parse(Path(dev.ROOT, "dev.py").read_text(encoding="utf-8"), feature_version=(3, 7))


@pytest.mark.parametrize("version", [(3, 9, 2), (3, 10, 13), (3, 15, 0)])
def test_another_python_is_told_which_one_it_takes(
    version: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match=r"3\.11 to 3\.14;.*`python3\.12 dev\.py run`"):
        runpy.run_path(str(Path(dev.ROOT, "dev.py")))
    takes = SpecifierSet(dev.read_toml(dev.ROOT / "pyproject.toml")["project"]["requires-python"])
    assert not takes.contains(".".join(map(str, version)))
    assert all(takes.contains(f"3.{minor}.1") for minor in (11, 12, 13, 14))


def test_an_environment_of_a_cache_that_was_moved_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path / "a"))
    before = dev.cached_env("build-env", "locked")
    assert before == dev.cached_env("build-env", "locked")
    (tmp_path / "a").mkdir()
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path / "b"))
    after = dev.cached_env("build-env", "locked")
    assert after.parent == tmp_path / "b" / "build-env"
    assert after.name != before.name


def test_an_environment_whose_python_has_gone_is_not_ready(tmp_path: Path) -> None:
    python = dev.python_of(tmp_path)
    python.parent.mkdir(parents=True)
    (tmp_path / "ready").touch()
    assert not dev.is_ready(tmp_path)
    python.touch()
    assert dev.is_ready(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="of a POSIX shell")
def test_pip_installs_by_its_index_and_by_no_habit_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = dev.python_of(tmp_path)
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nenv > "{tmp_path}/env"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("PIP_INDEX_URL", "https://index")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.setenv("PIP_CONSTRAINT", "constraints.txt")
    for name in ("PIP_USER", "PIP_REQUIRE_HASHES"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")

    def given(*args: str) -> set[str]:
        dev.pip(tmp_path, "install", *args)
        lines = (tmp_path / "env").read_text(encoding="utf-8").splitlines()
        return {line for line in lines if line.startswith(("PIP_", "PYTHONPATH="))}

    always = {"PIP_USER=0", "PIP_REQUIRE_HASHES=0", "PYTHONPATH="}
    always |= {"PIP_INDEX_URL=https://index", "PIP_FIND_LINKS=/wheels"}
    assert always | {"PIP_CONSTRAINT=constraints.txt"} <= given("torch")
    assert always | {"PIP_CONSTRAINT="} <= given("--no-deps", "--require-hashes", "-r", "app.txt")


def test_one_ctrl_c_ends_a_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []

    class Interrupted:
        """Ends with status 1 behind a Ctrl-C, as pip does."""

        def __init__(self, command: list[str], **_: object) -> None:
            begun.append(command)
            self.told = False

        def wait(self) -> int:
            if not self.told:
                self.told = True
                raise KeyboardInterrupt
            return 1

    monkeypatch.setattr(dev.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(dev.subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        dev.pip(tmp_path, "install", "x")
    assert len(begun) == 1
    # what was asked for itself, the app say, ends as it likes
    assert dev.call(["app"]) == 1


def test_a_missing_library_is_named_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(dev, "_loads", lambda library: library != "libEGL.so.1")
    assert "libegl1" in dev.missing_packages(fonts=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert dev.missing_packages(fonts=True) == []


def test_without_root_it_gives_one_ready_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr(dev, "missing_packages", lambda fonts: ["g++", "libegl1"])
    monkeypatch.setattr(dev.shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(dev.Failed, match=r"sudo apt-get install .* g\+\+ libegl1"):
        dev.system_packages()


def test_where_packages_have_other_names_it_tells_what_they_bring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dev.shutil, "which", lambda name: None)
    names = ["g++", "libegl1", "libxcb-cursor0", "glslc", dev.VENV_PACKAGE]
    told = dev.lacking(names)
    assert "lacks: g++, libEGL.so.1, libxcb-cursor.so.0, bin/glslc, ensurepip" in told
    assert "apt" not in told


def test_the_venv_that_is_named_is_that_of_the_python_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"python{version}-venv" in dev.missing_packages(fonts=False)


def test_as_root_it_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def record(command: list[str], **_: object) -> int:
        ran.append(" ".join(command))
        return 0

    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(dev.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(dev, "missing_packages", lambda fonts: ["libegl1"] if fonts else [])
    monkeypatch.setattr(dev, "call", record)
    dev.system_packages()
    assert ran[0].startswith("apt-get update")
    assert ran[1].endswith("libegl1")


def test_vulkan_that_cannot_be_had_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(dev, "USR", Path("/nothing/here"))
    monkeypatch.setattr(dev.shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(dev.Unavailable, match=r"sudo apt-get install .* glslc"):
        dev.vulkan_packages()


def test_a_wheel_tells_what_it_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev, "_exports", lambda library: "")  # these here are none
    wheel = tmp_path / "engine.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llama_cpp/lib/a.so", b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBCXX_3.4.9\0")
        archive.writestr("llama_cpp/lib/b.so", b"\0GLIBC_2.17\0GLIBCXX_3.4.30\0GOMP_4.0\0")
        archive.writestr("llama_cpp/a.py", b"\0GLIBC_2.99\0")
    told = dev.runs_on(wheel)
    assert told.endswith("have GLIBC_2.34, GLIBCXX_3.4.30, GOMP_4.0")


@pytest.mark.skipif(sys.platform != "linux", reason="of ELF")
def test_a_wheel_with_a_cpp_library_of_its_own_is_not_given_away(tmp_path: Path) -> None:
    source, library, wheel = (tmp_path / f"a{end}" for end in (".c", ".so", ".whl"))
    for shown, visible in ((True, "default"), (False, "hidden")):
        text = f'__attribute__((visibility("{visible}"))) void _ZSt9terminatev(void) {{}}'
        source.write_text(text, encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.write(library, "llama_cpp/lib/a.so")
        if not shown:
            assert "the engine runs where" in dev.runs_on(wheel)
            continue
        with pytest.raises(dev.Failed, match=r"a\.so has a libstdc\+\+ of its own"):
            dev.runs_on(wheel)


def test_readme_gives_the_two_commands() -> None:
    lines = (dev.ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert "python3 dev.py run" in lines
    assert "python3 dev.py test" in lines


@pytest.mark.skipif(sys.platform == "win32", reason="no executable bit")
def test_ci_runs_the_same_test_command() -> None:
    script = Path(dev.ROOT, ".ci", "run")
    assert os.access(script, os.X_OK)
    assert "python3 dev.py test" in script.read_text()
