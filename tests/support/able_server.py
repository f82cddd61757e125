"""A scripted server that can do less than OpenAI: it refuses, ignores or half enforces what it is asked for.

    AbleServer(script, forms={"text"}, says=error(422, "response_format is not supported"))

The script is that of `OpenAIServer`; a request that shows no name on the wire says it in its prompt. `bodies` is every
request that arrived, refused ones too.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from aeon.schema.validators import is_valid
from tests.support.openai_server import (
    Answer,
    Completion,
    Failure,
    OpenAIServer,
    Received,
    Script,
    error,
    wire_completion,
)

_NAMED = re.compile(r'JSON Schema, named "(\w+)"')
Shape = Callable[[Mapping[str, Any], Received], Answer]


def form_of(body: Mapping[str, Any]) -> str:
    """How a request says its schema: `json_schema`, `json_object` or `text`."""
    return (body.get("response_format") or {}).get("type", "text")


def shows_schema(body: Mapping[str, Any]) -> bool:
    """Whether the prompt holds the schema; a repair's always does."""
    return "JSON Schema" in "\n".join(message["content"] for message in body["messages"])


def as_it_is(answer: Mapping[str, Any], _: Received) -> Answer:
    """The right answer and nothing else."""
    return answer


class AbleServer(OpenAIServer):
    """Takes only `forms`; of another, and of the parameters in `refuses` (`a.b` is `b` in `a`), it answers `says`.
    `shape` makes the response of the scripted answer."""

    def __init__(
        self,
        script: Mapping[str, Script] | None = None,
        *,
        forms: Collection[str] = ("json_schema", "json_object", "text"),
        says: Failure | None = None,
        refuses: Mapping[str, Failure] | None = None,
        shape: Shape = as_it_is,
    ) -> None:
        super().__init__(script)
        self.forms = forms
        self.says = says or error(400, "response_format of this type is not supported")
        self.refuses = dict(refuses or {})
        self.shape = shape
        self.bodies: list[Mapping[str, Any]] = []

    def answer(self, body: Any, headers: Mapping[str, str]) -> Answer:
        """What the script answers to whoever asks in a way that the server takes."""
        with self._lock:
            self.bodies.append(body)
        for name, failure in self.refuses.items():
            if _has(body, name):
                return failure
        if form_of(body) not in self.forms:
            return self.says
        with self._lock:
            request = Received(len(self.requests), name_of(body), body, headers)
            self.requests.append(request)
            turn = self._asked[request.name] = self._asked.get(request.name, 0) + 1
        scripted = self.script[request.name]
        answer = scripted(request) if callable(scripted) else scripted
        answer = answer[min(turn, len(answer)) - 1] if isinstance(answer, list) else answer
        if isinstance(answer, Mapping) and form_of(body) == "json_schema":
            answer = fitting(answer, request.schema, request.schema)
        return self.shape(answer, request) if isinstance(answer, Mapping) else answer

    @property
    def forms_asked(self) -> list[str]:
        """The form of every request, in the order of arrival; with `+` where the prompt holds the schema too."""
        return [form_of(body) + "+" * shows_schema(body) for body in self.bodies]


def fitting(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A scripted value as constrained decoding gives it: without fields that the schema does not have and items of a
    list that it does not allow, and with null or an empty list for those that are missing."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        inner = {**schema.get("items", {}), "$defs": root.get("$defs", {})}
        items = [fitting(item, inner, root) for item in value]
        return [item for item in items if is_valid(inner, item)]
    branches = [schema, *schema.get("anyOf", ())]
    properties = next((branch["properties"] for branch in branches if "properties" in branch), None)
    if properties is None or not isinstance(value, Mapping):
        return value
    empty = {name: [] for name, form in properties.items() if form.get("type") == "array"}
    given = {name: part for name, part in value.items() if name in properties}
    return {
        name: fitting(part, properties[name], root)
        for name, part in {**dict.fromkeys(properties), **empty, **given}.items()
        if name in given or name in empty or "null" in properties[name].get("type", ())
    }


def _has(body: Mapping[str, Any], name: str) -> bool:
    outer, _, inner = name.partition(".")
    return outer in body and (not inner or inner in body[outer])


def name_of(body: Mapping[str, Any]) -> str:
    """The call's name: on the wire, or in the prompt; one that names none shows a schema already, as repairs do."""
    named = (body.get("response_format") or {}).get("json_schema")
    if named:
        return str(named["name"])
    found = _NAMED.findall("\n".join(message["content"] for message in body["messages"]))
    return found[-1] if found else "repair"


def with_message(message: Mapping[str, Any], finish_reason: str = "stop") -> Failure:
    """A completion with this message, whatever is in it."""
    whole = wire_completion(Completion(finish_reason=finish_reason), 1, "scripted")
    whole["choices"][0]["message"] = {"role": "assistant", **message}
    return Failure(200, body=whole)


def ignoring(answer: Mapping[str, Any], request: Received) -> Answer:
    """The server of a model that is not told the schema: prose and a fence, other fields until the prompt has it."""
    value = answer if shows_schema(request.body) else {"result": "as I understand it"}
    return f"Sure, here it is:\n\n```json\n{json.dumps(value, indent=2)}\n```\nLet me know!"


def half_enforcing(answer: Mapping[str, Any], request: Received) -> Answer:
    """JSON without `additionalProperties` being held to, until the prompt has the schema."""
    return answer if shows_schema(request.body) else {**answer, "confidence": "high"}


def reading_beside(answer: Mapping[str, Any], request: Received) -> Answer:
    """Any object, unless the schema stands beside json_object: that one is held to."""
    return (
        answer
        if "schema" in request.body.get("response_format", {})
        else {"result": "as I understand it"}
    )


def calling_a_tool(answer: Mapping[str, Any], request: Received) -> Answer:
    """The answer as the arguments of a tool call."""
    function = {"name": request.name, "arguments": json.dumps(answer)}
    message = {
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    return with_message(message, "tool_calls")


def thinking(answer: Mapping[str, Any], _: Received) -> Answer:
    """Reasoning in the text, with a draft in it, before the answer."""
    return f'<think>\nPerhaps {{"draft": true}}? No.\n</think>\n\n{json.dumps(answer)}'


def in_channels(answer: Mapping[str, Any], _: Received) -> Answer:
    """Reasoning and the answer in channels that nobody has read."""
    return f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{json.dumps(answer)}"


def in_parts(answer: Mapping[str, Any], _: Received) -> Answer:
    """Content as a list of parts."""
    text = json.dumps(answer)
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    return with_message(
        {
            "content": [
                thought,
                {"type": "text", "text": text[:9]},
                {"type": "text", "text": text[9:]},
            ]
        }
    )


def as_reasoning(answer: Mapping[str, Any], _: Received) -> Answer:
    """The answer where the reasoning should be."""
    return with_message({"content": None, "reasoning_content": json.dumps(answer)})


def unmetered(answer: Mapping[str, Any], _: Received) -> Answer:
    """No usage."""
    return Completion(answer, usage=None)
