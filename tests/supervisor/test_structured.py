from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from aeon.domain import events
from aeon.domain.errors import (
    AeonError,
    EmptyAnswer,
    Filtered,
    PromptError,
    Refused,
    ServerFailed,
    Truncated,
    ValidationError,
)
from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Parameters, Usage, at_site
from aeon.files.fences import without_codes
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.prompts import PromptLibrary, fence
from aeon.llm.schemas import SchemaLibrary
from aeon.schema.validators import FieldError
from aeon.supervisor.structured import StructuredCaller
from tests.llm.scripted import COST, Heard, Scripted

PLAN = {
    "type": "object",
    "additionalProperties": False,
    "required": ["goal", "tool"],
    "properties": {"goal": {"type": "string"}, "tool": {"type": ["string", "null"]}},
}
GOOD = '{"goal": "x", "tool": null}'
BAD = '{"goal": 1, "tool": null}'
SITE = CallSite(pass_number=1, phase="PLAN", cycle=4, sequence=11, mode="balanced")

MakeCaller = Callable[..., StructuredCaller]


@pytest.fixture
def make(tmp_path: Path) -> MakeCaller:
    """A caller with templates and a schema of its own for `plan`; its repair templates are the packaged ones."""
    prompts, schemas = tmp_path / "prompts" / "default", tmp_path / "schemas"
    prompts.mkdir(parents=True)
    schemas.mkdir()
    (prompts / "plan.system.j2").write_text("Plan. {{ tools | length }} tools.")
    (prompts / "plan.user.j2").write_text('{{ task | fence("task") }}{{ extra }}')
    (schemas / "plan.json").write_text(json.dumps(PLAN))

    def caller(llm: Any, **options: Any) -> StructuredCaller:
        shared = options.pop("shared", {"tools": (), "extra": ""})
        libraries = {
            "prompts": PromptLibrary(tmp_path / "prompts"),
            "schemas": SchemaLibrary(schemas),
        }
        return StructuredCaller(llm, **{**libraries, "shared": shared, **options})

    return caller


def goal(value: Mapping[str, Any]) -> str:
    return str(value["goal"])


def test_a_call_renders_sends_checks_and_parses(make: MakeCaller) -> None:
    llm = Scripted(GOOD)
    caller = make(llm, parameters=lambda role, mode: Parameters(model=f"{role}-{mode}"))
    assert caller.call("plan", {"task": "do it"}, goal, role="planner", site=SITE) == "x"
    (request,) = llm.requests
    assert (request.call, request.role, request.strict, request.site) == (
        "plan",
        "planner",
        True,
        SITE,
    )
    assert request.parameters == Parameters(model="planner-balanced")
    assert request.schema == PLAN
    assert [message.content for message in request.messages] == [
        "Plan. 0 tools.",
        fence("do it", "task"),
    ]


def test_a_calls_variables_win_over_shared_ones(make: MakeCaller) -> None:
    llm = Scripted(GOOD, GOOD)
    caller = make(llm, shared={"tools": (), "extra": "shared", "task": "t"})
    caller.call("plan", {}, goal, role="planner")
    caller.call("plan", {"extra": "own"}, goal, role="planner")
    prompts = [without_codes(request.messages[1].content) for request in llm.requests]
    assert [prompt.rpartition("\n</task>")[2] for prompt in prompts] == [
        "shared",
        "own",
    ]


@pytest.mark.parametrize("task", ["</task>", "{{ x }}", "{% raw %}", "a\r\n'\"`$x` ${y} \\"])
def test_a_task_is_literal(make: MakeCaller, task: str) -> None:
    llm = Scripted(GOOD)
    make(llm).call("plan", {"task": task}, goal, role="planner")
    assert llm.requests[0].messages[1].content == fence(task, "task")


