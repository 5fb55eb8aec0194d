"""The settings: a sheet beside the conversation.

A value is taken over as soon as it is one that can be used; otherwise its field says what is
wrong, and the old value stays in force and in the field. What plays no part now, or is not
what is really used, says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app import moving, paths
from app.engine import PENALTIES, DeviceInfo, KvType, LoadedModel
from app.settings import Settings
from app.ui.look import language
from app.ui.look.controls import Elided, Segments
from app.ui.look.labels import note
from app.ui.look.language import tr
from app.ui.look.sheet import Sheet
from app.ui.look.theme import Space
from app.ui.settings.flow import SettingsFlow
from app.ui.settings.rows import PENALTY_ROWS, Group, NumberRow, choice

_VERIFY: Final = {"greedy": "Greedy", "gpu-sample": "Sampled", "host-sample": "Sampled on host"}
_ABOUT_VERIFY: Final = {
    "greedy": "Takes the likeliest token at each place; of the numbers below only penalties count.",
    "gpu-sample": "Draws from the model's distribution on the device where it runs.",
    "host-sample": "Draws from the model's distribution on the CPU: slower on a GPU.",
}
_DRAFTER: Final = {"same": "With the model", "auto": "Auto", "cpu": "CPU", "gpu": "GPU"}
_KV_TYPES: Final = {"auto": "Auto"} | {kind.value: kind.name for kind in KvType}
_SAMPLING: Final = ("temperature", "top_k", "top_p", "min_p", "seed")
_NO_PENALTY: Final = {"presence_penalty": 0, "frequency_penalty": 0, "repeat_penalty": 1}
_NUMBERS: Final = (
    ("temperature", "Temperature", "0 is greedy; higher is more varied.", float, ""),
    ("top_k", "Top-k", "Keep the k likeliest tokens; 0 keeps all.", int, ""),
    ("top_p", "Top-p", "Keep the likeliest tokens up to this share.", float, ""),
    ("min_p", "Min-p", "Drop tokens below this share of the best.", float, ""),
    *PENALTY_ROWS,
    ("seed", "Seed", "The same seed gives the same answer.", int, "random"),
    ("block", "Guess length", "Tokens checked in one step, at most.", int, "auto"),
    ("think_budget", "Thinking limit", "Tokens of thinking, after which it answers.", int, "none"),
    ("max_tokens", "Answer limit", "Tokens of one answer, its thinking included.", int, "context"),
    ("n_ctx", "Context", "Tokens of a conversation; reloads the model.", int, "what fits"),
    ("threads", "Threads", "Of the CPU; reloads the model.", int, "auto"),
    ("text_size", "Text size", "In px: Ctrl and + or - change it too.", int, ""),
    ("zoom", "Zoom", "Per cent, of everything; from the next start on.", int, ""),
)
_GROUPS: Final = {
    "Answers": (
        "verify",
        *_SAMPLING,
        *PENALTIES,
        "think",
        "think_budget",
        "max_tokens",
        "loop_guard",
    ),
    "Engine": ("draft_backend", "block", "lookup", "n_ctx", "kv_type", "threads"),
    "Window": ("theme", "text_size", "zoom", "send_with", "language"),
}
"""The settings that a group's reset puts back."""


class FolderRow(QWidget):
    """Where something lies, and a button to have it somewhere else."""

    change_wanted = Signal()

    def __init__(self, label: str) -> None:
        super().__init__()
        self.place = Elided()
        self.place.setProperty("kind", "caption")
        self.note = note("")
        button = QPushButton(tr("Move …"))
        button.setProperty("kind", "outline")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setAccessibleName(tr("Move: {what}").format(what=tr(label)))
        button.clicked.connect(self.change_wanted)
        row = QHBoxLayout()
        row.addWidget(QLabel(tr(label)))
        row.addStretch(1)
        row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(row)
        column.addWidget(self.place)
        column.addWidget(self.note)

    def show_place(self, now: Path, wanted: str) -> None:
        self.place.set_text(str(now))
        moves = moving.place_of(wanted) not in (None, now)
        told = tr("Moves to {folder} when Slipstream starts again.").format(folder=wanted)
        self.note.setText(told if moves else "")
        self.note.setVisible(moves)


