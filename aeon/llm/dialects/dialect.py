"""How one request is put on the wire: an answer's schema as a parameter or in the prompt, parameters by their names.

The messages of a request are the logical request, the same for every server: what a dialect adds is added here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from aeon.domain.request import LLMRequest, Message, Usage
from aeon.llm.dialects import streaming
from aeon.llm.dialects.model_table import Fitted, TokenParameter, fitted, other, token_parameter
from aeon.llm.prompts import packaged_prompts, to_json
from aeon.llm.settings import EndpointSettings

Form = Literal["json_schema", "json_object", "prompt"]

# Servers count marks of the end, and such, that no limit is for.
UNCOUNTED_TOKENS = 8
CLEARLY_BELOW = 0.9
SCHEMA_BESIDE = "response_format.schema"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server is spoken to. `form` says how it is told an answer's schema, `schema_in_prompt` whether the prompt
    holds it too, `without` the parameters that it does not take, `renamed` that it has the other name for the limit of
    tokens, `schema_beside` that json_object is to have the schema beside it, as some servers take it, `stream` that
    the answer is to be streamed.
    """

    form: Form = "json_schema"
    schema_in_prompt: bool = False
    without: frozenset[str] = frozenset()
    renamed: bool = False
    schema_beside: bool = False
    stream: bool = False

    @property
    def beside(self) -> bool:
        """Whether the schema really stands beside json_object."""
        return self.schema_beside and self.form == "json_object" and SCHEMA_BESIDE not in self.without


@dataclass(frozen=True, slots=True)
class Wire:
    """A request's parts that do not depend on the dialect, worked out once: model, parameters, schema as text."""

    request: LLMRequest
    model: str
    fit: Fitted
    tokens: TokenParameter
    schema_text: str

    @property
    def digest(self) -> str:
        """What tells its schema from others."""
        return hashlib.sha256(f"{self.request.strict} {self.schema_text}".encode("utf-8", "replace")).hexdigest()

    def parameters(self, dialect: Dialect) -> dict[str, Any]:
        """The generation parameters by the names they are sent under."""
        given = self.fit.parameters
        tokens = other(self.tokens) if dialect.renamed else self.tokens
        named = {"temperature": given.temperature, tokens: given.max_tokens, "reasoning_effort": given.effort}
        named |= streaming.REQUEST if dialect.stream and "stream" not in dialect.without else {}
        return {name: value for name, value in named.items() if value is not None and name not in dialect.without}

    def limit(self, dialect: Dialect) -> Limit | None:
        """The limit of an answer's tokens as it is sent; None where there is none."""
        name = other(self.tokens) if dialect.renamed else self.tokens
        most = self.parameters(dialect).get(name)
        return None if most is None else Limit(name, most)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of an answer's tokens, by the name it is sent under."""

    name: TokenParameter
    tokens: int

    def is_ignored(self, usage: Usage) -> bool:
        """Whether an answer was longer: the server does not know the limit by that name."""
        return usage.output_tokens > self.tokens + UNCOUNTED_TOKENS

    def is_above(self, usage: Usage) -> bool:
        """Whether an answer that was cut off was clearly shorter: something else than this limit has cut it."""
        return 0 < usage.output_tokens < CLEARLY_BELOW * self.tokens


def wire_of(request: LLMRequest, settings: EndpointSettings) -> Wire:
    """A request for an endpoint: its parameters over the provider's, as far as the table knows that the model takes
    them."""
    parameters = request.parameters.over(settings.parameters)
    model = parameters.model or settings.model
    tokens = settings.max_tokens_parameter or token_parameter(settings.name)
    return Wire(request, model, fitted(settings.name, model, parameters), tokens, to_json(request.schema))


def wire_body(wire: Wire, dialect: Dialect, extra_body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `chat.completions.create`; parameters that are not set are left out."""
    request = wire.request
    messages = _with_schema(wire) if dialect.schema_in_prompt else request.messages
    parameters = wire.parameters(dialect)
    body: dict[str, Any] = {
        "model": wire.model,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        **{name: value for name, value in parameters.items() if name not in streaming.REQUEST},
    }
    if dialect.form == "json_schema":
        named = {"name": request.call, "schema": request.schema, "strict": request.strict}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif dialect.form == "json_object":
        body["response_format"] = {"type": "json_object"} | ({"schema": request.schema} if dialect.beside else {})
    # The SDK would read a stream itself, and not as a whole.
    extra = {**extra_body, **{name: value for name, value in parameters.items() if name in streaming.REQUEST}}
    return body | ({"extra_body": extra} if extra else {})


def _with_schema(wire: Wire) -> Sequence[Message]:
    """The messages with the schema at the end of the system message, which is the same for many requests: there it
    stays in providers' prefix caches."""
    messages = wire.request.messages
    text = in_words(wire.request)
    if not messages or messages[0].role != "system":
        return (Message("system", text), *messages)
    return (replace(messages[0], content=f"{messages[0].content}\n\n{text}"), *messages[1:])


def in_words(request: LLMRequest) -> str:
    """What tells the model its answer's schema in its prompt."""
    return request.schema_prompt or packaged_prompts().schema_prompt(request.call, request.schema, request.messages)
