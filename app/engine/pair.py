"""One loaded pair: the model, its template, what was measured of it. No thread of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app import kept, paths
from app.binding import (
    FASTER,
    DeviceInfo,
    NativePair,
    devices,
    expected_gain,
    preferred_gpu,
    remember_speed,
)
from app.conversation import ChatMessage
from app.engine.acceptance import Acceptance, kind_of
from app.engine.answering import Answering, check_numbers
from app.engine.control import control
from app.engine.key import key_of, models_key_of
from app.engine.lookup import ROWS, Lookup
from app.engine.messages import Control, Event, LoadedModel
from app.engine.params import AskParams, Backend, LoadParams
from app.engine.plain import Plain, PlainSpeed
from app.engine.text import AnswerText
from app.errors import ContextFullError, DeviceError, valid_text
from app.jobs import JobCancelled

if TYPE_CHECKING:
    from app.engine.prompt import Prompt, PromptWriter

_LAST_THOUGHT: Final = (
    "\n\nConsidering the limited time by the user, I have to give the solution based on the "
    "thinking directly now.\n"
)
"""With which thinking is cut short, as the model's makers do: Qwen3 Technical Report
(arXiv:2505.09388), section 4.3."""
_PROBE_TEXT: Final = "The quick brown fox jumps over the lazy dog. "
_PROBE_STEPS: Final = (4, 48)  # at least, at most
_PROBE_SECONDS: Final = 0.5
_COUNTED: Final = 1 << 20  # tokens that are counted at most
_SLOWER: Final = "The only GPU is a software renderer, slower than the CPU."
_FEW: Final = 0.25
"""Of a model's layers. With fewer on a graphics card not more than that of a step could be saved,
took they no time at all there; the way to it and back takes of that, and the card's memory is
wanted by others."""

OnProgress = Callable[[float], bool]  # 0 to 1; False stops


class LoadedPair:
    """A loaded pair. Methods raise the errors of `app.errors`, or `JobCancelled`."""

    def __init__(self, params: LoadParams, progress: OnProgress | None = None) -> None:
        self.native, fallback = _load(params, progress)
        try:
            model = _described(self.native, params, fallback)
            # Two backends may drive one device, and a part of the layers may be beside it.
            place = f"{model.device.backend} {model.device.description} {model.layers_on_device}"
            self._key = key_of(params, place)
            self._models_key = models_key_of(params)
            self.model = replace(model, exact=_known_exact(self._key))
            self._check_numbers()
            self._specials = self.native.special_tokens()
            self._file = params.target.name
            if kept.find(_template_file(), self._key) is not True:
                self.get_ready()
                kept.keep(_template_file(), self._key, True)
        except BaseException:
            self.native.close()
            raise
        self.plain = PlainSpeed()
        self._lookup = Lookup()  # of the chat that was answered last
        self._acceptance = Acceptance(paths.cache() / "acceptance.json", self._models_key)

    def get_ready(self) -> None:
        """Compiles the template, which a first question would wait for. Raises TemplateError.

        It takes jinja2's import, as long as the load of a small model. So it is part of a load only
        once, where it is not known yet that it goes.
        """
        self._prompts  # noqa: B018 - made here

    @cached_property
    def _prompts(self) -> PromptWriter:
        from app.engine.prompt import PromptWriter
        from app.engine.template import ChatTemplate

        template = ChatTemplate(
            self.native.chat_template(),
            self._file,
            bos=self._text_of(self.native.info.bos),
            eos=self._text_of(self.native.info.eos),
        )
        return PromptWriter(template, self._specials, self.native.tokenize)

    @cached_property
    def _thinking(self) -> tuple[int | None, int | None]:
        """The tokens that begin and end it, where the model has them."""
        from app.engine.template import THINK_CLOSE, THINK_OPEN

        return self._specials.get(THINK_OPEN), self._specials.get(THINK_CLOSE)

    def _check_numbers(self) -> None:
        """A weight that is no number makes none of what it meets: seen before anything is asked,
        since samplers put up with it badly."""
        self._read_probe()
        self.native.reset()

    def _read_probe(self) -> int:
        """Reads a short text without a drafter; how many tokens it has. Raises NonFiniteError."""
        tokens = self.native.tokenize(_PROBE_TEXT)
        token, _ = self.native.prompt(tokens, drafting=False)
        check_numbers(token, self.native, self.model)
        return len(tokens)

    def close(self) -> None:
        self.native.close()

    def cancel(self, cancelled: bool) -> None:
        """While True, whatever runs here raises `JobCancelled`. Any thread may call."""
        self.native.cancel(cancelled)

    # --- answers ---

    def answer(
        self,
        request: int,
        chat: Sequence[ChatMessage],
        params: AskParams,
        answer_now: Callable[[], bool] = lambda: False,
    ) -> Iterator[Event]:
        """Events of one answer, the last of them `Finished`.

        Once `answer_now` is true it thinks no more.
        """
        prompt = self.prompt(chat, think=params.think)
        text = AnswerText(
            self.native.token_bytes,
            *self._thinking,
            prompt.thinking,
            params.stop,
            prompt.begun,
        )
        answering = Answering(
            self.native,
            self.model,
            request,
            prompt,
            params,
            text,
            self.plain,
            self._closing(),
            answer_now,
            self._lookup,
        )
        if not (params.draft and self.model.has_draft and params.block is None):
            yield from answering.events()
            return
        kind = kind_of(chat, think=params.think)
        self._acceptance.begin(self.native, chat, kind)
        try:
            yield from answering.events()
        finally:
            self._acceptance.end(self.native, chat, kind)

    def _closing(self) -> tuple[int, ...]:
        """The tokens that end thinking; none where the model has no mark for it."""
        _, close = self._thinking
        if close is None:
            return ()
        tokenize = self.native.tokenize
        return (*tokenize(_LAST_THOUGHT), close, *tokenize("\n\n"))

    def prompt(self, chat: Sequence[ChatMessage], *, think: bool) -> Prompt:
        """What the target reads before it answers."""
        limit = self.model.n_ctx
        return self._prompts.write(chat, think=think, limit=limit, check=self._check_cancelled)

    def count(self, chat: Sequence[ChatMessage], *, think: bool) -> int:
        """Tokens of that prompt, also where the context does not hold them."""
        check = self._check_cancelled
        return len(self._prompts.write(chat, think=think, limit=_COUNTED, check=check).tokens)

    def control(
        self, chat: Sequence[ChatMessage], params: AskParams, plain: Sequence[int], at: int
    ) -> Control:
        """See `app.engine.control`."""
        rows = params.block or self.model.block or ROWS
        prompt = self.prompt(chat, think=params.think).tokens
        return control(
            self.native, self.model, prompt, plain, at, rows, params.sampling, self._closing()
        )

    # --- measuring ---

    def measure_plain(self) -> Plain:
        """What plain decoding does here, by a short run. Raises NonFiniteError."""
        read = self._read_probe()
        least, most = _PROBE_STEPS
        start = before = time.perf_counter()
        for step in range(most):
            if step >= least and before - start >= _PROBE_SECONDS:
                break
            emitted = self.native.round(0).emitted
            after = time.perf_counter()
            check_numbers(emitted[-1], self.native, self.model)
            if step:
                self.plain.add(read + step, after - before)
            before = after
        self.native.reset()
        found = self.plain.at(read)
        if found.tokens_per_s and not found.uneven:
            share = self.model.layers_on_device / self.model.layers
            remember_speed(self.model.device, self._models_key, found.tokens_per_s, share)
        return found

    def try_out(self) -> None:
        """Decodes a little, and forgets it. Raises DeviceError where the device is lost."""
        self._read_probe()
        self.native.round(0)
        self.native.reset()

    def probe_exact(self) -> bool | None:
        """Finds out, once for all runs, whether drafted text is plain text here, bit by bit.

        None: that is known already, or the context has no room for the probe.
        """
        if self.model.exact is not None:
            return None
        try:
            found = self.native.probe_exact()
        except ContextFullError:
            return None
        kept.keep(_exact_file(), self._key, found.exact)
        self.model = replace(self.model, exact=found.exact)
        return found.exact

    def _text_of(self, token: int) -> str:
        if token < 0:
            return ""
        return self.native.token_bytes(token, special=True).decode("utf-8", "replace")

    def _check_cancelled(self) -> None:
        if self.native.cancelled:
            raise JobCancelled


def _template_file() -> Path:
    return paths.cache() / "templates.json"


def _exact_file() -> Path:
    return paths.cache() / "exact.json"


def _known_exact(key: str) -> bool | None:
    found = kept.find(_exact_file(), key)
    return found if isinstance(found, bool) else None


def named_device(name: str, known: Sequence[DeviceInfo]) -> DeviceInfo:
    """The device of that name. Raises DeviceError where there is none, or it cannot be used."""
    for device in known:
        if device.name.lower() == name.lower():
            if not device.usable:
                raise DeviceError(
                    f"`{device.name}` cannot be used: {device.reason}", remedy="Choose another one."
                )
            return device
    raise DeviceError(
        f"There is no device `{name}`.", remedy="Ask `slipstream devices` which there are."
    )


def choose_device(backend: Backend, known: Sequence[DeviceInfo]) -> tuple[DeviceInfo, str]:
    """The device for `backend`, and why it is not a GPU if AUTO wanted one.

    Raises DeviceError if a GPU is asked for and none can be used.
    """
    cpu = known[0]
    if backend is Backend.CPU:
        return cpu, ""
    gpu = preferred_gpu(known)
    if gpu is not None and gpu.usable and not (gpu.software and backend is Backend.AUTO):
        return gpu, ""
    reason = _SLOWER if gpu and gpu.usable else gpu.reason if gpu else ""
    if backend is Backend.GPU:
        raise DeviceError(f"No GPU can be used: {reason}", remedy="Choose the CPU.")
    return cpu, reason


def _load(params: LoadParams, progress: OnProgress | None) -> tuple[NativePair, str]:
    """The pair on the device that was asked for, or on the CPU with the reason."""
    known = devices()
    if params.device:
        device, fallback = named_device(params.device, known), ""
    else:
        device, fallback = choose_device(params.backend, known)
    draft_device = None
    if params.draft and params.draft_backend:
        draft_device = choose_device(params.draft_backend, known)[0].name

    def load(device: DeviceInfo, draft_device: str | None, least_share: float = 0.0) -> NativePair:
        return NativePair(
            params.target,
            params.draft,
            device=device.name if device.kind == "gpu" else None,
            draft_device=draft_device,
            kv_type=params.kv_type,
            n_ctx=params.n_ctx,
            n_ubatch=params.n_ubatch,
            threads=params.threads,
            least_share=least_share,
            progress=progress,
        )

    cpu = known[0]
    if params.device or params.backend is not Backend.AUTO or device.kind == "cpu":
        return load(device, draft_device), fallback
    # A GPU that is too small, or of no use to this model, is no reason not to answer; say what
    # happened. A place for the drafter was asked for by itself: it stays, and if it is what failed,
    # that is told.
    if (_gain(params, device, cpu, 1.0) or 1.0) * FASTER < 1.0:
        return load(cpu, draft_device), f"{device.description} was measured to be slower."
    try:
        return load(device, draft_device, _least_share(params, device, cpu)), ""
    except DeviceError as error:
        return load(cpu, draft_device), error.message


def _least_share(params: LoadParams, device: DeviceInfo, cpu: DeviceInfo) -> float:
    """Of the layers: with fewer on a graphics card, the CPU alone is expected to be as fast."""
    if (gain := _gain(params, device, cpu, 0.5)) is None:
        return _FEW
    layer = 2 / gain - 1  # the time of one there, as a share of what it takes on the CPU
    return min(1.0, (1 - 1 / FASTER) / (1 - layer)) if layer < 1 else 1.0


def _gain(params: LoadParams, device: DeviceInfo, cpu: DeviceInfo, share: float) -> float | None:
    """See `expected_gain`; None, too, where there are no such files, of which the load tells."""
    with contextlib.suppress(OSError):
        return expected_gain(device, cpu, models_key_of(params), share)
    return None


def _described(native: NativePair, params: LoadParams, fallback: str) -> LoadedModel:
    info = native.info
    return LoadedModel(
        name=info.name or valid_text(params.target.stem),
        target_bytes=info.target_bytes,
        draft_bytes=info.draft_bytes,
        quantisation=info.quantisation,
        backend=info.device.kind,
        device=info.device,
        layers=info.n_layers,
        layers_on_device=info.n_layers_device,
        n_ctx=info.n_ctx,
        n_vocab=info.n_vocab,
        block=info.block,
        draft_device=info.draft_device if info.draft_device.name != info.device.name else None,
        fallback=fallback,
        repairs=info.repairs,
        footprint=info.footprint,
    )