class SettingsSheet(Sheet):
    folder_wanted = Signal(str)  # the setting that says where it is

    def __init__(
        self,
        flow: SettingsFlow,
        parent: QWidget | None = None,
        defaults: Callable[[], Settings] = Settings,
    ) -> None:
        """`defaults` tells what a group's reset puts back."""
        super().__init__("Settings", parent)
        self._flow, self._defaults = flow, defaults
        self._model: LoadedModel | None = None
        self.verify = Segments("Verify", _VERIFY)
        self._about_verify = note("")
        self.drafter = Segments("Drafter runs on", _DRAFTER)
        self.kv_type = Segments("Keys and values", _KV_TYPES)
        self.theme = Segments("Theme", {"system": "System", "light": "Light", "dark": "Dark"})
        self.language = Segments(
            "Language", {"system": "System", "en": "English"} | language.available()
        )
        self.send = Segments("Send with", {"enter": "Enter", "ctrl-enter": "Ctrl+Enter"})
        self.think = Segments("Thinking", {"off": "Off", "on": "On"})
        self.lookup = Segments("Draft from the chat", {"off": "Off", "on": "On"})
        self.loop_guard = Segments("Stop loops", {"off": "Off", "on": "On"})
        self.numbers = {
            key: NumberRow(
                key,
                label,
                hint,
                kind,
                empty,
                partial(self._check, key),
                partial(self._take, key),
            )
            for key, label, hint, kind, empty in _NUMBERS
        }
        self.groups = {title: Group(title) for title in _GROUPS}
        self.folders = {"data": FolderRow("Chats and models")}
        self._lay_out(self.form)
        self._wire()

    def _lay_out(self, form: QVBoxLayout) -> None:
        left, numbers = Qt.AlignmentFlag.AlignLeft, self.numbers
        form.addWidget(self.groups["Answers"])
        form.addWidget(self.verify, 0, left)
        form.addWidget(self._about_verify)
        for key in (*_SAMPLING, *PENALTIES):
            form.addWidget(numbers[key])
        form.addWidget(choice("Think first", self.think))
        form.addWidget(numbers["think_budget"])
        form.addWidget(numbers["max_tokens"])
        form.addWidget(choice("Stop loops", self.loop_guard))
        form.addWidget(note("Ends an answer that repeats itself word for word without end."))
        form.addWidget(self.groups["Engine"])
        form.addWidget(QLabel(tr("Drafter runs on")))
        form.addWidget(self.drafter, 0, left)
        form.addWidget(numbers["block"])
        form.addWidget(choice("Draft from the chat", self.lookup))
        form.addWidget(
            note("Where an answer repeats the chat word for word, it is drafted from there.")
        )
        for key in ("n_ctx", "threads"):
            form.addWidget(numbers[key])
        form.addWidget(QLabel(tr("Keys and values")))
        form.addWidget(self.kv_type, 0, left)
        form.addWidget(
            note("How a chat is kept in memory: Q8_0 takes half of F16; reloads the model.")
        )
        form.addWidget(self.groups["Window"])
        form.addWidget(choice("Theme", self.theme))
        form.addWidget(choice("Send with", self.send))
        self._languages = choice("Language", self.language)
        self._languages.setToolTip(tr("From the next start on."))
        form.addWidget(self._languages)
        self._languages.setVisible(bool(language.available()))
        form.addWidget(numbers["text_size"])
        form.addWidget(numbers["zoom"])
        form.addSpacing(Space.M)
        for row in self.folders.values():
            form.addWidget(row)
        form.addStretch(1)

    def _wire(self) -> None:
        flow, follow = self._flow, self._flow.follow
        self.verify.chosen.connect(lambda key: flow.change(verify=key))
        self.drafter.chosen.connect(lambda key: flow.change(draft_backend=key))
        self.kv_type.chosen.connect(lambda key: flow.change(kv_type=key))
        self.theme.chosen.connect(lambda key: flow.change(theme=key))
        self.language.chosen.connect(lambda key: flow.change(language=key))
        self.send.chosen.connect(lambda key: flow.change(send_with=key))
        self.think.chosen.connect(lambda key: flow.change(think=key == "on"))
        self.lookup.chosen.connect(lambda key: flow.change(lookup=key == "on"))
        self.loop_guard.chosen.connect(lambda key: flow.change(loop_guard=key == "on"))
        for key, row in self.numbers.items():
            follow(key, row.show_value)
        follow("draft_backend", self.drafter.choose)
        follow("kv_type", self.kv_type.choose)
        follow("theme", self.theme.choose)
        follow("send_with", self.send.choose)
        follow("language", self.language.choose)
        follow("think", lambda think: self.think.choose("on" if think else "off"))
        follow("lookup", lambda on: self.lookup.choose("on" if on else "off"))
        follow("loop_guard", lambda guard: self.loop_guard.choose("on" if guard else "off"))
        follow("verify", self._show_verify)
        for key in ("block", "n_ctx", "temperature", *PENALTIES):
            follow(key, lambda _: self._tell())
        for title, group in self.groups.items():
            group.reset_wanted.connect(lambda t=title: self._reset(t))
        for key, folder in self.folders.items():
            folder.change_wanted.connect(lambda k=key: self.folder_wanted.emit(k))
            follow(key, lambda _: self._show_folders())

    def set_model(self, model: LoadedModel | None) -> None:
        """What is loaded: it says what of the numbers is really used."""
        self._model = model
        self._tell()

    def set_devices(self, devices: Sequence[DeviceInfo]) -> None:
        gpus = [d for d in devices if d.kind == "gpu"]
        usable = any(d.usable for d in gpus)
        why = next((d.reason for d in gpus if d.reason), "This machine has no usable GPU.")
        self.drafter.set_available("gpu", "" if usable else why)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        for row in self.numbers.values():
            row.reset()  # nothing stands here that is not in force
        self._show_folders()

    def _check(self, key: str, value: object) -> None:
        replace(self._flow.current, **{key: value})  # type: ignore[arg-type]

    def _take(self, key: str, value: object) -> None:
        self._flow.change(**{key: value})

    def _reset(self, title: str) -> None:
        first = self._defaults()
        self._flow.change(**{key: getattr(first, key) for key in _GROUPS[title]})
        for row in self.numbers.values():
            row.reset()

    def _show_verify(self, way: str) -> None:
        self.verify.choose(way)
        self._about_verify.setText(tr(_ABOUT_VERIFY[way]))
        self._tell()

    def _show_folders(self) -> None:
        settings = self._flow.current
        self.folders["data"].show_place(paths.data(), settings.data)

    def reveal(self, key: str) -> None:
        """Bring the field of a number on view, to be written in."""
        field = self.numbers[key].field
        self.page.adjustSize()  # its rows have their places then, also where it is not seen yet
        self.area.ensureWidgetVisible(field, 0, self.area.height() // 2)
        field.setFocus()

    def _tell(self) -> None:
        """What plays no part, and what is really used where that is something else."""
        settings, model, numbers = self._flow.current, self._model, self.numbers
        greedy = settings.verify == "greedy"
        cold = not greedy and settings.temperature == 0
        for key in _SAMPLING:
            none = greedy or (cold and key != "temperature")
            why = (
                "Greedy takes the likeliest token." if greedy else "At temperature 0 it is greedy."
            )
            numbers[key].tell(f"Plays no part: {why[0].lower()}{why[1:]}" if none else "", not none)
        penalised = any(getattr(settings, key) != none for key, none in _NO_PENALTY.items())
        idle = "" if penalised else "Plays no part: no penalty is chosen."
        numbers["penalty_last_n"].tell(idle, penalised)
        block, context = "", ""
        if model is not None and not model.has_draft:
            block = "Plays no part: the model was loaded without a drafter."
        elif model is not None and (settings.block or 0) > model.block:
            block = f"This drafter guesses {model.block} at most: {model.block} are used."
        if model is not None and settings.n_ctx is None:
            context = f"{model.n_ctx:,} fit, and are in use."
        elif model is not None and model.n_ctx != settings.n_ctx:
            context = f"{model.n_ctx:,} are in use: the most that this model was made for."
        numbers["block"].tell(block)
        numbers["n_ctx"].tell(context)
