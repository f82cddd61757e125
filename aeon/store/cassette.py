"""A cassette: the answers of a run in one portable file that a person can read, and a source of answers.

The file is YAML (`aeon.cassette/1`): who answered and when, how the run was started, every request with its answer.
A text of several requests stands once, and is referred to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from aeon.domain.errors import StoreFailed
from aeon.domain.values import Value
from aeon.files.explain import first_mistake
from aeon.files.text import is_too_deep
from aeon.store.cassette_yaml import dump, load
from aeon.store.models import CallPath, Entry, StoreRequest

FORMAT: Literal["aeon.cassette/1"] = "aeon.cassette/1"
_HEAD = (
    "# What a run of Aeon asked, and what it was answered. No key and no network is needed to run it again:\n"
    "#   aeon store.mode=replay store.path=THIS_FILE\n"
)
_SHARED_FROM = 80
_FORMS: Mapping[str, Callable[[Any], str]] = {
    "json": partial(json.dumps, ensure_ascii=False),
    "json_compact": partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
    "json_indented": partial(json.dumps, ensure_ascii=False, indent=2),
}
UsageOrigin = Literal["reported", "estimated", "mixed", "none"]


class Provenance(Value):
    """Who answered, and when. `answered_by` is for a person; `usage` says whether token counts were reported or
    estimated, `first` and `last` are times of answers (ISO 8601, UTC), `aeon` is the version that wrote the file."""

    answered_by: str
    models: tuple[str, ...] = ()
    synthetic: bool = False
    usage: UsageOrigin = "reported"
    first: str
    last: str
    aeon: str = ""
    note: str = ""
    secrets_replaced: dict[str, int] = Field(default_factory=dict)


class Cassette(Value):
    """The contents of a file. `origin` is the run's `run.json`, which says how it was started; empty when unknown."""

    format: Literal["aeon.cassette/1"] = FORMAT
    provenance: Provenance
    origin: dict[str, Any] = Field(default_factory=dict)
    answers: tuple[Entry, ...]


class CassetteSource:
    """The answers of a cassette, in memory; `cassette` is the whole contents of the file."""

    def __init__(self, cassette: Cassette) -> None:
        self.cassette = cassette
        self._by_key: dict[str, Entry] = {}
        self._by_content: dict[str, Entry] = {}
        for entry in cassette.answers:
            self._by_key.setdefault(entry.request.key, entry)
            self._by_content.setdefault(entry.request.content, entry)

    def get(self, key: str) -> Entry | None:
        """The answer to exactly this request from exactly this place."""
        return self._by_key.get(key)

    def by_content(self, content: str) -> Entry | None:
        """The first answer to this request from whatever place."""
        return self._by_content.get(content)

    def entries(self) -> Iterator[Entry]:
        """Every answer, in the order of the run."""
        return iter(self.cassette.answers)

    def close(self) -> None:
        """Nothing is held open."""


def read(path: Path) -> Cassette:
    """The cassette in a file. Raises StoreFailed for a file that cannot be read or is none."""
    try:
        return decode(path.read_bytes().decode())
    except OSError as error:
        raise StoreFailed(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, StoreFailed) as error:
        raise StoreFailed(f"{path} is not a cassette: {error}") from None


def write(cassette: Cassette, path: Path) -> None:
    """Write a file, whole or not at all, in the place of any that is there. Raises StoreFailed."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(encode(cassette).encode())
        part.replace(path)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error.strerror or error}") from None


def encode(cassette: Cassette) -> str:
    """The text of a file, which is read back and compared. Raises StoreFailed when it would not come back as it was."""
    seen: dict[str, Any] = {}

    def share(part: Any) -> Any:
        """The same object for equal long parts, which then stands in the file once."""
        text = json.dumps(part)
        return seen.setdefault(text, part) if len(text) >= _SHARED_FROM else part

    document: dict[str, Any] = {
        "format": FORMAT,
        "provenance": cassette.provenance.model_dump(mode="json", exclude_defaults=True),
        **({"origin": cassette.origin} if cassette.origin else {}),
        "answers": [_to_values(entry, share) for entry in cassette.answers],
    }
    text = _HEAD + dump(document, {id(part) for part in seen.values()})
    if decode(text) != cassette:
        raise StoreFailed("the recording holds something that a cassette cannot carry")
    return text


def decode(text: str) -> Cassette:
    """The cassette of a text. Raises StoreFailed with what is wrong."""
    value = load(text)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        said = value.get("format") if isinstance(value, dict) else None
        raise StoreFailed(
            f"it does not say `format: {FORMAT}`, which this version of Aeon reads, but {said}"
        )
    if not isinstance(value.get("answers"), list):
        raise StoreFailed("its answers are no list")
    entries = [_to_entry(number, entry) for number, entry in enumerate(value["answers"], start=1)]
    value.pop("shared", None)
    try:
        return Cassette.model_validate({**value, "answers": entries})
    except pydantic.ValidationError as error:
        raise StoreFailed(first_mistake(error)) from None


def _to_values(entry: Entry, share: Callable[[Any], Any]) -> dict[str, Any]:
    """An entry as the file has it: long parts of the request last, an answer that is JSON text as its value."""
    answer, body = dict(entry.answer), entry.request.body
    shown = _show_text(answer.pop("text")) if isinstance(answer.get("text"), str) else {}
    request = {name: share(body[name]) for name in sorted(body, key=("schema", "messages").count)}
    if "messages" in body:
        said = [(message["role"], message["content"]) for message in body["messages"]]
        request["messages"] = [{"role": role, "content": share(content)} for role, content in said]
    return {
        **({} if entry.request.kind == "model" else {"kind": entry.request.kind}),
        "path": entry.request.path.model_dump(mode="json", exclude_defaults=True),
        "time": entry.time,
        "request": request,
        "answer": answer,
        **shown,
    }


def _show_text(text: str) -> dict[str, Any]:
    """A text, as the value that it is JSON of where its bytes can be made of that again."""
    try:
        value = json.loads(text)
        if isinstance(value, dict) and value and not is_too_deep(value):
            exact = [form for form, write_json in _FORMS.items() if write_json(value) == text]
            return {exact[0]: value} if exact else {"text": text}
    except (ValueError, RecursionError):
        pass
    return {"text": text}


class _RecordedMessage(BaseModel):
    role: str
    content: InstanceOf[str]


class _Checked(BaseModel):
    """What the program relies on in a model's request and answer, since a cassette may hold anything."""

    model_config = ConfigDict(strict=True, protected_namespaces=())
    messages: list[_RecordedMessage]
    model: str = ""
    usage: dict[str, int] = {}
    text: InstanceOf[str] | None = None


def _to_entry(number: int, value: Any) -> Entry:
    try:
        texts = [value["text"]] if "text" in value else []
        texts += [write_json(value[form]) for form, write_json in _FORMS.items() if form in value]
        answer = {**value["answer"], **({"text": texts[0]} if texts else {})}
        path = CallPath.model_validate(value["path"])
        request = StoreRequest(kind=value.get("kind", "model"), path=path, body=value["request"])
        entry = Entry(request=request, answer=answer, time=value["time"])
        if request.kind == "model":
            _Checked.model_validate({**request.body, **entry.answer})
    except pydantic.ValidationError as error:
        raise StoreFailed(f"answer {number}: {first_mistake(error)}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreFailed(
            f"answer {number} is no mapping of path, time, request and answer: {error}"
        ) from None
    return entry
