"""A request taken apart, so that what many requests share is kept once; and put together again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aeon.store.models import canonical, digest

SHORTEST = 256
"""Characters: a shorter text costs less where it is than its digest."""

Places = list[tuple[list[str | int], str]]


def condensed(request: dict[str, Any]) -> tuple[dict[str, Any], Places, dict[str, str]]:
    """The request with null in place of what is long, where that was, by digest, and those texts as JSON."""
    places: Places = []
    texts: dict[str, str] = {}

    def kept(value: Any, path: list[str | int]) -> Any:
        if isinstance(value, str) or (isinstance(value, dict) and len(path) == 1):
            text = json_text(value)
            if len(text) >= SHORTEST:
                name = digest(value)
                places.append((path, name))
                texts[name] = text
                return None
        return _each(value, path, kept)

    return {name: kept(value, [name]) for name, value in request.items()}, places, texts


def restored(request: dict[str, Any], places: Places, text: Callable[[str], str]) -> dict[str, Any]:
    """The whole request again; `text` gives the JSON that a digest stands for."""
    for path, name in places:
        *way, last = path
        target: Any = request
        for part in way:
            target = target[part]
        target[last] = json.loads(text(name))
    return request


def json_text(value: Any) -> str:
    """Canonical JSON that UTF-8 can hold: a lone surrogate, which a model may write, as its escape."""
    text = canonical(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def _each(value: Any, path: list[str | int], kept: Callable[[Any, list[str | int]], Any]) -> Any:
    if isinstance(value, dict):
        return {name: kept(inner, [*path, name]) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [kept(inner, [*path, index]) for index, inner in enumerate(value)]
    return value
