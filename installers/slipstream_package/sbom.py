"""What is inside, as CycloneDX 1.6 in JSON: https://cyclonedx.org/docs/1.6/json/"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .parts import Part

# ELF, PE, Mach-O of one and of several processors.
CODE = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def bill(parts: Sequence[Part], folder: Path, version: str, epoch: int) -> str:
    """Parts as libraries, and each program and library of the folder as a file with its hash."""
    components = [_component(part) for part in parts] + [
        _file(file, file.relative_to(folder).as_posix())
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink() and (_is_code(file) or "demo" in file.parts)
    ]
    app = {"type": "application", "bom-ref": "slipstream", "name": "Slipstream", "version": version}
    content = json.dumps(components, sort_keys=True)
    value = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**app, "licenses": [{"license": {"id": "MIT"}}]},
        },
        "components": components,
    }
    return json.dumps(value, indent=1) + "\n"


def _component(part: Part) -> dict[str, Any]:
    namespace = {"deb": "deb/debian/", "pypi": "pypi/", "generic": "generic/"}[part.kind]
    name = part.name.lower().replace("_", "-") if part.kind == "pypi" else part.name
    url = f"pkg:{namespace}{quote(name)}" + (f"@{quote(part.version)}" if part.version else "")
    value: dict[str, Any] = {"type": "library", "bom-ref": url, "name": part.name, "purl": url}
    if part.version:
        value["version"] = part.version
    # By name: whether it is an expression of SPDX is the part's own affair.
    value |= {"licenses": [{"license": {"name": part.licence}}]}
    inner = [
        {
            "type": "library",
            "bom-ref": f"{url}#{crate.url}",
            "name": crate.name,
            "version": crate.version,
            "purl": crate.url,
            "licenses": [{"expression": crate.licence}],
        }
        for crate in part.crates
    ]
    return value | ({"components": inner} if inner else {})


def _file(file: Path, name: str) -> dict[str, Any]:
    return {
        "type": "file",
        "bom-ref": f"file:{name}",
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": _sha256(file)}],
    }


def _is_code(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(4).startswith(CODE)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
