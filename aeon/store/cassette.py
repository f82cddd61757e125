"""A cassette: the answers of a run in one portable file that a person can read, and a source of answers.

The file is YAML (`aeon.cassette/1`): who answered and when, how the run was started, every request with its answer.
A text of several requests stands once, under `shared`, and is referred to. An answer that is JSON text is written as
the value, where its exact bytes can be made from that.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from aeon.domain.errors import StoreFailed
from aeon.domain.values import Value
from aeon.store.cassette_yaml import Writer, beyond_yaml, load
from aeon.store.models import CallPath, Entry, StoreRequest
from aeon.store.shapes import find_problem, first_problem

FORMAT: Literal["aeon.cassette/1"] = "aeon.cassette/1"
_HEAD = (
    "# What a run of Aeon asked, and what it was answered. No key and no network is needed to run it again:",
    "#   aeon store.mode=replay store.path=THIS_FILE",
)
_SHARED_FROM = 80
_FORMS: Mapping[str, Callable[[Any], str]] = {
    "json": partial(json.dumps, ensure_ascii=False),
    "json_compact": partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
    "json_indented": partial(json.dumps, ensure_ascii=False, indent=2),
}
UsageOrigin = Literal["reported", "estimated", "mixed", "none"]


class Provenance(Value):
    """Who answered, and when.

    `answered_by` is for a person; `models` are as the answers name them. `usage` says whether the token counts were
    reported by the server or estimated. `first` and `last` are the times of answers (ISO 8601, UTC), `aeon` the version
    that wrote the file. `secrets_replaced` counts the replaced values by environment variable.
    """

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
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise StoreFailed(f"{path} cannot be read: {why}") from None
    try:
        return decode(text)
    except StoreFailed as error:
        raise StoreFailed(f"{path} is not a cassette: {error.message}", hint=error.hint) from None


def write(cassette: Cassette, path: Path, *, force: bool = False) -> None:
    """Write a file, whole or not at all. Raises StoreFailed when it is there already (unless `force`), or cannot be."""
    text = encode(cassette)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not force:
            raise StoreFailed(f"{path} is there already", hint="Choose another name, or say --force to replace it.")
        part.write_bytes(text.encode())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise StoreFailed(f"{path} cannot be written: {error.strerror or error}") from None


def encode(cassette: Cassette) -> str:
    """The text of a file, which is read back and compared. Raises StoreFailed when it would not come back as it was."""
    shared = _find_shared(cassette.answers)
    writer = Writer({text: name for text, (name, _) in shared.items()})
    provenance = cassette.provenance.model_dump(mode="json", exclude_defaults=True)
    head = {"format": FORMAT, "provenance": provenance, **({"origin": cassette.origin} if cassette.origin else {})}
    lines = [*_HEAD, *Writer().mapping(head)]
    if shared:
        lines.append("shared:")
        for name, value in shared.values():
            first, *rest = Writer().node(value, 0, name)
            lines += [f"- {first}", *rest]
    lines.append("answers:" if cassette.answers else "answers: []")
    for entry in cassette.answers:
        lines += ["", *writer.sequence([_to_values(entry)])]
    text = "\n".join([*lines, ""])
    if decode(text) != cassette:
        raise StoreFailed("the recording holds something that a cassette cannot carry")
    return text


def decode(text: str) -> Cassette:
    """The cassette of a text. Raises StoreFailed with what is wrong."""
    value = load(text)
    if not isinstance(value, dict) or not str(value.get("format", "")).startswith("aeon.cassette/"):
        raise StoreFailed(f"it does not say `format: {FORMAT}`")
    if value["format"] != FORMAT:
        raise StoreFailed(f"its format is {value['format']}; this version of Aeon reads {FORMAT}")
    answers = value.get("answers")
    if not isinstance(answers, list):
        raise StoreFailed("its answers are no list")
    entries = [_to_entry(number, entry) for number, entry in enumerate(answers, start=1)]
    try:
        return Cassette.model_validate({**_without(value, "shared"), "answers": entries})
    except pydantic.ValidationError as error:
        raise StoreFailed(first_problem(error)) from None


def _to_values(entry: Entry) -> dict[str, Any]:
    """An entry as in a file: its text last, in the most readable form that is exact."""
    written = {
        **({} if entry.request.kind == "model" else {"kind": entry.request.kind}),
        "path": entry.request.path.model_dump(mode="json", exclude_defaults=True),
        "time": entry.time,
        "request": _order(entry.request.body),
        "answer": _without(entry.answer, "text"),
    }
    text = entry.answer.get("text")
    if isinstance(text, str):
        form, value = _most_readable(text)
        return {**written, form: value}
    return written if "text" not in entry.answer else {**written, "answer": entry.answer}


def _order(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request with schema and messages last, and each message with its role first."""
    ordered = dict(request)
    for name in ("schema", "messages"):
        if name in ordered:
            ordered[name] = ordered.pop(name)
    if isinstance(ordered.get("messages"), list):
        ordered["messages"] = [
            {"role": item["role"], **item} if isinstance(item, dict) and "role" in item else item
            for item in ordered["messages"]
        ]
    return ordered


