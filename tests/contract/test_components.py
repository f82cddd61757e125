"""Each component, constructed and called with the specified arguments alone."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.errors import (
    LLMError,
    PlanError,
    RateLimited,
    ServerFailed,
    Truncated,
    ValidationError,
)
from aeon.domain.refinement import RefinementAction
from aeon.plan.recursive import RecursivePlanner
from aeon.tools.registry import Tool, ToolRegistry
from aeon.validation.semantic import SemanticValidator
from tests.contract.components import (
    ANSWERS,
    METHODS,
    Method,
    a_plan,
    a_profile,
    a_report,
    an_issue,
    script,
)
from tests.support.fences import texts_in
from tests.support.scripted_model import ScriptedModel, planned, report

every_method = pytest.mark.parametrize("method", METHODS, ids=str)


def kettle() -> ToolRegistry:
    empty = {"type": "object", "properties": {}}
    return ToolRegistry([Tool("kettle", "Boils water.", empty, empty, lambda: {})])


@every_method
def test_the_specified_arguments_are_enough(method: Method):
    model = script()
    value = method(model)
    assert isinstance(value, method.returns)
    assert model.calls == [method.call]


@every_method
def test_the_specified_arguments_may_be_given_by_position(method: Method):
    by_name, by_position = script(), script()
    method(by_name)
    getattr(method.make(by_position), method.name)(*method.arguments().values())
    assert by_position.prompts(method.call) == by_name.prompts(method.call)


@every_method
def test_no_argument_is_changed_in_place(method: Method):
    arguments = method.arguments()
    before = copy.deepcopy(arguments)
    getattr(method.make(script()), method.name)(**arguments)
    assert arguments == before


@every_method
@pytest.mark.parametrize(
    "error", [ServerFailed("500"), RateLimited("429"), Truncated("cut off")], ids=repr
)
def test_an_error_of_the_model_passes_and_is_not_repaired(method: Method, error: LLMError):
    model = script(**{method.call: error})
    with pytest.raises(LLMError) as raised:
        method(model)
    assert raised.value is error
    assert model.calls == [method.call]


@every_method
def test_two_repairs_are_tried_and_then_a_validation_error_is_raised(method: Method):
    model = script(**{method.call: "no JSON", "repair": ['{"neither": 1}', "nor"]})
    with pytest.raises(ValidationError) as raised:
        method(model)
    assert model.calls == [method.call, "repair", "repair"]
    assert raised.value.usage.requests == 3
    assert raised.value.errors


@every_method
def test_an_answer_that_a_repair_puts_right_is_used(method: Method):
    expected = method(script())
    text = json.dumps(ANSWERS[method.call])
    model = script(**{method.call: text[:-1], "repair": text})
    repaired = method(model)
    assert model.calls == [method.call, "repair"]
    assert _comparable(repaired) == _comparable(expected)


def _comparable(value: Any) -> Any:
    """A report without its id: it is unique."""
    return (
        value.model_copy(update={"validation_id": ""}) if hasattr(value, "validation_id") else value
    )


@pytest.mark.parametrize(
    "component", [ConvergenceEngine, AdaptiveDepth, SemanticValidator, RecursivePlanner]
)
def test_a_model_alone_makes_a_component(component: type):
    component(llm=ScriptedModel())
    component(ScriptedModel())


def test_a_registry_is_shown_to_whoever_is_given_it():
    model = script(
        plan={"goal": "g", "steps": [planned("a", tool="kettle", arguments='{"cups": 2}')]},
        semantic_validation=report(),
    )
    plan = RecursivePlanner(model, kettle(), 5).generate_plan("make tea")
    SemanticValidator(model, kettle()).validate("plan", plan)
    assert "Boils water." in model.prompts("plan")[0]
    assert "Boils water." in model.prompts("semantic_validation")[0]
    step = plan.steps[0]
    assert (step.tool, step.agent, step.arguments) == ("kettle", None, {"cups": 2})


def test_a_tool_that_does_not_exist_is_pointed_out_to_the_model():
    model = script(
        plan={"goal": "g", "steps": [planned("a", tool="samovar")]}, semantic_validation=report()
    )
    plan = RecursivePlanner(model, kettle()).generate_plan("make tea")
    SemanticValidator(model, kettle()).validate("plan", plan)
    (prompt,) = model.prompts("semantic_validation")
    assert "samovar" in texts_in(prompt, "structural_findings")[0]


def test_a_subplan_deeper_than_five_levels_is_a_plan_error_and_asks_nothing():
    model = script()
    before = a_plan()
    with pytest.raises(PlanError, match="level 6"):
        RecursivePlanner(model).create_subplan(before.step("b"), before, 6)
    assert model.calls == []
    assert before == a_plan()


@pytest.mark.parametrize("level", [1, 5])
def test_a_subplan_within_five_levels_is_made_at_that_level(level: int):
    subplan = RecursivePlanner(script()).create_subplan(a_plan().step("b"), a_plan(), level)
    assert subplan.depth_level == level
    assert subplan.parent_step_id == "b"
    assert [step.step_id for step in subplan.substeps] == ["first", "second"]
    assert subplan.created_by == "recursive_planner"


def test_the_allowed_depth_is_the_one_given():
    with pytest.raises(PlanError, match="level 2"):
        RecursivePlanner(script(), None, 1).create_subplan(a_plan().step("b"), a_plan(), 2)


def test_an_executed_step_is_not_decomposed():
    with pytest.raises(PlanError, match="complete"):
        RecursivePlanner(script()).create_subplan(a_plan().step("a"), a_plan(), 1)


def test_refine_plan_gives_the_actions():
    actions = RecursivePlanner(script()).refine_plan(a_plan(), [an_issue()], [], [], ["a"])
    assert [type(action) for action in actions] == [RefinementAction]
    assert actions[0].semantic_validation_input == (an_issue(),)


@pytest.mark.parametrize(
    ("failure", "issues", "states"),
    [
        (False, [an_issue()], ["BLOCKED"]),
        (True, [], ["BLOCKED"]),
        (True, [an_issue()], []),
        (True, [an_issue()], ["CLEAR", "PARTIALLY_CLEAR"]),
        (False, [], []),
    ],
)
def test_without_all_three_signals_the_profile_stays_and_nothing_is_asked(failure, issues, states):
    model = script()
    assert (
        AdaptiveDepth(model).update_task_profile(a_profile(), failure, issues, states, "make tea")
        is None
    )
    assert model.calls == []


def test_custom_thresholds_are_those_given():
    def assess(**thresholds):
        model = script()
        engine = ConvergenceEngine(model, thresholds or None)
        return engine.assess(a_report(), a_plan(), list(a_plan().steps), {"a": "output of a"})

    assert not assess().converged
    assert assess(completeness=0.4).converged
    assert not assess(completeness=0.41).converged


@pytest.mark.parametrize("cap", [3, 100])
def test_no_allocation_is_above_the_limit(cap: int):
    assert AdaptiveDepth(ScriptedModel(), cap).allocate_ttl(a_profile(), 1000) == cap


def test_a_cap_on_calls_caps_the_allocation():
    adaptive = AdaptiveDepth(
        ScriptedModel(), global_resource_caps={"max_llm_calls": 7, "max_tokens": None}
    )
    assert adaptive.allocate_ttl(a_profile()) == 7