def test_a_valid_call_tells_of_its_answer_and_its_end(make: MakeCaller) -> None:
    heard = Heard()
    make(Scripted(GOOD), emit=heard).call("plan", {"task": "t"}, goal, role="planner", site=SITE)
    assert heard.kinds == ["CallAnswered", "CycleFinished"]
    assert {site for _, site in heard.told} == {SITE}
    assert heard.told[-1][0] == events.CycleFinished(site=SITE, call="plan", error=None)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_bad_answer_is_repaired_within_the_call(make: MakeCaller, attempts: int) -> None:
    heard, llm = Heard(), Scripted(*[BAD] * attempts, GOOD)
    assert make(llm, emit=heard).call("plan", {"task": "t"}, goal, role="planner", site=SITE) == "x"
    assert heard.kinds == [*["CallAnswered"] * (1 + attempts), "RepairFinished", "CycleFinished"]
    answered = [
        event for event in heard.of(events.CallAnswered) if isinstance(event, events.CallAnswered)
    ]
    assert [(e.call, e.role, e.site.attempt) for e in answered] == [
        ("plan", "planner", 0),
        *(("repair", "repairer", n + 1) for n in range(attempts)),
    ]
    assert all(request.schema is llm.requests[0].schema for request in llm.requests)
    assert {site.sequence for _, site in heard.told if site} == {11}
    (record,) = [
        event.record
        for event in heard.of(events.RepairFinished)
        if isinstance(event, events.RepairFinished)
    ]
    assert (record.call, record.cycle, record.attempts, record.outcome) == (
        "plan",
        4,
        attempts,
        "repaired",
    )
    assert record.errors == ("/goal: 1 is not of type 'string'",)
    assert record.input_tokens == 10 * attempts


def test_an_answer_that_cannot_be_repaired_is_a_typed_error_with_everything_spent(
    make: MakeCaller,
) -> None:
    heard = Heard()
    with pytest.raises(ValidationError) as caught:
        make(Scripted(BAD, "no", BAD), emit=heard).call(
            "plan", {"task": "t"}, goal, role="planner", site=SITE
        )
    assert caught.value.usage == COST + COST + COST
    assert caught.value.message == (
        "plan: not valid by its schema after 2 repair attempts: /goal: 1 is not of type 'string'"
    )
    assert caught.value.errors == ("/goal: 1 is not of type 'string'",)
    assert heard.kinds == [*["CallAnswered"] * 3, "RepairFinished", "CycleFinished"]
    assert heard.told[-1][0] == events.CycleFinished(
        site=SITE, call="plan", error="ValidationError", message=str(caught.value)
    )


def test_the_number_of_repairs_can_be_set(make: MakeCaller) -> None:
    llm = Scripted(BAD, GOOD)
    with pytest.raises(ValidationError) as caught:
        make(llm, max_repairs=0).call("plan", {"task": "t"}, goal, role="planner")
    assert len(llm.requests) == 1
    assert caught.value.usage == COST


def test_errors_of_parse_go_to_repair_too(make: MakeCaller) -> None:
    llm = Scripted(GOOD, '{"goal": "y", "tool": null}')

    def acyclic(value: Mapping[str, Any]) -> str:
        if value["goal"] == "x":
            raise InvalidAnswer([FieldError("/goal", "depends on itself")])
        return goal(value)

    assert make(llm).call("plan", {"task": "t"}, acyclic, role="planner") == "y"
    assert "/goal: depends on itself" in llm.requests[1].messages[1].content


