"""Contrast of every text colour on every ground it is used on; fonts; recolouring."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QApplication, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app import paths
from app.ui.look import icons, theme
from app.ui.look.controls import Segments
from app.ui.look.icons import IconButton
from app.ui.look.palette import DARK, LIGHT, Palette
from app.ui.look.theme import Theme

GROUNDS = ("window", "surface", "raised", "code", "hover", "selection")


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda p: p.name)
def test_text_has_contrast(palette: Palette) -> None:
    pairs = [("text", ground) for ground in GROUNDS]
    pairs += [("muted", ground) for ground in GROUNDS if ground != "selection"]
    pairs += [(role, "code") for role in ("keyword", "string", "number", "name_")]
    pairs += [("on_accent", "accent"), ("danger", "danger_ground"), ("text", "danger_ground")]
    pairs += [("danger", "surface")]
    for role, ground in pairs:
        ratio = contrast(getattr(palette, role), getattr(palette, ground))
        assert ratio >= 4.5, f"{role} on {ground}: {ratio:.2f}"


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda p: p.name)
def test_meters_can_be_told_from_their_ground(palette: Palette) -> None:
    for ground in ("surface", "window"):
        assert contrast(palette.accent, getattr(palette, ground)) >= 3


@pytest.mark.parametrize("palette", ["light", "dark"])
def test_what_is_chosen_is_lighter_than_its_track(look: Theme, qtbot: QtBot, palette: str) -> None:
    look.choose(palette)
    try:
        segments = Segments("Which", {"one": "One", "two": "Two"})
        qtbot.addWidget(segments)
        segments.choose("two")
        segments.resize(segments.sizeHint())
        image = segments.grab().toImage()
        track, chosen = (
            image.pixelColor(segments.button(key).geometry().topLeft() + QPoint(5, 8)).name()
            for key in ("one", "two")
        )
    finally:
        look.choose("light")
    assert _luminance(chosen) > _luminance(track)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


def test_the_faces_are_bundled(look: Theme) -> None:
    families = QFontDatabase.families()
    assert theme.SANS in families
    assert theme.MONO in families
    folder = paths.assets() / "fonts"
    assert sum(f.stat().st_size for f in folder.iterdir()) < 2_100_000
    assert len(list(folder.glob("*-OFL.txt"))) == 2


def test_a_choice_changes_the_palette(look: Theme, qapp: QApplication) -> None:
    try:
        look.choose("dark")
        assert theme.current() is DARK
        assert qapp.palette().window().color().name().upper() == DARK.window
        qapp.styleHints().setColorScheme(Qt.ColorScheme.Light)
        assert theme.current() is DARK  # the user's choice wins over the system's
    finally:
        look.choose("light")
    assert theme.current() is LIGHT


def test_icons_take_the_colour(look: Theme) -> None:
    image = icons.pixmap("plus", "#FF0000", 24, 1.0).toImage()
    assert image.pixelColor(12, 12).name() == "#ff0000"
    for file in (paths.assets() / "icons").glob("*.svg"):
        assert not icons.pixmap(file.stem, "#00FF00", 16, 2.0).isNull()


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two sRGB colours, 1 to 21 (WCAG 2.2, 1.4.3)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(value: str) -> float:
    channels = (int(value[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_larger_text_is_larger_everywhere(look: Theme, qtbot: QtBot) -> None:
    label = QLabel("Text")
    qtbot.addWidget(label)
    label.setFont(theme.font(theme.Size.SMALL))
    small = label.font().pointSizeF()
    try:
        look.set_text_size(20)
        assert label.font().pointSizeF() == pytest.approx(small * 20 / 15)
        assert theme.font(theme.Size.SMALL).pointSizeF() == pytest.approx(small * 20 / 15)
    finally:
        look.set_text_size(15)
    assert label.font().pointSizeF() == pytest.approx(small)


def test_icons_grow_with_the_text_and_stay_where_it_is_small(look: Theme, qtbot: QtBot) -> None:
    button, sign = IconButton("copy", "Copy", size=16), icons.Sign("alert", "danger", 18)
    qtbot.addWidget(button)
    qtbot.addWidget(sign)
    try:
        for text_size, icon, signs in ((24, 26, 29), (11, 16, 18), (15, 16, 18)):
            look.set_text_size(text_size)
            assert button.iconSize().toTuple() == (icon, icon)
            assert sign.size().toTuple() == (signs, signs)
    finally:
        look.set_text_size(15)


def test_a_button_has_as_much_air_behind_its_text_as_before_its_icon(look: Theme) -> None:
    button = IconButton("check", "Prove", kind="outline", text="Prove it", size=14)
    button.ensurePolished()
    text = button.fontMetrics().horizontalAdvance("Prove it")
    padding, border, before_icon, between = 12, 1, 2, 2 + 4
    wanted = 2 * (padding + border) + before_icon + 14 + between + text
    assert abs(button.sizeHint().width() - wanted) <= 4


def test_a_larger_text_stays_larger_in_another_theme(look: Theme, qtbot: QtBot) -> None:
    own, inherited = QLabel("own"), QPushButton("inherited")
    own.setFont(theme.font(theme.Size.SMALL))
    for widget in (own, inherited):
        qtbot.addWidget(widget)
        widget.show()

    def sizes() -> list[float]:
        return [round(widget.font().pointSizeF(), 1) for widget in (own, inherited)]

    before = sizes()
    try:
        look.set_text_size(20)
        larger = sizes()
        assert all(now > then * 1.2 for now, then in zip(larger, before, strict=True))
        look.choose("dark")
        assert sizes() == larger
        look.choose("light")
        assert sizes() == larger
    finally:
        look.set_text_size(15)
        look.choose("system")
    assert sizes() == before
