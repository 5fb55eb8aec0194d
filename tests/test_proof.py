"""The record of a proof: what it says of two answers, and that it comes back from its file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation import ChatMessage, Role
from app.engine import AskParams, Control, FinishReason, Sampling, Unmeasured, Verify
from app.errors import OptionError, OutputError
from app.proof import Proof, Run, Subject, difference

SUBJECT = Subject("demo", "guide", "F32", 16, 6, "cpu", "A CPU")
RUN = Run("a b c", (1, 2, 3), FinishReason.STOP, 2, 20.0)
PROOF = Proof(
    subject=SUBJECT,
    chat=(ChatMessage(Role.USER, "Count 😊"), ChatMessage(Role.ASSISTANT, "one", "hm")),
    params=AskParams(
        64, Verify.GREEDY, Sampling(seed=7), stop=("end",), stop_tokens=frozenset({5, 3})
    ),
    plain=RUN,
    drafted=replace(RUN, rounds=1, decode_ms=9.0),
    made="2026-11-28T20:00:00+00:00",
)


def differing(*ids: int, reason: FinishReason = FinishReason.STOP) -> Proof:
    return replace(PROOF, drafted=replace(RUN, token_ids=ids, finish_reason=reason))


def test_the_first_difference() -> None:
    assert difference((1, 2), (1, 2)) is None
    assert difference((1, 2), (1, 3)) == 1
    assert difference((1, 2), (1,)) == 1


def test_identical_answers_hold() -> None:
    assert (PROOF.at, PROOF.same, PROOF.holds) == (None, 3, True)


def test_its_speed_up_is_one_that_can_be_so() -> None:
    assert PROOF.speedup is not None
    assert (PROOF.speedup.times, PROOF.speedup.why) == (None, Unmeasured.UNEVEN)  # 9 ms and 10
    told = replace(PROOF, drafted=replace(RUN, rounds=1, decode_ms=16.0)).speedup
    assert told is not None
    assert told.times == pytest.approx(20 / 16)
    for drafted in (RUN, replace(RUN, rounds=0), replace(RUN, rounds=1, token_ids=(1, 9, 3))):
        assert replace(PROOF, drafted=drafted).speedup is None
    assert differing(1, 2, reason=FinishReason.CANCELLED).speedup is None


def test_a_difference_holds_only_if_the_control_run_explains_it() -> None:
    other = differing(1, 9, 3)
    assert (other.at, other.same, other.holds) == (1, 1, False)
    assert replace(other, control=Control(0.01, 0.02, False)).holds
    assert not replace(other, control=Control(0.5, 0.02, False)).holds
    assert replace(other, control=Control(0.5, None, True)).holds


def test_an_answer_that_ends_elsewhere_differs_unless_it_was_stopped() -> None:
    assert differing(1, 2).at == 2
    stopped = differing(1, 2, reason=FinishReason.CANCELLED)
    assert (stopped.at, stopped.same) == (None, 2)


@pytest.mark.parametrize(
    "proof",
    [
        PROOF,
        replace(PROOF, control=Control(0.1, 0.2, True)),
        replace(PROOF, control=Control(0.1, None, True)),
    ],
)
def test_it_comes_back_from_its_file(tmp_path: Path, proof: Proof) -> None:
    proof.write(tmp_path / "proof.json")
    assert Proof.read(tmp_path / "proof.json") == proof


def test_a_record_of_before_has_a_spread_that_is_no_number(tmp_path: Path) -> None:
    proof = replace(PROOF, control=Control(0.1, None, True))
    kept = proof.json().replace('"spread": null', '"spread": NaN')
    assert kept != proof.json()
    (tmp_path / "proof.json").write_text(kept, encoding="utf-8")
    assert Proof.read(tmp_path / "proof.json") == proof


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[" * 100_000,
        json.dumps({"format": "slipstream-proof", "version": 2}),
        PROOF.json().replace('"greedy"', '"guess"'),
        PROOF.json().replace('"seed": 7', '"seed": -7'),
        PROOF.json().replace('"subject"', '"object"'),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError):
        Proof.read(file)
    with pytest.raises(OptionError):
        Proof.read(tmp_path / "none.json")


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        PROOF.write(tmp_path / "file" / "proof.json")


def test_the_same_model_is_known_by_what_the_engine_says() -> None:
    assert SUBJECT.is_model_of(replace(SUBJECT, model="elsewhere", device="Another"))
    assert not SUBJECT.is_model_of(replace(SUBJECT, target_bytes=17))
    assert not SUBJECT.is_place_of(replace(SUBJECT, device="Another"))
