"""The only repair of JSON: the model is asked to correct its own malformed answer (FR-028, FR-029,
FR-050). A repair may change form, never meaning. Its request is named `repair` when sent, whatever
schema it must satisfy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar, cast

from aeon.domain import events
from aeon.domain.errors import AeonError, ValidationError
from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import (
    CallSite,
    LLMAdapter,
    LLMRequest,
    Parameters,
    ReasoningMode,
    Role,
    Usage,
    current_site,
)
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.exchange import Answered, InvalidAnswer, check_answer, exchange
from aeon.llm.prompts import PromptLibrary, load_packaged_prompts
from aeon.llm.schemas import SchemaLibrary, load_packaged_schemas
from aeon.schema.strict import strict_violations
from aeon.schema.validators import ErrorKind, FieldError, SchemaValidator, compile_schema, kind_of
from aeon.store.chain import one_call
from aeon.supervisor.faithful import LISTS, choose_tool, find_foreign_tools
from aeon.tools.registry import Tool, ToolRegistry

T = TypeVar("T")
ParametersFor = Callable[[Role, ReasoningMode | None], Parameters]

_HINTS: Mapping[ErrorKind, str] = {
    "form": "Try a more capable model, or a server that enforces strict JSON schemas.",
    "range": "Its form is right and a value is out of its range, which servers and "
    "grammars seldom enforce: try a more "
    "capable model; in a schema of your own, let the description say the range too.",
    "content": "Its form is right and its content is not: try a more capable model.",
}


class Supervisor:
    """Repairs malformed answers with the same model and a reduced prompt. `max_attempts` is the
    number of repair calls for one answer (FR-050); `parameters` returns each role's generation
    parameters."""

    def __init__(
        self,
        llm: LLMAdapter,
        *,
        prompts: PromptLibrary | None = None,
        schemas: SchemaLibrary | None = None,
        parameters: ParametersFor | None = None,
        emit: events.Emit = events.ignore,
        max_attempts: int = 2,
    ) -> None:
        self._llm = llm
        self._prompts = prompts or load_packaged_prompts()
        self._schemas = schemas or load_packaged_schemas()
        self._parameters = parameters
        self._emit = emit
        self._max_attempts = max_attempts

    def repair_json(
        self,
        malformed: str,
        schema: JsonMapping,
        *,
        errors: Sequence[FieldError] = (),
        call: str = "",
        parse: Callable[[Any], T] | None = None,
        validator: SchemaValidator | None = None,
        strict: bool = True,
        tools: Sequence[Any] = (),
        context: JsonMapping | None = None,
        site: CallSite | None = None,
        role: Role = "worker",
        variables: JsonMapping | None = None,
    ) -> T:
        """Return the value that `malformed` was meant to be, valid by `schema` and `parse`.

        Without `errors`, they are found here; if there are none, the model is not called. `call` is
        the call being repaired, with its `variables`; planned steps get no new tools. The model of
        `role` repairs its own answer, unless the role `repairer` has a model. Raises
        ValidationError after `max_attempts`, LLMError and SchemaFileError, with their cost.
        """
        validator = validator or compile_schema(schema, "the schema")
        read: Callable[[Any], T] = partial(_read, call, malformed, parse)
        if not errors:
            try:
                return check_answer(malformed, validator, read)
            except InvalidAnswer as invalid:
                errors = invalid.errors
        site = current_site() if site is None else site
        own = {
            "call": call,
            "original": malformed,
            "schema": schema,
            "tools": tools,
            "context": context,
        }
        request = LLMRequest(
            call="repair",
            messages=(),
            schema=schema,
            role="repairer",
            strict=strict and not strict_violations(schema),
            parameters=self._generation(role, site.mode),
            site=site,
            variables={**(variables or {}), **own},
        )
        with one_call():
            return self._repair(request, validator, read, tuple(errors))

    def repair_tool_call(
        self,
        tool: Tool,
        arguments: JsonMapping,
        *,
        tools: Sequence[JsonMapping] = (),
        **options: Any,
    ) -> JsonObject:
        """Return arguments that the tool's input schema accepts, made from invalid ones (FR-030).
        `tools` describes all registered tools. Otherwise like `repair_json`."""
        wire = self._schemas.wire("tool_arguments", answer_schema=tool.input_schema)
        return self.repair_json(
            json.dumps(dict(arguments), ensure_ascii=False),
            wire.schema,
            call="tool_arguments",
            parse=dict,
            validator=self._schemas.local("tool_arguments", tool.input_schema),
            strict=wire.strict,
            tools=tools or (tool.describe(),),
            context={"tool": tool.name},
            **options,
        )

    def repair_step(self, step: PlanStep, goal: str, registry: ToolRegistry) -> PlanStep:
        """Return the step with a registered tool instead of a missing one (FR-059, FR-060, FR-065,
        FR-066). Only the tool and its arguments change. Raises NoToolFits; otherwise like
        `repair_json`."""
        names = registry.names()
        wrong = {
            "step_id": step.step_id,
            "description": step.description,
            "tool": step.tool,
            "arguments": None
            if step.arguments is None
            else json.dumps(step.arguments, ensure_ascii=False),
        }
        missing = step.errors or ("it names no registered tool",)
        return self.repair_json(
            json.dumps(wrong, ensure_ascii=False),
            self._schemas.wire("tool_choice", tools=names).schema,
            errors=[FieldError("/tool", message) for message in missing],
            call="step",
            parse=lambda answer: choose_tool(step, answer, names),
            tools=registry.describe(),
            context={"goal": goal, "step": step.view},
        )

    def repair_plan(
        self,
        malformed: str,
        parse: Callable[[Any], T],
        *,
        names: Sequence[str] | None = None,
        call: Literal["plan", "subplan", "refinement"] = "plan",
        **options: Any,
    ) -> T:
        """Return the plan, subplan or refinement that a malformed one was meant to be (FR-031);
        otherwise like `repair_json`."""
        wire = self._schemas.wire(call, tools=names)
        validator = self._schemas.local(call)
        planned: JsonObject = {
            "validator": validator,
            "strict": wire.strict,
            "role": "planner",
            **options,
        }
        repaired: T = self.repair_json(malformed, wire.schema, call=call, parse=parse, **planned)
        return repaired

    def _generation(self, role: Role, mode: ReasoningMode | None) -> Parameters:
        if self._parameters is None:
            return Parameters()
        own = self._parameters("repairer", mode)
        has_own_model = self._parameters("repairer", None).model is not None
        return own if has_own_model else replace(own, model=self._parameters(role, mode).model)

    def _repair(
        self,
        request: LLMRequest,
        validator: SchemaValidator,
        read: Callable[[Any], T],
        original_errors: tuple[FieldError, ...],
    ) -> T:
        call = request.variables["call"]
        site = request.site
        usage = Usage()
        errors = original_errors
        last = None
        attempt = 0
        is_repaired = False
        try:
            for attempt in range(1, self._max_attempts + 1):
                answered = self._attempt(request, attempt, last, errors, validator, read)
                usage += answered.response.usage
                if not answered.errors:
                    is_repaired = True
                    return cast(T, answered.value)
                errors = answered.errors
                last = answered.response.text
            shown = "; ".join(map(str, errors[:3])) + (
                f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
            )
            what = (
                f"{call or 'the answer'}: not valid by its schema after {attempt} "
                f"repair attempts: {shown}"
            )
            raise ValidationError(
                what, errors=tuple(map(str, errors)), hint=_HINTS[kind_of(errors)]
            )
        except AeonError as error:
            error.usage = usage = usage + error.usage
            raise
        finally:
            if attempt:
                record = RepairRecord(
                    call=call,
                    cycle=site.cycle,
                    pass_number=site.pass_number,
                    step_id=site.step_id,
                    errors=tuple(map(str, original_errors)),
                    attempts=attempt,
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    outcome="repaired" if is_repaired else "unrecoverable",
                )
                self._emit(events.RepairFinished(site=site, record=record), site)

    def _attempt(
        self,
        request: LLMRequest,
        attempt: int,
        last: str | None,
        errors: Sequence[FieldError],
        validator: SchemaValidator,
        read: Callable[[Any], T],
    ) -> Answered[T]:
        variables = {**request.variables, "attempt": last, "errors": errors}
        messages = self._prompts.render("repair", variables)
        asked = replace(
            request,
            messages=messages,
            schema_prompt=self._prompts.schema_prompt("repair", request.schema, messages),
            site=replace(request.site, attempt=attempt),
            variables=variables,
        )
        return exchange(self._llm, asked, validator, read, emit=self._emit)


def _read(call: str, original: str, parse: Callable[[Any], Any] | None, answer: Any) -> Any:
    if call in LISTS and (found := find_foreign_tools(call, original, answer)):
        raise InvalidAnswer(found)
    return parse(answer) if parse else answer
