"""The text of documents, read in a process of its own."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pypdf import PdfWriter

from aeon import ConfigError
from aeon.domain.request import InputFile
from aeon.files.inputs import child, extraction, kinds
from aeon.files.inputs.extraction import ExtractionLimits, extract_text
from aeon.files.inputs.kinds import FileKind, UnusableFile
from aeon.files.inputs.reading import ReadingLimits, read_input
from aeon.files.secret_forms import make_environment
from tests.support.input_files import make_docx, make_pdf, make_png

pytestmark = pytest.mark.slow
"""Each starts a process, and most import what reads Word documents."""
ENOUGH = 10_000
PAGE = b"<html><script>alert(1)</script><h1>Prices</h1><table><tr><th>a</th></tr><tr><td>1</td></tr></table>"


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        (kinds.PDF, make_pdf("The total is 42.", "Page two."), "The total is 42.\n\nPage two."),
        (kinds.DOCX, make_docx("One.", "Two."), "One.\n\nTwo."),
        (kinds.HTML, PAGE, "# Prices\n\n| a |\n| --- |\n| 1 |"),
    ],
    ids=["pdf", "docx", "html"],
)
def test_a_document_has_a_text(kind: FileKind, content: bytes, text: str) -> None:
    assert extract_text(kind, content, ENOUGH).strip() == text


def encrypt(content: bytes, password: str, algorithm: str = "AES-256") -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(password, "the owner's", algorithm=algorithm)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_an_encrypted_pdf_that_opens_without_a_password_is_read(
    algorithm: str, tmp_path: Path
) -> None:
    path = tmp_path / "offer.pdf"
    path.write_bytes(encrypt(make_pdf("The total is 42."), "", algorithm))
    limits = ReadingLimits(100_000, ENOUGH)
    assert read_input("offer", path, limits, as_text=True) == "The total is 42."
    file = read_input("offer", path, limits)
    assert isinstance(file, InputFile)
    assert file.content == path.read_bytes()


@pytest.mark.parametrize("as_text", [False, True])
def test_a_pdf_that_a_password_locks_is_refused(tmp_path: Path, *, as_text: bool) -> None:
    path = tmp_path / "offer.pdf"
    path.write_bytes(encrypt(make_pdf("The total is 42."), "secret"))
    with pytest.raises(ConfigError, match="it is a PDF that a password locks") as refused:
        read_input("offer", path, ReadingLimits(100_000, ENOUGH), as_text=as_text)
    assert refused.value.hint == "Save it without its password."


def test_an_encrypted_scan_is_no_text_and_can_be_given() -> None:
    extraction.check_unlocked(encrypt(make_pdf(""), ""))


@pytest.mark.parametrize("before", [b"", b"\n"])
def test_a_pdf_between_empty_lines_has_a_text(before: bytes) -> None:
    content = before + make_pdf("The total is 42.") + b"\n" * 5000
    assert extract_text(kinds.PDF, content, ENOUGH) == "The total is 42."


def test_a_long_document_is_cut_and_says_where() -> None:
    pages = make_pdf(*(f"This is page {number}." for number in range(1, 31)))
    text = extract_text(kinds.PDF, pages, 60)
    assert text.startswith("This is page 1.\n\nThis is page 2.")
    assert text.endswith("\n[cut after 60 characters: on page 4 of 30]")
    words = make_docx("word " * 100)
    assert "[cut after 20 characters: " in extract_text(kinds.DOCX, words, 20)


def test_a_document_without_text_is_refused() -> None:
    with pytest.raises(UnusableFile, match="without any text") as refused:
        extract_text(kinds.PDF, make_pdf(""), ENOUGH)
    assert "OCR" in refused.value.hint


def test_an_image_has_no_text() -> None:
    with pytest.raises(UnusableFile, match="no text is extracted") as refused:
        extract_text(kinds.PNG, make_png(), ENOUGH)
    assert "Leave out input_as" in refused.value.hint


def test_the_process_that_reads_a_document_needs_nothing_of_aeon(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", child.__file__, "html", "9", "9", str(2**30), "9"]
    done = subprocess.run(command, input=PAGE, cwd=tmp_path, capture_output=True, check=True)
    assert "No module named 'markitdown'" in json.loads(done.stdout)["error"]


def test_a_document_that_its_reader_fails_on_is_refused() -> None:
    for kind in (kinds.PDF, kinds.DOCX):
        with pytest.raises(UnusableFile, match="cannot be read") as refused:
            extract_text(kind, b"nothing of the kind", ENOUGH)
        assert refused.value.hint


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "find_spec", lambda name: None)
    with pytest.raises(UnusableFile, match="pypdf, which is not installed") as refused:
        extract_text(kinds.PDF, make_pdf(), ENOUGH)
    assert "aeon-engine[files]" in refused.value.hint


def test_a_directory_that_lies_about_sizes_does_not_unpack_more() -> None:
    honest = make_docx(more={"word/zeros": bytes(10**6)})
    with pytest.raises(UnusableFile, match="unpacks to more than 500,000 bytes"):
        extract_text(kinds.DOCX, honest, ENOUGH, ExtractionLimits(unpacked_bytes=500_000))
    lying = honest.replace(struct.pack("<I", 10**6), struct.pack("<I", 10))
    with pytest.raises(UnusableFile, match="cannot be read"):
        extract_text(kinds.DOCX, lying, ENOUGH)


def test_a_document_that_takes_too_much_memory_is_refused() -> None:
    deep = b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 200_000
    head = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    bomb = make_docx(more={"word/document.xml": head + deep + b"</w:body></w:document>"})
    assert len(bomb) < 10**6
    with pytest.raises(UnusableFile, match="needs more than 550 MB of memory"):
        extract_text(kinds.DOCX, bomb, ENOUGH, ExtractionLimits(memory_bytes=550 * 2**20))


def test_a_document_that_takes_too_much_computing_is_refused() -> None:
    many = make_docx(*("x" for _ in range(60_000)))
    with pytest.raises(UnusableFile, match="it takes more than 1 seconds of computing"):
        extract_text(kinds.DOCX, many, ENOUGH, ExtractionLimits(seconds=1))


def test_a_process_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "child.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(extraction, "_CHILD", tmp_path / "child.py")
    with pytest.raises(UnusableFile, match=r"takes more than 1\.5 seconds"):
        extract_text(kinds.DOCX, make_docx(), ENOUGH, ExtractionLimits(longest_seconds=1.5))


def test_the_process_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret")
    assert "OPENAI_API_KEY" not in make_environment()


def test_all_parts_are_counted_as_they_are_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", bytes(70_000))
        archive.writestr("b", bytes(70_000))
    child.unpack(file.getvalue(), 140_000)
    with pytest.raises(ValueError, match="more than 139,999"):
        child.unpack(file.getvalue(), 139_999)
