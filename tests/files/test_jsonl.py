import json
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from aeon.domain.errors import ArtefactError
from aeon.files.jsonl import JsonLines, read_lines


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[JsonLines]:
    lines = JsonLines(tmp_path / "a.jsonl")
    yield lines
    lines.close()


needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def test_each_line_is_on_disk_as_soon_as_it_is_written(lines: JsonLines, tmp_path: Path) -> None:
    lines.write({"n": 1})
    assert (tmp_path / "a.jsonl").read_bytes() == b'{"n":1}\n'
    lines.write({"n": 2})
    assert list(read_lines(tmp_path / "a.jsonl")) == [{"n": 1}, {"n": 2}]


def test_every_script_is_readable_and_half_a_surrogate_pair_survives(
    lines: JsonLines, tmp_path: Path
) -> None:
    text = "Grüße 世界 🌍 \u2028 \x00 \ud800"
    lines.write({"text": text})
    raw = (tmp_path / "a.jsonl").read_bytes().decode("utf-8")
    assert "Grüße 世界 🌍" in raw
    assert raw.count("\n") == 1
    assert [line["text"] for line in read_lines(tmp_path / "a.jsonl")] == [text]


def test_lines_from_many_threads_stay_whole(lines: JsonLines, tmp_path: Path) -> None:
    def write_twenty() -> None:
        for number in range(20):
            lines.write({"n": number, "x": "y" * 999})

    writers = [threading.Thread(target=write_twenty) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(list(read_lines(tmp_path / "a.jsonl"))) == 160


def test_what_comes_after_closing_is_dropped(lines: JsonLines, tmp_path: Path) -> None:
    lines.close()
    lines.close()
    lines.write({"n": 1})
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_a_last_line_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 1}\n{"n": ')
    assert list(read_lines(tmp_path / "a.jsonl")) == [{"n": 1}]


def test_a_file_that_cannot_be_opened_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        ArtefactError, match=r"nowhere.*cannot be written: there is no folder"
    ) as raised:
        JsonLines(tmp_path / "nowhere" / "a.jsonl")
    assert "hydra.run.dir" in raised.value.hint


@needs_dev_full
def test_a_full_disk_is_an_artefact_error() -> None:
    lines = JsonLines(Path("/dev/full"))
    with pytest.raises(ArtefactError, match="No space left"):
        lines.write({"n": 1})
    lines.close()


def test_a_line_that_was_half_written_is_taken_back(
    lines: JsonLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(data: bytes) -> int:
        if len(data) < 5:
            raise OSError(28, "No space left on device")
        return file.write(data[: len(data) // 2]) or 0

    lines.write({"n": 1})
    file = lines._file
    with monkeypatch.context() as patch:
        patch.setattr(lines, "_file", Mock(wraps=file, write=half, closed=False))
        with pytest.raises(ArtefactError):
            lines.write({"n": 2})
    lines.write({"n": 3})
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == [
        {"n": 1},
        {"n": 3},
    ]
