"""The style sheet: what the palette's colours mean for Qt's own widgets.

Widgets say what they are with the dynamic property `kind`; nothing else in the window
sets a style sheet.
"""

from __future__ import annotations

from string import Template
from typing import Final

from app.ui.look.palette import Palette

_SHEET: Final = Template("""
* { outline: none; }
QMainWindow, QWidget#page { background: $window; }
QWidget[kind="panel"] { background: $surface; border: none; }
QWidget[kind="header"] { background: $window; border: none; border-bottom: 1px solid $line; }
QFrame[kind="line"] { border: none; border-bottom: 1px solid $line; }
QFrame[kind="rule"] { background: $line; border: none; }
QScrollArea, QScrollArea > QWidget > QWidget#scrolled { background: transparent; border: none; }

QLabel { background: transparent; color: $text; }
QLabel[kind="muted"], QLabel[kind="caption"] { color: $muted; }
QLabel[kind="error"] { color: $danger; }

QFrame[kind="bubble"] { background: $bubble; border: 1px solid $line; border-radius: 10px; }
QFrame[kind="composer"] {
  background: $raised; border: 1px solid $line; border-radius: 10px;
}
QFrame[kind="composer"][focused="true"] { border-color: $line_strong; }
QFrame[kind="sheet"] { background: $surface; border: none; border-left: 1px solid $line; }
QFrame[kind="notice"] { background: $raised; border: 1px solid $line; border-radius: 10px; }
QFrame[kind="notice"][level="error"] { background: $danger_ground; }
QFrame[kind="card"] { background: $raised; border: 1px solid $line; border-radius: 10px; }
QPushButton[kind="entry"] { text-align: left; padding: 6px 10px; }
QProgressBar {
  background: $hover; border: none; border-radius: 3px; max-height: 6px; min-height: 6px;
}
QProgressBar::chunk { background: $accent; border-radius: 3px; }
QCheckBox { color: $text; spacing: 8px; border: 1px solid transparent; border-radius: 4px; }
QCheckBox:focus { border-color: $muted; }
QCheckBox::indicator {
  width: 14px; height: 14px; border: 1px solid $muted; border-radius: 4px; background: $raised;
}
QCheckBox::indicator:checked { background: $accent; border-color: $accent; }
QFrame[kind="popup"] {
  background: $raised; border: 1px solid $line_strong; border-radius: 10px;
}

QTextEdit, QPlainTextEdit {
  background: transparent; border: none; color: $text; padding: 0;
  selection-background-color: $selection; selection-color: $text;
}

QToolButton, QPushButton {
  background: transparent; border: 1px solid transparent; border-radius: 6px;
  color: $text; padding: 5px 8px;
}
QToolButton[kind="icon"] { padding: 5px; }
QToolButton[kind="quiet"], QPushButton[kind="quiet"] { color: $muted; padding: 3px 6px; }
QToolButton[kind="fold"] { color: $muted; padding: 3px 6px 3px 0; }
QToolButton[flush="left"] { padding-left: 0; }
QToolButton[flush="right"] { padding-right: 0; }
QToolButton:hover, QPushButton:hover { background: $hover; }
QToolButton[kind="quiet"]:hover, QPushButton[kind="quiet"]:hover { color: $text; }
QToolButton:focus, QPushButton:focus, QAbstractButton:focus { border-color: $muted; }
QToolButton:disabled, QPushButton:disabled { color: $muted; }
QToolButton::menu-indicator { image: none; width: 0; }
QFrame[kind="chip"] { background: $raised; border: 1px solid $line_strong; border-radius: 6px; }
QToolButton[kind="chip"] { padding: 5px 6px; border-radius: 5px; }
QToolButton[kind="chip"]:checked { background: $hover; }
QPushButton[kind="outline"], QToolButton[kind="outline"] {
  border-color: $line_strong; padding: 6px 12px; background: $raised;
}
QPushButton[kind="outline"]:hover, QToolButton[kind="outline"]:hover { background: $hover; }
QPushButton[kind="outline"]:checked { background: $hover; }
QPushButton[kind="outline"]:focus, QToolButton[kind="outline"]:focus { border-color: $text; }
QPushButton[kind="primary"] {
  background: $accent; color: $on_accent; border-color: $accent; padding: 6px 12px;
}
QPushButton[kind="primary"]:focus { border-color: $text; }
QPushButton[kind="primary"]:disabled { background: $hover; color: $muted; border-color: $hover; }
QPushButton[kind="suggestion"] {
  border: 1px solid $line; border-radius: 14px; padding: 5px 12px; background: $raised;
}
QPushButton[kind="suggestion"]:hover { background: $hover; border-color: $line_strong; }
QPushButton[kind="suggestion"]:focus { border-color: $muted; }
QToolButton[kind="send"] {
  background: $accent; border-radius: 10px; padding: 6px; border: 1px solid $accent;
}
QToolButton[kind="send"]:focus { border-color: $text; }
QToolButton[kind="send"]:disabled { background: $hover; border-color: $hover; }
QToolButton[kind="stop"] {
  background: $hover; border-radius: 10px; padding: 6px; border: 1px solid $line_strong;
}
QToolButton[kind="toggle"] { color: $muted; padding: 4px 8px; }
QToolButton[kind="toggle"]:checked { color: $text; background: $hover; }

QFrame[kind="segments"] { background: $hover; border: none; border-radius: 8px; }
QFrame[kind="segments"] QToolButton { color: $muted; padding: 4px 10px; margin: 2px; }
QFrame[kind="segments"] QToolButton:hover { color: $text; background: transparent; }
QFrame[kind="segments"] QToolButton:checked { background: $chosen; color: $text; }
QFrame[kind="segments"] QToolButton:disabled { color: $muted; text-decoration: line-through; }
QFrame[kind="segments"] QToolButton:focus { border-color: $muted; }

QLineEdit {
  background: $raised; color: $text; border: 1px solid $line_strong; border-radius: 6px;
  padding: 5px 8px; selection-background-color: $selection; selection-color: $text;
}
QPlainTextEdit[kind="field"] {
  background: $raised; border: 1px solid $line_strong; border-radius: 6px; padding: 4px 6px;
}
QPlainTextEdit[kind="field"]:focus { border-color: $muted; }
QLineEdit:focus { border-color: $muted; }
QLineEdit:disabled { background: transparent; color: $muted; border-color: $line; }
QLineEdit[invalid="true"] { border-color: $danger; }

QListView { background: transparent; border: 1px solid transparent; color: $text; }
QListWidget:focus { border: 1px solid $muted; border-radius: 6px; }
QListWidget::item {
  padding: 7px 10px; border-radius: 6px; margin: 1px 8px; color: $text;
  border-left: 3px solid transparent;
}
QListWidget::item:hover { background: $hover; }
QListWidget::item:selected {
  background: $hover; color: $text; border-left: 3px solid $accent;
}

QMenu { background: $raised; border: 1px solid $line_strong; border-radius: 8px; padding: 4px; }
QMenu::item { padding: 6px 24px 6px 12px; border-radius: 5px; color: $text; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $line; margin: 4px 8px; }
QToolTip {
  background: $raised; color: $text; border: 1px solid $line_strong; padding: 4px 6px;
}

QScrollBar:vertical { background: transparent; width: 10px; margin: 2px; border: none; }
QScrollBar::handle:vertical { background: $line_strong; border-radius: 3px; min-height: 32px; }
QScrollBar::handle:vertical:hover { background: $muted; }
QScrollBar:horizontal { height: 0; }
QScrollBar[kind="text"]:horizontal { background: transparent; height: 10px; margin: 2px; }
QScrollBar::handle:horizontal { background: $line_strong; border-radius: 3px; min-width: 32px; }
QScrollBar::handle:horizontal:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
""")


def sheet(palette: Palette) -> str:
    # A bubble must differ from the page: lighter than it in the dark, darker by day.
    bubble = palette.raised if palette.name == "dark" else palette.code
    # So must the chosen segment from its track: lighter than it in both.
    chosen = palette.line_strong if palette.name == "dark" else palette.raised
    values = {name: getattr(palette, name) for name in palette.__slots__}
    return _SHEET.substitute(values, bubble=bubble, chosen=chosen)