def _to_entry(number: int, value: Any) -> Entry:
    try:
        texts = {"text": value["text"]} if "text" in value else {}
        texts.update(("text", dump(value[form])) for form, dump in _FORMS.items() if form in value)
        path = CallPath.model_validate(value["path"])
        request = StoreRequest(kind=value.get("kind", "model"), path=path, body=value["request"])
        entry = Entry(request=request, answer={**value["answer"], **texts}, time=value["time"])
    except pydantic.ValidationError as error:
        raise StoreFailed(f"answer {number}: {first_problem(error)}") from None
    except KeyError as error:
        raise StoreFailed(f"answer {number} lacks something: {error}") from None
    except (TypeError, AttributeError):
        raise StoreFailed(f"answer {number} is no mapping of path, time, request and answer") from None
    if found := find_problem(request.kind, request.body, entry.answer):
        raise StoreFailed(f"answer {number}: {found}")
    return entry


def _most_readable(text: str) -> tuple[str, Any]:
    try:
        value = json.loads(text)
        shown = isinstance(value, dict) and bool(value) and not beyond_yaml(value)
        form = next((form for form, dump in _FORMS.items() if shown and dump(value) == text), None)
    except (ValueError, RecursionError):
        form = None
    return ("text", text) if form is None else (form, value)


def _find_shared(answers: Iterable[Entry]) -> dict[str, tuple[str, Any]]:
    """The values of several requests by their JSON text, each with its name in the file, in the order of first use."""
    found: dict[str, tuple[str, Any]] = {}
    times: Counter[str] = Counter()
    for entry in answers:
        for place, value in _parts(_order(entry.request.body)):
            text = json.dumps(value)
            if len(text) >= _SHARED_FROM:
                times[text] += 1
                found.setdefault(text, (f"{entry.request.path.call}_{place}", value))
    taken: Counter[str] = Counter()
    kept: dict[str, tuple[str, Any]] = {}
    for text, (name, value) in found.items():
        if times[text] > 1:
            name = "".join(ch if ch.isascii() and ch.isalnum() else "_" for ch in name)
            taken[name] += 1
            kept[text] = (name if taken[name] == 1 else f"{name}_{taken[name]}", value)
    return kept


def _parts(request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values that may be shared: the contents of messages, and every other value of a request as a whole."""
    for name, value in request.items():
        if name != "messages" or not isinstance(value, list):
            yield name, value
            continue
        for message in value:
            if isinstance(message, dict):
                yield str(message.get("role", "message")), message.get("content")


def _without(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


def open_cassette(path: Path) -> CassetteSource:
    """The answers of the cassette in a file. Raises StoreFailed for a file that cannot be read or is none."""
    return CassetteSource(read(path))
