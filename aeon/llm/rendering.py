"""What prompts are rendered with: fences, JSON, and the environment that templates are compiled in."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def fence(value: Any, label: str, **attributes: Any) -> str:
    """Data between tags that it cannot close: `<label attr="..">`, the text verbatim, `</label>`, on lines of its own.

    Where the text holds the closing tag, the label gets the first of the suffixes -2, -3, ... whose closing tag it does
    not hold. None is empty text, other values are rendered as JSON. Attributes that are None are left out. Raises
    ValueError for a label that is no tag name.
    """
    if not _LABEL.fullmatch(label):
        raise ValueError(f"{label!r} cannot be the label of a fence")
    text = value if isinstance(value, str) else "" if value is None else to_json(value)
    # `</ TASK >` may pass for a closing tag.
    closed = {name.lower() for name in re.findall(r"<\s*/\s*([A-Za-z0-9_-]+)\s*>", text)}
    tags = itertools.chain([label], (f"{label}-{number}" for number in itertools.count(2)))
    tag = next(tag for tag in tags if tag.lower() not in closed)
    given = "".join(f' {name}="{_attribute(v)}"' for name, v in attributes.items() if v is not None)
    return f"<{tag}{given}>\n{text}\n</{tag}>"


def _attribute(value: Any) -> str:
    return escape(str(value)).replace("\n", "&#10;").replace("\r", "&#13;")


def to_json(value: Any) -> str:
    """Compact JSON on one line, in the value's own order, not escaped. Models, dataclasses, sets and paths too."""
    return _ENCODER.encode(value)


def to_json_lines(value: Any) -> str:
    """JSON with one item of a list, or one member of a mapping, on each line; lists in a mapping likewise."""
    if isinstance(value, Mapping):
        members = [
            f"{to_json(str(name))}:{(to_json_lines if isinstance(member, list | tuple) else to_json)(member)}"
            for name, member in value.items()
        ]
        return "{\n" + ",\n".join(members) + "\n}" if members else "{}"
    items = ",\n".join(to_json(item) for item in value)
    return f"[\n{items}\n]" if items else "[]"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path | Undefined):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be rendered as JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


def _make_environment() -> Environment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        auto_reload=False,
    )
    environment.filters.update(fence=fence, json=to_json, json_lines=to_json_lines)
    environment.globals.pop("lipsum")
    environment.filters.pop("random")
    return environment


ENVIRONMENT = _make_environment()
"""Sandboxed, and its templates render equal values to equal text. Each library has its own overlay."""
