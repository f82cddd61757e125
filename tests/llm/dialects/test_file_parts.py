"""Files on the wire, decided without a server."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import TypeAdapter

from aeon.domain.request import InputFile, LLMRequest, Message, ToolCall, ToolConversation, ToolTurn
from aeon.llm.dialects.cache_marks import MarkedPrefixes
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.prompts import load_packaged_prompts
from aeon.llm.schemas import SchemaLibrary
from aeon.llm.settings import OpenAIProvider
from aeon.supervisor.tool_round import offer_tools
from tests.support.requests import request

LONG = "a part of a prompt. " * 240
TOOL = {"name": "look_up", "description": "Look up.", "input_schema": {"type": "object"}}


def a_file(content: bytes = b"image", name: str = "photo") -> InputFile:
    digest = hashlib.sha256(content).hexdigest()
    return InputFile(name, "image", "image/png", len(content), digest, content)


def asked(*files: InputFile) -> LLMRequest:
    user = Message("user", f"{LONG}What now?", (len(LONG),), files or (a_file(),))
    return request("step", messages=(Message("system", "Be brief."), user))


def body_of(whole: LLMRequest, prefixes: MarkedPrefixes | None = None, **given: Any) -> Any:
    prefixes = prefixes or MarkedPrefixes()
    wire = Wire(whole, OpenAIProvider(model="m", **given))
    body = json.loads(wire.body(Dialect(), prefixes))
    prefixes.settle(wire.chosen_marks, is_answered=True)
    return body


def types_of(content: Any) -> list[str]:
    return [part["type"] for part in content]


def test_the_files_stand_before_the_text_each_behind_a_line_that_names_it() -> None:
    body = body_of(asked(a_file(), a_file(b"other", "map")))
    content = body["messages"][-1]["content"]
    assert types_of(content) == ["text", "image_url", "text", "image_url", "text"]
    assert [part["text"].split(" [")[0] for part in content[0:4:2]] == ["Input photo", "Input map"]


def test_marks_for_the_cache_stay_where_they_are_and_know_the_file() -> None:
    prefixes = MarkedPrefixes()
    content = body_of(asked(), prefixes, prompt_cache="anthropic")["messages"][-1]["content"]
    assert types_of(content) == ["text", "image_url", "text", "text"]
    assert [part["text"] for part in content if "cache_control" in part] == [LONG]
    before = set(prefixes._digests)
    body_of(asked(a_file(b"another")), prefixes, prompt_cache="anthropic")
    assert set(prefixes._digests) > before
    body_of(asked(), prefixes, prompt_cache="anthropic")
    assert len(prefixes._digests) == 2


def test_the_rounds_of_a_step_that_uses_tools_begin_with_the_files() -> None:
    turn = ToolTurn((ToolCall("look_up", "{}"),), ("found",))
    schemas = SchemaLibrary()
    of_round = schemas.wire_round(schemas.wire("step"), ("look_up",))
    whole = offer_tools(
        asked(), ToolConversation((TOOL,), (turn,)), of_round, load_packaged_prompts()
    )
    for calling in ("auto", "never"):
        messages = body_of(whole, function_calling=calling)["messages"]
        assert types_of(messages[1]["content"]) == ["text", "image_url", "text"]
        assert not any(isinstance(each["content"], list) for each in messages[2:])


def test_the_parts_are_those_of_the_openai_package() -> None:
    from openai.types.chat import ChatCompletionContentPartParam
    from openai.types.responses import ResponseInputContentParam

    audio = InputFile("call", "audio", "audio/wav", 1, "0" * 64, b"a")
    paper = InputFile("paper", "pdf", "application/pdf", 1, "1" * 64, b"a")
    chat: TypeAdapter[Any] = TypeAdapter(ChatCompletionContentPartParam)
    for part in body_of(asked(a_file(), paper, audio))["messages"][-1]["content"]:
        chat.validate_python(part, strict=True)
    responses: TypeAdapter[Any] = TypeAdapter(ResponseInputContentParam)
    body = body_of(asked(a_file(), paper), api="responses")
    assert types_of(body["input"][-1]["content"]) == [
        *("input_text", "input_image", "input_text", "input_file", "input_text")
    ]
    for part in body["input"][-1]["content"]:
        responses.validate_python(part, strict=True)
