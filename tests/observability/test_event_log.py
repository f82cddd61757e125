import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aeon.domain import events as e
from aeon.files.jsonl import read_lines
from aeon.observability.event_log import LEFT_OUT, EventLog, event_name, event_types
from tests.observability.published import line_model
from tests.observability.support import TASK, chain_run, feed, realistic_run


def logged(path: Path, told: tuple[e.Recorded, ...]) -> list[dict[str, Any]]:
    log = EventLog(path / "events.jsonl", print)
    feed(log, told)
    log.close()
    return list(read_lines(path / "events.jsonl"))


def test_every_event_is_one_line_with_its_number_time_and_name(tmp_path: Path) -> None:
    told = realistic_run()
    lines = logged(tmp_path, told)
    assert [(line["sequence"], line["part"], line["time"], line["event"]) for line in lines] == [
        (r.sequence, r.part, r.time, event_name(type(r.event))) for r in told
    ]
    assert lines[0]["task"] == TASK


def test_a_line_is_there_when_the_next_event_happens(tmp_path: Path) -> None:
    told = realistic_run()
    with closing(EventLog(tmp_path / "events.jsonl", print)) as log:
        for count, recorded in enumerate(told, start=1):
            log(recorded)
            assert len(list(read_lines(tmp_path / "events.jsonl"))) == count


def test_what_research_decision_9_asks_to_be_observable_is_there(tmp_path: Path) -> None:
    lines = logged(tmp_path, realistic_run())
    by_name = {line["event"]: line for line in lines}
    assert [(line["stage"], line["phase"]) for line in lines if line["event"] == "phase_started"][
        :3
    ] == [
        ("A", "PROFILE"),
        ("B", "PLAN"),
        ("C", "EXECUTE"),
    ]
    assert by_name["pass_finished"]["ttl_remaining"] == 21
    assert by_name["assessed"]["assessment"]["converged"] is True
    assert by_name["assessed"]["assessment"]["scores"]["completeness_score"] == 0.97
    assert by_name["refined"]["refinement"]["accepted"][0]["action_type"] == "MODIFY"
    assert by_name["refined"]["refinement"]["changes"][0]["before"]["clarity_state"] == "BLOCKED"
    assert by_name["plan_made"]["plan"]["steps"][3]["step_id"] == "combine"


def test_prompts_answers_and_repeated_plans_are_left_out(tmp_path: Path) -> None:
    lines = logged(tmp_path, realistic_run())
    for line in lines:
        left_out = {
            "call_answered": {"request", "text"},
            "cycle_started": {"plan"},
            "refined": {"plan"},
        }
        assert not left_out.get(line["event"], set()) & set(line)
    answered = next(line for line in lines if line["event"] == "call_answered")
    assert answered["characters"] == len('{"ok": true}')


def test_a_step_does_not_repeat_the_outputs_it_was_given(tmp_path: Path) -> None:
    logged(tmp_path, realistic_run())
    text = (tmp_path / "events.jsonl").read_text()
    assert "what came before" not in text
    assert "output of gather" in text


def test_the_journal_grows_linearly_with_the_run(tmp_path: Path) -> None:
    sizes = []
    for length in (40, 80):
        (folder := tmp_path / str(length)).mkdir()
        logged(folder, chain_run(length))
        sizes.append((folder / "events.jsonl").stat().st_size)
    assert sizes[1] < 2.1 * sizes[0]


def test_each_kind_of_event_is_known_once() -> None:
    names = [event_name(kind) for kind in event_types()]
    assert len(names) == len(set(names))
    assert {"run_started", "cycle_finished", "assessed", "run_finished"} <= set(names)


@pytest.mark.parametrize("kind", event_types(), ids=event_name)
def test_every_field_of_every_event_stands_in_its_line_unless_left_out_by_name(
    kind: type[e.Event],
) -> None:
    fields = {field.name for field in dataclasses.fields(kind)} - LEFT_OUT.get(kind, frozenset())
    extra = {"characters"} if kind is e.CallAnswered else set()
    assert set(line_model(kind).model_fields) == fields | extra | {
        "sequence",
        "part",
        "time",
        "event",
        "run_id",
    }
