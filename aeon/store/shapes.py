"""The types of stored requests and answers, where the program relies on them: a cassette may hold anything."""

from __future__ import annotations

from typing import Any

import pydantic
from pydantic import BaseModel, ConfigDict, InstanceOf

from aeon.store.models import Kind

# Half a surrogate pair is a text, too, which pydantic's own check of texts refuses.
_Text = InstanceOf[str]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", protected_namespaces=())


class _Message(_Shape):
    role: str
    content: _Text


class _Request(_Shape):
    messages: list[_Message] = []


class _Usage(_Shape):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0


class _Answered(_Shape):
    model: str = ""
    usage: _Usage = _Usage()
    endpoint: str = ""


class _Answer(_Answered):
    text: _Text
    response_id: str | None = None
    finish_reason: str = "stop"
    synthetic: bool = False
    usage_reported: bool = True


class _Failure(_Answered):
    error: str
    message: _Text = ""
    hint: _Text = ""
    status: int | None = None
    retry_after: float | None = None


class _PersonAnswer(_Shape):
    answer: _Text | None


class _MemoryContents(_Shape):
    entries: dict[str, Any]


_ANSWERS: dict[Kind, type[_Shape]] = {"model": _Answer, "person": _PersonAnswer, "memory": _MemoryContents}


def find_problem(kind: Kind, request: dict[str, Any], answer: dict[str, Any]) -> str:
    """The first wrong type in a stored request or its answer, as `answer.usage.requests: ...`; empty without any.

    A tool's result is checked when it is used.
    """
    shape = _Failure if kind == "model" and "error" in answer else _ANSWERS.get(kind, _Shape)
    for name, checked, value in (("request", _Request, request), ("answer", shape, answer)):
        try:
            checked.model_validate(value)
        except pydantic.ValidationError as error:
            return f"{name}.{first_problem(error)}"
    return ""


def first_problem(error: pydantic.ValidationError) -> str:
    """The first error, after its dotted place."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
