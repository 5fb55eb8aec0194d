"""What goes out of a chat and comes back in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.conversation import Conversation, End
from app.errors import HistoryError, OutputError
from app.history import Codec, History, exchange


def chat() -> Conversation:
    result = Conversation(name="Trip", pinned=True)
    first = result.answer(result.ask("Where <b>to</b>?"))
    first.text, first.reasoning, first.end = "To **Lisbon**.\n\n<script>x</script>", "Hm.", End.DONE
    other = result.answer(result.path()[0])
    other.text, other.end = "Half \ud83d of it", End.STOPPED
    result.choose(first)
    return result


def test_json_comes_back_with_its_branches(tmp_path: Path) -> None:
    before = chat()
    file = tmp_path / "trip.json"
    exchange.write(file, exchange.as_json(before, Codec()))
    after = exchange.read(file, Codec())
    assert after.id != before.id
    assert not set(after.turns) & set(before.turns)
    assert (after.name, after.pinned) == ("Trip", True)
    assert [(t.text, t.reasoning, t.end) for t in after.turns.values()] == [
        (t.text, t.reasoning, t.end) for t in before.turns.values()
    ]
    assert [t.text for t in after.path()] == [t.text for t in before.path()]


def test_markdown_is_what_was_written() -> None:
    assert exchange.as_markdown(chat()) == (
        "# Trip\n\n## You\n\nWhere <b>to</b>?\n\n## Slipstream\n\n> Hm.\n\n"
        "To **Lisbon**.\n\n<script>x</script>\n"
    )


def test_a_page_holds_no_markup_of_a_text() -> None:
    page = exchange.as_html(chat())
    assert "<strong>Lisbon</strong>" in page
    assert "&lt;script&gt;" in page
    assert "Where &lt;b&gt;to&lt;/b&gt;?" in page
    assert "<script" not in page


def test_on_a_page_the_names_of_who_speaks_are_no_headings_of_an_answer() -> None:
    talk = Conversation()
    talk.answer(talk.ask("Why?")).text = "## Because"
    page = exchange.as_html(talk)
    assert "<h2>Because</h2>" in page
    assert page.count("<h2") == 1
    assert page.count('class="who"') == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0", b"[]", b"{}", b"[" * 100_000, b'{"format": "slipstream-chat"}',
     b'{"format": "slipstream-chat", "version": 9}',
     b'{"format": "slipstream-chat", "version": 1, "chat": {}, "turns": []}',
     b'{"format": "slipstream-chat", "version": 1, "chat": {"leaf": 3}, "turns": [1, {}]}'],
)  # fmt: skip
def test_what_is_no_chat_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "no.json"
    file.write_bytes(content)
    with pytest.raises(HistoryError, match=r"no\.json"):
        exchange.read(file, Codec())


def test_turns_with_one_id_do_not_hang_under_themselves() -> None:
    table = json.loads(exchange.as_json(chat(), Codec()))
    table["turns"][1]["id"] = table["turns"][0]["id"]
    got = exchange.of_table(table, "twice", Codec())
    assert all(turn.parent != turn.id for turn in got.turns.values())  # or `path` has no end
    assert [turn.text for turn in got.path()] == ["Where <b>to</b>?", "Half \ud83d of it"]


@pytest.mark.parametrize("name", ["place", "thought_ms", "context", "created"])
@pytest.mark.parametrize("number", [10**30, -(10**30), 10**400, float("inf"), float("nan")])
def test_a_number_that_cannot_be_kept_costs_its_row(
    tmp_path: Path, name: str, number: float
) -> None:
    table = json.loads(exchange.as_json(chat(), Codec()))
    table["turns"][2][name] = number
    got = exchange.of_table(table, "large", Codec())
    assert [turn.text for turn in got.turns.values()] == [t["text"] for t in table["turns"][:2]]


def test_what_was_taken_in_goes_on_and_is_kept(tmp_path: Path) -> None:
    """Also where its places leave none behind them."""
    table = json.loads(exchange.as_json(chat(), Codec()))
    table["turns"][2]["place"] = 2**63 - 1
    got = exchange.of_table(table, "last", Codec())
    got.answer(got.ask("And then?"))
    history = History(tmp_path / "chats.db")
    history.open().result()
    history.save(got, got.turns.values()).result()
    kept, lost = history.load(got.id).result()
    history.close()
    assert kept is not None
    assert not lost
    assert list(kept.turns) == list(got.turns)


@pytest.mark.parametrize(("version", "newer"), [(2, True), (0, False), (None, False), ("1", False)])
def test_only_a_newer_slipstream_is_named_as_one(version: object, newer: bool) -> None:
    table = {**json.loads(exchange.as_json(chat(), Codec())), "version": version}
    with pytest.raises(HistoryError) as raised:
        exchange.of_table(table, "a.json", Codec())
    assert ("newer Slipstream" in raised.value.message) is newer


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        exchange.write(tmp_path / "file" / "x.md", "text")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_file_that_was_changed_by_hand(data: st.DataObject) -> None:
    table = json.loads(exchange.as_json(chat(), Codec()))
    row = data.draw(st.sampled_from([table, table["chat"], *table["turns"]]))
    row[data.draw(st.sampled_from(sorted(row)))] = data.draw(json_values)
    try:
        got = exchange.of_table(table, "by hand", Codec())
    except HistoryError:
        return
    for turn in got.turns.values():
        got.messages(turn)
