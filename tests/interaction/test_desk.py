"""Questions and answers in the folder of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from aeon.config.own_runs import UntrustedRun
from aeon.domain.errors import ConfigError
from aeon.domain.plan import OpenQuestion
from aeon.interaction.desk import Desk
from aeon.interaction.models import AnswerList, QuestionList
from tests.interaction.desks import approval, in_the_past, make_desk, question, step


def test_what_waits_is_listed_in_the_order_in_which_it_was_asked(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, step(), question(), approval())
    assert [each.id for each in desk.list_open()] == ["step-1", "question-1", "approval-1"]


def test_a_question_stands_in_the_file_as_the_format_says(tmp_path: Path) -> None:
    make_desk(tmp_path, question(step_id="b"))
    assert json.loads((tmp_path / "questions.json").read_bytes()) == {
        "format": "aeon.questions/1",
        "questions": [
            {
                "id": "question-1",
                "kind": "question",
                "text": "Which city?",
                "assumption": "Oslo",
                "step_id": "b",
                "asked_at": "2026-11-23T10:00:00Z",
                "deadline": None,
            }
        ],
    }


def test_both_files_are_as_their_schemas_say(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question(), step())
    desk.settle({"question-1": "Bergen", "step-1": "4 by 5 m"})
    for name, kind in (("questions.json", QuestionList), ("answers.json", AnswerList)):
        schema = kind.model_json_schema()
        jsonschema.validate(json.loads((tmp_path / name).read_bytes()), schema)


def test_what_is_posted_twice_stands_there_once(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question(), question())
    assert len(desk.list_questions()) == 1


def test_an_answer_settles_its_question_alone(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question(), step())
    desk.settle({"question-1": "  Bergen\n"})
    assert desk.list_answers()["question-1"].answer == "Bergen"
    assert [each.id for each in desk.list_open()] == ["step-1"]


def test_an_empty_answer_to_a_question_lets_its_assumption_hold(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question())
    desk.settle({"question-1": " "})
    assert desk.list_answers()["question-1"].answer is None
    assert desk.list_open() == ()


@pytest.mark.parametrize(
    ("typed", "taken"), [("yes", "yes"), ("Y", "yes"), (" NO ", "no"), ("n", "no")]
)
def test_an_approval_is_answered_yes_or_no(tmp_path: Path, typed: str, taken: str) -> None:
    desk = make_desk(tmp_path, approval())
    desk.settle({"approval-1": typed})
    assert desk.list_answers()["approval-1"].answer == taken


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"approval-1": "perhaps"}, "answered yes or no, not 'perhaps'"),
        ({"approval-1": ""}, "answered yes or no"),
        ({"step-1": " \n"}, "the output of step m is empty"),
        ({"other-1": "x"}, "there is no question 'other-1'"),
        ({"question-2": "x"}, "its deadline, .* has passed"),
        ({"question-1": "half \ud800"}, "question-1"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_so_are_those_given_with_it(
    tmp_path: Path, given: dict[str, str], message: str
) -> None:
    late = question("question-2", **in_the_past())
    desk = make_desk(tmp_path, question(), approval(), step(), late)
    with pytest.raises(ConfigError, match=message):
        desk.settle({"step-1": "4 by 5 m", **given})
    assert desk.list_answers() == {}


def test_what_is_settled_is_not_settled_again(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, approval())
    desk.settle({"approval-1": "no"})
    with pytest.raises(ConfigError, match=r"approval-1 is settled since .*: no"):
        desk.settle({"approval-1": "yes"})
    assert desk.list_answers()["approval-1"].answer == "no"


def test_of_many_who_answer_at_once_one_is_taken_and_the_others_are_told(tmp_path: Path) -> None:
    make_desk(tmp_path, question(), *(step(f"step-{number}") for number in range(8)))

    def settle(number: int) -> bool:
        desk = Desk(tmp_path)
        desk.settle({f"step-{number}": f"output {number}"})
        try:
            desk.settle({"question-1": f"city {number}"})
        except ConfigError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(settle, range(8)))
    answers = Desk(tmp_path).list_answers()
    assert taken.count(True) == 1
    assert answers["question-1"].answer == f"city {taken.index(True)}"
    assert {name: one.answer for name, one in answers.items() if name.startswith("step")} == {
        f"step-{number}": f"output {number}" for number in range(8)
    }
    assert Desk(tmp_path).has_own_answers()


_DYING = """
import os, signal, sys
from pathlib import Path
from aeon.interaction.desk import Desk

real, calls, last = {"fsync": os.fsync, "replace": Path.replace}, 0, int(sys.argv[2])

