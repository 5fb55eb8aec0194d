"""Writing a GGUF file tensor by tensor, and looking at it again."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from gguf import GGUFWriter

from app.convert.encoder import Encoder, Loss
from app.convert.gguf_table import ALIGNMENT, read_table
from app.convert.outline import Planned
from app.convert.part_file import PartFile, output_errors
from app.convert.watch import Watch
from app.errors import OutputError

_log = logging.getLogger(__name__)

_HEADER_SLACK: Final = 1 << 20  # bytes for settings, names and the chat template


@dataclass(frozen=True, slots=True)
class FilePlan:
    """All of a file but the numbers: nothing is opened for writing before this exists."""

    header: GGUFWriter  # holds keys only; not bound to a file yet
    tensors: list[Planned]
    tokenizer_bytes: int  # size of tokenizer.json, which bounds its size in GGUF

    @property
    def data_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def room(self) -> int:
        """Bytes of disk that are surely enough."""
        padding = ALIGNMENT * len(self.tensors)
        return self.data_bytes + padding + 2 * self.tokenizer_bytes + _HEADER_SLACK


@dataclass(frozen=True, slots=True)
class TensorError:
    """What storing did to one tensor."""

    name: str
    kind: str  # ggml's type
    error: float  # root mean square of what was lost, over that of the numbers


def fill(
    part: PartFile, plan: FilePlan, encoder: Encoder, watch: Watch
) -> tuple[str, tuple[TensorError, ...]]:
    """Write and check the whole file: its sha256, and the loss of each tensor that lost something.

    Raises `OutputError`, `JobCancelled`, and what `Encoder.encoded` raises.
    """
    errors = []
    watch.check()
    with output_errors(part.final):
        _write_header(part.path, plan)
        digest = sha256(part.path.read_bytes())
        stream = part.path.open("ab")
    with stream:
        _append(stream, digest, bytes(-stream.tell() % ALIGNMENT), part.final)
        for tensor in plan.tensors:
            _log.debug("%s -> %s %s", tensor.source.name, tensor.name, tensor.kind.name)
            loss = Loss()
            for piece in encoder.encoded(tensor, loss):
                _append(stream, digest, piece.data.cast("B"), part.final)
                watch.step(piece.nbytes, tensor.name)
            _append(stream, digest, bytes(-tensor.bytes % ALIGNMENT), part.final)
            if loss.error:
                errors.append(TensorError(tensor.name, tensor.kind.name, loss.relative))
        with output_errors(part.final):
            stream.flush()
            os.fsync(stream.fileno())
    _check(part, plan)
    return digest.hexdigest(), tuple(errors)


def _write_header(path: Path, plan: FilePlan) -> None:
    header = plan.header
    for tensor in plan.tensors:
        # The type given last decides; float32 only says that the shape is that of numbers.
        header.add_tensor_info(
            tensor.name, tensor.shape, np.dtype(np.float32), tensor.bytes, tensor.kind
        )
    try:
        header.write_header_to_file(path)
        header.write_kv_data_to_file()
        header.write_ti_data_to_file()
    finally:
        header.close()


def _append(stream: IO[bytes], digest: Any, data: bytes | memoryview, final: Path) -> None:
    # Reading the source fails in other words, so only this is about the output.
    with output_errors(final):
        stream.write(data)
    digest.update(data)


def _check(part: PartFile, plan: FilePlan) -> None:
    """Read the file back as a loader would. Raises `OutputError` if it is not as planned."""
    wanted = [(tensor.name, tensor.shape, tensor.kind) for tensor in plan.tensors]
    try:
        table = read_table(part.path)
    except ValueError:
        table = []
    found = [(entry.name, entry.shape, entry.kind) for entry in table]
    end = table[-1].offset + plan.tensors[-1].bytes if table else 0
    if found != wanted or end + -end % ALIGNMENT != part.path.stat().st_size:
        raise OutputError(
            f"`{part.final}` was not written as planned: what was read back differs.",
            remedy="Check the disk, then convert again.",
        )
