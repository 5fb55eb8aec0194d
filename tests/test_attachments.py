"""Files go with a message whole, or are refused with the reason."""

from __future__ import annotations

import io
import mimetypes
from pathlib import Path

import pytest
from pypdf import PdfWriter

from app import attachments
from app.errors import AttachmentError


def written(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def pdf(text: str) -> bytes:
    """A page with `text` on it, by hand: no library here writes any."""
    stream = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n"
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % table


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello\n", "hello\n"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        ("h\u00e9, \u4f60\u597d".encode(), "h\u00e9, \u4f60\u597d"),
        ("two bytes".encode("utf-16"), "two bytes"),
        (b"a\r\nb", "a\nb"),
    ],
)
def test_text_is_read_whole(tmp_path: Path, content: bytes, text: str) -> None:
    assert attachments.read(written(tmp_path, "a.txt", content)).text == text


def test_the_text_of_a_pdf_file(tmp_path: Path) -> None:
    attachment = attachments.read(written(tmp_path, "Paper.PDF", pdf("Rewinds in hybrids")))
    assert attachment.text == "Rewinds in hybrids"


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("two\nlines\t.txt", "two lines .txt"),
        ("a`tick`.md", "a'tick'.md"),
        ("\u202egpj.exe.txt", "gpj.exe.txt"),
        ("日本語 👩\u200d👧.txt", "日本語 👩\u200d👧.txt"),
        ("می\u200cخواهم.txt", "می\u200cخواهم.txt"),
        ("left\u200fright\u2066s\u2069.txt", "leftrights.txt"),
        ("\ufeffsoft\u00adly.txt", "softly.txt"),
    ],
)
def test_a_name_is_one_line_that_reads_as_it_runs(tmp_path: Path, name: str, seen: str) -> None:
    assert attachments.read(written(tmp_path, name, b"text")).name == seen


@pytest.mark.parametrize("name", ["a.svg", "a.ts"])  # by their names a picture and a film
def test_what_is_text_is_read_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    assert attachments.read(written(tmp_path, name, b"<svg/>")).text == "<svg/>"


@pytest.mark.parametrize("name", ["a.svg", "a.ts", "a.mts"])
def test_what_a_system_takes_for_a_film_may_be_text_of_another_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(mimetypes, "guess_type", lambda *_, **__: ("video/mp2t", None))
    with pytest.raises(AttachmentError, match="no text in UTF-8") as caught:
        attachments.read(written(tmp_path, name, b"caf\xe9"))
    assert caught.value.remedy == "Save it as UTF-8 text and attach that."


def odd(old: bytes, new: bytes) -> bytes:
    """A PDF file with something that pypdf does not know."""
    return pdf("text").replace(old, new)


def empty_pdf(password: str = "") -> bytes:
    writer, out = PdfWriter(), io.BytesIO()
    writer.add_blank_page(100, 100)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b"\xff\xfe\xff", "no text"),
        ("a.txt", b"caf\xe9", "no text in UTF-8 (byte 3)"),
        ("a.bin", b"\x7fELF\0\0", "no text"),
        ("a.png", b"\x89PNG", "it is a picture"),
        ("a.mp3", b"\xff\xfb\x90", "it is sound"),
        ("A.MOV", b"\0\0\0\x14ftypqt", "it is a film"),
        ("a.txt", b"  \n", "empty"),
        ("a.pdf", b"%PDF-1.4 oops", "no PDF file that can be read"),
        ("a.pdf", b"", "no PDF file that can be read"),
        ("a.pdf", odd(b"/Length", b"/Filter /Odd /Length"), "no PDF file that can be read"),
        ("a.pdf", odd(b"/Root", b"/Encrypt << /V 9 >> /Root"), "no PDF file that can be read"),
        ("a.pdf", empty_pdf(), "holds no text"),
        ("a.pdf", empty_pdf("secret"), "wants a password"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    with pytest.raises(AttachmentError) as caught:
        attachments.read(written(tmp_path, name, content))
    assert f"`{name}` is not attached" in caught.value.message
    assert why in caught.value.message
    assert caught.value.remedy


def test_what_is_too_large_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MOST", 10)
    with pytest.raises(AttachmentError, match="more than any context holds"):
        attachments.read(written(tmp_path, "a.txt", b"x" * 11))


def test_folders_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.txt"):
        with pytest.raises(AttachmentError, match="is no file"):
            attachments.read(path)
