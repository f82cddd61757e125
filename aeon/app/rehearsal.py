"""Every call, built with a small worked example and not sent: templates are tried before the first
real call, and `aeon render` shows what a call looks like. The real components build the calls, so
the examples cannot drift from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

from aeon.app import process
from aeon.app.components import Packaged, build_components, offer_memory
from aeon.app.job import resolve_job
from aeon.app.process import Process
from aeon.config.environment import environment
from aeon.config.settings import Settings
from aeon.convergence.comparison import Candidate
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores
from aeon.domain.errors import ConfigError, LLMError, PromptError
from aeon.domain.graph import current_outputs
from aeon.domain.history import StepResult
from aeon.domain.plan import Plan
from aeon.domain.profile import DEFAULT_PROFILE
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.request import CallName, LLMRequest, LLMResponse, Message
from aeon.domain.values import JsonMapping
from aeon.execution.event_stream import EventStream
from aeon.execution.tool_rounds.allowance import RoundAllowance
from aeon.execution.worker import Situation, StepWorker
from aeon.llm.prompts import PromptLibrary, show_path
from aeon.llm.protocols import close
from aeon.memory.run_memory import RunMemory
from aeon.plan.deltas import DeltaResult, apply_actions
from aeon.plan.transitions import ContextPart
from aeon.plan.triggers import pass_triggers
from aeon.schema.validators import FieldError
from aeon.supervisor.repair import Supervisor
from aeon.tools.registry import Tool, ToolRegistry

_GOAL = "Write the answer from the facts and the comparison"
# Texts that no template contains by itself.
_SENTINEL_TASK = "Example task 3c1f9a0e: say what is asked."
_SENTINEL_GOAL = "Example step 7b52d846: write what is asked"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A call as it would be sent: its prompt, its wire schema, and the file of each part."""

    call: CallName
    system: str
    user: str
    schema: JsonMapping
    strict: bool
    files: Mapping[str, Path]


class NotSent(LLMError):
    """Raised in place of an answer: a rehearsal calls no model."""


class _Checking(PromptLibrary):
    def __init__(self, prompts: PromptLibrary) -> None:
        # Not made anew: it shares the folders and the compiled templates.
        self.__dict__.update(vars(prompts))
        self._unchecked = prompts

    def render(self, call: CallName, variables: JsonMapping) -> tuple[Message, Message]:
        self._unchecked.check({call: variables})
        return super().render(call, variables)


