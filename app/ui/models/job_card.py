"""A model on its way: what is being done for it, or why not, and the button that helps."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.job import Failure, Repair, State, Step
from app.job.state import WORDS
from app.ui.look import theme
from app.ui.look.flow import flow
from app.ui.look.labels import broken, small, title
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.look.words import quoted

_STEPS: Final = 1000  # of the bar
_HELP: Final = {
    Repair.RETRY: "Try again",
    Repair.TOKEN: "Use this token",
    Repair.ROOM: "Try again",
    Repair.FETCH: "Fetch the files again",
    Repair.CONVERT: "Convert again",
    Repair.OTHER: "Choose another one",
}


class JobCard(QFrame):
    paused = Signal()
    wanted = Signal(str)  # to go on; a `Repair`, or empty
    token_given = Signal(str)
    folder_wanted = Signal()
    other_wanted = Signal()  # another checkpoint: this one never will do
    given_up = Signal()

    def __init__(self, model: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._repair: Repair | None = None
        name = tr("Getting {title}").format(title=model)
        head = title(name)
        self.setAccessibleName(name)
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress of {title}").format(title=model))
        self.percent = QLabel("")
        self.percent.setFont(theme.font(Size.CONTROL))
        self.percent.setProperty("kind", "muted")
        top = QHBoxLayout()
        top.addWidget(head, 1)
        top.addWidget(self.percent)
        self.words = small("")
        self.message = small("")
        self.message.setProperty("kind", "error")
        self.remedy = small("")
        self.remedy.setProperty("kind", "muted")
        self.token = QLineEdit()
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.token.setPlaceholderText("hf_…")
        self.token.setAccessibleName(tr("Access token of the hub"))
        self.token.returnPressed.connect(self._help)
        self.pause = _button("Pause")
        self.pause.clicked.connect(self.paused)
        self.help = _button("Continue")
        self.help.clicked.connect(self._help)
        self.folder = _button("Choose another folder …")
        self.folder.clicked.connect(self.folder_wanted)
        self.give_up = _button("Give up", kind="quiet")
        self.give_up.clicked.connect(self.given_up)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.M, Space.M, Space.M)
        column.setSpacing(Space.S)
        column.addLayout(top)
        for widget in (self.bar, self.words, self.message, self.remedy, self.token):
            column.addWidget(widget)
        column.addLayout(flow(self.pause, self.help, self.folder, self.give_up))

    @property
    def stops(self) -> tuple[QWidget, ...]:
        """Where the keys go on in it, the first that can."""
        return (self.help, self.pause)

    def show_running(self, state: State | None) -> None:
        fraction = state.fraction if state else 0.0
        self.bar.setValue(round(fraction * _STEPS))
        self.percent.setText(f"{fraction:.0%}")
        words = state.words if state else "Starting …"
        self.words.setText(words)
        self.bar.setAccessibleDescription(words)
        self._arrange(running=True)

    def show_standing(self, failure: Failure) -> None:
        """Nothing is being done: someone stopped it, or it failed."""
        self._repair = Repair(failure.repair) if failure.repair else None
        doing = WORDS[Step(failure.step)].lower() if failure.step else ""
        kept = "Paused. What has come so far is kept."
        self.words.setText(f"Stopped while {doing}." if doing else kept)
        self.message.setText(broken(quoted(failure.message)))
        self.remedy.setText(broken(quoted(failure.remedy)))
        self.help.setText(_HELP[self._repair] if self._repair else "Continue")
        self._arrange(running=False)

    def _arrange(self, *, running: bool) -> None:
        failed = bool(self.message.text()) and not running
        self.bar.setVisible(running)
        self.percent.setVisible(running)
        self.message.setVisible(failed)
        self.remedy.setVisible(failed and bool(self.remedy.text()))
        self.token.setVisible(failed and self._repair is Repair.TOKEN)
        self.pause.setVisible(running)
        self.help.setVisible(not running)
        self.folder.setVisible(failed and self._repair is Repair.ROOM)

    def _help(self) -> None:
        if self._repair is Repair.TOKEN and self.token.text().strip():
            self.token_given.emit(self.token.text().strip())
            self.token.clear()
        if self._repair is Repair.OTHER:
            self.other_wanted.emit()
        else:
            self.wanted.emit(self._repair.value if self._repair else "")


def _button(text: str, kind: str = "outline") -> QPushButton:
    button = QPushButton(tr(text))
    button.setProperty("kind", kind)
    button.setAccessibleName(tr(text).rstrip(" …"))
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    return button
