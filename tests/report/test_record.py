"""A run's directory read back: every request with its prompt, its answer and its cost."""

import json
import shutil
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, ArtefactError
from aeon.report import record
from aeon.report.page.build import draw_report, write_report
from aeon.report.patterns import find_patterns
from aeon.report.record import Requests, load_record


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    with Aeon.from_config(["provider=simulated"]) as aeon:
        aeon.run("plan a move", directory=path)
    return path


def test_every_request_stands_in_order_with_its_prompt_and_answer(directory: Path) -> None:
    read = load_record(directory)
    assert [call.number for call in read.calls] == list(
        range(1, read.result.usage.total.requests + 1)
    )
    for call in read.calls:
        assert call.request is not None
        assert call.text
        assert call.cost == 0.0
    assert "plan a move" in str(read.calls[0].request)
    assert [call.sequence for call in read.calls] == sorted(call.sequence for call in read.calls)


def test_the_page_holds_one_request_at_a_time(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, most, read = 0, 0, Requests.read

    def release() -> None:
        nonlocal live
        live -= 1

    def count(requests: Requests, key: str) -> Held:
        nonlocal live, most
        live += 1
        most = max(most, live)
        held = Held(read(requests, key) or {})
        weakref.finalize(held, release)
        return held

    monkeypatch.setattr(Requests, "read", count)
    assert len(load_record(directory).calls) > 5
    assert most == 0
    write_report(directory, to=tmp_path / "page.html")
    assert 1 <= most <= 2  # the one before is let go once the next one is there
    assert live == 0


def test_the_page_opens_the_store_once_for_all_its_requests(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    real = record.open_source

    def count(path: Path, backend: Any) -> Any:
        opened.append(path)
        return real(path, backend)

    monkeypatch.setattr(record, "open_source", count)
    read = load_record(directory)
    assert len(opened) == 1
    draw_report(read)
    assert len(opened) == 2
    find_patterns(read)
    assert len(opened) == 3
    assert read.calls[0].request is not None
    assert len(opened) == 4


class Held(dict[str, Any]):
    """A request that can be told when it is let go."""


def test_a_record_without_its_store_and_journals_is_what_the_result_says(
    directory: Path, tmp_path: Path
) -> None:
    for name in ("result.json", "history.json"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    record = load_record(tmp_path)
    assert record.result == load_record(directory).result
    assert (record.events, record.cycles, record.calls, record.overrides) == ((), (), (), ())


def test_what_is_odd_in_a_directory_is_left_out(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    (tmp_path / "run.json").write_text("[]")
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_bytes(b"\xff")
    odd = ["[]", "5", "null", "{}", '{"event": "x"}', '{"sequence": "1", "part": 0, "event": "x"}']
    odd += [
        '{"sequence": 1, "part": 0}',
        '{"step_number": null}',
        '{"sequence": 9, "part": 9, "event": "call_answered"}',
    ]
    for name in ("events.jsonl", "cycles.jsonl"):
        with (tmp_path / name).open("a", encoding="utf-8") as journal:
            journal.write("\n".join(odd) + "\n")
    record, whole = load_record(tmp_path), load_record(directory)
    assert (record.origin, record.overrides) == ({}, ())
    assert [(call.number, call.text) for call in record.calls] == [
        (call.number, call.text) for call in whole.calls
    ]
    assert record.cycles == whole.cycles
    assert write_report(tmp_path).is_file()


def test_lines_of_which_a_part_is_odd_are_left_out(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    lines = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
    whole = next(line for line in lines if line["event"] == "call_answered")
    tool = {**whole, "event": "tool_called", "step_id": "a", "result": {"tool": "t", "error": None}}
    retry, fallback = (
        {**whole, "event": "retry_scheduled"},
        {**whole, "event": "fallback_used", "failed": "a"},
    )
    lines += [
        {**line, name: odd}
        for line in (whole, tool, retry, fallback)
        for odd in (None, [], {}, "x", 5)
        for name in ("call", "model", "time", "seconds", "result", "step_id", "error", "failed")
        if not isinstance(odd, type(line.get(name)))
    ]
    sites = [
        {**whole["site"], name: odd}
        for name in whole["site"]
        for odd in (None, [], "x")
        if name != "sequence"
    ]
    lines += [{**whole, "site": site} for site in [None, [], {}, *sites]]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert write_report(tmp_path).is_file()


def test_a_directory_without_a_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="holds no result"):
        load_record(tmp_path)


def test_what_a_strangers_folder_names_as_its_store_is_not_imported(
    directory: Path, tmp_path: Path
) -> None:
    shutil.copytree(directory, tmp_path / "run")
    result = tmp_path / "run" / "result.json"
    result.write_text(
        result.read_text().replace('"backend": "sqlite"', '"backend": "strangers_store:Store"')
    )
    (tmp_path / "strangers_store.py").write_text("raise SystemExit('imported')\n")
    sys.path.insert(0, str(tmp_path))
    try:
        record = load_record(tmp_path / "run")
    finally:
        sys.path.remove(str(tmp_path))
    assert record.calls
    assert {call.request for call in record.calls} == {None}
