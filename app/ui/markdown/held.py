"""What is told waits until its formulas are set: so nothing below one moves when it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.ui.markdown import formula, inline
from app.ui.markdown.formula import typesetter
from app.ui.markdown.stream import Sheet

PATIENCE_MS: Final = 1_000
"""How long text waits for its formulas. What takes longer is shown as its source until then."""

_SIGNS: Final = ("$", "\\(", "\\[")


class HeldSheet(QObject):
    """A `stream.Sheet` before another one, which is told all of a piece at once.

    `shown` is called when that has come to pass: within `end`, or later where `waiting` tells so.
    Until then no other piece may be told. `before` is called just before.
    """

    def __init__(
        self,
        sheet: Sheet,
        before: Callable[[], None],
        shown: Callable[[], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._sheet, self._before, self._shown = sheet, before, shown
        self._calls: list[Callable[[], None]] = []
        self._formulas: set[str] = set()
        self.waiting = False
        self._patience = QTimer(self, interval=PATIENCE_MS, singleShot=True)
        self._patience.timeout.connect(self._tell)
        typesetter().settled.connect(self._look)

    def clear(self) -> None:
        """Forget what waits."""
        self._patience.stop()
        self._calls, self._formulas, self.waiting = [], set(), False

    # --- stream.Sheet ---------------------------------------------------------------

    def begin(self) -> None:
        self._calls.append(self._sheet.begin)

    def tail(self) -> None:
        self._calls.append(self._sheet.tail)

    def end(self) -> None:
        self._calls.append(self._sheet.end)
        self.waiting = bool(self._unset())
        if self.waiting:
            self._patience.start()
        else:
            self._tell()

    # --- blocks.Page ----------------------------------------------------------------

    def quote(self) -> None:
        self._calls.append(self._sheet.quote)

    def item(self, number: int | None, mark: str, *, loose: bool) -> None:
        self._calls.append(partial(self._sheet.item, number, mark, loose=loose))

    def leave(self) -> None:
        self._calls.append(self._sheet.leave)

    def text(self, kind: str, source: str, *, after: str | None) -> None:
        self._find(source)
        self._calls.append(partial(self._sheet.text, kind, source, after=after))

    def rule(self) -> None:
        self._calls.append(self._sheet.rule)

    def code(self, language: str) -> None:
        self._calls.append(partial(self._sheet.code, language))

    def code_line(self, text: str) -> None:
        self._calls.append(partial(self._sheet.code_line, text))

    def code_more(self, text: str) -> None:
        self._calls.append(partial(self._sheet.code_more, text))

    def end_code(self) -> None:
        self._calls.append(self._sheet.end_code)

    def formula(self, source: str) -> None:
        self._find(source)
        self._calls.append(partial(self._sheet.formula, source))

    def table(self, header: Sequence[str], align: Sequence[str]) -> None:
        self._find(*header, cell=True)
        self._calls.append(partial(self._sheet.table, header, align))

    def row(self, cells: Sequence[str]) -> None:
        self._find(*cells, cell=True)
        self._calls.append(partial(self._sheet.row, cells))

    def end_table(self) -> None:
        self._calls.append(self._sheet.end_table)

    # --- own ------------------------------------------------------------------------

    def _find(self, *sources: str, cell: bool = False) -> None:
        for source in sources:
            if any(sign in source for sign in _SIGNS):
                for token in inline.parse(source, cell=cell):
                    if token.type == "formula" and formula.shows(token.content):
                        self._formulas.add(token.content)

    def _unset(self) -> set[str]:
        self._formulas = {source for source in self._formulas if typesetter().want(source)}
        return self._formulas

    def _look(self) -> None:
        if self.waiting and not self._unset():
            self._tell()

    def _tell(self) -> None:
        calls = self._calls
        self.clear()
        self._before()
        for call in calls:
            call()
        self._shown()
