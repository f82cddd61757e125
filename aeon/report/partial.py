"""A run without a result, running or cut off, reconstructed from its journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pydantic

from aeon.config.origin import FILE, ProviderOrigin
from aeon.config.provider import settle_provider
from aeon.config.settings import Settings
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import ArtefactError
from aeon.domain.graph import answer_text
from aeon.domain.history import (
    Advisory,
    EvaluationResults,
    ExecutionPass,
    Phase,
    PhaseRecord,
    RunState,
    StepResult,
    Timing,
)
from aeon.domain.outcome import build_outcome, latest_assessed
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.profile import OWN_LEVELS
from aeon.domain.refinement import RefinementRecord
from aeon.domain.report import SemanticValidationReport
from aeon.domain.result import (
    SIMULATED_LINE,
    Hashes,
    ProviderReport,
    RunResult,
    Timings,
    TTLReport,
    UsageReport,
)
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.fast_yaml import read_yaml
from aeon.files.jsonl import read_lines
from aeon.llm.settings import AutoProvider, CustomProvider, OpenAIProvider, ProviderSettings
from aeon.observability.cycle_log import plan_of
from aeon.plan.transitions import abandon_step
from aeon.report.runs import end_without_result, read_document

Line = JsonMapping
_MOMENT = timedelta(microseconds=1)


class PartialResult(RunResult):
    """The result of a run that has none: the content of its journals. `state`: it is `running`,
    `cut off`, one of these two (`unfinished`), or only a `plan`."""

    state: Literal["running", "cut off", "unfinished", "plan"]


def is_under_way(result: RunResult) -> bool:
    """Whether a run is running."""
    return isinstance(result, PartialResult) and result.state == "running"


def read_partial(directory: Path, events: Sequence[Line]) -> PartialResult:
    """Reconstruct the run so far, from the `events` of its journal. Raises ArtefactError where the
    journals cannot be read, or hold no configuration."""
    state = end_without_result(directory)
    origin = read_document(directory / FILE)
    try:
        configuration = _configuration(directory, origin)
        return _assemble(events, origin, configuration, _plans(directory), state)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, pydantic.ValidationError):
            reason = f"{error.error_count()} entries are not of this version"
        else:
            reason = f"{type(error).__name__}: {error}"
        raise ArtefactError(
            f"{directory} holds no result, and its journals cannot be read: {reason}",
            hint=f"To resume the run: `aeon resume={directory}`",
        ) from error


def _configuration(directory: Path, origin: Line) -> JsonObject:
    """Return the composed settings, with the resolved provider."""
    path = directory / ".hydra" / "config.yaml"
    recorded = {**origin["settings"], "task": origin["task"]}
    settings = Settings.model_validate(read_yaml(path) if path.is_file() else recorded)
    provider = _settle_as_before(settings.provider, origin["provider"])
    return settings.model_copy(update={"provider": provider}).model_dump(mode="json")


def _settle_as_before(provider: ProviderSettings, resolved: JsonMapping) -> ProviderSettings:
    """Return the provider as the run resolved it, whose prices are those of its address."""
    recorded = ProviderOrigin.model_validate(resolved)
    if isinstance(provider, AutoProvider | CustomProvider):
        return settle_provider(provider, {}, recorded)
    if isinstance(provider, OpenAIProvider):
        return provider.model_copy(update={"base_url": recorded.base_url})
    return provider


def _plans(directory: Path) -> dict[int, Plan]:
    """Return for each pass the first plan with which a cycle was dispatched."""
    found: dict[int, Plan] = {}
    with suppress(OSError, ValueError):
        lines = [line for line in read_lines(directory / "cycles.jsonl") if isinstance(line, dict)]
        for line in sorted(lines, key=lambda one: one["sequence"]):
            if line["pass_number"] not in found and line["plan_state"] is not None:
                with suppress(LookupError, ValueError):
                    plan = plan_of(lines, line["sequence"])
                    found |= {line["pass_number"]: plan} if plan else {}
    return found


def _assemble(
    events: Sequence[Line],
    origin: Line,
    configuration: JsonObject,
    plans: Mapping[int, Plan],
    state: str,
) -> PartialResult:
    run = _read_state(events, configuration, plans, state)
    if origin["synthetic"]:
        run = run.model_copy(update={"answer_mark": f"{SIMULATED_LINE}\n"})
    timings = _timings(events)
    run_id = origin["run_id"]
    task = origin["task"]
    thresholds = {"convergence_criteria": configuration["convergence"]}
    outcome = build_outcome(
        run_id, task, thresholds, run, "interrupted", None, timings.total_seconds
    )
    assessed = latest_assessed(run.passes)
    assessment = run.assessment
    provider = origin["provider"]
    return PartialResult(
        state=state,
        run_id=run_id,
        synthetic=bool(origin["synthetic"]),
        task=task,
        answer=outcome.answer,
        converged=False,
        termination_reason="interrupted",
        scores=assessment.scores if assessment else None,
        assessed_pass=assessed.pass_number if assessed else None,
        reason_codes=assessment.reason_codes if assessment else (),
        explanation=assessment.explanation if assessment else "",
        best_pass=outcome.best_pass,
        passes=outcome.history.overall_statistics.total_passes,
        ttl=_ttl(events, configuration),
        usage=UsageReport(),
        advisories=run.advisories,
        follow_up_questions=run.plan.questions if run.plan else (),
        timings=timings,
        versions=dict(origin.get("versions") or {}),
        provider=ProviderReport(
            kind=provider["kind"], base_url=provider.get("base_url"), models=_models(events)
        ),
        hashes=_hashes(origin.get("hashes") or {}),
        configuration=configuration,
        history=outcome.history,
    )


def _read_state(
    events: Sequence[Line], configuration: JsonMapping, plans: Mapping[int, Plan], state: str
) -> RunState:
    passes = tuple(_read_passes(events, plans))
    if state == "cut off":
        passes = (*passes[:-1], _abandon_running(passes[-1]))
    plan = passes[-1].plan_state
    assessed = latest_assessed(passes)
    ttl = _ttl(events, configuration)
    return RunState(
        pass_number=passes[-1].pass_number,
        passes=passes,
        plan=plan.with_steps(*passes[-1].steps) if plan else None,
        assessment=assessed.evaluation_results.convergence if assessed else None,
        advisories=tuple(Advisory.model_validate(one) for one in _each(events, "advisory_raised")),
        ttl_allocated=ttl.allocated,
        ttl_used=ttl.used,
    )


def _abandon_running(one: ExecutionPass) -> ExecutionPass:
    """Return a pass that a kill cut off: none of its steps is running."""
    steps = (abandon_step(step) if step.status == "running" else step for step in one.steps)
    return one.model_copy(update={"steps": tuple(steps)})


def _timings(events: Sequence[Line]) -> Timings:
    began, ended = (events[place]["time"] for place in (0, -1))
    seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    return Timings(start_time=began, end_time=ended, total_seconds=seconds)


def _hashes(known: Mapping[str, str]) -> Hashes:
    """Return the hashes that are recorded when a run begins."""
    return Hashes(
        task="",
        inputs={},
        prompts=known.get("prompts", ""),
        schemas=known.get("schemas", ""),
        configuration=known.get("configuration", ""),
    )


def _each(events: Iterable[Line], name: str) -> Iterator[Any]:
    """Return the payload of the events of a name: the one field of their line that holds it."""
    field = {
        "advisory_raised": "advisory",
        "validated": "report",
        "checks_done": "checks",
        "assessed": "assessment",
        "refined": "refinement",
        "plan_made": "plan",
    }[name]
    return (line[field] for line in events if line["event"] == name)


def _ttl(events: Sequence[Line], configuration: JsonMapping) -> TTLReport:
    allocated = int(configuration["ttl"]["base"])
    for line in events:
        if line["event"] == "profile_inferred":
            allocated = line["depth"]["allocated_ttl"]
        if line["event"] == "profile_updated":
            allocated = line["transition"]["ttl_after"]
    cycles = (line["site"]["cycle"] for line in events if line["event"] == "cycle_started")
    used = max(cycles, default=0)
    return TTLReport(allocated=allocated, used=used, remaining=max(0, allocated - used))


def _models(events: Sequence[Line]) -> dict[str, list[str]]:
    answered = [line for line in events if line["event"] == "call_answered"]
    pairs = sorted({(line["role"], line["model"]) for line in answered})
    return {role: [model for one, model in pairs if one == role] for role, _ in pairs}


def _read_passes(events: Sequence[Line], plans: Mapping[int, Plan]) -> Iterator[ExecutionPass]:
    """Return the passes, the last as far as it came; before the first, one that holds the run's
    start."""
    starts = [place for place, line in enumerate(events) if line["event"] == "pass_started"]
    if not starts:
        yield _read_pass(0, events, None)
        return
    plan: Plan | None = None
    for place, following in pairwise([*starts, len(events)]):
        number = events[place]["pass_number"]
        lines = events[place:following]
        made = _find_made_plan(lines)
        plan = plans.get(number) or plan or made
        this = _read_pass(number, lines, plan)
        yield this
        if plan is not None:
            plan = (made or plan).with_steps(*this.steps)


def _find_made_plan(lines: Sequence[Line]) -> Plan | None:
    plans = [Plan.model_validate(plan) for plan in _each(lines, "plan_made")]
    return plans[-1] if plans else None


def _read_pass(number: int, lines: Sequence[Line], plan: Plan | None) -> ExecutionPass:
    steps = _steps(lines, plan)
    results = {
        step.step_id: _result_of(step) for step in steps if step.status in ("complete", "failed")
    }
    refined = list(_each(lines, "refined"))
    refinement = None
    if refined:
        refinement = RefinementRecord.model_validate(refined[-1], context=OWN_LEVELS)
    finished = next((line for line in lines if line["event"] == "pass_finished"), None)
    return ExecutionPass(
        pass_number=number,
        phase=_phase_of(number),
        phases=tuple(_phases(lines)),
        plan_state=plan,
        steps=steps,
        execution_results=results,
        evaluation_results=_evaluation(lines),
        refinement=refinement,
        refinement_changes=refinement.accepted if refinement else (),
        answer=answer_text(plan.with_steps(*steps)) if plan else "",
        ttl_remaining=lines[0].get("ttl_remaining") or 0,
        complete=bool(finished and finished["complete"]),
        timing_information=_pass_timing(lines),
    )


def _phase_of(number: int) -> Phase:
    if number == 0:
        return "PLAN"
    return "RE_EXECUTE" if number > 1 else "EXECUTE"


def _pass_timing(lines: Sequence[Line]) -> Timing:
    first, last = (datetime.fromisoformat(lines[place]["time"]) for place in (0, -1))
    return Timing(
        start_time=first.isoformat(),
        end_time=max(last, first + _MOMENT).isoformat(),
        duration_seconds=(last - first).total_seconds(),
    )


def _steps(lines: Sequence[Line], plan: Plan | None) -> tuple[PlanStep, ...]:
    """Return the steps of the plan in their state by the last event of each."""
    seen = {
        line["step"]["step_id"]: line["step"]
        for line in lines
        if line["event"] in ("step_started", "step_finished", "step_skipped")
    }
    latest = {step_id: PlanStep.model_validate(step) for step_id, step in seen.items()}
    return tuple(latest.get(step.step_id, step) for step in (plan.steps if plan else ()))


def _result_of(step: PlanStep) -> StepResult:
    return StepResult(
        step_id=step.step_id,
        step_output=step.step_output,
        clarity_state=step.clarity_state,
        clarity_reason=step.clarity_reason,
        error=step.errors[-1] if step.status == "failed" and step.errors else None,
    )


def _evaluation(lines: Sequence[Line]) -> EvaluationResults:
    reports = [
        SemanticValidationReport.model_validate(one, context=OWN_LEVELS)
        for one in _each(lines, "validated")
    ]
    assessments = [ConvergenceAssessment.model_validate(one) for one in _each(lines, "assessed")]
    checked = [
        tuple(map(CheckOutcome.model_validate, found)) for found in _each(lines, "checks_done")
    ]
    return EvaluationResults(
        validation_report=reports[-1] if reports else None,
        convergence=assessments[-1] if assessments else None,
        checks=checked[-1] if checked else (),
    )


def _phases(lines: Sequence[Line]) -> Iterator[PhaseRecord]:
    ends = {line["phase"]: line for line in lines if line["event"] == "phase_finished"}
    for line in lines:
        if line["event"] == "phase_started" and line["phase"] != "PROFILE":
            end = ends.get(line["phase"])
            yield PhaseRecord(
                phase=line["phase"],
                start_time=line["time"],
                end_time=end["time"] if end else None,
                outcome=end["outcome"] if end else "abandoned",
            )
