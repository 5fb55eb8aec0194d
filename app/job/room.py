"""Will it fit? Bytes that are needed and free, file system by file system."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import NoSpaceError
from app.files import existing
from app.job.state import size

_BITS: Final = {
    "f32": 32.0, "f16": 16.0, "bf16": 16.0, "q8_0": 8.5, "q6_k": 6.6, "q5_k_m": 5.9, "q4_k_m": 5.1,
}  # fmt: skip
"""Of a weight, with what is stored higher in a mixture."""


@dataclass(frozen=True, slots=True)
class Need:
    """`bytes` more in `folder`, for `what`."""

    folder: Path
    bytes: int
    what: str


def converted_bytes(source_bytes: int, weight_type: str) -> int:
    """At most so many from a checkpoint in 16 bits; also its vision tower is counted, which
    is left out."""
    return round(source_bytes * _BITS.get(weight_type, 32.0) / 16.0)


def check_room(needs: Iterable[Need], margin: int) -> None:
    """Raise `NoSpaceError` unless everything fits, with `margin` bytes to spare on each disk."""
    by_disk: dict[int, list[Need]] = defaultdict(list)
    for need in needs:
        by_disk[existing(need.folder).stat().st_dev].append(need)
    for together in by_disk.values():
        total = sum(need.bytes for need in together)
        place = existing(together[0].folder)
        free = shutil.disk_usage(place).free
        if total + margin <= free or total == 0:
            continue
        parts = " and ".join(f"{size(need.bytes)} {need.what}" for need in together if need.bytes)
        raise NoSpaceError(
            f"The disk of `{together[0].folder}` has {size(free)} free, but {size(total + margin)} "
            f"are needed: {parts}, and {size(margin)} to spare.",
            remedy="Free some space, or choose another folder for models.",
        )
