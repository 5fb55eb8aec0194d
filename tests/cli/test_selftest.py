"""``slipstream selftest``: it is green on a good engine and names what a bad one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.cli.client import BlockingClient
from app.conversation import ChatMessage, Role
from app.engine import (
    Ask,
    AskParams,
    Command,
    Control,
    Decoded,
    Event,
    FakeEngine,
    Finished,
    LoadParams,
    Verify,
)
from app.errors import EngineError, ModelFileError, NativeLibraryError
from app.proof import Proof, Subject
from app.proof import Run as ProofRun
from tests.cli.support import Run, Slipstream

NAMES = [
    *("native library", "model", "answers", "logits"),
    *("lossless", "acceptance", "stream", "penalties", "lookup", "second turn"),
]


class Bent(FakeEngine):
    """A scripted engine whose answers are bent by the test. Penalties turn them round."""

    bend: Callable[[Ask, Any], Any] = staticmethod(lambda ask, event: event)
    penalises = True

    def events(self, request: int, command: Command) -> Iterator[Event]:
        for event in super().events(request, command):
            penalised = isinstance(command, Ask) and command.params.sampling.presence_penalty
            if penalised and self.penalises and isinstance(event, Finished):
                ids = event.answer.token_ids[::-1]
                event = replace(event, answer=replace(event.answer, token_ids=ids))
            yield self.bend(command, event) if isinstance(command, Ask) else event


@pytest.fixture
def engine() -> Bent:
    return Bent()


def failures(run: Run, names: Sequence[str] = NAMES) -> dict[str, str]:
    assert [check["name"] for check in run.json["checks"]] == list(names)
    assert run.json["ok"] is (run.status == 0)
    return {check["name"]: check["detail"] for check in run.json["checks"] if not check["ok"]}


def test_all_is_well(slipstream: Slipstream) -> None:
    run = slipstream("selftest", "--json")
    assert failures(run) == {}
    assert list(run.json) == ["ok", "checks"]
    assert all(list(check) == ["name", "ok", "detail"] for check in run.json["checks"])
    assert all(check["detail"] for check in run.json["checks"])


def test_people_read_lines(slipstream: Slipstream) -> None:
    run = slipstream("selftest")
    assert run.status == 0
    assert [line.startswith("ok ") for line in run.out.splitlines()] == [True] * len(NAMES)


def test_without_a_drafter(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.block = 0
    run = slipstream("selftest", "--json")
    assert failures(run) == {}
    details = {check["name"]: check["detail"] for check in run.json["checks"]}
    assert details["lossless"] == details["acceptance"] == "The model has no drafter."


def test_a_drafter_that_changes_the_text(slipstream: Slipstream, engine: Bent) -> None:
    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and ask.params.draft:
            ids = (*event.answer.token_ids[:3], -1)
            return replace(event, answer=replace(event.answer, token_ids=ids))
        return event

    engine.bend = bend
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["lossless", "penalties", "lookup"]
    assert "from token 3 on" in told["lossless"]
    assert "from token 3 on" in told["penalties"]


def test_penalties_that_are_not_applied(slipstream: Slipstream, engine: Bent) -> None:
    engine.penalises = False
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["penalties"]
    assert "change nothing" in told["penalties"]


def test_penalties_that_the_drafter_changes(slipstream: Slipstream, engine: Bent) -> None:
    def bend(ask: Ask, event: Event) -> Event:
        sampled = ask.params.verify is Verify.GPU_SAMPLE
        if isinstance(event, Finished) and ask.params.draft and sampled:
            ids = event.answer.token_ids[:2]
            return replace(event, answer=replace(event.answer, token_ids=ids))
        return event

    engine.bend = bend
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["penalties"]
    assert "gpu-sample" in told["penalties"]
    assert failures(slipstream("selftest", "--json", "--quick"), NAMES[:-2]) == {}


@pytest.mark.parametrize(("gap", "spread"), [(float("nan"), 0.0), (1.0, float("inf"))])
def test_logits_that_are_no_numbers(
    slipstream: Slipstream, engine: Bent, gap: float, spread: float
) -> None:
    engine.script.control = Control(gap, spread, flips=False)
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["logits"]
    assert "not finite" in told["logits"]


def test_a_target_that_leaves_its_own_answer_before(slipstream: Slipstream, engine: Bent) -> None:
    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and ask.params.draft:
            ids = event.answer.token_ids
            return replace(event, answer=replace(event.answer, token_ids=(*ids[:3], -1, *ids[4:])))
        return event

    engine.bend = bend
    engine.script.control = Control(gap=0.3, spread=None, flips=True)
    checks = {c["name"]: c for c in slipstream("selftest", "--json").json["checks"]}
    assert checks["lossless"]["ok"]
    told = (
        "differs from token 3 on, and the target alone, over many rows, leaves its own one before"
    )
    assert told in checks["lossless"]["detail"]


def test_nothing_is_accepted(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.accepted = (0,)
    assert list(failures(slipstream("selftest", "--json"))) == ["acceptance"]


def test_a_lookup_that_changes_the_text(slipstream: Slipstream, engine: Bent) -> None:
    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and ask.params.draft and ask.chat[-1] == ask.chat[0]:
            known = (
                event.answer.token_ids if len(ask.chat) == 1 else (*event.answer.token_ids[:3], -1)
            )
            return replace(event, answer=replace(event.answer, token_ids=known))
        return event

    engine.bend = bend
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["lookup"]
    assert "differs from token 3 on" in told["lookup"]


def test_a_stream_that_loses_a_character(slipstream: Slipstream, engine: Bent) -> None:
    def bend(_: Ask, event: Event) -> Event:
        return replace(event, text=event.text[:-1]) if isinstance(event, Decoded) else event

    engine.bend = bend
    assert list(failures(slipstream("selftest", "--json"))) == ["stream"]


@pytest.mark.parametrize("near", [False, True])
def test_a_second_turn_where_rounding_decides(
    slipstream: Slipstream, engine: Bent, near: bool
) -> None:
    """What was read at once and what was decoded differ by rounding on some devices."""
    turns: list[int] = []

    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and len(ask.chat) == 3 and ask.chat[-1] != ask.chat[0]:
            turns.append(1)
            ids = list(event.answer.token_ids)
            ids[2] += len(turns) == 1
            return replace(event, answer=replace(event.answer, token_ids=tuple(ids)))
        return event

    engine.bend = bend
    engine.script.control = Control(0.01 if near else 0.5, spread=0.02, flips=False)
    run = slipstream("selftest", "--json")
    assert list(failures(run)) == ([] if near else ["second turn"])


def test_a_second_turn_that_remembers_wrongly(slipstream: Slipstream, engine: Bent) -> None:
    turns: list[int] = []

    def bend(ask: Ask, event: Event) -> Event:
        if isinstance(event, Finished) and ask.chat[-1] != ask.chat[0] and len(ask.chat) == 3:
            turns.append(1)
            ids = event.answer.token_ids[: len(turns)]
            return replace(event, answer=replace(event.answer, token_ids=ids))
        return event

    engine.bend = bend
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == ["second turn"]
    assert "ends elsewhere, behind token 1" in told["second turn"]


def test_what_needs_the_model_is_not_run(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.load_error = ModelFileError("It is cut.", remedy="Convert it again.")
    told = failures(slipstream("selftest", "--json"))
    assert list(told) == NAMES[1:]
    assert told["model"] == "It is cut. Convert it again."
    assert told["stream"] == "Not run, because `model` failed."
    lines = slipstream("selftest").out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "FAILED", *"-" * len(NAMES[2:])]


def test_an_answer_that_fails(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.error = EngineError("It fell over.", remedy="Restart.")
    assert list(failures(slipstream("selftest", "--json"))) == NAMES[2:]


def test_no_native_library(slipstream: Slipstream, engine: Bent) -> None:
    engine.script.devices_error = NativeLibraryError("ABI 2, not 1.", remedy="Install anew.")
    assert list(failures(slipstream("selftest", "--json"))) == NAMES
    assert engine.closed


# --- the record of a proof ----------------------------------------------------------------

RECORD_NAMES = [
    "native library",
    "model",
    "same model",
    "answers",
    "record",
    "plain answer",
    "drafted answer",
]


@pytest.fixture
def record(slipstream: Slipstream, engine: Bent, tmp_path: Path) -> Proof:
    """What the scripted engine gives, as *Prove it* records it; `proof.json` holds it."""
    params = AskParams(max_tokens=64)
    client = BlockingClient(engine.client())
    loaded = client.load(LoadParams(Path("target-f32.gguf"), Path("draft.gguf")), lambda _: None)
    chat = (ChatMessage(Role.USER, "Go"),)
    plain, drafted = (client.ask(chat, replace(params, draft=draft)) for draft in (False, True))
    subject = Subject.of("demo", loaded.model)
    proof = Proof(subject, chat, params, ProofRun.of(plain), ProofRun.of(drafted))
    proof.write(tmp_path / "proof.json")
    return proof


def checked(slipstream: Slipstream, tmp_path: Path) -> dict[str, str]:
    run = slipstream("selftest", "--json", "--record", str(tmp_path / "proof.json"))
    assert [check["name"] for check in run.json["checks"]] == RECORD_NAMES
    assert run.json["ok"] is (run.status == 0)
    return {check["name"]: check["detail"] for check in run.json["checks"] if not check["ok"]}


def test_a_record_that_is_so(slipstream: Slipstream, record: Proof, tmp_path: Path) -> None:
    assert checked(slipstream, tmp_path) == {}


def test_a_record_of_another_answer(slipstream: Slipstream, record: Proof, tmp_path: Path) -> None:
    ids = (*record.plain.token_ids[:4], 77, *record.plain.token_ids[5:])
    forged = replace(record.plain, token_ids=ids)
    replace(record, plain=forged, drafted=forged).write(tmp_path / "proof.json")
    told = checked(slipstream, tmp_path)
    assert list(told) == ["plain answer", "drafted answer"]
    assert "from token 4 on" in told["plain answer"]


def test_a_record_from_another_device_may_round_otherwise(
    slipstream: Slipstream, engine: Bent, record: Proof, tmp_path: Path
) -> None:
    ids = (*record.plain.token_ids[:4], 77, *record.plain.token_ids[5:])
    there = replace(record.plain, token_ids=ids)
    subject = replace(record.subject, device="Another")
    replace(record, subject=subject, plain=there, drafted=there).write(tmp_path / "proof.json")
    engine.script.control = Control(gap=0.01, spread=0.02, flips=False)
    assert checked(slipstream, tmp_path) == {}
    engine.script.control = Control(gap=0.5, spread=0.02, flips=False)
    assert list(checked(slipstream, tmp_path)) == ["plain answer", "drafted answer"]


def test_a_record_that_tells_of_a_fault(
    slipstream: Slipstream, record: Proof, tmp_path: Path
) -> None:
    drafted = replace(record.drafted, token_ids=(*record.drafted.token_ids[:3], 77))
    replace(record, drafted=drafted).write(tmp_path / "proof.json")
    assert list(checked(slipstream, tmp_path)) == ["record", "drafted answer"]


def test_a_record_of_another_model(slipstream: Slipstream, record: Proof, tmp_path: Path) -> None:
    other = replace(record.subject, target_bytes=1)
    replace(record, subject=other).write(tmp_path / "proof.json")
    assert next(iter(checked(slipstream, tmp_path))) == "same model"


def test_what_is_no_record(slipstream: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "proof.json").write_text("{}")
    run = slipstream("selftest", "--json", "--record", str(tmp_path / "proof.json"))
    assert run.status != 0
