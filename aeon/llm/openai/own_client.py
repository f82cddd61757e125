"""The openai client that you bring: `provider.client=module:factory`, or an object given in
Python."""

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
"""The `create` arguments that requests use; everything else goes into `extra_body`."""
_PAGE = "`aeon docs python` has an example."


def load_client(reference: str) -> OpenAI:
    """Call the factory that the configuration names. Raises ConfigError if it does not return a
    client."""
    named = f"{KEY}={reference}"
    factory = load_object(KEY, reference, "factory")
    made: OpenAI = call_factory(named, factory, hint=f"It is called without arguments. {_PAGE}")
    check_client(named, made)
    return made


def check_client(named: str, client: object) -> None:
    """Raise ConfigError unless `client` is a synchronous client of the openai package."""
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
    """Return the settings of a client given in Python: those of `provider`, except for address and
    key.

    Raises ConfigError for an object that is no client, and for a provider that uses no server.
    """
    name = f"{type(client).__module__}:{type(client).__qualname__}"
    check_client(f"client={name}", client)
    if not isinstance(provider, ChainSettings):
        raise ConfigError(
            f"client={name}: provider={provider.kind} uses no server that speaks OpenAI's protocol",
            hint="A client goes with provider=openai or a preset of it, or with provider=auto.",
        )
    shared = {key: getattr(provider, key) for key in ChainSettings.model_fields}
    address = str(client.base_url).rstrip("/")
    return OpenAIProvider.model_validate({**shared, "client": name, "base_url": address})


class OwnClient:
    """Sends requests through a client from outside Aeon by `chat.completions.create` or
    `responses.create`, which instrumentation patches.

    The client keeps its own addresses, authentication and connections. Only `provider.retry`
    retries.
    """

    def __init__(self, client: OpenAI, api: ApiName = "chat") -> None:
        # A copy would lose patches applied to methods of this very object.
        # `stack.retry` retries, and counts attempts; so the SDK must not.
        self.sdk = client if client.max_retries == 0 else client.with_options(max_retries=0)
        self._api = api
        self._create: Any = self.sdk.chat.completions.with_raw_response.create
        if api == "responses":
            self._create = self.sdk.responses.with_raw_response.create

    def post(self, body: bytes, model: str, deadline: float) -> Response:  # noqa: ARG002 - the body has it
        """Do the same as `Client.post`. A wait ends with the remaining time; the length of a
        response is not limited."""
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
        """Do the same as `Client.stream`."""
        try:
            return read_stream(self.sdk, self._send(body, deadline), tell, self._api)
        except APIStatusError as error:
            return response_of(error.response)

    def close(self) -> None:
        """Leave the client open: its creator closes it. Requests under way end with their
        deadline."""

    def _send(self, body: bytes, deadline: float) -> httpx2.Response:
        arguments = json.loads(body)
        names = _ARGUMENTS[self._api]
        known = {name: value for name, value in arguments.items() if name in names}
        others = {name: value for name, value in arguments.items() if name not in names}
        answered = self._create(
            **known,
            extra_body=others or None,
            extra_headers=dict(CALL_HEADERS.get()) or None,
            # Never negative, which a socket refuses.
            timeout=Timeout(max(0.001, deadline - time.monotonic())),
        )
        response: httpx2.Response = answered.http_response
        return response
