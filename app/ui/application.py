"""The window's composition root. Order matters:

1. the log, so that everything after it can speak, Qt too;
2. the settings, which the look depends on;
3. Qt's application, and whether this is the first window: another start raises that and leaves;
   then the folders where the user wants them, fonts and palette, before any widget exists;
4. the engine's thread, then the window, which starts loading the model;
5. signal handlers, which need the window, and the event loop.

The engine is closed by the window, or here if there never was one.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QMessageLogContext,
    QSettings,
    Qt,
    QTimer,
    QtMsgType,
    qInstallMessageHandler,
)
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QProgressDialog

from app import frozen, log, moving, paths, settings
from app.download import Access
from app.download.token import Tokens
from app.engine import Engine, Figures
from app.history import Codec, History
from app.job import Jobs, Tools
from app.library import Library
from app.ui.instance import Instance
from app.ui.look import icons, language
from app.ui.look.palette import DARK
from app.ui.look.theme import Theme
from app.ui.window.main_window import MainWindow

_SOON_S: Final = 0.3
_FRAME_S: Final = 0.03
_LEVELS: Final = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}
CODEC: Final = Codec(
    encode=lambda figures: figures.as_dict() if isinstance(figures, Figures) else None,
    decode=Figures.from_dict,
)
"""How an answer's figures are kept."""

_log = logging.getLogger(__name__)
_qt_log = logging.getLogger("app.qt")


def run(argv: Sequence[str] | None = None, chats: Sequence[Path] = ()) -> int:
    """Open the window, and in it `chats` that were exported; the exit status when it is closed,
    or 1 where there is no display."""
    if not _has_display():  # Qt would end the process, and blame its plugins
        if sys.stderr is not None:
            sys.stderr.write("slipstream: there is no display; `slipstream ask …` needs none\n")
        return 1
    log.start(paths.log_file())
    qInstallMessageHandler(_log_qt)
    chosen, problems = settings.load(paths.settings_file())
    if chosen.zoom != 100:  # Qt reads it once
        os.environ.setdefault("QT_SCALE_FACTOR", str(chosen.zoom / 100))
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(list(sys.argv[:1] if argv is None else argv))
    QGuiApplication.setApplicationName("Slipstream")
    QGuiApplication.setDesktopFileName(frozen.APP_ID)
    # Before anything of the folders is touched. The state's never moves.
    instance = Instance(paths.state())
    if not instance.first and instance.raise_first(chats):
        _log.info("Slipstream is open already: its window is raised.")
        qInstallMessageHandler(None)
        return 0
    if not instance.first:
        instance.take_over()
    files = list(chats)
    instance.raised.connect(files.extend)  # of starts that come before there is a window
    if instance.first:
        folder_problems = _settle(chosen)
    else:  # the other one, which does not answer, may be at it
        folder_problems = []
        moving.use_known()
    language.install(chosen.language, app)  # before any text is made
    look = Theme(app, chosen.theme, chosen.text_size)
    app.setWindowIcon(icons.icon("app", DARK.accent, 64))
    library, tokens = Library.of_user(chosen.models_folder), Tokens()

    def tools() -> Tools:
        from app.selftest import try_pair  # here: no start needs it

        return Tools(try_pair, Access(tokens.get(), xet=window.flow.current.xet))

    engine = Engine()
    try:
        window = MainWindow(
            engine,
            library,
            chosen,
            partial(settings.save, paths.settings_file()),
            look,
            QSettings(str(paths.state() / "window.ini"), QSettings.Format.IniFormat),
            problems,
            folder_problems,
            Jobs(library.place, tools),
            tokens.put,
            History(paths.chats_file(), CODEC) if moving.is_there() else None,
            CODEC,
        )
    except BaseException:
        engine.close()
        raise
    # Python runs these between two byte codes: the bridge's timer sees to it that some run.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: window.close())
    # Closed by a signal while it is being shown, Qt does not take it for the last window. Where Qt
    # does, its wish to quit would outlive the loop and end whichever runs next.
    app.setQuitOnLastWindowClosed(False)
    # Later: closed before the loop runs, it would not know that it is to end.
    window.closed.connect(lambda: QTimer.singleShot(0, app, lambda: app.exit(0)))

    def open_files(files: Sequence[Path]) -> None:
        for file in files:
            window.porting.take_in(file)

    instance.raised.disconnect(files.extend)
    instance.raised.connect(open_files)
    instance.raised.connect(lambda: _raise(window))
    window.closing.connect(instance.leave)
    # What was found while the window was made: so the model is loaded while it is painted.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall.value)
    window.show()
    open_files(files)
    QTimer.singleShot(0, app, _look_for_cycles)
    try:
        return app.exec()
    finally:
        instance.close()
        qInstallMessageHandler(None)  # Qt may speak when Python cannot listen any more


def _has_display() -> bool:
    """As far as the environment tells; macOS and Windows have one, and Qt may be told of another
    kind by `QT_QPA_PLATFORM`."""
    named = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not sys.platform.startswith("linux") or any(map(os.environ.get, named))


def _look_for_cycles() -> None:
    """Again, where the program has begun without; and never among what was made until now."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _raise(window: MainWindow) -> None:
    """Before the user's eyes, wherever it was."""
    if window.isMinimized():
        window.showNormal()
    window.raise_()
    window.activateWindow()


def _settle(chosen: settings.Settings) -> list[str]:
    """`moving.settle`, and a word about it where that takes a while, as to another disk."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="moving") as thread:
        moved = thread.submit(moving.settle, chosen)
        wait([moved], _SOON_S)
        if not moved.done():
            told = QProgressDialog()
            told.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
            told.setCancelButton(None)
            told.setRange(0, 0)
            told.setWindowTitle("Slipstream")
            told.setLabelText("Chats and models are being moved. The window opens when they are.")
            told.show()
            while not moved.done():
                QCoreApplication.processEvents()
                wait([moved], _FRAME_S)
            told.close()
            told.deleteLater()
        return moved.result()


def _log_qt(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    """What Qt says, where a user without a terminal can find it."""
    _qt_log.log(_LEVELS[kind], "%s", message)
