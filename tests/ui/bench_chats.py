"""What chats cost the window, as rows of `bench`: opening a long one, searching many, memory."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from tests.ui.bench import Row, Rows


def chats_of(folder: Path, chats: int, exchanges: int, text: str) -> list[str]:
    """A file of chats; their ids."""
    from app.conversation import Conversation, End
    from app.history import History

    ids = []
    with closing(History(folder / "chats.db")) as history:
        history.open()
        for n in range(chats):
            chat = Conversation(name=f"Chat {n}")
            for i in range(exchanges):
                answer = chat.answer(chat.ask(f"Question number{n}x{i}: what does it do?"))
                answer.text, answer.end = text, End.DONE
            history.save(chat, chat.turns.values())
            ids.append(chat.id)
    return ids


def _search(folder: Path) -> Iterator[Row]:
    """The slowest of some queries over 10,000 messages, each the median of nine."""
    from app.history import History

    words = "the drafter proposes a block and one pass verifies it in the target".split()
    chats_of(folder, 50, 100, " ".join(words * 8))
    worst = 0.0
    with closing(History(folder / "chats.db")) as history:
        history.open().result()
        for query in ("number17x5", "drafter block", "v", "t", "number1"):
            times = []
            for _ in range(9):
                before = time.perf_counter()
                history.search(query).result()
                times.append((time.perf_counter() - before) * 1000)
            worst = max(worst, statistics.median(times))
    yield Row("search in 10,000 messages", "ms", round(worst, 1), 50)


def _opening(folder: Path) -> Iterator[Row]:
    """From the choice of a chat of 400 messages to the end of the turn that has it drawn."""
    from PySide6.QtWidgets import QApplication

    from app.conversation import Conversation
    from app.history import History
    from app.settings import Settings
    from app.ui.look.theme import Theme
    from app.ui.window.main_window import MainWindow
    from tests.ui.fakes import BatchEngine, FakeModels
    from tests.ui.shots import ANSWER, wait

    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    ids = chats_of(folder, 6, 200, ANSWER)
    window = MainWindow(
        BatchEngine(), FakeModels(), Settings(theme="light"), lambda _: None, Theme(app, "light"),
        history=History(folder / "chats.db"),
    )  # fmt: skip
    window.resize(1280, 800)
    window.show()
    wait(lambda: bool(window.controller.book.lasting))
    times, widgets = [], 0
    for id_ in ids:
        came: list[Conversation] = []
        window.controller.book.shown.connect(came.append)
        before = time.perf_counter()
        window.controller.show_chat(id_)
        while not came:
            app.processEvents()
        while not all(a.rendered for a in window.chats.view.answers):
            app.processEvents()
        window.grab()
        times.append((time.perf_counter() - before) * 1000)
        window.controller.book.shown.disconnect(came.append)
        widgets = len(window.chats.view.messages)
    window.close()
    took = statistics.median(times[1:])
    yield Row("opening a chat of 400 messages", "ms", round(took, 1), 300)
    yield Row("messages of it that are widgets", "", widgets, 60)


def _memory(folder: Path) -> Iterator[Row]:
    """What the process holds more after 50 answers in one chat than after the first five."""
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication

    from app.engine import Script
    from app.history import History
    from app.settings import Settings
    from app.ui.look.theme import Theme
    from app.ui.window.main_window import MainWindow
    from tests.ui.fakes import BatchEngine, FakeModels
    from tests.ui.shots import ANSWER, PATTERN

    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    engine = BatchEngine(Script(text=ANSWER, accepted=PATTERN, block=16), batch=40)
    window = MainWindow(
        engine, FakeModels(), Settings(theme="light"), lambda _: None, Theme(app, "light"),
        history=History(folder / "chats.db"),
    )  # fmt: skip
    window.resize(1280, 800)
    window.show()

    def until(holds: Callable[[], bool]) -> None:
        # A loop of its own: outside of one, Qt never deletes what is to be deleted later.
        loop = QEventLoop()
        look = QTimer(interval=2)
        look.timeout.connect(lambda: loop.quit() if holds() else None)
        look.start()
        loop.exec()

    until(lambda: not window.loader.obstacle and window.controller.book.lasting)
    before = 0.0
    for i in range(55):
        if i == 5:
            before = resident()
        window.controller.ask(f"Question {i}")
        until(lambda: not window.controller.busy)
        until(lambda: all(a.rendered for a in window.chats.view.answers))
    after = resident()
    window.close()
    yield Row("memory of 50 answers", "MB", round(after - before, 1), 15)


def resident() -> float:
    """MB that the process has in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _in_a_folder(measure: Callable[[Path], Iterator[Row]]) -> Rows:
    def rows() -> Iterator[Row]:
        with tempfile.TemporaryDirectory() as folder:
            yield from measure(Path(folder))

    return rows


ROWS: list[Rows] = [_in_a_folder(measure) for measure in (_memory, _opening, _search)]
