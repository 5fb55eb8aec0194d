"""What was deleted and can come back: all of it is told in one message, the last comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.ui.look import words
from app.ui.look.notice import Notice, Notices

_TOPIC: Final = "undo"


@dataclass(frozen=True, slots=True)
class _Deletion:
    told: str
    noun: str
    count: int
    undo: Callable[[], object]


class Undoing(QObject):
    changed = Signal(bool)  # whether there is anything to be undone

    def __init__(self, notices: Notices, parent: QObject) -> None:
        super().__init__(parent)
        self._notices = notices
        self._deletions: tuple[_Deletion, ...] = ()
        self._notice: Notice | None = None

    def offer(self, told: str, noun: str, undo: Callable[[], object], count: int = 1) -> None:
        """Offer a deletion back until its message is closed. `told` says what it was of as long
        as it is the only one; of several, `count` times `noun` is told."""
        self._show((*self._deletions, _Deletion(told, noun, count, undo)))

    def undo(self) -> None:
        """The last deletion that is not undone yet."""
        self._undo_last(self._deletions)

    # --- own ----------------------------------------------------------------------------

    def _undo_last(self, deletions: tuple[_Deletion, ...]) -> None:
        if deletions:
            self._show(deletions[:-1])
            deletions[-1].undo()

    def _show(self, deletions: tuple[_Deletion, ...]) -> None:
        self._deletions, self._notice = deletions, None
        if deletions:
            notice = self._notice = self._notices.add(_told(deletions), topic=_TOPIC)
            button = notice.add_button("Undo" if len(deletions) == 1 else "Undo the last")
            button.clicked.connect(lambda: self._undo_last(deletions))  # it is closed by then
            notice.closed.connect(lambda: self._closed(notice))
        else:
            self._notices.drop(_TOPIC)
        self.changed.emit(bool(deletions))

    def _closed(self, notice: Notice) -> None:
        if notice is self._notice:  # else another one has taken its place
            self._show(())


def _told(deletions: tuple[_Deletion, ...]) -> str:
    if len(deletions) == 1:
        return deletions[0].told
    counts: Counter[str] = Counter()
    for one in deletions:
        counts[one.noun] += one.count
    *others, last = (words.number(count, noun) for noun, count in counts.items())
    return f"{', '.join(others)} and {last} deleted." if others else f"{last} deleted."
