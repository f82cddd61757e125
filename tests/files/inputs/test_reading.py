"""Files are read once and within bounds."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from aeon import ConfigError
from aeon.domain.request import InputFile
from aeon.files.inputs.reading import ReadingLimits, read_input
from aeon.files.inputs.stored import find_stored, store_files
from tests.support.input_files import make_png

LIMITS = ReadingLimits(bytes=1000, characters=10)


def test_a_file_is_read_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(make_png())
    (tmp_path / "b").write_text("text")
    image = read_input("photo", tmp_path / "a", LIMITS)
    assert isinstance(image, InputFile)
    assert (image.name, image.media_type, image.content) == ("photo", "image/png", make_png())
    assert read_input("x", tmp_path / "b", LIMITS) == "text"


def test_a_file_of_three_gigabytes_is_refused_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big.pdf").open("wb") as file:
        file.truncate(3 * 10**9)
    with pytest.raises(
        ConfigError, match="3,000,000,000 bytes, and input_max_bytes=1000"
    ) as refused:
        read_input("x", tmp_path / "big.pdf", LIMITS)
    assert "input_max_bytes" in (refused.value.hint or "")


def test_of_a_pipe_no_more_is_read_than_a_file_may_have() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a" * 1001)
    with pytest.raises(ConfigError, match="more than 1,000 bytes"):
        read_input("x", Path(f"/dev/fd/{reading}"), LIMITS)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "address", ["https://example.com/a.png", "file:///etc/passwd", "s3://bucket/a", "HTTP://x/y"]
)
def test_an_address_is_not_fetched(address: str) -> None:
    with pytest.raises(ConfigError, match="an address is not fetched") as refused:
        read_input("x", Path(address), LIMITS)
    assert "Download it" in (refused.value.hint or "")


def test_an_address_is_shown_as_it_was_given() -> None:
    with pytest.raises(ConfigError) as refused:
        read_input("x", Path("https://example.com/a.png"), LIMITS)
    assert refused.value.message.startswith("input_files.x=https://example.com/a.png: ")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_input("x", path, LIMITS)


def test_an_archive_of_texts_is_no_text(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("note.txt"))
    (tmp_path / "a.tar").write_bytes((tmp_path / "a.tar").read_bytes()[:1000])
    with pytest.raises(ConfigError, match=r"a\.tar: it has zero bytes, and is no text"):
        read_input("x", tmp_path / "a.tar", LIMITS)


def test_a_text_that_is_asked_for_as_text_is_cut_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0123456789abc")
    cut = "0123456789\n[cut after 10 characters: 3 more are left out]"
    assert read_input("x", tmp_path / "a.csv", LIMITS, as_text=True) == cut
    assert read_input("x", tmp_path / "a.csv", LIMITS) == "0123456789abc"


def test_runs_that_have_the_same_file_share_one_copy(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(make_png())
    image = read_input("photo", tmp_path / "a", LIMITS)
    assert isinstance(image, InputFile)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        store_files(tmp_path / name, [image, image])
    stored = [*(tmp_path / "one" / "files").iterdir(), *(tmp_path / "two" / "files").iterdir()]
    assert [path.read_bytes() for path in stored] == [make_png()] * 2
    assert stored[0].stat().st_ino == stored[1].stat().st_ino
    stored[0].unlink()
    (tmp_path / "three").mkdir()
    store_files(tmp_path / "three", [image])
    assert find_stored(tmp_path / "three", image).content == make_png()