FAILURES: list[Any] = [
    ServerFailed("down", usage=Usage(1)),
    Truncated("cut", usage=Usage(1)),
    Refused("no", usage=Usage(1)),
    Filtered("no", usage=Usage(1)),
    EmptyAnswer("nothing", usage=Usage(1)),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_no_answer_is_never_repaired(make: MakeCaller, failure: AeonError) -> None:
    heard, llm = Heard(), Scripted(failure)
    with pytest.raises(type(failure)) as caught:
        make(llm, emit=heard).call("plan", {"task": "t"}, goal, role="planner", site=SITE)
    assert caught.value is failure
    assert caught.value.usage == Usage(1)
    assert heard.kinds == ["CallFailed", "CycleFinished"]
    assert heard.told[-1][0] == events.CycleFinished(
        site=SITE, call="plan", error=type(failure).__name__, message=str(failure)
    )


def test_a_failed_repair_raises_what_failed_with_everything_spent(make: MakeCaller) -> None:
    heard = Heard()
    llm = Scripted(BAD, BAD, ServerFailed("down", usage=Usage(1)))
    with pytest.raises(ServerFailed) as caught:
        make(llm, emit=heard).call("plan", {"task": "t"}, goal, role="planner", site=SITE)
    assert caught.value.usage == COST + COST + Usage(1)
    assert heard.kinds == [
        "CallAnswered",
        "CallAnswered",
        "CallFailed",
        "RepairFinished",
        "CycleFinished",
    ]


@pytest.mark.parametrize("error", [PromptError, KeyError])
def test_the_end_of_a_cycle_is_told_whatever_happens(
    make: MakeCaller, error: type[Exception]
) -> None:
    heard = Heard()

    def buggy(value: Any) -> Any:
        return value["nope"]

    variables = {} if error is PromptError else {"task": "t"}
    with pytest.raises(error) as caught:
        make(Scripted(GOOD), emit=heard).call("plan", variables, buggy, role="planner", site=SITE)
    assert heard.told[-1][0] == events.CycleFinished(
        site=SITE, call="plan", error=error.__name__, message=str(caught.value)
    )


def test_tools_are_an_enum_on_the_wire_and_open_locally(make: MakeCaller) -> None:
    llm = Scripted('{"goal": "x", "tool": "unknown"}')
    described = ({"name": "search"},)
    caller = make(llm, shared={"tools": described, "extra": ""})
    caller.call("plan", {"task": "t"}, goal, role="planner", tools=("search",))
    assert llm.requests[0].schema["properties"]["tool"]["anyOf"][0]["enum"] == ["search"]


def test_a_repair_is_shown_the_described_tools_where_the_call_may_name_them(
    make: MakeCaller,
) -> None:
    llm = Scripted(BAD, GOOD, BAD, GOOD)
    caller = make(llm, shared={"tools": ({"name": "search", "description": "finds"},), "extra": ""})
    caller.call("plan", {"task": "t"}, goal, role="planner", tools=("search",))
    caller.call("plan", {"task": "t"}, goal, role="planner")
    assert '{"name":"search","description":"finds"}' in llm.requests[1].messages[1].content
    assert "<tools-" not in llm.requests[3].messages[1].content


def test_a_persons_answer_schema_is_sent_and_held_locally() -> None:
    schema = {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer", "maximum": 3}},
    }
    rest = {"clarity_state": "CLEAR", "clarity_reason": None, "handoff_to_next": None}
    llm = Scripted(*(json.dumps({"step_output": {"n": n}, **rest}) for n in (4, 3)))
    library = SchemaLibrary()
    wire = library.wire("step", answer_schema=schema)
    assert not wire.strict
    prompts = _FixedPrompts()
    value = StructuredCaller(llm, prompts=prompts, schemas=library).call(
        "step", {}, lambda v: v["step_output"]["n"], role="worker", answer_schema=schema
    )
    assert value == 3
    assert [request.strict for request in llm.requests] == [False, False]
    assert (
        "/step_output/n: 4 is greater than the maximum of 3" in llm.requests[1].messages[1].content
    )


class _FixedPrompts(PromptLibrary):
    """Packaged prompts, but the step's prompt needs no variables."""

    def render(self, call: Any, variables: Mapping[str, Any]) -> Any:
        return () if call == "step" else super().render(call, variables)


def test_the_site_is_the_current_one_unless_given(make: MakeCaller) -> None:
    llm = Scripted(GOOD)
    with at_site(SITE):
        make(llm).call("plan", {"task": "t"}, goal, role="planner")
    assert llm.requests[0].site == SITE


def test_many_threads_may_call_at_once(make: MakeCaller) -> None:
    class Echo:
        def complete(self, request: LLMRequest) -> LLMResponse:
            task = request.messages[1].content.split("\n")[1]
            return LLMResponse(json.dumps({"goal": task, "tool": None}), COST)

    caller, seen = make(Echo()), dict[int, str]()

    def ask(n: int) -> None:
        seen[n] = caller.call("plan", {"task": str(n)}, goal, role="planner")

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {n: str(n) for n in range(32)}


def test_equal_situations_give_equal_bytes(make: MakeCaller) -> None:
    llm = Scripted(GOOD, GOOD)
    caller = make(llm)
    caller.call("plan", {"task": "t"}, goal, role="planner", site=SITE)
    caller.call("plan", {"task": "t"}, goal, role="planner", site=CallSite(cycle=99))
    assert llm.requests[0].messages == llm.requests[1].messages
    assert llm.requests[0].schema is llm.requests[1].schema


def test_nothing_is_compiled_per_call(make: MakeCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Scripted(*[BAD, GOOD] * 3)
    caller = make(llm)
    caller.call("plan", {"task": "t"}, goal, role="planner", tools=("a",))

    def compiled(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("jinja2.environment.Environment.compile", compiled)
    monkeypatch.setattr("aeon.llm.schemas.read_schema", compiled)
    monkeypatch.setattr("aeon.llm.schemas.check_schema", compiled)
    monkeypatch.setattr("aeon.llm.schemas.rebuild", compiled)
    monkeypatch.setattr("aeon.llm.schemas.SchemaValidator", compiled)
    caller.call("plan", {"task": "t"}, goal, role="planner", tools=("a",))
