"""The window on a test's desktop: `python -m tests.ui.desktop.app [--size 400x700] [--theme dark]`.

A scripted engine answers. What is shown is told as lines of JSON in `$SLIPSTREAM_TOLD`, each
when it has changed: what a person would see, for tests that press keys and look.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget

from app import paths
from app.engine import Script
from app.history import History
from app.settings import Settings
from app.ui.application import CODEC
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow
from app.ui.window.sides import Side
from tests.ui.fakes import BatchEngine, FakeModels
from tests.ui.shots import ANSWER, PATTERN, THOUGHT


def state_of(window: MainWindow) -> dict[str, Any]:
    focus = QApplication.focusWidget()
    chat = window.controller.current
    return {
        "ready": window.header.chip.state.text.startswith("DFlash") and not window.loader.obstacle,
        "active": window.isActiveWindow(),
        "size": [window.width(), window.height()],
        "screen": [window.screen().size().width(), window.screen().size().height()],
        "text": window.composer.field.toPlainText(),
        "composing": window.composer.field.composing,
        "messages": [turn.text for turn in chat.path()],
        "busy": window.controller.busy,
        "chats": [summary.title for summary in window.controller.book.summaries],
        "focus": focus.accessibleName() if focus is not None else "",
        "seen": {side: window.sides.seen(side) for side in (Side.CHATS, Side.METERS)},
        "sheet": window.sides.sheet.accessibleName() if window.sides.sheet else "",
        "finding": window.finder.isVisible(),
        "notices": [notice.message for notice in window.notices.all],
        "theme": window.flow.current.theme,
        "places": places(window),
    }


def places(window: MainWindow) -> dict[str, list[int]]:
    """Middles of what can be clicked, in device pixels of the screen, by name or text."""
    result: dict[str, list[int]] = {}
    ratio = window.devicePixelRatioF()
    widgets: list[QWidget] = [*window.findChildren(QAbstractButton)]
    widgets += window.findChildren(QLineEdit)
    for widget in widgets:
        if not widget.isVisible() or widget.visibleRegion().isEmpty() or not widget.isEnabled():
            continue
        text = widget.text() if isinstance(widget, QAbstractButton) else ""
        middle = widget.mapToGlobal(widget.visibleRegion().boundingRect().center())
        spot = [round(middle.x() * ratio), round(middle.y() * ratio)]
        for name in filter(None, (widget.accessibleName(), text)):
            result.setdefault(name, spot)
    chats = window.sidebar.list
    for row in range(chats.rows.rowCount()):
        index = chats.rows.index(row)
        if chats.isVisible() and (entry := chats.rows.entry(index)) is not None:
            middle = chats.viewport().mapToGlobal(chats.visualRect(index).center())
            result[f"chat: {entry.title}"] = [round(middle.x() * ratio), round(middle.y() * ratio)]
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="")
    parser.add_argument("--theme", default="light")
    parser.add_argument("--words", type=int, default=0, help="of a long answer, in its place")
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    text = " ".join(f"word{i}" for i in range(args.words)) or ANSWER
    script = Script(text=text, reasoning=THOUGHT, accepted=PATTERN, block=16)
    engine = BatchEngine(script, batch=1)
    settings = Settings(theme=args.theme)
    history = History(paths.chats_file(), CODEC)
    window = MainWindow(
        engine, FakeModels(), settings, lambda _: None, Theme(app, args.theme), history=history
    )
    if args.size:
        width, height = map(int, args.size.split("x"))
        window.resize(width, height)
        window.move(0, 0)
    window.show()
    with Path(os.environ["SLIPSTREAM_TOLD"]).open("w", encoding="utf-8") as told:
        last: list[str] = [""]

        def tell() -> None:
            line = json.dumps(state_of(window))
            if line != last[0]:
                last[0] = line
                print(line, file=told, flush=True)

        timer = QTimer(interval=30)
        timer.timeout.connect(tell)
        timer.start()
        return app.exec()


if __name__ == "__main__":
    sys.exit(main())
