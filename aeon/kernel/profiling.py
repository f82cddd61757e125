"""Phases A and D: what the task asks for, and the budget that follows from it."""

from __future__ import annotations

import sys
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth, complexity_mismatch, depth_configuration, revised_ttl
from aeon.domain import events
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import LLMError, ValidationError
from aeon.domain.history import ProfileTransition, RunState
from aeon.domain.profile import DEFAULT_PROFILE, AdaptiveDepthConfiguration, TaskProfile
from aeon.domain.report import SemanticValidationReport
from aeon.domain.request import CallSite
from aeon.kernel.open_run import OpenRun
from aeon.kernel.recorder import OpenPass
from aeon.kernel.ttl import TTL
from aeon.llm.stack.limits import LimitSettings
from aeon.refinement.signatures import accepted_arguments


def least_limit(ttl_limit: int | None, adaptive_depth: AdaptiveDepth, limits: LimitSettings) -> int:
    """The most that a run may be allocated, in LLM cycles: a cycle is at least one call (FR-077)."""
    # A component of one's own may have the published signature and no more.
    own = adaptive_depth.limit if isinstance(adaptive_depth, AdaptiveDepth) else None
    return min((cap for cap in (ttl_limit, own, limits.max_llm_calls) if cap is not None), default=sys.maxsize)


def planning_signals(state: RunState) -> dict[str, Any]:
    """What the planner has had to do so far: refinements, what was refused and why, subplans, questions (FR-033)."""
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


_UPDATE = ("task_profile_update", "convergence_failure", "validation_issues", "blocked_steps", "planning")


class Profiling:
    """Profiles one run's task; `base_ttl` is the base of the TTL table, `ttl_limit` the most a run may get."""

    def __init__(self, run: OpenRun, adaptive_depth: AdaptiveDepth, base_ttl: int, ttl_limit: int) -> None:
        self._run, self._adaptive_depth = run, adaptive_depth
        self._base_ttl, self._ttl_limit = base_ttl, ttl_limit

    def infer(self, task: str, context: dict[str, Any] | None) -> None:
        """Phase A: the profile, or the default one, and its allocation. The one call that no budget pays for."""
        run = self._run
        with run.phase("A", "PROFILE"):
            fallback = None
            try:
                site = CallSite(phase="PROFILE", sequence=run.stream.reserve())
                profile = run.dispatch(
                    site, "task_profile", lambda: self._adaptive_depth.infer_task_profile(task, context)
                )
            except (LLMError, ValidationError) as error:
                profile, fallback = DEFAULT_PROFILE, error
            ttl = TTL(allocated=min(self._ttl_limit, self._adaptive_depth.allocate_ttl(profile, self._base_ttl)))
            depth = self._depth(profile, ttl.allocated, "default_profile" if fallback else "task_profile")
            run.allocate(ttl, profile=profile, depth=depth)
            if fallback:
                run.advise("profile_fallback", f"The default profile is used: {fallback.message}")
            run.stream.emit(events.ProfileInferred(profile=profile, depth=depth, fallback=fallback is not None))

    def update(
        self, this: OpenPass, report: SemanticValidationReport | None, assessment: ConvergenceAssessment
    ) -> None:
        """Phase D: profile anew when every signal speaks of a mismatch, as the pass's last act (FR-094)."""
        run, before = self._run, self._run.state.profile
        issues, states = list(report.issues) if report else [], list(this.clarity_states.values())
        more = accepted_arguments(
            self._adaptive_depth.update_task_profile,
            reason_codes=assessment.reason_codes,
            planning=planning_signals(run.state),
        )
        mismatch = complexity_mismatch(not assessment.converged, issues, states)
        if before is None or not mismatch or not run.affordable():
            return
        with run.phase("D", "PROFILE") as phase:
            try:
                after = run.call(
                    "task_profile",
                    lambda: self._adaptive_depth.update_task_profile(
                        before, True, issues, states, run.plan.task, **more
                    ),
                )
            except (LLMError, ValidationError) as error:
                phase.outcome = "unavailable"
                run.advise("profile_fallback", f"The profile stays as it is: {error.message}")
                return
            if after is not None:
                self._reallocate(this.number, before, after)

    def _depth(self, profile: TaskProfile, allocated: int, *heuristics: str) -> AdaptiveDepthConfiguration:
        table = self._adaptive_depth.table if isinstance(self._adaptive_depth, AdaptiveDepth) else None
        used = (*heuristics, "ttl_table" if table else "allocate_ttl")
        return depth_configuration(profile, allocated, profile.raw_inference, table, heuristics=used)

    def _reallocate(self, pass_number: int, before: TaskProfile, after: TaskProfile) -> None:
        run = self._run
        by_table = self._adaptive_depth.allocate_ttl(after, self._base_ttl)
        allocated = revised_ttl(by_table, run.ttl.used, self._ttl_limit)
        transition = ProfileTransition(
            pass_number=pass_number,
            from_version=before.profile_version,
            to_version=after.profile_version,
            reason=after.raw_inference,
            before=before,
            after=after,
            ttl_before=run.ttl.allocated,
            ttl_after=allocated,
        )
        run.allocate(
            run.ttl.reallocated(allocated),
            profile=after,
            depth=self._depth(after, allocated, *_UPDATE),
            transitions=(*run.state.transitions, transition),
        )
        run.stream.emit(events.ProfileUpdated(transition=transition))
