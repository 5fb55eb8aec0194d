"""What a screen reader is to say of what happens where the focus is not."""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget


def say(where: QWidget, text: str, *, urgent: bool = False) -> None:
    """`text` is shown in `where`; what is urgent interrupts what is being said."""
    if not text or not QAccessible.isActive():
        return
    event = QAccessibleAnnouncementEvent(where, text)
    politeness = QAccessible.AnnouncementPoliteness
    event.setPoliteness(politeness.Assertive if urgent else politeness.Polite)
    QAccessible.updateAccessibility(event)
