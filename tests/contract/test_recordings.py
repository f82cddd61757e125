"""What was really answered to the prompts is still accepted by the schemas, and still makes the same runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.config.origin import parse
from aeon.domain.errors import AnswerError
from aeon.llm.extract import extract_json
from aeon.llm.schemas import load_packaged_schemas
from aeon.llm.stack.stored import response
from aeon.store.cassette import CassetteSource, decode, encode, read
from tests.contract.rekey import overrides_of

CASSETTES = sorted((Path(__file__).parents[2] / "examples" / "cassettes").glob("*.aeon"))

recordings = pytest.mark.parametrize("recording", CASSETTES, ids=lambda path: path.stem)


def test_there_are_recordings() -> None:
    assert {path.stem for path in CASSETTES} == {"rest-api", "sum", "web-architecture"}


@recordings
def test_every_recorded_answer_is_valid_by_todays_schema(recording: Path) -> None:
    answers = read(recording).answers
    assert answers[0].request.path.call == "task_profile"
    for number, entry in enumerate(answers, start=1):
        call = entry.request.path.call
        errors = list(
            load_packaged_schemas().local(call).iter_errors(extract_json(entry.answer["text"]))
        )
        assert errors == [], f"answer {number} ({call}): {errors[0].message}"


@recordings
def test_a_recording_says_by_what_it_was_answered_and_what_is_not_known(recording: Path) -> None:
    told = read(recording).provenance
    assert (told.answered_by, told.usage, told.synthetic) == (
        "hand, by a careful reader of each prompt (no model)",
        "estimated",
        False,
    )
    assert (told.first, told.last) == ("2026-11-21", "2026-11-21")
    assert "estimated" in told.note


@recordings
def test_a_recording_holds_all_that_a_replay_starts_with_and_nothing_of_the_machine(
    recording: Path,
) -> None:
    cassette = read(recording)
    origin = parse(cassette.origin, str(recording))
    assert origin.task
    assert "convergence" in origin.settings
    assert (origin.working_directory, origin.provider.base_url) == (".", None)
    head = recording.read_text(encoding="utf-8").partition("\n")[0]
    assert [
        place for place in ("127.0.0.1", "localhost", "/home", "/root", "/tmp") if place in head
    ] == []


@recordings
def test_a_recording_is_as_it_would_be_written_today(recording: Path) -> None:
    data = recording.read_bytes()
    assert encode(decode(data)) == data


@recordings
def test_a_recording_is_of_todays_requests(recording: Path) -> None:
    """`python -m tests.contract.rekey` gives them today's requests, after prompts were worded anew."""
    cassette = read(recording)
    with Aeon.from_config(overrides_of(recording, cassette), environ={}) as aeon:
        result = aeon.run(cassette.origin["task"])
    assert result.converged
    assert result.parent is not None
    assert not result.parent.differing


@recordings
def test_a_recording_comes_back_when_it_is_written_anew(recording: Path) -> None:
    cassette = read(recording)
    assert decode(encode(cassette)) == cassette


@recordings
def test_every_answer_of_a_recording_is_a_models_response(recording: Path) -> None:
    for entry in read(recording).answers:
        try:
            assert response(entry.answer).text
        except AnswerError:
            pytest.fail("an error was recorded")


def test_the_largest_recording_is_opened_in_no_time() -> None:
    largest = max(CASSETTES, key=lambda path: path.stat().st_size)
    CassetteSource(read(largest)).close()
    began = time.process_time()
    CassetteSource(read(largest)).close()
    assert time.process_time() - began < 5
