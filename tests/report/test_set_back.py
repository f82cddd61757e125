"""A changed answer that was set back: what page and findings say of the pass, and of what it cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon
from aeon.cli.terminal.lines import ending
from aeon.domain.errors import RequestRefused
from aeon.domain.result import RunResult
from aeon.report.bought import describe_bought
from aeon.report.diagnosis.finding import Finding
from aeon.report.diagnosis.ranking import diagnose
from aeon.report.page.answers import find_final_pass
from aeon.report.patterns import find_patterns
from aeon.report.record import Record, load_record
from tests.kernel.test_gate import preferring
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    clear,
    plan,
    planned,
    refinement,
)


def tried_twice() -> ScriptedModel:
    """The first change makes the answer worse and is set back, the second makes it better."""
    changes = [
        refinement(action("REPLACE", "draft1", planned(new))) for new in ("draft2", "draft3")
    ]
    return ScriptedModel(
        plan=plan("draft1"),
        step=[clear(f"answer {number}") for number in (1, 2, 3)],
        convergence=[assessment(0.5), assessment(0.8)],
        refinement=changes,
        comparison=preferring("answer 3", "answer 1", "answer 2"),
    )


def play(directory: Path, model: ScriptedModel, passes: int) -> Record:
    gate = ("refinement.accept=not_worse", f"limits.max_passes={passes}")
    with Aeon.from_config(gate, adapter=model, environ={}) as aeon:
        return load_record(directory, aeon.run("make tea", directory=directory))


def find(record: Record) -> list[Finding]:
    found = diagnose(record, find_patterns(record), (), ())
    return [each for one in found for each in (one, *one.children)]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return play(tmp_path_factory.mktemp("runs") / "run", tried_twice(), 3)


def test_its_pass_gained_nothing(record: Record) -> None:
    assert find_patterns(record).without_gain == (2,)


def test_it_stands_out_with_the_judges_words(record: Record) -> None:
    (told,) = [one for one in find(record) if "set back" in one.title]
    assert told.title == "In pass 2 the changed answer was found worse, and set back"
    assert told.rank == "cost"
    assert "answer 1 is right." in told.evidence
    assert not any("no score rose" in one.title for one in find(record))


def test_an_answer_that_could_not_be_compared_is_not_said_to_be_worse(tmp_path: Path) -> None:
    model = tried_twice()
    model._answers["comparison"] = [RequestRefused("no", status=400)]
    (told,) = [one for one in find(play(tmp_path / "run", model, 2)) if "set back" in one.title]
    assert told.title == "In pass 2 the changed answer could not be compared, and was set back"


def test_a_page_with_one_does_not_say_that_no_pass_was_without_gain(tmp_path: Path) -> None:
    model = tried_twice()
    model._answers["convergence"] = [assessment(0.5), assessment(1.0)]
    assert play(tmp_path / "run", model, 3).result.converged
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "no pass without gain" not in page
    assert "<li>after pass 1: set back</li>" in page
    assert "<li>after pass 2: +0.167 in the mean score" in page


def test_the_gain_of_the_change_that_was_accepted_is_its_own(record: Record) -> None:
    _, first, second = find_patterns(record).refinements[:3]
    assert (first.pass_number, first.to_pass, first.gain, first.set_back) == (1, 2, 0.0, True)
    assert (second.pass_number, second.to_pass, second.gain, second.set_back) == (2, 3, 0.1, False)
    calls = record.calls
    judged = [one for one in calls if one.call == "convergence"]
    between = [one for one in calls if judged[0].number < one.number <= judged[1].number]
    spent = sum(one.usage.total_tokens for one in between)
    assert (first.tokens or 0) + (second.tokens or 0) == spent


def test_the_answer_is_of_the_pass_before(tmp_path: Path) -> None:
    result: RunResult = play(tmp_path / "run", tried_twice(), 2).result
    assert (result.answer, result.history.passes[2].answer) == ("answer 1", "answer 1")
    assert result.best_pass is not None
    assert result.bought is not None
    assert (result.best_pass.pass_number, result.bought.last.pass_number) == (1, 1)
    assert find_final_pass(result) == 1


def test_it_is_told_where_a_run_ends_without_a_terminal(record: Record) -> None:
    sentence = describe_bought(record.result.bought)
    assert "1 changed answer was found worse, and set back" in sentence
    assert f"\n  bought: {sentence}\n" in ending(record.result, record.directory)
