"""What drafts have come to, kept by kind of text and by chat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app import kept
from app.binding import Learned
from app.conversation import ChatMessage, Role
from app.engine import AskParams, Backend, LoadParams
from app.engine.acceptance import Acceptance, TextKind, kind_of
from app.engine.key import key_of, models_key_of
from app.engine.pair import LoadedPair
from app.errors import OptionError
from app.library import Pair

from .conftest import ask, chat, opened

CAT = chat("Tell me a short story about a cat.")


@pytest.fixture
def own(demo_files: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadedPair]:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    yield from opened(demo_files, Backend.CPU, n_ctx=512)


def file_of(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "acceptance.json"


def made_up(loaded: LoadedPair) -> Learned:
    common = (0.55, *(0.05,) * 9)
    return replace(loaded.native.learned(), common=common)


@pytest.mark.parametrize(
    ("question", "think", "kind"),
    [
        ("Tell me a story.", False, TextKind.PROSE),
        ("Tell me a story.", True, TextKind.THOUGHT),
        ("Write a Python function that sorts.", False, TextKind.CODE),
        ("```\nx = 1\n```", False, TextKind.CODE),
        ("用中文写一个故事", False, TextKind.OTHER_SCRIPT),
        ("Grüße aus Köln", False, TextKind.PROSE),
        ("", False, TextKind.PROSE),
    ],
)
def test_kinds_are_told_by_the_question(question: str, think: bool, kind: TextKind) -> None:
    assert kind_of((ChatMessage(Role.USER, question),), think=think) is kind


def test_what_was_learned_can_be_given_back(own: LoadedPair) -> None:
    before = own.native.learned()
    assert sum(before.common) == pytest.approx(1)
    own.native.set_learned(made_up(own))
    assert own.native.learned().common == pytest.approx(made_up(own).common)


@pytest.mark.parametrize("common", [(0.0,) * 10, (float("nan"),) * 10, (-1.0, 2.0, *(0.0,) * 8)])
def test_what_is_damaged_is_refused_and_changes_nothing(
    own: LoadedPair, common: tuple[float, ...]
) -> None:
    before = own.native.learned()
    with pytest.raises(OptionError):
        own.native.set_learned(replace(before, common=common))
    with pytest.raises(OptionError):
        own.native.set_learned(replace(before, hits=(0.0,) * 100))
    assert own.native.learned() == before


def test_an_answer_leaves_what_it_learned_for_its_kind(
    own: LoadedPair, demo_files: Pair, tmp_path: Path
) -> None:
    ask(own, CAT, AskParams(max_tokens=48))
    learned = own.native.learned()
    found = kept.find(
        file_of(tmp_path), models_key_of(LoadParams(demo_files.target, demo_files.draft))
    )
    assert list(found) == [TextKind.PROSE]
    assert tuple(found[TextKind.PROSE]["common"]) == learned.common


@pytest.mark.parametrize("params", [AskParams(8, draft=False), AskParams(8, block=4)])
def test_what_the_governor_had_no_part_in_teaches_nothing(
    own: LoadedPair, tmp_path: Path, params: AskParams
) -> None:
    ask(own, CAT, params)
    assert not file_of(tmp_path).exists()


def test_another_run_begins_with_it(own: LoadedPair, tmp_path: Path) -> None:
    learned = made_up(own)
    own.native.set_learned(learned)
    Acceptance(file_of(tmp_path), "key").end(own.native, CAT, TextKind.CODE)
    own.native.set_learned(replace(learned, common=(0.1,) * 10))
    later = Acceptance(file_of(tmp_path), "key")
    later.begin(own.native, chat("Another one"), TextKind.CODE)
    assert own.native.learned().common == pytest.approx(learned.common)


def test_a_kind_not_seen_yet_begins_with_the_last_one(own: LoadedPair, tmp_path: Path) -> None:
    learned = made_up(own)
    own.native.set_learned(learned)
    Acceptance(file_of(tmp_path), "key").end(own.native, CAT, TextKind.CODE)
    own.native.set_learned(replace(learned, common=(0.1,) * 10))
    Acceptance(file_of(tmp_path), "key").begin(own.native, CAT, TextKind.PROSE)
    assert own.native.learned().common == pytest.approx(learned.common)


def test_a_chat_begins_with_what_it_gave_before(own: LoadedPair, tmp_path: Path) -> None:
    of_pair = Acceptance(file_of(tmp_path), "key")
    learned = made_up(own)
    own.native.set_learned(learned)
    of_pair.end(own.native, CAT, TextKind.PROSE)
    own.native.set_learned(replace(learned, common=(0.1,) * 10))
    of_pair.end(own.native, chat("Another chat"), TextKind.PROSE)
    of_pair.begin(own.native, CAT, TextKind.PROSE)
    assert own.native.learned().common == pytest.approx(learned.common)
    of_pair.begin(own.native, chat("A third one"), TextKind.PROSE)
    assert own.native.learned().common == pytest.approx((0.1,) * 10)


@pytest.mark.parametrize("damage", [None, [], 3, {"prose": 1}, {"prose": {"common": ["x"]}}])
def test_damage_is_learned_anew(own: LoadedPair, tmp_path: Path, damage: object) -> None:
    kept.keep(file_of(tmp_path), "key", damage)
    before = own.native.learned()
    Acceptance(file_of(tmp_path), "key").begin(own.native, CAT, TextKind.PROSE)
    assert own.native.learned() == before


def test_findings_of_a_machine_are_named_by_its_threads_and_acceptance_by_the_models(
    demo_files: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = LoadParams(demo_files.target, demo_files.draft)
    names = set()
    for threads in (1, 2):
        monkeypatch.setattr("app.engine.key.default_threads", lambda threads=threads: threads)
        names.add((key_of(params, "CPU"), models_key_of(params)))
    assert [len(set(column)) for column in zip(*names, strict=True)] == [2, 1]
