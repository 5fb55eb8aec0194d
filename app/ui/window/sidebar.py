"""The chats: by last use, in groups by day; or those in which something was found."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.history import Hit, Summary
from app.ui.look import theme
from app.ui.look.controls import claim_escape
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.window.chat_list import (
    EXPORTS,
    ChatListModel,
    Entry,
    RowPainter,
    State,
    grouped,
    told_apart,
)

WIDTH: Final = 256

_PAUSE_MS: Final = 60
"""After a key, before it is looked for."""


class ChatList(QListView):
    opened = Signal(str)  # the conversation's id
    menu_wanted = Signal(object, QPoint)  # Entry, where on the screen
    delete_wanted = Signal(str)
    renamed = Signal(str, str)  # a chat's id, the name that was written

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = ChatListModel(self)
        self.setModel(self.rows)
        self._painter = RowPainter(self)
        self.setItemDelegate(self._painter)
        self.setAccessibleName(tr("Chats"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._field: QLineEdit | None = None  # where a name is being written
        self._renamed = ""  # the chat that it is for

    def entry(self) -> Entry | None:
        """That of the row that is chosen."""
        return self.rows.entry(self.currentIndex())

    def choose(self, chat: str) -> None:
        """Show a chat as the one on view, without telling it."""
        row = self.rows.row_of(chat)
        if row < 0:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        elif self.currentIndex().row() != row:
            self.setCurrentIndex(self.rows.index(row))
        self._place_field()  # the rows may be others than before

    def rename(self, chat: str) -> None:
        """Have its name written in its row: Enter keeps it, Escape and leaving do not."""
        if (row := self.rows.row_of(chat)) < 0:
            return
        self._end_renaming()
        index = self.rows.index(row)
        self.setCurrentIndex(index)
        self.scrollTo(index)
        field = self._field = QLineEdit(str(index.data()), self.viewport())
        self._renamed = chat
        field.setAccessibleName(tr("Name of the chat"))
        field.setMaxLength(200)
        field.setFont(theme.font(Size.CONTROL))
        self._place_field()
        field.installEventFilter(self)
        field.selectAll()
        field.show()
        field.setFocus()

    def _place_field(self) -> None:
        """Over the row of its chat; it goes with that."""
        if self._field is None:
            return
        if (row := self.rows.row_of(self._renamed)) < 0:
            self._end_renaming()
            return
        place = self.visualRect(self.rows.index(row))
        self._field.setGeometry(place.adjusted(Space.S, 1, -Space.S, -1))

    def _end_renaming(self, *, left: bool = False) -> None:
        """The focus comes to the list, where it has not `left` for something else."""
        if (field := self._field) is not None:
            self._field = None
            field.hide()
            field.deleteLater()
            if not left:
                self.setFocus()

    # --- Qt ---------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is not self._field or self._field is None:
            return super().eventFilter(watched, event)
        if event.type() == QEvent.Type.FocusOut:
            self._end_renaming(left=True)
        elif isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # it is not the window's Stop
            else:
                self._end_renaming()
            return True
        elif isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if event.type() == QEvent.Type.KeyPress:
                # Not the row that is chosen: that is another one once something ends.
                name = self._field.text()
                entry = self.rows.entry(self.rows.index(self.rows.row_of(self._renamed)))
                self._end_renaming()
                if entry is not None and name != entry.title:
                    self.renamed.emit(entry.id, name)
            return True
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        entry = self.entry()
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Space if entry:
                self.opened.emit(entry.id)
            case Qt.Key.Key_Delete if entry:
                self.delete_wanted.emit(entry.id)
            case Qt.Key.Key_Menu if entry:
                below = self.visualRect(self.currentIndex()).bottomLeft()
                self.menu_wanted.emit(entry, self.viewport().mapToGlobal(below))
            case _:
                typed = event.text().isprintable() and bool(event.text())
                plain = not event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier
                if typed and plain and event.key() != Qt.Key.Key_F2:
                    event.ignore()  # it is for the composer
                else:
                    super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        entry = self.rows.entry(index)
        if entry is None:
            return
        at_more = self._painter.more_of(self.visualRect(index)).contains(event.position().toPoint())
        if event.button() is Qt.MouseButton.LeftButton and at_more:
            self.menu_wanted.emit(entry, event.globalPosition().toPoint())
        elif event.button() is Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            self.opened.emit(entry.id)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if (entry := self.rows.entry(self.indexAt(event.pos()))) is not None:
            self.menu_wanted.emit(entry, event.globalPos())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.viewport().update()
            self.scheduleDelayedItemsLayout()  # the text may be a larger one


class Sidebar(QFrame):
    """`search` is called with a query and what takes its hits."""

    chosen = Signal(str)  # the conversation's id
    found = Signal(str, str, str)  # a chat's id, a turn's, what stands there
    search_left = Signal()
    renamed = Signal(str, str)
    pinned = Signal(str, bool)
    deleted = Signal(str)
    export_wanted = Signal(str, str)  # a chat's id; "markdown", "json", "html" or "pdf"
    import_wanted = Signal()

    def __init__(
        self,
        search: Callable[[str, Callable[[tuple[Hit, ...]], None]], None] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._search = search
        self._summaries: Sequence[Summary] = ()
        self._states: dict[str, State] = {}
        self._hits: tuple[Hit, ...] | None = None  # of a search that is on view
        self._current = ""
        self._asked = 0
        self._looking = False  # for what is written now
        self._entering: bool | None = None  # the list, once it is found; and whether to open
        self.setProperty("kind", "panel")
        self.setFixedWidth(WIDTH)
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search chats"))
        self.search.setAccessibleName(tr("Search chats"))
        self.search.setProperty("kind", "search")
        self.search.setClearButtonEnabled(True)
        self.search.setFont(theme.font(Size.CONTROL))
        for button in self.search.findChildren(QToolButton):
            button.setAccessibleName(tr("Clear the search"))
            button.setToolTip(tr("Clear the search (Esc)"))
        self.search.textChanged.connect(self._query_changed)
        self.search.installEventFilter(self)
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._look_for)
        self._midnight = QTimer(self, singleShot=True)
        self._midnight.timeout.connect(self._show)
        self.list = ChatList()
        self.note = QLabel(tr("Your chats will be listed here."))
        self.note.setProperty("kind", "caption")
        self.note.setFont(theme.font(Size.SMALL))
        self.note.setWordWrap(True)
        self.note.setContentsMargins(Space.L + 2, Space.S, Space.L, Space.S)
        self.note.hide()
        top = QVBoxLayout()
        top.setContentsMargins(Space.M, Space.M, Space.M, Space.XS)
        top.addWidget(self.search)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self.note)
        column.addWidget(self.list, 1)
        self.list.opened.connect(self._open)
        self.list.menu_wanted.connect(self._open_menu)
        self.list.delete_wanted.connect(self.deleted)
        self.list.renamed.connect(self.renamed)

    def show_chats(
        self, summaries: Sequence[Summary], states: dict[str, State], current: str
    ) -> None:
        self._summaries, self._states, self._current = summaries, states, current
        self._show()

    def start_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def rename(self, chat: str) -> None:
        """Have its name written, also where a search has not found it."""
        if self.list.rows.row_of(chat) < 0:
            self.end_search()
        self.list.rename(chat)

    def end_search(self) -> None:
        self.search.clear()

    @property
    def searching(self) -> bool:
        return bool(self.search.text().strip())

    # --- Qt -----------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Escape:
                # It clears the search, and leaves one that is empty.
                if claim_escape(event) or event.type() != QEvent.Type.KeyPress:
                    return True
                if self.search.text():
                    self.end_search()
                else:
                    self.search_left.emit()
                return True
            down = event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if event.type() == QEvent.Type.KeyPress and down:
                self._enter_list(open_it=event.key() != Qt.Key.Key_Down)
                return True
        return super().eventFilter(watched, event)

    # --- own ----------------------------------------------------------------------------

    def _enter_list(self, open_it: bool) -> None:
        if self._looking:
            self._entering = open_it  # what is listed now is not what was looked for
            return
        rows = self.list.rows.rows
        first = next((i for i, row in enumerate(rows) if isinstance(row, Entry)), -1)
        if first >= 0:
            self.list.setFocus()
            self.list.setCurrentIndex(self.list.rows.index(first))
            if open_it and (entry := self.list.entry()) is not None:
                self._open(entry.id)

    def _query_changed(self) -> None:
        self._entering = None
        self._looking = self.searching and self._search is not None
        if self.searching:
            self._pause.start()
        else:
            self._pause.stop()
            self._asked += 1
            self._hits = None
            self._show()

    def _look_for(self) -> None:
        if self._search is None:
            return
        self._asked += 1
        asked = self._asked
        self._search(self.search.text(), lambda hits: self._came(asked, hits))

    def _came(self, asked: int, hits: tuple[Hit, ...]) -> None:
        if asked != self._asked:
            return  # there is a newer one
        self._hits = hits
        self._looking = self._pause.isActive()
        self._show()
        if not self._looking and self._entering is not None:
            open_it, self._entering = self._entering, None
            if self.search.hasFocus():
                self._enter_list(open_it)

    def _show(self) -> None:
        today = date.today()
        if self._hits is not None:
            # A chat may have been renamed or deleted since.
            known = {s.id: s.title for s in self._summaries}
            found = [
                Entry(h.chat, known[h.chat], h.used, False, self._state(h.chat), h.excerpt, h.turn)
                for h in self._hits
                if h.chat in known
            ]
            entries = told_apart(found, today)
            rows: list[str | Entry] = [_counted(len(entries)), *entries]
        else:
            chats = [
                Entry(s.id, s.title, s.used, s.pinned, self._state(s.id)) for s in self._summaries
            ]
            rows = grouped(told_apart(chats, today), today)
        self.list.rows.set_rows(rows)
        self.list.choose(self._current)
        self._show_note()
        now = time.localtime()
        left = 86_400 - now.tm_hour * 3_600 - now.tm_min * 60 - now.tm_sec
        self._midnight.start((left + 1) * 1000)

    def _show_note(self) -> None:
        self.note.setVisible(not self._summaries and self._hits is None)

    def _state(self, chat: str) -> State:
        return self._states.get(chat, State.NONE)

    def _open(self, chat: str) -> None:
        entry = self.list.entry()
        if self._hits is not None and entry is not None and entry.turn:
            self.found.emit(chat, entry.turn, _written(entry.excerpt, self.search.text()))
        else:
            self.chosen.emit(chat)

    def _open_menu(self, entry: Entry, where: QPoint) -> None:
        menu = self.menu_for(entry)
        menu.popup(where)

    def menu_for(self, entry: Entry) -> QMenu:
        """What can be done with a chat."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        summary = next((s for s in self._summaries if s.id == entry.id), None)
        pinned = bool(summary and summary.pinned)
        menu.addAction(tr("Rename"), lambda: self.list.rename(entry.id))
        pin = tr("Unpin" if pinned else "Pin to the top")
        menu.addAction(pin, lambda: self.pinned.emit(entry.id, not pinned))
        export = menu.addMenu(tr("Export"))
        for kind, label in EXPORTS.items():
            export.addAction(tr(label), partial(self.export_wanted.emit, entry.id, kind))
        menu.addAction(tr("Import a chat …"), self.import_wanted.emit)
        menu.addSeparator()
        menu.addAction(tr("Delete"), lambda: self.deleted.emit(entry.id))
        return menu


def _written(excerpt: str, query: str) -> str:
    """What was found as it is written there, which may be with other signs and accents."""
    *_, typed = query.split() or [""]
    *_, marked = re.findall(f"{Hit.START}(.*?){Hit.STOP}", excerpt) or [typed]
    plain = excerpt.replace(Hit.START, "").replace(Hit.STOP, "")
    longer = len(typed) > len(marked) and typed.casefold() in plain.casefold()
    return typed if longer else marked


def _counted(hits: int) -> str:
    if not hits:
        return "Nothing found"
    return "1 chat" if hits == 1 else f"{hits} chats"
