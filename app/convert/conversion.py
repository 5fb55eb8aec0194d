"""Converting one model or a pair: read, check, plan, and only then write."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from math import prod
from pathlib import Path

from gguf import GGUFWriter

from app.convert import dflash, qwen35
from app.convert.apart import run_apart
from app.convert.checkpoint import Checkpoint, read_config
from app.convert.dflash import DFlash
from app.convert.encoder import Encoder
from app.convert.gguf_file import FilePlan, TensorError, fill
from app.convert.metadata import describe_model, describe_storage, folder_name
from app.convert.mix import Recipe, default_draft_type, default_recipe
from app.convert.outline import plan_tensors
from app.convert.part_file import PartFile, check_room
from app.convert.passport import Passport, fingerprint
from app.convert.qwen35 import Qwen35
from app.convert.qwen35_tensors import expected_tensors, text_part
from app.convert.tokenizer import FILE as TOKENIZER_FILE
from app.convert.tokenizer import Tokenizer
from app.convert.verify import verify_tokens
from app.convert.watch import OnBytes, Watch
from app.convert.weights import WeightType
from app.jobs import CancelToken


@dataclass(frozen=True, slots=True)
class Storage:
    """How one file is stored; `recipe` None is the default of its type."""

    weight_type: WeightType
    recipe: Recipe | None = None

    @property
    def chosen(self) -> Recipe:
        return self.recipe or default_recipe(self.weight_type)


@dataclass(frozen=True, slots=True)
class Converted:
    """A finished GGUF file."""

    path: Path
    bytes: int
    sha256: str
    tensors: int
    seconds: float  # for writing; checks of the source come before
    weight_type: WeightType
    recipe: Recipe
    errors: tuple[TensorError, ...]  # of each tensor whose numbers are not stored as they were


@dataclass(frozen=True, slots=True)
class ConvertedPair:
    target: Converted
    draft: Converted | None


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to write: a checkpoint, the target's whose tokenizer it gets, and where to."""

    source: Path
    target_source: Path | None  # None: it is the target
    output: Path
    storage: Storage

    def plan(self) -> FilePlan:
        if self.target_source is None:
            return _plan_target(self.source, self.storage)
        return _plan_draft(self.source, self.target_source, self.storage)


def convert_target(
    source: Path,
    output: Path,
    weight_type: WeightType,
    *,
    recipe: Recipe | None = None,
    progress: OnBytes | None = None,
    cancelled: CancelToken | None = None,
) -> Converted:
    """Write the text part of the Qwen3.5 checkpoint in the folder `source` to `output`.

    Raises `CheckpointError` or `UnsupportedModelError` for what is wrong with the source,
    `OutputError` if `output` cannot be written, `OptionError` if a weight does not fit
    `weight_type`, `ModelFileError` if the file splits text into other tokens than its source
    does, and `JobCancelled`. In none of these cases `output` exists or changes.
    """
    job = _Job(source, None, output, Storage(WeightType(weight_type), recipe))
    return _convert([job], progress, cancelled)[0]


def convert_draft(
    source: Path,
    target_source: Path,
    output: Path,
    weight_type: WeightType,
    *,
    recipe: Recipe | None = None,
    progress: OnBytes | None = None,
    cancelled: CancelToken | None = None,
) -> Converted:
    """Write the DFlash drafter in `source` to `output`, with the tokenizer of its target.

    Of the target checkpoint only settings and tokenizer are read. Raises what
    `convert_target` raises, and `PairMismatchError` if the two do not belong together.
    """
    job = _Job(source, target_source, output, Storage(WeightType(weight_type), recipe))
    return _convert([job], progress, cancelled)[0]


def convert_pair(
    target: Path,
    draft: Path | None,
    out_dir: Path,
    weight_type: WeightType = WeightType.Q4_K_M,
    *,
    recipe: Recipe | None = None,
    draft_type: WeightType | None = None,
    progress: OnBytes | None = None,
    cancelled: CancelToken | None = None,
) -> ConvertedPair:
    """Write `target-<type>.gguf` and, of a drafter, `draft-<type>.gguf` into `out_dir`.

    `recipe` None is the default of the type, `draft_type` None what suits the target's. Raises
    what `convert_draft` raises. Neither file appears before both are complete.
    """
    jobs = _pair_jobs(target, draft, out_dir, weight_type, recipe, draft_type)
    done = _convert(jobs, progress, cancelled)
    return ConvertedPair(done[0], done[1] if draft else None)


def planned_bytes(
    target: Path,
    draft: Path | None,
    weight_type: WeightType = WeightType.Q4_K_M,
    *,
    recipe: Recipe | None = None,
    draft_type: WeightType | None = None,
) -> int:
    """Bytes of disk that surely suffice for `convert_pair`; raises what that raises at first."""
    jobs = _pair_jobs(target, draft, Path(), weight_type, recipe, draft_type)
    return sum(job.plan().room for job in jobs)


