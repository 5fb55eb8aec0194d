"""The two palettes.

One accent, for few things only: what is to be pressed next (send, the model to get), the
selected chat, progress, and accepted tokens. Text colours have a contrast of at least 4.5 : 1
on every ground they are used on (tests/ui/look/test_theme.py computes it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by their use. Grounds first, then what stands on them."""

    name: str
    window: str
    surface: str  # side panels
    raised: str  # bubbles, inputs, chosen segments
    code: str  # ground of code
    hover: str
    selection: str
    line: str
    line_strong: str  # borders of controls, tracks of meters
    text: str
    muted: str
    accent: str
    on_accent: str
    danger: str
    danger_ground: str
    keyword: str
    string: str
    number: str
    name_: str


LIGHT: Final = Palette(
    name="light",
    window="#FBFBF9",
    surface="#F4F4F1",
    raised="#FFFFFF",
    code="#F3F3EF",
    hover="#EAEAE5",
    selection="#D3DDE6",
    line="#E4E4DE",
    line_strong="#C9C9C1",
    text="#1B1E20",
    muted="#5A6066",
    accent="#0B7461",
    on_accent="#FFFFFF",
    danger="#A32018",
    danger_ground="#FBECEA",
    keyword="#7B3A99",
    string="#3A6A1F",
    number="#9A4608",
    name_="#1D5A9C",
)

DARK: Final = Palette(
    name="dark",
    window="#131517",
    surface="#181B1D",
    raised="#212528",
    code="#1B1F21",
    hover="#282D31",
    selection="#34444F",
    line="#272C2F",
    line_strong="#414950",
    text="#E6E8E9",
    muted="#9BA3A9",
    accent="#45C4A6",
    on_accent="#05221B",
    danger="#FF9287",
    danger_ground="#2D1C1A",
    keyword="#CBA8F0",
    string="#A6CF8C",
    number="#E7B380",
    name_="#8FBEF2",
)
