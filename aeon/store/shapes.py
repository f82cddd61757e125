"""What requests and answers are made of, where the program relies on it: a store or a cassette may hold anything."""

from __future__ import annotations

from typing import Any

import pydantic
from pydantic import BaseModel, ConfigDict, InstanceOf

from aeon.store.models import Kind

# Half a surrogate pair is a text, too, which pydantic's own check of texts refuses.
_Text = InstanceOf[str]


class _Shape(BaseModel):
    """Values of exactly these types, and whatever else."""

    model_config = ConfigDict(strict=True, extra="allow", protected_namespaces=())


class _Message(_Shape):
    """A message of a request."""

    role: str
    content: _Text


class _Request(_Shape):
    """What is asked, of whomever."""

    messages: list[_Message] = []


class _Usage(_Shape):
    """What an answer has cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0


class _Answered(_Shape):
    """What every answer of a model may say, one that is none included."""

    model: str = ""
    usage: _Usage = _Usage()
    endpoint: str = ""


class _Answer(_Answered):
    """A model's answer."""

    text: _Text
    response_id: str | None = None
    finish_reason: str = "stop"
    synthetic: bool = False
    usage_reported: bool = True


class _Failure(_Answered):
    """An answer that is none, or a failure of the provider."""

    error: str
    message: _Text = ""
    hint: _Text = ""
    status: int | None = None
    retry_after: float | None = None


class _Said(_Shape):
    """A person's answer; None when there was none."""

    answer: _Text | None


class _Held(_Shape):
    """What a memory held at the beginning of a run."""

    entries: dict[str, Any]


def wrong(kind: Kind, request: dict[str, Any], answer: dict[str, Any]) -> str:
    """Where a kept request or its answer is not what it must be, and why, as `usage.requests: ...`; empty if nowhere.

    What a tool gave is looked at when it is used.
    """
    try:
        _Request.model_validate(request)
        if kind == "model":
            (_Failure if "error" in answer else _Answer).model_validate(answer)
        if kind == "person":
            _Said.model_validate(answer)
        if kind == "memory":
            _Held.model_validate(answer)
    except pydantic.ValidationError as error:
        of = "request" if error.title == _Request.__name__ else "answer"
        return f"{of}.{first_problem(error)}"
    return ""


def first_problem(error: pydantic.ValidationError) -> str:
    """The first thing that is wrong, after the dotted place of it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
