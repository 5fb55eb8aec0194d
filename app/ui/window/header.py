"""The header: chats, new chat, model, what DFlash does, device, settings, menu."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QWidget

from app.engine import DeviceInfo, LoadedModel, preferred_gpu
from app.ui.look import theme
from app.ui.look.controls import Segments
from app.ui.look.icons import IconButton
from app.ui.look.language import tr
from app.ui.look.theme import Size, Space
from app.ui.models.picker import ModelPicker
from app.ui.window.state import Level, State

LEAST_NAME: Final = 64  # px of a model's name
ROOM_FOR_WORDS: Final = 940
ROOM_FOR_DEVICES: Final = 640
"""Widths in px from which on there is room for words, and for the switch between devices."""


class StateChip(QAbstractButton):
    """A sign and words: filled dot or ring. A click leads to the meters."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state = State(Level.OFF, "", "")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setProperty("opens_sheet", True)
        self.setFont(theme.font(Size.CONTROL, QFont.Weight.Medium))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def show_state(self, state: State) -> None:
        if state == self.state:
            return
        self.state = state
        self.setAccessibleName(tr("State: {state}").format(state=state.text))
        self.setAccessibleDescription(state.about)
        self.setToolTip(state.about)
        self.updateGeometry()
        self.update()

    def text_within(self, room: int) -> str:
        """What there is room for in px: all, the speed-up alone, or nothing beside the sign."""
        gain = self.state.text.rpartition(" ")[2]
        forms = (self.state.text, gain if gain.startswith("×") else "")
        width = self.fontMetrics().horizontalAdvance
        return next((form for form in forms if width(form) <= room), "")

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.state.text) + 22, 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(22, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2
        filled = self.state.level is Level.ON
        painter.setPen(QPen(QColor(colours.text if filled else colours.muted), 1.5))
        painter.setBrush(QColor(colours.text) if filled else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QRectF(3.5, middle - 4, 8, 8))
        painter.setPen(QColor(colours.muted if self.state.level is Level.BUSY else colours.text))
        text = self.text_within(self.width() - 20)
        place = QRectF(20, 0, self.width() - 20, self.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
        if self.hasFocus():
            painter.setPen(QColor(colours.muted))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)


class Header(QWidget):
    device_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "header")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(52)
        self._narrow = False
        self._devices: Sequence[DeviceInfo] = ()
        self._model: LoadedModel | None = None
        self._why = ""  # a GPU was not taken, as long as it is so
        self.chats = IconButton("menu", "Show or hide the chats (Ctrl+B)")
        self.new_chat = IconButton("plus", "New chat (Ctrl+N)", text="New chat", role="text")
        self.picker = ModelPicker()
        self.chip = StateChip()
        self.device = Segments("Device", {"cpu": "CPU", "gpu": "GPU"})
        self.device.chosen.connect(self.device_chosen)
        # Side by side: a second line has no room in a header.
        self.device.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._show_devices()
        self.meters = IconButton("meters", "Show or hide the meters (Ctrl+M)")
        self.settings = IconButton("sliders", "Settings (Ctrl+,)")
        self.more = IconButton("more", "Menu")
        for button in (self.settings, self.meters, self.chats):
            button.setProperty("opens_sheet", True)
        row = QHBoxLayout(self)
        row.setContentsMargins(Space.S, 0, Space.S, 0)
        row.setSpacing(Space.S)
        row.addWidget(self.chats)
        row.addWidget(self.new_chat)
        row.addWidget(self.picker)
        row.addStretch(1)
        row.addWidget(self.chip)
        row.addWidget(self.device, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.meters)
        row.addWidget(self.settings)
        row.addWidget(self.more)

    def set_width(self, width: int) -> None:
        """Leave out what there is no room for: words first, then what the menu has too."""
        narrow = width < ROOM_FOR_WORDS
        for part in (self.device, self.meters):
            part.setVisible(width >= ROOM_FOR_DEVICES)
        self._narrow = narrow
        self._show_devices()
        self.picker.set_short(narrow)
        self.new_chat.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonIconOnly
            if narrow
            else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        )
        self._fit_name(width)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a part has got other words
            self._fit_name(self.width())
        return super().event(event)

    def _fit_name(self, width: int) -> None:
        """A long name of a model is shortened, before what stands beside it has no room."""
        row = self.layout()
        assert row is not None
        items = [item for i in range(row.count()) if (item := row.itemAt(i)) and not item.isEmpty()]
        taken = sum(item.sizeHint().width() for item in items if item.widget() is not self.picker)
        room = width - 2 * Space.S - taken - Space.S * (len(items) - 1)
        least = LEAST_NAME if width >= ROOM_FOR_DEVICES else max(LEAST_NAME, width - 230)
        self.picker.setMaximumWidth(max(least, room))

    def set_devices(self, devices: Sequence[DeviceInfo]) -> None:
        """Offer what the engine can really use; the rest is grey and says why."""
        gpu, before = preferred_gpu(devices), preferred_gpu(self._devices)
        if gpu and gpu.usable and before and not before.usable:
            self._why = ""  # it was for want of one
        self._devices = devices
        self._show_devices()

    def set_model(self, model: LoadedModel | None) -> None:
        """Show where the loaded model runs."""
        self._model, self._why = model, model.fallback if model else ""
        self.device.choose(model.backend if model else "")
        self._show_devices()

    def _show_devices(self) -> None:
        model = self._model
        gpu = preferred_gpu(self._devices)
        if model and model.backend == "gpu":
            gpu = model.device  # another one may have been named
        cpu = next((d for d in self._devices if d.kind == "cpu"), None)
        label = "GPU"
        if model and model.backend == "gpu" and model.layers_on_device < model.layers:
            label = "GPU in part"
        if gpu and gpu.usable and not self._narrow:
            label = f"{label} · {_short(gpu.description)}"
        self.device.set_label("gpu", label)
        for kind, device in (("cpu", cpu), ("gpu", gpu)):
            if device and device.usable:
                self.device.set_available(kind, about=" ".join(self._about(device)))
            elif not self._devices:
                self.device.set_available(kind, "Looking for devices …" if kind == "gpu" else "")
            else:
                why = device.reason if device else ""
                why = why or f"This machine has no usable {kind.upper()}."
                self.device.set_available(kind, why)

    def _about(self, device: DeviceInfo) -> Iterator[str]:
        """What there is to know of a device that can be chosen, in sentences."""
        yield f"{device.description}."
        model = self._model
        if model is None:
            return
        on, of = model.layers_on_device, model.layers
        if device.kind == "gpu" and model.backend == "gpu" and on < of:
            yield f"{on} of {of} layers fit there, the CPU computes the others."
        if device.kind == "gpu" and self._why:
            yield self._why


def _short(description: str) -> str:
    """A device's name without its maker, which fits a toggle."""
    for maker in ("NVIDIA GeForce ", "NVIDIA ", "AMD Radeon ", "AMD ", "Intel(R) "):
        description = description.removeprefix(maker)
    return description if len(description) <= 18 else f"{description[:17]}…"
