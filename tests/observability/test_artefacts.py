import json
import os
import stat
from pathlib import Path

import pytest

from aeon.domain.errors import ArtefactError
from aeon.domain.result import SIMULATED_LINE
from aeon.observability import artefacts
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from tests.observability.support import a_result, feed, realistic_run


def test_what_is_read_back_equals_what_was_written(tmp_path: Path) -> None:
    result = a_result()
    artefacts.write(result, tmp_path)
    assert artefacts.load(tmp_path) == result


def test_the_result_is_there_without_its_history_and_the_history_beside_it(tmp_path: Path) -> None:
    result = a_result()
    artefacts.write(result, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "answer.md",
        "history.json",
        "result.json",
    ]
    written = json.loads((tmp_path / "result.json").read_bytes())
    assert set(written) == set(type(result).model_fields) - {"history"}
    assert json.loads((tmp_path / "history.json").read_bytes())["execution_id"] == "run-1"


def test_the_files_are_readable_in_every_script(tmp_path: Path) -> None:
    artefacts.write(a_result(), tmp_path)
    assert "Grüße, 世界 🌍" in (tmp_path / "result.json").read_text(encoding="utf-8")
    assert (tmp_path / "answer.md").read_text(
        encoding="utf-8"
    ) == "The design, whole.\nGrüße, 世界 🌍\n"


def test_an_answer_keeps_its_first_line_and_gets_no_second_newline(tmp_path: Path) -> None:
    answer = f"{SIMULATED_LINE}\nThe design.\n"
    artefacts.write(a_result(synthetic=True, answer=answer), tmp_path)
    assert (tmp_path / "answer.md").read_bytes().decode() == answer


def test_an_empty_answer_is_an_empty_file(tmp_path: Path) -> None:
    artefacts.write(a_result(answer=""), tmp_path)
    assert (tmp_path / "answer.md").read_bytes() == b""


def test_half_a_surrogate_pair_in_an_answer_loses_nothing(tmp_path: Path) -> None:
    result = a_result(answer="half \ud800 pair")
    artefacts.write(result, tmp_path)
    assert artefacts.load(tmp_path) == result
    assert (tmp_path / "answer.md").read_bytes() == b"half \\ud800 pair\n"


def test_equal_results_give_equal_bytes_in_a_fixed_order(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    artefacts.write(a_result(), tmp_path)
    artefacts.write(a_result(), tmp_path / "again")
    for name in ("result.json", "history.json", "answer.md"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    text = (tmp_path / "result.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "format": "aeon.domain.result/1",\n  "run_id": "run-1"')


def test_a_file_is_replaced_whole_or_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    artefacts.write(a_result(answer="the first"), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ArtefactError, match="cannot be written: No space left"):
        artefacts.write(a_result(answer="the second"), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_disk_that_fills_up_loses_no_file_that_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "history.json":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    result = a_result()
    with pytest.raises(
        ArtefactError, match=r"history\.json cannot be written: No space left"
    ) as raised:
        artefacts.write(result, tmp_path)
    assert raised.value.result is result
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.md", "result.json"]


def test_the_error_of_a_file_that_could_not_be_written_holds_the_result(tmp_path: Path) -> None:
    result = a_result()
    with pytest.raises(ArtefactError, match=r"answer\.md cannot be written") as raised:
        artefacts.write(result, tmp_path / "gone")
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    assert raised.value.result is result


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_files_are_as_readable_as_their_folder(tmp_path: Path, mode: int) -> None:
    (tmp_path / "other").touch()
    tmp_path.chmod(mode)
    artefacts.write(a_result(), tmp_path)
    usual = (tmp_path / "other").stat().st_mode
    assert (tmp_path / "result.json").stat().st_mode == usual & (mode | stat.S_IFREG)
    assert stat.S_ISREG((tmp_path / "result.json").stat().st_mode)


def test_a_directory_that_went_away_is_an_artefact_error(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="there is no folder"):
        artefacts.write(a_result(), tmp_path / "gone")


def test_a_folder_that_is_not_there_is_not_said_to_hold_no_result(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="nowhere: there is no such folder"):
        artefacts.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("result.json", None, "holds no result"),
        ("history.json", None, "cannot be read"),
        ("history.json", b"{", "does not hold a history of this version"),
        ("history.json", b"[]", "does not hold a history of this version"),
        (
            "result.json",
            b'{"format": "aeon.domain.result/9"}',
            "does not hold a result of this version",
        ),
    ],
)
def test_a_directory_without_a_whole_result_is_an_artefact_error(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    artefacts.write(a_result(), tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtefactError, match=message):
        artefacts.load(tmp_path)


def test_nothing_of_the_environment_gets_into_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-this-key-is-not-for-any-file"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    logs = (EventLog(tmp_path / "events.jsonl", print), CycleLog(tmp_path / "cycles.jsonl", print))
    for log in logs:
        feed(log, realistic_run())
        log.close()
    artefacts.write(a_result(), tmp_path)
    written = list(tmp_path.iterdir())
    assert len(written) == 5
    assert all(secret.encode() not in path.read_bytes() for path in written)