class RequestRecorder:
    """An adapter that records the requests and calls no model."""

    def __init__(self) -> None:
        self.requests: list[LLMRequest] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Record the request. Raises NotSent."""
        self.requests.append(request)
        raise NotSent("a rehearsal asks no model")


def check(shared: Process) -> None:
    """Make every component once, and try the templates where prompts or schemas are the user's own:
    the tests have tried the packaged ones. Raises ConfigError for a component that cannot be made,
    and the errors of `try_templates`."""
    build_components(Packaged(shared, {}, EventStream(), RunMemory()), RequestRecorder())
    if shared.own_components.by_name:
        close(shared.own_components.make("memory", offer_memory(shared, "rehearsal")))
    settings = shared.settings
    if settings.prompts.dir is not None or settings.schemas.dir is not None:
        try_templates(shared)


def try_templates(shared: Process) -> None:
    """Try every template with its call's variables. Raises PromptError with file and line, also for
    a prompt that does not show its subject: the task, and for a worker the step. A repair needs
    neither."""
    checking = replace(shared, prompts=_Checking(shared.prompts))
    requests = _rehearse(checking, _SENTINEL_TASK, {"example": "An example input."}, _SENTINEL_GOAL)
    problems = dict.fromkeys(
        problem for request in requests for problem in _not_shown(shared.prompts, request)
    )
    if problems:
        hint = "Without it the model does not know what to do, and the call is wasted."
        raise PromptError("\n".join(problems), hint=hint)


def _not_shown(prompts: PromptLibrary, request: LLMRequest) -> Iterator[str]:
    text = "\n".join(message.content for message in request.messages)
    needed = [] if request.call == "repair" else [("the task", "{{ task }}", _SENTINEL_TASK)]
    if request.call in ("step", "tool_arguments"):
        needed.append(("the step", "{{ step.description }}", _SENTINEL_GOAL))
    for what, variable, sentinel in needed:
        if sentinel not in text:
            where = show_path(prompts.file_to_correct(request.call))
            yield f"{where}: a prompt of the call {request.call!r} does not show {what}: {variable}"


def render(shared: Process, call: str, task: str, inputs: Mapping[str, str]) -> Rendered:
    """Return one call of a task as it would be sent, in the worked example. Raises ConfigError for
    an unknown call."""
    requests = _rehearse(shared, task, inputs, only=call)
    if not requests:
        known = ", ".join(sorted(get_args(CallName)))
        raise ConfigError(f"there is no call {call!r}", hint=f"the calls are {known}")
    request = requests[-1]  # the form of the mode in force, as `_calls` orders them
    files = {**shared.prompts.files(request.call), **shared.schemas.files(request.call)}
    system, user = (message.content for message in request.messages)
    return Rendered(request.call, system, user, request.schema, request.strict, files)


def render_call(settings: Settings, call: str) -> Rendered:
    """Return one call as these settings would send it. Raises ConfigError."""
    environ = environment(settings)
    job = resolve_job(settings, environ)
    shared = process.build_process(job, environ)
    try:
        if settings.prompts.dir is not None:
            check(shared)
        return render(shared, call, job.task or "An example task.", job.inputs)
    finally:
        process.close_process(shared)


def _rehearse(
    shared: Process, task: str, inputs: Mapping[str, str], goal: str = _GOAL, only: str = ""
) -> list[LLMRequest]:
    recorder = RequestRecorder()
    memory = RunMemory(held=shared.settings.memory.entries or {"note": "An example memory."})
    parts = Packaged(shared, inputs, EventStream(), memory)
    tooled = replace(shared, registry=ToolRegistry([_TOOL]))
    with_tool = Packaged(tooled, {}, EventStream(), memory)
    for call, ask in _calls(parts, with_tool, shared, _make_plan(task, goal), recorder):
        if only in ("", call):
            with suppress(NotSent):
                ask()
    return recorder.requests


def _make_delta(plan: Plan) -> DeltaResult:
    changed = plan.steps[1].model_copy(
        update={"description": "Compare by cost", "status": "pending"}
    )
    action = RefinementAction(
        action_type="MODIFY",
        target_step_id="answer",
        new_step=changed,
        justification="It now names the measure.",
        semantic_validation_input=(_ISSUE,),
    )
    return apply_actions(plan, [action])


def _calls(
    parts: Packaged, with_tool: Packaged, shared: Process, plan: Plan, recorder: RequestRecorder
) -> Iterator[tuple[CallName, Callable[[], object]]]:
    task = plan.task
    issues = (_ISSUE,)
    steps = list(plan.steps)
    answer = steps[-1]
    outputs = current_outputs(steps)
    criteria = shared.settings.convergence.criteria
    triggers = pass_triggers(plan, issues, _ASSESSMENT)
    delta = _make_delta(plan)
    supervisor = Supervisor(recorder, prompts=shared.prompts, schemas=shared.schemas)
    depth = parts.make_adaptive_depth(recorder)
    planner = parts.make_planner(recorder)
    validate = parts.make_validator(recorder).validate
    engine = parts.make_convergence(recorder)
    worker = parts.make_executor(recorder).worker
    tooled = with_tool.make_executor(recorder).worker
    yield "task_profile", lambda: depth.infer_task_profile(task)
    yield "plan", lambda: planner.generate_plan(task)
    yield "semantic_validation", lambda: validate("plan", plan)
    yield (
        "semantic_validation",
        lambda: validate("step", delta.plan, [delta.plan.steps[-1]], outputs, delta=delta),
    )
    yield "subplan", lambda: planner.create_subplan(answer, plan, 1)
    alone = plan.model_copy(update={"steps": (answer.model_copy(update={"dependencies": ()}),)})
    # The form of the mode in force comes last, since the last one is shown.
    for left in (None, 3) if shared.settings.mode.kind == "core" else (3, None):
        for whole in (alone, plan):
            yield "step", partial(_step, worker, whole, left)
            yield "tool_arguments", partial(_step, tooled, whole, left, tool=_TOOL.name)
    update = depth.update_task_profile
    yield "task_profile", lambda: update(DEFAULT_PROFILE, True, list(issues), ["BLOCKED"], task)
    yield "semantic_validation", lambda: validate("cross_phase", plan, steps, outputs)
    yield from _calls_about_whole_answers(parts, shared, alone, recorder)
    assess = partial(engine.assess, _REPORT, plan, steps, outputs, criteria, left_to_person=issues)
    yield "convergence", assess
    yield (
        "refinement",
        lambda: planner.refine(
            plan, issues, triggers, ["gather"], ["other"], assessment=_ASSESSMENT
        ),
    )
    schema = shared.schemas.wire("step").schema
    errors = [FieldError("", "not JSON")]
    yield "repair", lambda: supervisor.repair_json("{", schema, errors=errors, call="step")


def _calls_about_whole_answers(
    parts: Packaged, shared: Process, plan: Plan, recorder: RequestRecorder
) -> Iterator[tuple[CallName, Callable[[], object]]]:
    single = shared.settings.mode.model_copy(update={"kind": "single"})
    direct = shared.with_settings(shared.settings.model_copy(update={"mode": single}))
    worker = Packaged(direct, parts.inputs, EventStream(), parts.memory).make_executor(recorder)
    yield "direct", partial(_step, worker.worker, plan)
    prefer = parts.make_comparer(recorder).prefer
    candidates = (Candidate("An answer."), Candidate("Another answer."))
    yield "comparison", partial(prefer, plan.task, *candidates)


def _step(
    worker: StepWorker, plan: Plan, ttl_remaining: int | None = None, tool: str | None = None
) -> None:
    context = worker.context([ContextPart("output", "gather", "The facts.")])
    of_model = {"step_output": "A draft."}
    of_kind = {"tool": tool, "agent": None} if tool else of_model
    running = {"status": "running", "incoming_context": context, **of_kind}
    step = plan.steps[-1].model_copy(update=running)
    rounds = RoundAllowance(worker.count_rounds(step))
    memory = worker.recall()
    results = {"gather": StepResult(step_id="gather", step_output="The facts.")}
    worker.work(step, Situation(plan, results, ttl_remaining, memory=memory, allowance=rounds))


_WORD = {"word": {"type": "string"}}
_TOOL = Tool(
    name="example",
    description="Looks a word up.",
    input_schema={
        "type": "object",
        "properties": _WORD,
        "required": ["word"],
        "additionalProperties": False,
    },
    output_schema={"type": "string"},
    invoke=lambda arguments: arguments["word"],
)
_ISSUE = ValidationIssue(
    issue_id="i1",
    type="specificity",
    severity="MEDIUM",
    description="The comparison names no measure.",
)
_REPORT = SemanticValidationReport(
    validation_id="example", artifact_type="cross_phase", issues=(_ISSUE,)
)
_ASSESSMENT = ConvergenceAssessment(
    converged=False,
    reason_codes=("incomplete", "omission_detected"),
    scores=ConvergenceScores(completeness_score=0.4, coherence_score=0.9, consistency_score=0.9),
    explanation="The comparison is missing.",
    detected_issues=("The comparison is missing.",),
    blocking_issues=("The comparison is missing.",),
)


def _make_plan(task: str, goal: str) -> Plan:
    complete = {"status": "complete", "step_output": "The facts.", "agent": "llm"}
    blocked = {
        "status": "invalid",
        "step_output": "A draft.",
        "agent": "llm",
        "clarity_state": "BLOCKED",
    }
    gather = {
        "step_id": "gather",
        "description": "Gather what the task and its inputs give",
        **complete,
    }
    answer = {"step_id": "answer", "description": goal, "dependencies": ["gather"], **blocked}
    answer["clarity_reason"] = "It is not said what matters most."
    question = {"question": "What matters most?", "assumption": "Cost.", "step_id": "answer"}
    goal_of_plan = "An answer to use as it stands."
    return Plan.model_validate(
        {"goal": goal_of_plan, "task": task, "steps": [gather, answer], "questions": [question]}
    )
