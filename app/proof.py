"""A proof: one prompt answered without drafter and with it, as a record that anybody can check.

`slipstream selftest --record FILE` asks the same again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from app.conversation import ChatMessage, Role
from app.engine import (
    Answer,
    AskParams,
    Control,
    FinishReason,
    LoadedModel,
    Plain,
    Sampling,
    Speedup,
    Verify,
    tokens_per_second,
)
from app.errors import OptionError, OutputError
from app.files import replace_text

FORMAT: Final = "slipstream-proof"
VERSION: Final = 1


def difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first position at which they are not the same."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return None if len(one) == len(other) else min(len(one), len(other))


@dataclass(frozen=True, slots=True)
class Run:
    """One of the two answers. `decode_ms` is the time of its rounds, the prompt not included."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    rounds: int
    decode_ms: float

    @classmethod
    def of(cls, answer: Answer) -> Self:
        return cls(
            text=answer.reasoning + answer.text,
            token_ids=answer.token_ids,
            finish_reason=answer.finish_reason,
            rounds=answer.totals.rounds,
            decode_ms=answer.totals.total_ms,
        )

    @property
    def stopped(self) -> bool:
        return self.finish_reason is FinishReason.CANCELLED


@dataclass(frozen=True, slots=True)
class Subject:
    """What answered. `model` is how it was chosen; the rest is what the engine says of it."""

    model: str
    name: str
    quantisation: str
    target_bytes: int
    draft_bytes: int
    backend: str
    device: str

    @classmethod
    def of(cls, chosen: str, loaded: LoadedModel) -> Self:
        return cls(
            model=chosen,
            name=loaded.name,
            quantisation=loaded.quantisation,
            target_bytes=loaded.target_bytes,
            draft_bytes=loaded.draft_bytes,
            backend=loaded.backend,
            device=loaded.device.description,
        )

    def is_model_of(self, other: Subject) -> bool:
        """Whether both are the same files, as far as can be seen from outside."""
        names = ("name", "quantisation", "target_bytes", "draft_bytes")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def is_place_of(self, other: Subject) -> bool:
        return (self.backend, self.device) == (other.backend, other.device)


@dataclass(frozen=True, slots=True)
class Proof:
    """Both answers to `chat`, made as `params` say (whose `draft` plays no part).

    `control` is there where they differ and a control run could be made: for greedy text.
    `made` is when, in ISO 8601.
    """

    subject: Subject
    chat: tuple[ChatMessage, ...]
    params: AskParams
    plain: Run
    drafted: Run
    control: Control | None = None
    made: str = ""

    @property
    def at(self) -> int | None:
        """The first token that differs; where a run was stopped, its end is no difference."""
        found = difference(self.plain.token_ids, self.drafted.token_ids)
        end = min(len(self.plain.token_ids), len(self.drafted.token_ids))
        stopped = self.plain.stopped or self.drafted.stopped
        return None if stopped and found == end else found

    @property
    def same(self) -> int:
        """How many tokens are the same from the first one on."""
        end = min(len(self.plain.token_ids), len(self.drafted.token_ids))
        return end if self.at is None else self.at

    @property
    def holds(self) -> bool:
        """Whether drafting changed nothing that the target alone does not change too."""
        return self.at is None or (self.control is not None and self.control.explains)

    @property
    def speedup(self) -> Speedup | None:
        """None where the answers are not the same and whole, or nothing that was drafted held."""
        plain, drafted = self.plain, self.drafted
        if self.at is not None or drafted.stopped or not 0 < drafted.rounds < plain.rounds:
            return None
        tokens = plain.rounds  # a plain step gives one; those of no round are in both
        return Speedup.between(
            tokens_per_second(tokens, drafted.decode_ms),
            Plain(tokens_per_second(tokens, plain.decode_ms)),
            tokens / drafted.rounds,
        )

    # --- as a file ----------------------------------------------------------------

    def json(self) -> str:
        params = asdict(self.params)
        params["stop_tokens"] = sorted(self.params.stop_tokens)
        head = {"format": FORMAT, "version": VERSION}
        table = head | asdict(self) | {"params": params}
        return json.dumps(table, ensure_ascii=False, indent=1, allow_nan=False)

    def write(self, path: Path) -> None:
        """Raises `OutputError`."""
        try:
            replace_text(path, self.json() + "\n")
        except OSError as error:
            raise OutputError(
                f"The record cannot be written to `{path}`: {error.strerror or error}.",
                remedy="Check the folder's permissions and the free disk space.",
            ) from error

    @classmethod
    def read(cls, path: Path) -> Self:
        """What `write` wrote. Raises `OptionError`."""
        try:
            # Older records have NaN for a spread that there is none of.
            kept = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
            if kept["format"] != FORMAT or kept["version"] != VERSION:
                raise ValueError("it is of another kind or version")
            return cls(
                subject=Subject(**kept["subject"]),
                chat=tuple(
                    ChatMessage(Role(m["role"]), m["content"], m["reasoning"]) for m in kept["chat"]
                ),
                params=_params(kept["params"]),
                plain=_run(kept["plain"]),
                drafted=_run(kept["drafted"]),
                control=Control(**kept["control"]) if kept["control"] else None,
                made=str(kept["made"]),
            )
        except OSError as error:
            raise OptionError(
                f"`{path}` cannot be read: {error.strerror or error}.", remedy="Check the path."
            ) from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise OptionError(
                f"`{path}` is no record of a proof: {error}.",
                remedy="Give a file that *Prove it* in the window saved.",
            ) from error


def _params(kept: Mapping[str, Any]) -> AskParams:
    given = {f.name: _tuple(kept[f.name]) for f in fields(AskParams) if f.name in kept}
    for name in ("loop_guard", "lookup"):
        given.setdefault(name, False)  # there was none when it was made
    given["verify"] = Verify(given["verify"])
    sampling = kept["sampling"]
    names = [f.name for f in fields(Sampling) if f.name in sampling]
    given["sampling"] = Sampling(**{name: _tuple(sampling[name]) for name in names})
    given["stop_tokens"] = frozenset(given["stop_tokens"])
    return AskParams(**given)


def _run(kept: Mapping[str, Any]) -> Run:
    ids, reason = tuple(map(int, kept["token_ids"])), FinishReason(kept["finish_reason"])
    return Run(**{**kept, "token_ids": ids, "finish_reason": reason})


def _tuple(value: object) -> Any:
    """JSON knows lists only."""
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else value
