"""A step that uses tools, by native function calling, or by its answer where a server has none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Message
from aeon.execution.outcome import Worked
from aeon.execution.tool_rounds.allowance import RoundAllowance
from aeon.execution.worker import Situation, StepWorker
from aeon.llm.dialects.server import forget_servers
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from aeon.tools.registry import Tool, ToolRegistry
from tests.llm.openai.conftest import Connect
from tests.support import openai_server as support
from tests.support.caching_server import CachingServer, read_prompt
from tests.support.openai_server import Answer, Completion, Failure, OpenAIServer, Received, error
from tests.support.requests import request
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_model import clear
from tests.tools.builders import a_tool

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NATIVE = "tools"


def look_up(name: str = "look_up") -> Tool:
    return a_tool(lambda given: given["word"].upper(), name=name, inputs=WORD)


def work(adapter: LLMAdapter, *tools: Tool, allowed: int = 8) -> Worked:
    registry = ToolRegistry(tools or [look_up()])
    worker = StepWorker(adapter, registry=registry, step_tools=("*",))
    step = PlanStep(step_id="a", description="do a", status="running", agent="llm")
    plan = Plan(goal="the goal", steps=(step,), task="tea")
    return worker.work(step, Situation(plan, allowance=RoundAllowance(allowed)))


def function_calls(*words: str, name: str = "look_up", **more: Any) -> Completion:
    calls = [
        {
            "id": f"server-{word}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"word": word})},
            **more,
        }
        for word in words
    ]
    return Completion(tool_calls=calls, finish_reason="tool_calls")


def calls_in_answer(word: str) -> dict[str, Any]:
    call = {"tool": "look_up", "arguments": json.dumps({"word": word})}
    return {"tool_calls": [call], "answer": None}


def is_native(received: Received) -> bool:
    return NATIVE in received.body


def test_tools_go_out_as_functions_beside_the_schema_of_the_answer(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = [function_calls("tea", "pot"), clear("done")]
    shown = a_tool(
        lambda given: given["word"].upper(), name="look_up", inputs=WORD, examples=[{"word": "tea"}]
    )
    worked = work(connect(), shown)
    assert worked.step.step_output == "done"
    first, second = openai_server.requests
    [function] = first.body["tools"]
    assert function == {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": 'Does what it is told.\nExamples of arguments: {"word": "tea"}',
            "parameters": {
                "type": "object",
                "properties": WORD["properties"],
                "required": ["word"],
            },
        },
    }
    assert "tool_choice" not in first.body
    assert "step_output" in first.schema["properties"]
    assert "tool_calls" not in first.system
    asked, tea, pot = second.body["messages"][2:]
    assert [call["function"]["name"] for call in asked["tool_calls"]] == ["look_up", "look_up"]
    assert "TEA" in tea["content"]
    assert "POT" in pot["content"]
    assert second.body["messages"][:2] == first.body["messages"]


@pytest.mark.parametrize("response", ["Let me look it up.", ""])
def test_a_response_with_neither_calls_nor_an_answer_is_a_message_of_the_conversation(
    openai_server: OpenAIServer, connect: Connect, response: str
) -> None:
    vain = Completion(response)
    openai_server.script["step"] = [function_calls("tea"), vain, clear("done")]
    worked = work(connect())
    assert worked.step.step_output == "done"
    asked, tea, vain_one, again = openai_server.requests[-1].body["messages"][2:]
    assert asked["tool_calls"]
    assert tea["role"] == "tool"
    assert vain_one == {"role": "assistant", "content": response or "(no content)"}
    assert again["role"] == "user"
    assert "neither a call of a tool nor an answer" in again["content"]


def test_ids_of_calls_are_such_as_every_server_takes(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = [function_calls("tea"), function_calls("pot"), clear("done")]
    work(connect())
    messages = openai_server.requests[-1].body["messages"]
    ids = [call["id"] for each in messages for call in each.get("tool_calls", ())]
    assert ids == ["call00000", "call01000"]
    assert [each["tool_call_id"] for each in messages if each["role"] == "tool"] == ids


def test_in_the_last_round_the_tools_are_there_and_none_may_be_called(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = [function_calls("tea"), clear("what there is")]
    worked = work(connect(), allowed=1)
    last = openai_server.requests[-1].body
    assert last["tool_choice"] == "none"
    assert last["tools"]
    assert "No more tools can be called" in last["messages"][-1]["content"]
    assert worked.step.step_output == "what there is"


def test_names_with_dots_are_sent_without_and_read_back(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = [function_calls("tea", name="db_find"), clear("done")]
    worked = work(connect(), look_up("db.find"))
    assert worked.result.tool_use is not None
    [[made]] = worked.result.tool_use.rounds
    assert (made.tool, made.error) == ("db.find", None)
    asked = openai_server.requests[-1].body["messages"][2]
    assert asked["tool_calls"][0]["function"]["name"] == "db_find"


def test_what_a_server_gives_with_calls_is_given_back_to_it(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    openai_server.script["step"] = [function_calls("tea", extra_content=signed), clear("done")]
    work(connect())
    asked = openai_server.requests[-1].body["messages"][2]
    assert asked["tool_calls"][0]["extra_content"] == signed


def test_wrong_arguments_are_sent_back_as_json(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    broken = function_calls("tea")
    broken.tool_calls[0]["function"]["arguments"] = '{"word": '  # type: ignore[index]
    openai_server.script["step"] = [broken, clear("done")]
    work(connect())
    asked, result = openai_server.requests[-1].body["messages"][2:]
    assert asked["tool_calls"][0]["function"]["arguments"] == "{}"
    assert "the arguments are not valid JSON" in result["content"]


def test_streamed_calls_are_put_together(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["step"] = [function_calls("tea", "pot"), clear("done")]
    worked = work(connect(stream="always"))
    assert worked.result.tool_use is not None
    [made] = worked.result.tool_use.rounds
    assert [one.arguments for one in made] == ['{"word": "tea"}', '{"word": "pot"}']


REFUSALS = [
    error(400, "llama2:latest does not support tools"),
    error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
    error(500, "tools param requires --jinja flag"),
    error(400, "json mode cannot be combined with tool/function calling"),
    error(404, "No endpoints found that support tool use."),
    error(400, "Bad request"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: each.body["error"]["message"][:25])
def test_a_server_without_function_calling_is_asked_by_the_answer(
    refusal: Any, openai_server: OpenAIServer, connect: Connect
) -> None:
    def step(received: Received) -> Answer:
        if is_native(received):
            return refusal
        is_first = len(received.body["messages"]) == 2
        return calls_in_answer("tea") if is_first else {"tool_calls": [], "answer": clear("done")}

    openai_server.script["step"] = step
    adapter = connect()
    assert work(adapter).step.step_output == "done"
    assert [is_native(each) for each in openai_server.requests] == [True, False, False]
    assert "These are the tools that you may call" in openai_server.requests[-1].system
    assert "tool_calls" in openai_server.requests[-1].schema["properties"]
    assert any("takes no tools" in str(found) for found in adapter.findings())  # type: ignore[attr-defined]


def test_a_server_that_holds_to_the_schema_and_never_calls_is_found_out(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    def step(received: Received) -> Answer:
        if is_native(received):
            return clear("made up")
        is_first = len(received.body["messages"]) == 2
        return calls_in_answer("tea") if is_first else {"tool_calls": [], "answer": clear("found")}

    openai_server.script["step"] = step
    adapter = connect()
    assert work(adapter).step.step_output == "found"
    assert [is_native(each) for each in openai_server.requests] == [True, False, False]
    assert any("makes no calls" in str(found) for found in adapter.findings())  # type: ignore[attr-defined]


def test_steps_side_by_side_all_find_it_out(openai_server: OpenAIServer, connect: Connect) -> None:
    def step(received: Received) -> Answer:
        if is_native(received):
            return Completion(clear("made up"), delay=0.05)
        is_first = len(received.body["messages"]) == 2
        return calls_in_answer("tea") if is_first else {"tool_calls": [], "answer": clear("found")}

    openai_server.script["step"] = step
    adapter = connect()
    with ThreadPoolExecutor(6) as pool:
        outputs = list(pool.map(lambda _: work(adapter).step.step_output, range(6)))
    assert outputs == ["found"] * 6


@pytest.mark.parametrize(
    "again",
    [
        {"tool_calls": [], "answer": clear("so too")},
        Completion('{"tool_calls": [', finish_reason="length"),
    ],
    ids=["answered", "cut off"],
)
def test_the_usage_of_finding_out_is_counted(
    again: Answer, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = [clear("at once"), again]
    seen: list[Any] = []
    adapter = connect()
    complete = adapter.complete

    def note(request: Any) -> Any:
        seen.append(complete(request))
        return seen[-1]

    adapter.complete = note  # type: ignore[method-assign]
    work(adapter)
    assert seen[0].usage.requests == 2


def test_answers_without_calls_are_doubted_twice_and_not_for_ever(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = lambda received: (
        clear("at once") if is_native(received) else {"tool_calls": [], "answer": clear("at once")}
    )
    adapter = connect()
    for _ in range(4):
        work(adapter)
    assert [is_native(each) for each in openai_server.requests] == [
        *(True, False, True, False),
        *(True, True),
    ]


def test_a_server_that_has_called_is_not_doubted(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = [function_calls("tea"), clear("done"), clear("at once")]
    adapter = connect()
    work(adapter)
    work(adapter)
    assert len(openai_server.requests) == 3


def test_a_resumed_conversation_with_calls_is_not_doubted(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script["step"] = [function_calls("tea"), clear("done"), clear("done")]
    adapter = connect()
    sent: list[LLMRequest] = []
    complete = adapter.complete

    def note(request: LLMRequest) -> LLMResponse:
        sent.append(request)
        return complete(request)

    monkeypatch.setattr(adapter, "complete", note)
    work(adapter)
    forget_servers()  # as a new process, which finds the first round in its store
    assert json.loads(complete(sent[-1]).text)["step_output"] == "done"
    assert [is_native(each) for each in openai_server.requests] == [True] * 3


def test_function_calling_can_be_left_out(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["step"] = [
        calls_in_answer("tea"),
        {"tool_calls": [], "answer": clear("done")},
    ]
    work(connect(function_calling="never"))
    assert not any(map(is_native, openai_server.requests))


def roles(received: Received) -> Sequence[str]:
    return [message["role"] for message in received.body["messages"]]


def test_a_conversation_goes_on_with_a_server_without_function_calling(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    """As where the endpoint that began it goes down."""

    def step(received: Received) -> Answer:
        if not is_native(received):
            return {"tool_calls": [], "answer": clear("done")}
        return function_calls("tea") if len(roles(received)) == 2 else error(400, "no tools here")

    openai_server.script["step"] = step
    assert work(connect()).step.step_output == "done"
    assert roles(openai_server.requests[-1]) == ["system", "user", "assistant", "user"]


def test_by_the_responses_api_calls_and_the_reasoning_that_led_to_them_go_back() -> None:
    script = {"step": [function_calls("tea", "pot"), function_calls("cup"), clear("done")]}
    with ResponsesServer(script) as server:
        settings = OpenAIProvider(base_url=server.url, model="m", api="responses")
        adapter = OpenAIAdapter(settings, "k")
        worked = work(adapter)
        adapter.close()
    assert worked.step.step_output == "done"
    first, _, last = server.inputs
    [tool] = first["tools"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "look_up", False)
    kinds = [item.get("type", item.get("role")) for item in last["input"]]
    assert kinds == [
        *("system", "user"),
        *("reasoning", "function_call", "function_call"),
        *("function_call_output", "function_call_output"),
        *("reasoning", "function_call", "function_call_output"),
    ]
    outputs = [item["output"] for item in last["input"] if "output" in item]
    assert [word in text for word, text in zip(("TEA", "POT", "CUP"), outputs, strict=True)] == [
        True
    ] * 3


@pytest.mark.parametrize("name", ["content", "reasoning_content"])
def test_what_a_message_says_beside_its_calls_goes_back_with_them(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    calls = function_calls("tea")
    said = {name: "I look it up first."}
    make = support.wire_completion

    def wire_completion(answer: Completion, *rest: Any) -> dict[str, Any]:
        whole = make(answer, *rest)
        if answer.tool_calls:
            whole["choices"][0]["message"] |= said
        return whole

    monkeypatch.setattr(support, "wire_completion", wire_completion)
    openai_server.script["step"] = [calls, clear("done")]
    assert work(connect()).step.step_output == "done"
    assert openai_server.names == ["step", "step"]
    assert openai_server.requests[-1].body["messages"][2][name] == said[name]


LONG_RESULT = "What was looked up, at length. " * 200


@pytest.mark.parametrize("function_calling", ["auto", "never"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_each_round_reads_what_the_one_before_wrote_to_the_cache(
    function_calling: str, api: str
) -> None:
    rounds: list[Answer] = [function_calls(word) for word in ("tea", "pot", "cup")]
    if function_calling == "never":
        rounds = [calls_in_answer(word) for word in ("tea", "pot", "cup")]
    script = {"step": [*rounds, clear("done")]}
    tool = a_tool(lambda given: f"{given['word']}: {LONG_RESULT}", name="look_up", inputs=WORD)
    with ResponsesServer(script) as server:
        settings = OpenAIProvider(
            base_url=server.url,
            model="m",
            api=api,  # type: ignore[arg-type]
            prompt_cache="openai",
            function_calling=function_calling,  # type: ignore[arg-type]
        )
        adapter = OpenAIAdapter(settings, "k")
        assert work(adapter, tool).step.step_output == "done"
        adapter.close()
    prompts = [read_prompt(received.body) for received in server.requests]
    for (earlier, marks), (later, read) in pairwise(prompts[1:]):
        assert later[: marks[-1]] == earlier[: marks[-1]]
        assert marks[-1] in read
        assert len(earlier) - marks[-1] == 0


def test_a_server_that_takes_results_in_one_piece_alone_is_sent_no_marks_any_more() -> None:
    def refuse(body: Mapping[str, Any]) -> Failure | None:
        in_parts = [
            {
                "loc": ["body", "messages", number, "content"],
                "msg": "Input should be a valid string",
            }
            for number, message in enumerate(body["messages"])
            if message["role"] == "tool" and isinstance(message["content"], list)
        ]
        return Failure(422, body={"detail": in_parts}) if in_parts else None  # type: ignore[dict-item]

    script = {
        "judge": {"answer": "x"},
        "step": [function_calls("tea"), function_calls("pot"), clear("done")],
    }
    tool = a_tool(lambda given: f"{given['word']}: {LONG_RESULT}", name="look_up", inputs=WORD)
    with CachingServer(script, refuse=refuse) as server:
        settings = OpenAIProvider(base_url=server.url, model="m", prompt_cache="openai")
        adapter = OpenAIAdapter(settings, "k")
        assert adapter.complete(
            request("judge", messages=(Message("system", LONG_RESULT * 2), Message("user", "Why?")))
        ).text
        worked = work(adapter, tool)
        findings = [str(finding) for finding in adapter.findings()]
        adapter.close()
    assert worked.step.step_output == "done"
    assert len(server.refused) == 1
    assert any("takes no prompt_cache" in finding for finding in findings)
