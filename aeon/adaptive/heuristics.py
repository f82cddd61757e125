"""Adaptive depth: the model profiles the task, a table turns the profile into a budget (FR-026 to FR-035)."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from aeon.adaptive.models import AdaptiveDepthConfiguration, Complexity, TaskProfile, TTLTable
from aeon.llm.interface import LLMAdapter, ReasoningMode
from aeon.structured import StructuredCaller
from aeon.validation.models import ValidationIssue

COMPLEXITY: dict[int, Complexity] = {1: "very_low", 2: "low", 3: "moderate", 4: "high", 5: "very_high"}
MODES: dict[int, ReasoningMode] = {1: "shallow", 2: "shallow", 3: "balanced", 4: "deep", 5: "deep"}


class AdaptiveDepth:
    """Profiles tasks, and maps profiles to a TTL and a reasoning mode.

    `global_ttl_limit` caps every allocation, in LLM cycles (FR-077); so does `max_llm_calls` of `global_resource_caps`,
    since a cycle is at least one call. `table` is the map from profile to TTL, with a limit of its own.
    `tools` describes the tools of the run.
    """

    def __init__(
        self,
        llm: LLMAdapter,
        global_ttl_limit: int = 100,
        global_resource_caps: dict[str, Any] | None = None,
        *,
        table: TTLTable | None = None,
        structured: StructuredCaller | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self._table = table or TTLTable()
        caps = (global_ttl_limit, table.limit if table else None, (global_resource_caps or {}).get("max_llm_calls"))
        self._limit = min(cap for cap in caps if cap is not None)
        self._tools = tools
        self._profiles: dict[str, TaskProfile] = {}
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """The most that any task gets, in LLM cycles: the least of the limits given."""
        return self._limit

    def infer_task_profile(self, task_description: str, context: dict[str, Any] | None = None) -> TaskProfile:
        """Profile a task, in one model call (FR-084, FR-NEW-004 to FR-NEW-010).

        The same task and context give the same profile again without a call, so the tier is stable. Raises LLMError
        when the call fails, ValidationError when its answer cannot be repaired.
        """
        key = json.dumps([task_description, context], sort_keys=True, default=str)
        with self._lock:
            known = self._profiles.get(key)
        if known is not None:
            return known
        profile = self._ask(task_description, context=context, observed=None, version=1)
        with self._lock:
            return self._profiles.setdefault(key, profile)

    def allocate_ttl(self, task_profile: TaskProfile, base_ttl: int = 10) -> int:
        """The TTL of a profile, in LLM cycles, from the table alone; at most the limit (FR-029, FR-077).

        Never less than a shallower task of the same kind gets, so that the usual step count of a tier, which grows
        with it, takes nothing away where `base_ttl` is small. Raises ValueError for a `base_ttl` below 1.
        """
        if base_ttl < 1:
            raise ValueError(f"base_ttl must be at least 1, not {base_ttl}")
        tiers = range(1, task_profile.reasoning_depth + 1)
        return min(self._limit, max(by_table(self._table, task_profile, tier, base_ttl) for tier in tiers))

    def update_task_profile(
        self,
        current_profile: TaskProfile,
        convergence_failure: bool,
        validation_issues: list[ValidationIssue],
        clarity_states: list[str],
        task_description: str,
        *,
        reason_codes: Sequence[str] = (),
    ) -> TaskProfile | None:
        """Profile the task anew at a pass boundary, when all three signals speak of a mismatch (FR-094).

        The signals: convergence failed, there are validation issues, a step was BLOCKED. Without all of them None,
        and no call. The model is given counts of issues by type and severity, reason codes and clarity states
        (FR-031 to FR-033, FR-051). Raises as `infer_task_profile`.
        """
        if not complexity_mismatch(convergence_failure, validation_issues, clarity_states):
            return None
        signals = mismatch_signals(validation_issues, clarity_states, reason_codes)
        observed = {"profile": current_profile.model_dump(exclude={"profile_version"}), "signals": signals}
        version = current_profile.profile_version + 1
        return self._ask(task_description, context=None, observed=observed, version=version)

    def _ask(
        self, task: str, *, context: dict[str, Any] | None, observed: dict[str, Any] | None, version: int
    ) -> TaskProfile:
        return self._structured.call(
            "task_profile",
            {"task": task, "context": context, "observed": observed, "tools": self._tools},
            lambda answer: TaskProfile(profile_version=version, **answer),
            role="planner",
        )


def revised_ttl(by_table: int, used: int, limit: int) -> int:
    """The TTL of a run whose profile changed after `used` cycles: by the table, at least three more, within the
    limit."""
    return min(limit, max(by_table, used + 3))


def depth_configuration(profile: TaskProfile, allocated_ttl: int, reason: str) -> AdaptiveDepthConfiguration:
    """What a profile comes to: reasoning mode, budget, and why, in the words given (FR-030, FR-078)."""
    return AdaptiveDepthConfiguration(
        detected_complexity=COMPLEXITY[profile.reasoning_depth],
        ambiguity_score=profile.ambiguity_level,
        allocated_ttl=allocated_ttl,
        reasoning_mode=MODES[profile.reasoning_depth],
        adjustment_reason=reason,
        heuristics_used=("task_profile", "ttl_table"),
    )


def by_table(table: TTLTable, profile: TaskProfile, depth: int, base: int) -> int:
    """What the table gives a profile at a depth of 1 to 5, in LLM cycles, uncapped (research decision 2)."""
    multiplier = (
        table.depth[depth]
        + sufficiency_increment(table, profile.information_sufficiency)
        + table.breadth[profile.output_breadth]
        + table.tools[profile.expected_tool_usage]
        + table.confidence[profile.confidence_requirement]
    )
    unusual = profile.expected_step_count - table.typical_steps[depth]
    return round(base * round(multiplier, 6)) + max(0, unusual)


def sufficiency_increment(table: TTLTable, sufficiency: float) -> float:
    """What a task's information sufficiency, in [0, 1], adds to the multiplier."""
    if sufficiency >= 0.7:
        return table.sufficiency.high
    return table.sufficiency.middle if sufficiency >= 0.4 else table.sufficiency.low


def complexity_mismatch(
    convergence_failure: bool, issues: Sequence[ValidationIssue], clarity_states: Sequence[str]
) -> bool:
    """Whether all three signals of a mismatch are there (FR-094)."""
    return convergence_failure and bool(issues) and "BLOCKED" in clarity_states


def mismatch_signals(
    issues: Sequence[ValidationIssue], clarity_states: Sequence[str], reason_codes: Sequence[str]
) -> dict[str, Any]:
    """The signals of a mismatch, counted, for the profile update's prompt."""
    return {
        "issue_count": len(issues),
        "issues_by_type": dict(sorted(Counter(issue.type for issue in issues).items())),
        "issues_by_severity": dict(sorted(Counter(issue.severity for issue in issues).items())),
        "convergence_reason_codes": list(reason_codes),
        "clarity_states": dict(sorted(Counter(clarity_states).items())),
    }
