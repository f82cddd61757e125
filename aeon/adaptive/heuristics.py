"""Adaptive depth: the model profiles the task, a table turns the profile into a budget (FR-026 to
FR-035)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from aeon.adaptive.table import load_packaged_table
from aeon.domain.history import ProfileTransition, RunState
from aeon.domain.profile import OWN_LEVELS, AdaptiveDepthConfiguration, Band, TaskProfile, TTLTable
from aeon.domain.report import ValidationIssue
from aeon.domain.request import LLMAdapter
from aeon.domain.values import JsonMapping, JsonObject
from aeon.supervisor.structured import StructuredCaller

UPDATE_SIGNALS = (
    "task_profile_update",
    "convergence_failure",
    "validation_issues",
    "blocked_steps",
    "planning",
)
"""The basis of a depth after its profile was updated."""


class AdaptiveDepth:
    """Profiles tasks, and maps profiles to a TTL and a reasoning mode. `limit`, the lowest of the
    given limits, caps every allocation (FR-077); `max_llm_calls` in `global_resource_caps` is one
    of them, because a cycle is at least one call."""

    def __init__(
        self,
        llm: LLMAdapter,
        global_ttl_limit: int = 100,
        global_resource_caps: JsonObject | None = None,
        *,
        table: TTLTable | None = None,
        structured: StructuredCaller | None = None,
        tools: Sequence[JsonMapping] = (),
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self.table = table or load_packaged_table()
        caps = (
            global_ttl_limit,
            table.limit if table else None,
            (global_resource_caps or {}).get("max_llm_calls"),
        )
        self.limit = min(cap for cap in caps if cap is not None)
        self._tools = tools
        self._profiles: dict[str, TaskProfile] = {}

    def infer_task_profile(
        self, task_description: str, context: JsonObject | None = None
    ) -> TaskProfile:
        """Profile a task, in one model call (FR-084, FR-NEW-004 to FR-NEW-010); the same task and
        context return the same profile without a call. Raises LLMError if the call fails,
        ValidationError if its answer cannot be repaired."""
        key = json.dumps([task_description, context], sort_keys=True, default=str)
        if key not in self._profiles:
            self._profiles[key] = self._ask(1, task=task_description, context=context)
        return self._profiles[key]

    def allocate_ttl(self, task_profile: TaskProfile, base_ttl: int = 10) -> int:
        """Return the TTL of a profile, in LLM cycles, from the table alone; at most the limit, and
        never less than for a shallower task of the same kind (FR-029, FR-077). Raises ValueError
        for a `base_ttl` below 1, and for an unknown level."""
        if base_ttl < 1:
            raise ValueError(f"base_ttl must be at least 1, not {base_ttl}")
        return min(self.limit, count_units(task_profile, self.table, base_ttl))

    def update_task_profile(
        self,
        current_profile: TaskProfile,
        convergence_failure: bool,
        validation_issues: list[ValidationIssue],
        clarity_states: list[str],
        task_description: str,
        *,
        reason_codes: Sequence[str] = (),
        planning: JsonMapping | None = None,
    ) -> TaskProfile | None:
        """Profile the task again at a pass boundary if all three signals show a mismatch (FR-094);
        else return None without a call. The model gets counts of issues, codes and states, and
        `planning`, the planner's actions (FR-031 to FR-033, FR-051). Raises like
        `infer_task_profile`."""
        if not complexity_mismatch(convergence_failure, validation_issues, clarity_states):
            return None
        signals = {
            **mismatch_signals(validation_issues, clarity_states, reason_codes),
            "planning": planning or {},
        }
        observed = {
            "profile": current_profile.model_dump(exclude={"profile_version"}),
            "signals": signals,
        }
        return self._ask(
            current_profile.profile_version + 1, task=task_description, observed=observed
        )

    def _ask(self, version: int, **asked: Any) -> TaskProfile:
        return self._structured.call(
            "task_profile",
            {"context": None, "observed": None, "tools": self._tools, **asked},
            lambda answer: TaskProfile.model_validate(
                {"profile_version": version, **answer}, context=OWN_LEVELS
            ),
            role="planner",
        )


def configure_depth(
    profile: TaskProfile, allocated_ttl: int, table: TTLTable | None, *heuristics: str
) -> AdaptiveDepthConfiguration:
    """Return the depth configuration of a profile (FR-030, FR-078), by `heuristics` and the
    `table`, which is None if it was not used."""
    levels = table or load_packaged_table()
    depth = profile.reasoning_depth
    return AdaptiveDepthConfiguration(
        detected_complexity=levels.complexity[depth],
        ambiguity_score=profile.ambiguity_level,
        allocated_ttl=allocated_ttl,
        reasoning_mode=levels.reasoning_mode[depth],
        adjustment_reason=profile.raw_inference,
        heuristics_used=(*heuristics, "ttl_table" if table else "allocate_ttl"),
    )


def make_transition(
    pass_number: int, before: TaskProfile, after: TaskProfile, ttl_before: int, ttl_after: int
) -> ProfileTransition:
    """Return the record of a changed profile (FR-NEW-002)."""
    return ProfileTransition(
        pass_number=pass_number,
        from_version=before.profile_version,
        to_version=after.profile_version,
        reason=after.raw_inference,
        before=before,
        after=after,
        ttl_before=ttl_before,
        ttl_after=ttl_after,
    )


def count_units(profile: TaskProfile, table: TTLTable, base: int) -> int:
    """Return the LLM cycles that a table gives a profile, before any limit. Raises ValueError for
    an unknown level."""
    tiers = range(1, profile.reasoning_depth + 1)
    return max(_units(tier, profile, table, base) for tier in tiers)


def _units(depth: int, profile: TaskProfile, table: TTLTable, base: int) -> int:
    """Compute the LLM cycles of a profile at a depth, uncapped; in decimals, so that sums of tenths
    are exact."""
    multiplier = sum(
        (Decimal(str(amount)) for amount in _additions(profile, table)),
        Decimal(str(table.depth[depth])),
    )
    units = (base * multiplier).quantize(Decimal(1), ROUND_HALF_UP)
    return int(units) + table.extra_step * max(
        0, profile.expected_step_count - table.typical_steps[depth]
    )


def _additions(profile: TaskProfile, table: TTLTable) -> Iterator[float]:
    """Yield what each dimension of a profile except depth adds to the multiplier. Raises ValueError
    for an unknown level."""
    yield _band_amount(table.sufficiency, profile.information_sufficiency)
    yield _band_amount(table.ambiguity, profile.ambiguity_level)
    yield _band_amount(table.dependencies, profile.dependency_complexity)
    levels = {name: (amounts, getattr(profile, name)) for name, amounts in table.levels.items()}
    judged = profile.model_extra or {}  # empty in the default profile
    for name, value in judged.items():
        dimension = table.dimensions.get(name)
        if dimension is not None and dimension.levels:
            levels[name] = (dimension.levels, value)
        elif dimension is not None:
            yield _band_amount(dimension.bands, value)
    for name, (amounts, level) in levels.items():
        if level not in amounts:
            raise ValueError(
                f"the TTL table has no entry for {name} {level!r}, only {', '.join(amounts)}"
            )
        yield amounts[level]


def _band_amount(bands: Mapping[str, Band], value: float | None) -> float:
    reached = [band for band in bands.values() if value is not None and value >= band.at_least]
    return max(reached, key=lambda band: band.at_least).add if reached else 0.0


def complexity_mismatch(
    failed: bool, issues: Sequence[ValidationIssue], clarity_states: Sequence[str]
) -> bool:
    """Whether the profile does not fit the task (FR-094): it did not converge, has issues and a
    BLOCKED step."""
    return failed and bool(issues) and "BLOCKED" in clarity_states


def mismatch_signals(
    issues: Sequence[ValidationIssue], clarity_states: Sequence[str], reason_codes: Sequence[str]
) -> JsonObject:
    """Count the signals of a mismatch for the profile update's prompt."""
    return {
        "issue_count": len(issues),
        "issues_by_type": dict(sorted(Counter(issue.type for issue in issues).items())),
        "issues_by_severity": dict(sorted(Counter(issue.severity for issue in issues).items())),
        "convergence_reason_codes": list(reason_codes),
        "clarity_states": dict(sorted(Counter(clarity_states).items())),
    }


def planning_signals(state: RunState) -> JsonObject:
    """Return the planner's actions so far: refinements, refusals and their reasons, subplans,
    questions (FR-033)."""
    plan = state.plan
    return {
        "refinements": state.refinements,
        "refinements_by_step": state.attempts,
        "refused_actions": [
            {
                "action": f"{refused.action.action_type} {refused.action.fragment}",
                "reason": refused.reason,
            }
            for refused in state.refused
        ],
        "subplans": [
            {"step_id": each.parent_step_id, "level": each.depth_level}
            for each in (plan.subplans if plan else ())
        ],
        "questions": [question.question for question in (plan.questions if plan else ())],
        "left_to_a_person": list(state.manual_intervention),
    }
