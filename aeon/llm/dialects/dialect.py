"""How one request is written for a server: where its schema goes and how its parameters are named.
Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic_core import PydanticSerializationError, to_json

from aeon.domain.request import CallName, FunctionCalling, LLMRequest, Message, end_part
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.dialects.cache_marks import ChosenMarks, MarkedPrefixes, write_content
from aeon.llm.dialects.file_parts import write_files
from aeon.llm.dialects.functions import (
    FUNCTIONS,
    find_ends_of_turns,
    use_functions,
    write_tools,
    write_turns,
)
from aeon.llm.dialects.model_rules import find_cache_marks, find_rule, fit_parameters, may_reason
from aeon.llm.dialects.responses import REASONING_ITEMS, ask_for_reasoning, to_responses
from aeon.llm.prompts import load_packaged_prompts
from aeon.llm.protocols import RUN
from aeon.llm.settings import CacheMarks, EndpointSettings
from aeon.schema.json_schema import once_per_schema

Form = Literal["json_schema", "json_object", "prompt"]
FORMS: tuple[Form, ...] = ("json_schema", "json_object", "prompt")
SCHEMA_BESIDE = "response_format.schema"
_ASKED_ONCE: frozenset[CallName] = frozenset({"task_profile", "plan"})
CACHE_MARKS = "prompt_cache"
CACHE_OPTIONS = "prompt_cache_options"
"""Without an explicit mode, OpenAI writes each whole prompt to its cache, at a higher price."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How requests to a server are written.

    `schema_in_prompt`: the prompt contains the schema too; `without`: parameters that the server
    does not accept; `renamed`: the token limit uses its other name; `schema_beside`: json_object
    comes with the schema.
    """

    form: Form = "json_schema"
    schema_in_prompt: bool = False
    without: frozenset[str] = frozenset()
    renamed: bool = False
    schema_beside: bool = False
    stream: bool = False

    def in_form(self, form: Form) -> Dialect:
        """Return the dialect with the schema sent in another form. The prompt includes the schema
        unless the parameter enforces it."""
        return replace(self, form=form, schema_in_prompt=form != "json_schema")

    @property
    def sends_schema_beside(self) -> bool:
        """Whether json_object is sent with the schema."""
        return (
            self.schema_beside and self.form == "json_object" and SCHEMA_BESIDE not in self.without
        )


class Wire:
    """A request for an endpoint, with everything that does not depend on the dialect computed once.

    `digest` identifies its schema. `changed` describes, by parameter, what was adapted to the
    model. `stream` requests a stream if the settings leave that open. `chosen_marks` are the cache
    marks in the last body written, `marked_roles` the roles of the messages that have them.
    """

    def __init__(
        self, request: LLMRequest, settings: EndpointSettings, *, stream: bool = False
    ) -> None:
        given = request.parameters.over(settings.parameters)
        self.request = request
        self.settings = settings
        self._stream = stream
        self.model = given.model or settings.model
        self.chosen_marks = ChosenMarks()
        self.marked_roles = frozenset[str]()
        self._rule = find_rule(settings.models, self.model)
        self._marks = find_cache_marks(settings, self._rule)
        self._given, self.changed = fit_parameters(self._rule, given)
        self.digest = _schema_digests(request.schema)[request.strict]
        self._functions = request.functions if settings.function_calling == "auto" else None

    @property
    def finds_form(self) -> bool:
        """Whether the form of the schema is found by trial instead of configured."""
        return self.settings.structured_output == "auto"

    def marks(self, dialect: Dialect) -> CacheMarks | None:
        """Return how the request marks prompts for the cache; None if it does not."""
        return None if CACHE_MARKS in dialect.without else self._marks

    def functions(self, dialect: Dialect) -> FunctionCalling | None:
        """Return the form with function calling, if the request uses it in this dialect."""
        return None if FUNCTIONS in dialect.without else self._functions

    def token_parameter(self, dialect: Dialect) -> str:
        """Return the name of the token limit."""
        is_short = (self.settings.max_tokens_parameter == "max_tokens") != dialect.renamed
        return "max_tokens" if is_short else "max_completion_tokens"

    def limit(self, dialect: Dialect) -> int | None:
        """Return the token limit of an answer as sent; None if none is sent."""
        is_sent = self.token_parameter(dialect) not in dialect.without
        return self._given.max_tokens if is_sent else None

    def parameters(self, dialect: Dialect) -> JsonObject:
        """Return the generation parameters by the names they are sent under, without those that are
        not set."""
        given = self._given
        named: JsonObject = {
            "temperature": given.temperature,
            self.token_parameter(dialect): given.max_tokens,
            "reasoning_effort": given.effort,
        }
        if self.marks(dialect) == "openai":
            named |= {"prompt_cache_key": RUN.get().run_id, CACHE_OPTIONS: {"mode": "explicit"}}
        named |= write_tools(self.functions(dialect))
        if self.asks_for_stream(dialect):
            named |= {"stream": True, "stream_options": {"include_usage": True}}
        return {
            name: value
            for name, value in named.items()
            if value is not None and name not in dialect.without
        }

    def asks_for_stream(self, dialect: Dialect) -> bool:
        """Whether the request asks for a stream, ignoring `extra_body`."""
        if self.settings.background or "stream" in dialect.without:
            return False
        is_wanted = self._stream or dialect.stream
        return {"always": True, "auto": is_wanted, "never": False}[self.settings.stream]

    def body(
        self,
        dialect: Dialect,
        prefixes: MarkedPrefixes | None = None,
        kept: Sequence[JsonMapping] = (),
    ) -> bytes:
        """Write the request's body. `prefixes` are the marked prefixes sent to this server; `kept`
        are the items of earlier answers in the same call. Raises UnicodeEncodeError for text that
        is not valid Unicode."""
        functions = self.functions(dialect)
        request = self.request if functions is None else use_functions(self.request, functions)
        messages: Sequence[Message] = request.messages
        if dialect.schema_in_prompt:
            # The system message is the same for many requests, so there the schema stays in
            # providers' prefix caches.
            messages = with_system_text(messages, schema_in_words(request))
        body: JsonObject = {
            "model": self.model,
            "messages": self._write_messages(
                request, messages, dialect, prefixes or MarkedPrefixes()
            ),
        }
        if dialect.form == "json_schema":
            schema = {"name": request.call, "schema": request.schema, "strict": request.strict}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif dialect.form == "json_object":
            beside = {"schema": request.schema} if dialect.sends_schema_beside else {}
            body["response_format"] = {"type": "json_object", **beside}
        body |= self.parameters(dialect)
        if self.settings.api == "responses":
            body = self._to_responses(body, dialect, kept)
        body |= self.settings.extra_body
        try:
            return to_json(body)  # five times as fast as the standard encoder
        except PydanticSerializationError:
            # Text that is not valid Unicode: this raises the error that says so.
            return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    def identify(self, dialect: Dialect) -> bytes:
        """Write the body without cache marks, which depend on the run and on earlier requests.
        Raises UnicodeEncodeError like `body`."""
        return self.body(replace(dialect, without=dialect.without | {CACHE_MARKS}))

    def _to_responses(
        self, chat: JsonMapping, dialect: Dialect, kept: Sequence[JsonMapping]
    ) -> JsonObject:
        keeps_items = REASONING_ITEMS not in dialect.without
        body = to_responses(chat, kept if keeps_items else ())
        if keeps_items and may_reason(self._rule):
            ask_for_reasoning(body)
        # The server stores only what it creates by itself, unless background mode is on.
        body["store"] = self.settings.background
        if self.settings.background:
            body["background"] = True
        return body

    def _write_messages(
        self,
        request: LLMRequest,
        messages: Sequence[Message],
        dialect: Dialect,
        prefixes: MarkedPrefixes,
    ) -> list[JsonObject]:
        written: list[JsonObject] = [
            {"role": message.role, "content": message.content} for message in messages
        ]
        functions = self.functions(dialect)
        if functions is not None:
            written += write_turns(functions)
        self._mark(written, request, messages, dialect, prefixes)
        for index, message in enumerate(messages):
            if message.files:
                written[index]["content"] = write_files(message.files, written[index]["content"])
        return written

    def _mark(
        self,
        written: list[JsonObject],
        request: LLMRequest,
        messages: Sequence[Message],
        dialect: Dialect,
        prefixes: MarkedPrefixes,
    ) -> None:
        """Add cache marks to the written messages."""
        functions = self.functions(dialect)
        marks = self.marks(dialect)
        self.chosen_marks = ChosenMarks()
        self.marked_roles = frozenset()
        if marks is None or _is_asked_once(request):
            return
        if request.sample > 0:
            messages = (*messages[:-1], end_part(messages[-1]))  # the other samples repeat it
        part_ends = [message.part_ends for message in messages]
        if functions is not None:
            turns = written[len(messages) :]
            part_ends += find_ends_of_turns(turns, is_over=functions.conversation.is_over)
        # A provider caches the answer's schema and the tools as part of the prompt.
        schema = _schema_digests(request.schema)[request.strict]
        kind = f"{dialect.form} {schema} {functions is not None}"
        kind += "".join(file.sha256 for message in messages for file in message.files)
        self.chosen_marks = prefixes.mark(written, part_ends, kind)
        positions = self.chosen_marks.positions
        self.marked_roles = frozenset(written[index]["role"] for index in positions)
        for index, ends in positions.items():
            written[index]["content"] = write_content(written[index]["content"], ends, marks)


def _is_asked_once(request: LLMRequest) -> bool:
    """Whether a run makes this call only once, so that nothing would read the cache that it writes.
    The first direct call may be the only one."""
    return request.call in _ASKED_ONCE or (request.call == "direct" and request.sample == 0)


@once_per_schema
def _schema_digests(schema: JsonMapping) -> dict[bool, str]:
    texts = {
        strict: f"{strict} {json.dumps(schema)}".encode("utf-8", "replace")
        for strict in (True, False)
    }
    return {
        strict: hashlib.blake2b(text, digest_size=16).hexdigest() for strict, text in texts.items()
    }


def schema_in_words(request: LLMRequest) -> str:
    """Return the text that shows the model its answer's schema in the prompt."""
    return request.schema_prompt or load_packaged_prompts().schema_prompt(
        request.call, request.schema, request.messages
    )


def with_system_text(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Return the messages with a text appended to the system message."""
    if not messages or messages[0].role != "system":
        return (Message("system", text), *messages)
    return (replace(messages[0], content=f"{messages[0].content}\n\n{text}"), *messages[1:])
