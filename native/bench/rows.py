"""One form for every figure: base, ours, their ratio, and the machine that gave it."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """`wanted` is for people and stands only in the table."""

    name: str
    unit: str
    base: float | None
    ours: float | None
    machine: str
    wanted: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.base if self.ours is not None and self.base else None

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "base": _rounded(self.base),
            "ours": _rounded(self.ours),
            "ratio": _rounded(self.ratio),
            "machine": self.machine,
        }


def table(rows: list[Row]) -> str:
    """As in native/README.md."""
    cells = [["what", "base", "ours", "ratio", "wanted", "machine"]]
    for row in rows:
        figures = [_text(row.base, row.unit), _text(row.ours, row.unit), _text(row.ratio)]
        cells.append([row.name, *figures, row.wanted, row.machine])
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    cells.insert(1, ["-" * width for width in widths])
    padded = [[c.ljust(width) for c, width in zip(line, widths, strict=True)] for line in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


@cache
def gpu() -> str | None:
    names = _nvidia_smi("name")
    return names[0] if names else None


def device_memory() -> float:
    """MiB in use on the first NVIDIA device, by whomever."""
    return float(_nvidia_smi("memory.used")[0])


def processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.is_file() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def progress(text: str) -> None:
    """On stderr: stdout is for the result."""
    print(text, file=sys.stderr, flush=True)


def _nvidia_smi(field: str) -> list[str]:
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return done.stdout.split("\n")


def _text(value: float | None, unit: str = "") -> str:
    if value is None:
        return "—"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} {unit}".strip()


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
