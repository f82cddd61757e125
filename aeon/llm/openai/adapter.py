"""OpenAI, and every server that speaks its chat completions.

`complete` is synchronous and may be called from many threads: it hands the request to the process's event loop, where
one AsyncOpenAI client on the aiohttp transport serves them all, and waits. The SDK is imported with the first call: it
costs nearly half a second. What a server can do is found out with the calls (`negotiation`), and remembered for the
life of the process (`capabilities`).
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError, ProviderError
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.attempts import seconds_before, wait_to_go_out
from aeon.llm.dialects import streaming
from aeon.llm.dialects.capabilities import Capabilities, capabilities, of_address
from aeon.llm.dialects.dialect import Dialect, Form, Wire, wire_body, wire_of
from aeon.llm.dialects.known import Known
from aeon.llm.dialects.negotiation import Agreed, Outcome, negotiate, with_other_limit
from aeon.llm.dialects.refusal import error_in
from aeon.llm.openai import event_loop
from aeon.llm.openai.answer import holds, holds_but_for_ranges, read_answer
from aeon.llm.openai.connection import Connection, Timing, is_cut_off
from aeon.llm.openai.credentials import DEFAULT_BASE_URL, check_sendable, has_authorization, secrets
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import refused_by, translate
from aeon.llm.protocols import Finding
from aeon.llm.settings import EndpointSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CLOSING_SECONDS = 5.0
PATIENCE_WITH_THE_SILENT = 0.1
NO_KEY = "none"


class OpenAIAdapter:
    """Answers requests through an OpenAI-compatible API (research decision 8; retries are `aeon.llm.stack.retry`'s).

    `settings` say which model, where and how; `api_key` is None for a server that wants none; `headers` go with every
    request. Raises `ConfigError` for a base URL, key or header that cannot be sent.
    """

    def __init__(
        self, settings: EndpointSettings, api_key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._api_key = api_key or None
        self._headers = dict(headers or {})
        check_sendable(settings, self._api_key, self._headers)
        self._endpoint = Endpoint(
            settings.base_url or DEFAULT_BASE_URL,
            settings.api_key_env,
            settings.timeout_seconds,
            secrets(self._api_key, self._headers, settings.base_url or ""),
            settings.structured_output,
            settings.name,
            key_sent=self._api_key is not None or has_authorization(self._headers),
        )
        self._connection: Connection | None = None
        self._has_answered = self._was_silent = False

    def __repr__(self) -> str:
        return f"OpenAIAdapter(model={self.model!r}, base_url={self._endpoint.address!r})"

    @property
    def model(self) -> str:
        """The model of calls that do not name their own."""
        return self._settings.model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request; an attempt takes at most what is left of `timeout_seconds` when it has one of the slots.

        Most often one attempt; more while it is found out what the server can do. Raises the `LLMError` that
        `openai_errors` maps the failure to, or an `AnswerError` with the usage paid.
        """
        wire = wire_of(request, self._settings)
        known = self._known(wire.model)
        if self._settings.stream == "always":
            known.stream()
        try:
            agreed = event_loop.run(self._negotiate(wire, known))
        except CancelledError as error:
            raise ProviderError(f"the provider was closed while a {request.call} call was under way") from error
        return self._answer(agreed, wire, known)

    def findings(self) -> tuple[Finding, ...]:
        """What has been found out up to now that a person should know, sorted."""
        name, address = self._settings.name, self._endpoint.base_url
        return tuple(finding for known in of_address(name, address) for finding in known.findings())

    def new_findings(self) -> tuple[Finding, ...]:
        """Those findings that were not given out here before, to any adapter of the process."""
        name, address = self._settings.name, self._endpoint.base_url
        return tuple(finding for known in of_address(name, address) for finding in known.unreported())

    def form_in_use(self, model: str) -> Form:
        """How the next call of a model is told its schema: as configured, or as `auto` has found out by now."""
        wanted = self._settings.structured_output
        return self._known(model).dialect("", True).form if wanted == "auto" else wanted

    def beliefs(self) -> dict[str, Any]:
        """What is believed of the server by now, for `learn` of a later process; without the address itself."""
        name, address = self._settings.name, self._endpoint.base_url
        known = {found.model: found.known() for found in of_address(name, address)}
        by_model = {model: found.model_dump(mode="json", exclude_defaults=True) for model, found in known.items()}
        believed = {model: values for model, values in by_model.items() if values}
        return {self._endpoint_digest: believed} if believed else {}

    def learn(self, beliefs: Mapping[str, Any]) -> None:
        """Believe what another process found out about this server. Raises ValueError for what cannot be read."""
        for model, values in dict(beliefs.get(self._endpoint_digest) or {}).items():
            known = Known.model_validate(values)
            may_stream = self._settings.stream != "never"
            self._known(model).learn(known.model_copy(update={"stream": known.stream and may_stream}))

    @property
    def _endpoint_digest(self) -> str:
        """What tells this endpoint from others."""
        return hashlib.sha256(f"{self._settings.name} {self._endpoint.base_url}".encode()).hexdigest()[:16]

    def close(self) -> None:
        """Close the connections; calls under way fail. A later call opens new ones."""
        if self._connection is not None:
            event_loop.run(self._close(), timeout=CLOSING_SECONDS)

    def _known(self, model: str) -> Capabilities:
        return capabilities(self._settings.name, self._endpoint.base_url, model)

    async def _negotiate(self, wire: Wire, known: Capabilities) -> Agreed:
        async def attempt(dialect: Dialect) -> Outcome:
            return await self._attempt(wire, dialect)

        with self._connect().under_way():
            agreed = await negotiate(wire, known, self._settings.structured_output, attempt)
            if self._settings.max_tokens_parameter is None:
                agreed = await with_other_limit(agreed, wire, known, attempt)
            return agreed

    def _answer(self, agreed: Agreed, wire: Wire, known: Capabilities) -> LLMResponse:
        """The response, after a look at whether the server holds to the schema and to the limit of tokens; or the
        failure, raised."""
        outcome, dialect = agreed.outcome, agreed.dialect
        if self._settings.max_tokens_parameter is None and agreed.is_limit_ignored(wire):
            known.limit_ignored()
        if outcome.response is None:
            cause, failure = outcome.cause, outcome.failure or ProviderError("there is no answer")
            # A server may echo the key; then the SDK's own error must not travel along in the traceback.
            raise failure from (None if cause is None or self._endpoint.leaks(cause) else cause)
        if not holds(outcome.response.text, wire.request):
            self._not_held(dialect, wire.request, outcome.response.text, known)
        return outcome.response

    def _not_held(self, dialect: Dialect, request: LLMRequest, text: str, known: Capabilities) -> None:
        """Remember that an answer was not of the schema, where there is another way of telling the server."""
        if dialect.form == "json_object":
            known.object_not_enforced()
            return
        by_parameter_alone = dialect.form == "json_schema" and not dialect.schema_in_prompt
        if by_parameter_alone and self._settings.structured_output == "auto":
            known.not_enforced(request.strict, ranges_alone=holds_but_for_ranges(text, request))

    async def _attempt(self, wire: Wire, dialect: Dialect) -> Outcome:
        """One attempt in one dialect, its failures translated."""
        timing = Timing(self._allowed_seconds())
        try:
            raw = await self._send(wire_body(wire, dialect, self._settings.extra_body), timing)
        except Exception as error:
            failure = translate(error, replace(self._endpoint, waited_seconds=timing.allowed))
            if failure is None:
                raise
            self._note_failure(failure, wire, timing)
            return Outcome(failure=failure, refusal=refused_by(error, self._endpoint), cause=error)
        self._has_answered = True
        if streaming.is_stream(raw) and (dialect.stream or self._settings.extra_body.get("stream")):
            raw = streaming.assemble(raw)
        try:
            return Outcome(response=read_answer(raw, wire.request, wire.model, self._endpoint, wire.limit(dialect)))
        except AnswerError as failed:
            return Outcome(failure=failed)
        except LLMError as failed:
            return Outcome(failure=failed, refusal=error_in(raw, self._endpoint.name, self._endpoint.key_sent))

    def _allowed_seconds(self) -> float:
        """What an attempt may take. A server that never answered, and was silent as long as is allowed, is not given as
        much again, so that one that is dead does not cost every call its whole patience."""
        seconds = self._settings.timeout_seconds
        if self._settings.timeout_per == "attempt":
            return seconds
        if self._was_silent and not self._has_answered:
            seconds *= PATIENCE_WITH_THE_SILENT
        return max(0.0, seconds - seconds_before())

    def _note_failure(self, failure: LLMError, wire: Wire, timing: Timing) -> None:
        """Say of a failure what it cost and took, and learn from it."""
        if not isinstance(failure, ProviderError):
            return
        failure.seconds = timing.seconds
        self._has_answered = self._has_answered or failure.status is not None
        cut_off = is_cut_off(failure)
        if cut_off and self._settings.stream == "auto":
            self._known(wire.model).cut_off(failure.seconds)
        if isinstance(failure, ConnectionFailed):
            cut_off = failure.sent
            self._was_silent |= failure.timed_out
            failure.retryable &= not failure.timed_out or self._settings.timeout_per == "attempt"
        if cut_off:
            failure.usage, failure.usage_reported = Usage.of_unanswered(wire.request), False

    async def _send(self, body: dict[str, Any], timing: Timing) -> bytes:
        """One attempt, timed from when it has one of the slots."""
        connection = self._connect()
        await wait_to_go_out()
        async with connection.slots, asyncio.timeout(timing.allowed):
            timing.began = time.monotonic()
            completions = connection.client.chat.completions.with_raw_response
            response = await completions.create(**body, extra_headers=self._authorization())
            return bytes(response.content)

    def _authorization(self) -> dict[str, Any] | None:
        """The SDK insists on a key, and would take OPENAI_API_KEY's for a server that was to get none: leave it out."""
        from openai import Omit

        return None if self._endpoint.key_sent else {"Authorization": Omit()}

    def _connect(self) -> Connection:
        """The connection, opened by the first call. Only called on the loop, so it needs no lock."""
        loop = asyncio.get_running_loop()
        if self._connection is None or self._connection.loop is not loop:
            self._connection = Connection(self._new_client(), loop, asyncio.Semaphore(self._settings.max_concurrency))
            atexit.register(self.close)
        return self._connection

    def _new_client(self) -> AsyncOpenAI:
        """A client without retries of its own: they would multiply with `Retry`'s. The slots replace its pool limit."""
        from openai import Timeout

        from aeon.llm.openai.http import new_client, new_sdk

        timeout = Timeout(self._settings.timeout_seconds, pool=None)
        return new_sdk(
            self._endpoint.base_url,
            self._api_key or NO_KEY,
            self._headers,
            timeout,
            new_client(timeout),
            is_openai=self._settings.name == "openai" and self._endpoint.base_url.rstrip("/") == DEFAULT_BASE_URL,
        )

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            atexit.unregister(self.close)
            await connection.close()
