"""Reads servers' error bodies: the kind of error, and what the server refuses. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from aeon.domain.values import JsonMapping

Meaning = Literal["credit", "filter", "context", "key", "model"]
"""The credit is used up, the prompt filtered or too long for the model, the key refused, or the
model unknown."""

# Rows match an error's code, type or status, or words in its message; the first match counts. An
# error that matches no row means what its HTTP status says.
_ROWS: tuple[tuple[Meaning, frozenset[str], str], ...] = (
    (
        "credit",
        frozenset(
            {
                "insufficient_quota",
                "billing_hard_limit_reached",
                "billing_not_active",
                "insufficient_credits",
            }
        ),
        r"credit balance is too low|insufficient (?:balance|credit|funds)",
    ),
    (
        "filter",
        frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"}),
        r"(?!)",  # no words: known by its codes alone
    ),
    (
        "context",
        frozenset({"context_length_exceeded"}),
        r"maximum (?:context|model) length|context.?(?:length|window|size).{0,40}exceed"
        r"|exceed.{0,60}context.?(?:length|window|size)|prompt is too long|input token count.{0,40}exceed",
    ),
    (
        "key",
        frozenset(
            {"invalid_api_key", "token_not_found_in_db", "no_db_connection", "API_KEY_INVALID"}
        ),
        r"(?:incorrect|invalid|wrong|missing|expired) (?:\w+ ){0,2}api.?key|no api.?key"
        r"|api.?key (?:is )?(?:not valid|invalid|not found|missing|expired|required)"
        r"|authentication ?error|authentication (?:failed|fails)|no auth credentials"
        r"|invalid (?:proxy server )?token passed|no connected db",
    ),
    (
        "model",
        frozenset({"model_not_found", "model_not_available", "invalid_model"}),
        r"invalid model(?: name| id)?\b|not a valid model|unknown model|no such model"
        r"|\bmodel\b[^.]{0,80}\b(?:does not exist|not exist|not found|is not available)\b",
    ),
)
_EFFORT = "reasoning_effort"
_OF_EFFORT = re.compile(r"(?i)\bthink|\breasoning")
_FORMAT = re.compile(
    r"(?i)response_?format|json_?schema|json.?object|structured.?output|\bschema\b|\bgrammar\b|additionalProperties"
)
_CACHE_FIELD = re.compile(r"prompt_cache_\w+|cache_control")
_TOOLS = re.compile(r"(?i)\btool|\bfunction")
_NOT_TAKEN = re.compile(
    r"(?i)not (?:\w+ ){0,2}(?:support|permit|allow|recogni[sz]ed|compatible)|unsupported|unrecogni[sz]ed|unknown"
    r"|unexpected|extra (?:inputs|fields)|extra_forbidden|(?:doesn|does ?n).{0,3}t support|deprecated"
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error from a server. `status_code` is the one in the body if the HTTP status is 200.
    `named` are the parameters it points at, `meaning` comes from the table above; `is_page`: it was
    an HTML page."""

    status_code: int
    message: str
    code: str = ""
    named: frozenset[str] = frozenset()
    meaning: Meaning | None = None
    is_page: bool = False
    retry_after: float | None = None
    location: str = ""

    @property
    def is_about_format(self) -> bool:
        """Whether the server names the answer's format as refused."""
        return any(name.startswith("response_format") for name in self.named) or bool(
            _FORMAT.search(self.message)
        )

    @property
    def is_about_tools(self) -> bool:
        """Whether the server mentions tools or functions."""
        return bool(_TOOLS.search(f"{' '.join(self.named)} {self.message[:500]}"))

    @property
    def is_doubtful(self) -> bool:
        """Whether the cause may as well be an outage."""
        return self.status_code == 500 and not self.is_about_format

    @property
    def is_about_request(self) -> bool:
        """Whether writing the request differently may help: never for a wrong key, a limit or a
        plain outage."""
        if self.meaning is not None or self.is_page or self.status_code in (401, 402, 429):
            return False
        usual = (200, 400, 404, 405, 415, 422, 500, 501)
        return self.status_code in usual or (self.status_code >= 400 and self.is_about_format)

    def find_refused(self, parameters: Collection[str]) -> str | None:
        """Return the first of `parameters` that the server names as refused; None if it names none.

        Words about thinking or reasoning name the effort. For an error about a value, only the
        effort counts: reasoning modes set it for every model, whereas other values are the user's
        to correct.
        """
        found = [name for name in parameters if name in self.named]
        found += filter(self._quotes, parameters)
        if not _NOT_TAKEN.search(f"{self.code} {self.message}"):
            return _EFFORT if _EFFORT in found else None
        if found:
            return found[0]
        is_unnamed = not self.named and _EFFORT in parameters
        return _EFFORT if is_unnamed and _OF_EFFORT.search(self.message) else None

    @property
    def cache_fields(self) -> frozenset[str]:
        """The cache fields that the server names."""
        return frozenset(_CACHE_FIELD.findall(" ".join((self.message, *self.named))))

    def _quotes(self, name: str) -> bool:
        return bool(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", self.message))

    def find_suspects(self, parameters: Collection[str]) -> frozenset[str]:
        """Return those of `parameters` that can safely be left out, if the server does not say what
        it refuses."""
        is_vague = self.status_code in (200, 400, 422)
        is_vague |= self.status_code == 404 and "parameter" in self.message.lower()
        return frozenset(
            {_EFFORT, "temperature"}.intersection(parameters if is_vague and not self.named else ())
        )


def read_refusal(status_code: int, body: object) -> Refusal:
    """Read an error body, which may be anything: the error, an object or a list containing it, a
    text, or nothing."""
    error = _find_error_object(body)
    if status_code == 200 and re.fullmatch(r"[45]\d\d", str(error.get("code"))):
        status_code = int(error["code"])
    message = _find_message(error)
    codes = [str(error[name]) for name in ("code", "type", "status") if error.get(name)]
    return Refusal(
        status_code,
        message,
        code=next(iter(codes), ""),
        named=_find_named(error),
        meaning=_find_meaning(status_code, codes, message),
    )


def _find_error_object(body: object) -> JsonMapping:
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping | str):
        body = body["error"]
    if isinstance(body, Mapping):
        return body
    text = "" if body is None else str(body)
    is_code = re.fullmatch(r"[a-z]+(_[a-z]+)+", text)
    return {"message": text, "code": text if is_code else None}


