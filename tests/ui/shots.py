"""Screenshots of the window: `python -m tests.ui.shots OUT_DIR [--real] [--scale 2]`.

Without `--real` the scripted engine answers, so that the pictures show the same every
time; with it, the built-in guide does.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import shiboken6
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.conversation import Conversation, End
from app.engine import Engine, Script
from app.errors import ContextFullError
from app.history import History
from app.library import Library
from app.presets import ChatOptions
from app.settings import Settings
from app.ui.look.theme import Theme
from app.ui.window.actions import Topic
from app.ui.window.main_window import MainWindow
from tests.ui.fakes import BatchEngine, FakeModels
from tests.ui.models.shots import take_models

QUESTION = "What is DFlash?"
ANSWER = """DFlash is **block-diffusion speculative decoding**. A small drafter reads the hidden \
states of the model and proposes a whole block of tokens in one pass; the model then checks \
the block in one pass of its own.

1. The drafter proposes up to 15 tokens after the last one that is certain.
2. The model verifies all of them at once and keeps the longest agreeing part.
3. Where they differ, the model's own token takes the place of the draft.

So the text is the same as without a drafter, it only comes sooner:

```python
def round(target, drafter, text):
    block = drafter.propose(text, size=16)   # one pass
    kept, own = target.verify(text, block)   # one pass
    return text + kept + [own]               # never worse than one token
```

