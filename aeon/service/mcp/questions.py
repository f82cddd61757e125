"""A run's questions as forms that MCP clients show, and the clients' responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult
from pydantic import ValidationError

from aeon.domain.plan import OpenQuestion
from aeon.domain.values import JsonObject

_FIELDS: dict[str, JsonObject] = {
    "question": {
        "answer": {
            "type": "string",
            "title": "Your answer",
            "description": "Leave it empty to let the assumption hold.",
        }
    },
    "approval": {"confirm": {"type": "boolean", "title": "Allow this call"}},
    "step": {"answer": {"type": "string", "title": "The output of the step", "minLength": 1}},
}
_REQUIRED = {"question": [], "approval": ["confirm"], "step": ["answer"]}


def make_forms(questions: Iterable[OpenQuestion]) -> dict[str, ElicitRequest]:
    """Return a form for each question, by the question's id."""
    return {question.id: _make_form(question) for question in questions}


def _make_form(question: OpenQuestion) -> ElicitRequest:
    text = question.text
    if question.kind == "question" and question.assumption:
        text = f"{text}\n\nAssumed for now: {question.assumption}"
    schema = {
        "type": "object",
        "properties": _FIELDS[question.kind],
        "required": _REQUIRED[question.kind],
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=text, requested_schema=schema))


def read_answers(
    questions: Iterable[OpenQuestion], responses: Mapping[str, object]
) -> dict[str, str]:
    """Return the answers in responses to these questions, by their ids. A response to another
    question, of another form, or dismissed, is not an answer. A declined question keeps its
    assumption, a declined approval is a no; a step stays open."""
    given = {question.id: _read_answer(question, responses) for question in questions}
    return {name: answer for name, answer in given.items() if answer is not None}


def has_dismissed(questions: Iterable[OpenQuestion], responses: Mapping[str, object]) -> bool:
    """Check whether a person has seen one of these questions, and does not want to answer it
    now."""
    read = [_read_response(question, responses) for question in questions]
    return any(response is not None and response.action != "accept" for response in read)


def _read_response(question: OpenQuestion, responses: Mapping[str, object]) -> ElicitResult | None:
    try:
        return ElicitResult.model_validate(responses.get(question.id))
    except ValidationError:
        return None


def _read_answer(question: OpenQuestion, responses: Mapping[str, object]) -> str | None:
    response = _read_response(question, responses)
    if response is None or response.action == "cancel":
        return None
    if response.action == "decline":
        return {"question": "", "approval": "no", "step": None}[question.kind]
    content = response.content or {}
    if question.kind == "approval":
        confirmed = content.get("confirm")
        return {True: "yes", False: "no"}[confirmed] if isinstance(confirmed, bool) else None
    answer = content.get("answer", "" if question.kind == "question" else None)
    return answer if isinstance(answer, str) else None