def _pair_jobs(
    target: Path,
    draft: Path | None,
    out_dir: Path,
    weight_type: WeightType,
    recipe: Recipe | None,
    draft_type: WeightType | None,
) -> list[_Job]:
    kind = WeightType(weight_type)
    jobs = [_Job(target, None, out_dir / f"target-{kind}.gguf", Storage(kind, recipe))]
    if draft is not None:
        kind = WeightType(draft_type or default_draft_type(kind))
        jobs.append(_Job(draft, target, out_dir / f"draft-{kind}.gguf", Storage(kind, recipe)))
    return jobs


def _convert(
    jobs: list[_Job], progress: OnBytes | None, cancelled: CancelToken | None
) -> list[Converted]:
    """Where native code works, in a process of its own: a fault there is an error here."""
    if not any(job.storage.weight_type.quantised for job in jobs):
        return _run(jobs, progress, cancelled)
    leftovers = [PartFile(job.output).path for job in jobs]
    return run_apart(_run, jobs, progress, cancelled, leftovers)


def _run(
    jobs: list[_Job], progress: OnBytes | None, cancelled: CancelToken | None
) -> list[Converted]:
    """Write all files under provisional names, then name them."""
    plans = [job.plan() for job in jobs]
    watch = Watch(sum(plan.data_bytes for plan in plans), progress, cancelled)
    watch.check()
    check_room(jobs[0].output.parent, sum(plan.room for plan in plans))
    done = []
    with ExitStack() as stack:
        encoder = stack.enter_context(closing(Encoder(_threads())))
        parts = [stack.enter_context(PartFile(job.output)) for job in jobs]
        for part, plan, job in zip(parts, plans, jobs, strict=True):
            start = time.monotonic()
            digest, errors = fill(part, plan, encoder, watch)
            verify_tokens(job.target_source or job.source, part.path, cancelled)
            done.append(
                Converted(
                    path=job.output,
                    bytes=part.path.stat().st_size,
                    sha256=digest,
                    tensors=len(plan.tensors),
                    seconds=time.monotonic() - start,
                    weight_type=job.storage.weight_type,
                    recipe=job.storage.chosen,
                    errors=errors,
                )
            )
        for part in parts:
            part.commit()
    return done


def _threads() -> int:
    """Half of the cores, so that the window and a chat beside it go on; two at least."""
    return max(2, min(8, (os.cpu_count() or 2) // 2))


def _plan_target(source: Path, storage: Storage) -> FilePlan:
    source = source.absolute()
    checkpoint = Checkpoint.open(source, qwen35.ARCHITECTURES)
    model = Qwen35.read(checkpoint.config)
    tokenizer = Tokenizer.read(source, checkpoint.config, model.vocab)
    found = text_part(checkpoint, tied=model.tied)
    tensors = plan_tensors(
        expected_tensors(model), found, storage.weight_type, storage.chosen, source
    )
    header = GGUFWriter(None, qwen35.ARCH)
    parameters = sum(prod(tensor.shape) for tensor in tensors)
    describe_model(header, source, checkpoint.config, parameters)
    model.describe(header)
    tokenizer.describe(header)
    _passport("target", source, source, model, tokenizer, storage).describe(header)
    describe_storage(header, storage.weight_type)
    return FilePlan(header, tensors, (source / TOKENIZER_FILE).stat().st_size)


def _plan_draft(source: Path, target_source: Path, storage: Storage) -> FilePlan:
    source, target_source = source.absolute(), target_source.absolute()
    checkpoint = Checkpoint.open(source, dflash.ARCHITECTURES)
    model = DFlash.read(checkpoint.config)
    target_config = read_config(target_source, qwen35.ARCHITECTURES)
    target = Qwen35.read(target_config)
    model.check_target(target)
    tokenizer = Tokenizer.read(target_source, target_config, model.vocab)
    found = {name.removeprefix("model."): t for name, t in checkpoint.tensors.items()}
    tensors = plan_tensors(model.tensors(), found, storage.weight_type, storage.chosen, source)
    header = GGUFWriter(None, dflash.ARCH)
    parameters = sum(prod(tensor.shape) for tensor in tensors)
    describe_model(header, source, checkpoint.config, parameters)
    model.describe(header, mrope="mrope_section" in target.rope.values)
    tokenizer.describe(header, mask_token=model.mask_token)
    _passport("draft", source, target_source, target, tokenizer, storage).describe(header)
    describe_storage(header, storage.weight_type)
    return FilePlan(header, tensors, (target_source / TOKENIZER_FILE).stat().st_size)


def _passport(
    role: str,
    source: Path,
    target_source: Path,
    target: Qwen35,
    tokenizer: Tokenizer,
    storage: Storage,
) -> Passport:
    return Passport(
        role=role,
        source=folder_name(source),
        config_sha256=fingerprint(source / "config.json"),
        target_config_sha256=fingerprint(target_source / "config.json"),
        tokenizer_sha256=tokenizer.sha256,
        target_layers=len(target.layer_types),
        target_hidden=target.hidden,
        target_vocab=target.vocab,
        recipe=storage.chosen.value,
    )
