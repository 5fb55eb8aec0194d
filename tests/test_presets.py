"""What one chat has of its own, and presets: kept, and never more than can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import presets
from app.conversation import Conversation, Role
from app.errors import OptionError, OutputError
from app.presets import ChatOptions
from app.settings import Settings

TERSE = ChatOptions("Be terse.").choose("temperature", 0.2).choose("think", True)


def test_what_is_not_chosen_is_as_in_the_settings() -> None:
    settings = Settings(top_k=7, think=False)
    assert TERSE.over(settings) == Settings(top_k=7, think=True, temperature=0.2)
    assert TERSE.choose("think", None).over(settings).think is False
    assert ChatOptions().over(settings) is settings


def test_what_a_setting_cannot_be_is_refused() -> None:
    with pytest.raises(OptionError):
        TERSE.choose("top_p", 3.0)


def test_it_comes_back() -> None:
    assert ChatOptions.of_json(TERSE.json()) == TERSE
    assert ChatOptions().json() == ""


@pytest.mark.parametrize("text", ["", "[", "3", "[1]", '{"values": 3}'])
def test_rubbish_is_nothing(text: str) -> None:
    assert ChatOptions.of_json(text) == ChatOptions()


def test_of_what_is_half_rubbish_the_rest_is_used() -> None:
    table = '{"system": "Hi", "top_p": 9, "temperature": 0.5, "else": 1}'
    assert ChatOptions.of_json(table) == ChatOptions("Hi").choose("temperature", 0.5)


def test_the_system_prompt_is_the_first_message() -> None:
    chat = Conversation(options=TERSE.json())
    messages = chat.messages(chat.ask("Hello?"))
    assert [m.role for m in messages] == [Role.SYSTEM, Role.USER]
    assert messages[0].content == "Be terse."


def test_presets_are_kept_by_name(tmp_path: Path) -> None:
    file = tmp_path / "config" / "presets.json"
    assert presets.load(file) == presets.Presets({})
    presets.save(file, {"Terse": TERSE})
    assert presets.load(file).presets["Terse"].over(Settings()) == TERSE.over(Settings())
    assert presets.load(file).presets["Terse"].preset == "Terse"


def test_what_a_newer_version_wrote_stays(tmp_path: Path) -> None:
    file = tmp_path / "presets.json"
    newer = {"top_a": 0.1, "temperature": 0.5}
    table = {"version": 2, "shared": True, "presets": {"One": newer, "Two": newer, "Three": 7}}
    file.write_text(json.dumps(table))
    found = presets.load(file).presets
    del found["Two"]
    presets.save(file, found | {"One": TERSE, "Four": TERSE})
    table = json.loads(file.read_text())
    assert (table["version"], table["shared"]) == (2, True)
    assert list(table["presets"]) == ["One", "Three", "Four"]
    assert table["presets"]["One"] == {"top_a": 0.1} | TERSE.table()
    assert table["presets"]["Four"] == TERSE.table()


@pytest.mark.parametrize("version", [None, "2", 0, True])
def test_a_version_that_is_none_is_ours(tmp_path: Path, version: object) -> None:
    file = tmp_path / "presets.json"
    file.write_text(json.dumps({"version": version, "presets": {}}))
    presets.save(file, {"Terse": TERSE})
    assert json.loads(file.read_text())["version"] == presets.VERSION


@pytest.mark.parametrize("content", ["", "{", "[]", '{"presets": 3}', "\udcff"])
def test_a_broken_file_is_set_aside(tmp_path: Path, content: str) -> None:
    file = tmp_path / "presets.json"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    found = presets.load(file)
    assert found.presets == {}
    assert "presets.json.broken" in found.problem
    assert (tmp_path / "presets.json.broken").is_file()


def test_what_could_not_be_read_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "presets.json"
    presets.save(file, {"Terse": TERSE})
    before = file.read_bytes()

    def refused(self: Path, **_: object) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", refused)
        presets.save(file, {"Other": TERSE})
    assert list(presets.load(file).presets) == ["Other"]
    assert (tmp_path / "presets.json.broken").read_bytes() == before


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "presets.json").mkdir()
    with pytest.raises(OutputError):
        presets.save(tmp_path / "presets.json", {"Terse": TERSE})
