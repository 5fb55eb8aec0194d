"""The lock: it fits what the project asks for, names files by hash, and set-up installs from it."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dev

PROJECT = dev.read_toml(dev.ROOT / "pyproject.toml")
NATIVE = dev.read_toml(dev.NATIVE / "pyproject.toml")
APP = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
TOOLS = PROJECT["project"]["optional-dependencies"]["test"]
LOCKS = ("app", "test", "package", "native")


def text_of(name: str) -> str:
    return (dev.LOCK / f"{name}.txt").read_text(encoding="utf-8")


def locked(name: str) -> dict[str, list[Requirement]]:
    """Requirements by name; there are several where the version depends on Python's."""
    found: dict[str, list[Requirement]] = {}
    for entry in dev.lock_entries(text_of(name)):
        requirement = Requirement(entry.partition(" \\")[0])
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def version(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "=="
    return pin.version


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("app", APP),
        ("test", [*APP, *TOOLS]),
        ("package", [*APP, *PROJECT["project"]["optional-dependencies"]["package"]]),
        ("native", NATIVE["build-system"]["requires"]),
    ],
)
def test_whatever_is_asked_for_is_locked_within_its_bounds(name: str, asked: list[str]) -> None:
    found = locked(name)
    for text in asked:
        if dev.UNLOCKED.match(text):
            continue
        wanted = Requirement(text)
        pins = found[canonicalize_name(wanted.name)]  # if it fails: python3 dev.py lock
        assert all(wanted.specifier.contains(version(pin)) for pin in pins), text


