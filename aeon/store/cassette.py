"""A cassette: a run's answers in one portable, readable file, which can be replayed.

The file is JSON Lines (`aeon.cassette/2`). The first line is the header: who answered and when, and
how the run was started. Each further line is a request with its answer, in the order of the run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from aeon.domain.errors import StoreFailed
from aeon.domain.values import JsonObject, Value
from aeon.files.explain import first_mistake
from aeon.files.jsonl import decode_line, encode_line
from aeon.files.text import TOO_DEEP, is_too_deep
from aeon.store import cassette_yaml
from aeon.store.models import CallPath, Entry, StoreRequest

FORMAT: Literal["aeon.cassette/2"] = "aeon.cassette/2"
UsageOrigin = Literal["reported", "estimated", "mixed", "none"]


class Provenance(Value):
    """Who answered, and when. `answered_by` is for readers; `usage` says whether token counts were
    reported or estimated; `first` and `last` are times of answers (ISO 8601, UTC); `aeon` is the
    version that wrote the file."""

    answered_by: str
    models: tuple[str, ...] = ()
    synthetic: bool = False
    usage: UsageOrigin = "reported"
    first: str
    last: str
    aeon: str = ""
    note: str = ""
    secrets_replaced: dict[str, int] = Field(default_factory=dict)


class RecordedEnd(Value):
    """How the recorded run ended: its termination reason, and SHA-256, hex, of its answer."""

    termination_reason: str
    answer_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @classmethod
    def of_answer(cls, termination_reason: str, answer: str) -> RecordedEnd:
        """Return the end of a run with this answer."""
        digest = hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()
        return cls(termination_reason=termination_reason, answer_sha256=digest)


class Cassette(Value):
    """The contents of a file. `origin` is the run's `run.json`, which says how it was started;
    empty if unknown. `files` are the included input files, as base64 by SHA-256. `end` is None if
    unknown, as in files of earlier versions."""

    format: Literal["aeon.cassette/2"] = FORMAT
    provenance: Provenance
    origin: JsonObject = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    end: RecordedEnd | None = None
    answers: tuple[Entry, ...]


class CassetteSource:
    """The answers of a cassette, in memory; `cassette` is the complete contents of the file."""

    def __init__(self, cassette: Cassette) -> None:
        self.cassette = cassette
        self._by_key: dict[str, Entry] = {}
        self._by_content: dict[str, Entry] = {}
        for entry in cassette.answers:
            self._by_key.setdefault(entry.request.key, entry)
            self._by_content.setdefault(entry.request.content, entry)

    def get(self, key: str) -> Entry | None:
        """Return the answer to exactly this request from exactly this place."""
        return self._by_key.get(key)

    def by_content(self, content: str) -> Entry | None:
        """Return the first answer to this request from any place."""
        return self._by_content.get(content)

    def entries(self) -> Iterator[Entry]:
        """Return every answer, in the order of the run."""
        return iter(self.cassette.answers)

    def close(self) -> None:
        """Do nothing: no file is held open."""


def read(path: Path) -> Cassette:
    """Read a cassette file. Raises StoreFailed for a file that cannot be read or is no cassette."""
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise StoreFailed(f"{path} cannot be read: {error.strerror or error}") from None
    except StoreFailed as error:
        raise StoreFailed(f"{path} is not a cassette: {error.message}", hint=error.hint) from None


def write(cassette: Cassette, path: Path) -> None:
    """Write a file completely or not at all, replacing an existing one. Raises StoreFailed."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(encode(cassette))
        part.replace(path)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error.strerror or error}") from None


def encode(cassette: Cassette) -> bytes:
    """Encode a cassette as a file's bytes, and verify that they decode to the same cassette. Raises
    StoreFailed if they do not."""
    provenance = cassette.provenance.model_dump(mode="json", exclude_defaults=True)
    header = {"format": FORMAT, "provenance": provenance, "origin": cassette.origin}
    if cassette.end is not None:
        header["end"] = cassette.end.model_dump(mode="json")
    if cassette.files:
        header["files"] = cassette.files
    try:
        lines = [encode_line(header), *map(_encode_entry, cassette.answers)]
    except ValueError as error:
        raise StoreFailed(f"the recording holds what JSON does not have: {error}") from None
    data = b"".join(lines)
    if decode(data) != cassette:
        raise StoreFailed("the recording holds something that a cassette cannot carry")
    return data


def decode(data: bytes) -> Cassette:
    """Decode a cassette from a file's bytes. Raises StoreFailed with the problem."""
    if cassette_yaml.is_yaml(data):
        header, values = cassette_yaml.read_values(data)
    else:
        first, *lines = data.split(b"\n")
        header = _decode_header(first)
        values = [
            _decode(line, f"line {number}") for number, line in enumerate(lines, start=2) if line
        ]
    answers = [_to_entry(number, value) for number, value in enumerate(values, start=1)]
    try:
        return Cassette.model_validate({**header, "format": FORMAT, "answers": answers})
    except pydantic.ValidationError as error:
        raise StoreFailed(first_mistake(error)) from None


def _decode_header(line: bytes) -> JsonObject:
    header = _decode(line, "line 1") if line.startswith(b"{") else None
    form = header.get("format") if isinstance(header, dict) else None
    if not isinstance(header, dict) or form != FORMAT:
        other = f", but {form}" if form else ""
        raise StoreFailed(
            f"its first line does not say the format {FORMAT}, which this version of "
            f"Aeon reads{other}"
        )
    return header


def _decode(line: bytes, place: str) -> Any:
    try:
        value = decode_line(line)
    except ValueError as error:
        raise StoreFailed(f"{place} is not JSON: {error}") from None
    if is_too_deep(value):
        raise StoreFailed(f"{place} is {TOO_DEEP}")
    return value


def _encode_entry(entry: Entry) -> bytes:
    """Encode a line with the short fields first, so that it is easy to skim."""
    request = entry.request
    line = {
        "path": request.path.model_dump(mode="json", exclude_defaults=True),
        "kind": request.kind,
        "time": entry.time,
        "answer": entry.answer,
        "request": request.body,
    }
    return encode_line(line)


class _RecordedMessage(BaseModel):
    role: str
    content: InstanceOf[str]


class _Checked(BaseModel):
    """The parts of a model's request and answer that the program relies on, because a cassette may
    contain anything."""

    model_config = ConfigDict(strict=True, protected_namespaces=())
    messages: list[_RecordedMessage]
    model: str = ""
    usage: dict[str, int] = {}
    text: InstanceOf[str] | None = None


def _to_entry(number: int, value: Any) -> Entry:
    try:
        path = CallPath.model_validate(value["path"])
        request = StoreRequest(kind=value["kind"], path=path, body=value["request"])
        entry = Entry(request=request, answer=value["answer"], time=value["time"])
        if request.kind == "model":
            _Checked.model_validate({**request.body, **entry.answer})
    except pydantic.ValidationError as error:
        raise StoreFailed(f"answer {number}: {first_mistake(error)}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreFailed(
            f"answer {number} is no object of path, kind, time, answer and request: {error}"
        ) from None
    return entry
