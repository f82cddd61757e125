"""What servers mean by an error, whatever its status: one table, rows of one kind of server beside those of all. Pure.

Servers agree on few statuses: a refused key is a 401, a 400 or a 500, an unknown model a 404 or a 400. What is in no
row means what its status says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Meaning = Literal["key", "credit", "model", "context", "filter"]
"""The key is refused, the credit used up, the model unknown, the prompt too long for it, or the prompt filtered."""

FIRST_CHARACTERS = 500
"""As much of a message is read: behind it some servers repeat the request."""

_REFUSALS = (200, 400, 403, 404, 422, 500)
_NOT_OF_THE_PROMPT = (401, 402, 429)


@dataclass(frozen=True, slots=True)
class Row:
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
        """Whether an error is said in this way."""
        if self.servers and server not in self.servers:
            return False
        if (self.statuses and status not in self.statuses) or status in self.never or (self.without_key and key_sent):
            return False
        found = self.words and re.search(self.words, message[:FIRST_CHARACTERS], re.IGNORECASE | re.DOTALL)
        return bool(found) or not self.codes.isdisjoint(codes)


ROWS: tuple[Row, ...] = (
    # LiteLLM without a database answers a wrong key with 400, and no key with a 500 that says nothing.
    Row("key", frozenset({"no_db_connection"}), r"no connected db"),
    Row(
        "key",
        words=r"\A(?:internal server error|no reason given)\s*\Z",
        statuses=(500,),
        servers=("litellm",),
        without_key=True,
    ),
    # An account without credit and one that asks too fast are both answered 429; Anthropic has 400 and words.
    Row(
        "credit",
        frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits"}),
    ),
    Row(
        "credit",
        words=r"credit balance is too low|insufficient (?:balance|credit|funds)",
        statuses=(200, 400, 403, 429),
    ),
    Row("filter", frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"})),
    # Servers that have no code for it have these words.
    Row(
        "context",
        frozenset({"context_length_exceeded"}),
        r"maximum (?:context|model) length|context.?(?:length|window|size).{0,40}exceed"
        r"|exceed.{0,60}context.?(?:length|window|size)|prompt is too long|input token count.{0,40}exceed",
        never=_NOT_OF_THE_PROMPT,
    ),
    # Gemini and xAI answer a wrong key with 400.
    Row("key", frozenset({"invalid_api_key", "token_not_found_in_db", "API_KEY_INVALID"}), never=(429,)),
    Row(
        "key",
        words=r"(?:incorrect|invalid|wrong|missing|expired) (?:\w+ ){0,2}api.?key|no api.?key"
        r"|api.?key (?:is )?(?:not valid|invalid|not found|missing|expired|required)"
        r"|authentication ?error|authentication (?:failed|fails)|no auth credentials"
        r"|invalid (?:proxy server )?token passed",
        statuses=_REFUSALS,
    ),
    # LiteLLM, OpenRouter, Mistral and DeepSeek answer 400 to a model that they do not have.
    Row("model", frozenset({"model_not_found", "model_not_available", "invalid_model"}), never=(429,)),
    Row(
        "model",
        words=r"invalid model(?: name| id)?\b|not a valid model|unknown model|no such model"
        r"|\bmodel\b[^.]{0,80}\b(?:does not exist|not exist|not found|is not available)\b",
        statuses=_REFUSALS,
    ),
)


def meaning_of(
    status: int, codes: Collection[str], message: str, server: str = "", key_sent: bool = True
) -> Meaning | None:
    """What an error means by the first row that holds; None: what its status says."""
    rows = (row.meaning for row in ROWS if row.holds(status, codes, message, server, key_sent))
    return next(rows, None)
