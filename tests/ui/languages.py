"""What there is to translate: `python -m tests.ui.languages FILE.ts`.

A window goes through its main views while a translator of our own is asked for each text: what
it was asked is what stands in the file. With it in use, a text without its marks was not asked
for, and no language would ever change it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from PySide6.QtCore import QTranslator
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QMenu, QWidget

from app.ui.look import language
from app.ui.window.help import Topic
from app.ui.window.main_window import MainWindow

OPEN, CLOSE = "⟦", "⟧"


class Pseudo(QTranslator):
    """Each text in marks, which are put once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, None] = {}  # in their order

    def translate(  # type: ignore[override]
        self, context: str, text: str, disambiguation: str | None = None, n: int = -1
    ) -> str | None:
        if context != language.CONTEXT:
            return None  # Qt's own: "" would be a translation
        if OPEN in text:
            return text
        self.asked[text] = None
        return f"{OPEN}{text}{CLOSE}"

    def isEmpty(self) -> bool:
        return False


def views(window: MainWindow) -> Iterator[tuple[str, QWidget]]:
    """The main views, each while it is on view."""
    yield "chat", window.page
    actions = window.actions_
    for name, action in (
        ("settings", actions.settings),
        ("chat options", actions.chat_options),
        ("models", actions.models),
        *((f"help: {topic.name}", actions.help[topic]) for topic in (Topic.KEYS, Topic.ABOUT)),
    ):
        action.trigger()
        QApplication.processEvents()
        sheet = window.sides.sheet
        assert sheet is not None
        yield name, sheet
        window.sides.close_sheet()
    actions.find.trigger()
    yield "find", window.finder
    window.finder.leave()
    yield "menu", actions.menu


def texts(view: QWidget) -> Iterator[str]:
    """All that it shows, tells in a tooltip, or is called."""
    actions: list[QAction] = [a for menu in view.findChildren(QMenu) for a in menu.actions()]
    if isinstance(view, QMenu):
        actions += view.actions()
    yield from (action.text() for action in actions)
    for part in (view, *view.findChildren(QWidget)):
        if isinstance(part, QLabel | QAbstractButton):
            yield part.text()
        if isinstance(part, QLineEdit):
            yield part.placeholderText()
        yield part.toolTip()
        yield part.accessibleName()


def write(file: Path, asked: Iterator[str]) -> None:
    """As Qt's tools read it."""
    root = ElementTree.Element("TS", version="2.1", sourcelanguage="en")
    context = ElementTree.SubElement(root, "context")
    ElementTree.SubElement(context, "name").text = language.CONTEXT
    for text in asked:
        message = ElementTree.SubElement(context, "message")
        ElementTree.SubElement(message, "source").text = text
        ElementTree.SubElement(message, "translation", type="unfinished")
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from app.settings import Settings
    from app.ui.look.theme import Theme
    from tests.ui.fakes import BatchEngine, FakeModels

    app = QApplication(sys.argv[:1])
    pseudo = Pseudo()
    app.installTranslator(pseudo)
    window = MainWindow(
        BatchEngine(), FakeModels(), Settings(), lambda _: None, Theme(app, "light")
    )
    window.show()
    for _, view in views(window):
        list(texts(view))
    write(args.file, iter(pseudo.asked))
    window.close()
    print(f"{len(pseudo.asked)} texts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
