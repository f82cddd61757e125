"""Reads servers' error bodies: what an error means, and what it refuses. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Meaning = Literal["key", "credit", "model", "context", "filter"]
"""The key is refused, the credit used up, the model unknown, the prompt too long for it, or the prompt filtered."""

_FIRST_CHARACTERS = 500
"""As much of a message is read: behind it some servers repeat the request."""

_REFUSALS = (200, 400, 403, 404, 422, 500)
_NOT_OF_THE_PROMPT = (401, 402, 429)


@dataclass(frozen=True, slots=True)
class _Row:
    """One way of saying `meaning`: one of `codes` (the error's code, type or status), or `words` in its message.

    It holds for these `servers` (by `provider.name`; empty: all), for these `statuses` (empty: all but `never`), and
    with `without_key` only where no key was sent.
    """

    meaning: Meaning
    codes: frozenset[str] = frozenset()
    words: str = ""
    statuses: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    servers: tuple[str, ...] = ()
    without_key: bool = False

    def holds(self, status: int, codes: Collection[str], message: str, server: str, key_sent: bool) -> bool:
        """Whether an error matches this row."""
        if self.servers and server not in self.servers:
            return False
        if (self.statuses and status not in self.statuses) or status in self.never or (self.without_key and key_sent):
            return False
        found = self.words and re.search(self.words, message[:_FIRST_CHARACTERS], re.IGNORECASE | re.DOTALL)
        return bool(found) or not self.codes.isdisjoint(codes)


# Servers agree on few statuses: a refused key is a 401, a 400 or a 500, an unknown model a 404 or a 400. An error in no
# row means what its status says.
_ROWS: tuple[_Row, ...] = (
    # LiteLLM without a database answers a wrong key with 400, and no key with a 500 that says nothing.
    _Row("key", frozenset({"no_db_connection"}), r"no connected db"),
    _Row(
        "key",
        words=r"\A(?:internal server error|no reason given)\s*\Z",
        statuses=(500,),
        servers=("litellm",),
        without_key=True,
    ),
    # An account without credit and one that asks too fast are both answered 429; Anthropic has 400 and words.
    _Row(
        "credit",
        frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits"}),
    ),
    _Row(
        "credit",
        words=r"credit balance is too low|insufficient (?:balance|credit|funds)",
        statuses=(200, 400, 403, 429),
    ),
    _Row("filter", frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"})),
    # Servers that have no code for it have these words.
    _Row(
        "context",
        frozenset({"context_length_exceeded"}),
        r"maximum (?:context|model) length|context.?(?:length|window|size).{0,40}exceed"
        r"|exceed.{0,60}context.?(?:length|window|size)|prompt is too long|input token count.{0,40}exceed",
        never=_NOT_OF_THE_PROMPT,
    ),
    # Gemini and xAI answer a wrong key with 400.
    _Row("key", frozenset({"invalid_api_key", "token_not_found_in_db", "API_KEY_INVALID"}), never=(429,)),
    _Row(
        "key",
        words=r"(?:incorrect|invalid|wrong|missing|expired) (?:\w+ ){0,2}api.?key|no api.?key"
        r"|api.?key (?:is )?(?:not valid|invalid|not found|missing|expired|required)"
        r"|authentication ?error|authentication (?:failed|fails)|no auth credentials"
        r"|invalid (?:proxy server )?token passed",
        statuses=_REFUSALS,
    ),
    # LiteLLM, OpenRouter, Mistral and DeepSeek answer 400 to a model that they do not have.
    _Row("model", frozenset({"model_not_found", "model_not_available", "invalid_model"}), never=(429,)),
    _Row(
        "model",
        words=r"invalid model(?: name| id)?\b|not a valid model|unknown model|no such model"
        r"|\bmodel\b[^.]{0,80}\b(?:does not exist|not exist|not found|is not available)\b",
        statuses=_REFUSALS,
    ),
)


def _find_meaning(
    status: int, codes: Collection[str], message: str, server: str = "", key_sent: bool = True
) -> Meaning | None:
    """The meaning of the first row that matches; None where none does, so that the status decides."""
    rows = (row.meaning for row in _ROWS if row.holds(status, codes, message, server, key_sent))
    return next(rows, None)


# Statuses that servers have for "I do not know this parameter", with or without words; 500 is doubtful: it may be an
# outage as well.
OF_PARAMETERS = frozenset({200, 400, 404, 405, 415, 422, 501})
DOUBTFUL = 500
_NEVER = frozenset({401, 402, 429})
_VAGUE = frozenset({200, 400, 422})
_EFFORT = "reasoning_effort"
_OPTIONAL = (_EFFORT, "temperature")
_FORMAT = re.compile(
    r"response_?format|json_?schema|json.?object|structured.?output|\bschema\b|\bgrammar\b|additionalProperties",
    re.IGNORECASE,
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
    code, the parameter it names, and the fields that its details point at.

    `meaning` is the one of the table; `is_page`: it was an HTML page; `retry_after` and `location` are of
    its headers.
    """

    status_code: int
    message: str
    code: str = ""
    param: str = ""
    fields: frozenset[str] = frozenset()
    meaning: Meaning | None = None
    is_page: bool = False
    retry_after: float | None = None
    location: str = ""

    @property
    def is_about_format(self) -> bool:
        """Whether the server names the answer's format as what it refuses."""
        named = self.param.startswith("response_format") or "response_format" in self.fields
        return named or bool(_FORMAT.search(self.message))

    @property
    def is_doubtful(self) -> bool:
        """Whether it may just as well be an outage."""
        return self.status_code == DOUBTFUL and not self.is_about_format

    @property
    def is_about_request(self) -> bool:
        """Whether another way of saying the same may help: never for a wrong key, a limit, or a plain outage."""
        if self.meaning is not None or self.is_page or self.status_code in _NEVER:
            return False
        by_status = self.status_code in OF_PARAMETERS or self.status_code == DOUBTFUL
        return by_status or (self.status_code >= 400 and self.is_about_format)

    def find_refused(self, parameters: Collection[str]) -> str | None:
        """The one of these parameters that the server names as refused; None if it names none of them.

        Words about thinking or reasoning name the effort: that is what asks for it.
        """
        if self.code not in _NOT_TAKEN_CODES and _NOT_TAKEN.search(self.message) is None:
            return None
        of_reasoning = (name for name in parameters if name == _EFFORT and self._is_of_reasoning)
        return next(self._named(parameters), None) or next(of_reasoning, None)

    def suspects(self, parameters: Collection[str]) -> tuple[str, ...]:
        """Those of these parameters that the server may refuse, though it does not name them as refused.

        Those that nothing depends on, of an error that names nothing; of an error about a value, only the effort:
        reasoning modes set one for every model, whereas another value is a person's own to correct.
        """
        names_them = self.status_code == 404 and _PARAMETERS.search(self.message) is not None
        if self.is_about_format or not (self.status_code in _VAGUE or names_them):
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


def _meaning(status_code: int, codes: list[str], message: str, server: str, key_sent: bool) -> Meaning | None:
    meaning = _find_meaning(status_code, codes, message, server, key_sent)
    return None if meaning == "model" and _FORMAT.search(message) else meaning


def read_refusal(status_code: int, body: Any, server: str = "", key_sent: bool = True) -> Refusal:
    """Read an error body; it may be anything: the error itself, an object with one, a list of it, a text, or nothing.
    `server` is the endpoint's name, `key_sent` whether it was sent a key."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping | str):
        body = body["error"]
    if not isinstance(body, Mapping):
        text = "" if body is None else str(body)
        codes = [text] if _CODE.fullmatch(text) else []
        meaning = _meaning(status_code, codes, text, server, key_sent)
        return Refusal(status_code, text, code="".join(codes), meaning=meaning)
    inner = body.get("code") if status_code == 200 else None
    if isinstance(inner, int | str) and re.fullmatch(r"[45]\d\d", str(inner)):
        status_code = int(inner)
    details = body.get("detail")
    given = body.get("message") or details or body
    message = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    codes = [str(body[name]) for name in ("code", "type", "status") if body.get(name)]
    return Refusal(
        status_code,
        message,
        code=next(iter(codes), ""),
        param=str(body.get("param") or ""),
        fields=frozenset(_fields(details)),
        meaning=_meaning(status_code, codes, message, server, key_sent),
    )


def _fields(details: Any) -> Iterator[str]:
    """The names in the places that a validation error lists (`[{"loc": ["body", "temperature"], ...}]`)."""
    for detail in details if isinstance(details, list) else ():
        places = detail.get("loc") if isinstance(detail, Mapping) else None
        yield from (str(place) for place in places or () if isinstance(place, str))


def find_error(raw: bytes, server: str = "", key_sent: bool = True) -> Refusal | None:
    """The error in the body of a response with status 200; None where there is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, Mapping):
        return None
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    failed = body if body.get("error") else first
    if not isinstance(failed, Mapping) or not failed.get("error"):
        return None
    return read_refusal(200, failed, server, key_sent)
