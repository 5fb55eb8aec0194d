"""What is on the page is what was written, and can be copied back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QImage,
    QPainter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from pytestqt.qtbot import QtBot

from app.conversation import Role, Turn
from app.engine import Script
from app.ui.chat.message import AnswerView
from app.ui.look import theme
from app.ui.look.icons import IconButton
from app.ui.look.theme import Size, Theme
from app.ui.markdown.copying import difference, markdown, plain_text
from app.ui.markdown.document import CHUNK, DocumentWriter, Kind
from app.ui.markdown.formats import Mark
from app.ui.markdown.markdown_view import MarkdownView
from app.ui.markdown.notes import names
from app.ui.markdown.shown import lines, may_show
from app.ui.markdown.stream import MarkdownStream
from app.ui.markdown.text_view import TextView
from app.ui.window.main_window import MainWindow
from tests.ui.conftest import OpenWindow, WaitUntil
from tests.ui.fakes import BatchEngine
from tests.ui.markdown.shown import shown
from tests.ui.markdown.test_stream import TEXT

BRACKETS = (
    "<smirk> waffles\n\n`std::vector<int> a;` and std::vector<std::string> b;\n\n"
    "<script>alert(1)</script>\n\n```html\n<b>never closed &amp; bold\n"
)


def render(pieces: list[str]) -> tuple[QTextDocument, DocumentWriter]:
    document = QTextDocument()
    writer = DocumentWriter(document)
    stream = MarkdownStream(writer)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return document, writer


def write_plain(document: QTextDocument, text: str) -> None:
    writer = DocumentWriter(document)
    writer.open_plain()
    writer.more(text)


def everything(document: QTextDocument) -> str:
    return plain_text(document, 0, document.characterCount())


def copied(document: QTextDocument) -> str:
    return markdown(document, 0, document.characterCount() - 1)


def test_streamed_equals_whole(look: Theme) -> None:
    streamed, one = render(list(TEXT))
    whole, other = render([TEXT])
    assert streamed.toHtml() == whole.toHtml()
    assert [(d.kind, d.start, d.end) for d in one.closed] == [
        (d.kind, d.start, d.end) for d in other.closed
    ]


def test_every_character_is_visible(look: Theme) -> None:
    shown = everything(render(list(BRACKETS))[0])
    for text in (
        "<smirk> waffles",
        "std::vector<int> a;",
        "std::vector<std::string> b;",
        "<script>alert(1)</script>",
        "<b>never closed &amp; bold",
    ):
        assert text in shown


def test_all_copied_is_what_was_written(qtbot: QtBot, look: Theme) -> None:
    view = AnswerView(Turn(Role.ASSISTANT, None, BRACKETS))
    qtbot.addWidget(view)
    body = view.findChildren(TextView)[-1]
    body.selectAll()
    data: QMimeData = body.createMimeDataFromSelection()
    assert data.text() == BRACKETS


def test_lists_are_copied_with_their_markers(look: Theme) -> None:
    document, _ = render(list("3. c\n4. d\n   - x\n5. e\n\n- y\n"))
    assert copied(document).split("\n") == ["3. c", "4. d", "   - x", "5. e", "", "- y"]


def test_code_is_copied_as_written(qtbot: QtBot, look: Theme) -> None:
    code = "def f():\n\n    return '😊' * 2  # x"
    document, writer = render([f"text 😊\n\n```python\n{code}\n```\n"])
    place = next(d for d in writer.closed if d.kind is Kind.CODE)
    assert plain_text(document, place.start, place.end) == code


def test_long_lines_are_laid_out_in_parts_and_copied_whole(look: Theme) -> None:
    line = "A" * (CHUNK * 3 + 7)
    document = QTextDocument()
    write_plain(document, f"{line}\nshort")
    assert document.blockCount() == 5
    assert everything(document) == f"{line}\nshort"
    fenced, writer = render([f"```\n{line[:CHUNK]}", f"{line[CHUNK:]}\n", "x\n```\n"])
    assert plain_text(fenced, writer.closed[0].start, writer.closed[0].end) == f"{line}\nx"


@pytest.mark.parametrize("before", ["", "text\n\n", "1. one\n\n"])
def test_code_has_its_header_wherever_it_stands(qtbot: QtBot, look: Theme, before: str) -> None:
    view = AnswerView(Turn(Role.ASSISTANT, None, f"{before}```python\nx = 1\n```"))
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    body = view.findChildren(TextView)[-1]
    button = body.findChildren(IconButton)[0]
    assert button.y() >= 4
    code = body.document().lastBlock()
    while code.text() != "x = 1":
        code = code.previous()
    top = body.document().documentLayout().blockBoundingRect(code).top()
    assert button.geometry().bottom() <= top
    assert body.height() >= top + 20


def test_empty_code_keeps_its_place(look: Theme) -> None:
    document, writer = render(list("```\n```\nafter\n"))
    assert everything(document).split("\n") == ["", "after"]
    assert writer.closed[0].end == 0


def test_a_part_of_a_text_is_copied_as_seen(qtbot: QtBot, look: Theme) -> None:
    view = TextView("text")
    qtbot.addWidget(view)
    write_plain(view.document(), "one 😊 two")
    cursor = view.textCursor()
    cursor.setPosition(4)
    cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    view.copy()
    assert QGuiApplication.clipboard().text() == "😊 two"


@pytest.mark.parametrize("image", ["![a](http://x.y/z.png)", "![b](file:///etc/passwd)"])
def test_images_are_words(image: str, look: Theme) -> None:
    document, _ = render([image])
    assert "￼" not in document.toPlainText()
    assert image.partition("(")[2].rstrip(")") in document.toPlainText()


def test_a_theme_change_writes_the_same_text(
    qtbot: QtBot, look: Theme, wait_until: WaitUntil
) -> None:
    view = AnswerView(Turn(Role.ASSISTANT, None, TEXT, "a thought"))
    qtbot.addWidget(view)
    view.show()
    wait_until(lambda: view.rendered)
    before = view.findChildren(TextView)[-1].toPlainText()
    try:
        look.choose("dark")
        wait_until(lambda: view.rendered)
        assert view.findChildren(TextView)[-1].toPlainText() == before
    finally:
        look.choose("light")


def runs(document: QTextDocument) -> list[tuple[str, QTextCharFormat]]:
    """The parts of a document of one look each."""
    result = []
    block = document.begin()
    while block.isValid():
        inside = block.begin()
        while not inside.atEnd():
            result.append((inside.fragment().text(), inside.fragment().charFormat()))
            inside += 1
        block = block.next()
    return result


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("(see https://a.b/Foo_(bar)).", "https://a.b/Foo_(bar)"),
        ("见https://a.b/c。好", "https://a.b/c"),
        ("サイトはhttps://a.b/cです", "https://a.b/c"),
        ("https://a.b/_x_/y*z*", "https://a.b/_x_/y*z*"),
        ("**https://a.b/c**, then", "https://a.b/c"),
        ("https://a.b/[x]?y=1!", "https://a.b/[x]?y=1"),
    ],
)
def test_bare_addresses_are_links(look: Theme, text: str, address: str) -> None:
    document, _ = render([text])
    links = [(t, f.anchorHref()) for t, f in runs(document) if f.isAnchor()]
    assert links == [(address, address)]


@pytest.mark.parametrize(
    "text", ["$a*b*c$", "\\(a*b*c\\)", "$$x_1 + x_2*y*$$", "$5 and $6*", "\\[a*b*c\\]"]
)
def test_a_formula_keeps_its_signs(look: Theme, text: str) -> None:
    document, _ = render([text])
    assert everything(document) == text


def test_money_is_no_formula(look: Theme) -> None:
    document, _ = render(["$5 to $6, US$7-$8, `$x` costs $9"])
    assert "formula" not in [f.property(Mark.RUN) for _, f in runs(document)]


def test_cells_break_lines_and_keep_escaped_signs(look: Theme) -> None:
    document, _ = render(["| a | b |\n|---|--:|\n| x<br>y \\| z | \\* `<br>` |\n"])
    assert everything(document).split("\n") == ["", "a", "b", "x", "y | z", "* <br>", ""]


def test_columns_are_aligned(look: Theme) -> None:
    document, _ = render(["| a | b | c | d |\n|:--|--:|:-:|---|\n| 1 | 2 | 3 | 4 |\n"])
    sides = []
    block = document.begin()
    while block.isValid():
        if block.text() in "1234" and block.text():
            sides.append(block.blockFormat().alignment())
        block = block.next()
    flag = Qt.AlignmentFlag
    assert sides == [flag.AlignLeft, flag.AlignRight, flag.AlignHCenter, flag.AlignLeading]


def test_tasks_have_boxes(look: Theme) -> None:
    document, _ = render(["- [x] done\n- [ ] open\n- [z] none\n"])
    marks = [
        b.blockFormat().marker() for b in (document.firstBlock(), document.firstBlock().next())
    ]
    assert [mark.name for mark in marks] == ["Checked", "Unchecked"]
    assert everything(document).split("\n") == ["done", "open", "[z] none"]


def test_directions_are_shown_and_not_obeyed(look: Theme) -> None:
    document, _ = render(["a \u202eb\n\n```\nif x: \u2066y\u2069\n```\n"])
    shown = everything(document)
    assert "‹U+202E›" in shown
    assert "‹U+2066›y‹U+2069›" in shown
    write_plain(plain := QTextDocument(), "\u202ec")
    assert everything(plain) == "‹U+202E›c"


def test_what_would_command_a_terminal_is_seen(look: Theme) -> None:
    document, _ = render(["```\necho \x1b[31mred\x07\tend\n```\n"])
    assert everything(document) == "echo ␛[31mred␇\tend"


@pytest.mark.parametrize(
    ("text", "strong"),
    [
        ("**注意：**これは重要です", "注意："),
        ("これは**「引用」**です", "「引用」"),
        ("他说**“你好”**。", "“你好”"),
        ("**단어(word)**는", "단어(word)"),
        ("ข้อ**(ก)**คือ", "(ก)"),
        ("**bold:** text", "bold:"),
        ("姓名*：张三，电话*：123", ""),
        ("价格*（含税），运费*（另计）", ""),
        ("数は 2 ** 3 ** 4 です", ""),
    ],
)
def test_scripts_without_spaces_are_emphasised_too(look: Theme, text: str, strong: str) -> None:
    document, _ = render([text])
    assert (
        "".join(shown for shown, look_ in runs(document) if look_.property(Mark.STRONG)) == strong
    )
    assert everything(document) == (text.replace("**", "") if strong else text)


def test_code_reads_from_left_to_right_and_a_quote_as_its_words_do(look: Theme) -> None:
    document, _ = render(["```\n# تعليق\n```\n> اقتباس\n\n> quoted\n"])
    code, arabic, latin = (document.findBlockByNumber(n) for n in range(3))
    assert code.textDirection() is Qt.LayoutDirection.LeftToRight
    assert arabic.textDirection() is Qt.LayoutDirection.RightToLeft
    for block, sides in ((arabic, (0, 16)), (latin, (16, 0))):
        shape = block.blockFormat()
        assert (shape.leftMargin(), shape.rightMargin()) == sides
    assert copied(document) == "```\n# تعليق\n```\n\n> اقتباس\n>\n> quoted"


def test_what_is_quoted_deeply_stays_on_the_page(qtbot: QtBot, look: Theme) -> None:
    text = f"{'>' * 300} deep\n\n" + "".join(f"{'  ' * i}- > level {i}\n" for i in range(40))
    view = shown(qtbot, text, 420)
    for word in ("deep", "level 39"):
        found = view.document().find(word)
        assert view.cursorRect(found).right() < view.viewport().width()
        assert found.block().layout().lineCount() == 1


def test_code_that_is_told_again_has_its_buttons(qtbot: QtBot, look: Theme) -> None:
    view = shown(qtbot, "```\ncode\n```\n", 420)
    writer = DocumentWriter(view.document())
    stream = MarkdownStream(writer)
    for piece in ("Before.\n\n``", "`\ncode\n", "```\n", "after", " it"):
        stream.feed(piece)
        view.decorate(list(writer.decorations))
        seen = [b for b in view.findChildren(IconButton) if b.isVisible()]
        assert len(seen) == (0 if piece.startswith("Before") else 2)
    (copy,) = (b for b in seen if b.accessibleName() == "Copy this code")
    assert copy.y() > view.cursorRect(view.document().find("Before")).bottom()


def test_a_diff_has_colours(
    open_window: OpenWindow, ask: Callable[[MainWindow, str], None], wait_until: WaitUntil
) -> None:
    window = open_window(BatchEngine(Script(text="```diff\n- old\n+ new\n```")))
    ask(window, "Go")
    body = window.chats.view.answers[0].body

    def colours() -> list[str]:
        blocks = [body.document().findBlockByNumber(n) for n in range(2)]
        return [
            part.format.foreground().color().name().upper()
            for block in blocks
            for part in block.layout().formats()
        ]

    wait_until(lambda: len(colours()) == 2)
    assert colours() == [theme.current().number, theme.current().string]


def test_bold_within_italic_is_seen(look: Theme) -> None:
    document, _ = render(["*one **two***"])
    ink = {}
    for word in ("one", "two"):
        image = QImage(200, 60, QImage.Format.Format_Grayscale8)
        image.fill(Qt.GlobalColor.white)
        painter = QPainter(image)
        painter.setFont(document.find(word).charFormat().font())
        assert painter.font().italic()
        painter.drawText(20, 40, "Hamburg")
        painter.end()
        ink[word] = sum(255 - sign for sign in bytes(image.constBits()))
    assert ink["two"] > 1.1 * ink["one"]


@pytest.mark.parametrize("px", [15, 21])
def test_a_tab_in_code_leads_to_the_fourth_column(qtbot: QtBot, look: Theme, px: int) -> None:
    pairs = ["\tx|    x", "a\tx|a   x", "abc\tx|abc x", "abcd\tx|abcd    x", "\t\tx|        x"]
    code = "\n".join(line for pair in pairs for line in pair.split("|"))
    view = MarkdownView("text", lambda: f"```\n{code}\n```")
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    view.rewrite()
    try:
        look.set_text_size(px)
        view.rewrite()
        places = []
        found = view.document().find("x")
        while not found.isNull():
            found.setPosition(found.selectionStart())
            places.append(view.cursorRect(found).left())
            found = view.document().find("x", found.position() + 1)
        assert len(places) == 2 * len(pairs)
        assert all(abs(a - b) <= 1 for a, b in zip(places[::2], places[1::2], strict=True))
    finally:
        look.set_text_size(15)


def test_code_is_shown_sign_by_sign(look: Theme) -> None:
    for text in ("```\na -> b\n```", "`a -> b`"):
        document, _ = render([text])
        ((shown, look_),) = runs(document)
        assert shown == "a -> b"
        assert look_.font().featureValue(QFont.Tag("calt")) == 0
        assert look_.font().isFeatureSet(QFont.Tag("calt"))


def test_tight_items_stand_close_and_nested_blocks_have_air(look: Theme) -> None:
    document, _ = render(["- a\n- b\n  - c\n- d\n\n- e\n"])
    block, tops = document.begin(), {}
    while block.isValid():
        tops[block.text()] = block.blockFormat().topMargin()
        block = block.next()
    assert tops == {"a": 0, "b": 2, "c": 2, "d": 6, "e": 8}


COPIED = """# Title

