"""Outputs that an output has word for word or with edits, without the model copying them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.history import StepResult
from aeon.domain.plan import Plan, PlanStep
from aeon.execution.outcome import step_result
from aeon.execution.quotes import join_quotes
from aeon.execution.worker import Situation, StepWorker, Worked
from aeon.llm.exchange import InvalidAnswer
from tests.plan.builders import done, plan_of, step
from tests.support.scripted_model import ScriptedModel, clear

OUTPUTS = {"report": "Tea: 3\nMilk: 5", "notes": "None."}


def quote(step_id: str, at: str, *edits: tuple[str, str]) -> dict[str, Any]:
    changes = [{"find": find, "replace": replace} for find, replace in edits]
    return {"step": step_id, "at": at, "edits": changes}


def test_each_marker_becomes_the_output_it_stands_for() -> None:
    joined = join_quotes(
        "Report\n[[r]]\nNotes: [[n]]", [quote("report", "[[r]]"), quote("notes", "[[n]]")], OUTPUTS
    )
    assert joined == "Report\nTea: 3\nMilk: 5\nNotes: None."


def test_edits_are_made_in_the_quoted_output_alone() -> None:
    joined = join_quotes(
        "Milk: 5 was wrong.\n[[r]]",
        [quote("report", "[[r]]", ("Milk: 5", "Milk: 6"), ("6", "7"))],
        OUTPUTS,
    )
    assert joined == "Milk: 5 was wrong.\nTea: 3\nMilk: 7"


def test_a_marker_inside_a_quoted_output_stays() -> None:
    joined = join_quotes(
        "[[a]] [[b]]", [quote("a", "[[a]]"), quote("b", "[[b]]")], {"a": "[[b]]", "b": "end"}
    )
    assert joined == "[[b]] end"


def test_text_without_quotes_stays_as_it_is() -> None:
    assert join_quotes("[[rivers]]", [], OUTPUTS) == "[[rivers]]"


@pytest.mark.parametrize(
    ("text", "quotes", "place", "reason"),
    [
        ("none", [quote("report", "[[r]]")], "/quotes/0/at", "once, not 0 times"),
        ("[[r]] [[r]]", [quote("report", "[[r]]")], "/quotes/0/at", "once, not 2 times"),
        ("text", [quote("report", "")], "/quotes/0/at", "once, not 0 times"),
        ("[[x]]", [quote("x", "[[x]]")], "/quotes/0/step", "those that did: report, notes"),
        (
            "[[r]] [[s]]",
            [quote("report", "[[r]]"), quote("report", "[[s]]")],
            "/quotes/1/step",
            "quoted already",
        ),
        (
            "[x] and more",
            [quote("report", "[x]"), quote("notes", "[x]")],
            "/quotes/1/at",
            "cannot be told apart",
        ),
        (
            "<<p1 <<p10",
            [quote("report", "<<p10"), quote("notes", "<<p1")],
            "/quotes/1/at",
            "'<<p1' and the marker '<<p10' cannot be told apart",
        ),
        ("aaa", [quote("report", "aa")], "/quotes/0/at", "not 2 times"),
        ("[[report]]", [], "/step_output", "which no entry of quotes is for"),
        (
            "[[r]] [[notes]]",
            [quote("report", "[[r]]")],
            "/step_output",
            "'[[notes]]', which no entry of quotes is for",
        ),
        ("[[r]]", [quote("report", "[[r]]", ("Juice", "Tea"))], "/quotes/0/edits/0/find", "not 0"),
        ("[[r]]", [quote("report", "[[r]]", (": ", " "))], "/quotes/0/edits/0/find", "not 2"),
        ("[[r]]", [quote("report", "[[r]]", ("", "Tea"))], "/quotes/0/edits/0/find", "empty"),
    ],
)
def test_what_is_not_clear_is_an_error_with_its_place(
    text: str, quotes: list[dict[str, Any]], place: str, reason: str
) -> None:
    with pytest.raises(InvalidAnswer) as raised:
        join_quotes(text, quotes, OUTPUTS)
    (error,) = raised.value.errors
    assert error.pointer == place
    assert reason in error.message


ROCKS = "A light that turns,\nover dark rocks it turns and turns,\nuntil day comes."


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (
            "turns",
            "must stand once in the output of 'poem', not 3 times: add the text around it. "
            "It stands there in 'A light that turns,\\nover dark rocks it turn', "
            "'urns,\\nover dark rocks it turns and turns,\\nuntil day com', "
            "' dark rocks it turns and turns,\\nuntil day comes.'",
        ),
        (
            "Over dark rock it turns",
            "must stand once in the output of 'poem', not 0 times. The closest passage is "
            "'A light that turns,\\nover dark rocks it turns and turns,\\nuntil day co'",
        ),
        ("", "must not be empty: give the text of the output of 'poem' that changes"),
    ],
)
def test_an_edit_that_does_not_fit_is_reported_with_the_places_it_may_mean(
    find: str, message: str
) -> None:
    """A repair sees the errors, and not the output that is quoted."""
    with pytest.raises(InvalidAnswer) as raised:
        join_quotes("[[p]]", [quote("poem", "[[p]]", (find, "x"))], {"poem": ROCKS})
    assert [error.message for error in raised.value.errors] == [message]


def test_the_places_of_an_edit_are_few_and_short() -> None:
    output = "an answer of many words and more, " * 2_000
    for find in ("answer", "reply" * 500):
        with pytest.raises(InvalidAnswer) as raised:
            join_quotes("[[p]]", [quote("long", "[[p]]", (find, "x"))], {"long": output})
        assert len(raised.value.errors[0].message) < 700


def test_a_quote_where_nothing_came_in_is_an_error() -> None:
    with pytest.raises(InvalidAnswer, match="those that did: none"):
        join_quotes("[[r]]", [quote("report", "[[r]]")], {})


FINAL = step("final", "report", status="running")
PLAN = plan_of(done("report"), FINAL)
RESULTS = {"report": StepResult(step_id="report", step_output=OUTPUTS["report"])}


def carry_out(model: ScriptedModel, one: PlanStep, plan: Plan, **options: Any) -> Worked:
    return StepWorker(model, **options).work(one, Situation(plan, RESULTS))


def test_the_output_of_a_final_step_is_the_joined_text() -> None:
    answer = {**clear("[[report]]"), "quotes": [quote("report", "[[report]]", ("5", "6"))]}
    worked = carry_out(ScriptedModel(step=answer), FINAL, PLAN)
    assert worked.result.step_output == "Tea: 3\nMilk: 6"
    assert worked.step.step_output == "Tea: 3\nMilk: 6"


def test_in_core_mode_every_output_that_is_shown_may_be_quoted() -> None:
    answer = {**clear("[[report]]"), "quotes": [quote("report", "[[report]]")]}
    model = ScriptedModel(step=answer)
    last = step("last", "middle", status="running")
    plan = plan_of(done("report"), done("middle", "report"), last)
    worked = StepWorker(model).work(last, Situation(plan, RESULTS, ttl_remaining=5))
    assert worked.result.step_output == OUTPUTS["report"]
    assert OUTPUTS["report"] in model.prompts("step")[0]


def test_a_marker_that_no_entry_is_for_goes_to_repair() -> None:
    loose = {**clear("Here: [[report]]"), "quotes": []}
    mended = {**clear("[[report]]"), "quotes": [quote("report", "[[report]]")]}
    model = ScriptedModel(step=loose, repair=mended)
    assert carry_out(model, FINAL, PLAN).result.step_output == OUTPUTS["report"]
    (prompt,) = model.prompts("repair")
    assert "which no entry of quotes is for" in prompt


def test_a_wrong_edit_goes_to_repair() -> None:
    wrong = {**clear("[[report]]"), "quotes": [quote("report", "[[report]]", ("9", "6"))]}
    right = {**wrong, "quotes": [quote("report", "[[report]]", ("5", "6"))]}
    model = ScriptedModel(step=wrong, repair=right)
    assert carry_out(model, FINAL, PLAN).result.step_output == "Tea: 3\nMilk: 6"
    (prompt,) = model.prompts("repair")
    assert "/quotes/0/edits/0/find" in prompt


def test_only_a_final_step_with_text_before_it_may_quote() -> None:
    model = ScriptedModel(step=clear("done"))
    carry_out(model, FINAL, PLAN)
    carry_out(model, FINAL, plan_of(done("report"), FINAL, step("last", "final")))
    carry_out(model, step("alone", status="running"), plan_of(step("alone", status="running")))
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    as_json = ScriptedModel(step={**clear("done"), "step_output": {}})
    carry_out(as_json, FINAL, PLAN, answer_schema=schema)
    asked = ["quotes" in request.schema["properties"] for request in model.requests]
    assert asked == [True, False, False]
    (request,) = as_json.requests
    assert "quotes" not in request.schema["properties"]
    assert "word for word" not in json.dumps(request.schema)


def test_quotes_that_were_not_asked_for_go_to_repair() -> None:
    wrong = {**clear("[[report]]"), "quotes": [quote("report", "[[report]]")]}
    alone = step("alone", status="running")
    model = ScriptedModel(step=wrong, repair=clear("all of it"))
    assert carry_out(model, alone, plan_of(alone)).result.step_output == "all of it"
    (prompt,) = model.prompts("repair")
    assert "/quotes" in prompt


def test_a_json_answer_quotes_nothing() -> None:
    answer = {**clear({"a": 1}), "quotes": [quote("report", "[[report]]")]}
    with pytest.raises(InvalidAnswer, match="JSON quotes nothing"):
        step_result("final", answer, as_json=True)
