"""Calls OpenAI and every server that speaks its chat completions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError, ProviderError
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.dialects.asking import AttemptResult, ask
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.function_trial import prove_functions
from aeon.llm.dialects.refusal import find_error
from aeon.llm.dialects.responses import to_chat_names
from aeon.llm.dialects.responses_answer import find_reasoning_items, to_completion
from aeon.llm.dialects.server import Beliefs, Server, server_at, servers_at
from aeon.llm.dialects.token_limit import learn_limit_name
from aeon.llm.openai.answer import follows_schema, read_answer
from aeon.llm.openai.connection import Connection, ConnectionClosed
from aeon.llm.openai.endpoint import Endpoint, Response
from aeon.llm.openai.errors import error_of_refusal, refusal_in
from aeon.llm.protocols import SECONDS_BEFORE, ServerFinding
from aeon.llm.settings import EndpointSettings
from aeon.llm.watching import piece_teller, wants_stream
from aeon.store.chain import notes_of_call

if TYPE_CHECKING:
    from openai import OpenAI

    from aeon.llm.openai.client import Client
    from aeon.llm.openai.own_client import OwnClient

IDLE_SECONDS = 20.0
IDLE_STATUSES = (408, 502, 504, 522, 524)
"""Statuses that proxies return when the server behind them takes too long."""
PATIENCE_WITH_THE_SILENT = 0.1


class OpenAIAdapter:
    """Answers requests, from many threads at once; `aeon.llm.stack.retry` retries failed ones.

    `api_key` is None for a server that needs none. `headers` are sent with every request, unless
    the caller brings a `client`, which the caller must close. Raises `ConfigError` for a base URL,
    key or header that cannot be sent.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        client: OpenAI | None = None,
    ) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings, api_key, headers, client)
        self._connection = Connection(self._endpoint)
        self._place = (settings.name, self._endpoint.base_url)
        self._digest = hashlib.sha256(" ".join(self._place).encode()).hexdigest()[:16]
        self._has_answered = self._was_silent = False

    def __repr__(self) -> str:
        return f"OpenAIAdapter(model={self.model!r}, base_url={self._endpoint.address!r})"

    @property
    def model(self) -> str:
        """The model used when a call names none."""
        return self._settings.model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request; each attempt takes at most the rest of `timeout_seconds` from when it
        is sent.

        Usually one attempt; more while the server's abilities are being found out. Raises
        `ProviderError` if there is no answer, or `AnswerError` with the paid usage if the answer is
        unusable.
        """
        wire = Wire(request, self._settings, stream=wants_stream())
        server = server_at(*self._place, wire.model)
        # Counted before the first attempt, so that a close ends all attempts of this call.
        closings = self._connection.closings

        def attempt(dialect: Dialect) -> AttemptResult:
            is_answered = False
            try:
                made = self._attempt(wire, dialect, server, closings)
                is_answered = made.is_answer
            finally:
                server.prefixes.settle(wire.chosen_marks, is_answered=is_answered)
            return made

        outcome = ask(wire, server, attempt)
        outcome = learn_limit_name(outcome, wire, server, attempt)
        outcome = prove_functions(outcome, wire, server, attempt)
        if outcome.response is None:
            raise outcome.failure or ProviderError("there is no answer")
        if not follows_schema(outcome.response.text, request):
            self._send_schema_otherwise(outcome.dialect, server, is_strict=request.strict)
        return outcome.response

    def findings(self, *, only_new: bool = False) -> tuple[ServerFinding, ...]:
        """Return the messages found so far for the user, sorted; with `only_new`, those that no
        adapter of the process has returned that way before."""
        return tuple(
            finding
            for server in servers_at(*self._place)
            for finding in server.findings(only_new=only_new)
        )

    def beliefs(self) -> JsonObject:
        """Return what is known of the server, for `learn` in a later process; the address itself is
        not included."""
        values = {
            server.model: server.beliefs.model_dump(mode="json")
            for server in servers_at(*self._place)
            if server.beliefs != Beliefs()
        }
        return {self._digest: values} if values else {}

    def learn(self, beliefs: JsonMapping) -> None:
        """Adopt what another process found out about this server. Raises ValueError if it cannot be
        read."""
        for model, values in dict(beliefs.get(self._digest) or {}).items():
            server_at(*self._place, model).learn(Beliefs.model_validate(values))

    def find_apis(self) -> dict[str, bool | None]:
        """Return whether the server has each interface, by name; None if it does not say. Calls no
        model."""
        from aeon.llm.openai.probe import find_apis

        with self._connection.client(self._connection.closings) as client:
            return find_apis(client.sdk, self._endpoint)

    def close(self) -> None:
        """Close the connections; calls under way fail. A later call opens new ones."""
        self._connection.close()

    def _send_schema_otherwise(self, dialect: Dialect, server: Server, *, is_strict: bool) -> None:
        """Send the schema in another way too from now on, after an answer that did not follow it."""
        if dialect.form == "json_object":
            server.believe(schema_beside=True)
        # Without `strict`, json_schema promises nothing that the answer could have broken.
        is_broken = dialect.form == "json_schema" and not dialect.schema_in_prompt and is_strict
        if is_broken and self._settings.structured_output == "auto":
            message = (
                "accepts json_schema, but an answer did not follow it: the "
                "schema goes into the prompt too"
            )
            server.believe("json_schema", message, schema_in_prompt=True)

    def _attempt(
        self, wire: Wire, dialect: Dialect, server: Server, closings: int
    ) -> AttemptResult:
        allowed = self._limit_attempt()
        began = time.monotonic()
        try:
            kept = notes_of_call(server) if wire.request.call == "repair" else ()
            body = wire.body(dialect, server.prefixes, kept)
            with self._connection.client(closings) as client:
                # Anew: waiting for a free slot takes nothing from the request's time.
                began = time.monotonic()
                deadline = began + allowed
                send = partial(self._send, client, body, wire, dialect, deadline)
                if self._settings.background:
                    response = self._answer_in_background(client, send, wire, deadline, closings)
                else:
                    response = send()
        except ConnectionClosed:
            message = f"the provider was closed while a {wire.request.call} call was under way"
            return AttemptResult(dialect, failure=ProviderError(message))
        except Exception as error:
            failure = self._failure_of(error, allowed)
            if failure is None:
                raise
            outcome = AttemptResult(dialect, failure=failure)
        else:
            self._has_answered = True
            outcome = self._read(response, wire, dialect)
            self._note_reasoning(outcome, response, server)
        if isinstance(outcome.failure, ProviderError):
            self._note_failure(outcome.failure, wire, time.monotonic() - began, server)
        return outcome

    def _send(
        self,
        client: Client | OwnClient,
        body: bytes,
        wire: Wire,
        dialect: Dialect,
        deadline: float,
    ) -> Response:
        if wire.asks_for_stream(dialect) or "stream" in self._settings.extra_body:
            tell = piece_teller(wire.request) or (lambda _: None)
            return client.stream(body, wire.model, deadline, tell)
        return client.post(body, wire.model, deadline)

    def _answer_in_background(
        self,
        client: Client | OwnClient,
        send: Callable[[], Response],
        wire: Wire,
        deadline: float,
        closings: int,
    ) -> Response:
        # It knows the SDK, as the client does.
        from aeon.llm.openai.background import BackgroundWait, answer_in_background

        wait = BackgroundWait(
            sdk=client.sdk,
            request=wire.request,
            deadline=deadline,
            is_closed=lambda: self._connection.closings != closings,
            about={
                "endpoint": self._digest,
                "model": wire.model,
                # An adapter around this one may make several calls for one request.
                "messages": _digest_messages(wire.request),
            },
        )
        return answer_in_background(wait, send)

    def _note_reasoning(self, outcome: AttemptResult, response: Response, server: Server) -> None:
        """Keep the reasoning behind an answer for the repairs of its call."""
        if outcome.response is not None and self._settings.api == "responses":
            notes_of_call(server).extend(find_reasoning_items(response.body))

    def _read(self, response: Response, wire: Wire, dialect: Dialect) -> AttemptResult:
        is_chat = self._settings.api == "chat"
        body = response.body if is_chat else to_completion(response.body)
        if not 200 <= response.status < 300:
            refusal = refusal_in(response)
            refusal = refusal if is_chat else to_chat_names(refusal)
            failure = error_of_refusal(refusal, self._endpoint)
            return AttemptResult(dialect, failure=failure, refusal=refusal)
        try:
            answer = read_answer(body, wire.request, wire.model, self._endpoint)
        except AnswerError as failed:
            return AttemptResult(dialect, failure=failed)
        except LLMError as failed:
            return AttemptResult(dialect, failure=failed, refusal=find_error(body))
        return AttemptResult(dialect, answer)

    def _failure_of(self, error: Exception, allowed: float) -> LLMError | None:
        # It knows the SDK, which a process without requests does not load.
        from aeon.llm.openai.failures import error_of_exception

        failure = error_of_exception(error, self._endpoint, allowed)
        if failure is not None:
            # The cause may quote the server, and with it the key.
            failure.__cause__ = None
            failure.__suppress_context__ = True
        return failure

    def _limit_attempt(self) -> float:
        """Return the seconds allowed for an attempt. A server that never answered and stayed silent
        for a whole time-out gets less, so that a dead one does not cost every call its full
        time-out."""
        seconds = self._settings.timeout_seconds
        if self._settings.timeout_per == "attempt":
            return seconds
        if self._was_silent and not self._has_answered:
            seconds *= PATIENCE_WITH_THE_SILENT
        return max(0.0, seconds - SECONDS_BEFORE.get())

    def _note_failure(
        self, failure: ProviderError, wire: Wire, seconds: float, server: Server
    ) -> None:
        """Record a failure's cost and duration. If something between cut off a sent request while
        it waited, as proxies do with idle connections, later requests are streamed."""
        failure.seconds = seconds
        was_idle = seconds >= IDLE_SECONDS
        timed_out = False
        is_sent = was_idle and failure.status in IDLE_STATUSES
        if isinstance(failure, ConnectionFailed):
            is_sent = failure.sent
            timed_out = failure.timed_out
            self._was_silent |= timed_out
            failure.retryable &= not timed_out or self._settings.timeout_per == "attempt"
        if is_sent and was_idle and not timed_out and self._settings.stream == "auto":
            message = f"was cut off after {seconds:.0f} s: answers are streamed from now on"
            server.believe("stream", message, stream=True)
        if is_sent:
            failure.usage = Usage.of_unanswered(wire.request)
            failure.usage_reported = False


def _digest_messages(request: LLMRequest) -> str:
    shown = [[message.role, message.content] for message in request.messages]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]