A **bold** word, *another*, ~~gone~~, `code`, [link](http://a.b) and $x*y$.[^1]

1. one
2. two
   - [x] nested

     ```sh
     ls

     -l
     ```

> quote
>
> - item

| a | b |
| --- | --: |
| 1 \\| 2 | x<br>y |

---

[^1]: note"""


def test_a_part_is_copied_as_markdown(look: Theme) -> None:
    """What is copied renders as what it was copied from."""
    document, _ = render([COPIED])
    again, _ = render([copied(document)])
    assert again.toHtml() == document.toHtml()
    assert copied(document).replace("     \n", "\n") == COPIED


def test_a_word_is_copied_as_seen(look: Theme) -> None:
    document, _ = render(["A **bold** word"])
    assert markdown(document, 2, 6) == "bold"
    assert markdown(document, 0, 6) == "A **bold**"


def test_notes_have_names_too(look: Theme) -> None:
    text = "A claim[^my-note] and one.[^2]\n\n[^my-note]: What it says.\n\n[^2]: More."
    document, _ = render([text])
    assert everything(document) == (
        "A claimmy-note and one.2\nmy-note What it says.\n2 More."  # both are set high
    )
    assert copied(document) == text
    high = QTextCharFormat.VerticalAlignment.AlignSuperScript
    for place in (len("A claimmy"), document.firstBlock().next().position() + 1):
        cursor = QTextCursor(document)
        cursor.setPosition(place)
        assert cursor.charFormat().verticalAlignment() is high


@pytest.mark.parametrize(
    "text",
    [
        "この結果[^src]は確かです",
        "结果。[^src]",
        "结果（見よ）[^src]，然后",
        "「引用」[^src]",
        "他问：[^src]什么？[^src]",
        "ผลลัพธ์[^src]คือ",
        "Is it?[^src]",
        "So it is![^src] And?![^src]",
        "claim:[^src] text",
        "यह है[^src]।[^src]",
        "حقا؟[^src]",
        "is **it**?[^src]",
        "and so on…[^src]",
        "‹mot›[^src]",
    ],
)
def test_a_note_may_follow_any_sign_that_ends_something(look: Theme, text: str) -> None:
    document, _ = render([text])
    assert "[^" not in everything(document)
    assert copied(document) == text


@pytest.mark.parametrize(
    "text",
    [
        "[^aeiou]+ and [^abc] match",
        "(?![^ab]), (?<![^ab]), (?=[^ab])",
        "「[^abc]」や（[^abc]）を",
        "です [^abc]、 ？ [^abc]",
        "It is a[^bcd]e or x[^yz]*.",
        'as in "[^abc]", (?:[^ab])',
        "a [^link](x) and a[^a b]",
    ],
)
def test_a_set_of_signs_is_no_note(look: Theme, text: str) -> None:
    shown = everything(render([text])[0])
    assert shown == text.replace("[^link](x)", "^link")


def test_long_tables_stay_tables(look: Theme) -> None:
    rows = "".join(f"| {i} | text |\n" for i in range(150))
    document, _ = render(list(f"| a | b |\n|---|---|\n{rows}"))
    assert copied(document).count("\n") == 151
    assert "|" not in everything(document)


def test_wide_tables_are_lines_that_do_not_wrap(look: Theme) -> None:
    row = "| " + " | ".join(f"c{i}" for i in range(40)) + " |"
    source = f"{row}\n|{' --- |' * 40}\n{row}"
    document, _ = render([source])
    assert document.lastBlock().blockFormat().nonBreakableLines()
    assert copied(document).replace(" --- ", "---") == source.replace(" --- ", "---")


def test_long_numbers_have_room(look: Theme) -> None:
    document, _ = render(["99. a\n100. b\n"])
    first, second = document.firstBlock(), document.firstBlock().next()
    metrics = QFontMetricsF(theme.font(Size.BODY))
    for block, number in ((first, "99. "), (second, "100. ")):
        room = document.indentWidth() + block.blockFormat().leftMargin()
        assert room >= metrics.horizontalAdvance(number)


@pytest.mark.parametrize(
    ("one", "other", "at"),
    [
        ("A *word* of it", "A *word* of it", None),
        ("A word of it", "A word of them", 10),
        ("A **word** of it", "A word of it", 2),
        ("👍 yes", "👍 no", 3),
        ("Energy $E$ here", "Energy $F$ here", 7),
        ("One", "# One", 3),
        ("1. One", "2. One", 3),
        ("- [ ] One", "- [x] One", 3),
        ("One", "One\n\nTwo", 4),
        ("| a | b |\n|---|---|\n| c | d |\n\nend", "| a | b |\n|---|---|\n| c | x |\n\nend", 7),
    ],
)
def test_the_first_difference_that_is_seen(
    look: Theme, one: str, other: str, at: int | None
) -> None:
    documents = [render([text])[0] for text in (one, other)]
    assert difference(*documents) == at
    assert difference(*reversed(documents)) == at


NOTED = "A claim[^src] and `re`: colou?[^r]\n\n| a[^src] |\n|--|\n| b?[^x] |\n"
NOTE = "\n[^src]: What it says.\n"


@pytest.mark.parametrize("pieces", [[NOTED + NOTE], [NOTED, NOTE], list(NOTED + NOTE)])
def test_a_name_that_no_note_has_refers_to_none(
    qtbot: QtBot, look: Theme, pieces: list[str]
) -> None:
    came: list[str] = []
    view = MarkdownView("Answer", lambda: "".join(came))
    qtbot.addWidget(view)
    for piece in pieces:
        came.append(piece)
        view.add(piece)
    view.finish()
    qtbot.waitUntil(lambda: view.rendered)
    assert everything(view.document()).split("\n") == [
        "A claimsrc and re: colou?[^r]", "", "asrc", "b?[^x]", "", "src What it says.",
    ]  # fmt: skip
    view.rewrite()
    qtbot.waitUntil(lambda: view.rendered)
    assert "[^src]" not in everything(view.document())


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("A claim[^a].\n\n[^a]: What it says.", {"a"}),
        ("> [^q]: Quoted.\n\n- [^i]: In an item.\n- > [^both]: There too.", {"q", "i", "both"}),
        ("```\n[^code]: as it is written\n```\n\n    [^more]: of it", set()),
        ("A line\n[^open]: and its end is not there", {"open"}),
        ("[^1]: A number needs no name.", set()),
    ],
)
def test_the_names_are_those_of_notes_on_the_page(text: str, known: set[str]) -> None:
    assert names(text) == known


def test_an_answer_with_a_named_note_ends_in_slices(qtbot: QtBot, look: Theme) -> None:
    came = ["A claim[^src] and more. " * 2000]
    view = MarkdownView("Answer", lambda: "".join(came))
    qtbot.addWidget(view)
    view.add(came[0])
    qtbot.waitUntil(lambda: view.rendered)
    came.append("\n" + NOTE)
    view.add(came[1])
    view.finish()
    assert not view.rendered  # all of it in one turn would hold the window
    qtbot.waitUntil(lambda: view.rendered and "[^" not in everything(view.document()))


@pytest.mark.parametrize(
    ("source", "word"),
    [("See [Link](https://a.b)s", "Links"), ("[a](b)[c](d)", "ac"), ("H[^1]2", "H12")],
)
def test_a_word_on_the_page_is_looked_for_there(look: Theme, source: str, word: str) -> None:
    assert word in "".join(lines(source))
    assert may_show(source, word)


def test_a_name_is_set_when_its_note_has_come(qtbot: QtBot, look: Theme) -> None:
    came = [NOTED]
    view = MarkdownView("Answer", lambda: "".join(came))
    qtbot.addWidget(view)
    view.add(NOTED)
    assert "claim[^src]" in everything(view.document())
    view.finish()
    qtbot.waitUntil(lambda: view.rendered)
    assert "claim[^src]" in everything(view.document())  # it never came


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("| الاسم | العمر |\n|:--|--:|\n| **سلمى** | 30 |\n| Bob | 4 |", True),
        ("| שם | גיל | ID |\n|---|---|---|\n| דנה | 30 | a |", True),
        ("| Name | العمر |\n|---|---|\n| سلمى | 30 |", False),
        ("| 1 | 2 |\n|---|---|\n| سلمى | 30 |", False),
    ],
)
def test_the_first_column_is_where_its_reader_begins(
    qtbot: QtBot, look: Theme, text: str, turned: bool
) -> None:
    document, _ = render([text])
    document.setTextWidth(400)
    document.documentLayout()
    cells = [cell.strip(" *") for cell in text.split("\n")[2].strip("| ").split("|")]
    places = []
    for cell in cells:
        cursor = document.find(cell)
        places.append(document.documentLayout().blockBoundingRect(cursor.block()).center().x())
    assert places == sorted(places, reverse=turned)
    assert (places[0] > 200) is turned  # at the edge where its lines begin
    rows, lines = copied(document).split("\n"), text.split("\n")
    assert [rows[0], *rows[2:]] == [lines[0], *lines[2:]]
    assert [side.strip().endswith(":") for side in rows[1].split("|")] == [
        side.strip().endswith(":") for side in lines[1].split("|")
    ]


def test_a_turned_table_streams_as_the_whole(look: Theme) -> None:
    text = "| الاسم | العمر |\n|:--|--:|\n" + "| **سلمى** | 30 |\n" * 3 + "\nنص"
    streamed, whole = render(list(text))[0], render([text])[0]
    assert streamed.toHtml() == whole.toHtml()