def _find_message(error: JsonMapping) -> str:
    given = error.get("message") or error.get("detail") or error
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)


def _find_named(error: JsonMapping) -> frozenset[str]:
    """Return OpenAI's `param` and the parameters of a validation error: [{"loc": ["body",
    "temperature"], ...}]."""
    named = [error.get("param")]
    details = error.get("detail")
    for detail in details if isinstance(details, list) else ():
        place = detail.get("loc") if isinstance(detail, Mapping) else None
        if isinstance(place, list):
            named += place
    return frozenset(name for name in named if isinstance(name, str) and name not in ("", "body"))


def find_error(raw: bytes) -> Refusal | None:
    """Return the error in the body of a response with status 200; None if there is none."""
    try:
        body = json.loads(raw)
        # Some servers put the error into the choice.
        failed = body if body.get("error") else (body.get("choices") or [{}])[0]
        return read_refusal(200, failed) if failed.get("error") else None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None


def _find_meaning(status: int, codes: Collection[str], message: str) -> Meaning | None:
    beginning = message[:500]  # some servers repeat the request after it
    for meaning, known, words in _ROWS:
        words_count = status in (200, 400, 403, 404, 413, 422, 500) or (
            status == 429 and meaning == "credit"
        )
        is_said = words_count and re.search(words, beginning, re.IGNORECASE | re.DOTALL)
        if not known.isdisjoint(codes) or (
            is_said and not (meaning == "model" and _FORMAT.search(message))
        ):
            return meaning
    return None
