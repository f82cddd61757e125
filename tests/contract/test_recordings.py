"""What was really answered to the prompts is still accepted by the schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon.llm.extract import extract_json
from aeon.llm.schemas import packaged_schemas

RECORDINGS = sorted((Path(__file__).parents[2] / "examples" / "recordings").glob("*.jsonl"))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_answer_is_valid_by_todays_schema(recording: Path):
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["call"] == "task_profile"
    for number, line in enumerate(lines, start=1):
        errors = list(packaged_schemas().local(line["call"]).iter_errors(extract_json(line["answer"])))
        assert errors == [], f"answer {number} ({line['call']}): {errors[0].message}"


def test_there_are_recordings():
    assert {path.stem for path in RECORDINGS} == {"rest-api", "sum", "web-architecture"}
