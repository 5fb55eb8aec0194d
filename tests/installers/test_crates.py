"""What wheels say that they have inside, and under which licences."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from installers.slipstream_package import crates, parts
from installers.slipstream_package.crates import Crate
from installers.slipstream_package.errors import PackageError

TOKIO = {
    "name": "tokio", "version": "1.53.1", "scope": "required",
    "purl": "pkg:cargo/tokio@1.53.1?download_url=file:///home/somebody/tokio",
    "licenses": [{"expression": "MIT"}],
    "externalReferences": [{"type": "website", "url": "https://tokio.rs"},
                           {"type": "vcs", "url": "https://github.com/tokio-rs/tokio"}],
}  # fmt: skip
LOG = {"name": "log", "version": "0.4.1", "purl": "pkg:cargo/log@0.4.1",
       "licenses": [{"expression": "MIT  OR  Apache-2.0"}]}  # fmt: skip
CC = {"name": "cc", "version": "1.2.0", "scope": "excluded", "purl": "pkg:cargo/cc@1.2.0"}
OPENSSL = {"name": "openssl", "version": "4.0.3", "purl": "pkg:generic/openssl@4.0.3?x=y"}


@pytest.fixture
def wheel(tmp_path: Path) -> metadata.Distribution:
    """Installed, with two bills."""
    info = tmp_path / "fast-1.0.dist-info"
    (info / "sboms").mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fast\nVersion: 1.0\n")
    for name, components in {"rust": [TOKIO, LOG, CC, LOG], "c": [OPENSSL]}.items():
        (info / f"sboms/{name}.json").write_text(json.dumps({"components": components}))
    (info / "sboms/none.json").write_text("{}")
    files = [file.relative_to(tmp_path) for file in info.rglob("*") if file.is_file()]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in (*files, "fast/fast.so")))
    return metadata.Distribution.at(info)


def test_its_bills_are_read(wheel: metadata.Distribution) -> None:
    source = "https://github.com/tokio-rs/tokio"
    assert crates.within(wheel) == [
        Crate("log", "0.4.1", "pkg:cargo/log@0.4.1", "MIT OR Apache-2.0", ""),
        Crate("openssl", "4.0.3", "pkg:generic/openssl@4.0.3", "Apache-2.0", ""),
        Crate("tokio", "1.53.1", "pkg:cargo/tokio@1.53.1", "MIT", source),
    ]


def test_they_are_a_part_with_all_their_texts(
    wheel: metadata.Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "fast.so"
    library.write_bytes(b"/x/registry/src/index-1/tokio-1.53.1/src/lib.rs")
    monkeypatch.setattr(parts, "_owners", lambda: {library.resolve(): wheel})
    monkeypatch.setitem(parts.OF_WHEELS, "fast", ("Apache-2.0", ("Apache-2.0",)))
    monkeypatch.setattr(parts, "_starter", lambda: parts.RUST)
    found = {part.name: part for part in parts.parts({"fast/fast.so": str(library)}, tmp_path)}
    part = found["Crates within fast"]
    assert [crate.name for crate in part.crates] == ["log", "openssl", "tokio"]
    assert "tokio 1.53.1: MIT https://github.com/tokio-rs/tokio\n" in part.text
    assert "Copyright (c) Tokio Contributors" in part.text
    assert part.text.count("END OF TERMS AND CONDITIONS") == 1  # of both that are under it
    assert parts.RUST.name in found
    library.write_bytes(b"/x/registry/src/index-1/unheard-0.1.0/src/lib.rs")
    with pytest.raises(PackageError, match=r"fast\.so.*does not name: unheard 0\.1\.0"):
        parts.parts({"fast/fast.so": str(library)}, tmp_path)


@pytest.mark.parametrize(
    ("licence", "met"),
    [
        ("MIT OR Apache-2.0", {"Apache-2.0"}),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", {"Apache-2.0"}),
        ("Apache-2.0 WITH LLVM-exception", None),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", {"Apache-2.0", "Unicode-3.0"}),
        ("Apache-2.0 AND Unicode-3.0 OR MPL-2.0", {"MPL-2.0"}),
        ("ISC AND (Apache-2.0 OR ISC)", None),
        ("MIT", None),
        ("", None),
    ],
)
def test_a_choice_falls_on_a_text_that_all_share(licence: str, met: set[str] | None) -> None:
    assert crates.satisfied(licence) == met


def test_a_licence_without_a_text_ends_the_build() -> None:
    with pytest.raises(PackageError, match=r"licence of the crate new \(MIT\): put one into"):
        crates.text([Crate("new", "1.0.0", "pkg:cargo/new@1.0.0", "MIT", "")])


def test_every_text_is_one_and_no_crate_has_two() -> None:
    named: list[str] = []
    for file in (crates.TEXTS / "crates").glob("*.txt"):
        head, _, rest = file.read_text(encoding="utf-8").partition("\n\n")
        assert re.fullmatch(r"Crates: [\w-]+(, [\w-]+)*", head), file.name
        assert len(rest) > parts.SHORTEST, file.name
        assert re.search(r"copyright|©", rest, re.IGNORECASE), file.name
        named += head.removeprefix("Crates: ").split(", ")
    assert len(named) == len(set(named))


def of_lock(name: str) -> Any:
    """The installed wheel, where this environment has the very one."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", ["tokenizers", "hf_xet", "cryptography"])
def test_the_wheels_that_the_app_is_made_of_have_all_texts(name: str) -> None:
    wheel = of_lock(name)
    inside = crates.within(wheel)
    assert len(inside) > 20
    assert crates.text(inside)
    for file in wheel.files:
        if file.name.endswith(".abi3.so"):
            crates.check(str(file), file.locate().read_bytes(), inside)
