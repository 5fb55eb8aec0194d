"""The window's words in other languages, by Qt's translators.

The source language is English, and every text is its own key (context `slipstream`). A language
is one file, `slipstream_<code>.qm`, in `languages` of the assets or of the user's data, where it
comes before ours; Qt's own dialogs and menus follow with its `qtbase`. `python -m
tests.ui.languages FILE.ts` writes what there is to translate, Qt's `lrelease` makes a `.qm` of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

from app import paths

CONTEXT: Final = "slipstream"
_PREFIX: Final = "slipstream_"


def tr(text: str) -> str:
    """`text` in the language in use. What has none there stays as it is."""
    return QCoreApplication.translate(CONTEXT, text) if text else ""


def available() -> dict[str, str]:
    """Languages that there are files of, by code, each by its own name."""
    files = (file for folder in _folders() for file in folder.glob(f"{_PREFIX}*.qm"))
    codes = sorted({file.stem.removeprefix(_PREFIX) for file in files})
    return {code: QLocale(code).nativeLanguageName() or code for code in codes}


def install(language: str, app: QObject) -> None:
    """Use a language from now on: its code, "en" for none, or "system" for what the desktop
    speaks. Texts that are on view already stay as they are."""
    locale = QLocale.system() if language == "system" else QLocale(language)
    if locale.language() is QLocale.Language.English:
        return

    def loaded(name: str, folder: Path) -> list[QTranslator]:
        translator = QTranslator(app)
        return [translator] if translator.load(locale, name, "_", str(folder)) else []

    own = [found for folder in reversed(_folders()) for found in loaded("slipstream", folder)]
    # Without ours, Qt's would be two languages in one window. The last one is asked first.
    qt = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
    for translator in (*loaded("qtbase", qt), *own) if own else ():
        QCoreApplication.installTranslator(translator)


def _folders() -> list[Path]:
    return [paths.data() / "languages", paths.assets() / "languages"]
