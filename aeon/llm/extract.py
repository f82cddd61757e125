"""JSON out of a model's answer. The only place in the project that finds it.

It finds JSON; it never mends it. What is not JSON goes to `aeon.supervisor.repair.Supervisor.repair_json()`.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aeon.files.nesting import TOO_DEEP, is_too_deep

_REASONING = r"(?:think|thinking|thought|reasoning|reflection|seed:think)"
_OPENED = re.compile(rf"\s*(?:<{_REASONING}>|\[THINK\])", re.IGNORECASE)
_CLOSED = re.compile(rf"</{_REASONING}>|\[/THINK\]", re.IGNORECASE)
_CHANNELS = re.compile(r"\s*<\|(?:channel|start)\|>")
_ANSWER_CHANNEL = re.compile(r"<\|channel\|>\s*(?:final|commentary\s+to=)[^{]{0,200}?<\|message\|>")
_FENCE = re.compile(r"^[ \t]*```([^\n`]*)$", re.MULTILINE)
# What cannot be the beginning of JSON is passed over, as braces in prose are.
_BEGINNING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*[\[{"\d\-tfn\]])""")
_MARK = re.compile(r'["{}\[\]]')
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*+"', re.DOTALL)
_OF_A_CALL = frozenset({"id", "index", "type", "name", "function", "arguments", "parameters", "input"})
_OF_TEXT = ("text", "output_text")

Accepts = Callable[[Any], bool]


class ExtractError(ValueError):
    """There is no usable JSON in the text. `position` is the offset in characters where reading failed."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def extract_json(text: str, accepts: Accepts | None = None) -> Any:
    """The JSON value in a model's text: the text itself, after its reasoning, in a code fence, amid prose, in a tool
    call.

    Reasoning is `<think>...</think>` and its like, or the channels before the final one. Of several values the first
    that `accepts` says yes to is returned; where it says no to all, or is not given, the first fenced one, else the
    first object, else the first array. A value written as a tool call stands for its arguments if those are accepted
    and the whole is not. Duplicate keys, NaN, infinite numbers, lone surrogates and more than 200 levels of nesting
    are refused. Raises ExtractError with the position (FR-029).
    """
    try:
        return _unwrap(_decode(text.removeprefix("\ufeff")), accepts)
    except ExtractError as error:
        failures = [error] if text.lstrip().startswith(("{", "[")) else []
    rejected: list[Any] = []
    begin = _answer_start(text)
    for found in _candidates(text, begin, failures):
        value = _unwrap(found, accepts)
        if accepts is None or accepts(value):
            return value
        rejected.append(value)
    if rejected:
        return rejected[0]
    raise failures[0] if failures else ExtractError("there is no JSON object in the answer", begin)


def read_json(text: str) -> Any:
    """The value that a text is as a whole, such as arguments that a model wrote as JSON text.

    Raises ExtractError with the position, also for what `extract_json` refuses.
    """
    return _decode(text)


def is_bare(text: str) -> bool:
    """Whether a text is JSON and nothing else, reasoning before it aside: what constrained decoding gives."""
    for begin in (0, _answer_start(text)):
        try:
            _decode(text[begin:].removeprefix("\ufeff"))
        except ExtractError:
            continue
        return True
    return False


def text_of(message: Mapping[str, Any], name: str = "") -> str:
    """The text of a chat message: its content, whole or in parts; where there is no JSON in that, the arguments of its
    tool call, of the one called `name` if there are several. Empty if there is neither."""
    content, arguments = _content(message.get("content")), _call_arguments(message, name)
    if arguments is None:
        return content
    try:
        extract_json(content)
    except ExtractError:
        return arguments
    return content


def _content(content: Any) -> str:
    """The text of a message's content, without parts of reasoning; the JSON of content that is an object."""
    if isinstance(content, list):
        parts = (part if isinstance(part, dict) else {"text": part} for part in content)
        texts = (part.get("text") for part in parts if part.get("type", "text") in _OF_TEXT)
        return "".join(text for text in texts if isinstance(text, str))
    return json.dumps(content) if isinstance(content, dict) else content or ""


