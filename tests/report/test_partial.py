"""The page of a run without a result: killed anywhere, or still running."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from aeon.cli.main import main
from aeon.domain.errors import ArtefactError
from aeon.domain.history import ExecutionPass
from aeon.files.jsonl import JsonLines
from aeon.report.diagnosis.next_commands import find_next_commands
from aeon.report.ending import headline, tone
from aeon.report.page.build import draw_report, write_report
from aeon.report.partial import PartialResult
from aeon.report.record import load_record
from tests.cli.conftest import logging_restored

LEFT_BY_THE_END = ("result.json", "history.json", "answer.md", "report.html")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partial") / "run"
    with logging_restored():
        main(
            [
                "task=plan a move",
                "provider=simulated",
                "progress=none",
                "convergence.completeness=0.5",
                f"hydra.run.dir={folder}",
            ]
        )
    return folder


@pytest.fixture
def killed(finished: Path, tmp_path: Path) -> Path:
    """The run, had it been killed just before its end."""
    directory = tmp_path / "killed"
    shutil.copytree(finished, directory)
    for name in LEFT_BY_THE_END:
        (directory / name).unlink()
    return directory


def cut(directory: Path, lines: int) -> None:
    """Leave so many lines of the events."""
    path = directory / "events.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


def fragments(passed: ExecutionPass) -> list[str] | None:
    made = passed.refinement
    return [action.fragment for action in made.accepted] if made else None


def test_a_killed_run_has_what_its_journals_tell(finished: Path, killed: Path) -> None:
    whole, found = load_record(finished), load_record(killed)
    assert isinstance(found.result, PartialResult)
    assert found.result.usage.total == whole.result.usage.total
    assert found.result.scores == whole.result.scores
    assert found.result.ttl == whole.result.ttl
    assert found.result.answer == whole.result.answer
    assert found.result.passes == whole.result.passes
    for one, other in zip(found.result.history.passes, whole.result.history.passes, strict=True):
        assert one.evaluation_results == other.evaluation_results
        assert fragments(one) == fragments(other)
    one, other = (record.result.history.passes[-1] for record in (found, whole))
    assert [step.state for step in one.steps] == [step.state for step in other.steps]


@pytest.mark.slow
def test_wherever_a_run_is_cut_off_its_page_can_be_made(killed: Path) -> None:
    lines = (killed / "events.jsonl").read_bytes().splitlines(keepends=True)
    for number in range(len(lines), 0, -7):
        cut(killed, number)
        record = load_record(killed)
        assert len(record.events) == number
        assert b"Cut off" in draw_report(record)


def test_a_run_that_was_cut_off_is_amber_and_says_how_to_go_on(killed: Path) -> None:
    result = load_record(killed).result
    assert headline(result).startswith("Cut off: there is no result")
    assert tone(result) == "warn"
    assert find_next_commands(result, killed) == [
        ("To resume from the stored answers", f"python -m aeon resume={killed}")
    ]


def test_a_run_that_goes_on_is_shown_as_it_stands(killed: Path) -> None:
    with closing(JsonLines(killed / "events.jsonl")):
        result = load_record(killed).result
        assert headline(result).startswith("Still running: ")
        assert find_next_commands(result, killed) == []
        page = write_report(killed).read_text(encoding="utf-8")
        assert "Still running" in page
        assert "was interrupted" not in page


@pytest.mark.parametrize("name", ["cycles.jsonl", "store.sqlite"])
def test_the_page_can_do_without(killed: Path, name: str) -> None:
    (killed / name).unlink()
    assert b"Cut off" in draw_report(load_record(killed))


@pytest.mark.parametrize(("name", "text"), [(".hydra/config.yaml", "["), ("events.jsonl", "")])
def test_a_run_whose_records_cannot_be_read_is_told_from_a_folder_that_holds_none(
    killed: Path, name: str, text: str
) -> None:
    (killed / name).write_text(text, encoding="utf-8")
    with pytest.raises(ArtefactError, match="holds no result") as refused:
        load_record(killed)
    assert "resume=" in refused.value.hint


PRICE = {"input": 1000, "output": 1000}


@pytest.mark.parametrize("kind", ["auto", "openai"])
@pytest.mark.parametrize(
    ("prices", "cost_of_token"), [({"*": PRICE}, PRICE["input"] / 1_000_000), ({}, None)]
)
def test_an_unfinished_run_has_its_own_prices_and_address(
    killed: Path, kind: str, prices: dict[str, dict[str, float]], cost_of_token: float | None
) -> None:
    shutil.rmtree(killed / ".hydra")
    origin = json.loads((killed / "run.json").read_bytes())
    origin["settings"]["provider"] = {"kind": kind, "model": "gpt-5-mini", "prices": prices}
    origin["provider"] = {
        "kind": "openai",
        "model": "gpt-5-mini",
        "base_url": "http://127.0.0.1:1/v1",
        "api_key_env": "OPENAI_API_KEY",
        "adapter": None,
    }
    (killed / "run.json").write_text(json.dumps(origin), encoding="utf-8")
    path = killed / "events.jsonl"
    path.write_text(path.read_text().replace('"model":"simulated"', '"model":"gpt-5-mini"'))
    total = load_record(killed).result.usage.total
    assert total.total_tokens
    expected = cost_of_token and pytest.approx(total.total_tokens * cost_of_token)
    assert total.cost == expected


def test_a_run_without_a_folder_of_hydra_has_its_settings_in_run_json(killed: Path) -> None:
    with_hydra = load_record(killed).result
    shutil.rmtree(killed / ".hydra")
    assert load_record(killed).result.configuration == with_hydra.configuration


def test_a_step_that_a_kill_cut_off_is_no_longer_running(killed: Path) -> None:
    lines = (killed / "events.jsonl").read_text(encoding="utf-8").splitlines()
    cut(killed, 1 + next(at for at, line in enumerate(lines) if '"step_started"' in line))
    (step,) = (one for one in load_record(killed).result.history.passes[-1].steps if one.incomplete)
    assert step.state == "pending"
    with closing(JsonLines(killed / "events.jsonl")):
        states = [one.state for one in load_record(killed).result.history.passes[-1].steps]
        assert states.count("running") == 1
