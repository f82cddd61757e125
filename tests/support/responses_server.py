"""A scripted server that speaks OpenAI's chat completions and its Responses API, both by one script.

    with ResponsesServer({"plan": {...}}) as server:
        ...                    # OpenAIProvider(base_url=server.url, api="responses")
        server.inputs          # the bodies that came to /responses

What comes to /responses is held to the types of the openai package, and what goes out is made by them. Each answer has
reasoning before it. A response in the background is done once it was asked for `polls` times.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from openai.types.responses import Response, ResponseCreateParams
from pydantic import TypeAdapter, ValidationError

from tests.support.openai_server import Answer, Completion, Failure, Handler, OpenAIServer, error

PATH = "/v1/responses"
_PARAMS: TypeAdapter[Any] = TypeAdapter(ResponseCreateParams)
_STATUS = {"length": "max_output_tokens", "content_filter": "content_filter"}


class _Handler(Handler):
    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        server = self.server.owner
        assert isinstance(server, ResponsesServer)
        path = self.path.partition("?")[0]
        if not path.startswith(server.responses_path):
            return super().do_POST()
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if path.endswith("/cancel"):
            return self._answer(server.cancel(path.split("/")[-2]))
        if path != server.responses_path or not server.has_responses:
            return self._fail(error(404, f"no such path: {self.path}"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(raw)
        answer = server.respond(body, headers)
        if isinstance(answer, dict) and answer and body.get("stream"):
            return self._stream_response(answer)
        return self._answer(answer)

    def do_GET(self) -> None:  # noqa: N802
        server = self.server.owner
        assert isinstance(server, ResponsesServer)
        self._answer(server.retrieve(self.path.partition("?")[0].split("/")[-1]))

    def _answer(self, answer: dict[str, Any] | Failure) -> None:
        return self._fail(answer) if isinstance(answer, Failure) else self._send(200, answer)

    def _stream_response(self, whole: Mapping[str, Any], size: int = 7) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        text = "".join(
            part.get("text", "")
            for item in whole["output"]
            for part in item.get("content") or ()
            if item["type"] == "message"
        )
        pieces = [text[place : place + size] for place in range(0, len(text), size)]
        events = [{"type": "response.created", "response": {**whole, "status": "in_progress"}}]
        events += [{"type": "response.output_text.delta", "delta": piece} for piece in pieces]
        events.append({"type": f"response.{whole['status']}", "response": whole})
        for number, event in enumerate(events):
            data = json.dumps({**event, "sequence_number": number})
            self.wfile.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True


class ResponsesServer(OpenAIServer):
    """The server. `inputs` are the bodies that came to /responses, `cancelled` the ids of responses that were
    cancelled; `encrypts` says whether reasoning can be sent back, `failures` are what the next polls answer, `ended` says
    how responses ended that have no answer, `done` are those that are not waited for any longer."""

    handler = _Handler

    def __init__(self, script: Mapping[str, Any] | None = None, **given: Any) -> None:
        super().__init__(script, **given)
        self.responses_path = PATH
        self.has_responses = True
        self.encrypts = True
        self.polls = 2
        self.inputs: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.polled: list[str] = []
        self.failures: list[Failure] = []
        self.ended: dict[str, str] = {}
        self.done: set[str] = set()
        self._under_way: dict[str, tuple[dict[str, Any], int]] = {}
        self._numbering = threading.Lock()

    def respond(self, body: Any, headers: Mapping[str, str]) -> dict[str, Any] | Failure:
        """The response to a request, or why it is refused."""
        try:
            _PARAMS.validate_python(body)
        except ValidationError as invalid:
            return self._refuse(str(invalid))
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return error(401, "Incorrect API key provided", code="invalid_api_key")
        missing = {"model", "input"} - body.keys()
        if missing:
            return self._refuse(f"Missing required parameter: '{min(missing)}'.")
        if problem := _find_broken_reasoning(body["input"]):
            return self._refuse(problem)
        answered = self.answer(_to_chat(body), headers)
        if isinstance(answered, Failure):
            return answered
        with self._numbering:
            self.inputs.append(body)
            number = len(self.inputs)
        completion = answered if isinstance(answered, Completion) else Completion(answered)
        time.sleep(completion.delay)
        whole = self._make_response(completion, body, number)
        if not body.get("background"):
            return whole
        self._under_way[whole["id"]] = whole, self.polls
        return {**whole, "status": "queued", "output": [], "usage": None}

    def retrieve(self, response_id: str) -> dict[str, Any] | Failure:
        """A response in the background as it is now."""
        self.polled.append(response_id)
        if self.failures:
            return self.failures.pop(0)
        if response_id not in self._under_way:
            return error(404, f"Response with id '{response_id}' not found.")
        whole, left = self._under_way[response_id]
        if response_id in self.ended:
            return {**whole, "status": self.ended[response_id], "output": [], "usage": None}
        self._under_way[response_id] = whole, left - 1
        if left > 1 and response_id not in self.done:
            return {**whole, "status": "in_progress", "output": [], "usage": None}
        return whole

    def cancel(self, response_id: str) -> dict[str, Any] | Failure:
        """Cancel a response in the background; one that is done stays as it is."""
        self.cancelled.append(response_id)
        if response_id not in self._under_way:
            return error(404, f"Response with id '{response_id}' not found.")
        if response_id in self.done:
            return self._under_way[response_id][0]
        whole, _ = self._under_way.pop(response_id)
        return {**whole, "status": "cancelled", "output": []}

    def _make_response(
        self, completion: Completion, body: Mapping[str, Any], number: int
    ) -> dict[str, Any]:
        content = completion.content
        text = json.dumps(content) if isinstance(content, Mapping) else content or ""
        said: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        if completion.refusal:
            said = {"type": "refusal", "refusal": completion.refusal}
        thought: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
        if self.encrypts:
            thought["encrypted_content"] = f"thoughts of {number}"
        message = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        }
        cut_by = _STATUS.get(completion.finish_reason)
        usage = completion.usage
        whole = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if cut_by else "completed",
            "incomplete_details": {"reason": cut_by} if cut_by else None,
            "model": completion.model or body["model"],
            "output": [
                thought,
                *([message] if text or completion.refusal else ()),
                *_to_calls(completion, number),
            ],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage and _to_response_usage(usage),
            "background": bool(body.get("background")),
        }
        made: dict[str, Any] = Response.model_validate(whole).model_dump(
            mode="json", exclude_unset=True
        )
        return made

    def answer(self, body: Any, headers: Mapping[str, str]) -> Answer:
        """As in `OpenAIServer`, whichever interface the request came by."""
        return super().answer(body, headers)


def _to_calls(completion: Completion, number: int) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(completion.tool_calls):
        name = f"{number}_{index}"
        made = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}"}
        yield {**made, **call["function"], "status": "completed"}


def _to_response_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    read = usage.get("prompt_tokens_details", {})
    thought = usage.get("completion_tokens_details", {})
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, **read},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0, **thought},
        "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
    }


def _to_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The chat request that asks the same, as scripts read it."""
    named = dict((body.get("text") or {}).get("format") or {})
    kind = named.pop("type", None)
    chat: dict[str, Any] = {"model": body["model"], "messages": list(_to_messages(body["input"]))}
    if body.get("tools"):
        chat["tools"] = [{"type": "function", "function": tool} for tool in body["tools"]]
    return {**chat, "response_format": {"type": kind, "json_schema": named}} if kind else chat


def _to_messages(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls.append({"id": item["call_id"], "type": "function", "function": function})
            continue
        if calls:
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        if item.get("type") == "function_call_output":
            content = _to_content(item["output"])
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": content}
        elif item.get("role") in ("system", "user"):
            yield {"role": item["role"], "content": _to_content(item["content"])}


def _to_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [_to_part(part) for part in content]


def _to_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if part["type"] == "input_file":
        return {"type": "file", "file": {name: part[name] for name in part if name != "type"}}
    return {**part, "type": "text"}


def _find_broken_reasoning(items: list[dict[str, Any]]) -> str:
    """Why OpenAI would refuse these items: reasoning goes with the item that it led to."""
    for item, following in zip(items, [*items[1:], {}], strict=True):
        leads_to = following.get("type") in ("message", "function_call")
        if item.get("type") == "reasoning" and not leads_to:
            return f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
    return ""
