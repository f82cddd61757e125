"""Executes one step as it requires: by a tool, by the model, or, if its tool is missing, repaired
or by the model (Sprint 1, FR-056 to FR-062). Judges no meaning (FR-092)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from aeon.domain.checks import ToolResult
from aeon.domain.errors import LLMError, NotSimulated, PlanError, SchemaFileError, ValidationError
from aeon.domain.events import (
    Emit,
    StepFinished,
    StepSkipped,
    StepUnfolded,
    ToolCalled,
    ToolStarted,
    ignore,
)
from aeon.domain.graph import by_id, is_only_final
from aeon.domain.history import AdvisoryKind, RunState, StepResult
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallName, LLMAdapter, current_site
from aeon.domain.values import JsonMapping, JsonObject
from aeon.execution.forecast import cycles
from aeon.execution.outcome import (
    Remarks,
    Worked,
    complete_with,
    fail_with,
    find_outage,
    read_output,
    remark_repeated,
    step_result,
)
from aeon.execution.side_by_side import SideBySide
from aeon.execution.tool_rounds.allowance import RoundAllowance
from aeon.execution.tool_steps import AskRound, ToolRounds, select_tools
from aeon.llm.prompts import remove_part_ends
from aeon.memory.run_memory import ShownMemory
from aeon.plan.transitions import (
    ContextPart,
    collect_incoming_context,
    everything_before,
    finish_step,
    with_error,
)
from aeon.plan.views import outline_view, plan_view
from aeon.plan.workflow.conditions import describe_skip, read_skipped
from aeon.plan.workflow.references import Reference, references, resolve_arguments
from aeon.plan.workflow.unfolding import Settlement, collect_outputs
from aeon.store.session import DoStep
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool, ToolRegistry, on_behalf_of

_MOST_CONTEXTS = 64
"""Rendered contexts that are kept, for the steps under way."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation of a step; in core mode with the remaining TTL (Sprint 1 FR-002). `free`: no
    cycle was paid for it, so no model may be called. `memory` is the content of memory at its
    dispatch, `allowance` the further cycles that it may use for rounds of tool calls."""

    plan: Plan
    results: Mapping[str, StepResult] = field(default_factory=dict)
    ttl_remaining: int | None = None
    free: bool = False
    memory: JsonMapping = field(default_factory=dict)
    allowance: RoundAllowance = field(default_factory=partial(RoundAllowance, 0))

    @property
    def has_rounds(self) -> bool:
        """Whether the step may have a round of tool calls."""
        return self.allowance.left > 0


class StepWorker:
    """Executes steps.

    With an `answer_schema`, the output of the plan's final step is JSON of that schema. With
    `inputs`, for plan files, `${...}` in tool arguments are references. With `needs_tools`, a step
    whose tool is not registered fails (`tools.missing=fail`). With `direct`, the only step is the
    whole task, answered by the `direct` call with the known `context`. `do_step` has a person do a
    person's step. `step_tools` are patterns of the tools that the model may call by itself, in at
    most `max_tool_rounds` rounds of a step, and `max_parallel` calls at once.
    """

    def __init__(
        self,
        llm: LLMAdapter,
        *,
        structured: StructuredCaller | None = None,
        registry: ToolRegistry | None = None,
        invoker: ToolInvoker | None = None,
        answer_schema: JsonMapping | None = None,
        inputs: JsonMapping | None = None,
        emit: Emit = ignore,
        memory: ShownMemory | None = None,
        outline_steps: int = 20,
        needs_tools: bool = False,
        direct: bool = False,
        context: JsonMapping | None = None,
        do_step: DoStep | None = None,
        step_tools: Sequence[str] = (),
        max_tool_rounds: int = 8,
        max_parallel: int = 8,
        max_steps: int = 100,
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self._registry = registry or ToolRegistry()
        self._invoker = invoker or ToolInvoker(self._registry)
        self._answer_schema = answer_schema
        self._inputs = inputs
        self._emit = emit
        self._memory = memory or ShownMemory()
        self._outline_steps = outline_steps
        self._needs_tools = needs_tools
        self._context = context
        self._do_step = do_step
        self._step_tools = step_tools
        self._max_tool_rounds = max_tool_rounds
        self._max_steps = max_steps
        self._side_by_side = SideBySide(self._invoker, max_parallel)
        self.call: CallName = "direct" if direct else "step"
        # It stands in the record of a step and in its prompt.
        self._render_context = lru_cache(_MOST_CONTEXTS)(self._make_context)

    def recall(self) -> JsonMapping:
        """Return the current content of memory, as far as steps may see it."""
        return self._memory.entries()

    def context(self, parts: Sequence[ContextPart]) -> str:
        """Render what earlier steps pass to a step, as text (the template `_context.j2`)."""
        return remove_part_ends(self._render_context(tuple(parts)))

    def _make_context(self, parts: tuple[ContextPart, ...]) -> str:
        return self._structured.part("_context.j2", {"parts": parts})

    @property
    def has_tools(self) -> bool:
        """Whether there is any tool for steps to use."""
        return bool(self._registry.names())

    def cost(self, step: PlanStep, plan: Plan, results: Mapping[str, StepResult]) -> int:
        """Return the TTL cycles of a step: 0 for a tool with valid given arguments, else 1."""
        return cycles(
            step,
            self._registry,
            self._invoker,
            lambda: self._resolve_arguments(step, plan, results),
        )

    def count_rounds(self, step: PlanStep) -> int:
        """Return the most cycles that a step may use after its first, for rounds of tool calls."""
        return self._max_tool_rounds if self._select_tools(step) else 0

    def _select_tools(self, step: PlanStep) -> tuple[Tool, ...]:
        if self.call == "direct":
            return ()
        return select_tools(step, self._step_tools, self._registry.list())

    def settle_steps(self, plan: Plan, state: RunState) -> Plan:
        """Return the plan of a plan file with all conditions, lists and repetitions settled that
        can be evaluated now. Without a profile, as in core mode, steps run whatever came before
        them."""
        if self._inputs is None or not any(map(_is_to_settle, plan.steps)):
            return plan
        outputs = collect_outputs(state.results, read_output)
        in_order = state.profile is None
        settled = Settlement(outputs, self._inputs, self._max_steps, in_order).settle(plan)
        self._announce_settled(plan, settled, state.pass_number)
        return settled

    def _announce_settled(self, before: Plan, after: Plan, number: int) -> None:
        steps = by_id(after.steps)
        for step in before.steps:
            settled = steps.get(step.step_id)
            if settled is None:
                made = [one for one in steps if one.startswith(f"{step.step_id}[")]
                unfolded = StepUnfolded(
                    pass_number=number, step_id=step.step_id, instances=tuple(made), plan=after
                )
                self._emit(unfolded, None)
            elif settled.status == step.status:
                continue
            elif settled.status == "skipped":
                reason = describe_skip(settled)
                self._emit(StepSkipped(pass_number=number, step=settled, reason=reason), None)
            elif settled.status == "failed":
                self._emit(StepFinished(pass_number=number, cycle=0, step=settled), None)

    def find_missing_tools(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield pending steps whose tool is missing, or that name neither a tool nor an agent, as
        (step id, problem), in plan order (FR-058)."""
        for step in plan.steps:
            if step.status == "pending" and (missing := self._describe_missing(step)):
                yield step.step_id, missing

    def _describe_missing(self, step: PlanStep) -> str:
        if step.tool is not None:
            known = self._registry.get(step.tool) is not None
            return "" if known else self._registry.describe_missing(step.tool)
        return "" if step.agent else "The step names neither a tool nor agent: llm"

    def work(self, step: PlanStep, situation: Situation) -> Worked:
        """Execute a step; any failure fails the step. Raises errors that must end the run:
        LimitReached, StopRequested, StoreMiss, StoreFailed."""
        if step.is_for_person:
            return self._ask_person(step, situation)
        is_there = step.tool is not None and self._registry.get(step.tool) is not None
        if is_there or situation.free:
            return self._use_tool(step, situation)
        if step.tool is None and step.agent == "llm":
            return self._ask_model(step, situation)
        return self._replace_tool(step, situation)

    def name_work(self, step: PlanStep, cycle: int) -> str:
        """Return the name under which a step is dispatched; `cycle` is 0 if it costs none."""
        if cycle:
            return self.call
        return "person" if step.is_for_person else "tool"

    def _ask_person(self, step: PlanStep, situation: Situation) -> Worked:
        if self._do_step is None:
            return fail_with(step, "It is left to a person, and there is nobody to ask")
        parts = self._collect_context(step, situation)
        output = self._do_step(self._show_context(step, situation, parts))
        if output is None:
            return fail_with(step, "It is left to a person, and nobody has done it")
        return complete_with(step, output)

    def _ask_model(self, step: PlanStep, situation: Situation) -> Worked:
        is_final = is_only_final(step, situation.plan)
        answer_schema = self._answer_schema if is_final else None
        schema = answer_schema or step.output_schema
        as_json = schema is not None
        may_quote = is_final and not as_json
        quotable = _find_quotable(self._collect_context(step, situation)) if may_quote else {}
        absent = () if quotable else ("quotes",)
        described = self._describe(step, situation, quotable)
        variables = {**described, "answer_schema": answer_schema}

        def read(answer: JsonMapping) -> StepResult:
            return step_result(step.step_id, answer, as_json, quotable)

        tools = self._select_tools(step) if situation.has_rounds else ()
        if tools:
            variables["tools"] = [tool.describe() for tool in tools]
            ask = partial(
                self._structured.call_with_tools,
                variables,
                read,
                answer_schema=schema,
                absent=absent,
            )
            return self._work_in_rounds(step, situation, tools, ask)
        try:
            result = self._structured.call(
                self.call,
                variables,
                read,
                role="worker",
                answer_schema=schema,
                absent=absent,
            )
        except (LLMError, ValidationError) as error:
            return fail_with(step, f"{type(error).__name__}: {error.message}", error=error)
        return Worked(finish_step(step, result), result)

    def _work_in_rounds(
        self,
        step: PlanStep,
        situation: Situation,
        tools: Sequence[Tool],
        ask: AskRound,
    ) -> Worked:
        rounds = ToolRounds(
            step=step,
            plan=situation.plan,
            tools=tools,
            most_rounds=self._max_tool_rounds,
            allowance=situation.allowance,
            ask=ask,
            make=partial(self._side_by_side.call_all, step, situation.allowance),
            text=self._structured.text,
        )
        return rounds.carry_out()

    def _describe(
        self, step: PlanStep, situation: Situation, quotable: Mapping[str, str]
    ) -> JsonObject:
        if self.call == "direct":
            return {
                "task": situation.plan.task,
                "context": self._context,
                **self._memory.variables(situation.memory),
            }
        steps = situation.plan.steps
        return {
            **self._variables(step, situation),
            "used_by": [user.step_id for user in steps if step.step_id in user.dependencies],
            "previous_output": step.step_output,
            "previous_reason": step.clarity_reason,
            "quotable": list(quotable),
            "output_schema": step.output_schema,
            "tools": [],
            "max_tool_rounds": self._max_tool_rounds,
        }

    def _variables(self, step: PlanStep, situation: Situation) -> JsonObject:
        plan = situation.plan
        subplan = plan.subplan_of(step)
        parts = self._collect_context(step, situation)
        shown = self._show_context(step, situation, parts)
        return {
            "task": plan.task,
            "plan": plan_view(plan),
            "subplan": subplan and subplan.model_dump(),
            **outline_view(
                plan,
                step,
                self._outline_steps,
                counts_definitions=situation.ttl_remaining is not None,
            ),
            "step": shown.model_dump(),
            "incoming_context": self._render_context(parts) if parts else "",
            "context_steps": list(dict.fromkeys(part.step_id for part in parts)),
            "ttl_remaining": situation.ttl_remaining,
            **self._memory.variables(situation.memory),
            **self._show_inputs(step),
        }

    def _show_inputs(self, step: PlanStep) -> JsonObject:
        """Return the inputs that a step says it needs, instead of all."""
        if step.inputs is None:
            return {}
        return {"inputs": self._structured.select_inputs(step.inputs)}

    def _show_context(
        self, step: PlanStep, situation: Situation, parts: Sequence[ContextPart]
    ) -> PlanStep:
        """Return the step with the context that `parts` are; in adaptive mode it has it already."""
        if situation.ttl_remaining is None:
            return step
        return step.model_copy(update={"incoming_context": self.context(parts)})

    def _collect_context(self, step: PlanStep, situation: Situation) -> tuple[ContextPart, ...]:
        is_core = situation.ttl_remaining is not None
        collect = everything_before if is_core else collect_incoming_context
        return collect(situation.plan, step, situation.results)

    def _use_tool(self, step: PlanStep, situation: Situation, *, repaired: bool = False) -> Worked:
        name = step.tool or ""
        try:
            step, arguments, remarks = self._find_arguments(step, situation)
        # Invented arguments are not acted upon, and the output says so.
        except NotSimulated as error:
            return complete_with(
                step, f"(simulated) Tool '{name}' was not called: {error.message}."
            )
        except (LLMError, ValidationError, PlanError, SchemaFileError) as error:
            return fail_with(step, f"Arguments of tool '{name}': {error.message}", error=error)
        result = self._call_tool(step, name, arguments)
        remarks = (*remarks, *remark_repeated(step, result))
        if result.error_kind == "unknown" and not repaired and not situation.free:
            worked = self._replace_tool(step, situation)
        elif result.error is not None:
            worked = fail_with(step, f"Tool '{name}': {result.error}", tool=result)
        else:
            worked = complete_with(step, result.text, result)
        return replace(worked, remarks=(*remarks, *worked.remarks))

    def _call_tool(self, step: PlanStep, name: str, arguments: JsonObject) -> ToolResult:
        site = current_site()
        self._emit(
            ToolStarted(site=site, step_id=step.step_id, tool=name, arguments=arguments), site
        )
        with on_behalf_of(step):
            result = self._invoker.invoke(name, arguments)
        self._emit(ToolCalled(site=site, step_id=step.step_id, result=result), site)
        return result

    def _find_arguments(
        self, step: PlanStep, situation: Situation
    ) -> tuple[PlanStep, JsonObject, Remarks]:
        tool = self._registry.get(step.tool or "")
        if tool is None:
            return step, step.arguments or {}, ()
        if step.arguments is None:
            return step, self._ask_arguments(step, tool, situation), ()
        arguments = self._resolve_arguments(step, situation.plan, situation.results)
        violations = self._invoker.check_arguments(tool.name, arguments)
        if not violations:
            return step, arguments, ()
        if situation.free:
            raise ValidationError(
                "its schema has changed meanwhile", errors=tuple(map(str, violations))
            )
        valid = self._structured.repair_tool_call(
            tool, arguments, errors=violations, tools=self._registry.describe()
        )
        before, after = (json.dumps(value, ensure_ascii=False) for value in (arguments, valid))
        remark = (
            f"Step {step.step_id}: the arguments of tool '{tool.name}' were "
            f"repaired: {before} -> {after}"
        )
        return (
            step.model_copy(update={"arguments": valid}),
            valid,
            (("repaired_arguments", remark),),
        )

    def _ask_arguments(self, step: PlanStep, tool: Tool, situation: Situation) -> JsonObject:
        tools = {"tool": tool.describe(), "tools": self._registry.describe()}
        return self._structured.call(
            "tool_arguments",
            {**self._variables(step, situation), **tools},
            dict,
            role="worker",
            tools=self._registry.names(),
            answer_schema=tool.input_schema,
        )

    def _replace_tool(self, step: PlanStep, situation: Situation) -> Worked:
        missing = self._describe_missing(step) or self._registry.describe_missing(step.tool or "")
        step = with_error(step, missing)
        remarks: list[tuple[AdvisoryKind, str]] = [
            ("unknown_tool", f"Step {step.step_id}: {missing}")
        ]
        if step.tool and self._needs_tools:
            worked = fail_with(step, f"{missing}, and tools.missing=fail")
            return replace(worked, remarks=tuple(remarks))
        try:
            repaired = self._repair_step(step, situation)
        except LLMError as error:
            worked = fail_with(step, f"{type(error).__name__}: {error.message}", error=error)
        else:
            if repaired is not None:
                message = f"Step {step.step_id} was repaired: it uses tool '{repaired.tool}' now"
                remarks.append(("repaired_step", message))
                worked = self._use_tool(repaired, situation, repaired=True)
            else:
                remarks.append(
                    ("fallback_step", f"Step {step.step_id} is carried out by the model instead")
                )
                worked = self._ask_model(step, situation)
        return replace(worked, remarks=(*remarks, *worked.remarks))

    def _repair_step(self, step: PlanStep, situation: Situation) -> PlanStep | None:
        if not any(name != step.tool for name in self._registry.names()):
            return None
        try:
            repaired = self._structured.repair_step(step, situation.plan.goal, self._registry)
        except (LLMError, ValidationError) as error:
            if find_outage(error):
                raise
            return None
        if step.arguments is None:
            return repaired
        unchanged = repaired.model_copy(update={"arguments": step.arguments})
        try:
            arguments = self._resolve_arguments(step, situation.plan, situation.results)
            takes_own = not self._invoker.check_arguments(repaired.tool or "", arguments)
        except PlanError:  # a wrong reference is reported when the step is executed
            takes_own = True
        return unchanged if takes_own or repaired.arguments is None else repaired

    def _resolve_arguments(
        self, step: PlanStep, plan: Plan, results: Mapping[str, StepResult]
    ) -> JsonObject:
        arguments = step.arguments or {}
        if self._inputs is None:
            return arguments
        named = {found.name for found in references(arguments) if isinstance(found, Reference)}
        outputs = collect_outputs(results, read_output, named) if named else {}
        for other in plan.steps:
            if other.step_id in named and other.status == "skipped":
                outputs[other.step_id] = read_skipped(other)
        return resolve_arguments(arguments, self._inputs, outputs)


def _find_quotable(parts: Sequence[ContextPart]) -> dict[str, str]:
    """Return the outputs that a step is given and may quote, by step id."""
    kinds = ("output", "blocked", "unfinished")
    return {part.step_id: part.text for part in parts if part.kind in kinds and part.text}


def _is_to_settle(step: PlanStep) -> bool:
    return bool(step.when or step.for_each or step.repeat)
