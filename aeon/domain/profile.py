"""The values of adaptive depth: a task's profile, the table that turns it into a budget, and the
resulting choice."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from aeon.domain.request import ReasoningMode
from aeon.domain.values import JsonObject, LowerOfRow, UpToLimitOfRow, Value

ToolUsage = Literal["none", "minimal", "moderate", "extensive"]
Breadth = Literal["narrow", "moderate", "broad"]
Confidence = Literal["low", "medium", "high"]
Complexity = Literal["very_low", "low", "moderate", "high", "very_high"]

# The levels that every TTL table and the packaged schema know, by field of the profile.
LEVELS: Mapping[str, tuple[str, ...]] = {
    "expected_tool_usage": get_args(ToolUsage),
    "output_breadth": get_args(Breadth),
    "confidence_requirement": get_args(Confidence),
}
# The validation context of a profile with custom levels, which its schema has already checked.
OWN_LEVELS = {"own_levels": True}


class TaskProfile(Value):
    """The demands of a task, as the model judged them (FR-026, FR-NEW-004 to FR-NEW-006);
    `expected_step_count` is 0 if unknown, `raw_inference` gives the reasons, `profile_version`
    grows with each update (FR-NEW-001). With the context `OWN_LEVELS`, levels may come from a
    custom schema, and other fields are custom dimensions."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | float]

    profile_version: int = Field(default=1, ge=1)
    reasoning_depth: int = Field(ge=1, le=5)
    information_sufficiency: float = Field(ge=0, le=1)
    expected_tool_usage: str = Field(min_length=1)
    output_breadth: str = Field(min_length=1)
    confidence_requirement: str = Field(min_length=1)
    raw_inference: str = Field(min_length=1)
    ambiguity_level: float | None = Field(default=None, ge=0, le=1)
    dependency_complexity: int = Field(default=0, ge=0)
    expected_step_count: int = Field(default=0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _knows_every_field_and_level(cls, given: object, info: ValidationInfo) -> Any:
        if not isinstance(given, dict) or info.context == OWN_LEVELS:
            return given
        if unknown := [name for name in given if name not in cls.model_fields]:
            raise ValueError(f"there is no field {', '.join(unknown)}")
        for name, known in LEVELS.items():
            if name in given and given[name] not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}")
        return given


DEFAULT_PROFILE = TaskProfile(
    reasoning_depth=3,
    information_sufficiency=0.5,
    expected_tool_usage="moderate",
    output_breadth="moderate",
    confidence_requirement="medium",
    raw_inference="The profile could not be inferred; this is the default profile.",
)


class SmallTask(Value):
    """Profiles of small tasks, which need no plan: at most this deep, with one of these breadths
    and uses of tools, and a known number of expected steps of at most `max_steps`."""

    max_depth: int = Field(default=2, ge=0, le=5)
    max_steps: int = Field(default=1, ge=0)
    breadth: tuple[str, ...] = ("narrow",)
    tools: tuple[str, ...] = ("none",)

    def fits(self, profile: TaskProfile, *, has_tools: bool) -> bool:
        """Whether a profile is of such a task; without tools, its expected use of tools does not
        count."""
        return (
            profile.reasoning_depth <= self.max_depth
            and profile.output_breadth in self.breadth
            and 1 <= profile.expected_step_count <= self.max_steps
            and (not has_tools or profile.expected_tool_usage in self.tools)
        )


class Band(Value):
    """A range of a number, from `at_least` up to the next band, and the amount it adds to the
    multiplier."""

    at_least: float = Field(ge=0)
    add: float = Field(ge=0)