The mean accepted length beside this chat tells how many tokens a round gives."""
THOUGHT = "The user asks what DFlash is. A short definition, the steps, and a sketch will do."
CHATS = (
    ("Rewinds in hybrid models", 40, True),
    ("Trip to Lisbon", 0.01, False),
    ("SQL: the last row of each group", 0.02, False),
    ("مرحبا، كيف حالك؟", 1, False),
    ("日本語の勉強 🎌", 1.1, False),
    ("Trip to Lisbon", 3, False),
    ("Why is the sky blue, and what has that to do with the sunset?", 9, False),
    ("A recipe with lentils", 45, False),
)
"""Title, days since the last use, pinned."""
PATTERN = (15, 9, 11, 4, 15, 7, 2, 12, 15, 0, 6, 8)

REPAINTED_MS = 120
"""Meters are painted fifteen times a second, and nothing moves for longer."""

Shoot = Callable[[str], None]


def wait(until: Callable[[], bool], limit_ms: int = 60_000) -> None:
    """Run the event loop until `until` holds, and a little longer for the last repaint."""
    loop = QEventLoop()
    timer = QTimer(interval=10)
    timer.timeout.connect(lambda: loop.quit() if until() else None)
    timer.start()
    QTimer.singleShot(limit_ms, loop.quit)
    loop.exec()
    timer.stop()
    QTimer.singleShot(REPAINTED_MS, loop.quit)
    loop.exec()


def answered(window: MainWindow) -> bool:
    return not window.controller.busy and all(a.rendered for a in window.chats.view.answers)


def take(out: Path, app: QApplication, look: Theme, name: str, real: bool) -> list[Path]:
    """The shots in one palette; returns the files."""
    look.choose(name)
    script = Script(text=ANSWER, reasoning=THOUGHT, accepted=PATTERN, block=16)
    scripted = BatchEngine(script, batch=1)
    engine = Engine() if real else scripted
    models = Library.of_user() if real else FakeModels()
    settings = Settings(theme="dark" if name == "dark" else "light", think=not real)
    kept = tempfile.TemporaryDirectory()
    history = None if real else History(chats_of(Path(kept.name)))
    window = MainWindow(engine, models, settings, lambda _: None, look, history=history)
    files: list[Path] = []

    def shoot(what: str) -> None:
        files.append(out / f"{what}-{name}.png")
        window.grab().save(str(files[-1]))

    window.resize(1280, 800)
    window.show()
    wait(lambda: window.header.chip.state.text.startswith("DFlash ready"))
    wait(lambda: window.meters.plain_tokens_per_s is not None)
    shoot("empty")
    window.controller.ask("Count to twenty")
    if real:
        wait(lambda: answered(window))
        window.controller.new_chat()
    else:
        wait(lambda: len(window.chats.view.answers[0].turn.text) > 300)
        shoot("streaming")
        scripted.hurry()
        window.controller.new_chat()
        wait(lambda: answered(window))
    window.controller.ask(QUESTION)
    wait(lambda: answered(window))
    window.chats.view.verticalScrollBar().setValue(0)
    shoot("chat")
    if not real:
        states(window, scripted, shoot)
    window.close()
    shiboken6.delete(window)  # or each change of the palette goes through all of it again
    kept.cleanup()
    return files


def chats_of(folder: Path) -> Path:
    """A file of chats as somebody has them after some weeks."""
    now, day = time.time(), 86_400
    file = folder / "chats.db"
    with closing(History(file)) as history:
        history.open()
        for title, days, pinned in CHATS:
            chat = Conversation(name=title, pinned=pinned, used=now - days * day)
            answer = chat.answer(chat.ask(title))
            answer.text, answer.end = ANSWER, End.DONE
            history.save(chat, chat.turns.values())
    return file


def states(window: MainWindow, engine: BatchEngine, shoot: Shoot) -> None:
    """What is not seen in a chat that goes well."""
    actions = window.actions_
    chat = window.controller.current
    for name, action in (
        ("settings", actions.settings),
        ("chat-options", actions.chat_options),
        ("keys", actions.help[Topic.KEYS]),
    ):
        if action is actions.chat_options:
            window.presetting.show(chat)  # from then on the sheet's presets are kept
            window.chat_sheet.preset_saved.emit("Translator")
            window.chat_sheet.preset_saved.emit("Terse")
            window.chat_sheet.options = ChatOptions("Answer in one sentence.", preset="Terse")
            window.controller.set_options(window.chat_sheet.options)
        action.trigger()
        wait(lambda: True)
        shoot(name)
        window.sides.close_sheet()
    actions.find.trigger()
    window.finder.field.setText("block")
    wait(lambda: True)
    shoot("find")
    window.finder.leave()
    window.sidebar.search.setText("tokens")
    wait(lambda: window.sidebar._hits is not None)
    shoot("search")
    window.sidebar.end_search()
    window.controller.delete_chat(window.controller.book.summaries[-1].id)
    question = chat.path()[0]
    window.controller.ask("And with code?")
    wait(lambda: answered(window))
    window._drop_oldest()
    window.composer.field.setPlainText("How much does it help with code?")
    wait(lambda: True)
    shoot("notices")
    window.chats.view.reveal(chat.path()[2])
    window.chats.view.verticalScrollBar().setValue(
        window.chats.view.verticalScrollBar().value() - 120
    )
    wait(lambda: True)
    shoot("read-from")
    window.chats.view.reveal(question)
    for message in window.chats.view.messages[:1]:
        message.start_editing()
    wait(lambda: True)
    shoot("editing")
    window.chats.view.messages[0].stop_editing()
    window.notices.close_all()
    window.composer.clear()
    window.resize(640, 780)
    wait(lambda: True)
    shoot("narrow")
    window.resize(400, 700)
    actions.sidebar.trigger()
    wait(lambda: True)
    shoot("narrow-chats")
    window.sides.close_floating()
    window.resize(1280, 800)
    engine.script.error = ContextFullError(
        "The prompt has 5,120 tokens, the context holds 4,096.",
        remedy="Start a new chat, or raise the context in the settings.",
    )
    window.controller.ask("And now the whole book, please.")
    wait(lambda: answered(window))
    window.chats.view.answers[0]._why.click()
    window.chats.view.link_chosen.emit("https://arxiv.org/abs/2602.06036")
    wait(lambda: True)
    window.chats.view.go_down()
    shoot("error")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--real", action="store_true", help="let the built-in guide answer")
    parser.add_argument("--scale", default="1", help="device pixels a pixel")
    args = parser.parse_args()

    def taken(app: QApplication, look: Theme, name: str) -> list[Path]:
        files = take(args.out, app, look, name, args.real)
        return files if args.real else [*files, *take_models(args.out, look, name, wait)]

    in_both_palettes(taken, args.out, args.scale)
    return 0


def in_both_palettes(
    taken: Callable[[QApplication, Theme, str], list[Path]], out: Path, scale: str
) -> None:
    """Take pictures in an application of their own, and print the files."""
    os.environ["QT_SCALE_FACTOR"] = scale
    out.mkdir(parents=True, exist_ok=True)
    app = QApplication(sys.argv[:1])
    look = Theme(app, "light")
    for name in ("light", "dark"):
        for file in taken(app, look, name):
            print(file)


if __name__ == "__main__":
    sys.exit(main())
