"""What wheels have inside by their own bill, which maturin and others lay into their metadata
(`*.dist-info/sboms`, CycloneDX): crates of Rust, and what these compile of C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from .errors import PackageError

TEXTS = Path(__file__).parents[1] / "licences"
# Licences whose text is the same whoever wrote the work: chosen where a crate leaves the choice.
# Of any other a crate has a text of its own in licences/crates.
SHARED = ("Apache-2.0", "Unicode-3.0", "MPL-2.0", "Unlicense")
# What bills name without a licence.
UNTOLD = {"openssl": "Apache-2.0"}
# Where the compiler of Rust had a crate's source, which the crate's messages tell.
MESSAGE = re.compile(rb"/registry/src/[^/\0]+/([A-Za-z0-9_-]+)-(\d+\.\d+\.\d+[0-9A-Za-z.+-]*)/")


@dataclass(frozen=True, order=True)
class Crate:
    """`url` is a package URL, `licence` an expression of SPDX, `source` a page or nothing."""

    name: str
    version: str
    url: str
    licence: str
    source: str


def within(distribution: metadata.Distribution) -> list[Crate]:
    """By name, without what was only needed to build; empty where a wheel has no bill."""
    bills = [
        json.loads(Path(str(file.locate())).read_bytes())
        for file in distribution.files or ()
        if ".dist-info" in file.parts[0] and file.parts[1:2] == ("sboms",)
    ]
    told = (component for bill in bills for component in bill.get("components", ()))
    return sorted({_crate(one) for one in told if one.get("scope") != "excluded"})


def _crate(component: dict[str, Any]) -> Crate:
    told = [one["expression"] for one in component.get("licenses", ())]
    pages = [one["url"] for one in component.get("externalReferences", ()) if one["type"] == "vcs"]
    name = component["name"]
    return Crate(
        name,
        component["version"],
        component["purl"].partition("?")[0],  # behind it, where whoever built it had it
        " ".join((told[0] if told else UNTOLD.get(name, "")).split()),
        pages[0] if pages else "",
    )


def check(library: str, content: bytes, known: Iterable[Crate]) -> None:
    """Raises PackageError where a library names crates in its messages that are not in a bill."""
    found = {(name.decode(), version.decode()) for name, version in MESSAGE.findall(content)}
    lacking = found - {(crate.name, crate.version) for crate in known}
    if lacking:
        told = ", ".join(" ".join(one) for one in sorted(lacking))
        raise PackageError(f"`{library}` has crates that its wheel's bill does not name: {told}")


def text(crates: Iterable[Crate]) -> str:
    """All of them in a table, and below it the texts of their licences.

    Raises PackageError for a crate whose licence has no text here.
    """
    rows, shared, own = [], set(), {}
    for crate in crates:
        rows.append(f"{crate.name} {crate.version}: {crate.licence} {crate.source}".rstrip())
        enough = satisfied(crate.licence)
        if enough is not None:
            shared |= enough
        elif crate.name in _own():
            own[_own()[crate.name]] = None
        else:
            raise PackageError(
                f"there is no text of the licence of the crate {crate.name} ({crate.licence}): "
                f"put one into {TEXTS / 'crates'}"
            )
    texts = [(TEXTS / f"{name}.txt").read_text(encoding="utf-8") for name in sorted(shared)]
    head = "Each under its own licence; where it leaves a choice, under the one whose text follows."
    return "\n\n\n".join(("\n".join((head, "", *rows)), *own, *texts))


@cache
def _own() -> dict[str, str]:
    """By name of a crate; the first line of each file names those that it is of."""
    found = {}
    for file in sorted((TEXTS / "crates").glob("*.txt")):
        content = file.read_text(encoding="utf-8")
        names = content.partition("\n")[0].removeprefix("Crates: ").split(", ")
        found |= dict.fromkeys(names, content)
    return found


def satisfied(licence: str) -> set[str] | None:
    """The licences of SHARED with which an expression of SPDX is met, the fewest first where it
    leaves a choice; None where it asks for another one.

    Grammar: https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/
    """
    words = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", licence)

    def either() -> set[str] | None:
        ways = [both()]
        while words[:1] == ["OR"]:
            words.pop(0)
            ways.append(both())
        return min((way for way in ways if way is not None), key=len, default=None)

    def both() -> set[str] | None:
        parts = [one()]
        while words[:1] == ["AND"]:
            words.pop(0)
            parts.append(one())
        return None if None in parts else set().union(*filter(None, parts))

    def one() -> set[str] | None:
        word = words.pop(0) if words else ""
        if word == "(":
            inner = either()
            words[:1] = []  # the other parenthesis
            return inner
        return {word} if word in SHARED else None

    return either()
