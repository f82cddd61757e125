"""What a file holds is found by its first bytes and its structure."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from aeon.files.inputs import kinds
from aeon.files.inputs.kinds import UnusableFile, find_kind
from tests.support.input_files import (
    make_docx,
    make_jpeg,
    make_pdf,
    make_png,
    make_wav,
    make_webp,
)

WHOLE = {
    "png": (make_png(), kinds.PNG),
    "jpeg": (make_jpeg(), kinds.JPEG),
    "webp": (make_webp(), kinds.WEBP),
    "pdf": (make_pdf(), kinds.PDF),
    "pdf after an empty line": (b"\r\n" + make_pdf(), kinds.PDF),
    "pdf before many empty lines": (make_pdf() + b"\n" * 5000, kinds.PDF),
    "pdf that was padded": (make_pdf() + bytes(5000), kinds.PDF),
    "wav": (make_wav(), kinds.WAV),
    "docx": (make_docx(), kinds.DOCX),
    "html": (b"\n<!DOCTYPE html><p>x", kinds.HTML),
    "text": ("Straße, 东京".encode(), kinds.TEXT),
    "a text that begins as a program does": (b"MZ is a name. BM, too", kinds.TEXT),
    "nothing": (b"", kinds.TEXT),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("suffix", ["", ".dat"])
def test_each_kind_is_known_by_what_it_holds(name: str, suffix: str) -> None:
    content, kind = WHOLE[name]
    assert find_kind(content, suffix) == kind


@pytest.mark.parametrize("suffix", [".png", ".txt", ".pdf"])
def test_the_name_of_a_whole_image_does_not_matter(suffix: str) -> None:
    assert find_kind(make_jpeg(), suffix) == kinds.JPEG


@pytest.mark.parametrize("name", ["png", "jpeg", "webp", "pdf", "wav", "docx"])
def test_a_file_that_is_cut_off_anywhere_is_refused(name: str) -> None:
    content, kind = WHOLE[name]
    begins = 16
    for end in {begins, len(content) // 2, len(content) * 9 // 10, len(content) - 9}:
        with pytest.raises(UnusableFile, match=r"cut off|damaged|cannot be read"):
            find_kind(content[:end], kind.suffix)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"MZ\x90\0\3", "a program for Windows"),
        (b"\x7fELF\2\1\1\0", "a program"),
        (b"GIF89a\1\0\xff", "a GIF image"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "telephones"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Office file of an old format"),
        (b"\x1f\x8b\x08\0\xff", "an archive"),
        (b"SQLite format 3\0\x10", "a database"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".png", ".pdf", ".txt"])
def test_files_of_other_kinds_are_named_whatever_they_are_called(
    content: bytes, problem: str, suffix: str
) -> None:
    with pytest.raises(UnusableFile, match=problem) as refused:
        find_kind(content, suffix)
    assert refused.value.hint


@pytest.mark.parametrize("suffix", [".png", ".JPG", ".pdf", ".docx", ".wav"])
def test_a_text_that_is_named_as_an_image_or_a_document_is_refused(suffix: str) -> None:
    with pytest.raises(UnusableFile, match="it is named like"):
        find_kind(b"404 not found", suffix)


def test_a_damaged_image_is_refused() -> None:
    content = bytearray(make_png())
    content[-20] ^= 1
    with pytest.raises(UnusableFile, match="damaged"):
        find_kind(bytes(content))


@pytest.mark.parametrize("before", [b"", b"\n"])
def test_an_encrypted_pdf_is_known(before: bytes) -> None:
    assert not kinds.is_encrypted(before + make_pdf() + b"\n" * 5000)
    encrypted = make_pdf("x", trailer="/Encrypt 9 0 R ")
    assert kinds.is_encrypted(before + encrypted + b"\n" * 5000)


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ("a", "an archive, and no Word document"),
        ("xl/workbook.xml", "an Excel workbook"),
        ("ppt/presentation.xml", "a presentation"),
        ("mimetype", "an OpenDocument file"),
    ],
)
def test_an_archive_that_is_no_word_document_is_refused(part: str, problem: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(part, b"x")
    with pytest.raises(UnusableFile, match=problem) as refused:
        find_kind(file.getvalue(), ".docx")
    assert refused.value.hint


def test_a_document_whose_directory_names_too_much_is_refused() -> None:
    bomb = make_docx(more={"word/media/zeros": bytes(kinds.MOST_UNPACKED_BYTES + 1)})
    assert len(bomb) < 200_000
    with pytest.raises(UnusableFile, match="unpack to 100,0"):
        find_kind(bomb)


def test_fill_bytes_before_a_mark_are_passed_over() -> None:
    content = make_jpeg()
    assert find_kind(content[:2] + b"\xff" * 2_000_000 + content[2:]) == kinds.JPEG
    for end in (b"", b"\xe0", b"\xe0\0"):
        with pytest.raises(UnusableFile, match="cut off"):
            find_kind(b"\xff\xd8" + b"\xff" * 2_000_000 + end)


def test_broken_lengths_end_the_search_and_raise_nothing_else() -> None:
    png = bytearray(make_png())
    png[8:12] = struct.pack(">I", 0xFFFFFFFF)
    jpeg = b"\xff\xd8\xff\xff\xff\xff\xe0\0\0\xff"
    for content in (bytes(png), jpeg, b"\xff\xd8\xff", b"RIFF\1", b"%PDF-", b"PK\3\4"):
        with pytest.raises(UnusableFile):
            find_kind(content, ".png")
