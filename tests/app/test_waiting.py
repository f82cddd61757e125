"""Runs that wait for a person (`interaction=defer`): how they end, and how they go on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, RunResult
from aeon.config.own_runs import UntrustedRun
from aeon.domain.errors import ConfigError
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.interaction.desk import Desk
from aeon.kernel.control import RunControl
from aeon.tools.registry import ApprovalRequest, Tool
from tests.support.scripted_model import (
    ScriptedModel,
    assessment,
    blocked,
    clear,
    modify,
    plan,
    planned,
    refinement,
    worked,
)
from tests.tools.builders import a_tool

QUESTIONS = [
    {"question": "Which city?", "assumption": "Oslo", "step_id": "only"},
    {"question": "Which year?", "assumption": "This one", "step_id": None},
]


def asking() -> ScriptedModel:
    """A planner that asks two things before a step runs."""
    return ScriptedModel(
        plan=plan("only", planned("last", "only")), refinement=refinement(questions=QUESTIONS)
    )


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., RunResult]:
    """Runs, or goes on with, a run: `run("two", model, "resume=one")`."""

    def to_end(name: str, model: ScriptedModel, *overrides: str, **given: Any) -> RunResult:
        tools = given.pop("tools", ())
        resumed = [
            f"resume={tmp_path / text.partition('=')[2]}"
            for text in overrides
            if text.startswith("resume=")
        ]
        rest = [text for text in overrides if not text.startswith("resume=")]
        start = resumed or ["interaction=defer"]
        with Aeon.from_config([*start, *rest], environ={}, adapter=model, tools=tools) as aeon:
            task = None if resumed or aeon.workflow else "make tea"
            return aeon.run(task, directory=tmp_path / name, **given)

    return to_end


def answer(folder: Path, *texts: str) -> None:
    """Answer what waits there, in the order in which it was asked."""
    desk = Desk(folder)
    desk.settle({one.id: text for one, text in zip(desk.list_open(), texts, strict=True)})


A_MINUTE = "interaction.deadline_seconds=60"


def ask_long_ago(folder: Path) -> None:
    """Let everything that waits there have been asked years ago."""
    path = folder / "questions.json"
    path.write_text(
        re.sub(r'"asked_at": "[^"]*"', '"asked_at": "2020-01-01T00:00:00Z"', path.read_text())
    )


def plan_file(folder: Path, *steps: Mapping[str, Any]) -> str:
    path = folder / "plan.json"
    path.write_text(json.dumps({"goal": "tea", "steps": steps}))
    return f"plan_file={path}"


PERSONS = {"id": "m", "description": "Measure the room", "agent": "person"}
AFTER = {"id": "b", "description": "Say how large it is", "depends_on": ["m"], "agent": "llm"}


# A question of the planner


def test_a_run_that_asks_ends_and_leaves_all_that_it_asks(run: Any, tmp_path: Path) -> None:
    model = asking()
    result = run("one", model)
    assert (result.termination_reason, result.exit_status) == ("waiting", 6)
    assert [one.text for one in Desk(tmp_path / "one").list_open()] == [
        "Which city?",
        "Which year?",
    ]
    assert {one.text for one in result.waits_for} == {"Which city?", "Which year?"}
    assert not any(call.startswith("step") for call in model.calls)


def test_it_goes_on_with_the_answers_and_repeats_no_call(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    answer(tmp_path / "one", "Bergen", "")
    model = asking()
    result = run("two", model, "resume=one")
    assert result.converged
    assert [call for call in model.calls if call in ("task_profile", "plan", "refinement")] == []
    prompt = model.prompts("step")[0]
    assert "Bergen" in prompt
    assert [one.answer for one in result.follow_up_questions] == ["Bergen", None]
    assert result.parent.saved.model_calls == len(asking_calls(run))


def asking_calls(run: Any) -> list[str]:
    """The calls that are made before it asks."""
    model = asking()
    run("again", model)
    return model.calls


def test_a_pause_changes_neither_the_answer_nor_what_the_budget_was_spent_on(
    run: Any, tmp_path: Path
) -> None:
    run("one", asking())
    answer(tmp_path / "one", "Bergen", "1999")
    paused = run("two", asking(), "resume=one")
    with Aeon.from_config(["interaction=ask"], environ={}, adapter=asking()) as aeon:
        texts = {"Which city?": "Bergen", "Which year?": "1999"}
        at_once = aeon.run("make tea", ask=lambda question: texts[question.question])
    assert paused.ttl == at_once.ttl
    assert paused.usage.total.requests == at_once.usage.total.requests
    assert (paused.answer, paused.passes) == (at_once.answer, at_once.passes)


def test_gone_on_with_too_early_it_asks_the_same_again_since_when_it_first_did(
    run: Any, tmp_path: Path
) -> None:
    run("one", asking())
    model = asking()
    result = run("two", model, "resume=one")
    assert (result.exit_status, model.calls) == (6, [])
    first, second = (Desk(tmp_path / name).list_open() for name in ("one", "two"))
    assert first == second


def test_an_answer_given_to_the_first_run_counts_for_all_that_go_on_with_it(
    run: Any, tmp_path: Path
) -> None:
    run("one", asking())
    run("two", asking(), "resume=one")
    answer(tmp_path / "one", "Bergen", "1999")
    assert run("three", asking(), "resume=two").converged


def test_what_was_used_needs_the_folder_of_the_answer_no_more(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    answer(tmp_path / "one", "Bergen", "1999")
    run("two", asking(), "resume=one", "limits.max_llm_calls=4")
    (tmp_path / "one").rename(tmp_path.parent / f"{tmp_path.name}-gone")
    result = run("three", asking(), "resume=two", "limits.max_llm_calls=null")
    assert [one.answer for one in result.follow_up_questions] == ["Bergen", "1999"]


def test_a_plan_that_is_made_waits_too(tmp_path: Path) -> None:
    from aeon.app.attendance import Attendance
    from aeon.app.run import RunPlace

    with Aeon.from_config(["interaction=defer"], environ={}, adapter=asking()) as aeon:
        made = aeon.prepare_run("make tea").plan(Attendance(), RunPlace(directory=tmp_path / "one"))
    assert (len(made.waits_for), made.interrupted) == (2, False)


# Caps


def test_caps_on_calls_go_on_where_they_were(run: Any, tmp_path: Path) -> None:
    first = run("one", asking(), "limits.max_llm_calls=6")
    answer(tmp_path / "one", "Bergen", "1999")
    model = asking()
    result = run("two", model, "resume=one")
    assert result.termination_reason == "max_llm_calls"
    assert first.usage.total.requests + len(model.calls) == 6


def test_the_seconds_before_a_pause_count_and_those_of_the_pause_do_not(
    run: Any, tmp_path: Path
) -> None:
    first = run("one", asking(), "limits.max_seconds=300")
    answer(tmp_path / "one", "Bergen", "1999")
    result_file = tmp_path / "one" / "result.json"
    result = json.loads(result_file.read_bytes())
    assert result["timings"]["total_seconds"] == first.timings.total_seconds < 200
    assert run("two", asking(), "resume=one").converged
    result["timings"]["total_seconds"] = 299.9999
    result_file.write_text(json.dumps(result))
    assert run("three", asking(), "resume=one").termination_reason == "max_seconds"


# Approvals


def counting(calls: list[Any]) -> Tool:
    def invoke(arguments: Mapping[str, Any]) -> str:
        calls.append(dict(arguments))
        return "poured"

    return a_tool(invoke, name="pour", approval="ask", side_effects=True)


POURING = {"id": "p", "description": "Pour", "tool": "pour", "arguments": {"text": "tea"}}


def test_an_approved_tool_is_called_once(run: Any, tmp_path: Path) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    result = run("one", ScriptedModel(), plan_file(tmp_path, POURING), tools=tools)
    waits = result.waits_for[0]
    assert (waits.kind, waits.step_id, waits.assumption, calls) == ("approval", "p", "no", [])
    assert "Side effects: yes" in waits.text
    assert 'Arguments: {"text": "tea"}' in waits.text
    answer(tmp_path / "one", "yes")
    assert run("two", ScriptedModel(), "resume=one", tools=tools).converged
    assert run("three", ScriptedModel(), "resume=two", tools=tools).converged
    assert calls == [{"text": "tea"}]


def test_an_approval_is_for_one_call(run: Any, tmp_path: Path) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    run("one", ScriptedModel(), plan_file(tmp_path, POURING), tools=tools)
    answer(tmp_path / "one", "yes")
    run("two", ScriptedModel(), "resume=one", tools=tools)
    again = run("three", ScriptedModel(), "resume=one", tools=tools)
    assert (again.exit_status, len(calls)) == (6, 1)
    answer(tmp_path / "three", "yes")
    assert run("four", ScriptedModel(), "resume=three", tools=tools).converged
    assert len(calls) == 2
    assert Desk(tmp_path / "one").has_own_answers()


def test_a_tool_that_was_refused_is_not_called(run: Any, tmp_path: Path) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    run("one", ScriptedModel(), plan_file(tmp_path, POURING), "mode=core", tools=tools)
    answer(tmp_path / "one", "no")
    result = run("two", ScriptedModel(), "resume=one", tools=tools)
    assert (result.termination_reason, calls) == ("step_failed", [])
    assert "the person refused it" in result.history.passes[-1].steps[0].errors[0]


def test_a_call_that_was_allowed_and_cut_off_is_allowed_anew(run: Any, tmp_path: Path) -> None:
    class Killed(BaseException):
        """The program is gone in the middle of the call."""

    def invoke(_: Mapping[str, Any]) -> str:
        raise AssertionError("it is not called")

    run("one", ScriptedModel(), plan_file(tmp_path, POURING), tools=[counting([])])
    answer(tmp_path / "one", "yes")
    from aeon.tools import invoke as calling

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(calling, "_call_in_thread", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            run("two", ScriptedModel(), "resume=one", tools=[counting([])])
    tool = a_tool(invoke, name="pour", approval="ask", side_effects=True)
    result = run("three", ScriptedModel(), "resume=two", tools=[tool])
    assert result.exit_status == 6
    assert "It may have been carried out already" in result.waits_for[0].text


def test_steps_beside_it_are_done_and_not_asked_again(run: Any, tmp_path: Path) -> None:
    beside = {"id": "a", "description": "Name a tea", "agent": "llm"}
    model = ScriptedModel()
    run("one", model, plan_file(tmp_path, POURING, beside), tools=[counting([])])
    assert "step:a" in model.calls
    answer(tmp_path / "one", "yes")
    model = ScriptedModel()
    assert run("two", model, "resume=one", tools=[counting([])]).converged
    assert "step:a" not in model.calls


def test_what_a_step_calls_by_itself_is_approved_together_and_each_is_called_once(
    run: Any, tmp_path: Path
) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    asked = [{"tool": "pour", "arguments": json.dumps({"text": cup})} for cup in ("one", "two")]
    rounds = [{"tool_calls": asked, "answer": None}, {"tool_calls": [], "answer": clear("done")}]
    itself = {"id": "a", "description": "Pour", "agent": "llm", "tools": ["pour"]}
    model = ScriptedModel(step=rounds)
    run("one", model, plan_file(tmp_path, itself), "mode=core", tools=tools)
    assert (model.calls, calls) == (["step:a"], [])
    answer(tmp_path / "one", "yes", "no")
    model = ScriptedModel(step=rounds[1:])
    result = run("two", model, "resume=one", tools=tools)
    assert (result.exit_status, model.calls, len(calls)) == (0, ["step:a"], 1)
    assert result.ttl.used == 2


@pytest.mark.parametrize("most", [1, 8])
def test_a_call_waits_for_the_approval_of_an_earlier_one_of_its_round(
    run: Any, tmp_path: Path, most: int
) -> None:
    log: list[str] = []

    def make_tool(name: str, **more: Any) -> Tool:
        return a_tool(lambda given: log.append(f"{name} {given['text']}"), name=name, **more)

    tools = [
        make_tool("look"),
        make_tool("backup", approval="ask", side_effects=True),
        make_tool("delete", side_effects=True),
    ]
    order = ["look a", "backup a", "delete a", "look b", "backup b", "delete b"]
    asked = [
        {"tool": tool, "arguments": json.dumps({"text": text})}
        for tool, text in (line.split() for line in order)
    ]
    rounds = [{"tool_calls": asked, "answer": None}, {"tool_calls": [], "answer": clear("done")}]
    itself = {"id": "a", "description": "Tidy up", "agent": "llm", "tools": ["*"]}
    options = [plan_file(tmp_path, itself), "mode=core", f"execution.max_parallel={most}"]
    waiting = run("one", ScriptedModel(step=rounds), *options, tools=tools)
    assert (len(waiting.waits_for), log) == (2, ["look a"])
    answer(tmp_path / "one", "yes", "yes")
    assert run("two", ScriptedModel(step=rounds[1:]), "resume=one", tools=tools).exit_status == 0
    assert log == order
    assert run("three", ScriptedModel(), "resume=two", tools=tools).exit_status == 0
    assert log == order


@pytest.mark.slow
@pytest.mark.parametrize("last", ["yes", "no"])
def test_a_call_that_was_approved_first_waits_for_the_one_before_it(
    run: Any, tmp_path: Path, last: str
) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    asked = [{"tool": "pour", "arguments": json.dumps({"text": cup})} for cup in ("one", "two")]
    rounds = [{"tool_calls": asked, "answer": None}, {"tool_calls": [], "answer": clear("done")}]
    itself = {"id": "a", "description": "Pour", "agent": "llm", "tools": ["pour"]}
    run("one", ScriptedModel(step=rounds), plan_file(tmp_path, itself), "mode=core", tools=tools)
    earlier, later = Desk(tmp_path / "one").list_open()
    Desk(tmp_path / "one").settle({later.id: "yes"})
    waiting = run("two", ScriptedModel(step=rounds[1:]), "resume=one", tools=tools)
    assert ([one.id for one in waiting.waits_for], calls) == ([earlier.id], [])
    answer(tmp_path / "two", last)
    model = ScriptedModel(step=rounds[1:])
    assert run("three", model, "resume=two", tools=tools).exit_status == 0
    assert calls == [{"text": cup} for cup in ("one", "two")[last == "no" :]]


POURS = [
    {
        "tool_calls": [
            {"tool": "pour", "arguments": json.dumps({"text": cup})} for cup in ("one", "two")
        ],
        "answer": None,
    },
    {"tool_calls": [], "answer": clear("done")},
]
POURS_ITSELF = {"id": "a", "description": "Pour", "agent": "llm", "tools": ["pour"]}


def test_of_two_calls_of_a_round_the_one_that_was_approved_is_made_and_the_other_waits(
    run: Any, tmp_path: Path
) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    run("one", ScriptedModel(step=POURS), plan_file(tmp_path, POURS_ITSELF), tools=tools)
    earlier, later = Desk(tmp_path / "one").list_open()
    Desk(tmp_path / "one").settle({earlier.id: "yes"})
    waiting = run("two", ScriptedModel(), "resume=one", tools=tools)
    assert ([one.id for one in waiting.waits_for], calls) == ([later.id], [{"text": "one"}])
    answer(tmp_path / "two", "yes")
    assert run("three", ScriptedModel(step=POURS[1:]), "resume=two", tools=tools).converged
    assert calls == [{"text": "one"}, {"text": "two"}]


def test_who_stops_at_the_second_of_two_approvals_is_asked_for_that_one_again(
    run: Any, tmp_path: Path
) -> None:
    calls: list[Any] = []
    asked: list[str] = []
    tools = [counting(calls)]
    control = RunControl()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.arguments["text"])
        if asked == ["one", "two"]:
            control.request_stop()
            return False
        return True

    given = {"tools": tools, "approve": approve}
    options = [plan_file(tmp_path, POURS_ITSELF), "interaction=ask"]
    stopped = run("one", ScriptedModel(step=POURS), *options, control=control, **given)
    assert (stopped.termination_reason, calls) == ("interrupted", [{"text": "one"}])
    assert run("two", ScriptedModel(step=POURS[1:]), "resume=one", **given).converged
    assert (asked, calls) == (["one", "two", "two"], [{"text": "one"}, {"text": "two"}])


def test_a_check_by_a_tool_that_is_to_be_approved_waits_too(run: Any, tmp_path: Path) -> None:
    calls: list[Any] = []

    def judge(arguments: Mapping[str, Any]) -> bool:
        calls.append(arguments)
        return True

    tools = [a_tool(judge, name="judge", approval="ask")]
    check = "convergence.checks.mine={type: tool, value: judge}"
    result = run("one", ScriptedModel(), check, tools=tools)
    assert (result.exit_status, len(result.waits_for), calls) == (6, 1, [])
    answer(tmp_path / "one", "yes")
    assert run("two", ScriptedModel(), "resume=one", tools=tools).converged
    assert len(calls) == 1


# Steps of a person


def test_a_step_of_a_person_waits_for_its_output(run: Any, tmp_path: Path) -> None:
    before = {"id": "a", "description": "Name a room", "agent": "llm"}
    mine = {**PERSONS, "depends_on": ["a"]}
    given = plan_file(tmp_path, before, mine, AFTER)
    result = run("one", ScriptedModel(), given, "convergence.when=plan_done")
    waits = result.waits_for[0]
    assert (waits.kind, waits.step_id, waits.assumption) == ("step", "m", None)
    assert "Measure the room" in waits.text
    assert '<output step="a">\noutput of a\n</output>' in waits.text
    answer(tmp_path / "one", "It is\n4 by 5 m.")
    model = ScriptedModel()
    result = run("two", model, "resume=one")
    assert result.converged
    assert "It is\n4 by 5 m." in model.prompts("step")[0]
    assert model.calls.count("step:m") == 0


def test_a_step_of_a_person_costs_no_cycle(run: Any, tmp_path: Path) -> None:
    run("one", ScriptedModel(), plan_file(tmp_path, PERSONS, AFTER), "mode=core")
    answer(tmp_path / "one", "4 by 5 m")
    assert run("two", ScriptedModel(), "resume=one").ttl.used == 1


def test_in_core_mode_too_a_person_is_shown_what_came_before(run: Any, tmp_path: Path) -> None:
    before = {"id": "a", "description": "Name a room", "agent": "llm"}
    mine = {**PERSONS, "depends_on": ["a"]}
    result = run("one", ScriptedModel(), plan_file(tmp_path, before, mine), "mode=core")
    assert "output of a" in result.waits_for[0].text


def test_a_planner_may_reword_a_step_of_a_person_and_takes_it_over_never(
    run: Any, tmp_path: Path
) -> None:
    from tests.support.scripted_model import issue, modify, report

    model = ScriptedModel(
        semantic_validation=[report(issue(step_id="m")), report()],
        refinement=refinement(modify("m", addresses_issues=["i1"])),
    )
    result = run("one", model, plan_file(tmp_path, PERSONS, AFTER))
    assert result.waits_for[0].kind == "step"
    assert "do m better" in result.waits_for[0].text


def test_a_program_may_do_the_steps_itself(tmp_path: Path) -> None:
    given = plan_file(tmp_path, PERSONS, AFTER)
    with Aeon.from_config([given], environ={}, adapter=ScriptedModel()) as aeon:
        result = aeon.run(do_step=lambda step: f"{step.step_id}: 4 by 5 m")
    assert result.history.passes[-1].steps[0].step_output == "m: 4 by 5 m"


# Deadlines


def test_past_the_deadline_the_assumption_holds(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    ask_long_ago(tmp_path / "one")
    result = run("two", asking(), "resume=one", A_MINUTE)
    assert result.converged
    assert [one.answer for one in result.follow_up_questions] == [None, None]
    settled = Desk(tmp_path / "one").list_answers().values()
    assert {one.by for one in settled} == {"deadline"}


def test_past_the_deadline_an_approval_is_no_and_a_step_of_a_person_fails(
    run: Any, tmp_path: Path
) -> None:
    calls: list[Any] = []
    given = plan_file(tmp_path, PERSONS, POURING)
    tools = [counting(calls)]
    run("one", ScriptedModel(), given, tools=tools)
    ask_long_ago(tmp_path / "one")
    model = ScriptedModel(convergence=assessment(0.2))
    result = run("two", model, "resume=one", "limits.max_passes=1", A_MINUTE, tools=tools)
    errors = {step.step_id: step.errors for step in result.history.passes[-1].steps}
    assert "nobody has done it" in errors["m"][0]
    assert "the person refused it" in errors["p"][0]
    assert calls == []


@pytest.mark.slow
def test_a_deadline_is_counted_from_when_it_was_first_asked(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    run("two", asking(), "resume=one", "interaction.deadline_seconds=3600")
    first, second = (Desk(tmp_path / name).list_open()[0] for name in ("one", "two"))
    assert (second.deadline - first.asked_at).total_seconds() == 3600


# What is refused


def test_a_run_without_a_folder_cannot_leave_questions() -> None:
    with (
        Aeon.from_config(["interaction=defer"], environ={}, adapter=asking()) as aeon,
        pytest.raises(ConfigError, match="the questions need a folder"),
    ):
        aeon.run("make tea")


def test_a_run_that_stores_nothing_cannot_wait(run: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stores no answers"):
        run("one", asking(), "store=off")
    assert not (tmp_path / "one").exists()


def test_a_step_of_a_person_is_refused_where_nobody_is_asked(tmp_path: Path) -> None:
    given = plan_file(tmp_path, PERSONS)
    model = ScriptedModel()
    with (
        Aeon.from_config([given], environ={}, adapter=model) as aeon,
        pytest.raises(ConfigError, match="step m is left to a person") as refused,
    ):
        aeon.run()
    assert "interaction=defer" in refused.value.hint
    assert model.calls == []


def test_answers_that_were_forged_are_not_used(run: Any, tmp_path: Path) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    result = run("one", ScriptedModel(), plan_file(tmp_path, POURING), tools=tools)
    forged = {"id": result.waits_for[0].id, "answer": "yes", "answered_at": "2026-11-23T10:00:00Z"}
    document = {"format": "aeon.answers/1", "answers": [forged]}
    (tmp_path / "one" / "answers.json").write_text(json.dumps(document))
    with pytest.raises(UntrustedRun, match="not known as yours") as refused:
        run("two", ScriptedModel(), "resume=one", tools=tools)
    assert "on another machine" in refused.value.message
    assert f"aeon resume={tmp_path / 'one'} trust=true" in refused.value.hint
    assert f"AEON_TRUST={refused.value.digest}" in refused.value.hint
    assert calls == []
    assert run("three", ScriptedModel(), "resume=one", "trust=true", tools=tools).converged


def test_a_damaged_file_of_answers_ends_the_start_and_not_the_run(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    (tmp_path / "one" / "answers.json").write_text("{")
    with pytest.raises(ConfigError, match=r"answers\.json"):
        run("two", asking(), "resume=one")
    assert not (tmp_path / "two").exists()


def test_a_run_that_waited_is_replayed_with_its_answers(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    answer(tmp_path / "one", "Bergen", "1999")
    run("two", asking(), "resume=one")
    model = asking()
    given = ["store=replay", f"store.path={tmp_path / 'two'}", "interaction=defer"]
    with Aeon.from_config(given, environ={}) as aeon:
        result = aeon.run()
    assert [one.answer for one in result.follow_up_questions] == ["Bergen", "1999"]
    assert model.calls == []


# Steps that refinement leaves to a person


def stuck() -> ScriptedModel:
    """A step that stays blocked however it is changed, and one that depends on it."""
    return ScriptedModel(
        plan=plan("only", planned("last", "only")),
        refinement=refinement(modify("only")),
        step=lambda request: (
            blocked("half of it", "which room?")
            if request.site.step_id == "only"
            else worked(request)
        ),
    )


LIMIT = ("refinement.max_attempts_per_fragment=1", "convergence.when=plan_done")


def test_a_step_that_is_left_to_a_person_is_put_to_them(run: Any, tmp_path: Path) -> None:
    result = run("one", stuck(), *LIMIT)
    assert (result.exit_status, [one.kind for one in result.waits_for]) == (6, ["step"])
    text = result.waits_for[0].text
    assert "Why it is left to you: which room?" in text
    assert "half of it" in text
    answer(tmp_path / "one", "All of it.")
    model = stuck()
    result = run("two", model, "resume=one")
    assert result.converged
    assert "All of it." in model.prompts("step")[0]
    assert model.calls.count("step:only") == 0


def test_a_step_that_is_left_to_a_person_who_does_not_do_it_is_used_as_far_as_it_came(
    run: Any, tmp_path: Path
) -> None:
    run("one", stuck(), *LIMIT)
    ask_long_ago(tmp_path / "one")
    model = stuck()
    run("two", model, "resume=one", A_MINUTE)
    assert "half of it" in model.prompts("step")[0]


def test_where_nobody_is_asked_what_is_left_is_worked_with_at_once(tmp_path: Path) -> None:
    model = stuck()
    with Aeon.from_config([*LIMIT], environ={}, adapter=model) as aeon:
        aeon.run("make tea")
    assert "step:last" in model.calls


# Runs that were deferred, and go on with a person at hand


def test_a_person_at_hand_is_not_asked_what_was_answered_before(run: Any, tmp_path: Path) -> None:
    run("one", asking())
    waiting = Desk(tmp_path / "one")
    waiting.settle({waiting.list_open()[0].id: "Bergen"})
    asked: list[str] = []

    def ask(question: FollowUpQuestion) -> str:
        asked.append(question.question)
        return "1999"

    result = run("two", asking(), "resume=one", "interaction=ask", ask=ask)
    assert [each.answer for each in result.follow_up_questions] == ["Bergen", "1999"]
    assert asked == ["Which year?"]


def test_a_call_that_was_allowed_or_refused_before_is_put_to_nobody(
    run: Any, tmp_path: Path
) -> None:
    calls: list[Any] = []
    tools = [counting(calls)]
    other = {**POURING, "id": "q", "arguments": {"text": "milk"}}
    run("one", ScriptedModel(), plan_file(tmp_path, POURING, other), "mode=core", tools=tools)
    answer(tmp_path / "one", "yes")
    run("two", ScriptedModel(), "resume=one", tools=tools)
    answer(tmp_path / "two", "no")
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    run("three", ScriptedModel(), "resume=two", "interaction=ask", tools=tools, approve=approve)
    assert (calls, asked) == ([{"text": "tea"}], [])


def test_a_step_that_a_person_has_done_before_is_put_to_nobody(run: Any, tmp_path: Path) -> None:
    given = plan_file(tmp_path, PERSONS, AFTER)
    run("one", ScriptedModel(), given, "convergence.when=plan_done")
    answer(tmp_path / "one", "It is 4 by 5 m.")
    asked: list[PlanStep] = []

    def do_step(step: PlanStep) -> str:
        asked.append(step)
        return "It is huge."

    model = ScriptedModel()
    run("two", model, "resume=one", "interaction=ask", do_step=do_step)
    assert "It is 4 by 5 m." in model.prompts("step")[0]
    assert asked == []
