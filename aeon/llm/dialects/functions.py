"""Function calling: writes a request's tools for servers that support it, and reads the calls in
their messages as the tool round that other servers answer with. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aeon.domain.request import FunctionCalling, LLMRequest, ToolTurn
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.extract import ExtractError, read_json
from aeon.schema.json_schema import strip_header

_UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
_GIVEN_BACK = ("content", "reasoning_content", "reasoning_details")
"""Fields that servers return with calls and expect back with them."""
_GIVEN_BACK_WITH_A_CALL = ("extra_content",)
FUNCTIONS = "tools"
"""The parameter that offers the tools."""


def use_functions(request: LLMRequest, form: FunctionCalling) -> LLMRequest:
    """Return the request as sent with function calling, without its rounds."""
    return replace(
        request,
        messages=form.opening,
        schema=form.schema,
        strict=form.strict,
        schema_prompt=form.schema_prompt,
    )


def write_tools(form: FunctionCalling | None) -> JsonObject:
    """Write the parameters that offer the tools, if any; in the last round, no calls are
    allowed."""
    if form is None:
        return {}
    tools = form.conversation.tools
    functions = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": _describe(tool),
                "parameters": {
                    "type": "object",
                    "properties": {},
                    **strip_header(tool["input_schema"]),
                },
            },
        }
        for name, tool in zip(_name_functions(tools), tools, strict=True)
    ]
    choice = {"tool_choice": "none"} if form.conversation.is_over else {}
    return {FUNCTIONS: functions, **choice}


def _describe(tool: JsonMapping) -> str:
    examples = [json.dumps(each, ensure_ascii=False) for each in tool.get("examples", ())]
    shown = f"\nExamples of arguments: {', '.join(examples)}" if examples else ""
    return f"{tool['description']}{shown}"


def _name_functions(tools: Sequence[JsonMapping]) -> list[str]:
    """Return names that servers allow (no dots): each tool's own name or a similar one."""
    names: list[str] = []
    for tool in tools:
        name = _UNUSUAL.sub("_", str(tool["name"]))
        while name in names:
            name = f"{name[:63]}_"
        names.append(name)
    return names


def write_turns(form: FunctionCalling) -> Iterator[JsonObject]:
    """Yield the messages of the rounds so far."""
    tools = form.conversation.tools
    written = {
        str(tool["name"]): name for tool, name in zip(tools, _name_functions(tools), strict=True)
    }
    for number, turn in enumerate(form.conversation.turns):
        if not turn.calls:
            yield {"role": "assistant", "content": turn.text}
            yield {"role": "user", "content": "\n\n".join(turn.results)}
            continue
        ids = [f"call{number:02}{index:03}" for index in range(len(turn.calls))]
        yield {
            "role": "assistant",
            "content": None,
            **_select(turn.extra, _GIVEN_BACK),
            "tool_calls": list(_write_calls(turn, ids, written)),
        }
        for call_id, result in zip(ids, turn.results, strict=True):
            yield {"role": "tool", "tool_call_id": call_id, "content": result}


def find_ends_of_turns(
    messages: Sequence[JsonMapping], *, is_over: bool
) -> Iterator[tuple[int, ...]]:
    """Yield, for each message, where a part ends that the next round's prompt starts with too:
    after the results of each round. `is_over` means that no round follows the last one."""
    for number, message in enumerate(messages, 1):
        is_last = number == len(messages)
        closes = is_last or messages[number]["role"] != "tool"
        is_result = message["role"] == "tool" and closes and not (is_last and is_over)
        yield (len(message["content"]),) if is_result else ()


def _write_calls(
    turn: ToolTurn, ids: Sequence[str], written: Mapping[str, str]
) -> Iterator[JsonObject]:
    for call, call_id in zip(turn.calls, ids, strict=True):
        name = written.get(call.tool, _UNUSUAL.sub("_", call.tool)[:64])
        # Servers parse the arguments and refuse invalid JSON.
        arguments = call.arguments if _is_json_object(call.arguments) else "{}"
        function = {"name": name, "arguments": arguments}
        extra = _select(call.extra, _GIVEN_BACK_WITH_A_CALL)
        yield {**extra, "id": call_id, "type": "function", "function": function}


def read_calls(message: JsonMapping, request: LLMRequest) -> str:
    """Return the calls of a message as the text of a round; empty if the request offers no tools or
    the message has no calls. A call named after the request is ignored: some servers wrap their
    answer in one."""
    form = request.functions
    named = [call for call in _list_calls(message) if call["function"].get("name") != request.call]
    if form is None or not named:
        return ""
    tools = form.conversation.tools
    original = dict(zip(_name_functions(tools), (tool["name"] for tool in tools), strict=True))
    asked = [_read_call(call, original) for call in named]
    return json.dumps(
        {"tool_calls": asked, "answer": None, **_select(message, _GIVEN_BACK)}, ensure_ascii=False
    )


def _list_calls(message: JsonMapping) -> list[JsonObject]:
    calls = [each for each in message.get("tool_calls") or () if isinstance(each, dict)]
    return [call for call in calls if isinstance(call.get("function"), dict)]


def _read_call(call: JsonMapping, original: Mapping[str, str]) -> JsonObject:
    function = call["function"]
    name = str(function.get("name") or "")
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    extra = _select(call, _GIVEN_BACK_WITH_A_CALL)
    return {"tool": original.get(name, name), "arguments": text, **extra}


def _select(given: JsonMapping, names: Sequence[str]) -> JsonObject:
    return {name: given[name] for name in names if given.get(name)}


def are_whole(round_text: str) -> bool:
    """Whether the arguments of all calls in a round are complete JSON."""
    return all(_is_json_object(call["arguments"]) for call in json.loads(round_text)["tool_calls"])


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(read_json(text), dict)
    except ExtractError:
        return False
