"""Images among the inputs of a run, on its page."""

from __future__ import annotations

import base64
import hashlib
import io
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from aeon.domain.request import InputFile
from aeon.files.inputs import extraction
from aeon.files.inputs.stored import store_files
from aeon.report.page.files import ShownFile, list_files
from tests.support.input_files import make_jpeg, make_png

NOISE = random.Random(7).randbytes(3 * 400 * 200)


def show(folder: Path, content: bytes, media_type: str = "image/png") -> ShownFile:
    """Show an image of a run in this folder."""
    digest = hashlib.sha256(content).hexdigest()
    file = InputFile("photo", "image", media_type, len(content), digest, content)
    store_files(folder, [file])
    record = SimpleNamespace(origin={"input_files": {"photo": file.describe()}}, directory=folder)
    return list_files(record, folder)["photo"]


def read_size(image: str) -> tuple[int, int]:
    with Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))) as shown:
        return shown.size


def test_a_small_image_is_shown_itself(tmp_path: Path) -> None:
    content = make_png()
    assert base64.b64decode(show(tmp_path, content).image.partition(",")[2]) == content


@pytest.mark.slow
def test_a_large_image_is_shrunk(tmp_path: Path) -> None:
    shown = show(tmp_path, make_png(400, 200, NOISE))
    assert shown.image.startswith("data:image/webp;base64,")
    assert read_size(shown.image) == (320, 160)
    assert len(shown.image) < 64 * 1024
    assert (tmp_path / shown.address).is_file()


@pytest.mark.slow
def test_a_photo_is_shown_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    file = io.BytesIO()
    Image.frombytes("RGB", (400, 200), NOISE).save(file, "JPEG", quality=95, exif=exif)
    assert read_size(show(tmp_path, file.getvalue(), "image/jpeg").image) == (160, 320)


@pytest.mark.slow
def test_an_image_that_cannot_be_read_or_has_too_many_pixels_is_a_link_alone(
    tmp_path: Path,
) -> None:
    bomb = make_png(20_000, 20_000, bytes(3))[:40] + bytes(70_000)
    for content in (bomb, make_jpeg() + bytes(70_000)):
        shown = show(tmp_path, content)
        assert shown.image == ""
        assert shown.address


def test_without_pillow_a_large_image_is_a_link_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "find_spec", lambda name: None)
    shown = show(tmp_path, make_png(400, 200, NOISE))
    assert (shown.image, bool(shown.address)) == ("", True)
