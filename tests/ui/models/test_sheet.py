"""The sheet of models over fakes: each state has its words and its button."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from app import catalog
from app.errors import ModelFileError
from app.job import Failure, Repair, Step
from app.job.state import state
from app.library import ModelState, ModelStatus
from app.passport import Check, Made, Passport, Source
from app.ui.look.notice import Notice
from app.ui.look.theme import Theme
from app.ui.look.words import quoted
from app.ui.models.getting import Getting
from app.ui.models.sheet import ModelsSheet
from tests.ui.fakes import FakeModels

PASSPORT = Passport(
    "own",
    "A model",
    "q8_0",
    "slipstream 0",
    "2026-01-01T00:00:00",
    {"target": Source("a/b", "c" * 40, None, ())},
    {"target": Made("target.gguf", 5_000_000_000, "d" * 64, {"errors": [
        {"name": "blk.0.ssm_out", "kind": "q8_0", "error": 0.0123}]})},
    (Check("answers", True, "two"),),
)  # fmt: skip
OWN = ModelStatus(
    "own", "A model", ModelState.READY, "", Path("/models/own"), 5_000_000_000, PASSPORT
)


def standing(failure: Failure) -> ModelStatus:
    return ModelStatus("going", "A model", ModelState.UNFINISHED, "…", failure=failure)


@pytest.fixture
def models() -> FakeModels:
    return FakeModels()


@pytest.fixture
def sheet(qtbot: QtBot, look: Theme, models: FakeModels) -> ModelsSheet:
    result = ModelsSheet(models, Getting(None))
    qtbot.addWidget(result)
    result.show_models(models.models())
    result.show()
    return result


def said(sheet: ModelsSheet) -> list[str]:
    return [n.message for n in sheet.findChildren(Notice) if n.isVisibleTo(sheet)]


def test_what_is_here_and_what_can_be_had(sheet: ModelsSheet) -> None:
    assert sheet.rows["demo"].main.text() == "Use"
    assert sheet.rows["qwen3.5-4b"].main.text() == "Get"
    sheet.set_in_use("demo")
    assert not sheet.rows["demo"].main.isEnabled()
    assert sheet.rows["demo"].more.isHidden()


def test_every_control_has_a_name(sheet: ModelsSheet) -> None:
    sheet.show_models([*sheet._listed, OWN, standing(Failure("no", "help", "token"))])
    for kind in (QAbstractButton, QLineEdit):
        for control in sheet.findChildren(kind):
            if control.isVisibleTo(sheet):
                assert control.accessibleName() or control.text(), control


@pytest.mark.parametrize(
    ("failure", "button", "extra"),
    [
        (Failure(), "Continue", ""),
        (Failure("no network", "try", "retry"), "Try again", ""),
        (Failure("gated", "token", "token"), "Use this token", "token"),
        (Failure("disk", "room", "room"), "Try again", "folder"),
        (Failure("spoilt", "fetch", "fetch"), "Fetch the files again", ""),
        (Failure("damaged", "convert", "convert"), "Convert again", ""),
        (Failure("foreign", "another", "other"), "Choose another one", ""),
    ],
)
def test_why_it_stands_still_and_what_helps(
    sheet: ModelsSheet, failure: Failure, button: str, extra: str
) -> None:
    sheet.show_models([standing(failure)])
    card = sheet.cards["going"]
    assert card.help.text() == button
    assert card.message.isHidden() is not bool(failure.message)
    assert card.token.isHidden() is (extra != "token")
    assert card.folder.isHidden() is (extra != "folder")
    assert card.pause.isHidden()


def test_the_step_at_which_it_stopped_is_said(sheet: ModelsSheet) -> None:
    sheet.show_models([standing(Failure("damaged", "convert", "convert", "verify"))])
    assert sheet.cards["going"].words.text() == "Stopped while verifying."
    sheet.show_models([standing(Failure())])
    assert "Paused" in sheet.cards["going"].words.text()


def test_a_token_is_given_before_it_goes_on(sheet: ModelsSheet, qtbot: QtBot) -> None:
    sheet.show_models([standing(Failure("gated", "x", "token"))])
    order: list[str] = []
    sheet.token_given.connect(order.append)
    card = sheet.cards["going"]
    card.wanted.connect(order.append)
    card.token.setText(" hf_x ")
    card.help.click()
    assert order == ["hf_x", Repair.TOKEN]
    assert card.token.text() == ""


def test_a_token_can_be_kept_once_there_is_one(sheet: ModelsSheet, qtbot: QtBot) -> None:
    given: list[str] = []
    sheet.token_given.connect(given.append)
    assert not sheet.keep_token.isEnabled()
    qtbot.keyClicks(sheet.token, "hf_secret")
    sheet.keep_token.click()
    assert given == ["hf_secret"]
    assert not sheet.keep_token.isEnabled()


def test_one_bar_and_plain_words(sheet: ModelsSheet) -> None:
    getting = sheet._getting
    getting.model, getting.title = "qwen3.5-4b", "Qwen3.5-4B"
    getting.state = state(Step.CONVERT, 0.5, "50%")
    getting.changed.emit()
    card = sheet.cards["qwen3.5-4b"]
    assert card.words.text() == "Converting · 50%"
    assert 0.6 < card.bar.value() / card.bar.maximum() < 0.8
    assert not card.pause.isHidden()
    assert sheet.rows["qwen3.5-4b"].isHidden()
    assert not sheet.get_own.isEnabled()


def test_the_passport(sheet: ModelsSheet) -> None:
    sheet.show_models([OWN])
    row = sheet.rows["own"]
    actions = {action.text(): action for action in row.menu().actions()}
    actions["Show the passport"].trigger()
    assert row.passport is not None
    text = "\n".join(label.text() for label in row.passport.findChildren(QLabel))
    for part in ("a/b", "cccccccccccc", "not told", "dddddddddddddddd", "1.2% blk.0.ssm_out"):
        assert part in text
    sheet.show_models([OWN, *sheet._listed[:0]])
    assert sheet.rows["own"].passport is not None  # a new list does not fold it
    sheet.rows["own"].toggle_passport()
    assert sheet.rows["own"].passport is None


def test_its_folder_is_shown_where_files_are(
    sheet: ModelsSheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(
        "app.ui.models.sheet.QDesktopServices.openUrl",
        lambda url: shown.append(url.toLocalFile()),
    )
    sheet.show_models([OWN])
    actions = {action.text(): action for action in sheet.rows["own"].menu().actions()}
    actions["Open its folder"].trigger()
    sheet.show_place.click()
    assert shown == [str(OWN.path), str(sheet._models.root)]


def test_one_broken_row_is_said_and_costs_no_other(sheet: ModelsSheet, models: FakeModels) -> None:
    why = "`/models/cat/target.gguf` leads to `/mnt/absent`, which is not there."
    cat = ModelStatus("cat", "cat", ModelState.BROKEN, why, Path("/models/cat"))
    models.more = (cat, OWN)
    sheet.show_models(models.models())
    shown = [label.text() for label in sheet.rows["cat"].findChildren(QLabel)]
    assert quoted(why) in shown
    enabled = {name: row.main.isEnabled() for name, row in sheet.rows.items()}
    assert enabled == {"demo": True, "cat": False, "own": True, "qwen3.5-4b": True}
    assert "Move to the trash" in [a.text() for a in sheet.rows["cat"].menu().actions()]


def test_verified_and_told(sheet: ModelsSheet, models: FakeModels, qtbot: QtBot) -> None:
    sheet.show_models([OWN])
    sheet.rows["own"].verified.emit("own")
    qtbot.waitUntil(lambda: said(sheet) == ["All files of A model are what was written."])
    models.error = ModelFileError("`x` is damaged.", remedy="Convert it again.")
    sheet.rows["own"].verified.emit("own")
    qtbot.waitUntil(lambda: said(sheet) == ["`x` is damaged."])  # the last word alone


@pytest.mark.parametrize("role", ["set_in_use", "set_chosen"])
def test_removed_after_another_is_in_use(
    sheet: ModelsSheet, models: FakeModels, qtbot: QtBot, role: str
) -> None:
    """Also where it is what the settings name, and could not be loaded."""
    models.more = (OWN,)
    sheet.show_models(models.models())
    getattr(sheet, role)("own")
    chosen: list[str] = []
    sheet.chosen.connect(chosen.append)
    with qtbot.waitSignal(sheet.outdated):
        sheet.rows["own"].removed.emit("own")
    assert chosen == [catalog.DEMO.id]
    assert models.more == ()
    assert "A model is in the trash." in said(sheet)


def test_a_pair_of_the_users_own(sheet: ModelsSheet, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []
    monkeypatch.setattr(sheet._getting, "get", lambda model, *_: got.append(str(model.draft)))
    sheet.target.setText("no name")
    sheet.get_own.click()
    assert not sheet._complaint.isHidden()
    sheet.target.setText("a/b")
    sheet.draft.setText("c/d@main")
    sheet.get_own.click()
    assert (got, not sheet._complaint.isHidden()) == (["c/d@main"], False)


def test_a_checkpoint_that_is_opened_is_to_be_converted(sheet: ModelsSheet, tmp_path: Path) -> None:
    chosen: list[str] = []
    sheet.chosen.connect(chosen.append)
    (tmp_path / "config.json").write_text("{}")
    sheet.open(tmp_path)
    assert (chosen, sheet.target.text()) == ([], str(tmp_path))
    assert any("has to be converted" in text for text in said(sheet))
    (tmp_path / "target.gguf").write_bytes(b"GGUF")
    sheet.open(tmp_path)
    assert chosen == [str(tmp_path)]


def test_a_folder_that_is_not_there_is_said(sheet: ModelsSheet, models: FakeModels) -> None:
    models.problem = "The folder is not there."
    sheet.show_models(models.models())
    sheet.show_models(models.models())
    assert said(sheet) == ["The folder is not there."]  # once
    assert sheet.rows["demo"].main.isEnabled()  # the rest stays usable
    models.problem = ""
    sheet.show_models(models.models())
    assert not said(sheet)


def test_one_that_never_will_do_leads_to_another(sheet: ModelsSheet, qtbot: QtBot) -> None:
    sheet.show_models([standing(Failure("foreign", "another", "other"))])
    card = sheet.cards["going"]
    with qtbot.assertNotEmitted(card.wanted), qtbot.waitSignal(card.other_wanted):
        card.help.click()


def test_both_recipes_are_offered_with_size_and_figure(
    sheet: ModelsSheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[tuple[object, ...]] = []
    monkeypatch.setattr(sheet._getting, "get", lambda model, *options: got.append(options))
    assert (sheet.type.choice(), sheet.recipe.choice()) == ("q4_k_m", "slipstream")
    for part in ("2.8 GB (llama.cpp: 2.7 GB)", "7.3 (llama.cpp: 9.9)"):
        assert part in sheet.figures.text()
    sheet.recipe.button("llama").click()
    assert "9.9 (Slipstream: 7.3)" in sheet.figures.text()
    sheet.rows["qwen3.5-4b"].main.click()
    sheet.type.button("q6_k").click()
    assert sheet.recipe.choice() == "llama"  # ours takes more than 5 % more there
    sheet.type.button("q8_0").click()
    assert not sheet.recipe.isVisibleTo(sheet)
    sheet.rows["qwen3.5-4b"].main.click()
    assert got == [("q4_k_m", "llama", False), ("q8_0", "", False)]


def test_the_model_to_get_stands_out(sheet: ModelsSheet) -> None:
    assert sheet.rows["qwen3.5-4b"].main.property("kind") == "primary"
    assert sheet.rows["demo"].main.property("kind") == "outline"
