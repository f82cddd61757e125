"""Cassettes of the earlier YAML format, `aeon.cassette/1`, which are read but never written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from aeon.domain.errors import StoreFailed
from aeon.domain.values import JsonObject
from aeon.files.located_yaml import LocatedYaml, UnreadableFile

FORMAT = "aeon.cassette/1"
_HEAD = 1000
# That format had an answer in JSON as a value, under the name of its text form.
_FORMS: Mapping[str, Callable[[Any], str]] = {
    "json": partial(json.dumps, ensure_ascii=False),
    "json_compact": partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
    "json_indented": partial(json.dumps, ensure_ascii=False, indent=2),
}


def is_yaml(data: bytes) -> bool:
    """Whether a file declares that format."""
    return f"\nformat: {FORMAT}\n".encode() in b"\n" + data[:_HEAD]


def read_values(data: bytes) -> tuple[JsonObject, list[Any]]:
    """Return a file's header and the values of its answers, in the form of today's lines. Raises
    StoreFailed."""
    try:
        header = LocatedYaml(Path("cassette"), data).value
    except UnreadableFile as error:
        place = f"line {error.position.line}: {error.problem}"
        raise StoreFailed(f"it cannot be read as YAML: {place}") from None
    answers = header.pop("answers", None)
    if not isinstance(answers, list):
        raise StoreFailed("its answers are no list")
    return header, [_to_line(answer) for answer in answers]


def _to_line(value: object) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("answer"), dict):
        return value
    answer = dict(value["answer"])
    if "text" in value:
        answer["text"] = value["text"]
    for form, write_json in _FORMS.items():
        if form in value:
            answer["text"] = write_json(value[form])
    return {"kind": "model", **value, "answer": answer}
