"""`aeon answer`, and what says that a run waits: its end, `aeon runs`, a batch, a sweep, a plan."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from aeon.cli.commands.people import answer
from aeon.cli.job import attendance, group_attendance
from aeon.cli.terminal import questions
from aeon.interaction.desk import Desk
from aeon.report.words import program
from tests.cli.conftest import Ended, RunAeon
from tests.cli.conftest import aeon as aeon
from tests.support.fixtures import StartServer
from tests.support.scripted_model import defaults, plan, planned, refinement

PLAN = """\
goal: g
steps:
  - {id: m, description: Measure the room, agent: person}
  - {id: p, description: Say it back, tool: echo, arguments: {text: hello}}
  - {id: z, description: Put it together, agent: llm, depends_on: [m, p]}
"""
WAITS = (
    "plan_file=plan.yaml",
    "provider=simulated",
    "tools=builtin",
    "tools.approval.echo=ask",
    "interaction=defer",
    "convergence.when=plan_done",
    "progress=none",
)


@pytest.fixture
def waiting(aeon: RunAeon, tmp_path: Path) -> Path:
    """The folder of a run that waits for an approval and for a step."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = aeon(*WAITS)
    assert ended.status == 6, ended.err
    return next(tmp_path.glob("outputs/*/*/questions.json")).parent


def ids(folder: Path) -> dict[str, str]:
    return {one.kind: one.id for one in Desk(folder).list_questions()}


def command(*words: str) -> str:
    return " ".join((program(), *words))


def here(folder: Path, tmp_path: Path) -> str:
    return str(folder.relative_to(tmp_path))


