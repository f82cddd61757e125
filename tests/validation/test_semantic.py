"""Semantic validation: the model judges, the program checks structure (FR-036 to FR-046, FR-081, FR-082)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.plan import PlanStep
from aeon.domain.report import SemanticValidationReport
from aeon.domain.request import CallSite, at_site
from aeon.llm.exchange import InvalidAnswer
from aeon.tools.registry import Tool, ToolRegistry
from aeon.validation.semantic import SemanticValidator, parse_report
from tests.contract.components import a_plan
from tests.support.fences import texts_in
from tests.support.scripted_model import ScriptedModel, issue, report

REPAIR = {"action": "rewrite", "target": "b", "changes": '{"description": "boil water"}'}


def validate(model: ScriptedModel, *arguments: Any, **options: Any) -> SemanticValidationReport:
    return SemanticValidator(model).validate(*(arguments or ("plan", a_plan())), **options)


@pytest.mark.parametrize("kind", ["plan", "step", "execution_artifact", "cross_phase"])
def test_every_kind_of_artefact_is_reviewed_in_one_call(kind: str):
    model = ScriptedModel()
    made = validate(
        model, kind, a_plan(), list(a_plan().steps), {"a": "output of a"}, {"note": "milk"}
    )
    assert made.artifact_type == kind
    assert model.calls == ["semantic_validation"]


def test_another_kind_of_artefact_is_refused():
    model = ScriptedModel()
    with pytest.raises(ValueError, match="poem"):
        validate(model, "poem")
    assert model.calls == []


def test_issues_severities_types_and_repairs_are_the_models():
    model = ScriptedModel(
        semantic_validation=report(
            issue("i1", "b", "LOW", type="hallucination", proposed_repair=REPAIR),
            issue("i2", None, "CRITICAL", type="consistency"),
        )
    )
    made = validate(model)
    assert [(i.issue_id, i.type, i.severity, i.step_id) for i in made.issues] == [
        ("i1", "hallucination", "LOW", "b"),
        ("i2", "consistency", "CRITICAL", None),
    ]
    assert made.issues[0].proposed_repair.changes == {"description": "boil water"}
    assert made.overall_severity == "CRITICAL"
    assert made.issue_summary["hallucination"] == made.issue_summary["consistency"] == 1
    assert made.proposed_repairs[0]["action"] == "rewrite"


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ([issue("i1", "nowhere")], "'nowhere'"),
        ([issue("i1"), issue("i1")], "unique"),
        ([issue("i1"), issue("")], "/issues/1/issue_id"),
        ([issue("i1", description="")], "/issues/0/description"),
        ([issue("i1", severity="WARNING")], "/issues/0/severity"),
        ([issue("i1", type="style")], "/issues/0/type"),
    ],
)
def test_a_malformed_report_goes_to_repair(broken: list[Any], complaint: str):
    model = ScriptedModel(
        semantic_validation=report(*broken), repair=json.dumps(report(issue("i9")))
    )
    assert [i.issue_id for i in validate(model).issues] == ["i9"]
    assert model.calls == ["semantic_validation", "repair"]
    assert complaint in model.prompts("repair")[0]


def test_an_id_is_unique_outside_a_run_and_repeatable_inside_one():
    model = ScriptedModel()
    assert validate(model).validation_id != validate(model).validation_id
    with at_site(CallSite(cycle=7)):
        assert validate(model).validation_id == validate(model).validation_id == "validation-7"


def test_steps_alone_are_enough():
    model = ScriptedModel(semantic_validation=report(issue("i1", "x")))
    step = PlanStep(step_id="x", description="whisk the matcha")
    made = validate(model, "step", None, [step])
    assert made.issues[0].step_id == "x"
    assert "whisk the matcha" in model.prompts("semantic_validation")[0]


def test_outputs_alone_are_enough():
    model = ScriptedModel(semantic_validation=report(issue("i1", "x")))
    made = validate(model, "execution_artifact", None, None, {"x": "the finished matcha"})
    assert made.issues[0].step_id == "x"
    assert "the finished matcha" in model.prompts("semantic_validation")[0]


def test_outputs_that_are_no_text_are_shown_as_json():
    model = ScriptedModel()
    validate(model, "cross_phase", a_plan(), None, {"a": {"cups": [1, None]}})
    assert '{"cups":[1,null]}' in model.prompts("semantic_validation")[0].replace(
        ": ", ":"
    ).replace(", ", ",")


def test_memory_is_shown_beyond_the_outputs():
    model = ScriptedModel()
    memory = {"note": "mind the milk", "step/a/output": "output of a"}
    validate(model, "cross_phase", a_plan(), None, {"a": "output of a"}, memory)
    (prompt,) = model.prompts("semantic_validation")
    assert "mind the milk" in prompt
    assert "step/a/output" not in prompt


def test_structural_findings_are_given_to_the_model_and_are_no_issues():
    broken = a_plan().model_copy(
        update={
            "steps": (
                a_plan().steps[0],
                a_plan().steps[1].model_copy(update={"dependencies": ("gone",)}),
            )
        }
    )
    model = ScriptedModel()
    made = validate(model, "plan", broken)
    assert made.issues == ()
    (found,) = texts_in(model.prompts("semantic_validation")[0], "structural_findings")
    assert "'gone'" in found


def test_a_review_of_very_many_issues_is_refused() -> None:
    listed = {"issues": [issue(f"i{number}", "a") for number in range(1_001)]}
    with pytest.raises(InvalidAnswer, match=r"/issues: there are 1,001 issues, at most 1,000 are"):
        parse_report(listed, "plan", {"a"})


def test_a_sound_plan_has_no_structural_findings():
    model = ScriptedModel()
    validate(model)
    assert "structural_findings" not in model.prompts("semantic_validation")[0]


def test_only_a_given_registry_makes_a_tool_unknown():
    plan = a_plan().with_steps(
        a_plan().step("b").model_copy(update={"tool": "samovar", "agent": None})
    )
    empty = {"type": "object"}
    registry = ToolRegistry([Tool("kettle", "Boils water.", empty, empty, lambda: {})])
    with_registry, without = ScriptedModel(), ScriptedModel()
    SemanticValidator(with_registry, registry).validate("plan", plan)
    SemanticValidator(without).validate("plan", plan)
    assert "structural_findings" in with_registry.prompts("semantic_validation")[0]
    assert "structural_findings" not in without.prompts("semantic_validation")[0]
