"""The mouse wheel, which QTest has not."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget


def turn(widget: QWidget, at: QPointF, *, across: int = 0, down: int = 0) -> bool:
    """Turned so far over `at` of `widget`, in eighths of a degree; whether it took that."""
    event = QWheelEvent(
        at, widget.mapToGlobal(at), QPoint(), QPoint(across, down), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    return event.isAccepted()
