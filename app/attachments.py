"""Files as text, for a message: whole, or refused with the reason.

Text in UTF-8 or, with its mark, UTF-16; of a PDF file its text alone. Nothing is cut.
"""

from __future__ import annotations

import codecs
import logging
import unicodedata
from pathlib import Path
from typing import Final

from app.drafting import Attachment
from app.errors import AttachmentError, SlipstreamError, valid_text

MOST: Final = 8_000_000
"""Bytes of a text file: what no context holds anyway."""
_MOST_PDF: Final = 100_000_000
_KINDS: Final = {
    suffix: kind
    for kind, suffixes in {
        "a picture": "avif bmp gif heic ico jpeg jpg png psd tif tiff webp",
        "sound": "aac aif aiff flac m4a mp3 oga ogg opus wav wma",
        "a film": "avi m4v mkv mov mp4 mpeg mpg webm wmv",
    }.items()
    for suffix in suffixes.split()
}
"""What a file that is no text is by its name. Not by the system's types, which differ: to some
`.ts` is a film and no TypeScript. Nothing is here that text is called, as `.svg`."""

_JOINERS: Final = "\u200c\u200d"  # of letters and of several emoji: they are seen
_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(path: Path) -> Attachment:
    """The text of a file. Raises `AttachmentError`."""
    name = _seen(path.name)
    pdf = path.suffix.lower() == ".pdf"
    try:
        if not path.is_file():
            raise _refused(name, "it is no file", "Attach the files in it one by one.")
        size, most = path.stat().st_size, _MOST_PDF if pdf else MOST
        if size > most:
            raise _refused(
                name,
                f"it has {size / 1e6:.0f} MB, more than any context holds",
                "Attach the part that matters.",
            )
        text = _of_pdf(path, name) if pdf else _of_text(path.read_bytes(), name)
    except OSError as error:
        raise _refused(
            name, f"it cannot be read ({error.strerror or error})", "Check its permissions."
        ) from error
    if not text.strip():
        why = "it holds no text, only pictures of it perhaps" if pdf else "it is empty"
        raise _refused(name, why, "Attach a file with text in it.")
    return Attachment(name, text)


def _seen(name: str) -> str:
    """A file's name as one line that reads as it runs."""
    signs = (sign for sign in valid_text(name) if sign in _JOINERS or not _unseen(sign))
    name = "".join(sign if sign.isprintable() or sign in _JOINERS else " " for sign in signs)
    return " ".join(name.replace("`", "'").split())


def _unseen(sign: str) -> bool:
    """Whether it takes no room, as one that turns the direction."""
    return unicodedata.category(sign) == "Cf"


def _of_text(raw: bytes, name: str) -> str:
    kind = _KINDS.get(Path(name).suffix.lower().removeprefix("."))
    what = f"it is {kind}, and models read text here" if kind else ""
    try:
        text = raw.decode("utf-16" if raw.startswith(_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(
            name,
            what or f"it is no text in UTF-8 (byte {error.start})",
            "Attach what it says." if what else "Save it as UTF-8 text and attach that.",
        ) from error
    if "\0" in text:
        raise _refused(name, what or "it is no text", "Attach text or PDF files.")
    return text.replace("\r\n", "\n")


def _of_pdf(path: Path, name: str) -> str:
    # Takes a tenth of a second to import, and is wanted by few.
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every oddity
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise _refused(name, "it wants a password", "Save it without one and attach that.")
        return "\n\n".join(page.extract_text().strip() for page in reader.pages).strip()
    except (SlipstreamError, OSError):
        raise
    except Exception as error:  # pypdf raises whatever a damaged or an odd file leads it to
        raise _refused(
            name, "it is no PDF file that can be read", "Attach its text in a text file."
        ) from error


def _refused(name: str, why: str, remedy: str) -> AttachmentError:
    return AttachmentError(f"`{name}` is not attached: {why}.", remedy=remedy)
