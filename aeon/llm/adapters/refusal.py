"""What a server says when it does not take a request, and what may be meant by it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Statuses that servers have for "I do not know this parameter", with or without words; 500 is doubtful: it may be an
# outage as well.
OF_PARAMETERS = frozenset({200, 400, 404, 405, 415, 422, 501})
DOUBTFUL = 500
_NEVER = frozenset({401, 402, 429})
_VAGUE = frozenset({200, 400, 422})
_EFFORT = "reasoning_effort"
_OPTIONAL = (_EFFORT, "temperature")
NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits"}
)
"""The codes with which servers tell an account without credit from one that asks too fast: both are answered 429."""

_OF_SOMETHING_ELSE = NO_CREDIT | frozenset(
    {
        "model_not_found",
        "invalid_api_key",
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
    }
)
_FORMAT = re.compile(
    r"response_?format|json_?schema|json.?object|structured.?output|\bschema\b|\bgrammar\b|additionalProperties",
    re.IGNORECASE,
)
# Servers that have no code for it have these words.
_TOO_LONG = re.compile(
    r"maximum (?:context|model) length|context.?(?:length|window|size).{0,40}exceed"
    r"|exceed.{0,60}context.?(?:length|window|size)|prompt is too long|input token count.{0,40}exceed",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(r"[a-z]+(_[a-z]+)+")
_NOT_TAKEN_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})
_NOT_TAKEN = re.compile(
    r"not (?:\w+ ){0,2}(?:support|permit|allow|recogni[sz]ed|compatible)|unsupported|unrecogni[sz]ed|unknown|unexpected"
    r"|extra (?:inputs|fields)|extra_forbidden|(?:doesn|does ?n).{0,3}t support|deprecated",
    re.IGNORECASE,
)
_REASONING = re.compile(r"\bthink|\breasoning", re.IGNORECASE)
_PARAMETERS = re.compile(r"\bparameter", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that a server answered: its status (the one in the body where the real one is 200), its words, its
    code, the parameter it names, and the fields that its details point at."""

    status_code: int
    message: str
    code: str = ""
    param: str = ""
    fields: frozenset[str] = frozenset()

    @property
    def of_the_format(self) -> bool:
        """Whether the server says that the answer's format is what it does not take."""
        named = self.param.startswith("response_format") or "response_format" in self.fields
        return named or bool(_FORMAT.search(self.message))

    @property
    def too_long(self) -> bool:
        """Whether the model has no room for the prompt."""
        if self.status_code in _NEVER:
            return False
        return self.code == "context_length_exceeded" or bool(_TOO_LONG.search(self.message))

    @property
    def doubtful(self) -> bool:
        """Whether it may just as well be an outage."""
        return self.status_code == DOUBTFUL and not self.of_the_format

    @property
    def of_the_request(self) -> bool:
        """Whether another way of saying the same may help: never for a wrong key, a limit, or a plain outage."""
        if self.code in _OF_SOMETHING_ELSE or self.status_code in _NEVER or self.too_long:
            return False
        by_status = self.status_code in OF_PARAMETERS or self.status_code == DOUBTFUL
        return by_status or (self.status_code >= 400 and self.of_the_format)

    def not_taken(self, parameters: Collection[str]) -> str | None:
        """The one of these parameters that the server says it does not take; None if it names none of them.

        Words about thinking or reasoning name the effort: that is what asks for it.
        """
        if self.code not in _NOT_TAKEN_CODES and _NOT_TAKEN.search(self.message) is None:
            return None
        of_reasoning = (name for name in parameters if name == _EFFORT and self._is_of_reasoning)
        return next(self._named(parameters), None) or next(of_reasoning, None)

    def suspects(self, parameters: Collection[str]) -> tuple[str, ...]:
        """Those of these parameters that may be what the server does not take, though it does not say that it is.

        Those that nothing depends on, of an error that names nothing; of an error about a value, only the effort:
        reasoning modes set one for every model, whereas another value is a person's own to correct.
        """
        names_them = self.status_code == 404 and _PARAMETERS.search(self.message) is not None
        if self.of_the_format or not (self.status_code in _VAGUE or names_them):
            return ()
        named = set(self._named(parameters))
        if self.param or self.fields or named:
            return (_EFFORT,) if _EFFORT in named else ()
        return tuple(name for name in _OPTIONAL if name in parameters)

    @property
    def _is_of_reasoning(self) -> bool:
        return not self.param and not self.fields and _REASONING.search(self.message) is not None

    def _named(self, parameters: Collection[str]) -> Iterator[str]:
        """Those of these parameters that the error points at, then those that it quotes."""
        yield from (name for name in parameters if name == self.param or name in self.fields)
        yield from (name for name in parameters if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", self.message))


def refusal_of(status_code: int, body: Any) -> Refusal:
    """What an error's body says; it may be anything: the error itself, an object with one, a text, or nothing."""
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping | str):
        body = body["error"]
    if not isinstance(body, Mapping):
        text = "" if body is None else str(body)
        return Refusal(status_code, text, code=text if _CODE.fullmatch(text) else "")
    inner = body.get("code") if status_code == 200 else None
    if isinstance(inner, int | str) and re.fullmatch(r"[45]\d\d", str(inner)):
        status_code = int(inner)
    details = body.get("detail")
    said = body.get("message") or details or body
    return Refusal(
        status_code,
        said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str),
        code=str(body.get("code") or body.get("type") or ""),
        param=str(body.get("param") or ""),
        fields=frozenset(_fields(details)),
    )


def _fields(details: Any) -> Iterator[str]:
    """The names in the places that a validation error lists (`[{"loc": ["body", "temperature"], ...}]`)."""
    for detail in details if isinstance(details, list) else ():
        places = detail.get("loc") if isinstance(detail, Mapping) else None
        yield from (str(place) for place in places or () if isinstance(place, str))


def error_in(raw: bytes) -> Refusal | None:
    """The error in the body of a response whose status says that all is well; None where there is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, Mapping) or not body.get("error"):
        return _error_of_a_choice(body)
    return refusal_of(200, body)


def _error_of_a_choice(body: Any) -> Refusal | None:
    choices = body.get("choices") if isinstance(body, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return refusal_of(200, first) if isinstance(first, Mapping) and first.get("error") else None
