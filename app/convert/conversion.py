"""Converting one model or a pair: read, check, plan, and only then write."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path

from gguf import GGUFWriter

from app.convert import dflash, qwen35
from app.convert.checkpoint import Checkpoint, read_config
from app.convert.dflash import DFlash
from app.convert.gguf_file import FilePlan, fill
from app.convert.metadata import describe_model
from app.convert.outline import plan_tensors
from app.convert.part_file import PartFile, check_room
from app.convert.passport import Passport, fingerprint
from app.convert.qwen35 import Qwen35
from app.convert.qwen35_tensors import expected_tensors, text_part
from app.convert.tokenizer import FILE as TOKENIZER_FILE
from app.convert.tokenizer import Tokenizer
from app.convert.watch import OnBytes, Watch
from app.convert.weights import WeightType
from app.jobs import CancelToken


@dataclass(frozen=True, slots=True)
class Converted:
    """A finished GGUF file."""

    path: Path
    bytes: int
    sha256: str
    tensors: int
    seconds: float  # for writing; checks of the source come before


@dataclass(frozen=True, slots=True)
class ConvertedPair:
    target: Converted
    draft: Converted


def convert_target(
    source: Path,
    output: Path,
    weight_type: WeightType,
    *,
    progress: OnBytes | None = None,
    cancelled: CancelToken | None = None,
) -> Converted:
    """Write the text part of the Qwen3.5 checkpoint in the folder `source` to `output`.

    Raises `CheckpointError` or `UnsupportedModelError` before anything is written,
    `OutputError` if `output` cannot be written, `OptionError` if a weight does not fit
    `weight_type`, and `JobCancelled`. In none of these cases `output` exists or changes.
    """
    plan = _plan_target(source, WeightType(weight_type))
    return _write([(plan, output)], progress, cancelled)[0]


def convert_draft(
    source: Path,
    target_source: Path,
    output: Path,
    weight_type: WeightType,
    *,
    progress: OnBytes | None = None,
    cancelled: CancelToken | None = None,
) -> Converted:
    """Write the DFlash drafter in `source` to `output`, with the tokenizer of its target.

    Of the target checkpoint only settings and tokenizer are read. Raises what
    `convert_target` raises, and `PairMismatchError` if the two do not belong together.
    """
    plan = _plan_draft(source, target_source, WeightType(weight_type))
    return _write([(plan, output)], progress, cancelled)[0]


def convert_pair(
    target: Path,
    draft: Path,
    out_dir: Path,
    weight_type: WeightType,
    *,
    draft_type: WeightType | None = None,
    progress: OnBytes | None = None,
    cancelled: CancelToken | None = None,
) -> ConvertedPair:
    """Write `target-<type>.gguf` and `draft-<type>.gguf` into `out_dir`.

    `draft_type` is `weight_type` unless given. Raises what `convert_draft` raises. Neither
    file appears before both are complete.
    """
    kinds = WeightType(weight_type), WeightType(draft_type or weight_type)
    plans = _plan_target(target, kinds[0]), _plan_draft(draft, target, kinds[1])
    outputs = out_dir / f"target-{kinds[0]}.gguf", out_dir / f"draft-{kinds[1]}.gguf"
    done = _write(list(zip(plans, outputs, strict=True)), progress, cancelled)
    return ConvertedPair(*done)


def _plan_target(source: Path, weight_type: WeightType) -> FilePlan:
    source = source.absolute()
    checkpoint = Checkpoint.open(source, qwen35.ARCHITECTURES)
    model = Qwen35.read(checkpoint.config)
    tokenizer = Tokenizer.read(source, checkpoint.config, model.vocab)
    found = text_part(checkpoint)
    tensors = plan_tensors(expected_tensors(model), found, weight_type, source)
    header = GGUFWriter(None, qwen35.ARCH)
    parameters = sum(prod(tensor.shape) for tensor in tensors)
    describe_model(header, source, checkpoint.config, parameters, weight_type)
    model.describe(header)
    tokenizer.describe(header)
    _passport("target", source, source, model, tokenizer).describe(header)
    return FilePlan(header, tensors, (source / TOKENIZER_FILE).stat().st_size)


def _plan_draft(source: Path, target_source: Path, weight_type: WeightType) -> FilePlan:
    source, target_source = source.absolute(), target_source.absolute()
    checkpoint = Checkpoint.open(source, dflash.ARCHITECTURES)
    model = DFlash.read(checkpoint.config)
    target_config = read_config(target_source, qwen35.ARCHITECTURES)
    target = Qwen35.read(target_config)
    model.check_target(target)
    tokenizer = Tokenizer.read(target_source, target_config, model.vocab)
    found = {name.removeprefix("model."): t for name, t in checkpoint.tensors.items()}
    tensors = plan_tensors(model.tensors(), found, weight_type, source)
    header = GGUFWriter(None, dflash.ARCH)
    parameters = sum(prod(tensor.shape) for tensor in tensors)
    describe_model(header, source, checkpoint.config, parameters, weight_type)
    model.describe(header, mrope="mrope_section" in target.rope.values)
    tokenizer.describe(header, mask_token=model.mask_token)
    _passport("draft", source, target_source, target, tokenizer).describe(header)
    return FilePlan(header, tensors, (target_source / TOKENIZER_FILE).stat().st_size)


def _passport(
    role: str, source: Path, target_source: Path, target: Qwen35, tokenizer: Tokenizer
) -> Passport:
    return Passport(
        role=role,
        source=source.name,
        config_sha256=fingerprint(source / "config.json"),
        target_config_sha256=fingerprint(target_source / "config.json"),
        tokenizer_sha256=tokenizer.sha256,
        target_layers=len(target.layer_types),
        target_hidden=target.hidden,
        target_vocab=target.vocab,
    )


def _write(
    jobs: list[tuple[FilePlan, Path]],
    progress: OnBytes | None,
    cancelled: CancelToken | None,
) -> list[Converted]:
    """Write all files under provisional names, then name them."""
    watch = Watch(sum(plan.data_bytes for plan, _ in jobs), progress, cancelled)
    watch.check()
    check_room(jobs[0][1].parent, sum(plan.room for plan, _ in jobs))
    done = []
    with ExitStack() as stack:
        parts = [stack.enter_context(PartFile(output)) for _, output in jobs]
        for part, (plan, output) in zip(parts, jobs, strict=True):
            start = time.monotonic()
            digest = fill(part, plan, watch)
            size, count = part.path.stat().st_size, len(plan.tensors)
            done.append(Converted(output, size, digest, count, time.monotonic() - start))
        for part in parts:
            part.commit()
    return done
