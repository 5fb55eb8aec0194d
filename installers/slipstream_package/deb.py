"""Debian's package, by Debian's tools."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from . import desktop, elf, freeze
from .errors import PackageError
from .parts import Part

LIB = "usr/lib/slipstream"
MAINTAINER = "Slipstream contributors <slipstream@localhost.localdomain>"
# What a backend for a graphics card links to is only needed by who has one.
BACKEND = re.compile(r"libggml-(?!base|cpu)\w+\.so")
# Used where it is there: drivers, letters that ours lack, the desktop's browser and its secrets.
RECOMMENDS = "libvulkan1, mesa-vulkan-drivers, xdg-utils, fonts-noto-core, fonts-noto-color-emoji"
SUGGESTS = "fonts-noto-cjk, gnome-keyring | kwalletmanager, ibus | fcitx5"

# Backends that `slipstream devices --add` put there are in no package's list.
POSTRM = f"""#!/bin/sh
set -e
if [ "$1" = purge ]; then
    rm -rf /{LIB}
fi
"""

DESCRIPTION = """chat with a language model on this machine
 Slipstream runs Qwen3.5 locally, on the processor or a graphics card, and
 makes it answer faster by speculative decoding: a small drafter proposes a
 block of tokens, and the model checks the block in one pass. Meters show it
 happening.
 .
 A built-in guide, a tiny model, answers at once; one click gets the real one."""


def depends(folder: Path) -> str:
    """The packages that programs and libraries of the folder need, with versions.

    Raises PackageError without dpkg-dev, or where one belongs to no package.
    """
    asking = [file for file in elf.files(folder) if not BACKEND.fullmatch(file.name)]
    places = sorted({file.parent for file in asking})
    with tempfile.TemporaryDirectory() as work:
        control = Path(work, "debian", "control")
        control.parent.mkdir()
        control.write_text("Source: slipstream\n\nPackage: slipstream\nArchitecture: any\n")
        command = ["dpkg-shlibdeps", "-O", "--warnings=0", *(f"-l{place}" for place in places)]
        command += ["-xslipstream", "--ignore-missing-info", *map(str, asking)]
        try:
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        except OSError as exc:
            raise PackageError("there is no dpkg-shlibdeps: apt-get install dpkg-dev") from exc
    if done.returncode != 0:
        raise PackageError(f"dpkg-shlibdeps failed:\n{done.stderr.strip()}")
    # It takes a library that the system has too for the system's, where ours lies in the folder.
    wanted = _packages_of(elf.asked_of_system(folder))
    listed = done.stdout.strip().partition("=")[2].split(", ")
    return ", ".join(package for package in listed if package.split()[0] in wanted)


def _packages_of(libraries: Iterable[str]) -> set[str]:
    """Debian's packages that this system has these libraries from."""
    command = ["dpkg-query", "--search", *(f"*/{library}" for library in libraries)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {line.partition(":")[0] for line in told.splitlines()}


def build(
    folder: Path,
    share: Path,
    parts: Sequence[Part],
    bill: str,
    *,
    version: str,
    epoch: int,
    changes: str,
    licence: str,
    home: str,
    work: Path,
    quick: bool,
) -> Path:
    """The package, in `work`; `quick`: hardly packed."""
    root = work / "deb"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(folder, root / LIB, symlinks=True)
    shutil.copytree(share, root / "usr/share", dirs_exist_ok=True)
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/slipstream").symlink_to("../lib/slipstream/slipstream")
    about = root / "usr/share/doc/slipstream"
    desktop.write(about / "changelog.gz", desktop.packed(changelog(version, epoch).encode()))
    desktop.write(about / "CHANGELOG.md.gz", desktop.packed(changes.encode()))
    desktop.write(about / "copyright", copyright_file(parts, licence).encode())
    desktop.write(about / "sbom.cdx.json.gz", desktop.packed(bill.encode()))
    desktop.write(
        root / "usr/share/lintian/overrides/slipstream",
        (desktop.TEMPLATES / "lintian-overrides").read_bytes(),
    )
    freeze.settle(root, epoch)
    fields = {
        "Package": "slipstream",
        "Version": version,
        "Architecture": "amd64",
        "Maintainer": MAINTAINER,
        "Installed-Size": str(installed_size(root)),
        "Depends": depends(root / LIB),
        "Recommends": RECOMMENDS,
        "Suggests": SUGGESTS,
        "Section": "utils",
        "Priority": "optional",
        "Homepage": home,
        "Description": DESCRIPTION,
    }
    control = "".join(f"{name}: {value}\n" for name, value in fields.items())
    desktop.write(root / "DEBIAN/control", control.encode())
    desktop.write(root / "DEBIAN/md5sums", _sums(root).encode())
    desktop.write(root / "DEBIAN/postrm", POSTRM.encode())
    freeze.settle(root / "DEBIAN", epoch)
    (root / "DEBIAN/postrm").chmod(0o755)
    made = work / f"slipstream_{version}_amd64.deb"
    # One thread: several cut what they compress, each otherwise.
    command = ["dpkg-deb", "--root-owner-group", "--threads-max=1"]
    command += ["-Zgzip", "-z1"] if quick else ["-Zxz"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(
        [*command, "--build", str(root), str(made)],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0:
        raise PackageError("dpkg-deb failed, see above")
    return made


def installed_size(root: Path) -> int:
    """KiB, as dpkg-gencontrol counts: files rounded up, anything else as one."""
    return sum(
        -(-path.stat().st_size // 1024) if path.is_file() and not path.is_symlink() else 1
        for path in root.rglob("*")
    )


def changelog(version: str, epoch: int) -> str:
    """Debian's own, of the package as such."""
    when = format_datetime(datetime.fromtimestamp(epoch, UTC))
    what = "  * What changed for users stands in CHANGELOG.md.gz beside this file."
    head = f"slipstream ({version}) unstable; urgency=medium"
    return f"{head}\n\n{what}\n\n -- {MAINTAINER}  {when}\n"


def copyright_file(parts: Sequence[Part], licence: str) -> str:
    """Whose work is inside, in Debian's form; all texts stand in the app's Help and beside it."""
    head = (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: Slipstream\nSource: built by `python3 dev.py package`\n\n"
        "Files: *\nCopyright: 2026 Slipstream contributors\nLicense: Expat\n"
    )
    text = "".join(f" {line}\n" if line else " .\n" for line in licence.strip().splitlines()[4:])
    rows = "".join(f" {part.name} {part.version}: {part.licence}\n" for part in parts)
    comment = (
        "Comment: It contains, each under its own licence,\n"
        f"{rows} whose texts are in /{LIB}/_internal/app/assets/licences.json and in the app's"
        " Help.\n"
        " Of those that Debian keeps: /usr/share/common-licenses/LGPL-3 (Qt, PySide6), GPL-3,\n"
        " GPL-2, Apache-2.0, MPL-2.0.\n"
    )
    return head + text + comment


def _sums(root: Path) -> str:
    rows = []
    for file in sorted((root / "usr").rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "md5").hexdigest()
            rows.append(f"{digest}  {file.relative_to(root).as_posix()}\n")
    return "".join(rows)
