"""The models: what is on its way, what is here, what can be had, and where all that lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QFont, QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import catalog
from app.catalog import HubSource, KnownModel
from app.errors import SlipstreamError
from app.job import Repair
from app.library import ModelState, ModelStatus
from app.ui import task
from app.ui.look import theme, words
from app.ui.look.controls import Elided, Segments, claim_escape, holds_focus, order_tabs
from app.ui.look.flow import flow
from app.ui.look.icons import IconButton
from app.ui.look.labels import note, section
from app.ui.look.language import tr
from app.ui.look.notice import Notice
from app.ui.look.theme import Size, Space
from app.ui.models.getting import Getting
from app.ui.models.job_card import JobCard
from app.ui.models.row import ModelRow
from app.ui.models.source import Models

WIDTH: Final = 480


class ModelsSheet(QFrame):
    closed = Signal()
    chosen = Signal(str)  # a model's id, or a path
    folder_chosen = Signal(str)  # for models
    token_given = Signal(str)
    chunks_wanted = Signal(bool)  # whether the hub's protocol of chunks may be used
    outdated = Signal()  # the list of models

    def __init__(self, models: Models, getting: Getting, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models, self._getting = models, getting
        self._listed: Sequence[ModelStatus] = ()
        self._in_use = self._chosen = ""
        self._verifying: task.Task[None] | None = None
        self.cards: dict[str, JobCard] = {}
        self.rows: dict[str, ModelRow] = {}
        self.setProperty("kind", "sheet")
        self.setAccessibleName(tr("Models"))
        self.setFixedWidth(WIDTH)
        self._lay_out()
        getting.changed.connect(self._show_job)

    # --- construction -----------------------------------------------------------

    def _lay_out(self) -> None:
        self.type = Segments("Store weights as", catalog.TYPES)
        self.type.chosen.connect(self._choose_type)
        self.recipe = Segments("Recipe", catalog.RECIPES)
        self.recipe.chosen.connect(self._choose_recipe)
        self.figures = note("")
        self.keep = QCheckBox(tr("Keep the originals"))
        self.chunks = QCheckBox(tr("Fetch in chunks (xet)"))
        self.chunks.toggled.connect(self.chunks_wanted)
        self._notes, self._going = _column(), _column()
        self._here, self._there = _column(), _column()
        self.target = _edit("owner/name of the target, or its folder", "Target")
        self.draft = _edit("owner/name or folder of its DFlash drafter, if any", "Drafter")
        self.get_own = _button("Get this pair")
        self.get_own.clicked.connect(self._get_own)
        self._complaint = note("")
        self._complaint.setProperty("kind", "error")
        self._complaint.hide()
        self.open_folder = _button("Open a folder …")
        self.open_folder.clicked.connect(self._choose_folder_to_open)
        self.open_file = _button("Open a GGUF file …")
        self.open_file.clicked.connect(self._choose_file_to_open)
        self._problem: Notice | None = None
        self._said: Notice | None = None
        self.place = Elided()
        self.place.setProperty("kind", "caption")
        self.place.setFont(theme.font(Size.SMALL))
        self.change_place = _button("Choose another folder …")
        self.change_place.clicked.connect(self.choose_place)
        self.show_place = _button("Show it")
        self.show_place.clicked.connect(lambda: _show(self._models.root))
        self.token = _edit("hf_…", "Access token of the hub")
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.keep_token = _button("Keep")
        self.keep_token.clicked.connect(self._give_token)
        self.keep_token.setEnabled(False)
        self.token.textChanged.connect(lambda text: self.keep_token.setEnabled(bool(text.strip())))

        page = QWidget()
        page.setProperty("kind", "panel")
        form = QVBoxLayout(page)
        form.setContentsMargins(Space.XL, 0, Space.XL, Space.XL)
        form.setSpacing(Space.S)
        form.addLayout(self._notes)
        form.addLayout(self._going)
        form.addWidget(section("On this machine", Space.L, Space.XS))
        form.addLayout(self._here)
        form.addLayout(flow(self.open_folder, self.open_file))
        self._shop = section("From the Hugging Face Hub", Space.L, Space.XS)
        form.addWidget(self._shop)
        form.addLayout(self._there)
        form.addSpacing(Space.XS)
        form.addWidget(QLabel(tr("Store weights as")))
        form.addWidget(self.type, 0, Qt.AlignmentFlag.AlignLeft)
        self._recipe_row = QWidget()
        row = _row(QLabel(tr("Recipe")), None, self.recipe)
        row.setContentsMargins(0, 0, 0, 0)
        self._recipe_row.setLayout(row)
        form.addWidget(self._recipe_row)
        form.addWidget(self.figures)
        form.addWidget(self.keep)
        form.addWidget(self.chunks)
        form.addWidget(note("May be faster; a file that breaks off begins anew."))
        self._another = section("Another pair", Space.L, Space.XS)
        form.addWidget(self._another)
        form.addWidget(self.target)
        form.addWidget(self.draft)
        form.addWidget(self._complaint)
        form.addLayout(_row(self.get_own))
        form.addWidget(section("Where models are kept", Space.L, Space.XS))
        form.addWidget(self.place)
        form.addLayout(flow(self.change_place, self.show_place))
        form.addWidget(section("Access token", Space.L, Space.XS))
        form.addWidget(
            note(
                "Only for models that the hub does not give to everybody. It is kept in the "
                "keyring of this system."
            )
        )
        form.addLayout(_row(self.token, self.keep_token))
        form.addStretch(1)
        area = QScrollArea()
        area.setAccessibleName(tr("Models"))
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # a stop of Tab that nobody would see
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(page)
        self._area, self._form = area, form
        self._choose_type(catalog.DEFAULT_TYPE)
        close = IconButton("close", "Close the models (Esc)")
        close.clicked.connect(self.closed)
        title = QLabel(tr("Models"))
        title.setFont(theme.font(Size.HEADINGS[2], QFont.Weight.DemiBold))
        head = QHBoxLayout()
        head.setContentsMargins(Space.XL, Space.M, Space.M, Space.S)
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(area, 1)

    # --- what is shown ----------------------------------------------------------

    def show_models(self, models: Sequence[ModelStatus]) -> None:
        self._listed = models
        self._show()

    def set_in_use(self, model: str) -> None:
        """What answers or is on its way, if anything does."""
        if model != self._in_use:
            self._in_use = model
            self._show()

    def set_chosen(self, model: str) -> None:
        """What the settings name, which may not be in use."""
        self._chosen = model

    def say(self, message: str, remedy: str = "", level: str = "info") -> Notice:
        """Above the list, until it is dismissed or something else is said."""
        if self._said is not None:
            self._said.dismiss()
        self._said = notice = Notice(message, remedy, level=level)
        notice.closed.connect(self._forget_said)
        notice.focus_left.connect(lambda: self._give_focus())
        self._notes.addWidget(notice)
        notice.show()
        self._area.verticalScrollBar().setValue(0)
        return notice

    def _forget_said(self) -> None:
        self._said = None

    def get(self, model: KnownModel) -> None:
        recipe = self.recipe.choice() if self._recipe_row.isVisibleTo(self) else ""
        held = holds_focus(self)
        self._getting.get(model, self.type.choice(), recipe, self.keep.isChecked())
        if held and (card := self.cards.get(model.id)) is not None:
            self._give_focus(card)  # the row with the button has gone
        self._area.verticalScrollBar().setValue(0)

    def allow_chunks(self, allowed: bool) -> None:
        self.chunks.setChecked(allowed)

    def _choose_type(self, weight_type: str) -> None:
        self.type.choose(weight_type)
        recipes = catalog.stored(weight_type)
        self._recipe_row.setVisible(len(recipes) > 1)
        self._choose_recipe(next(iter(recipes)))

    def _choose_recipe(self, recipe: str) -> None:
        self.recipe.choose(recipe)
        self.figures.setText(figures(self.type.choice(), recipe))

    def _show(self) -> None:
        opened = {name for name, row in self.rows.items() if row.passport is not None}
        held = _held(self.rows)
        for layout in (self._here, self._there):
            _empty(layout)
        self.rows.clear()
        for model in self._listed:
            if model.state is ModelState.UNFINISHED or model.id == self._getting.model:
                continue
            row = ModelRow(model, model.id == self._in_use)
            row.chosen.connect(self.chosen)
            row.got.connect(self._get_known)
            row.verified.connect(self._verify)
            row.shown_in_folder.connect(self._show_folder)
            row.removed.connect(self._remove)
            if model.id in opened:
                row.toggle_passport()
            self.rows[model.id] = row
            available = model.state is ModelState.AVAILABLE
            (self._there if available else self._here).addWidget(row)
        self._shop.setVisible(self._there.count() > 0)
        self.place.set_text(str(self._models.root))
        self._show_problem()
        self._show_job()
        order_tabs(self._form)
        if held:
            self._give_focus(self.rows.get(held))

    def _give_focus(self, to: ModelRow | JobCard | None = None) -> None:
        """What had it is made anew: the keys go on from the same place, else in the sheet."""
        if to is not None:
            to.show()  # at once: what is not seen cannot have it
        able = (w for w in (to.stops if to else ()) if w.isEnabled() and w.isVisibleTo(self))
        next(able, self).setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_problem(self) -> None:
        """On top, as long as it lasts: all that is missing below is missing because of it."""
        problem = self._models.problem
        if self._problem is not None and self._problem.message != problem:
            self._problem.dismiss()
            self._problem = None
        if problem and self._problem is None:
            self._problem = Notice(problem, level="error", closable=False)
            self._notes.insertWidget(0, self._problem)
            self._problem.show()

    def _show_job(self) -> None:
        going, standing = self._getting, self._standing()
        titles = {m.id: m.title for m in standing}
        if going.model:
            titles = {going.model: going.title} | titles
        held = _held(self.cards)
        anew = list(titles) != list(self.cards)
        if anew:
            _empty(self._going)
            self.cards = {name: self._card(name, title) for name, title in titles.items()}
            order_tabs(self._form)
        for model in standing:
            if model.failure is not None and model.id != going.model:
                self.cards[model.id].show_standing(model.failure)
        if going.model:
            self.cards[going.model].show_running(going.state)
        if anew and held:
            self._give_focus(self.cards.get(held))
        for model_id, row in self.rows.items():
            if row.model.state is ModelState.AVAILABLE:  # one job at a time
                row.main.setEnabled(not going.model)
                row.setVisible(model_id != going.model)
        self.get_own.setEnabled(not going.model)
        self.change_place.setEnabled(not going.model)

    def _standing(self) -> list[ModelStatus]:
        return [model for model in self._listed if model.state is ModelState.UNFINISHED]

    def _card(self, model: str, title: str) -> JobCard:
        card = JobCard(title)
        card.paused.connect(self._getting.pause)
        card.wanted.connect(
            lambda how: self._getting.go_on(model, title, Repair(how) if how else None)
        )
        card.given_up.connect(lambda: self._getting.give_up(model))
        card.token_given.connect(self.token_given)
        card.folder_wanted.connect(self.choose_place)
        card.other_wanted.connect(self._choose_another)
        self._going.addWidget(card)
        return card

    # --- what is done -----------------------------------------------------------

    def _get_known(self, model_id: str) -> None:
        if (model := catalog.find(model_id)) is not None:
            self.get(model)

    def _get_own(self) -> None:
        try:
            target = HubSource.parse(self.target.text())
            draft = HubSource.parse(self.draft.text()) if self.draft.text().strip() else None
        except SlipstreamError as error:
            self._complaint.setText(str(error))
            self._complaint.show()
            return
        self._complaint.hide()
        self.get(catalog.own(target, draft))

    def _verify(self, model: str) -> None:
        title = self.rows[model].model.title
        self.say(f"Verifying {title} …")

        def whole(_: None) -> None:
            self.say(f"All files of {title} are what was written.")

        self._verifying = task.run(
            self,
            lambda progress, cancel: self._models.verify(model, progress, cancel),
            whole,
            self._complain,
        )

    def _remove(self, model: str) -> None:
        title = self.rows[model].model.title
        if model in (self._in_use, self._chosen):
            self.chosen.emit(catalog.DEMO.id)

        def done(_: ModelStatus) -> None:
            self.say(f"{title} is in the trash.")
            self.outdated.emit()

        task.run(
            self,
            lambda progress, cancel: self._models.remove(model),
            done,
            self._complain,
        )

    def _complain(self, error: SlipstreamError) -> None:
        self.say(error.message, error.remedy, "error")

    def _show_folder(self, model: str) -> None:
        if (path := self.rows[model].model.path) is not None:
            _show(path)

    def _give_token(self) -> None:
        if token := self.token.text().strip():
            self.token_given.emit(token)
            self.token.clear()

    def _choose_another(self) -> None:
        """Where another checkpoint is named."""
        self._area.ensureWidgetVisible(self.get_own)
        self.target.setFocus(Qt.FocusReason.OtherFocusReason)

    def choose_place(self) -> None:
        start = str(self._models.root if self._models.root.is_dir() else Path.home())
        if folder := QFileDialog.getExistingDirectory(self, "Where models are kept", start):
            self.folder_chosen.emit(folder)

    def _choose_folder_to_open(self) -> None:
        title = "A folder with GGUF files, or with a checkpoint"
        if folder := QFileDialog.getExistingDirectory(self, title, str(Path.home())):
            self.open(Path(folder))

    def open(self, folder: Path) -> None:
        """Use the GGUF files in `folder`, or offer to convert the checkpoint that it holds."""
        if any(folder.glob("*.gguf")) or not (folder / "config.json").is_file():
            self.chosen.emit(str(folder))
            return
        self.target.setText(str(folder))
        self.draft.setFocus(Qt.FocusReason.OtherFocusReason)
        self.say(
            f"`{folder.name}` is a checkpoint, which has to be converted first.",
            "Name its drafter below if it has one, then press “Get this pair”.",
        )

    def _choose_file_to_open(self) -> None:
        file, _ = QFileDialog.getOpenFileName(
            self, "A model", str(Path.home()), "Models in the GGUF format (*.gguf)"
        )
        if file:
            self.chosen.emit(file)

    def event(self, event: QEvent) -> bool:
        return claim_escape(event) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)


def figures(weight_type: str, recipe: str) -> str:
    """What a type and recipe come to, beside the other recipe where there is one."""
    recipes = catalog.stored(weight_type)
    chosen = recipes[recipe]
    others = [one for one in recipes.values() if one is not chosen]

    def beside(value: Callable[[catalog.Stored], str]) -> str:
        told = "".join(f" ({catalog.RECIPES[one.recipe]}: {value(one)})" for one in others)
        return f"{value(chosen)}{told}"

    room = f"A 4B model: about {beside(lambda one: words.size(one.bytes))}"
    room += f", {words.size(catalog.DOWNLOAD)} to download."
    if not chosen.divergence:
        return f"{room}\nNothing is rounded."
    far = beside(lambda one: f"{one.divergence:.1f}")
    return f"{room}\nDivergence from BF16, on the guide: {far} · 10⁻³ nats; less is nearer."


def _held(parts: Mapping[str, QWidget]) -> str:
    """The name of the one that has the focus; empty where none has."""
    return next((name for name, part in parts.items() if holds_focus(part)), "")


def _show(folder: Path) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


def _column() -> QVBoxLayout:
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(Space.S)
    return column


def _row(*widgets: QWidget | None) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(Space.S)
    stretched = False
    for widget in widgets:
        if widget is None:
            row.addStretch(1)
            stretched = True
        else:
            row.addWidget(widget, 1 if isinstance(widget, QLineEdit) else 0)
            stretched = stretched or isinstance(widget, QLineEdit)
    if not stretched:
        row.addStretch(1)
    return row


def _empty(layout: QVBoxLayout) -> None:
    while item := layout.takeAt(0):
        if widget := item.widget():
            widget.hide()
            widget.deleteLater()


def _edit(hint: str, name: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setPlaceholderText(tr(hint))
    edit.setAccessibleName(tr(name))
    return edit


def _button(text: str) -> QPushButton:
    button = QPushButton(tr(text))
    button.setProperty("kind", "outline")
    button.setAccessibleName(tr(text).rstrip(" …"))
    return button
