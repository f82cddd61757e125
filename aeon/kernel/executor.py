"""One batch: every step of it carried out by the model, at the same time.

No meaning is judged here (FR-087 to FR-093).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aeon.errors import AeonError, LimitReached, LLMError, ProviderError, StopRequested, ValidationError
from aeon.events import Emit, StepFinished, StepStarted, ignore
from aeon.kernel.control import Workers, as_done
from aeon.kernel.state import StepResult
from aeon.llm.interface import CallSite, LLMAdapter, at_site
from aeon.plan.graph import dependents, final_steps
from aeon.plan.models import Plan, PlanStep
from aeon.plan.transitions import abandoned, failed, finished
from aeon.plan.views import outline, plan_view
from aeon.structured import StructuredCaller
from aeon.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A step that was charged and numbered, ready to be carried out."""

    step: PlanStep
    site: CallSite


@dataclass(frozen=True, slots=True)
class Executed:
    """A step after its execution.

    `ended_by` is the error that must end the run, None when it may go on; `unknown_tool` says that the step names a
    tool that does not exist.
    """

    step: PlanStep
    result: StepResult | None = None
    ended_by: AeonError | None = None
    unknown_tool: str | None = None


class StepExecutor:
    """Carries out steps with the model and passes what comes of it through, unjudged (FR-092).

    With an `answer_schema`, the output of the plan's final step is JSON of that schema.
    """

    def __init__(
        self,
        llm: LLMAdapter,
        *,
        structured: StructuredCaller | None = None,
        registry: ToolRegistry | None = None,
        answer_schema: Mapping[str, Any] | None = None,
        emit: Emit = ignore,
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self._registry = registry or ToolRegistry()
        self._answer_schema = answer_schema
        self._emit = emit

    def run_batch(
        self,
        plan: Plan,
        batch: Sequence[Dispatch],
        workers: Workers,
        stopping: Callable[[], bool],
        grace_seconds: float,
    ) -> Iterator[Executed]:
        """Every step of a batch when it is done; last, as abandoned, those that a stop left unfinished (FR-064)."""
        for dispatch in batch:
            self._emit(_started(dispatch), dispatch.site)
        running = {workers.submit(partial(self._carry_out, plan, dispatch)): dispatch for dispatch in batch}
        for future in as_done(list(running), stopping, grace_seconds):
            del running[future]
            yield future.result()
        for dispatch in running.values():
            yield self._finished(dispatch, Executed(abandoned(dispatch.step)))

    def _carry_out(self, plan: Plan, dispatch: Dispatch) -> Executed:
        unknown = self._unknown_tool(dispatch.step)
        step = (
            dispatch.step.model_copy(update={"errors": (*dispatch.step.errors, unknown)}) if unknown else dispatch.step
        )
        with at_site(dispatch.site):
            try:
                executed = self._reason(plan, step)
            except (LimitReached, StopRequested) as error:
                executed = Executed(abandoned(dispatch.step), ended_by=error)
            except (LLMError, ValidationError) as error:
                executed = _failed(step, error)
        return self._finished(dispatch, replace(executed, unknown_tool=unknown))

    def _finished(self, dispatch: Dispatch, executed: Executed) -> Executed:
        site = dispatch.site
        self._emit(StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=executed.step), site)
        return executed

    def _reason(self, plan: Plan, step: PlanStep) -> Executed:
        as_json = self._answer_schema is not None and [s.step_id for s in final_steps(plan)] == [step.step_id]
        result = self._structured.call(
            "step",
            {
                "task": plan.task,
                "plan": plan_view(plan),
                "outline": outline(plan, step.step_id),
                "used_by": [user.step_id for user in dependents(plan, step.step_id)],
                "step": step.model_dump(),
                "previous_output": step.step_output,
                "previous_reason": step.clarity_reason,
                "answer_schema": self._answer_schema if as_json else None,
            },
            lambda answer: step_result(step.step_id, answer, as_json),
            role="worker",
            answer_schema=self._answer_schema if as_json else None,
        )
        return Executed(finished(step, result), result)

    def _unknown_tool(self, step: PlanStep) -> str | None:
        """What is wrong with the step's tool, which the model then does without (Sprint 1, FR-058)."""
        if step.tool is None or self._registry.get(step.tool):
            return None
        return f"Tool '{step.tool}' not found in registry; the step was carried out by the model"


def step_result(step_id: str, answer: Mapping[str, Any], as_json: bool) -> StepResult:
    """The worker's answer; with `as_json` its output is kept as JSON text."""
    output = answer["step_output"]
    return StepResult(
        step_id=step_id,
        step_output=json.dumps(output, ensure_ascii=False, indent=2) if as_json else output,
        clarity_state=answer["clarity_state"],
        clarity_reason=answer["clarity_reason"],
        handoff=answer["handoff_to_next"],
    )


def _failed(step: PlanStep, error: AeonError) -> Executed:
    """A step whose call could not be completed; when the provider is down, the run ends too (Sprint 1, FR-049)."""
    message = f"{type(error).__name__}: {error.message}"
    ended_by = error if isinstance(error, ProviderError) and error.ends_run else None
    return Executed(failed(step, message), StepResult(step_id=step.step_id, error=message), ended_by)


def _started(dispatch: Dispatch) -> StepStarted:
    return StepStarted(pass_number=dispatch.site.pass_number, cycle=dispatch.site.cycle, step=dispatch.step)