@pytest.mark.parametrize("name", LOCKS)
def test_every_entry_is_one_version_with_hashes_and_no_place(name: str) -> None:
    assert "://" not in text_of(name)
    assert "@" not in text_of(name)
    for entry in dev.lock_entries(text_of(name)):
        first, *hashes = entry.splitlines()
        assert re.match(r"\S+==\S+", first)
        assert hashes
        assert all(re.match(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes)


def test_the_app_runs_on_the_versions_it_is_tested_with() -> None:
    tested = locked("test")
    assert {name: pins for name, pins in locked("app").items() if tested[name] != pins} == {}


def test_the_installed_app_has_those_versions_too() -> None:
    packed = locked("package")
    assert {name: pins for name, pins in locked("app").items() if packed[name] != pins} == {}


def test_what_the_engines_wheel_needs_is_locked() -> None:
    wheel = Requirement("llama-cpp-python")
    assert canonicalize_name(wheel.name) not in locked("app")  # it is built here
    assert {"diskcache", "numpy", "jinja2", "typing-extensions"} <= locked("app").keys()


def test_torch_alone_is_chosen_by_its_version() -> None:
    unlocked = [tool for tool in TOOLS if dev.UNLOCKED.match(tool)]
    assert [Requirement(tool).name for tool in unlocked] == ["torch"]
    assert version(Requirement(unlocked[0]))
    cuda = [name for name in locked("test") if dev.UNLOCKED.match(f"{name}==")]
    assert cuda == []
    assert "safetensors" not in locked("app")


class TestSetUp:
    """Which steps there are, each recorded instead of done."""

    @pytest.fixture
    def steps(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        steps: list[str] = []
        wheel = tmp_path / "key" / "llama.whl"
        monkeypatch.setattr(dev, "VENV", tmp_path / ".venv")
        monkeypatch.setattr(dev, "LOCK", tmp_path / "lock")
        dev.LOCK.mkdir()
        for name in LOCKS:
            (dev.LOCK / f"{name}.txt").write_text(f"{name}==1")

        def make_venv(folder: Path, *, anew: bool) -> bool:
            if anew:
                steps.append("anew")
            made = anew or not folder.is_dir()
            folder.mkdir(exist_ok=True)
            return made

        def pip(venv: Path, *args: object) -> None:
            assert venv == dev.VENV
            steps.append(" ".join(Path(str(a)).name for a in args if a != "--quiet"))

        monkeypatch.setattr(dev, "system_packages", lambda: None)
        monkeypatch.setattr(dev, "native", lambda: wheel)
        monkeypatch.setattr(dev, "make_venv", make_venv)
        monkeypatch.setattr(dev, "pip", pip)
        return steps

    APP = "install --no-deps --require-hashes -r app.txt"
    TEST = "install --no-deps --require-hashes -r test.txt"
    TORCH = "install torch=="
    WHEEL = "install --force-reinstall --no-deps llama.whl"
    EDITABLE = f"install --no-deps --no-build-isolation --editable {dev.ROOT.name}"

    def check(self, steps: list[str], *wanted: str) -> None:
        assert len(steps) == len(wanted), steps
        assert all(step.startswith(want) for step, want in zip(steps, wanted, strict=True)), steps
        steps.clear()

    def test_from_nothing_and_again(self, steps: list[str]) -> None:
        dev.setup(extras=False)
        self.check(steps, self.APP, self.WHEEL, self.EDITABLE)
        dev.setup(extras=False)
        self.check(steps)
        dev.setup(extras=True)
        self.check(steps, self.TEST, self.TORCH)
        dev.setup(extras=True)
        dev.setup(extras=False)
        self.check(steps)

    @pytest.mark.parametrize("name", ["app", "test"])
    def test_another_lock_is_another_environment(self, steps: list[str], name: str) -> None:
        dev.setup(extras=True)
        steps.clear()
        (dev.LOCK / f"{name}.txt").write_text("other==2")
        dev.setup(extras=True)
        self.check(steps, "anew", self.TEST, self.TORCH, self.WHEEL, self.EDITABLE)

    def test_one_from_before_the_lock_is_made_anew(self, steps: list[str]) -> None:
        dev.VENV.mkdir()
        old = {"native": "key/llama.whl", "app": "0", "extras": True}
        (dev.VENV / "slipstream.json").write_text(json.dumps(old))
        dev.setup(extras=False)
        self.check(steps, "anew", self.APP, self.WHEEL, self.EDITABLE)

    def test_it_goes_on_where_it_was_interrupted(
        self, steps: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        native = dev.native

        def interrupted() -> Path:
            raise KeyboardInterrupt

        monkeypatch.setattr(dev, "native", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dev.setup(extras=False)
        self.check(steps, self.APP)
        monkeypatch.setattr(dev, "native", native)
        dev.setup(extras=False)
        self.check(steps, self.WHEEL, self.EDITABLE)

    def test_an_environment_that_had_to_be_made_anew_is_filled(
        self, steps: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dev.setup(extras=True)
        steps.clear()
        monkeypatch.setattr(dev, "make_venv", lambda folder, anew: True)  # its Python has gone
        dev.setup(extras=False)
        self.check(steps, self.APP, self.WHEEL, self.EDITABLE)

    @pytest.mark.parametrize("text", ["", '{"locked": "half', "[]"])
    def test_a_stamp_that_cannot_be_read_is_none(self, steps: list[str], text: str) -> None:
        dev.setup(extras=False)
        steps.clear()
        (dev.VENV / "slipstream.json").write_text(text)
        dev.setup(extras=False)
        self.check(steps, self.APP, self.WHEEL, self.EDITABLE)

    def test_an_engine_that_was_being_replaced_is_not_believed(
        self, steps: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dev.setup(extras=False)
        steps.clear()

        def interrupted(venv: Path, *args: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(dev, "engine_is", lambda wheel: False)
        with monkeypatch.context() as patch:
            patch.setattr(dev, "pip", interrupted)
            with pytest.raises(KeyboardInterrupt):
                dev.setup(extras=False, repair=True)
        dev.setup(extras=False)
        self.check(steps, self.WHEEL)

    @pytest.mark.parametrize("content", [b"ours", b"another's", b"", None])
    def test_asked_for_by_name_it_looks_at_the_engine_itself(
        self, steps: list[str], tmp_path: Path, content: bytes | None
    ) -> None:
        library = dev.VENV / "lib" / "llama_cpp" / "lib" / "libslipstream.so"
        wheel = dev.native()
        wheel.parent.mkdir()
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("llama_cpp/lib/", b"")
            archive.writestr("llama_cpp/lib/libslipstream.so", b"ours")
            archive.writestr("llama.dist-info/RECORD", b"pip writes another")
        dev.setup(extras=True)
        library.parent.mkdir(parents=True)
        if content is not None:
            library.write_bytes(content)
        steps.clear()
        dev.setup(extras=True)  # any other command has no time for that
        self.check(steps)
        dev.setup(extras=True, repair=True)
        self.check(steps, *([] if content == b"ours" else [self.WHEEL]))

    def test_an_update_of_python_in_its_place_keeps_the_environment(
        self, steps: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dev.setup(extras=False)
        steps.clear()
        monkeypatch.setattr(sys, "version", "3.11.99 (main, today) [another compiler]")
        dev.setup(extras=False)
        self.check(steps)
        monkeypatch.setattr(sys, "base_prefix", "/another")
        dev.setup(extras=False)
        self.check(steps, "anew", self.APP, self.WHEEL, self.EDITABLE)

    def test_what_cannot_be_replaced_stays(
        self, steps: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dev.setup(extras=False)
        have = dev.installed()
        (dev.LOCK / "app.txt").write_text("other==2")

        def offline(venv: Path, *args: object) -> None:
            assert not dev.installed()
            raise dev.Failed("pip failed three times")

        with monkeypatch.context() as patch:
            patch.setattr(dev, "pip", offline)
            with pytest.raises(dev.Failed, match="pip failed"):
                dev.setup(extras=False)
        assert dev.installed() == have
        steps.clear()
        dev.setup(extras=False)
        self.check(steps, "anew", self.APP, self.WHEEL, self.EDITABLE)
        assert [path.name for path in dev.VENV.parent.glob(".venv*")] == [".venv"]

    def test_a_checkout_that_was_moved_has_another(
        self, steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dev.setup(extras=False)
        steps.clear()
        (tmp_path / "moved").mkdir()
        shutil.copy(dev.ROOT / "pyproject.toml", tmp_path / "moved")
        monkeypatch.setattr(dev, "ROOT", tmp_path / "moved")
        dev.setup(extras=False)
        self.check(steps, "anew", self.APP, self.WHEEL, "install --no-deps --no-build-isolation")