def _call_arguments(message: Mapping[str, Any], name: str) -> str | None:
    calls = [call.get("function") for call in message.get("tool_calls") or () if isinstance(call, dict)]
    functions = [function for function in (*calls, message.get("function_call")) if isinstance(function, dict)]
    meant = [function for function in functions if function.get("name") == name] or functions
    if not meant:
        return None
    arguments = meant[0].get("arguments")
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _unwrap(value: Any, accepts: Accepts | None) -> Any:
    """The arguments, where the value is a tool call that is not accepted as it is."""
    if accepts is None or (inner := _arguments_in(value)) is None or accepts(value):
        return value
    return inner if accepts(inner) else value


def _arguments_in(value: Any) -> Any:
    """The arguments of a tool call written as JSON (`{"name": ..., "arguments": {...}}` and its like); None if it is
    none."""
    if isinstance(value, dict) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or not value.keys() <= _OF_A_CALL:
        return None
    if isinstance(value.get("function"), dict):
        return _arguments_in(value["function"])
    inner = next((value[key] for key in ("arguments", "parameters", "input") if key in value), None)
    try:
        return _decode(inner) if isinstance(inner, str) else inner
    except ExtractError:
        return None


def _answer_start(text: str) -> int:
    """Where the answer may begin: after the reasoning. A closing tag within brackets is part of what they hold."""
    if _CHANNELS.match(text):
        channel = _ANSWER_CHANNEL.search(text)
        return channel.end() if channel else len(text)
    opened = _OPENED.match(text)
    if opened:
        closing = _CLOSED.search(text, opened.end())
        return closing.end() if closing else len(text)
    begin, position = 0, 0
    for start, end in (*_spans(text, 0), (len(text), len(text))):
        for mark in _CLOSED.finditer(text, position, start):
            begin = mark.end()
        position = end
    return begin


def _candidates(text: str, begin: int, failures: list[ExtractError]) -> Iterator[Any]:
    """The JSON in the text from `begin` on: all of it, each fenced block, each object in prose, each array in prose.

    What looks like an object or an array in prose and cannot be read is added to `failures`.
    """
    for start, end in ((begin, len(text)), *_fenced(text, begin)):
        try:
            yield _decode(text[start:end])
        except ExtractError:
            continue
    arrays: list[Any] = []
    for start, end in _spans(text, begin):
        try:
            value = _decode(text[start:end])
        except ExtractError as error:
            failures.append(_moved(error, start, text))
            continue
        if isinstance(value, dict):
            yield value
        else:
            arrays.append(value)
    yield from arrays


def _fenced(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Where the content of each code fence begins and ends."""
    opened: int | None = None
    for mark in _FENCE.finditer(text, begin):
        if opened is None:
            opened = mark.end()
        elif not mark.group(1).strip():
            yield opened, mark.start()
            opened = None


def _spans(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Where brackets open and close, outermost only: a part of a broken object must never pass for the answer."""
    beginning = _BEGINNING.search(text, start)
    while beginning:
        end = _balanced(text, beginning.start())
        yield beginning.start(), end
        beginning = _BEGINNING.search(text, end)


def _balanced(text: str, start: int) -> int:
    """The offset after the bracket that closes the one at `start`; the end of the text if none does."""
    depth, mark = 0, _MARK.search(text, start)
    while mark:
        position = mark.end()
        if mark.group() == '"':
            string = _STRING.match(text, mark.start())
            if string is None:
                return len(text)
            position = string.end()
        else:
            depth += 1 if mark.group() in "{[" else -1
            if depth == 0:
                return position
        mark = _MARK.search(text, position)
    return len(text)


def _decode(text: str) -> Any:
    """The text as JSON; ExtractError with a position in it."""
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ExtractError(f"not valid JSON: {error}", error.pos) from None
    except RecursionError:
        raise ExtractError(TOO_DEEP) from None
    except UnicodeEncodeError:
        raise ExtractError("a \\u escape is half of a surrogate pair, which is no character") from None
    except ValueError as error:
        raise ExtractError(f"not usable JSON: {error}") from None
    if is_too_deep(value):
        raise ExtractError(TOO_DEEP)
    return value


def _moved(error: ExtractError, offset: int, text: str) -> ExtractError:
    """The error of a part of the text, with its position in the whole."""
    position = offset + error.position
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    message = re.sub(r": line \d+ column \d+ \(char \d+\)$", "", error.message)
    return ExtractError(f"{message}: line {line} column {column} (char {position})", position)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {name!r} appears twice in one object")
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
