"""The installed app in systems that have nothing else: `python3 dev.py smoke`, as root on Linux.

In each system (a debootstrap in a chroot, without Python and compiler) an older version
is installed, clicked through as a person would, replaced by the package of `dist/`, which has to
know the chat, and removed; then the `tar.zst` is installed and removed by its scripts. The app
runs as a user whose home has spaces and umlauts, from another folder, its streams closed.

The screen is an X server of this machine, and its accessibility bus tells what is on view; both
are reached through the network namespace and a folder that is mounted at the same place inside.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from app.conversation import Conversation, End
from app.history import Codec, exchange
from installers.slipstream_package import elf
from tests.ui.desktop.session import found, until
from tests.ui.desktop.tree import Bus, Node

ROOT: Final = Path(__file__).resolve().parents[1]
DEBIAN: Final = "http://deb.debian.org/debian"
UBUNTU: Final = "http://archive.ubuntu.com/ubuntu"
SYSTEMS: Final = {"bookworm": DEBIAN, "trixie": DEBIAN, "noble": UBUNTU}  # by code name
# Whose keys Ubuntu's archive is signed with, which Debian has no package of.
KEYRING: Final = f"{UBUNTU}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
KEYRING_SHA256: Final = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
USER: Final = 1000
HOME: Final = "/home/Jörg Müller und Söhne"
LIB: Final = "usr/lib/slipstream"
OLD: Final = "0.0.1"
QUESTION: Final = "List the planets"  # a suggestion of the window
PLANETS: Final = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
# Data of packages that no import shows; without them every formula stays its source.
FORMULAS: Final = ("ziamath/fonts/STIXTwoMath-Regular.ttf", "ziafont/fonts/DejaVuSans.ttf",
                   "latex2mathml/unimathsymbols.txt")  # fmt: skip
# Of an exported chat, whose answer has a formula by itself and one within a line.
CHAT: Final = f"{HOME}/Jörgs Brüche.slipstream.json"
FRACTIONS: Final = "Both:\n\n$$\\frac{a}{b}$$\n\nand $x^2$ too."
SET: Final = "\ufffc"  # what stands for an object in a text
DRIVER: Final = ("libvulkan1", "mesa-vulkan-drivers")
# Its renderer by software, for a card: the engine takes it where it is told to.
CARD: Final = {"GGML_VK_VISIBLE_DEVICES": "0"}
COMPILING_S: Final = 300  # it compiles each shader first, a minute of a core
BACKENDS: Final = "_internal/llama_cpp/lib/backends"
# Where a user's files may lie, below the home.
XDG: Final = (".config/slipstream", ".cache/slipstream", ".local/share/slipstream",
              ".local/state/slipstream")  # fmt: skip
# Shared by all programs of a desktop, made by libraries that we use.
SHARED: Final = (".cache/fontconfig", ".cache/mesa_shader_cache", ".cache/mesa_shader_cache_db")


@dataclass
class Report:
    """What held in one system, and figures."""

    system: str
    checks: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def check(self, name: str, holds: object, detail: object = "") -> None:
        self.checks.append({"name": name, "ok": bool(holds), "detail": str(detail)[:20_000]})
        told = "ok    " if holds else "FAILED"
        line = f"{self.system}: {told} {name}" + (f": {detail}" if detail else "")
        print(line[:400], file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """What raises in it failed; the rest is tried all the same."""
        try:
            yield
        except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as error:
            self.check(name, False, f"{type(error).__name__}: {error}")


class System:
    """A chroot of its own, thrown away at the end. `base` is what debootstrap made."""

    def __init__(self, base: Path, root: Path) -> None:
        self.root = root
        self._base = base
        self._mounted: list[Path] = []

    def lay(self) -> None:
        """Makes it; `close` is to be called whatever becomes of that."""
        root = self.root
        subprocess.run(["cp", "-a", "--reflink=auto", str(self._base), str(root)], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        # Services are not started by packages that bring some.
        policy = root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        self.mount(Path("/proc"), "proc")
        self.mount(Path("/dev"), "dev")
        home = root / HOME.lstrip("/")
        home.mkdir(parents=True)
        os.chown(home, USER, USER)
        (root / "etc/passwd").open("a").write(f"joerg:x:{USER}:{USER}::{HOME}:/bin/sh\n")
        (root / "etc/group").open("a").write(f"joerg:x:{USER}:\n")

    def mount(self, source: Path, inside: str) -> None:
        place = self.root / inside.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        self._mounted.append(place)  # first: between the two a signal may end us
        subprocess.run(["mount", "--bind", str(source), str(place)], check=True)

    def close(self) -> None:
        for place in reversed(self._mounted):
            if is_mounted(place):
                subprocess.run(["umount", "-l", str(place)], check=False)
        if still := list(filter(is_mounted, self._mounted)):
            print(f"still mounted, so {self.root} stays: {still}", file=sys.stderr, flush=True)
            return
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.root)], check=False)

    def asks(
        self, *command: str, user: bool = False, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """`command` in the system, with what it says; `more` is of its environment."""
        return subprocess.run(
            self.command(command, user=user),
            env=self.environment(user) | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=1200,
            check=False,
        )

    def command(self, command: Sequence[str], *, user: bool = False) -> list[str]:
        as_user = [f"--userspec={USER}:{USER}"] if user else []
        return ["chroot", *as_user, str(self.root), *command]

    def inside(self, path: Path) -> str:
        """Where it lies for a program of the system."""
        return f"/{path.relative_to(self.root)}"

    def environment(self, user: bool) -> dict[str, str]:
        """No locale: a bare system has none."""
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        known = {"PATH": path, "DEBIAN_FRONTEND": "noninteractive"}
        return known | {"HOME": HOME if user else "/root"}

    def newer(self, stamp: Path) -> list[str]:
        """Files that were written since, wherever they lie."""
        command = ["find", str(self.root), "-xdev", "-newer", str(stamp), "!", "-type", "d"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [line.removeprefix(str(self.root)) for line in told.splitlines()]


def is_mounted(place: Path) -> bool:
    """Also where a folder of the same device is mounted, which `os.path.ismount` takes for none."""
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    return str(place.resolve()) in [row.split()[4] for row in rows]


class Screen:
    """X server, session bus and accessibility bus of the user, in a folder that is at one place
    inside and outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[str]] = []
        folder.chmod(0o700)
        os.chown(folder, USER, USER)
        self.environment = {"XDG_RUNTIME_DIR": str(folder), "PATH": os.environ["PATH"]}
        read, write = os.pipe()
        self.start(["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten",
                    "tcp", "-listen", "unix"], pass_fds=(write,))  # fmt: skip
        os.close(write)
        with os.fdopen(read) as told:
            self.environment["DISPLAY"] = f":{told.readline().strip()}"
        bus = self.start(
            ["dbus-daemon", "--session", "--nofork", "--print-address", "--address",
             f"unix:path={folder}/bus"], stdout=subprocess.PIPE,
        )  # fmt: skip
        assert bus.stdout is not None
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        self.environment["QT_LINUX_ACCESSIBILITY_ALWAYS_ON"] = "1"
        self.start([found("at-spi-bus-launcher") or "at-spi-bus-launcher", "--launch-immediately"])
        with as_user():
            self.bus = until(self._connect, "the accessibility bus")

    def _connect(self) -> Bus | None:
        try:
            return Bus(self.environment["DBUS_SESSION_BUS_ADDRESS"])
        except (OSError, RuntimeError):
            return None

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """As the user."""
        process: subprocess.Popen[str] = subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=options.pop("stdout", subprocess.DEVNULL),
            stderr=subprocess.DEVNULL,
            text=True,
            cwd="/",
            user=USER,
            group=USER,
            extra_groups=[],
            **options,
        )
        self._running.append(process)
        return process

    def xdotool(self, *arguments: str) -> str:
        done = subprocess.run(
            ["xdotool", *arguments], env=self.environment, capture_output=True, text=True,
            check=False, timeout=90,
        )  # fmt: skip
        return done.stdout.strip()

    def picture(self, file: Path) -> None:
        """What is on the screen, where ImageMagick is."""
        if shutil.which("import"):
            subprocess.run(
                ["import", "-window", "root", str(file)], env=self.environment, check=False
            )

    def close(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self.bus.close()
        for process in reversed(self._running):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextlib.contextmanager
def as_user() -> Iterator[None]:
    """A bus takes its own user alone."""
    os.setegid(USER)
    os.seteuid(USER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class App:
    """The window, as a desktop starts it: from another folder, all three streams closed."""

    def __init__(self, system: System, screen: Screen, *arguments: str, **more: str) -> None:
        """`more` is of its environment."""
        self.screen = screen
        environment = system.environment(user=True) | screen.environment | more
        environment |= {"PATH": system.environment(True)["PATH"]}
        script = f"cd /usr/share && exec {shlex.join(['slipstream', *arguments])} <&- >&- 2>&-"
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            system.command(["/bin/sh", "-c", script], user=True),
            env=environment,
            start_new_session=True,
        )
        self.root: Node

    def window(self) -> float:
        """Seconds from the start to a window that can be seen."""

        def look() -> list[str]:
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with status {self.process.returncode}")
            # Not its own `--sync`: it gives up where another window goes while it looks.
            return self.screen.xdotool("search", "--onlyvisible", "--name", "^Slipstream$").split()

        seen = until(look, "a window")
        shown = time.monotonic() - self.started
        self.screen.xdotool("windowfocus", "--sync", seen[0])
        self.root = until(self._root, "the window on the accessibility bus")
        return shown

    def _root(self) -> Node | None:
        for application in self.screen.bus.applications():
            for child in application.children:
                if child.name == "Slipstream":
                    return child
        return None

    def find(self, name: str, role: str = "") -> Node:
        def look() -> Node | None:
            with contextlib.suppress(RuntimeError):  # what went away while it was asked
                return self.root.find(name, role)
            return None

        return until(look, f"{role} {name}".strip())

    def click(self, name: str, role: str = "") -> None:
        """With the mouse, on its middle."""
        self._click(self.find(name, role))

    def _click(self, node: Node) -> None:
        x, y, width, height = self.screen.bus.call(
            node, "org.a11y.atspi.Component", "GetExtents", "u", 0
        )[0]
        middle = (str(x + width // 2), str(y + height // 2))
        self.screen.xdotool("mousemove", *middle, "click", "1")

    def device(self, kind: str) -> Node:
        """The part of the switch for "CPU" or "GPU", behind which the device's name may stand."""

        def look() -> Node | None:
            with contextlib.suppress(RuntimeError):
                return next(
                    (n for n in self.root.walk() if n.name.startswith(f"Device: {kind}")), None
                )
            return None

        return until(look, f"the switch's {kind}")

    def choose_device(self, kind: str) -> None:
        """With the mouse, once it can be; there when the model is loaded there."""
        until(lambda: "sensitive" in self.device(kind).states, f"a {kind} that can be chosen")
        self._click(self.device(kind))
        # A card's shaders are compiled before it answers for the first time.
        until(lambda: "checked" in self.device(kind).states, f"a model on the {kind}", COMPILING_S)
        until(lambda: self.root.find("State: DFlash ready"), "a model that is loaded", COMPILING_S)

    def answer(self) -> str:
        node = self.find("Answer")
        with contextlib.suppress(RuntimeError):
            return node.text
        return ""

    def gone(self, seconds: float = 20) -> int | None:
        """Its exit status, once it has ended by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev.py smoke", description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="by code name (%(default)s)")
    parser.add_argument("--deb", type=Path, help="instead of the one in dist/")
    parser.add_argument("--tar", type=Path, help="instead of the one in dist/")
    parser.add_argument("--cache", type=Path, required=True, help="where bare systems are kept")
    parser.add_argument("--no-metadata", action="store_true", help="only what runs in the systems")
    parser.add_argument("--report", type=Path, help="write what held as JSON there")
    parser.add_argument("--pictures", type=Path, help="pictures of the screen, into this folder")
    args = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("a chroot needs root")
    deb = args.deb or _only(ROOT / "dist", "slipstream_*_amd64.deb")
    packed = args.tar or _only(ROOT / "dist", "slipstream-*-linux-x86_64.tar.zst")
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    # Mounts are taken away on every way out.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda told, _: sys.exit(128 + told))
    reports: list[Report] = []
    if not args.no_metadata:
        reports.append(metadata := Report("metadata"))
        with metadata.step("metadata"):
            look_at_metadata(metadata, deb)
    for name in filter(None, args.systems.split(",")):
        report = Report(name)
        reports.append(report)
        # Times tell little where others compute meanwhile.
        report.figures["loadavg"] = [round(load, 1) for load in os.getloadavg()]
        with report.step("the system"):
            try_in(report, debootstrap(args.cache, name), deb, packed, args.pictures)
    failed = [check for report in reports for check in report.checks if not check["ok"]]
    value = {
        "ok": not failed,
        "systems": [{"name": r.system, "checks": r.checks, "figures": r.figures} for r in reports],
    }
    if args.report:
        args.report.write_text(json.dumps(value, indent=1), encoding="utf-8")
    print(json.dumps({"ok": value["ok"], **{r.system: r.figures for r in reports}}))
    return 1 if failed else 0


def _only(folder: Path, pattern: str) -> Path:
    # By numbers: as text 0.9 is above 0.10.
    files = sorted(folder.glob(pattern), key=lambda f: [int(n) for n in re.findall(r"\d+", f.name)])
    if not files:
        raise SystemExit(f"there is no {pattern} in {folder}: python3 dev.py package")
    return files[-1]


def debootstrap(cache: Path, name: str) -> Path:
    base = cache / name
    if not base.is_dir():
        part = cache / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase"]
        if SYSTEMS[name] == UBUNTU:
            command += [f"--keyring={ubuntu_keyring(cache)}", "--components=main,universe"]
        command += [name, str(part), SYSTEMS[name]]
        if not Path("/usr/share/debootstrap/scripts", name).exists():
            command.append("gutsy")  # Ubuntu's of every name, which Debian's may not know
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        part.rename(base)
    return base


def ubuntu_keyring(cache: Path) -> Path:
    with urlopen(KEYRING, timeout=60) as answer:
        content: bytes = answer.read()
    if hashlib.sha256(content).hexdigest() != KEYRING_SHA256:
        raise RuntimeError(f"{KEYRING} is not what it was")
    with tempfile.NamedTemporaryFile(suffix=".deb") as package:
        package.write(content)
        package.flush()
        folder = cache / "ubuntu-keyring"
        subprocess.run(["dpkg-deb", "-x", package.name, str(folder)], check=True)
    return folder / "usr/share/keyrings/ubuntu-archive-keyring.gpg"


def look_at_metadata(report: Report, deb: Path) -> None:
    """What Debian's own tools say of the package, on this machine."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["dpkg-deb", "-x", str(deb), work], check=True)
        share = Path(work, "usr/share")
        (entry,) = (share / "applications").glob("*.desktop")
        (about,) = (share / "metainfo").glob("*.xml")
        for name, command in {
            "desktop-file-validate": ["desktop-file-validate", str(entry)],
            "appstreamcli validate": ["appstreamcli", "validate", "--no-net", str(about)],
        }.items():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            report.check(name, done.returncode == 0, done.stdout.strip() or done.stderr.strip())
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", str(deb)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    report.check("lintian", done.returncode == 0, done.stdout.strip())


def try_in(report: Report, base: Path, deb: Path, packed: Path, pictures: Path | None) -> None:
    with contextlib.ExitStack() as stack:
        # Sockets lie in it, whose paths must be short.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slip-")))
        system = System(base, folder.with_name(folder.name + "-root"))
        stack.callback(system.close)
        system.lay()
        # Below /run, which is nobody's: what is written there is not the app's.
        system.mount(folder, str(folder))
        screen = Screen(folder)
        stack.callback(screen.close)
        bare(report, system)
        older = repacked(deb, system.root / "root")
        install(report, system, older, "an older version")
        with report.step("a library that is missing"):
            names_what_is_missing(report, system)
        with report.step("the first start"):
            first_start(report, system, screen, pictures)
        install(report, system, Path(shutil.copy(deb, system.root / "root")), "the upgrade")
        with report.step("ldd"):
            look_at_libraries(report, system)
        with report.step("commands"):
            commands(report, system)
        with report.step("the upgrade"):
            knows_the_chat(report, system, screen, pictures)
        with report.step("a formula"):
            sets_formulas(report, system, screen, pictures)
        with report.step("a graphics card"):
            on_a_card(report, system, screen, pictures)
        with report.step("Wayland"):
            on_wayland(report, system, screen)
        with report.step("removal"):
            removal(report, system)
        with report.step("tar.zst"):
            relocatable(report, system, packed)
    report.check("nothing of the system is left", not system.root.exists())


def bare(report: Report, system: System) -> None:
    there = [n for n in ("python3", "python", "gcc", "cc", "c++", "pip") if _has(system, n)]
    report.check("neither Python nor a compiler", not there, ", ".join(there))
    done = system.asks("apt-get", "update", "-qq")
    report.check("apt-get update", done.returncode == 0, done.stderr.strip())


def _has(system: System, program: str) -> bool:
    return any((system.root / folder / program).exists() for folder in ("usr/bin", "usr/local/bin"))


def repacked(deb: Path, folder: Path) -> Path:
    """The package as an older version: there is none that was published."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["dpkg-deb", "-R", str(deb), f"{work}/p"], check=True)
        control = Path(work, "p/DEBIAN/control")
        text = re.sub(r"^Version: .*$", f"Version: {OLD}", control.read_text(), flags=re.M)
        control.write_text(text)
        made = folder / f"slipstream_{OLD}_amd64.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "-b", f"{work}/p", str(made)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return made


def install(report: Report, system: System, deb: Path, what: str) -> None:
    started = time.monotonic()
    done = system.asks(
        "apt-get", "install", "-y", "-qq", "--no-install-recommends", system.inside(deb)
    )
    told = "" if done.returncode == 0 else f"{done.stdout}\n{done.stderr}".strip()[-1500:]
    report.check(f"apt-get install: {what}", done.returncode == 0, told)
    report.figures[f"install_s ({what})"] = round(time.monotonic() - started, 1)
    deb.unlink()


def names_what_is_missing(report: Report, system: System) -> None:
    """C40: whoever has to install it reads which."""
    library = next(system.root.glob("usr/lib/*/libEGL.so.1"))
    away = library.with_name("libEGL.away")
    library.rename(away)
    try:
        done = system.asks("slipstream", user=True)
    finally:
        away.rename(library)
    told = done.stderr.strip()
    report.check("a missing library is named", "libEGL.so.1" in told, told.splitlines()[-1:])


def first_start(report: Report, system: System, screen: Screen, pictures: Path | None) -> None:
    with watched(report, system, "the window"):
        app = App(system, screen)
        try:
            report.figures["window_s"] = round(app.window(), 2)
            app.click(f"Ask: {QUESTION}", "push button")
            until(app.answer, "the first token")
            report.figures["first_token_s"] = round(time.monotonic() - app.started, 2)
            until(lambda: all(planet in app.answer() for planet in PLANETS), "the planets")
            report.check("a suggestion is answered rightly", True, app.answer())
            if pictures:
                screen.picture(pictures / f"{report.system}-answer.png")
            app.click("Settings (Ctrl+,)")
            app.find("Settings")
            app.find("Theme: Dark")
            if pictures:
                screen.picture(pictures / f"{report.system}-settings.png")
            screen.xdotool("key", "Escape")
            screen.xdotool("key", "ctrl+shift+m")
            app.find("Models")
            app.find("Get: Qwen3.5-4B")
            report.check("settings and models are shown", True)
            if pictures:
                screen.picture(pictures / f"{report.system}-models.png")
            screen.xdotool("key", "Escape")
            screen.xdotool("key", "ctrl+q")
            report.check("quit ends it with status 0", app.gone() == 0, app.process.poll())
        finally:
            app.close()


def forget(folder: Path) -> None:
    """Have the system read these files from the disk again: it keeps what was read in memory."""
    os.sync()
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


@contextlib.contextmanager
def watched(report: Report, system: System, what: str) -> Iterator[None]:
    """Nothing is written but where the user's files belong."""
    stamp = system.root / "root" / "stamp"
    time.sleep(0.1)  # what was written before is older, by whichever clock the files have
    stamp.touch()
    time.sleep(0.1)
    yield
    allowed = tuple(f"{HOME}/{place}/" for place in (*XDG, *SHARED))
    outside = [path for path in system.newer(stamp) if not path.startswith(allowed)]
    outside = [path for path in outside if path != "/root/stamp"]
    report.check(f"{what} writes into the user's folders alone", not outside, outside[:20])


def look_at_libraries(report: Report, system: System) -> None:
    missing = []
    for file in elf.files(system.root / LIB):
        # As the program has it that starts all: its own folder before the system's.
        own = f"LD_LIBRARY_PATH={system.inside(system.root / LIB / '_internal')}"
        done = system.asks("env", own, "ldd", system.inside(file))
        missing += [
            f"{file.name}: {line.split()[0]}"
            for line in done.stdout.splitlines()
            # the driver of a graphics card, which a bare system has not
            if "not found" in line and "libvulkan" not in line
        ]
    report.check("ldd finds every library", not missing, missing[:20])
    folder = system.root / LIB
    dangling = [str(path.relative_to(folder)) for path in folder.rglob("*")
                if path.is_symlink() and not path.exists()]  # fmt: skip
    report.check("every link leads somewhere", not dangling, dangling[:20])
    lacking = [place for place in FORMULAS if not (folder / "_internal" / place).is_file()]
    report.check("what formulas are set with is there", not lacking, lacking)


def commands(report: Report, system: System) -> None:
    with watched(report, system, "a command"):
        for name, holds in COMMANDS.items():
            started = time.monotonic()
            done = system.asks("slipstream", *shlex.split(name), "--json", user=True)
            value = json.loads(done.stdout or "{}")
            told = done.stdout[:300] if done.returncode == 0 else (done.stdout + done.stderr)[-800:]
            report.check(f"slipstream {name}", done.returncode == 0 and holds(value), told)
            report.figures[f"{name}_s"] = round(time.monotonic() - started, 2)


COMMANDS: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "selftest": lambda value: value["ok"],
    "devices": lambda value: value["devices"][0]["usable"],
    "models": lambda value: any(m["id"] == "demo" for m in value["models"]),
    f"ask '{QUESTION}'": lambda value: all(planet in value["text"] for planet in PLANETS),
}


def knows_the_chat(report: Report, system: System, screen: Screen, pictures: Path | None) -> None:
    forget(system.root / LIB)  # the package's own; what it links to stays in memory
    app = App(system, screen)
    try:
        report.figures["window_cold_s"] = round(app.window(), 2)
        app.find(QUESTION, "list item")
        if pictures:
            screen.picture(pictures / f"{report.system}-upgraded.png")
        report.check("an upgrade keeps the chats", True)
        screen.xdotool("key", "ctrl+q")
        report.check("quit again", app.gone() == 0, app.process.poll())
    finally:
        app.close()


def sets_formulas(report: Report, system: System, screen: Screen, pictures: Path | None) -> None:
    """An exported chat is opened by its file, and what its answer has of formulas is drawn."""
    chat = Conversation()
    answer = chat.answer(chat.ask("How are fractions set?"))
    answer.text, answer.end = FRACTIONS, End.DONE
    file = system.root / CHAT.lstrip("/")
    codec = Codec(encode=lambda figures: None, decode=lambda table: None)
    exchange.write(file, exchange.as_json(chat, codec))
    os.chown(file, USER, USER)
    app = App(system, screen, CHAT)
    try:
        app.window()
        told = until(lambda: SET in (text := app.answer()) and text, "a formula that is set")
        report.check("a formula is drawn", "frac" not in told and told.count(SET) == 2, repr(told))
        if pictures:
            screen.picture(pictures / f"{report.system}-formula.png")
        screen.xdotool("key", "ctrl+q")
        report.check("quit after a file", app.gone() == 0, app.process.poll())
    finally:
        app.close()
        file.unlink()


def on_a_card(report: Report, system: System, screen: Screen, pictures: Path | None) -> None:
    """Vulkan by Mesa's software renderer: listed, and taken and left by the window's switch."""
    backend = next((system.root / LIB / BACKENDS).glob("libggml-vulkan.so"), None)
    report.check("the package has Vulkan's backend", backend)
    done = system.asks("apt-get", "install", "-y", "-qq", "--no-install-recommends", *DRIVER)
    report.check("apt-get install: a driver", done.returncode == 0, done.stderr.strip()[-500:])
    done = system.asks("slipstream", "devices", "--json", user=True, **CARD)
    cards = [d for d in json.loads(done.stdout)["devices"] if d["kind"] == "gpu" and d["usable"]]
    report.check("a card is listed", cards, cards or done.stdout[:500])
    app = App(system, screen, **CARD)
    try:
        app.window()
        for device in ("GPU", "CPU"):
            screen.xdotool("key", "ctrl+n")
            app.choose_device(device)
            app.click(f"Ask: {QUESTION}", "push button")
            until(
                lambda: all(planet in app.answer() for planet in PLANETS),
                "the planets",
                COMPILING_S,
            )
            report.check(f"the same is answered on the {device}", True, app.device(device).name)
            if pictures:
                screen.picture(pictures / f"{report.system}-{device.lower()}.png")
        screen.xdotool("key", "ctrl+q")
        report.check("quit after a card", app.gone() == 0, app.process.poll())
    finally:
        app.close()


def on_wayland(report: Report, system: System, screen: Screen) -> None:
    """Under a compositor without a screen."""
    if shutil.which("weston") is None:
        report.check("weston is there", False, "apt-get install weston")
        return
    compositor = screen.start(
        ["weston", "--backend=headless-backend.so", "--socket=slip", "--idle-time=0"]
    )
    until((screen.folder / "slip").exists, "a compositor")
    before = dict(screen.environment)
    screen.environment |= {"WAYLAND_DISPLAY": "slip", "QT_QPA_PLATFORM": "wayland"}
    screen.environment.pop("DISPLAY")
    app = App(system, screen)
    try:
        app.root = until(app._root, "the window under Wayland")
        app.find("Your message", "text")
        report.check("the window opens under Wayland", True)
        os.killpg(app.process.pid, signal.SIGTERM)
        report.check("SIGTERM ends it with status 0", app.gone() == 0, app.process.poll())
    finally:
        app.close()
        screen.environment = before
        compositor.terminate()


def add_backend(app: Path, user: int = 0) -> Path:
    """As `slipstream devices --add` would have laid one."""
    folder = app / BACKENDS
    folder.mkdir(exist_ok=True)
    library = folder / "libggml-added.so"
    library.write_text("of no use")
    library.with_suffix(".json").write_text("{}")
    for path in (folder, library, library.with_suffix(".json")):
        os.chown(path, user, user)
    return library


def removal(report: Report, system: System) -> None:
    data = system.root / HOME.lstrip("/")
    listed = system.asks("dpkg", "-L", "slipstream").stdout.splitlines()
    files = [Path(line) for line in listed if not (system.root / line.lstrip("/")).is_dir()]
    kept = {path for place in XDG for path in (data / place).rglob("*")}
    add_backend(system.root / LIB)
    done = system.asks("apt-get", "purge", "-y", "-qq", "slipstream")
    left = [str(f) for f in files if (system.root / str(f).lstrip("/")).is_symlink()
            or (system.root / str(f).lstrip("/")).exists()]  # fmt: skip
    left += [LIB] if (system.root / LIB).exists() else []
    report.check("removal leaves nothing of the package", done.returncode == 0 and not left, left)
    chats = data / XDG[2] / "chats.db"
    gone = [str(path) for path in kept if not path.exists()]
    report.check("removal leaves the user's data", chats.is_file() and not gone, gone)


def relocatable(report: Report, system: System, packed: Path) -> None:
    """By its scripts, into the user's own folder, and started from where it lies."""
    home = system.root / HOME.lstrip("/")
    # The libraries that the package's Depends had brought are still there.
    subprocess.run(["tar", "--zstd", "-xf", str(packed), "-C", str(home)], check=True)
    (unpacked,) = home.glob("slipstream-*-linux-x86_64")
    inside = f"{HOME}/{unpacked.name}"
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(unpacked)], check=True)
    done = system.asks(f"{inside}/slipstream", "selftest", "--quick", "--json", user=True)
    report.check("the folder runs where it lies", done.returncode == 0, done.stderr[-500:])
    before = {path for path in home.rglob("*") if not _below(path, home, XDG)}
    done = system.asks(f"{inside}/install.sh", user=True)
    report.check("install.sh", done.returncode == 0, (done.stdout + done.stderr).strip()[-800:])
    program = f"{HOME}/.local/bin/slipstream"
    done = system.asks(program, "devices", "--json", user=True)
    report.check("the installed program runs", done.returncode == 0, done.stderr[-500:])
    (entry,) = (home / ".local/share/applications").glob("*.desktop")
    report.check("its entry names it", f'Exec="{program}" %F' in entry.read_text("utf-8"))
    added = add_backend(home / ".local/lib/slipstream", USER)
    done = system.asks(f"{inside}/install.sh", user=True)
    kept = done.returncode == 0 and added.is_file()
    report.check("install.sh over it keeps a backend that was added", kept, done.stderr)
    done = system.asks(f"{HOME}/.local/lib/slipstream/uninstall.sh", user=True)
    left = [
        str(path.relative_to(home))
        for path in home.rglob("*")
        if not _below(path, home, XDG) and path not in before and not path.is_dir()
        and not path.match("mime/*")  # the system's index of types, which others use too
        and path.name != "mimeinfo.cache"
    ]  # fmt: skip
    report.check("uninstall.sh leaves nothing", done.returncode == 0 and not left, left[:20])
    everybodys(report, system, inside)


def everybodys(report: Report, system: System, inside: str) -> None:
    """Put there by an administrator whose own files nobody else reads."""
    script = f'umask 077; exec "{inside}/install.sh" --system'
    done = system.asks("env", "-u", "HOME", "sh", "-c", script)
    report.check("install.sh --system", done.returncode == 0, done.stderr.strip()[-800:])
    program = "/usr/local/bin/slipstream"
    done = system.asks(program, "devices", "--json", user=True)
    report.check("others can start it", done.returncode == 0, done.stderr[-500:])
    done = system.asks("/usr/local/lib/slipstream/uninstall.sh")
    left = [str(path) for path in (system.root / "usr/local").rglob("*slipstream*")]
    report.check("uninstall.sh leaves nothing there", done.returncode == 0 and not left, left)


def _below(path: Path, home: Path, places: Sequence[str]) -> bool:
    return any(path.is_relative_to(home / place) for place in places)


if __name__ == "__main__":
    sys.exit(main())
