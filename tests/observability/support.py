"""Runs told as events, with a clock of their own, and a result: what views and journals are driven with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores, PairStatus
from aeon.domain.history import (
    Advisory,
    BestPass,
    EvaluationResults,
    ExecutionHistory,
    ExecutionPass,
    FinalResult,
    PhaseRecord,
    RefinementRecord,
    Statistics,
    StepResult,
    Timing,
)
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, renumber_steps
from aeon.domain.profile import AdaptiveDepthConfiguration, TaskProfile
from aeon.domain.refinement import RefinementAction, RefusedAction, RepairRecord, StepChange
from aeon.domain.report import (
    IssueLocation,
    ProposedRepair,
    SemanticValidationReport,
    ValidationIssue,
)
from aeon.domain.request import CallSite, LLMRequest, Message, Usage
from aeon.domain.result import Hashes, ProviderReport, RunResult, Timings, TTLReport, UsageReport
from aeon.files.jsonl import read_lines
from aeon.observability.cycle_log import CycleLog

TASK = "design a web application with user authentication"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
END = START + timedelta(seconds=3.25)
MODEL = "model-1"


class Story:
    """Tells a run: numbers events as the kernel does and lets its own clock run."""

    def __init__(self) -> None:
        self.told: list[e.Recorded] = []
        self.now = START
        self.cycle = 0
        self.ttl = 34
        self._sequence = 0
        self._parts: dict[int, int] = {}

    def tell(self, event: e.Event, site: CallSite | None = None, after: float = 0.1) -> None:
        self.now += timedelta(seconds=after)
        sequence = site.sequence if site else self.reserve()
        part = self._parts[sequence] = self._parts.get(sequence, -1) + 1
        self.told.append(e.Recorded(sequence, part, self.now.isoformat(), event))

    def reserve(self) -> int:
        self._sequence += 1
        return self._sequence

    def phase(self, stage: str, phase: str, number: int) -> None:
        self.tell(e.PhaseStarted(stage=stage, phase=phase, pass_number=number))

    def phase_ends(self, stage: str, phase: str, number: int, outcome: str = "done") -> None:
        self.tell(e.PhaseFinished(stage=stage, phase=phase, pass_number=number, outcome=outcome))

    def dispatch(
        self,
        call: str,
        phase: str,
        number: int,
        plan: Plan | None = None,
        step_id: str | None = None,
    ) -> CallSite:
        """A call is charged and dispatched; the profile call and a tool alone are free and have cycle 0."""
        free = call in ("task_profile", "tool")
        if not free:
            self.cycle += 1
            self.ttl -= 1
        ttl = None if call == "task_profile" else self.ttl
        site = CallSite(number, phase, 0 if free else self.cycle, self.reserve(), step_id, "deep")
        self.tell(e.CycleStarted(site=site, call=call, ttl_remaining=ttl, plan=plan), site)
        return site

    def answer(
        self,
        site: CallSite,
        call: str,
        text: str = '{"ok": true}',
        role: str = "planner",
        model: str = MODEL,
    ) -> None:
        request = LLMRequest(
            call=call, messages=(Message("user", "the prompt"),), schema={}, site=site
        )  # type: ignore[arg-type]
        answered = e.CallAnswered(
            request=request,
            site=site,
            call=call,
            role=role,
            model=model,
            text=text,
            usage=Usage(1000, 200, 400, 50, 1),
            seconds=1.5,
            synthetic=False,
            response_id=f"response-{site.cycle}",
        )
        self.tell(answered, site, 1.5)

    def ends(self, site: CallSite, call: str, error: str | None = None) -> None:
        self.tell(e.CycleFinished(site=site, call=call, error=error), site)

    def call(
        self, call: str, phase: str, number: int, plan: Plan | None = None, role: str = "planner"
    ) -> CallSite:
        """A whole cycle that goes well."""
        site = self.dispatch(call, phase, number, plan)
        self.answer(site, call, role=role)
        self.ends(site, call)
        return site


def step(step_id: str, *dependencies: str, **fields: object) -> PlanStep:
    description = {
        "gather": "Gather the requirements of the web application",
        "data-model": "Design the data model for users, sessions and roles",
        "auth": "Design the authentication flow: sign-up, sign-in, recovery",
        "combine": "Combine everything into one design",
    }.get(step_id, f"Do {step_id}")
    return PlanStep(
        step_id=step_id, description=description, dependencies=dependencies, agent="llm", **fields
    )  # type: ignore[arg-type]


PLAN = Plan(
    goal="A design of a web application in which people can sign in",
    task=TASK,
    steps=(
        step("gather"),
        step("data-model", "gather"),
        step("auth", "gather"),
        step("combine", "data-model", "auth"),
    ),
)
PROFILE = TaskProfile(
    reasoning_depth=4,
    information_sufficiency=0.6,
    expected_tool_usage="none",
    output_breadth="broad",
    confidence_requirement="medium",
    raw_inference="Several parts must fit together.",
    ambiguity_level=0.4,
    dependency_complexity=3,
    expected_step_count=4,
)
DEPTH = AdaptiveDepthConfiguration(
    detected_complexity="high",
    ambiguity_score=0.4,
    uncertainty_score=0.4,
    allocated_ttl=34,
    reasoning_mode="deep",
    adjustment_reason="depth 4, broad output",
    heuristics_used=("depth", "breadth"),
)
ISSUES = (
    ValidationIssue(
        issue_id="I1",
        type="specificity",
        severity="MEDIUM",
        description="The recovery of a lost password is not said",
        location=IssueLocation(step_id="auth"),
        proposed_repair=ProposedRepair(
            action="clarify", target="auth", changes={"description": "say it"}
        ),
    ),
    ValidationIssue(
        issue_id="I2", type="consistency", severity="LOW", description="Two names for a session"
    ),
)
REPORT = SemanticValidationReport(
    validation_id="v1", artifact_type="execution_artifact", issues=ISSUES
)
REPAIR = RepairRecord(
    call="semantic_validation",
    cycle=6,
    pass_number=1,
    errors=("/issues/0/severity: 'high' is not one of LOW, MEDIUM, HIGH, CRITICAL",),
    attempts=1,
    input_tokens=1000,
    output_tokens=200,
    outcome="repaired",
)


def assessment(
    completeness: float, coherence: float, consistency: float, converged: bool
) -> ConvergenceAssessment:
    return ConvergenceAssessment(
        converged=converged,
        reason_codes=("all_criteria_met",)
        if converged
        else ("completeness_below_threshold", "blocking_issue"),
        scores=ConvergenceScores(
            completeness_score=completeness,
            coherence_score=coherence,
            consistency_score=consistency,
            consistency_status={
                "plan_steps": PairStatus(status="consistent", explanation="they agree")
            },
        ),
        explanation="One step is blocked." if not converged else "Everything is there.",
        detected_issues=() if converged else ("the authentication flow is missing",),
        blocking_issues=() if converged else ("the authentication flow is missing",),
    )


def run_step(
    story: Story,
    plan: Plan,
    step_id: str,
    number: int,
    clarity: str = "CLEAR",
    output: str | None = None,
) -> Plan:
    """A step from its dispatch to its end; the plan after it."""
    site = story.dispatch("step", "EXECUTE", number, plan, step_id)
    running = plan.step(step_id).model_copy(
        update={"status": "running", "incoming_context": "what came before"}
    )
    story.tell(e.StepStarted(pass_number=number, cycle=site.cycle, step=running), site)
    story.answer(site, "step", output or f"output of {step_id}", "worker")
    story.ends(site, "step")
    status = "invalid" if clarity == "BLOCKED" else "complete"
    ended = running.model_copy(
        update={
            "status": status,
            "step_output": output or f"output of {step_id}",
            "clarity_state": clarity,
            "clarity_reason": "The identity provider is not known"
            if clarity == "BLOCKED"
            else None,
        }
    )
    story.tell(e.StepFinished(pass_number=number, cycle=site.cycle, step=ended), site)
    return plan.with_steps(ended)


def refinement(plan: Plan) -> tuple[RefinementRecord, Plan]:
    """The blocked step is rewritten, and one action is refused."""
    before = plan.step("auth")
    after = before.model_copy(
        update={
            "status": "pending",
            "clarity_state": None,
            "description": "Design sign-in with e-mail and password",
        }
    )
    change = RefinementAction(
        action_type="MODIFY",
        target_step_id="auth",
        new_step=after,
        justification="The step was blocked",
        semantic_validation_input=ISSUES[:1],
        addresses_issues=("I1",),
    )
    refused = RefinementAction(
        action_type="REMOVE", target_step_id="gather", justification="No longer needed"
    )
    record = RefinementRecord(
        triggers=("blocked_step",),
        accepted=(change,),
        refused=(
            RefusedAction(action=refused, reason="gather is complete: executed steps are kept"),
        ),
        changes=(StepChange(step_id="auth", before=before, after=after),),
        questions=(
            FollowUpQuestion(
                question="Which identity provider?", assumption="none, e-mail and password"
            ),
        ),
    )
    return record, plan.with_steps(after)


def realistic_run(*, synthetic: bool = False) -> tuple[e.Recorded, ...]:
    """Profile, a plan of four steps in three layers, two passes, a blocked step, a repair, a refinement, converged."""
    story = Story()
    provider = "simulated" if synthetic else "openai"
    story.tell(
        e.RunStarted(run_id="run-1", task=TASK, provider=provider, synthetic=synthetic), after=0
    )
    _prepare(story)
    plan = _first_pass(story)
    _second_pass(story, plan)
    finished = e.RunFinished(
        termination_reason="converged",
        converged=True,
        passes=2,
        ttl_used=story.cycle,
        ttl_allocated=34,
    )
    story.tell(finished)
    return tuple(story.told)


def _prepare(story: Story) -> None:
    story.phase("A", "PROFILE", 0)
    story.call("task_profile", "PROFILE", 0)
    story.tell(e.ProfileInferred(profile=PROFILE, depth=DEPTH, fallback=False))
    story.phase_ends("A", "PROFILE", 0)
    story.phase("B", "PLAN", 0)
    story.call("plan", "PLAN", 0)
    site = story.call("semantic_validation", "PLAN", 0, PLAN, "grader")
    plan_report = SemanticValidationReport(validation_id="v0", artifact_type="plan")
    story.tell(e.Validated(pass_number=0, cycle=site.cycle, report=plan_report))
    story.call("refinement", "PLAN", 0, PLAN)
    story.tell(
        e.Refined(pass_number=0, refinement=RefinementRecord(triggers=("initial_plan",)), plan=PLAN)
    )
    story.tell(e.PlanMade(plan=PLAN, layers=3, expected_calls=18))
    story.phase_ends("B", "PLAN", 0)


def _first_pass(story: Story) -> Plan:
    story.tell(e.PassStarted(pass_number=1, ttl_remaining=story.ttl, ready=("gather",)))
    story.phase("C", "EXECUTE", 1)
    plan = run_step(story, PLAN, "gather", 1)
    plan = run_step(story, plan, "data-model", 1, "PARTIALLY_CLEAR")
    plan = run_step(story, plan, "auth", 1, "BLOCKED")
    story.phase_ends("C", "EXECUTE", 1)
    story.phase("C", "EVALUATE", 1)
    site = story.dispatch("semantic_validation", "EVALUATE", 1, plan)
    retry = e.RetryScheduled(
        site=site, call="semantic_validation", attempt=1, seconds=1.2, error="RateLimited"
    )
    story.tell(retry, site)
    story.answer(site, "semantic_validation", '{"issues": [{"severity": "high"}]}', "grader")
    story.answer(site, "repair", '{"issues": [{"severity": "HIGH"}]}', "repairer")
    record = REPAIR.model_copy(update={"cycle": site.cycle})
    story.tell(e.RepairFinished(site=site, record=record), site)
    story.ends(site, "semantic_validation")
    story.tell(e.Validated(pass_number=1, cycle=site.cycle, report=REPORT))
    site = story.call("convergence", "EVALUATE", 1, plan, "grader")
    story.tell(
        e.Assessed(pass_number=1, cycle=site.cycle, assessment=assessment(0.62, 0.8, 0.75, False))
    )
    story.phase_ends("C", "EVALUATE", 1)
    story.phase("C", "REFINE", 1)
    story.call("refinement", "REFINE", 1, plan)
    record, plan = refinement(plan)
    story.tell(e.Refined(pass_number=1, refinement=record, plan=plan))
    advisory = Advisory(
        kind="refused_action",
        message="gather is complete: executed steps are kept",
        pass_number=1,
        step_id="gather",
    )
    story.tell(e.AdvisoryRaised(advisory=advisory))
    story.phase_ends("C", "REFINE", 1)
    story.tell(e.PassFinished(pass_number=1, ttl_remaining=story.ttl, complete=True))
    return plan


def _second_pass(story: Story, plan: Plan) -> None:
    story.tell(e.PassStarted(pass_number=2, ttl_remaining=story.ttl, ready=("auth",)))
    story.phase("C", "RE_EXECUTE", 2)
    plan = run_step(story, plan, "auth", 2)
    plan = run_step(story, plan, "combine", 2, output="The design, whole.\nWith a second line.")
    story.phase_ends("C", "RE_EXECUTE", 2)
    story.phase("C", "EVALUATE", 2)
    site = story.call("semantic_validation", "EVALUATE", 2, plan, "grader")
    report = SemanticValidationReport(validation_id="v2", artifact_type="execution_artifact")
    story.tell(e.Validated(pass_number=2, cycle=site.cycle, report=report))
    site = story.call("convergence", "EVALUATE", 2, plan, "grader")
    story.tell(
        e.Assessed(pass_number=2, cycle=site.cycle, assessment=assessment(0.97, 0.94, 0.95, True))
    )
    story.phase_ends("C", "EVALUATE", 2)
    story.phase("C", "REFINE", 2)
    story.phase_ends("C", "REFINE", 2, "skipped")
    story.tell(e.PassFinished(pass_number=2, ttl_remaining=story.ttl, complete=True))


def chain_run(length: int) -> tuple[e.Recorded, ...]:
    """A run of one pass over a chain of steps."""
    story = Story()
    story.ttl = length + 10
    ids = [f"step-{number:04}" for number in range(length)]
    plan = Plan(
        goal="a long plan",
        task=TASK,
        steps=renumber_steps(tuple(step(i, *ids[max(0, n - 1) : n]) for n, i in enumerate(ids))),
    )
    story.tell(
        e.RunStarted(run_id="run-long", task=TASK, provider="openai", synthetic=False), after=0
    )
    story.tell(e.PlanMade(plan=plan, layers=length, expected_calls=length))
    story.tell(e.PassStarted(pass_number=1, ttl_remaining=story.ttl, ready=(ids[0],)))
    story.phase("C", "EXECUTE", 1)
    for step_id in ids:
        plan = run_step(story, plan, step_id, 1, output=f"output of {step_id} " * 5)
    story.phase_ends("C", "EXECUTE", 1)
    return tuple(story.told)


def feed(subscriber: e.Subscriber, told: Iterable[e.Recorded]) -> None:
    for recorded in told:
        subscriber(recorded)


def logged(folder: Path, told: Iterable[e.Recorded]) -> list[dict[str, Any]]:
    """The lines of the cycle log of a run, written into a folder."""
    log = CycleLog(folder / "cycles.jsonl", print, "delta")
    feed(log, told)
    log.close()
    return list(read_lines(folder / "cycles.jsonl"))


def a_result(
    *, synthetic: bool = False, answer: str = "The design, whole.\nGrüße, 世界 🌍"
) -> RunResult:
    """The result of `realistic_run`, every part of it filled in."""
    record, refined = refinement(
        PLAN.with_steps(step("auth", "gather", status="invalid", clarity_state="BLOCKED"))
    )
    plan = Plan(goal=refined.goal, task=TASK, steps=renumber_steps(refined.steps))
    timing = Timing(start_time=START.isoformat(), end_time=END.isoformat(), duration_seconds=3.25)
    last = assessment(0.97, 0.94, 0.95, True)
    execution_pass = ExecutionPass(
        pass_number=1,
        phase="REFINE",
        phases=(
            PhaseRecord(phase="EXECUTE", start_time=START.isoformat(), end_time=START.isoformat()),
        ),
        plan_state=PLAN,
        steps=plan.steps,
        execution_results={
            "auth": StepResult(step_id="auth", step_output="half", clarity_state="BLOCKED")
        },
        evaluation_results=EvaluationResults(validation_report=REPORT, convergence=last),
        refinement=record,
        refinement_changes=record.accepted,
        clarity_states={"auth": "BLOCKED"},
        taskprofile=PROFILE,
        adaptive_depth=DEPTH,
        ttl_remaining=20,
        ttl_used=14,
        answer=answer,
        complete=True,
        timing_information=timing,
    )
    planning_pass = ExecutionPass(
        pass_number=0,
        phase="PLAN",
        phases=(),
        plan_state=PLAN,
        ttl_remaining=34,
        timing_information=timing,
    )
    history = ExecutionHistory(
        execution_id="run-1",
        task_input=TASK,
        configuration={"ttl": {"base": 10}, "convergence": {"completeness": 0.95}},
        passes=(planning_pass, execution_pass),
        final_convergence=last,
        final_output=answer,
        final_result=FinalResult(
            converged=True, result_type="converged", output=answer, metadata={"passes": 1}
        ),
        overall_statistics=Statistics(
            total_passes=1,
            total_refinements=1,
            convergence_achieved=True,
            total_time_seconds=3.25,
            fragments_refined={"auth": 1},
            scores_by_pass={1: {"completeness_score": 0.97, "coherence_score": None}},
        ),
    )
    return RunResult(
        run_id="run-1",
        synthetic=synthetic,
        task=TASK,
        answer=answer,
        converged=True,
        termination_reason="converged",
        scores=last.scores,
        reason_codes=last.reason_codes,
        explanation=last.explanation,
        best_pass=BestPass(
            pass_number=1,
            completeness_score=0.97,
            coherence_score=0.94,
            consistency_score=0.95,
            answer=answer,
        ),
        passes=1,
        ttl=TTLReport(allocated=34, used=14, remaining=20),
        usage=UsageReport.model_validate(
            {
                "by_call": {"plan": {"requests": 1, "input_tokens": 10, "total_tokens": 10}},
                "by_pass": {0: {"cost": 0.25}},
            }
        ),
        repairs=(REPAIR,),
        advisories=(Advisory(kind="conflict", message="two repairs disagree", pass_number=1),),
        follow_up_questions=record.questions,
        refused_actions=record.refused,
        timings=Timings(
            start_time=START.isoformat(),
            end_time=START.isoformat(),
            total_seconds=3.25,
            seconds_by_call={"plan": 1.5},
        ),
        versions={"aeon": "0.1.0", "python": "3.11"},
        provider=ProviderReport(
            kind="openai", base_url="http://127.0.0.1:1/v1", models={"planner": [MODEL]}
        ),
        hashes=Hashes(
            task="a" * 64, inputs={}, prompts="b" * 64, schemas="c" * 64, configuration="d" * 64
        ),
        configuration={"ttl": {"base": 10}},
        history=history,
    )