def test_the_end_of_a_run_says_what_waits_and_the_commands_that_go_on(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = aeon(*WAITS)
    folder = next(tmp_path.glob("outputs/*/*/questions.json")).parent
    assert "Waiting for a person." in ended.err
    assert f"step: {ids(folder)['step']}: Measure the room" in ended.err
    assert f"To answer: {command('answer', here(folder, tmp_path))}\n" in ended.err
    assert f"to go on: {command(f'resume={here(folder, tmp_path)}')}" in ended.err


def test_without_a_terminal_it_shows_what_waits(aeon: RunAeon, waiting: Path) -> None:
    ended = aeon("answer", str(waiting))
    assert ended.status == 6
    assert "Waiting for 2 answers:" in ended.out
    assert f"{ids(waiting)['step']} (step m): Measure the room" in ended.out
    assert '  Arguments: {"text": "hello"}' in ended.out


def test_answers_are_taken_and_the_run_goes_on(
    aeon: RunAeon, waiting: Path, tmp_path: Path
) -> None:
    names = ids(waiting)
    ended = aeon("answer", str(waiting), f"{names['approval']}=yes")
    assert (ended.status, ended.out.splitlines()[0]) == (6, f"{names['approval']}: yes")
    ended = aeon("answer", str(waiting), f"{names['step']}=4 by 5 m, = 20 m2")
    assert ended.status == 0
    assert command(f"resume={here(waiting, tmp_path)}") in ended.out
    ended = aeon(f"resume={waiting}", "progress=none")
    assert ended.status == 0
    results = [json.loads(path.read_bytes()) for path in tmp_path.glob("outputs/*/*/result.json")]
    history = tmp_path.glob("outputs/*/*/history.json")
    assert any("4 by 5 m, = 20 m2" in path.read_text() for path in history)
    assert {one["termination_reason"] for one in results} == {"waiting", "converged"}


def test_answers_may_stand_in_a_file(aeon: RunAeon, waiting: Path, tmp_path: Path) -> None:
    names = ids(waiting)
    (tmp_path / "a.json").write_text(
        json.dumps({names["approval"]: "no", names["step"]: "4 by\n5 m"})
    )
    assert aeon("answer", str(waiting), "a.json").status == 0
    assert Desk(waiting).list_answers()[names["step"]].answer == "4 by\n5 m"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ('{"a": "x", "a": "y"}', "the name 'a' is repeated"),
        ("[]", "does not hold answers"),
        ('{"a": 1}', "does not hold answers"),
        ('{"a": "x"}', "there is no question 'a'"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_holds_no_answers_is_refused(
    aeon: RunAeon, waiting: Path, tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    ended = aeon("answer", str(waiting), "a.json")
    assert ended.status == 2
    assert message in ended.err


def test_words_that_are_no_answers_are_refused_and_nothing_is_taken(
    aeon: RunAeon, waiting: Path
) -> None:
    name = ids(waiting)["approval"]
    for words in ([f"{name}=yes", f"{name}=no"], [f"{name}=yes", "yes"], [f"{name}=perhaps"]):
        ended = aeon("answer", str(waiting), *words)
        assert ended.status == 2
    assert Desk(waiting).list_answers() == {}


def test_a_folder_that_is_no_runs_is_refused(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("answer", str(tmp_path))
    assert ended.status == 2
    assert "this is not a run's directory" in ended.err


def test_a_run_that_asks_nothing_says_so(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon("task=x", "provider=simulated", "progress=none").status == 0
    folder = next(tmp_path.glob("outputs/*/*/run.json")).parent
    ended = aeon("answer", str(folder))
    assert (ended.status, "Nothing waits there." in ended.out) == (0, True)


def test_at_a_terminal_each_is_asked_and_may_be_left_open(
    aeon: RunAeon, waiting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Typed(io.StringIO):
        """What is typed, with a Ctrl-D after each step's output."""

        def isatty(self) -> bool:
            return False

    kinds = [one.kind for one in Desk(waiting).list_open()]
    texts = {"approval": "perhaps\ny\n", "step": "4 by\n5 m\n"}
    # A step's output is read to the end of the input: here it comes last, or nothing is left.
    typed = "".join(texts[kind] for kind in sorted(kinds))
    monkeypatch.setattr(answer, "at_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", Typed(typed))
    desk = Desk(waiting)
    monkeypatch.setattr(
        Desk, "list_open", lambda self: tuple(sorted(_open(self), key=lambda one: one.kind))
    )
    ended = aeon("answer", str(waiting))
    assert ended.status == 0, ended.err
    assert '"perhaps" is neither yes nor no' in ended.err
    answers = {name.partition("-")[0]: one.answer for name, one in desk.list_answers().items()}
    assert answers == {"approval": "yes", "step": "4 by\n5 m"}


def _open(desk: Desk) -> list[Any]:
    answered = desk.list_answers()
    return [one for one in desk.list_questions() if one.id not in answered]


def test_runs_that_wait_are_listed_with_the_command_that_answers(
    aeon: RunAeon, waiting: Path, tmp_path: Path
) -> None:
    way = command("answer", here(waiting, tmp_path))
    assert f"Waits for 2 answers: {way}" in aeon("runs", "outputs").out
    names = ids(waiting)
    aeon("answer", str(waiting), f"{names['approval']}=no", f"{names['step']}=x")
    listed = aeon("runs", "outputs").out
    assert f"To resume: {command(f'resume={here(waiting, tmp_path)}')}" in listed
    assert json.loads(aeon("runs", "outputs", "output=json").out)[0]["waits_for"] == 0


def test_the_page_of_a_run_that_waits_says_for_what_and_what_to_type(
    waiting: Path, tmp_path: Path
) -> None:
    page = (waiting / "report.html").read_text()
    assert "It waits for 2 answers of a person" in page
    assert command("answer", here(waiting, tmp_path)) in page


def batch(aeon: RunAeon, tmp_path: Path, interaction: str = "defer") -> Ended:
    given = [*WAITS, f"interaction={interaction}"]
    given.remove("interaction=defer")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "task": "x"}\n{"id": "b", "task": "y"}\n')
    return aeon("batch", "dataset=rows.jsonl", "out=out.jsonl", *given)


@pytest.mark.slow
def test_rows_of_a_batch_wait_and_go_on_with_the_same_command(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = batch(aeon, tmp_path)
    assert ended.status == 6, ended.err
    assert "2 rows waiting for a person. To answer:" in ended.err
    folders = sorted((tmp_path / "out.jsonl.running").glob("*-0"))
    assert [command("answer", here(one, tmp_path)) in ended.err for one in folders] == [True, True]
    for folder in folders[:1]:
        names = ids(folder)
        aeon("answer", str(folder), f"{names['approval']}=yes", f"{names['step']}=x")
    ended = batch(aeon, tmp_path)
    assert ended.status == 6
    assert "1 row waiting for a person" in ended.err
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(line["ended"] for line in lines) == ["converged", "waiting"]
    assert "converged" in ended.err


@pytest.mark.slow
def test_rows_that_wait_are_gone_on_with_at_a_terminal(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert batch(aeon, tmp_path).status == 6
    for place, folder in enumerate((tmp_path / "out.jsonl.running").glob("*-0")):
        names = ids(folder)
        step = [f"{names['step']}=x"] if place else []
        aeon("answer", str(folder), f"{names['approval']}=yes", *step)
    for module in (questions, attendance, group_attendance):
        monkeypatch.setattr(module, "at_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("It is 4 by 5 m.\n"))
    ended = batch(aeon, tmp_path, interaction="ask")
    assert ended.status == 0, ended.err
    assert ended.err.count("Step m is yours: Measure the room") == 1
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["ended"] for line in lines] == ["converged", "converged"]


@pytest.mark.parametrize("more", ["out=-", "batch.backend=ray"])
def test_rows_that_could_not_go_on_are_refused(aeon: RunAeon, tmp_path: Path, more: str) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "task": "x"}\n')
    out = [] if more.startswith("out") else ["out=out.jsonl"]
    ended = aeon("batch", "dataset=rows.jsonl", *out, *WAITS, more)
    assert ended.status == 2
    assert "interaction=defer" in ended.err


@pytest.mark.slow
def test_jobs_of_a_sweep_wait_and_go_on(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = aeon("-m", *WAITS, "convergence.coherence=0.5,0.6")
    assert ended.status == 6, ended.err
    jobs = sorted(tmp_path.glob("multirun/*/*/*/questions.json"))
    assert len(jobs) == 2
    for path in jobs:
        assert f"To answer: {command('answer', here(path.parent, tmp_path))}" in ended.err
        names = ids(path.parent)
        aeon("answer", str(path.parent), f"{names['approval']}=yes", f"{names['step']}=x")
    directory = jobs[0].parents[1]
    ended = aeon(f"sweep.resume={directory}", "progress=none")
    assert ended.status == 0, ended.err


def test_ask_waits_too(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = aeon("ask", "how large is it?", *WAITS)
    assert ended.status == 6
    assert "To answer:" in ended.err


def test_help_says_the_exit_status(aeon: RunAeon) -> None:
    assert "6    waiting for a person" in aeon("--help").out
    assert "aeon resume=RUN" in " ".join(aeon("answer", "--help").out.split())


@pytest.mark.slow
def test_a_plan_that_is_made_waits_for_the_answer_of_its_planner(
    aeon: RunAeon, tmp_path: Path, start_server: StartServer
) -> None:
    asked = {"question": "Which city?", "assumption": "Oslo", "step_id": None}
    script = {
        **defaults(),
        "plan": plan("a", planned("b", "a")),
        "refinement": refinement(questions=[asked]),
    }
    server = start_server(script)
    given = ("provider=openai", f"provider.base_url={server.url}", "provider.require_key=false")
    ended = aeon("plan", "task=x", *given, "interaction=defer", "out=p.yaml", "progress=none")
    assert ended.status == 6, ended.err
    folder = next(tmp_path.glob("outputs/*/*/questions.json")).parent
    assert "Waiting for a person:" in ended.err
    assert "Which city?" in ended.err
    assert f"To answer: {command('answer', here(folder, tmp_path))}" in ended.err
    assert aeon("answer", str(folder), f"{ids(folder)['question']}=Bergen").status == 0
    calls = len(server.requests)
    ended = aeon("plan", f"resume={folder}", "out=q.yaml", "progress=none")
    assert ended.status == 0, ended.err
    assert "# Answered: Bergen" in (tmp_path / "q.yaml").read_text()
    assert len(server.requests) == calls


@pytest.mark.parametrize("beside", [True, False])
def test_a_run_that_was_resumed_names_the_run_in_which_to_answer(
    aeon: RunAeon, waiting: Path, tmp_path: Path, beside: bool
) -> None:
    place = [f"hydra.run.dir={waiting.parent / 'two'}"] if beside else []
    assert aeon(f"resume={waiting}", *place, "progress=none").status == 6
    found = [path.parent for path in tmp_path.glob("outputs/*/*/run.json")]
    later = next(folder for folder in found if folder != waiting)
    (waiting.parent / "damaged").mkdir()
    (waiting.parent / "damaged" / "run.json").write_text('{"ancestors": 5}')
    (tmp_path / "linked").symlink_to(waiting.parent)
    for folder in (tmp_path / "linked" / waiting.name, waiting):
        ended = aeon("answer", str(folder), f"{ids(waiting)['approval']}=yes")
        assert (ended.status, Desk(waiting).list_answers()) == (2, {})
    assert f"this run was resumed in {here(later, tmp_path)} (waiting)" in ended.err
    assert f"Answer there: {command('answer', here(later, tmp_path))}" in ended.err
    words = [f"{ids(later)['approval']}=yes", f"{ids(later)['step']}=4 by 5 metres"]
    assert aeon("answer", str(later), *words).status == 0
    ended = aeon("answer", str(waiting))
    assert ended.status == 2
    assert f"To resume: {command(f'resume={here(later, tmp_path)}')}" in ended.err


def test_a_run_beside_it_that_resumes_none_changes_nothing(
    aeon: RunAeon, waiting: Path, tmp_path: Path
) -> None:
    aeon(*WAITS)
    assert len(list(tmp_path.glob("outputs/*/*/run.json"))) == 2
    assert aeon("answer", str(waiting)).status == 6


def test_the_run_of_a_job_goes_on_by_its_server(aeon: RunAeon, waiting: Path) -> None:
    (waiting.parent / "job.json").write_text("{}")
    words = [f"{ids(waiting)['approval']}=yes", f"{ids(waiting)['step']}=4 by 5 metres"]
    ended = aeon("answer", str(waiting), *words)
    assert "Its server continues it by itself" in ended.out
    assert "resume" not in ended.out


def test_a_run_that_a_client_cancelled_takes_no_answer_and_waits_no_more(
    aeon: RunAeon, waiting: Path
) -> None:
    (waiting.parent / "job.json").write_text('{"cancelled": "its client cancelled it"}')
    ended = aeon("answer", str(waiting), f"{ids(waiting)['approval']}=yes")
    assert ended.status == 2
    assert "was cancelled: its client cancelled it" in ended.err
    assert Desk(waiting).list_answers() == {}
    listed = aeon("runs", str(waiting.parent)).out
    assert "  cancelled " in listed
    assert "Waits for" not in listed
