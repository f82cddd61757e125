"""One round of a step that may use tools: its request, and what its answer requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any, TypeVar

from aeon.domain.request import (
    FunctionCalling,
    LLMRequest,
    Message,
    ToolCall,
    ToolConversation,
    ToolTurn,
    end_part,
)
from aeon.domain.values import JsonMapping
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.extract import ExtractError, NoJSON, extract_json
from aeon.llm.prompts import PromptLibrary
from aeon.llm.schemas import WireSchema
from aeon.schema.validators import FieldError

T = TypeVar("T")
_CALL = frozenset({"tool", "arguments"})
_ROUND = frozenset({"tool_calls", "answer"})


def offer_tools(
    request: LLMRequest,
    conversation: ToolConversation,
    of_round: WireSchema,
    prompts: PromptLibrary,
) -> LLMRequest:
    """Return the request of a step with the tools described in the prompt and the conversation as
    messages, which any adapter can send; it also includes the form for servers with function
    calling."""
    opening = (*request.messages[:-1], end_part(request.messages[-1]))
    functions = FunctionCalling(
        opening=opening,
        schema=request.schema,
        strict=request.strict,
        schema_prompt=request.schema_prompt,
        conversation=conversation,
    )
    from aeon.llm.dialects.dialect import with_system_text  # only for steps that use tools

    words = prompts.text("_functions.j2", {"tools": conversation.tools})
    messages = (*with_system_text(opening, words), *_write_turns(conversation))
    offered = replace(request, messages=messages, functions=functions)
    if conversation.is_over:
        return offered
    schema_prompt = prompts.schema_prompt(request.call, of_round.schema, messages)
    return replace(
        offered, schema=of_round.schema, strict=of_round.strict, schema_prompt=schema_prompt
    )


def _write_turns(conversation: ToolConversation) -> Iterator[Message]:
    for turn in conversation.turns:
        yield Message("assistant", _write_calls(turn) if turn.calls else turn.text)
        yield end_part(Message("user", "\n\n".join(turn.results)))


def _write_calls(turn: ToolTurn) -> str:
    calls = [{"tool": call.tool, "arguments": call.arguments} for call in turn.calls]
    return json.dumps({"tool_calls": calls, "answer": None}, ensure_ascii=False)


def read_round(read_answer: Callable[[Any], T], answer: Any, *, is_over: bool) -> T | ToolTurn:
    """Return the calls that a valid answer to a round requests, or its answer as read by
    `read_answer`. Raises InvalidAnswer if it has neither, and for calls after the conversation is
    over."""
    if not isinstance(answer, Mapping) or "tool_calls" not in answer:
        return read_answer(answer)
    calls = answer["tool_calls"]
    if calls and is_over:
        problem = "no more tools can be called: give the answer"
        raise InvalidAnswer([FieldError("/tool_calls", problem)])
    if calls:
        extra = {name: value for name, value in answer.items() if name not in _ROUND}
        return ToolTurn(tuple(_read_call(call) for call in calls), extra=extra)
    if answer.get("answer") is None:
        problem = "there is neither a call of a tool nor an answer: give one of them"
        raise InvalidAnswer([FieldError("/answer", problem)])
    return read_answer(answer["answer"])


def holds_neither(text: str, request: LLMRequest, *, is_over: bool) -> bool:
    """Whether an invalid response to a round has nothing to repair: neither calls nor a part of an
    answer. Calls count for nothing after the conversation is over."""
    try:
        value = extract_json(text)
    except ExtractError as error:
        return isinstance(error, NoJSON)
    if not isinstance(value, Mapping):
        return True
    if value.get("answer") is not None:
        return False
    if value.get("tool_calls"):
        return is_over
    form = request.functions
    return form is None or value.keys().isdisjoint(form.schema["properties"])


def count_askings(conversation: ToolConversation) -> int:
    """Count the last responses in a row that held neither calls nor an answer."""
    in_vain = takewhile(lambda turn: not turn.calls, reversed(conversation.turns))
    return sum(1 for _ in in_vain)


def _read_call(call: JsonMapping) -> ToolCall:
    arguments = call["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    extra = {name: value for name, value in call.items() if name not in _CALL}
    return ToolCall(call["tool"], text, extra)
