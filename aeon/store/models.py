"""The values of the store: an answer, its request, and the request's place in the run."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Literal, get_args

from pydantic import NonNegativeInt

from aeon.domain.values import JsonMapping, JsonObject, Value
from aeon.schema.json_schema import once_per_schema

Kind = Literal["model", "tool", "check", "person", "memory", "begun"]
"""Who answers; `begun` is no answer: it marks that a tool with effects was about to be called, or
what a server calls the answer that it was about to make."""
KINDS: frozenset[Kind] = frozenset(get_args(Kind))
FOUND_OUT = "found_out"
"""The key, in a stored answer, of the beliefs about endpoints: kept for a resumed run, not in a
cassette."""


class CallPath(Value):
    """The place of a request in a run. `call` is the call's or the tool's name; `attempt` is 0 for
    the call itself and 1, 2 for its repairs; `occurrence` numbers, from 0, equal requests from the
    same place."""

    pass_number: NonNegativeInt
    phase: str
    call: str
    step_id: str | None = None
    attempt: NonNegativeInt = 0
    occurrence: NonNegativeInt = 0


class StoreRequest(Value):
    """A logical request, before any server's dialect, as JSON values: for a model its model,
    messages, schema, strict, parameters and sample; for a tool its name and arguments; for a check
    its settings and subject; for a person the question; for memory nothing."""

    kind: Kind
    path: CallPath
    body: JsonObject

    @cached_property
    def content(self) -> str:
        """SHA-256 (hex) of the request without its place."""
        if "schema" not in self.body:
            return digest([self.kind, self.body])
        # Gives the same text, but writes a schema only once for many requests.
        before = canonical({name: value for name, value in self.body.items() if name < "schema"})
        after = canonical({name: value for name, value in self.body.items() if name > "schema"})
        members = (before[1:-1], f'"schema":{canonical_schema(self.body["schema"])}', after[1:-1])
        return _sha256(f'["{self.kind}",{{{",".join(filter(None, members))}}}]')

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) of the request and its place."""
        return digest([self.content, self.path.model_dump(mode="json")])


class Entry(Value):
    """A stored answer. `answer` is the response as JSON values, `time` its arrival (ISO 8601, UTC).
    An answer that is not `usable` failed despite repairs: it is kept for the record and for
    replays, and the request is made again."""

    request: StoreRequest
    answer: JsonObject
    time: str
    usable: bool = True


def canonical(value: object) -> str:
    """Encode a value as JSON text that is the same for equal values."""
    return _CANONICAL.encode(value)


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: object) -> str:
    """Return the SHA-256 (hex) of a JSON value's canonical text."""
    return _sha256(canonical(value))


@once_per_schema
def canonical_schema(schema: JsonMapping) -> str:
    """Return the canonical text of a schema."""
    return canonical(schema)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
