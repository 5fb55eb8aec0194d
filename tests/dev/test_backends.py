"""dev.py: which GPU backends a machine gets, by what can be seen of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import dev

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """`machine(loader=True, card=True)`: what is to be found on it; nothing else is."""

    def make(
        platform: str = "linux",
        *,
        loader: bool = False,
        driver: bool = False,
        card: bool = False,
        nvcc: bool = False,
        lacks: Sequence[str] = (),
    ) -> None:
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(dev, "_loads", lambda name: loader and "vulkan" in name)
        monkeypatch.setattr(dev, "vulkan_driver", lambda: driver)
        monkeypatch.setattr(dev, "nvidia_card", lambda: card)
        monkeypatch.setattr(dev, "nvcc", lambda: "/bin/nvcc" if nvcc else None)
        monkeypatch.setattr(dev, "may_install", lambda: False)
        monkeypatch.setattr(dev, "not_there", lambda signs: list(lacks))

    return make


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with an engine; gives its folder of backends, which is not there yet."""
    monkeypatch.setattr(dev, "VENV", tmp_path / "venv")
    lib = tmp_path / "venv" / "llama_cpp" / "lib"
    lib.mkdir(parents=True)
    return lib / "backends"


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What the native build was asked for; it makes a library and what that links to."""
    asked: list[tuple[str, ...]] = []

    def native(*options: str) -> Path:
        asked.append(options)
        name = options[0].lstrip("-")
        made = tmp_path / "built" / name
        made.mkdir(parents=True, exist_ok=True)
        (made / f"lib{name}art.so.13").write_text("linked", encoding="utf-8")
        library = made / f"libggml-{name}.so"
        library.write_text(name, encoding="utf-8")
        return library

    monkeypatch.setattr(dev, "native", native)
    monkeypatch.setattr(dev, "vulkan_packages", lambda drivers: None)
    monkeypatch.setattr(dev, "nvidia_architectures", lambda: "86-real")
    return asked


@pytest.mark.parametrize(
    ("found", "useful", "told"),
    [
        ({}, [], ["no vulkan backend: there is neither", "no cuda backend: there is no NVIDIA"]),
        ({"loader": True}, ["vulkan"], ["no cuda backend: there is no NVIDIA card"]),
        ({"driver": True}, ["vulkan"], ["no cuda backend: there is no NVIDIA card"]),
        ({"driver": True, "nvcc": True}, ["vulkan"], ["no cuda backend: there is no NVIDIA card"]),
        ({"card": True, "nvcc": True}, ["cuda"], ["no vulkan backend: there is neither"]),
        ({"loader": True, "card": True, "nvcc": True}, ["vulkan", "cuda"], []),
        ({"driver": True, "card": True}, ["vulkan"], ["no nvcc", "devices --add FILE"]),
        ({"driver": True, "lacks": ["glslc"]}, [], ["no vulkan backend: this system lacks"]),
        ({"platform": "darwin"}, [], ["Metal is a part of the engine", "Linux only"]),
        ({"platform": "win32", "card": True, "nvcc": True}, [], ["Linux only"]),
    ],
)
def test_a_machine_gets_what_it_can_use_and_is_told_why_not_the_rest(
    machine: Machine,
    capsys: pytest.CaptureFixture[str],
    found: dict[str, Any],
    useful: list[str],
    told: list[str],
) -> None:
    machine(**found)
    assert [name for name, reason in dev.reasons_against().items() if not reason] == useful
    said = capsys.readouterr().err
    assert [words for words in told if words not in said] == []
    assert said.count("no ") >= len(dev.BACKENDS) - len(useful)


def test_cards_are_asked_for_their_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '12.0\\n8.6\\n8.6\\n[N/A]\\n'", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert dev.nvidia_architectures() == "86-real;120-real"
    program.write_text("#!/bin/sh\necho no driver\nexit 9", encoding="utf-8")
    assert dev.nvidia_architectures() == ""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert dev.nvidia_architectures() == ""


def test_a_card_is_seen_by_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev, "NVIDIA", tmp_path)
    monkeypatch.setattr(dev, "_loads", lambda name: False)
    assert not dev.nvidia_card()
    (tmp_path / "0000:01:00.0").mkdir()
    assert dev.nvidia_card()


def test_nvcc_is_found_where_the_toolkit_puts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(dev, "CUDA_BIN", tmp_path / "cuda")
    assert dev.nvcc() is None
    (tmp_path / "cuda").mkdir()
    program = tmp_path / "cuda" / "nvcc"
    program.touch(0o755)
    assert dev.nvcc() == str(program)


def test_a_driver_is_seen_by_its_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev, "USR", tmp_path)
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    folder = tmp_path / "local" / "share" / "vulkan" / "icd.d"
    folder.mkdir(parents=True)
    if not any(Path("/etc").glob("vulkan/icd.d/*.json")):
        assert not dev.vulkan_driver()
    (folder / "card.json").touch()
    assert dev.vulkan_driver()


def test_what_is_built_lies_beside_the_engine(
    machine: Machine, venv: Path, builds: list[tuple[str, ...]]
) -> None:
    machine(driver=True, card=True, nvcc=True)
    venv.mkdir()
    (venv / "libggml-cuda.json").write_text("of an archive", encoding="utf-8")
    assert dev.backends(None) == 0
    assert builds == [("--vulkan",), ("--cuda", "86-real")]
    made = ["libcudaart.so.13", "libggml-cuda.so", "libggml-vulkan.so", "libvulkanart.so.13"]
    assert sorted(file.name for file in venv.iterdir()) == made
    assert dev.installed()["backends"] == {"vulkan": "", "cuda": ""}


def test_what_is_named_is_built_whatever_is_seen(
    machine: Machine, venv: Path, builds: list[tuple[str, ...]]
) -> None:
    machine()
    assert dev.backends(["cuda"]) == 0
    assert builds == [("--cuda", "86-real")]


def test_none_is_the_last_word(
    machine: Machine, venv: Path, builds: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(driver=True, card=True, nvcc=True)
    assert dev.backends([]) == 0
    monkeypatch.setattr(dev.subprocess, "Popen", None)  # nothing is begun
    dev.backends_beside()
    assert builds == []


def test_one_that_cannot_be_had_costs_no_other(
    machine: Machine, venv: Path, builds: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(driver=True, card=True, nvcc=True)

    def lacking(drivers: bool) -> None:
        raise dev.Unavailable("this system lacks: glslc")

    monkeypatch.setattr(dev, "vulkan_packages", lacking)
    assert dev.backends(None) == 0
    assert builds == [("--cuda", "86-real")]
    assert dev.backends(["vulkan"]) == 1  # who names it is told by the status too


def test_beside_the_window_only_what_is_new_is_built(
    machine: Machine,
    venv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(
        dev.subprocess, "Popen", lambda command, **_: begun.append([*map(str, command)])
    )
    monkeypatch.setattr(dev, "cache_dir", lambda: tmp_path)
    machine()
    dev.backends_beside()
    assert "no cuda backend" in capsys.readouterr().err
    dev.backends_beside()
    assert capsys.readouterr().err == ""  # it was said once
    assert begun == []
    machine(driver=True)
    dev.backends_beside()
    assert begun[0][-1] == "backends"
    assert "building beside the app" in capsys.readouterr().err
    reasons = dev.installed()["backends"] | {"vulkan": ""}
    dev.note_installed({"backends": reasons})  # as that one does in the end
    dev.backends_beside()
    assert len(begun) == 1
    machine(driver=True, card=True, nvcc=True)  # the toolkit came
    dev.backends_beside()
    assert len(begun) == 2


def test_what_cannot_be_built_is_told_at_once_and_tried_when_it_can(
    machine: Machine,
    venv: Path,
    builds: list[tuple[str, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(dev.subprocess, "Popen", lambda command, **_: begun.append(command))
    monkeypatch.setattr(dev, "cache_dir", lambda: tmp_path)
    machine(driver=True, lacks=["glslc", "spirv-headers"])
    dev.backends_beside()
    said = capsys.readouterr().err
    assert "no vulkan backend: this system lacks" in said
    assert "glslc" in said
    assert "building" not in said
    dev.backends_beside()
    assert capsys.readouterr().err == ""
    machine(driver=True, lacks=["spirv-headers"])
    dev.backends_beside()
    assert "spirv" in capsys.readouterr().err
    assert begun == []
    machine(driver=True)
    dev.backends_beside()
    assert len(begun) == 1
    assert "building beside the app" in capsys.readouterr().err


def test_a_build_that_failed_is_told_and_left_to_who_asks(
    machine: Machine,
    venv: Path,
    builds: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    machine(driver=True)

    def broken(*options: str) -> Path:
        raise dev.Failed("the native build failed, see above")

    with monkeypatch.context() as patch:
        patch.setattr(dev, "native", broken)
        assert dev.backends(None) == 0
    monkeypatch.setattr(dev.subprocess, "Popen", None)  # nothing is begun
    capsys.readouterr()
    for _ in range(2):
        dev.backends_beside()
        assert "no vulkan backend: its build failed; `python3 dev.py" in capsys.readouterr().err
    assert dev.backends(None) == 0
    assert builds == [("--vulkan",)]
    assert dev.installed()["backends"]["vulkan"] == ""


def test_one_that_was_named_and_lacks_something_is_tried_when_it_is_there(
    machine: Machine, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(driver=True, lacks=["glslc"])
    assert dev.backends(["vulkan"]) == 1
    assert "glslc" in dev.installed()["backends"]["vulkan"]


def test_the_stamp_of_an_older_dev_py_is_asked_for_nothing(
    machine: Machine, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine()
    dev.note_installed({"backends": ["vulkan"]})
    dev.backends_beside()
    assert "neither a Vulkan loader" in dev.installed()["backends"]["vulkan"]
