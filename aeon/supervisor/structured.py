"""The path of every structured call: render, send, extract, validate, and repair if necessary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from aeon.domain import events
from aeon.domain.errors import AeonError, EmptyAnswer
from aeon.domain.request import (
    CallName,
    CallSite,
    InputFile,
    LLMAdapter,
    LLMRequest,
    Message,
    Parameters,
    Role,
    ToolConversation,
    ToolTurn,
    current_site,
)
from aeon.domain.values import JsonMapping
from aeon.llm.exchange import Answered, exchange
from aeon.llm.schemas import WireSchema
from aeon.schema.validators import FieldError, SchemaValidator
from aeon.store.chain import one_call
from aeon.supervisor.own import Repairs, repair_with
from aeon.supervisor.repair import Supervisor
from aeon.supervisor.tool_round import count_askings, holds_neither, offer_tools, read_round

T = TypeVar("T")
_NO_CONTENT = "(no content)"
"""What stands for an empty response in a conversation: servers refuse empty messages."""


class StructuredCaller(Supervisor):
    """Makes structured calls to one model for one run and repairs their answers; thread-safe.
    `shared` are variables of every template, overridden by those of its call; `files` are inputs
    sent with each prompt that shows them; `supervisor` replaces the packaged one for repairs;
    `options` are those of a Supervisor."""

    def __init__(
        self,
        llm: LLMAdapter,
        *,
        shared: JsonMapping | None = None,
        max_repairs: int = 2,
        supervisor: Repairs | None = None,
        files: Mapping[str, InputFile] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(llm, max_attempts=max_repairs, **options)
        self._shared = {"inputs": {}, "step_tools": (), "lists_tools": False, **(shared or {})}
        self._supervisor = supervisor
        self._files = files or {}

    def text(self, name: str, variables: JsonMapping) -> str:
        """Render a template that belongs to no call. Raises PromptError."""
        return self._prompts.text(name, variables)

    def part(self, name: str, variables: JsonMapping) -> str:
        """Render a part of a prompt, with the marks of where its own parts end. Raises
        PromptError."""
        return self._prompts.part(name, variables)

    def select_inputs(self, names: Collection[str]) -> dict[str, str]:
        """Return the run's inputs with these names."""
        return {name: text for name, text in self._shared["inputs"].items() if name in names}

    def schema(self, name: CallName) -> JsonMapping:
        """Return the schema of a call with all its optional parts."""
        return self._schemas.wire(name).schema

    def call(
        self,
        name: CallName,
        variables: JsonMapping,
        parse: Callable[[Any], T],
        *,
        role: Role,
        site: CallSite | None = None,
        tools: Sequence[str] | None = None,
        criteria: Sequence[str] = (),
        answer_schema: JsonMapping | None = None,
        absent: Collection[str] = (),
    ) -> T:
        """Call the model and return the result of `parse` on its answer (FR-035: one LLM cycle,
        repairs included).

        `parse` gets JSON that is valid by the call's schema; its objections to the answer lead to a
        repair. `tools` and `criteria` are the names that the answer may use; `answer_schema` is
        your schema for a step's output, or a tool's for its arguments; `absent` names parts that
        the call lacks. Raises ValidationError after `max_repairs`, LLMError, PromptError and
        SchemaFileError; the `usage` of each is everything spent on this call.
        """
        site = current_site() if site is None else site
        with self._cycle(name, site):
            wire = self._schemas.wire(
                name, tools=tools, criteria=criteria, answer_schema=answer_schema, absent=absent
            )
            request = self._request(name, {**self._shared, **variables}, wire, role, site)
            validator = self._schemas.local(name, answer_schema, absent)

            def read(answer: object) -> T:
                return parse(self._schemas.readable(name, answer))

            with one_call():
                return self._answer(request, validator, read, tools)

    def call_with_tools(
        self,
        variables: JsonMapping,
        parse: Callable[[Any], T],
        conversation: ToolConversation,
        *,
        answer_schema: JsonMapping | None = None,
        absent: Collection[str] = (),
        may_ask_again: bool = False,
    ) -> T | ToolTurn:
        """Call the model for a step in which it may call tools; return the result of `parse`, or
        the calls that it requests next. `may_ask_again`: a response with neither is returned too,
        as a round without calls, at most `max_repairs` times in a row. One LLM cycle; raises like
        `call`."""
        site = current_site()
        with self._cycle("step", site):
            wire = self._schemas.wire("step", answer_schema=answer_schema, absent=absent)
            plain = self._request("step", {**self._shared, **variables}, wire, "worker", site)
            names = tuple(str(tool["name"]) for tool in conversation.tools)
            of_round = self._schemas.wire_round(wire, names)
            request = offer_tools(plain, conversation, of_round, self._prompts)

            def read_answer(answer: object) -> T:
                return parse(self._schemas.readable("step", answer))

            read = partial(read_round, read_answer, is_over=conversation.is_over)
            validator = self._schemas.local_round(answer_schema, absent)
            may_ask_again = may_ask_again and count_askings(conversation) < self._max_attempts
            with one_call():
                if not may_ask_again:
                    return self._answer(request, validator, read, None)
                return self._answer_or_turn(request, validator, read, conversation.is_over)

    @contextmanager
    def _cycle(self, name: CallName, site: CallSite) -> Iterator[None]:
        """Run a cycle and announce its end, with its error if it failed."""
        failure: str | None = None
        message = ""
        try:
            yield
        except BaseException as error:
            failure = type(error).__name__
            message = str(error)
            raise
        finally:
            self._emit(
                events.CycleFinished(site=site, call=name, error=failure, message=message), site
            )

    def _repair(
        self,
        request: LLMRequest,
        validator: SchemaValidator,
        read: Callable[[Any], T],
        original_errors: tuple[FieldError, ...],
    ) -> T:
        if self._supervisor is None:
            return super()._repair(request, validator, read, original_errors)
        return repair_with(self._supervisor, request, validator, read, original_errors, self._emit)

    def _request(
        self,
        name: CallName,
        variables: JsonMapping,
        wire: WireSchema,
        role: Role,
        site: CallSite,
    ) -> LLMRequest:
        messages = self._prompts.render(name, variables)
        if self._files:
            messages = self._attach_files(messages, variables["inputs"])
        return LLMRequest(
            call=name,
            messages=messages,
            schema=wire.schema,
            schema_prompt=self._prompts.schema_prompt(name, wire.schema, messages),
            role=role,
            strict=wire.strict,
            parameters=self._parameters(role, site.mode) if self._parameters else Parameters(),
            site=site,
            sample=site.sample,
            variables=variables,
        )

    def _attach_files(
        self, messages: tuple[Message, Message], inputs: Mapping[str, str]
    ) -> tuple[Message, Message]:
        """Attach to the last message of a call the files of the inputs that it shows."""
        system, user = messages
        shown = [
            file
            for name, file in self._files.items()
            if inputs.get(name) == file.text and file.text in user.content
        ]
        return (system, replace(user, files=tuple(shown))) if shown else messages

    def _answer_or_turn(
        self,
        request: LLMRequest,
        validator: SchemaValidator,
        read: Callable[[Any], T | ToolTurn],
        is_over: bool,
    ) -> T | ToolTurn:
        """Answer a round, or return a round without calls if the response has nothing to use."""
        try:
            answered = exchange(self._llm, request, validator, read, emit=self._emit)
        except EmptyAnswer:
            return ToolTurn((), text=_NO_CONTENT)
        text = answered.response.text
        if answered.errors and holds_neither(text, request, is_over=is_over):
            return ToolTurn((), text=text)
        return self._use(answered, request, validator, read, None)

    def _answer(
        self,
        request: LLMRequest,
        validator: SchemaValidator,
        read: Callable[[Any], T],
        names: Sequence[str] | None,
    ) -> T:
        answered = exchange(self._llm, request, validator, read, emit=self._emit)
        return self._use(answered, request, validator, read, names)

    def _use(
        self,
        answered: Answered[T],
        request: LLMRequest,
        validator: SchemaValidator,
        read: Callable[[Any], T],
        names: Sequence[str] | None,
    ) -> T:
        """Return the value of an answer, repaired if necessary."""
        if not answered.errors:
            return cast(T, answered.value)
        try:
            return self.repair_json(
                answered.response.text,
                request.schema,
                errors=answered.errors,
                call=request.call,
                parse=read,
                validator=validator,
                strict=request.strict,
                # Described if the call's own prompt had descriptions, else by name.
                tools=tuple(request.variables.get("tools") or names) if names else (),
                site=request.site,
                role=request.role,
                variables=request.variables,
            )
        except AeonError as error:
            error.usage = answered.response.usage + error.usage
            raise
