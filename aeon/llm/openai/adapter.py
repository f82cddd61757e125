"""OpenAI, and every server that speaks its chat completions.

`complete` may be called from many threads; each sends its own request. What a server can do is found out with the calls
(`aeon.llm.dialects.negotiation`) and believed for the life of the process (`aeon.llm.dialects.server`).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError, ProviderError
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.attempts import seconds_before, wait_to_go_out
from aeon.llm.dialects import streaming
from aeon.llm.dialects.dialect import Dialect, Form, Wire, wire_of
from aeon.llm.dialects.negotiation import Agreed, Outcome, negotiate, retry_with_other_limit
from aeon.llm.dialects.refusal import find_error
from aeon.llm.dialects.server import Beliefs, Server, server_at, servers_at
from aeon.llm.openai.answer import follows_schema, follows_schema_but_for_ranges, read_answer
from aeon.llm.openai.connection import Response
from aeon.llm.openai.endpoint import endpoint_of, request_headers
from aeon.llm.openai.errors import error_of_exception, error_of_refusal, refusal_in
from aeon.llm.openai.transport import Transport, TransportClosed
from aeon.llm.protocols import Finding
from aeon.llm.settings import EndpointSettings

IDLE_SECONDS = 20.0
IDLE_STATUSES = (408, 502, 504, 522, 524)
"""What proxies answer when the server behind them takes too long."""
PATIENCE_WITH_THE_SILENT = 0.1


@dataclass(slots=True)
class _Timing:
    """How many seconds an attempt may take, and since when it is under way."""

    allowed: float
    began: float | None = None

    @property
    def seconds(self) -> float:
        """What it has taken."""
        return 0.0 if self.began is None else time.monotonic() - self.began


class OpenAIAdapter:
    """Answers requests through an OpenAI-compatible API; `aeon.llm.stack.retry` tries failed ones again.

    `settings` say which model, where and how; `api_key` is None for a server that wants none; `headers` go with every
    request. Raises `ConfigError` for a base URL, key or header that cannot be sent.
    """

    def __init__(
        self, settings: EndpointSettings, api_key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        key, more = api_key or None, dict(headers or {})
        self._settings = settings
        self._endpoint = endpoint_of(settings, key, more)
        all_headers = request_headers(settings, key, more, os.environ)
        self._transport = Transport(self._endpoint.base_url, all_headers, settings.max_concurrency)
        self._has_answered = self._was_silent = False

    def __repr__(self) -> str:
        return f"OpenAIAdapter(model={self.model!r}, base_url={self._endpoint.address!r})"

    @property
    def model(self) -> str:
        """The model of calls that do not name their own."""
        return self._settings.model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request; an attempt takes at most what is left of `timeout_seconds` once it is sent.

        Most often one attempt; more while it is found out what the server can do. Raises a `ProviderError` where there
        is no answer, or an `AnswerError` with the usage paid where it is of no use.
        """
        wire = wire_of(request, self._settings)
        server, closings = self._server(wire.model), self._transport.closings

        def attempt(dialect: Dialect) -> Outcome:
            return self._attempt(wire, dialect, server, closings)

        agreed = negotiate(wire, server, attempt)
        if self._settings.max_tokens_parameter is None:
            agreed = retry_with_other_limit(agreed, wire, server, attempt)
        return self._answer(agreed, wire, server)

    def findings(self) -> tuple[Finding, ...]:
        """What has been found out up to now that a person should know, sorted."""
        return tuple(finding for server in self._servers() for finding in server.findings())

    def new_findings(self) -> tuple[Finding, ...]:
        """Those findings that no adapter of the process has returned here before."""
        return tuple(finding for server in self._servers() for finding in server.new_findings())

    def form_in_use(self, model: str) -> Form:
        """How the next call of a model sends its schema: as configured, or as `auto` has found out by now."""
        wanted = self._settings.structured_output
        return self._server(model).beliefs.dialect.form if wanted == "auto" else wanted

    def beliefs(self) -> dict[str, Any]:
        """What is believed of the server by now, for `learn` of a later process; without the address itself."""
        by_model = {server.model: server.beliefs for server in self._servers()}
        believed = {
            model: beliefs.model_dump(mode="json") for model, beliefs in by_model.items() if beliefs != Beliefs()
        }
        return {self._endpoint_digest: believed} if believed else {}

    def learn(self, beliefs: Mapping[str, Any]) -> None:
        """Believe what another process found out about this server. Raises ValueError for what cannot be read."""
        for model, values in dict(beliefs.get(self._endpoint_digest) or {}).items():
            self._server(model).learn(Beliefs.model_validate(values))

    def close(self) -> None:
        """Close the connections; calls under way fail. A later call opens new ones."""
        self._transport.close()

    @property
    def _endpoint_digest(self) -> str:
        """What tells this endpoint from others."""
        return hashlib.sha256(f"{self._settings.name} {self._endpoint.base_url}".encode()).hexdigest()[:16]

    def _server(self, model: str) -> Server:
        return server_at(self._settings.name, self._endpoint.base_url, model)

    def _servers(self) -> tuple[Server, ...]:
        return servers_at(self._settings.name, self._endpoint.base_url)

    def _answer(self, agreed: Agreed, wire: Wire, server: Server) -> LLMResponse:
        """The response, after a look at whether the server keeps to the schema and to the limit of tokens; or the
        failure, raised."""
        outcome = agreed.outcome
        if self._settings.max_tokens_parameter is None and agreed.is_limit_ignored(wire):
            message = "ignores max_completion_tokens: the limit is sent as max_tokens from now on"
            server.believe("max_tokens", message, renamed=True)
        if outcome.response is None:
            # What is behind an error of HTTP may quote the server, and with it the key.
            cause = outcome.cause if isinstance(outcome.cause, OSError) else None
            raise (outcome.failure or ProviderError("there is no answer")) from cause
        if not follows_schema(outcome.response.text, wire.request):
            self._believe_unenforced(agreed.dialect, wire.request, outcome.response.text, server)
        return outcome.response

    def _believe_unenforced(self, dialect: Dialect, request: LLMRequest, text: str, server: Server) -> None:
        """An answer did not follow the schema: send that in another way too, where there is one."""
        if dialect.form == "json_object":
            server.believe(schema_beside=True)
        by_parameter_alone = dialect.form == "json_schema" and not dialect.schema_in_prompt and request.strict
        if by_parameter_alone and self._settings.structured_output == "auto":
            ranges_alone = follows_schema_but_for_ranges(text, request)
            held = "holds to its form, not to its ranges" if ranges_alone else "does not hold to it"
            message = f"takes json_schema and {held}: the schema goes into the prompt too"
            server.believe("json_schema", message, schema_in_prompt=True)

    def _attempt(self, wire: Wire, dialect: Dialect, server: Server, closings: int) -> Outcome:
        """One attempt in one dialect, its failures translated."""
        timing = _Timing(self._allowed_seconds())
        endpoint = replace(self._endpoint, waited_seconds=timing.allowed)
        try:
            response = self._send(wire.body(dialect), timing, closings)
        except TransportClosed:
            message = f"the provider was closed while a {wire.request.call} call was under way"
            return Outcome(failure=ProviderError(message))
        except Exception as error:
            failure = error_of_exception(error, endpoint)
            if failure is None:
                raise
            self._note_failure(failure, wire, timing, server)
            return Outcome(failure=failure, cause=error)
        self._has_answered = True
        if not 200 <= response.status < 300:
            refusal = refusal_in(response, endpoint)
            failure = error_of_refusal(refusal, endpoint)
            self._note_failure(failure, wire, timing, server)
            return Outcome(failure=failure, refusal=refusal)
        return self._read(response.body, wire, dialect)

    def _send(self, body: bytes, timing: _Timing, closings: int) -> Response:
        """One attempt, timed from when it has one of the slots."""
        wait_to_go_out()
        with self._transport.slot(closings):
            timing.began = time.monotonic()
            return self._transport.post(body, timing.began + timing.allowed, closings)

    def _read(self, body: bytes, wire: Wire, dialect: Dialect) -> Outcome:
        if streaming.is_stream(body) and (dialect.stream or self._asks_for_stream):
            body = streaming.assemble(body)
        try:
            return Outcome(response=read_answer(body, wire.request, wire.model, self._endpoint, wire.limit(dialect)))
        except AnswerError as failed:
            return Outcome(failure=failed)
        except LLMError as failed:
            return Outcome(failure=failed, refusal=find_error(body, self._endpoint.name, self._endpoint.key_sent))

    @property
    def _asks_for_stream(self) -> bool:
        return self._settings.stream == "always" or bool(self._settings.extra_body.get("stream"))

    def _allowed_seconds(self) -> float:
        """What an attempt may take. A server that never answered, and was silent as long as is allowed, is not given as
        much again, so that a dead one does not cost every call its whole patience."""
        seconds = self._settings.timeout_seconds
        if self._settings.timeout_per == "attempt":
            return seconds
        if self._was_silent and not self._has_answered:
            seconds *= PATIENCE_WITH_THE_SILENT
        return max(0.0, seconds - seconds_before())

    def _note_failure(self, failure: LLMError, wire: Wire, timing: _Timing, server: Server) -> None:
        """Record what a failure has cost and taken, and learn from it."""
        if not isinstance(failure, ProviderError):
            return
        failure.seconds = timing.seconds
        is_cut_off = _is_cut_off(failure)
        if is_cut_off and self._settings.stream == "auto":
            message = f"was cut off after {failure.seconds:.0f} s: answers are streamed from now on"
            server.believe("stream", message, stream=True)
        if isinstance(failure, ConnectionFailed):
            is_cut_off = failure.sent
            self._was_silent |= failure.timed_out
            failure.retryable &= not failure.timed_out or self._settings.timeout_per == "attempt"
        if is_cut_off:
            failure.usage, failure.usage_reported = Usage.of_unanswered(wire.request), False


def _is_cut_off(failure: ProviderError) -> bool:
    """Whether a request that was waited for was ended by somebody else, as proxies do with idle connections."""
    broke_off = isinstance(failure, ConnectionFailed) and failure.sent and not failure.timed_out
    return failure.seconds >= IDLE_SECONDS and (broke_off or failure.status in IDLE_STATUSES)
