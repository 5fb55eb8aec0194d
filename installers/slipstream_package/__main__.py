"""`python -m slipstream_package`: prints, as its last line, JSON with what it made."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from importlib import metadata
from pathlib import Path

from . import archive, deb, desktop, elf, freeze, parts, sbom
from .errors import PackageError

ROOT = Path(__file__).parents[2]
LINUX = ROOT / "installers" / "linux"


def main() -> int:
    parser = argparse.ArgumentParser(prog="slipstream_package", description=__doc__)
    parser.add_argument("--dist", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument(
        "--compiled-in", type=Path, metavar="FOLDER", help="the engine; no file may name it"
    )
    parser.add_argument("--epoch", type=int, required=True, help="when the commit was made, s")
    parser.add_argument("--homepage", default="https://slipstream.invalid")
    parser.add_argument("--quick", action="store_true", help="hardly packed, to try it out")
    args = parser.parse_args()
    try:
        made = make(args.dist, args.work, args.compiled_in, args.epoch, args.homepage, args.quick)
        print(json.dumps(made), flush=True)
    except PackageError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    return 0


def make(
    dist: Path, work: Path, compiled_in: Path | None, epoch: int, home: str, quick: bool
) -> dict[str, object]:
    """All that can be made on this system; names and figures of it."""
    version = metadata.version("slipstream")
    print("freezing the app (minutes)", flush=True)
    folder, found = freeze.freeze(work, compiled_in, epoch)
    bill = sbom.bill(found, folder, version, epoch)
    freeze.settle(folder, epoch)
    measured = freeze.measure(folder)
    dist.mkdir(parents=True, exist_ok=True)
    (dist / f"slipstream-{version}.cdx.json").write_text(bill, encoding="utf-8")
    made: dict[str, object] = {"folder": str(folder), "version": version, **measured}
    if sys.platform.startswith("linux"):
        made["archives"] = [str(file) for file in _linux(
            folder, found, bill, version, epoch, home, work, dist, quick
        )]  # fmt: skip
    figures = json.dumps({"version": version, **measured}, indent=1)
    (dist / f"slipstream-{version}.sizes.json").write_text(figures + "\n", encoding="utf-8")
    return made


def _linux(
    folder: Path,
    found: list[parts.Part],
    bill: str,
    version: str,
    epoch: int,
    home: str,
    work: Path,
    dist: Path,
    quick: bool,
) -> list[Path]:
    from app.frozen import APP_ID

    share = work / "share"
    shutil.rmtree(share, ignore_errors=True)
    desktop.lay(share, APP_ID, home, version, epoch)
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    print("packing", flush=True)
    package = deb.build(
        folder,
        share,
        found,
        bill,
        version=version,
        epoch=epoch,
        changes=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        licence=licence,
        home=home,
        work=work,
        quick=quick,
    )
    relocatable = work / "relocatable"
    shutil.rmtree(relocatable, ignore_errors=True)
    shutil.copytree(folder, relocatable, symlinks=True)
    shutil.copytree(share, relocatable / "share" / "desktop")
    for name in ("install.sh", "uninstall.sh"):
        shutil.copy(LINUX / name, relocatable / name)
    shutil.copy(ROOT / "LICENSE", relocatable / "LICENSE")
    (relocatable / "share" / "sbom.cdx.json").write_text(bill, encoding="utf-8")
    (relocatable / "share" / "system-libraries").write_text(system_libraries(folder))
    floor, _ = elf.floor(folder)["GLIBC"]
    (relocatable / "share" / "glibc").write_text(f"{floor}\n")
    freeze.settle(relocatable, epoch)
    for script in relocatable.glob("*.sh"):
        script.chmod(0o755)
    name = f"slipstream-{version}-linux-x86_64"
    packed = dist / f"{name}.tar.zst"
    level = archive.QUICK if quick else archive.LEVEL
    packed.write_bytes(archive.zstd(archive.tar(relocatable, name, epoch), level))
    shutil.copyfile(package, dist / package.name)
    return [packed, dist / package.name]


def system_libraries(folder: Path) -> str:
    """For install.sh: a line a library that the system has to have, and packages that have it."""
    known = {}
    for line in (LINUX / "system-libraries").read_text(encoding="utf-8").splitlines():
        library, debian, fedora = line.split()
        known[library] = f"{library} {debian} {fedora}\n"
    asked = elf.asked_of_system(folder)
    unknown = {
        library: askers
        for library, askers in asked.items()
        if library not in known and not all(deb.BACKEND.fullmatch(f.name) for f in askers)
    }
    if unknown:
        told = "; ".join(f"{lib} (for {askers[0].name})" for lib, askers in unknown.items())
        raise PackageError(f"installers/linux/system-libraries has no row for {told}")
    return "".join(known[library] for library in asked if library in known)


if __name__ == "__main__":
    sys.exit(main())
