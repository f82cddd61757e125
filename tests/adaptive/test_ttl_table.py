"""The table from profile to TTL: its values, its order, its cap (RULES 3, FR-029, FR-077)."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from aeon.adaptive.heuristics import AdaptiveDepth, configure_depth
from aeon.adaptive.table import load_packaged_table
from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.domain.profile import OWN_LEVELS, Band, Breadth, Confidence, TaskProfile, ToolUsage
from tests.support.scripted_model import ScriptedModel

DEPTHS = st.integers(1, 5)
SUFFICIENCIES = st.floats(0, 1)
PROFILES = st.builds(
    TaskProfile,
    reasoning_depth=DEPTHS,
    information_sufficiency=SUFFICIENCIES,
    expected_tool_usage=st.sampled_from(get_args(ToolUsage)),
    output_breadth=st.sampled_from(get_args(Breadth)),
    confidence_requirement=st.sampled_from(get_args(Confidence)),
    raw_inference=st.just("why"),
    expected_step_count=st.integers(0, 200),
)
BASES = st.integers(1, 200)


def profile(depth: int = 1, sufficiency: float = 1.0, **fields: Any) -> TaskProfile:
    return TaskProfile(
        **{
            "reasoning_depth": depth,
            "information_sufficiency": sufficiency,
            "expected_tool_usage": "none",
            "output_breadth": "narrow",
            "confidence_requirement": "low",
            "raw_inference": "why",
            **fields,
        }
    )


def allocate(given_profile: TaskProfile, base: int = 10, limit: int = 100) -> int:
    return AdaptiveDepth(ScriptedModel(), limit).allocate_ttl(given_profile, base)


@pytest.mark.parametrize(("depth", "ttl"), [(1, 18), (2, 24), (3, 32), (4, 44), (5, 58)])
def test_depth_alone(depth: int, ttl: int):
    assert allocate(profile(depth)) == ttl


@pytest.mark.parametrize(
    ("sufficiency", "more"), [(1.0, 0), (0.7, 0), (0.69999, 6), (0.4, 6), (0.39999, 12), (0.0, 12)]
)
def test_what_is_not_known_adds(sufficiency: float, more: int):
    assert allocate(profile(3, sufficiency)) == 32 + more


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({"output_breadth": "moderate"}, 2),
        ({"output_breadth": "broad"}, 8),
        ({"expected_tool_usage": "minimal"}, 0),
        ({"expected_tool_usage": "moderate"}, 2),
        ({"expected_tool_usage": "extensive"}, 4),
        ({"confidence_requirement": "medium"}, 0),
        ({"confidence_requirement": "high"}, 6),
        ({"expected_step_count": 8}, 0),
        ({"expected_step_count": 9}, 1),
        ({"expected_step_count": 20}, 12),
        ({"ambiguity_level": 1.0, "dependency_complexity": 9}, 0),
    ],
)
def test_every_other_dimension_adds_its_share(fields: dict[str, Any], more: int):
    assert allocate(profile(3, **fields)) == 32 + more


def test_the_worked_examples():
    total = profile(1, 1.0, confidence_requirement="medium", expected_step_count=1)
    architecture = profile(
        4,
        0.5,
        output_breadth="broad",
        expected_tool_usage="minimal",
        confidence_requirement="high",
        expected_step_count=14,
    )
    assert (allocate(total), allocate(architecture)) == (18, 66)


@given(PROFILES, BASES, DEPTHS)
def test_a_deeper_task_never_gets_less(one: TaskProfile, base: int, depth: int):
    shallow, deep = sorted((one.reasoning_depth, depth))
    less, more = (one.model_copy(update={"reasoning_depth": tier}) for tier in (shallow, deep))
    assert allocate(less, base, 10_000) <= allocate(more, base, 10_000)


@given(PROFILES, BASES, SUFFICIENCIES)
def test_a_less_sufficient_task_never_gets_less(one: TaskProfile, base: int, sufficiency: float):
    low, high = sorted((one.information_sufficiency, sufficiency))
    more, less = (
        one.model_copy(update={"information_sufficiency": value}) for value in (low, high)
    )
    assert allocate(less, base, 10_000) <= allocate(more, base, 10_000)


@given(PROFILES, st.integers(0, 200))
def test_more_expected_steps_never_get_less(one: TaskProfile, steps: int):
    few, many = sorted((one.expected_step_count, steps))
    assert allocate(one.model_copy(update={"expected_step_count": few})) <= allocate(
        one.model_copy(update={"expected_step_count": many})
    )


@given(PROFILES, BASES, st.integers(1, 300))
def test_no_allocation_is_above_the_limit_or_below_one(one: TaskProfile, base: int, limit: int):
    assert 1 <= allocate(one, base, limit) <= limit


@given(PROFILES, BASES)
def test_the_same_profile_gets_the_same(one: TaskProfile, base: int):
    assert allocate(one, base) == allocate(
        one.model_copy(update={"raw_inference": "other words"}), base
    )


def test_the_limit_given_is_the_limit_where_there_is_no_table_of_ones_own():
    assert allocate(profile(5), base=1000, limit=250) == 250


def test_the_smallest_of_all_limits_holds():
    model = ScriptedModel()
    table = load_packaged_table(limit=9)
    assert AdaptiveDepth(model, 50, table=table).allocate_ttl(profile(5)) == 9
    assert AdaptiveDepth(model, 8, table=table).allocate_ttl(profile(5)) == 8
    assert AdaptiveDepth(model, 50, {"max_llm_calls": 7}, table=table).allocate_ttl(profile(5)) == 7


@pytest.mark.parametrize(
    "table",
    [
        {"depth": {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}},
        {"depth": {1: 1.0, 2: 2.0, 3: 1.9, 4: 4.0, 5: 5.0}},
        {
            "sufficiency": {
                "high": {"at_least": 0.5, "add": 1.0},
                "low": {"at_least": 0, "add": 0.5},
            }
        },
        {"sufficiency": {"high": {"at_least": 0.5, "add": 0}, "low": {"at_least": 0.1, "add": 1}}},
        {"sufficiency": {"high": {"at_least": 0, "add": 0}, "low": {"at_least": 0, "add": 1}}},
        {"sufficiency": {}},
        {"typical_steps": {1: 1, 2: 2}},
        {"reasoning_mode": {1: "shallow"}},
        {"reasoning_mode": {1: "dull", 2: "dull", 3: "dull", 4: "dull", 5: "dull"}},
        {"complexity": {1: "low", 2: "low", 3: "low", 4: "low", 5: "huge"}},
        {"breadth": {"narrow": 0.0}},
        {"tools": {"none": 0.0, "minimal": 0.0, "moderate": 0.0}},
        {"confidence": {"low": 0.0, "high": 0.0}},
        {"base": 0},
        {"limit": 0},
    ],
)
def test_a_table_that_is_incomplete_or_falls_is_refused(table: dict[str, Any]):
    with pytest.raises(ValidationError):
        load_packaged_table(**table)


@pytest.mark.parametrize(
    ("depth", "complexity", "mode"),
    [
        (1, "very_low", "shallow"),
        (2, "low", "shallow"),
        (3, "moderate", "balanced"),
        (4, "high", "deep"),
        (5, "very_high", "deep"),
    ],
)
def test_depth_decides_complexity_and_reasoning_mode(depth: int, complexity: str, mode: str):
    made = configure_depth(
        profile(depth, ambiguity_level=0.3, raw_inference="because"), 12, load_packaged_table()
    )
    assert (made.detected_complexity, made.reasoning_mode) == (complexity, mode)
    assert (made.allocated_ttl, made.adjustment_reason, made.ambiguity_score) == (
        12,
        "because",
        0.3,
    )


def test_another_table_gives_another_mode_and_complexity():
    table = load_packaged_table(
        reasoning_mode=dict.fromkeys(range(1, 6), "deep"),
        complexity=dict.fromkeys(range(1, 6), "high"),
    )
    made = configure_depth(profile(1), 12, table)
    assert (made.reasoning_mode, made.detected_complexity) == ("deep", "high")


FORMULA = """
#     TTL = min(limit, the greatest, over the depths d from 1 to the task's, of
#                      round(base x m) + extra_step x max(0, expected_step_count - typical_steps[d]))
"""


@pytest.mark.slow
def test_the_formula_of_the_file_is_exact_for_every_profile():
    text = (packaged_config_dir() / "ttl" / "default.yaml").read_text(encoding="utf-8")
    assert FORMULA in text
    table, limit = yaml.safe_load(text), 100
    adaptive = AdaptiveDepth(ScriptedModel(), limit)
    tables = [table[name].items() for name in ("tools", "breadth", "confidence")]
    bands = [
        (0.0, "low"),
        (0.399, "low"),
        (0.4, "middle"),
        (0.699, "middle"),
        (0.7, "high"),
        (1.0, "high"),
    ]
    for (tools, a), (breadth, b), (confidence, c), (sufficiency, band) in itertools.product(
        *tables, bands
    ):
        fields = {
            "expected_tool_usage": tools,
            "output_breadth": breadth,
            "confidence_requirement": confidence,
        }
        rest = sum(map(tenths, (a, b, c, table["sufficiency"][band]["add"])))
        for depth, steps in itertools.product(range(1, 6), (0, 9, 19)):
            one = profile(depth, sufficiency, expected_step_count=steps, **fields)
            for base in (3, 10, 23):
                tiers = [
                    (base * (tenths(table["depth"][str(d)]) + rest) + 5) // 10
                    + table["extra_step"] * max(0, steps - table["typical_steps"][str(d)])
                    for d in range(1, depth + 1)
                ]
                assert adaptive.allocate_ttl(one, base) == min(limit, max(tiers))


def tenths(amount: float) -> int:
    assert round(amount * 10) == pytest.approx(amount * 10)
    return round(amount * 10)


def test_halves_are_rounded_up():
    table = load_packaged_table(depth=dict.fromkeys(range(1, 6), 0.1))
    allocated = [
        AdaptiveDepth(ScriptedModel(), table=table).allocate_ttl(profile(1), base)
        for base in (15, 25, 35)
    ]
    assert allocated == [2, 3, 4]


def test_a_band_and_a_level_of_ones_own_add_their_share():
    table = load_packaged_table(
        sufficiency={
            "high": Band(at_least=0.8, add=0),
            "low": Band(at_least=0.2, add=1),
            "nothing": Band(at_least=0, add=3),
        },
        ambiguity={"high": Band(at_least=0.5, add=0.3)},
        dependencies={"many": Band(at_least=4, add=0.5)},
        breadth={"narrow": 0, "moderate": 0, "broad": 0, "encyclopaedic": 4},
        extra_step=2,
    )
    adaptive = AdaptiveDepth(ScriptedModel(), table=table)
    encyclopaedic = {**profile().model_dump(), "output_breadth": "encyclopaedic"}
    assert (
        adaptive.allocate_ttl(TaskProfile.model_validate(encyclopaedic, context=OWN_LEVELS))
        == 18 + 40
    )
    for fields, more in (
        ({"information_sufficiency": 0.79}, 10),
        ({"information_sufficiency": 0.19}, 30),
        ({"ambiguity_level": 0.49}, 0),
        ({"ambiguity_level": 0.5}, 3),
        ({"dependency_complexity": 3}, 0),
        ({"dependency_complexity": 4}, 5),
        ({"expected_step_count": 5}, 6),
    ):
        assert adaptive.allocate_ttl(profile().model_copy(update=fields)) == 18 + more


def test_a_level_without_an_entry_has_no_budget():
    unknown = TaskProfile.model_validate(
        {**profile().model_dump(), "output_breadth": "vast"}, context=OWN_LEVELS
    )
    with pytest.raises(ValueError, match="no entry for output_breadth 'vast'"):
        AdaptiveDepth(ScriptedModel()).allocate_ttl(unknown)
