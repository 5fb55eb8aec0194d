"""Pictures of the sheet of models in each of its states; `python -m tests.ui.shots` takes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import shiboken6
from PySide6.QtCore import QPoint
from PySide6.QtGui import QPainter, QPixmap

from app import catalog
from app.download import Pace
from app.engine import Script
from app.job import Failure, State, Step
from app.job.state import downloading, state
from app.library import ModelState, ModelStatus
from app.passport import Check, Made, Passport, Source
from app.settings import Settings
from app.ui.look.theme import Space, Theme
from app.ui.window.main_window import MainWindow
from tests.ui.fakes import BatchEngine, FakeModels

NAME: Final = "qwen3.5-4b"
COMMIT: Final = "8f1c2d4e5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d"
FAILURES: Final = {
    "failed": Failure(
        "There is no connection to huggingface.co: it does not answer.",
        "Check the network and the proxy, then try again; what is here stays.",
        "retry",
        "download",
    ),
    "no-room": Failure(
        "The disk of `/home/mina/.local/share/slipstream/models` has 4.1 GB free, but 12.4 GB are "
        "needed: 9.3 GB to download and 2.8 GB to convert, and 256 MB to spare.",
        "Free some space, or choose another folder for models.",
        "room",
        "list",
    ),
    "damaged": Failure(
        "`target-q4_k_m.gguf` is damaged: its contents are not those that were written.",
        "Convert the model again; if it happens once more, check the disk.",
        "convert",
        "verify",
    ),
    "token": Failure(
        "huggingface.co does not give `z-lab/Qwen3.5-4B-DFlash` to everybody.",
        "Accept its terms on its page there, and enter your access token.",
        "token",
        "list",
    ),
    "other": Failure(
        "The tokenizer in `tokenizer.json` is not that of Qwen3.5: it splits text in another way.",
        "Use the original `tokenizer.json`; another tokenizer would give other tokens.",
        "other",
        "convert",
    ),
}
RUNNING: Final[dict[str, State]] = {
    "listing": state(Step.LIST, 0.0),
    "downloading": downloading(Pace(3_412_000_000, 9_420_000_000, 21_400_000, 281.0)),
    "waiting": downloading(
        Pace(3_412_000_000, 9_420_000_000, note="No connection to huggingface.co; trying again")
    ),
    "converting": state(Step.CONVERT, 0.41, "41%"),
    "verifying": state(Step.VERIFY, 0.6, "60%"),
    "loading": state(Step.CHECK, 0.2, "loading"),
}


class ShownModels(FakeModels):
    """Rows that a picture wants."""

    root = Path("/home/mina/.local/share/slipstream/models")

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[ModelStatus, ...] = ()

    def models(self) -> tuple[ModelStatus, ...]:
        return self.rows

    def remove(self, model: str) -> ModelStatus:
        removed = next(row for row in self.rows if row.id == model)
        self.rows = tuple(row for row in rows() if row is not removed)
        return removed


def passport() -> Passport:
    errors = [
        {"name": "blk.0.ffn_gate.weight", "kind": "Q4_K", "error": 0.0812},
        {"name": "blk.31.ffn_down.weight", "kind": "Q6_K", "error": 0.0144},
        {"name": "blk.7.attn_q.weight", "kind": "Q4_K", "error": 0.0797},
    ]
    recipe = {"recipe": "slipstream", "errors": errors}
    return Passport(
        NAME,
        "Qwen3.5-4B",
        "q4_k_m",
        "slipstream 0.1.0, gguf 0.17.1, numpy 2.3.4",
        "2026-11-28T17:04:11+00:00",
        {
            "target": Source("Qwen/Qwen3.5-4B", COMMIT, "apache-2.0", ()),
            "draft": Source("z-lab/Qwen3.5-4B-DFlash", COMMIT[::-1], None, ()),
        },
        {
            "target": Made("target-q4_k_m.gguf", 2_813_000_000, COMMIT + "a" * 24, recipe),
            "draft": Made("draft-q4_k_m.gguf", 312_000_000, COMMIT[::-1] + "b" * 24, recipe),
        },
        (
            Check("native library", True, "AMD EPYC"),
            Check("model", True, "Qwen3.5-4B on cpu (AMD EPYC) in 4.2 s"),
            Check("answers", True, "4 answers, 96 tokens"),
            Check("lossless", True, "2 of 2 answers word for word the same"),
            Check("acceptance", True, "mean accepted length 4.31 in 11 rounds"),
        ),
        "2026-11-28T17:05:00+00:00",
    )


def rows(*own: ModelStatus) -> tuple[ModelStatus, ...]:
    """The catalogue, with `own` in place of what has the same id, or behind it."""
    by_id = {model.id: _known(model.id, model.title) for model in catalog.MODELS}
    return tuple((by_id | {row.id: row for row in own}).values())


def _known(model: str, title: str) -> ModelStatus:
    if model == catalog.DEMO.id:
        folder = Path("/cache/demo")
        return ModelStatus(model, title, ModelState.READY, path=folder, bytes=11_300_000)
    return ModelStatus(model, title, ModelState.AVAILABLE)


def had() -> ModelStatus:
    return ModelStatus(
        NAME,
        "Qwen3.5-4B",
        ModelState.READY,
        path=ShownModels.root / NAME,
        bytes=3_125_000_000,
        passport=passport(),
        used=datetime.now().timestamp(),
    )


def unfinished(failure: Failure) -> ModelStatus:
    return ModelStatus(NAME, "Qwen3.5-4B", ModelState.UNFINISHED, "…", failure=failure)


def take_models(
    out: Path, look: Theme, theme: str, wait: Callable[[Callable[[], bool]], None]
) -> list[Path]:
    """The shots in the palette `theme`; returns the files."""
    models = ShownModels()
    models.rows = rows()
    settings = Settings(theme="dark" if theme == "dark" else "light")
    window = MainWindow(BatchEngine(Script(), batch=1), models, settings, lambda _: None, look)
    sheet, files = window.models_sheet, []

    def shoot(what: str, height: int = 800) -> None:
        window.resize(1280, height)
        wait(lambda: True)
        files.append(out / f"models-{what}-{theme}.png")
        window.grab().save(str(files[-1]))

    def show(what: str, *shown: ModelStatus, height: int = 800) -> None:
        models.rows = rows(*shown)
        window.model_list.refresh()
        wait(lambda: tuple(sheet._listed) == models.rows)
        shoot(what, height)

    window.resize(1280, 800)
    window.show()
    wait(lambda: window.header.chip.state.text.startswith("DFlash ready"))
    window.show_models()
    wait(lambda: bool(sheet.rows))
    shoot("available", 1250)
    for what, now in RUNNING.items():
        run(window, now)
        shoot(what)
    run(window, None)
    for what, failure in FAILURES.items():
        show(what, unfinished(failure))
    show("paused", unfinished(Failure()))
    window.flow.change(model=NAME)
    sheet.say("Qwen3.5-4B is ready.", "It is being loaded.")
    show("done", had())
    sheet.rows[NAME].toggle_passport()
    shoot("passport", 1250)
    files.append(out / f"models-picker-{theme}.png")
    window.resize(1280, 800)
    _with_picker(window).save(str(files[-1]))
    sheet._remove(NAME)
    wait(lambda: NAME in sheet.rows and sheet.rows[NAME].model.path is None)
    shoot("trash")
    gone = "`/mnt/disk/models` cannot be read: No such file or directory."
    own = ModelStatus("mine", "mine", ModelState.BROKEN, gone, Path("/mnt/disk/models/mine"))
    show("broken", had(), own)
    models.problem = "The folder for models, `/mnt/disk/models`, is not there. Connect its drive, "
    models.problem += "or choose another folder; the built-in guide works without it."
    show("moved-away", height=1250)
    window.close()
    shiboken6.delete(window)  # or each change of the palette goes through all of it again
    return files


def run(window: MainWindow, now: State | None) -> None:
    """As if a job told this of itself."""
    getting = window.getting
    getting.model, getting.title = (NAME, "Qwen3.5-4B") if now else ("", "")
    getting.state = now
    getting.changed.emit()


def _with_picker(window: MainWindow) -> QPixmap:
    """The window with the picker's list as it opens: grabbed alone, it takes no other's keys."""
    picker = window.header.picker
    picker.popup.adjustSize()
    result = window.grab()
    painter = QPainter(result)
    below = picker.mapTo(window, QPoint(0, picker.height() + Space.XS))
    painter.drawPixmap(below, picker.popup.grab())
    painter.end()
    return result
