"""The pinned source distribution: fetched by pip, checked by hash, unpacked once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .cache import cache_dir
from .errors import BuildError

NATIVE = Path(__file__).resolve().parents[2]
ATTEMPTS = 4
# Never built, never tested against: 40 MB less to copy. `.git` would tell the wrong commit.
LEFT_OUT = (".git", "vendor/llama.cpp/docs", "vendor/llama.cpp/media")


@dataclass(frozen=True)
class Upstream:
    """What native/UPSTREAM.toml says."""

    name: str
    version: str
    sdist: str
    sha256: str
    build: str

    @property
    def wheel_version(self) -> str:
        return f"{self.version}+{self.build}"

    @property
    def home(self) -> Path:
        """The folder of the user cache that holds all that derives from this sdist."""
        return cache_dir() / "native" / f"{self.version}-{self.sha256[:12]}"


def load() -> Upstream:
    with (NATIVE / "UPSTREAM.toml").open("rb") as handle:
        return Upstream(**tomllib.load(handle))


def fetch(upstream: Upstream) -> Path:
    """The checked archive in the user cache; downloaded when it is not there yet."""
    archive = cache_dir() / "downloads" / upstream.sdist
    if archive.is_file():
        if _sha256(archive) == upstream.sha256:
            return archive
        archive.unlink()  # a damaged cache heals itself
    part = archive.with_name(archive.name + ".part")
    for attempt in range(1, ATTEMPTS + 1):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        print(f"fetching {upstream.sdist} (attempt {attempt} of {ATTEMPTS})", flush=True)
        done = _pip_download(upstream, part)
        got = part / upstream.sdist
        if done.returncode == 0 and got.is_file():
            if _sha256(got) != upstream.sha256:
                raise BuildError(
                    f"{upstream.sdist}: sha256 is {_sha256(got)}, UPSTREAM.toml says "
                    f"{upstream.sha256}; not used"
                )
            got.replace(archive)
            shutil.rmtree(part, ignore_errors=True)
            return archive
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise BuildError(f"{upstream.sdist}: wrong sha256\n{done.stderr.strip()}")
        time.sleep(attempt * 3 if attempt < ATTEMPTS else 0)
    shutil.rmtree(part, ignore_errors=True)
    raise BuildError(
        f"could not fetch {upstream.sdist}; pip's last words:\n{done.stderr.strip()[-2000:]}\n"
        f"Check the connection, or put the file at {archive}."
    )


def download(version: str, folder: Path) -> Path:
    """Another version's source distribution, fetched into `folder`: it has no pinned hash."""
    name = load().name
    done = _pip(f"{name}=={version}", folder)
    found = sorted(folder.glob("*.tar.gz"))
    if done.returncode != 0 or not found:
        raise BuildError(
            f"`{version}` is neither a file nor a version of {name} that pip can fetch; its last "
            f"words:\n{done.stderr.strip()[-2000:]}"
        )
    return found[0]


def _pip_download(upstream: Upstream, folder: Path) -> subprocess.CompletedProcess[str]:
    wanted = f"{upstream.name}=={upstream.version} --hash=sha256:{upstream.sha256}"
    return _pip(wanted, folder, "--require-hashes")


def _pip(wanted: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """pip, so that the user's index, proxy and certificates count.

    pip asks a source distribution for its metadata even with `--no-deps`. Without build
    isolation that hook runs on the scikit-build-core at hand (it only reads pyproject.toml)
    instead of fetching another one; with a hash pip checks the file before running it.
    """
    file = folder / "wanted.txt"
    file.write_text(f"{wanted}\n")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--no-deps", "--no-build-isolation", "--no-binary", wanted.partition("=")[0]]
    command += [*options, "--retries", "3", "--dest", str(folder), "-r", str(file)]
    return subprocess.run(command, text=True, capture_output=True, check=False)


def unpack(upstream: Upstream) -> Path:
    """The unpacked, untouched tree (the folder that holds `vendor/llama.cpp`)."""
    pristine = upstream.home / "pristine"
    if pristine.is_dir():
        return pristine
    archive = fetch(upstream)
    part = pristine.with_name("pristine.part")
    shutil.rmtree(part, ignore_errors=True)
    extract(archive, part)
    part.replace(pristine)
    return pristine


def extract(archive: Path, folder: Path) -> None:
    """The files of a source distribution, without its top folder and what is never built."""
    folder.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            inside = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None and ".." not in inside.parts and not _left_out(inside):
                (folder / inside).parent.mkdir(parents=True, exist_ok=True)
                (folder / inside).write_bytes(content.read())


def _left_out(inside: PurePosixPath) -> bool:
    return ".git" in inside.parts or any(inside.is_relative_to(path) for path in LEFT_OUT)


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
