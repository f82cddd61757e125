"""Components written from the text of the published contract alone, every optional field left out, carry a run; and
whatever one of them does wrong ends the run with its name, its history and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import ValidationError
from aeon.domain.history import Outcome
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.profile import TaskProfile
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import SemanticValidationReport
from aeon.execution.event_stream import EventStream
from aeon.execution.steps import StepExecutor
from aeon.execution.worker import StepWorker
from aeon.kernel.orchestrator import Orchestrator
from aeon.supervisor.structured import StructuredCaller
from tests.support.scripted_model import ScriptedModel, blocked, worked


class Depth:
    """TaskProfile: the fields of the contract, no more."""

    def infer_task_profile(self, task_description, context=None):
        return TaskProfile(
            profile_version=1,
            reasoning_depth=2,
            information_sufficiency=0.9,
            expected_tool_usage="none",
            output_breadth="narrow",
            confidence_requirement="low",
            raw_inference="simple",
        )

    def allocate_ttl(self, task_profile, base_ttl=10):
        return 3 * base_ttl

    def update_task_profile(
        self,
        current_profile,
        convergence_failure,
        validation_issues,
        clarity_states,
        task_description,
    ):
        return None


class Planner:
    """PlanStep: an id, a description, what it depends on. Neither tool nor agent."""

    def generate_plan(self, task_description, context=None):
        first = PlanStep(step_id="first", step_index=1, total_steps=2, description="do it")
        second = PlanStep(
            step_id="second",
            step_index=2,
            total_steps=2,
            description="tell of it",
            dependencies=["first"],
        )
        return Plan(goal="the goal", steps=[first, second])

    def refine_plan(
        self,
        current_plan,
        validation_issues,
        convergence_reason_codes,
        blocked_steps,
        executed_step_ids,
    ):
        return [
            RefinementAction(
                action_type="MODIFY",
                target_step_id=step_id,
                new_step=current_plan.step(step_id).model_copy(
                    update={"description": "do it with care"}
                ),
                justification="it was blocked",
                inconsistency_detected=False,
            )
            for step_id in blocked_steps
        ]

    def create_subplan(self, parent_step, parent_plan, current_depth):
        return Subplan(
            parent_step_id=parent_step.step_id,
            subplan_goal="in detail",
            substeps=[PlanStep(step_id="part", description="do a part")],
            depth_level=current_depth,
            created_by="recursive_planner",
        )


class Validator:
    """SemanticValidationReport: the counts of the issues that there are."""

    def validate(self, artifact_type, plan=None, steps=None, outputs=None, memory_artifacts=None):
        issue = {
            "issue_id": "i1",
            "type": "specificity",
            "severity": "LOW",
            "description": "a little vague",
        }
        return SemanticValidationReport(
            validation_id="v1",
            artifact_type=artifact_type,
            issues=[issue],
            overall_severity="LOW",
            issue_summary={"specificity": 1},
        )


class Engine:
    """ConvergenceAssessment: `scores` has the three names of the contract, of which none is a consistency score."""

    def assess(self, validation_report, plan, steps, outputs, custom_criteria=None):
        done = self.enough and all(step.status == "complete" for step in steps)
        return ConvergenceAssessment(
            converged=done,
            reason_codes=["complete" if done else "incomplete"],
            scores={
                "completeness_score": 0.9 if done else 0.5,
                "coherence_score": 0.9,
                "consistency_status": {"plan_steps": "consistent", "plan_answer": True},
            },
            explanation="as it stands",
        )

    def __init__(self, enough: bool = True) -> None:
        self.enough = enough


class Repairer:
    """A supervisor: malformed text and a schema in, JSON of that schema out."""

    def __init__(self, repaired: Any = None) -> None:
        self.asked: list[str] = []
        self._repaired = repaired

    def repair_json(self, malformed, schema):
        self.asked.append(malformed)
        return self._repaired


def run(model: ScriptedModel, *components: Any, supervisor: Any = None) -> Outcome:
    """A run with these components in place of those of their kinds."""
    engine, validator, planner, depth = (
        next((each for each in components if isinstance(each, kind)), kind())
        for kind in (Engine, Validator, Planner, Depth)
    )
    stream = EventStream()
    structured = StructuredCaller(model, supervisor=supervisor, emit=stream.emit)
    executor = StepExecutor(StepWorker(model, structured=structured), stream.emit)
    orchestrator = Orchestrator(
        model, engine, validator, planner, depth, executor=executor, stream=stream
    )
    return orchestrator.run("do it")


def test_a_run_of_five_components_converges():
    repairer = Repairer(
        {
            "step_output": "repaired",
            "clarity_state": "CLEAR",
            "clarity_reason": None,
            "handoff_to_next": None,
        }
    )
    model = ScriptedModel(step=[blocked(), worked, "no JSON"])
    outcome = run(model, supervisor=repairer)
    assert outcome.error is None
    assert outcome.converged
    assert outcome.answer == "repaired"
    assert repairer.asked == ["no JSON"]
    assert "repair" not in model.calls
    assert [record.call for record in outcome.state.supervisor_actions] == ["step"]


def test_a_run_of_five_components_that_never_converges_ends_with_what_it_has():
    outcome = run(ScriptedModel(), Engine(enough=False))
    assert outcome.error is None
    assert outcome.termination_reason in ("stalled", "ttl_expired")
    assert outcome.answer == "output of second"
    best = outcome.best_pass
    assert (best.completeness_score, best.coherence_score, best.consistency_score) == (
        0.5,
        0.9,
        None,
    )
    status = outcome.history.final_convergence.scores.consistency_status
    assert status["plan_steps"].status == "consistent"
    assert status["plan_answer"].status == "consistent"


METHODS: dict[str, tuple[type, str]] = {
    "adaptive depth: Depth.infer_task_profile": (Depth, "infer_task_profile"),
    "adaptive depth: Depth.allocate_ttl": (Depth, "allocate_ttl"),
    "adaptive depth: Depth.update_task_profile": (Depth, "update_task_profile"),
    "planner: Planner.generate_plan": (Planner, "generate_plan"),
    "planner: Planner.refine_plan": (Planner, "refine_plan"),
    "planner: Planner.create_subplan": (Planner, "create_subplan"),
    "semantic validator: Validator.validate": (Validator, "validate"),
    "convergence engine: Engine.assess": (Engine, "assess"),
    "supervisor: Repairer.repair_json": (Repairer, "repair_json"),
}


def raise_key_error(*_: Any, **__: Any) -> Any:
    raise KeyError("boom")


def exit_the_program(*_: Any, **__: Any) -> Any:
    raise SystemExit(3)


WRONG: dict[str, Callable[..., Any]] = {
    "an exception": raise_key_error,
    "an exit": exit_the_program,
    "None": lambda *_, **__: None,
    "another type": lambda *_, **__: object(),
    "the dictionary of a value": lambda *_, **__: {"converged": True},
}


def demanding() -> tuple[ScriptedModel, Engine, type[Planner]]:
    """A run that comes to every method: a subplan at first, then a BLOCKED step, and an answer to be repaired."""

    class Decomposing(Planner):
        def refine_plan(self, current_plan, *rest):
            if not current_plan.subplans:
                return [
                    RefinementAction(
                        action_type="SUBPLAN_CREATE",
                        target_step_id="first",
                        justification="it is much",
                    )
                ]
            return super().refine_plan(current_plan, *rest)

    return ScriptedModel(step=[blocked(), "no JSON", worked]), Engine(), Decomposing


CASES = [
    (name, wrong)
    for name in METHODS
    for wrong in WRONG
    # There None says that the profile stays.
    if (wrong, METHODS[name][1]) != ("None", "update_task_profile")
]


@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_a_component_that_does_wrong_ends_the_run_with_its_name_and_what_there_is(
    name: str, wrong: str
):
    kind, method = METHODS[name]
    model, engine, planner = demanding()
    parts: dict[type, Any] = {Planner: planner(), Engine: engine, Depth: Depth()}
    parts |= {Validator: Validator(), Repairer: Repairer({"neither": 1})}
    broken = parts[kind]
    setattr(broken, method, WRONG[wrong])
    supervisor = parts.pop(Repairer)
    outcome = run(model, *parts.values(), supervisor=supervisor)
    assert outcome.termination_reason == "failed"
    assert outcome.error.type == "ComponentFailed"
    shown = name.replace("Planner", "Decomposing")
    assert outcome.error.message.startswith(f"{shown} ")
    assert outcome.history.passes
    assert outcome.history.final_result.result_type == "failed"


@pytest.mark.parametrize("units", [-1, True, 2.5, "30"])
def test_an_allocation_is_a_number_of_at_least_0(units: Any):
    depth = Depth()
    depth.allocate_ttl = lambda task_profile, base_ttl=10: units  # type: ignore[method-assign]
    outcome = run(ScriptedModel(), depth)
    assert "Depth.allocate_ttl returned" in outcome.error.message


def test_a_list_of_anything_else_is_no_list_of_actions():
    planner = Planner()
    planner.refine_plan = lambda *_: ["MODIFY"]  # type: ignore[method-assign]
    outcome = run(ScriptedModel(), planner)
    expected = "planner: Planner.refine_plan returned a list of str, not a list of RefinementAction"
    assert outcome.error.message == expected


def test_a_component_without_the_method_is_named_too():
    class Nothing(Engine):
        assess = property()  # type: ignore[assignment]

    outcome = run(ScriptedModel(), Nothing())
    assert outcome.error.message.startswith("convergence engine: Nothing.assess raised")


def test_pydantics_validation_error_is_the_validation_error_that_the_contract_names():
    """It means an answer that does not match the schema, which a run survives."""

    class Strict(Validator):
        def validate(self, artifact_type, *_, **__):
            return SemanticValidationReport(validation_id="v1", artifact_type="nothing known")

    with pytest.raises(pydantic.ValidationError):
        Strict().validate("plan")
    outcome = run(ScriptedModel(), Strict())
    assert outcome.error.type == "ValidationError"
    assert outcome.state.advisories[-1].kind == "evaluation_unavailable"
    assert "semantic validator: Strict.validate" in outcome.error.message


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [PlanStep(step_id="a", description="do a", dependencies=["a"])],
        [PlanStep(step_id="a", description="do a", dependencies=["nothing"])],
    ],
    ids=["no step", "a loop", "a dependency on nothing"],
)
def test_a_plan_that_is_no_graph_of_steps_is_refused_with_the_planners_name(steps: list[PlanStep]):
    planner = Planner()
    planner.generate_plan = lambda *_: Plan(goal="g", steps=steps)  # type: ignore[method-assign]
    outcome = run(ScriptedModel(), planner)
    assert outcome.termination_reason == "failed"
    assert "planner: Planner.generate_plan" in outcome.error.message
    assert outcome.history.passes


def test_a_supervisor_that_cannot_repair_says_so_by_a_validation_error():
    """Sprint 1 FR-051: the error is structured, and the step fails, not the run."""

    class Helpless(Repairer):
        def repair_json(self, malformed, schema):
            raise ValidationError("beyond repair")

    outcome = run(ScriptedModel(step="no JSON"), supervisor=Helpless())
    assert outcome.state.plan.step("first").status == "failed"
    assert "beyond repair" in outcome.state.plan.step("first").errors[-1]