class Dimension(Value):
    """A custom dimension, described to the model: named `levels`, or `bands` of a number in [0,
    1]."""

    description: str = Field(min_length=1)
    levels: dict[str, float] = Field(default_factory=dict)
    bands: dict[str, Band] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_levels_or_bands(self) -> Dimension:
        if bool(self.levels) == bool(self.bands):
            raise ValueError("a dimension needs either levels or bands")
        if beyond := [name for name, band in self.bands.items() if band.at_least > 1]:
            raise ValueError(
                f"bands are of a number from 0 to 1: at_least of {', '.join(beyond)} is "
                "never reached"
            )
        return self

    @property
    def answer_schema(self) -> JsonObject:
        """The JSON Schema of the model's judgement."""
        if self.levels:
            return {"type": "string", "enum": list(self.levels), "description": self.description}
        return {"type": "number", "minimum": 0, "maximum": 1, "description": self.description}


class TTLTable(Value):
    """The deterministic map from a profile to a TTL, in LLM cycles (FR-029, FR-077): the maximum
    over the depths d from 1 to the profile's of `round(base x m) + extra_step x max(0,
    expected_step_count - typical_steps[d])`, at most `limit`, where m is `depth[d]` plus the
    amounts of all other dimensions. A deeper or less sufficient task never gets less."""

    base: UpToLimitOfRow[int] = Field(ge=1)
    limit: LowerOfRow[int] = Field(ge=1)
    depth: dict[int, float]
    typical_steps: dict[int, int]
    extra_step: int = Field(ge=0)
    sufficiency: dict[str, Band]
    ambiguity: dict[str, Band]
    dependencies: dict[str, Band]
    breadth: dict[str, float]
    tools: dict[str, float]
    confidence: dict[str, float]
    dimensions: dict[str, Dimension] = Field(default_factory=dict)
    default_profile: TaskProfile = DEFAULT_PROFILE
    least_after_update: int = Field(default=3, ge=0)
    reasoning_mode: dict[int, ReasoningMode]
    complexity: dict[int, Complexity]

    @property
    def levels(self) -> dict[str, dict[str, float]]:
        """The amount of each named level, by field of the profile."""
        return dict(zip(LEVELS, (self.tools, self.breadth, self.confidence), strict=True))

    @field_validator("depth", "typical_steps", "reasoning_mode", "complexity")
    @classmethod
    def _has_every_depth(cls, table: dict[int, object]) -> dict[int, object]:
        if sorted(table) != [1, 2, 3, 4, 5]:
            raise ValueError("needs exactly the keys 1, 2, 3, 4, 5")
        return table

    @model_validator(mode="after")
    def _is_whole_and_monotone(self) -> TTLTable:
        self._require_whole_levels()
        known = ", ".join(name for name in self.dimensions if name in TaskProfile.model_fields)
        if known:
            raise ValueError(f"every profile has {known}: choose another name")
        if any(self.depth[tier + 1] < self.depth[tier] for tier in (1, 2, 3, 4)):
            raise ValueError(
                "depth must not fall from one tier to the next: deeper tasks get more TTL"
            )
        bands = sorted(self.sufficiency.values(), key=lambda band: band.at_least)
        if not bands or bands[0].at_least != 0:
            raise ValueError("sufficiency needs a band from 0 on (at_least: 0)")
        if any(more.add > less.add for less, more in pairwise(bands)):
            raise ValueError(
                "sufficiency must not add less to a lower band: less information gets more TTL"
            )
        return self

    def _require_whole_levels(self) -> None:
        names = ("tools", "breadth", "confidence")
        for name, (field, table) in zip(names, self.levels.items(), strict=True):
            missing = ", ".join(level for level in LEVELS[field] if level not in table)
            if missing:
                raise ValueError(f"{name} has no entry for {missing}")


class AdaptiveDepthConfiguration(Value):
    """The depth of a pass's reasoning and its budget, in LLM cycles, with the reasons (FR-078).
    `uncertainty_score` is None: the model judges it as part of information_sufficiency (FR-028).
    `heuristics_used` is the basis of the budget."""

    detected_complexity: Complexity
    ambiguity_score: float | None = Field(default=None, ge=0, le=1)
    uncertainty_score: float | None = Field(default=None, ge=0, le=1)
    allocated_ttl: int = Field(ge=0)
    reasoning_mode: ReasoningMode
    adjustment_reason: str = Field(min_length=1)
    heuristics_used: tuple[str, ...] = ()
