"""Every call, made ready with a small worked example and not sent: templates are tried before the first real call, and
`aeon render` shows what a call looks like. The real components make the calls, so the examples cannot drift from
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from aeon.app.process import Process
from aeon.app.wiring import Components, components
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores, CriterionResult
from aeon.domain.errors import ConfigError, LLMError, PromptError
from aeon.domain.graph import current_outputs
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.domain.profile import DEFAULT_PROFILE
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import IssueLocation, SemanticValidationReport, ValidationIssue
from aeon.domain.request import CallName, LLMRequest, LLMResponse, Message
from aeon.execution.worker import Situation
from aeon.kernel.event_stream import EventStream
from aeon.llm.prompts import PromptLibrary, shown_path
from aeon.memory.run_memory import RunMemory
from aeon.plan.deltas import apply_actions
from aeon.plan.transitions import ContextPart
from aeon.plan.triggers import pass_triggers
from aeon.schema.violations import FieldError
from aeon.supervisor.repair import Supervisor
from aeon.tools.registry import Tool, ToolRegistry

_GOAL = "Write the answer from the facts and the comparison"
# Texts that no template has of itself.
_SENTINEL_TASK = "Example task 3c1f9a0e: say what is asked."
_SENTINEL_GOAL = "Example step 7b52d846: write what is asked"

# Settings on which no template of a rehearsal depends, and what this process has tried with success.
_NOT_IN_PROMPTS = {"task", "inputs", "provider", "limits", "store", "observability", "progress", "output"}
_PASSED: set[str] = set()


@dataclass(frozen=True, slots=True)
class Rendered:
    """A call as it would be sent: its prompt, its wire schema, and the file that each part comes from."""

    call: CallName
    system: str
    user: str
    schema: Mapping[str, Any]
    strict: bool
    files: Mapping[str, Path]


class NotSent(LLMError):
    """Raised instead of an answer: a rehearsal asks no model."""


class _Checking(PromptLibrary):
    """A prompt library that checks the templates of each call that is rendered."""

    def __init__(self, prompts: PromptLibrary) -> None:
        self._prompts = prompts

    def render(self, call: CallName, variables: Mapping[str, Any]) -> tuple[Message, Message]:
        self._prompts.check({call: variables})
        return self._prompts.render(call, variables)

    def text(self, name: str, variables: Mapping[str, Any]) -> str:
        return self._prompts.text(name, variables)

    def schema_prompt(self, call: CallName, schema: Mapping[str, Any], messages: Sequence[Message]) -> str:
        return self._prompts.schema_prompt(call, schema, messages)


class _Recorder:
    """An adapter that records the request and answers nothing."""

    def __init__(self) -> None:
        self.requests: list[LLMRequest] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(request)
        raise NotSent("a rehearsal asks no model")


def check(shared: Process) -> None:
    """Try every template with its call's variables.

    Raises PromptError naming file and line, and naming the file of a prompt that does not show what its call is about:
    the task, and to a worker the description of the step. A repair is about neither.
    """
    tried = _what_decides(shared)
    if tried in _PASSED:
        return
    checking = replace(shared, prompts=_Checking(shared.prompts))
    requests = _rehearse(checking, _SENTINEL_TASK, {"example": "An example input."}, _SENTINEL_GOAL)
    problems = dict.fromkeys(_not_shown(shared.prompts, requests))
    if problems:
        raise PromptError(
            "\n".join(problems), hint="Without it the model does not know what to do, and the call is wasted."
        )
    if tried is not None:
        _PASSED.add(tried)


def _what_decides(shared: Process) -> str | None:
    """What the outcome depends on; None where it is tried each time: with own templates, whose folder counts too."""
    digests = shared.prompts_digest, shared.schemas_digest
    if shared.settings.prompts.dir is not None:
        return None
    settings = shared.settings.model_dump_json(exclude=_NOT_IN_PROMPTS)
    return repr((*digests, settings, shared.registry.describe()))


def _not_shown(prompts: PromptLibrary, requests: Iterable[LLMRequest]) -> Iterator[str]:
    task, goal = ("the task", "{{ task }}", _SENTINEL_TASK), ("the step", "{{ step.description }}", _SENTINEL_GOAL)
    for request in requests:
        text = "\n".join(message.content for message in request.messages)
        needed = {"repair": (), "step": (task, goal), "tool_arguments": (task, goal)}.get(request.call, (task,))
        for what, variable, sentinel in needed:
            if sentinel not in text:
                where = shown_path(prompts.files(request.call)["user"])
                yield f"{where}: a prompt of the call {request.call!r} does not show {what}: {variable}"


def render(shared: Process, call: str, task: str, inputs: Mapping[str, str]) -> Rendered:
    """One call of a task as it would be sent, in the worked example. Raises ConfigError for a call there is not."""
    requests = {request.call: request for request in _rehearse(shared, task, inputs)}
    request = next((found for name, found in requests.items() if name == call), None)
    if request is None:
        raise ConfigError(f"there is no call {call!r}", hint=f"the calls are {', '.join(sorted(requests))}")
    files = {**shared.prompts.files(request.call), **shared.schemas.files(request.call)}
    system, user = (message.content for message in request.messages)
    return Rendered(request.call, system, user, request.schema, request.strict, files)


def _rehearse(shared: Process, task: str, inputs: Mapping[str, str], goal: str = _GOAL) -> list[LLMRequest]:
    """The requests of every call, in the order of a run."""
    recorder = _Recorder()
    memory = RunMemory(held=shared.settings.memory.entries or {"note": "An example memory."})
    parts = components(shared, recorder, inputs, EventStream(), memory)
    for ask in _calls(parts, shared, example_plan(task, goal), recorder, memory):
        try:
            ask()
        except NotSent:
            continue
    return recorder.requests


def _calls(
    parts: Components, shared: Process, plan: Plan, recorder: _Recorder, memory: RunMemory
) -> list[Callable[[], object]]:
    task, report, assessment = plan.task, example_report(), example_assessment()
    alone = plan.model_copy(update={"steps": (plan.steps[-1].model_copy(update={"dependencies": ()}),)})
    outputs, steps = current_outputs(plan.steps), list(plan.steps)
    criteria = shared.settings.convergence.criteria
    triggers, delta = (
        pass_triggers(plan, report.issues, assessment),
        apply_actions(plan, [example_action(plan, report)]),
    )
    tooled = replace(shared, registry=ToolRegistry([EXAMPLE_TOOL]))
    with_tool = components(tooled, recorder, {}, EventStream(), memory)
    supervisor = Supervisor(recorder, prompts=shared.prompts, schemas=shared.schemas)
    schema = shared.schemas.wire("step").schema
    # The form of the mode in force comes last: it is the one that is shown.
    budgets = (None, 3) if shared.settings.mode.kind == "core" else (3, None)
    return [
        lambda: parts.adaptive.infer_task_profile(task),
        lambda: parts.planner.generate_plan(task),
        lambda: parts.validator.validate("plan", plan),
        lambda: parts.validator.validate("step", delta.plan, [delta.plan.steps[1]], outputs, delta=delta),
        lambda: parts.planner.create_subplan(plan.steps[1], plan, 1),
        lambda: _step(parts, alone),
        *(partial(_step, parts, plan, left) for left in budgets),
        lambda: _tool_step(with_tool, alone),
        *(partial(_tool_step, with_tool, plan, left) for left in budgets),
        lambda: parts.adaptive.update_task_profile(DEFAULT_PROFILE, True, list(report.issues), ["BLOCKED"], task),
        lambda: parts.validator.validate("cross_phase", plan, steps, outputs),
        lambda: parts.convergence.assess(report, plan, steps, outputs, criteria, left_to_person=report.issues),
        lambda: parts.planner.refine(plan, report.issues, triggers, ["gather"], ["other"], assessment=assessment),
        lambda: supervisor.repair_json("{", schema, errors=[FieldError("", "not JSON")], call="step"),
    ]


def _step(parts: Components, plan: Plan, ttl_remaining: int | None = None) -> None:
    """The plan's last step, with context and an earlier attempt, carried out as the kernel would."""
    worker = parts.executor.worker
    step = plan.steps[-1].model_copy(
        update={
            "status": "running",
            "incoming_context": worker.context([ContextPart("output", "gather", "The facts.")]),
            "step_output": "A draft.",
        }
    )
    worker.work(step, Situation(plan, {}, ttl_remaining, memory=worker.recall()))


