"""An OpenAI-compatible server that caches prompts by OpenAI's rule, or by Anthropic's, and bills them.

An entry is the beginning of a prompt up to a mark, of at least 1,024 tokens; a token is four characters. A request reads
the longest entry that ends at one of its own marks, and writes all behind it up to its last mark; at most four marks
are written. OpenAI adds a mark of its own at the end of the newest message, unless `prompt_cache_options.mode` says
`explicit`. Entries are found under the `prompt_cache_key` of the request that wrote them.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.support.openai_server import Answer, Completion, Failure, OpenAIServer, error

Implicit = Literal["unless_explicit", "always", "never"]
READ = 0.1
WRITE = 1.25
LEAST_TOKENS = 1024
CHARACTERS_OF_A_TOKEN = 4
MOST_MARKS = 4
MARKS = ("prompt_cache_breakpoint", "cache_control")


@dataclass(frozen=True)
class Bill:
    """The input tokens of a request: all of them, those read from the cache, and those written to it."""

    call: str
    tokens: int
    read: int
    written: int

    @property
    def billed(self) -> float:
        """What the input costs, in tokens at the plain price."""
        return self.tokens - self.read - self.written + READ * self.read + WRITE * self.written


class CachingServer(OpenAIServer):
    """The server. `implicit` says when it adds a mark of its own; `refuse` is given a body, and returns why it is
    refused, or nothing."""

    def __init__(
        self,
        script: Mapping[str, Any] | None = None,
        *,
        implicit: Implicit = "unless_explicit",
        refuse: Callable[[Mapping[str, Any]], Failure | None] = lambda _: None,
        **given: Any,
    ) -> None:
        super().__init__(script, **given)
        self.implicit = implicit
        self.refuse = refuse
        self.bills: list[Bill] = []
        self._entries: set[str] = set()
        self._caching = threading.Lock()

    def answer(self, body: Any, headers: Mapping[str, str]) -> Answer:
        """What the script answers, with the usage that the request is billed for."""
        refused = self.refuse(body) or _refuse_many_marks(body)
        if refused is not None:
            self.refused.append(str(refused.body))
            return refused
        answered = super().answer(body, headers)
        if isinstance(answered, Failure):
            return answered
        bill = self._bill(body)
        self.bills.append(bill)
        completion = answered if isinstance(answered, Completion) else Completion(answered)
        return replace(completion, model=body["model"], usage=_report(bill, completion))

    def _bill(self, body: Mapping[str, Any]) -> Bill:
        prompt, marks = read_prompt(body)
        kept = [place for place in marks if place >= LEAST_TOKENS * CHARACTERS_OF_A_TOKEN]
        mode = (body.get("prompt_cache_options") or {}).get("mode", "implicit")
        adds = self.implicit == "always" or (
            self.implicit == "unless_explicit" and mode == "implicit"
        )
        written = kept[-MOST_MARKS:]
        if adds and len(prompt) >= LEAST_TOKENS * CHARACTERS_OF_A_TOKEN:
            kept = [*kept, len(prompt)]
            written = kept[-MOST_MARKS:]
        shared = json.dumps(
            [body["model"], body.get("response_format"), body.get("prompt_cache_key")]
        )
        with self._caching:
            known = [place for place in kept if shared + prompt[:place] in self._entries]
            read = max(known, default=0)
            self._entries.update(shared + prompt[:place] for place in written)
        end = max(written, default=0)
        name = body["response_format"]["json_schema"]["name"]
        tokens, before, until = (
            int(each // CHARACTERS_OF_A_TOKEN) for each in (len(prompt), read, end)
        )
        return Bill(name, tokens, before, max(0, until - before))


def marked_places(body: Mapping[str, Any]) -> list[int]:
    """The characters of a prompt that stand before each of its marks."""
    return read_prompt(body)[1]


def read_prompt(body: Mapping[str, Any]) -> tuple[str, list[int]]:
    """A prompt as one text, and the characters of it that stand before each mark."""
    prompt = ""
    marks = []
    for message in body["messages"]:
        content = message["content"] or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        prompt += f"\n{message['role']}\n{json.dumps(message.get('tool_calls', []))}"
        for part in parts:
            prompt += part["text"]
            if any(mark in part for mark in MARKS):
                marks.append(len(prompt))
    return prompt, marks


def _refuse_many_marks(body: Mapping[str, Any]) -> Failure | None:
    marks = marked_places(body)
    if len(marks) <= MOST_MARKS:
        return None
    return error(400, f"at most {MOST_MARKS} prompt_cache_breakpoint are allowed, got {len(marks)}")


def _report(bill: Bill, completion: Completion) -> dict[str, Any]:
    given = dict(completion.usage or {})
    written = int(given.get("completion_tokens", 20))
    return {
        "prompt_tokens": bill.tokens,
        "completion_tokens": written,
        "total_tokens": bill.tokens + written,
        "prompt_tokens_details": {
            "cached_tokens": bill.read,
            "cache_write_tokens": bill.written,
        },
    }
