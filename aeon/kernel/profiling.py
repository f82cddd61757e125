"""Phases A and D: the profile of the task, and the budget that follows from it."""

from __future__ import annotations

import sys
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth, complexity_mismatch, configure_depth
from aeon.domain import events
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import LLMError, ValidationError
from aeon.domain.history import ProfileTransition, RunState
from aeon.domain.profile import DEFAULT_PROFILE, AdaptiveDepthConfiguration, TaskProfile, TTLTable
from aeon.domain.report import SemanticValidationReport
from aeon.kernel.recorder import OpenPass
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from aeon.refinement.models import adapt_method

_UPDATE = AdaptiveDepth.update_task_profile
_UPDATE_SIGNALS = ("task_profile_update", "convergence_failure", "validation_issues", "blocked_steps", "planning")


def planning_signals(state: RunState) -> dict[str, Any]:
    """What the planner has done so far: refinements, refusals and their reasons, subplans, questions (FR-033)."""
    plan = state.plan
    return {
        "refinements": state.refinements,
        "refinements_by_step": state.attempts,
        "refused_actions": [
            {"action": f"{refused.action.action_type} {refused.action.fragment}", "reason": refused.reason}
            for refused in state.refused
        ],
        "subplans": [
            {"step_id": each.parent_step_id, "level": each.depth_level} for each in (plan.subplans if plan else ())
        ],
        "questions": [question.question for question in (plan.questions if plan else ())],
        "left_to_a_person": list(state.manual_intervention),
    }


class Profiling:
    """Profiles one run's task and allocates its TTL."""

    def __init__(self, run: OpenRun, depth: AdaptiveDepth, options: RunOptions) -> None:
        self._run, self._depth, self._base_ttl = run, depth, options.base_ttl
        self._table: TTLTable | None = getattr(depth, "table", None)
        own = getattr(depth, "limit", sys.maxsize)
        caps = (own, options.ttl_limit, options.limits.max_llm_calls)  # a cycle is at least one call (FR-077)
        self._limit = min(cap for cap in caps if cap is not None)

    def allocate_base(self) -> None:
        """Core mode has no profile: its budget is the base."""
        self._run.update(ttl_allocated=min(self._base_ttl, self._limit))

    def infer(self, task: str, context: dict[str, Any] | None) -> None:
        """Phase A: the profile, or the default one, and its allocation. The only call that costs no cycle."""
        run, failure = self._run, None
        with run.phase("A", "PROFILE"):
            try:
                profile = run.call("task_profile", lambda: self._depth.infer_task_profile(task, context), cycles=0)
            except (LLMError, ValidationError) as error:
                profile, failure = DEFAULT_PROFILE, error.message
            allocated = min(self._limit, self._depth.allocate_ttl(profile, self._base_ttl))
            depth = self._configure(profile, allocated, "task_profile" if failure is None else "default_profile")
            run.update(ttl_allocated=allocated, profile=profile, depth=depth)
            if failure is not None:
                run.advise("profile_fallback", f"The default profile is used: {failure}")
            run.stream.emit(events.ProfileInferred(profile=profile, depth=depth, fallback=failure is not None))

    def update(
        self, this: OpenPass, report: SemanticValidationReport | None, assessment: ConvergenceAssessment
    ) -> None:
        """Phase D: profile anew when every signal speaks of a mismatch, as the pass's last act (FR-094)."""
        run, before = self._run, self._run.state.profile
        issues = list(report.issues) if report else []
        states = [result.clarity_state for result in this.results.values() if result.clarity_state]
        mismatch = complexity_mismatch(not assessment.converged, issues, states)
        if before is None or not run.affordable() or not mismatch:
            return
        signals = {"reason_codes": assessment.reason_codes, "planning": planning_signals(run.state)}
        with run.phase("D", "PROFILE") as phase:
            try:
                update, task = adapt_method(self._depth.update_task_profile, _UPDATE), run.plan.task
                after = run.call("task_profile", lambda: update(before, True, issues, states, task, **signals))
            except (LLMError, ValidationError) as error:
                phase.outcome = "unavailable"
                run.advise("profile_fallback", f"The profile stays as it is: {error.message}")
                return
            if after is not None:
                self._reallocate(this.number, before, after)

    def _reallocate(self, pass_number: int, before: TaskProfile, after: TaskProfile) -> None:
        run = self._run
        by_table = self._depth.allocate_ttl(after, self._base_ttl)
        allocated = min(self._limit, max(by_table, run.state.ttl_used + 3))
        transition = ProfileTransition(
            pass_number=pass_number,
            from_version=before.profile_version,
            to_version=after.profile_version,
            reason=after.raw_inference,
            before=before,
            after=after,
            ttl_before=run.state.ttl_allocated,
            ttl_after=allocated,
        )
        depth = self._configure(after, allocated, *_UPDATE_SIGNALS)
        transitions = (*run.state.transitions, transition)
        run.update(ttl_allocated=allocated, profile=after, depth=depth, transitions=transitions)
        run.stream.emit(events.ProfileUpdated(transition=transition))

    def _configure(self, profile: TaskProfile, allocated: int, *heuristics: str) -> AdaptiveDepthConfiguration:
        used = (*heuristics, "ttl_table" if self._table else "allocate_ttl")
        return configure_depth(profile, allocated, profile.raw_inference, self._table, heuristics=used)