def _tool_step(parts: Components, plan: Plan, ttl_remaining: int | None = None) -> None:
    """A step whose tool is asked its arguments for."""
    step = plan.steps[-1].model_copy(update={"tool": EXAMPLE_TOOL.name, "agent": None})
    worker = parts.executor.worker
    worker.work(step, Situation(plan, {}, ttl_remaining, memory=worker.recall()))


EXAMPLE_TOOL = Tool(
    name="example",
    description="Looks a word up.",
    input_schema={
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    },
    output_schema={"type": "string"},
    invoke=lambda arguments: arguments["word"],
)


def example_plan(task: str, goal: str = _GOAL) -> Plan:
    """A plan under way: one step complete, one BLOCKED, one pending, whose description is `goal`."""
    return Plan(
        goal="An answer that the person can use as it stands.",
        task=task,
        steps=(
            PlanStep(
                step_id="gather",
                description="Gather what the task and its inputs give",
                status="complete",
                provides=("facts",),
                handoff_to_next="the facts that everything else rests on",
                step_output="The facts.",
                clarity_state="CLEAR",
                agent="llm",
            ),
            PlanStep(
                step_id="compare",
                description="Compare the options by the facts",
                dependencies=("gather",),
                status="invalid",
                step_output="The options, not yet compared.",
                clarity_state="BLOCKED",
                clarity_reason="It is not said what matters most.",
                agent="llm",
            ),
            PlanStep(step_id="answer", description=goal, dependencies=("gather", "compare"), agent="llm"),
        ),
        questions=(FollowUpQuestion(question="What matters most?", assumption="Cost.", step_id="compare"),),
    )


def example_report() -> SemanticValidationReport:
    """A review with one issue."""
    issue = ValidationIssue(
        issue_id="i1",
        type="specificity",
        severity="MEDIUM",
        description="The comparison names no measure.",
        location=IssueLocation(step_id="compare"),
    )
    return SemanticValidationReport(validation_id="example", artifact_type="cross_phase", issues=(issue,))


def example_action(plan: Plan, report: SemanticValidationReport) -> RefinementAction:
    """A change of the BLOCKED step that answers the review's issue."""
    step = plan.steps[1]
    return RefinementAction(
        action_type="MODIFY",
        target_step_id=step.step_id,
        new_step=step.model_copy(update={"description": "Compare the options by cost", "status": "pending"}),
        justification="It now names the measure.",
        semantic_validation_input=report.issues,
    )


def example_assessment() -> ConvergenceAssessment:
    """An assessment that found something missing."""
    return ConvergenceAssessment(
        converged=False,
        reason_codes=("incomplete", "omission_detected"),
        scores=ConvergenceScores(completeness_score=0.4, coherence_score=0.9, consistency_score=0.9),
        explanation="The comparison is missing.",
        detected_issues=("The comparison is missing.",),
        blocking_issues=("The comparison is missing.",),
        criteria=(CriterionResult(name="example", met=False, reason="Not yet."),),
    )
