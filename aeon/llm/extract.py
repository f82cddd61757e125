"""Finds JSON in a model's answer; it is never repaired."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.text import TOO_DEEP, is_too_deep

_REASONING = r"(?:think|thinking|thought|reasoning|reflection|seed:think)"
_OPENED = re.compile(rf"\s*(?:<{_REASONING}>|\[THINK\])", re.IGNORECASE)
_CLOSED = re.compile(rf"</{_REASONING}>|\[/THINK\]", re.IGNORECASE)
_CHANNELS = re.compile(r"\s*<\|(?:channel|start)\|>")
_ANSWER_CHANNEL = re.compile(r"<\|channel\|>\s*(?:final|commentary\s+to=)[^{]{0,200}?<\|message\|>")
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
# Brackets in prose are skipped.
_BEGINNING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*(?:[\[{"\]]|-?\d|(?:true|false|null)\b))""")
_OF_A_CALL = frozenset(
    {"tool_calls", "id", "index", "type", "name", "function", "arguments", "parameters", "input"}
)
MOST_BROKEN = 20  # stop searching after this many broken objects

Accepts = Callable[[Any], bool]


class ExtractError(ValueError):
    """The text has no usable JSON. `position` is the character offset where reading failed."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class NoJSON(ExtractError):
    """The text has no JSON, not even broken JSON."""


def extract_json(text: str, accepts: Accepts | None = None) -> Any:
    """Return the JSON value in a model's text: the text itself, or, after its reasoning, a value in
    a code fence, in prose or in a tool call.

    Of several values, it is the first that `accepts` accepts, as it stands or as a call's
    arguments; otherwise, if none is broken, the first object, else the first array. Values in code
    fences come before values in prose. Raises ExtractError with the position (FR-029).
    """
    text = text.removeprefix("\ufeff")
    values: list[Any] = []
    errors: list[ExtractError] = []
    try:
        values.append(read_json(text))
    except ExtractError as error:
        begin = _answer_start(text)
        values, errors = _find_values(text, begin)
        if not values:
            is_json = text.lstrip().startswith(("{", "["))
            errors.append(
                error if is_json else NoJSON("there is no JSON object in the answer", begin)
            )
    if accepts is not None:
        both = (form for value in values for form in (value, _call_arguments(value)))
        forms = [form for form in both if form is not None]
        accepted = next(filter(accepts, forms), None)
        if accepted is not None:
            return accepted
    if errors:
        raise errors[0]
    return values[0]


def read_json(text: str) -> Any:
    """Parse a text that is JSON as a whole. Raises ExtractError with the position."""
    return _decode(text)[0]


def read_bare(text: str) -> Any:
    """Parse a text that is JSON apart from reasoning before it, as constrained decoding returns.
    Raises ExtractError."""
    try:
        return read_json(text)
    except ExtractError:
        return read_json(text[_answer_start(text) :])


def text_of(message: JsonMapping, name: str = "") -> str:
    """Return the text of a chat message: its content, or, if that contains no JSON, the arguments
    of its tool call; of several calls, the one called `name`."""
    content = _content_text(message.get("content") or "")
    functions = _list_functions(message)
    if not functions:
        return content
    try:
        extract_json(content)
    except ExtractError:
        named = (function for function in functions if function.get("name") == name)
        arguments = next(named, functions[0]).get("arguments")
        return arguments if isinstance(arguments, str) else json.dumps(arguments)
    return content


def _content_text(content: object) -> str:
    if isinstance(content, dict):
        return json.dumps(content)
    if not isinstance(content, list):
        return str(content)
    return "".join(map(_part_text, content))


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        part = {"text": part}
    text = part.get("text")
    is_text = part.get("type", "text") in ("text", "output_text") and isinstance(text, str)
    return text if is_text else ""


def _list_functions(message: JsonMapping) -> list[JsonObject]:
    calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
    functions = [*(call.get("function") for call in calls), message.get("function_call")]
    return [function for function in functions if isinstance(function, dict)]


def _call_arguments(value: object) -> Any:
    """Return the arguments of a call that a model wrote as text; None if it is no call."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or not value.keys() <= _OF_A_CALL:
        return None
    for inner in ("tool_calls", "function"):
        if value.get(inner):
            return _call_arguments(value[inner])
    for name in ("arguments", "parameters", "input"):
        if name in value:
            return _read_arguments(value[name])
    return None


def _read_arguments(given: object) -> Any:
    try:
        return read_json(given) if isinstance(given, str) else given
    except ExtractError:
        return None


def _answer_start(text: str) -> int:
    if _CHANNELS.match(text):
        end_of_reasoning = _ANSWER_CHANNEL.search(text)
    elif opened := _OPENED.match(text):
        end_of_reasoning = _CLOSED.search(text, opened.end())
    else:
        return max((mark.end() for mark in _CLOSED.finditer(text)), default=0)
    return end_of_reasoning.end() if end_of_reasoning else len(text)


def _find_values(text: str, begin: int) -> tuple[list[Any], list[ExtractError]]:
    """Return the objects and arrays of a text, objects and fenced values first, and the errors of
    the broken ones."""
    errors: list[ExtractError] = []
    ranked: list[tuple[bool, bool, Any]] = []
    fences = [fence.span(1) for fence in _FENCED.finditer(text, begin)]
    for place, found in _read_all(text, begin):
        if isinstance(found, ExtractError):
            errors.append(found)
            if len(errors) == MOST_BROKEN:
                break
            continue
        while fences and fences[0][1] <= place:
            del fences[0]
        is_fenced = bool(fences) and fences[0][0] <= place
        ranked.append((not isinstance(found, dict), not is_fenced, found))
    ranked.sort(key=itemgetter(0, 1))
    return [value for _, _, value in ranked], errors


def _read_all(text: str, start: int) -> Iterator[tuple[int, Any]]:
    while beginning := _BEGINNING.search(text, start):
        try:
            value, start = _decode(text, beginning.start())
            yield beginning.start(), value
        except ExtractError as error:
            yield beginning.start(), error
            # On from where reading failed: each character is read once, whatever is broken.
            start = error.position if error.position > beginning.start() else len(text)


def _decode(text: str, start: int | None = None) -> tuple[Any, int]:
    position = start or 0
    try:
        if start is None:
            value = _DECODER.decode(text)
            end = len(text)
        else:
            value, end = _DECODER.raw_decode(text, start)
        # Only an escape can be half of a surrogate pair, which the encoding refuses.
        if "\\u" in text[position:end]:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ExtractError(f"not valid JSON: {error}", error.pos) from None
    except RecursionError:
        raise ExtractError(TOO_DEEP, position) from None
    except UnicodeEncodeError:
        raise ExtractError(
            "a \\u escape is half of a surrogate pair, which is no character", position
        ) from None
    except ValueError as error:
        raise ExtractError(f"not usable JSON: {error}", position) from None
    if is_too_deep(value):
        raise ExtractError(TOO_DEEP, position)
    return value, end


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    value = dict(pairs)
    # Python's decoder takes the last of two; nobody knows which one the model meant.
    if len(value) != len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {name!r} appears twice in one object")
    return value


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):  # NaN and Infinity too, which Python's decoder takes
        raise ValueError(f"{digits} is no JSON number, or is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_number, parse_float=_number)