def dying(name):
    def call(*given):
        global calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return real[name](*given)
    return call

os.fsync = dying("fsync")
Path.replace = lambda *given: dying("replace")(*given)
Desk(Path(sys.argv[1])).settle({"question-1": "Bergen", "step-1": "4 by 5 m"})
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_who_is_killed_while_answering_leaves_what_was_there_and_no_lock(
    tmp_path: Path, number: int
) -> None:
    desk = make_desk(tmp_path, question(), step(), approval())
    desk.settle({"approval-1": "yes"})
    command = [sys.executable, "-c", _DYING, str(tmp_path), str(number)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert list(desk.list_answers()) == ["approval-1"]
    desk.settle({"question-1": "Tromsø"})
    assert desk.list_answers()["question-1"].answer == "Tromsø"


def test_past_its_deadline_a_question_is_open_no_more(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question(**in_the_past()))
    assert desk.list_open() == ()


def test_a_deadline_settles_what_nobody_has_answered(tmp_path: Path) -> None:
    late = question(**in_the_past())
    refused = approval(**in_the_past())
    desk = make_desk(tmp_path, late, refused)
    assert (desk.settle_overdue(late).answer, desk.settle_overdue(late).by) == (None, "deadline")
    assert desk.settle_overdue(refused).answer == "no"


@pytest.mark.parametrize(
    ("make", "then"),
    [
        (question, "the assumption holds"),
        (approval, "the tool is not called"),
        (step, "the step fails"),
    ],
)
def test_who_answers_too_late_is_told_what_holds_instead(
    tmp_path: Path, make: Callable[..., OpenQuestion], then: str
) -> None:
    late = make(**in_the_past())
    with pytest.raises(ConfigError, match="its deadline") as refused:
        make_desk(tmp_path, late).settle({late.id: "yes"})
    assert then in refused.value.hint


def test_a_deadline_changes_no_answer(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question())
    desk.settle({"question-1": "Bergen"})
    settled = desk.settle_overdue(question(**in_the_past()))
    assert (settled.answer, settled.by) == ("Bergen", "person")


@pytest.mark.parametrize("name", ["", "a b", "a\x1b[2J", "a=b", "x" * 65])
def test_an_id_is_one_that_can_be_typed_and_shown(name: str) -> None:
    with pytest.raises(ValueError, match="id"):
        question(name)


@pytest.mark.parametrize("name", ["questions.json", "answers.json"])
@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": "aeon.other/1"}', '{"format": "aeon.questions/1", "x": 1}']
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: str) -> None:
    desk = make_desk(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=name):
        desk.list_open()


def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    os.mkfifo(tmp_path / "answers.json")
    with pytest.raises(ConfigError, match=r"answers\.json"):
        desk.list_open()


def test_a_folder_that_is_no_runs_takes_no_answers(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a run's directory"):
        Desk(tmp_path).settle({"question-1": "Bergen"})


def test_answers_are_known_as_those_of_the_person_who_gave_them(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question())
    desk.settle({"question-1": "Bergen"})
    assert desk.has_own_answers()
    desk.require_own_answers(trust=False, env="dev")


def test_answers_that_somebody_changed_are_not_taken_unless_they_are_trusted(
    tmp_path: Path,
) -> None:
    desk = make_desk(tmp_path, approval())
    desk.settle({"approval-1": "no"})
    answers = tmp_path / "answers.json"
    answers.write_text(answers.read_text().replace('"no"', '"yes"'))
    with pytest.raises(UntrustedRun, match='approval-1: "yes"') as refused:
        desk.require_own_answers(trust=False, env="dev")
    desk.require_own_answers(trust=True, env="dev")
    desk.require_own_answers(trust=refused.value.digest, env="prod")
    with pytest.raises(UntrustedRun):
        desk.require_own_answers(trust=True, env="prod")


def test_answers_to_one_run_are_none_to_another(tmp_path: Path) -> None:
    first = make_desk(tmp_path / "first", approval())
    first.settle({"approval-1": "yes"})
    second = make_desk(tmp_path / "second", approval(), run_id="c3d4")
    (second.folder / "answers.json").write_bytes((first.folder / "answers.json").read_bytes())
    assert not second.has_own_answers()


def test_who_adds_to_the_answers_of_somebody_else_does_not_vouch_for_those(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, question(), approval())
    forged = {"id": "approval-1", "answer": "yes", "answered_at": "2026-11-23T10:00:00Z"}
    document = {"format": "aeon.answers/1", "answers": [forged]}
    (tmp_path / "answers.json").write_text(json.dumps(document))
    desk.settle({"question-1": "Bergen"})
    assert not desk.has_own_answers()
