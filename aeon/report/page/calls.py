"""The requests and tool calls of a run as a page lists them, their texts packed."""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain, count, pairwise

from pydantic_core import PydanticSerializationError, to_json

from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.secret_forms import mask
from aeon.report.html import without_controls
from aeon.report.items import Item
from aeon.report.record import Call, Line

_LEVEL = 5  # of zlib: more takes twice the time for a tenth of the size


class TextTable:
    """Texts in which each line is stored once, however many texts contain it."""

    def __init__(self) -> None:
        self._lines: defaultdict[str, int] = defaultdict(count().__next__)
        # By their digests: whole texts would grow with the square of a long run.
        self._known: dict[bytes, list[int]] = {}

    def add(self, text: str) -> list[int]:
        """Return a reference to a text: how its lines end (0: a line feed, 1: a line feed as JSON
        writes it), then for each stretch of lines the number of the first and their count."""
        name = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if name not in self._known:
            escaped = "\n" not in text
            numbers = list(map(self._lines.__getitem__, text.split("\\n" if escaped else "\n")))
            cuts = [
                place
                for place, (one, next_one) in enumerate(pairwise(numbers), 1)
                if next_one != one + 1
            ]
            stretches = (
                (numbers[begin], end - begin) for begin, end in pairwise((0, *cuts, len(numbers)))
            )
            self._known[name] = [int(escaped), *chain.from_iterable(stretches)]
        return self._known[name]

    @property
    def lines(self) -> list[str]:
        """Return every line, by its number."""
        return list(self._lines)


def pack(value: object) -> str:
    """Return JSON values, deflated, in base64; controls in their texts are escaped."""
    value = without_controls(value)
    try:
        text = to_json(value)
    except PydanticSerializationError:  # half of a surrogate pair
        text = json.dumps(value).encode()
    return base64.b64encode(zlib.compress(mask(text), _LEVEL)).decode()


def describe_items(
    items: Sequence[Item], critical: Sequence[Item], texts: TextTable
) -> list[JsonObject]:
    """Return the requests and tool calls as JSON values for the page's script; long texts are
    references into `texts`."""
    waited_for = {item.key for item in critical}
    described = []
    for item in items:
        if item.kind == "wait":
            continue
        what = (
            _describe_call(item.source, texts)
            if isinstance(item.source, Call)
            else _describe_tool(item.source, texts)
        )
        place = {
            "id": item.key,
            "pass": item.pass_number,
            "phase": item.phase,
            "step": item.step_id,
            "kind": item.kind,
        }
        times = {"at": round(item.start, 2), "s": round(item.end - item.start, 4)}
        described.append(
            {**place, **times, **({"critical": 1} if item.key in waited_for else {}), **what}
        )
        if item.repairs:
            described[-1]["repairs"] = item.repairs
    return described


def _describe_call(call: Call, texts: TextTable) -> JsonObject:
    used = call.usage
    request = call.request or {}
    known = {
        "cached": used.cached_tokens,
        "cache_write": used.cache_write_tokens,
        "reasoning": used.reasoning_tokens,
        "repair": call.attempt,
        "endpoint": call.endpoint,
        "error": call.error,
        "message": call.message,
        "cost": call.cost,
    }
    schema = request.get("schema")
    messages = request.get("messages") or ()
    return {
        "call": call.call,
        "role": call.role,
        "model": call.model,
        "in": used.input_tokens,
        "out": used.output_tokens,
        **{name: value for name, value in known.items() if value},
        "messages": [[str(one["role"]), texts.add(str(one["content"]))] for one in messages],
        "schema": texts.add(to_json(schema).decode()) if schema else None,
        "parameters": _describe_parameters(request),
        "answer": None if call.text is None else texts.add(call.text),
    }


def _describe_parameters(request: JsonMapping) -> JsonObject:
    parameters = dict(request.get("parameters") or {})
    if request.get("sample"):
        parameters["sample"] = request["sample"]
    return {name: value for name, value in parameters.items() if value is not None}


def _describe_tool(line: Line, texts: TextTable) -> JsonObject:
    result: JsonMapping = line["result"]
    output = (
        result["output"]
        if isinstance(result["output"], str)
        else json.dumps(result["output"], ensure_ascii=False)
    )
    return {
        "call": result["tool"],
        "arguments": texts.add(json.dumps(result["arguments"], ensure_ascii=False)),
        "answer": texts.add(output),
        **({"error": result["error_kind"], "message": result["error"]} if result["error"] else {}),
        **({"cut": result["cut"]} if result["cut"] else {}),
    }
