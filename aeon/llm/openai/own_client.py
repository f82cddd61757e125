"""A person's own client of the openai package: `provider.client=module:factory`, or an object given
in Python."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
from openai import APIStatusError, AsyncOpenAI, OpenAI, Timeout

from aeon.domain.errors import ConfigError
from aeon.files.reference import call_factory, load_object
from aeon.llm.openai.client import read_stream, response_of
from aeon.llm.openai.endpoint import Response
from aeon.llm.protocols import CALL_HEADERS
from aeon.llm.settings import ApiName, ChainSettings, OpenAIProvider, ProviderSettings

KEY = "provider.client"
_CHAT = "messages response_format max_tokens max_completion_tokens reasoning_effort stream_options"
_RESPONSES = "input text max_output_tokens reasoning include store background"
_ARGUMENTS: Mapping[ApiName, frozenset[str]] = {
    "chat": frozenset(f"model temperature stream {_CHAT}".split()),
    "responses": frozenset(f"model temperature stream {_RESPONSES}".split()),
}
"""What a request may hold but for `provider.extra_body`, by the names that `create` has for it."""
_PAGE = "`aeon docs python` has an example."


def load_client(reference: str) -> OpenAI:
    """Call the factory that the configuration names. Raises ConfigError where that gives no
    client."""
    named = f"{KEY}={reference}"
    factory = load_object(KEY, reference, "factory")
    made: OpenAI = call_factory(named, factory, hint=f"It is called without arguments. {_PAGE}")
    check_client(named, made)
    return made


def check_client(named: str, client: object) -> None:
    """Raise ConfigError for what is no synchronous client of the openai package."""
    if isinstance(client, AsyncOpenAI):
        raise ConfigError(
            f"{named}: it is an asynchronous client, and calls are made from threads",
            hint=f"Give an openai.OpenAI or openai.AzureOpenAI. {_PAGE}",
        )
    if not isinstance(client, OpenAI):
        kind = type(client).__name__
        hint = f"Give an openai.OpenAI or openai.AzureOpenAI. {_PAGE}"
        raise ConfigError(f"{named}: {kind} is no client of the openai package", hint=hint)


def describe_client(client: OpenAI, provider: ProviderSettings) -> OpenAIProvider:
    """The settings of a client that was given in Python: those of `provider`, but for address and
    key.

    Raises ConfigError for an object that is no client, and for a provider that asks no server.
    """
    name = f"{type(client).__module__}:{type(client).__qualname__}"
    check_client(f"client={name}", client)
    if not isinstance(provider, ChainSettings):
        raise ConfigError(
            f"client={name}: provider={provider.kind} asks no server that speaks OpenAI's protocol",
            hint="A client goes with provider=openai or a preset of it, or with provider=auto.",
        )
    values = {key: getattr(provider, key) for key in ChainSettings.model_fields}
    address = str(client.base_url).rstrip("/")
    return OpenAIProvider(**{**values, "client": name, "base_url": address})


class OwnClient:
    """Sends requests through a person's client by `chat.completions.create` or `responses.create`,
    which is what instruments look at.

    Its addresses, authentication and connections are its own. It is retried by `provider.retry`
    alone.
    """

    def __init__(self, client: OpenAI, api: ApiName = "chat") -> None:
        # A copy would lose what somebody has put around a method of this very object.
        self.sdk = client if client.max_retries == 0 else client.with_options(max_retries=0)
        self._api = api
        self._create: Any = self.sdk.chat.completions.with_raw_response.create
        if api == "responses":
            self._create = self.sdk.responses.with_raw_response.create

    def post(self, body: bytes, model: str, deadline: float) -> Response:  # noqa: ARG002 - the body has it
        """As `Client.post`. A wait ends with the time that is left; the length of a response is not
        bounded."""
        try:
            return response_of(self._send(body, deadline))
        except APIStatusError as error:
            return response_of(error.response)

    def stream(
        self,
        body: bytes,
        model: str,  # noqa: ARG002
        deadline: float,
        tell: Callable[[str], None],
    ) -> Response:
        """As `Client.stream`."""
        try:
            return read_stream(self.sdk, self._send(body, deadline), tell, self._api)
        except APIStatusError as error:
            return response_of(error.response)

    def close(self) -> None:
        """Leave the client open: it stays its maker's. Requests under way end with their time."""

    def _send(self, body: bytes, deadline: float) -> httpx2.Response:
        arguments = json.loads(body)
        names = _ARGUMENTS[self._api]
        known = {name: value for name, value in arguments.items() if name in names}
        others = {name: value for name, value in arguments.items() if name not in names}
        answered = self._create(
            **known,
            extra_body=others or None,
            extra_headers=dict(CALL_HEADERS.get()) or None,
            timeout=Timeout(max(0.001, deadline - time.monotonic())),
        )
        response: httpx2.Response = answered.http_response
        return response
