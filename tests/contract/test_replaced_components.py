"""Components of one's own that have the published interface and nothing more run in the kernel."""

from __future__ import annotations

from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.profile import TaskProfile
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import IssueLocation, SemanticValidationReport, ValidationIssue
from aeon.kernel.orchestrator import Orchestrator
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.recursive import RecursivePlanner
from aeon.refinement.models import Occasion
from aeon.refinement.refiner import Refiner
from aeon.supervisor.contract import fit_method
from aeon.validation.semantic import SemanticValidator
from tests.plan.builders import blocked as stuck
from tests.plan.builders import done, failed, plan_of, step
from tests.refinement.build import Calls
from tests.support.scripted_model import ScriptedModel, assessment, blocked, plan, worked


class Depth:
    def infer_task_profile(self, task_description, context=None):
        return TaskProfile(
            reasoning_depth=2,
            information_sufficiency=1.0,
            expected_tool_usage="none",
            output_breadth="narrow",
            confidence_requirement="low",
            raw_inference="simple",
        )

    def allocate_ttl(self, task_profile, base_ttl=10):
        return 30

    def update_task_profile(
        self,
        current_profile,
        convergence_failure,
        validation_issues,
        clarity_states,
        task_description,
    ):
        return current_profile.model_copy(update={"profile_version": 2, "reasoning_depth": 3})


class Validator:
    def validate(self, artifact_type, plan=None, steps=None, outputs=None, memory_artifacts=None):
        issue = ValidationIssue(
            issue_id="i1",
            type="specificity",
            severity="LOW",
            description="vague",
            location=IssueLocation(step_id="only"),
        )
        found = (issue,) if artifact_type == "cross_phase" else ()
        return SemanticValidationReport(
            validation_id="v", artifact_type=artifact_type, issues=found
        )


class Planner:
    def __init__(self):
        self.asked = []

    def generate_plan(self, task_description, context=None):
        return Plan(goal="g", steps=(PlanStep(step_id="only", description="do it", agent="llm"),))

    def refine_plan(
        self,
        current_plan,
        validation_issues,
        convergence_reason_codes,
        blocked_steps,
        executed_step_ids,
    ):
        self.asked.append((convergence_reason_codes, blocked_steps, executed_step_ids))
        if not blocked_steps:
            return []
        step = PlanStep(step_id="only", description="do it so", agent="llm")
        return [
            RefinementAction(
                action_type="MODIFY", target_step_id="only", new_step=step, justification="why"
            )
        ]

    def create_subplan(self, parent_step, parent_plan, current_depth):
        raise AssertionError("not asked for")


class Engine:
    def assess(self, validation_report, plan, steps, outputs, custom_criteria=None):
        done = all(step.status == "complete" for step in steps)
        scores = ConvergenceScores(
            completeness_score=1.0, coherence_score=1.0, consistency_score=1.0
        )
        code = "complete" if done else "incomplete"
        return ConvergenceAssessment(converged=done, reason_codes=(code,), scores=scores)


def test_a_run_of_components_with_the_published_interface_alone():
    planner = Planner()
    model = ScriptedModel(step=[blocked(), worked])
    outcome = Orchestrator(model, Engine(), Validator(), planner, Depth()).run("do something")
    assert outcome.error is None
    assert outcome.converged
    assert outcome.answer == "output of only"
    assert outcome.state.profile.profile_version == 2
    assert planner.asked[0] == ([], [], [])
    assert planner.asked[-1] == (["incomplete"], ["only"], [])


class Derived(RecursivePlanner):
    """A planner that comes with Aeon but for a `refine_plan` of one's own."""

    def __init__(self, llm):
        super().__init__(llm)
        self.codes = []

    def refine_plan(
        self,
        current_plan,
        validation_issues,
        convergence_reason_codes,
        blocked_steps,
        executed_step_ids,
    ):
        self.codes.append(convergence_reason_codes)
        return []


def test_a_planner_with_a_refine_plan_of_its_own_is_given_the_reason_codes_of_the_assessment():
    found = {"kind": "contradiction", "description": "tea is not coffee", "blocking": True}
    model = ScriptedModel(plan=plan("a", "b"), convergence=assessment(0.4, 0.5, issues=[found]))
    planner = Derived(model)
    Orchestrator(model, ConvergenceEngine(model), SemanticValidator(model), planner, Depth()).run(
        "do something"
    )
    assert planner.codes == [[], ["incomplete", "incoherent", "contradiction_detected"]]
    assert "refinement" not in model.calls


def test_a_planner_of_ones_own_is_told_what_was_executed_and_what_is_blocked():
    planner = Planner()
    before = plan_of(done("a"), failed("b"), step("c"), stuck("d"))
    Refiner(planner, Validator()).refine(before, Occasion(), RefinementAttempts(), Calls())
    assert planner.asked == [([], ["d"], ["a", "b"])]


def test_a_method_of_ones_own_is_given_more_than_the_interface_has_only_where_it_names_it():
    def own(report, *, left_to_person=()):
        return report, left_to_person

    assert fit_method(own)("r", left_to_person=("i1",), more=1) == ("r", ("i1",))
    assert fit_method(lambda report: report)("r", left_to_person=("i1",)) == "r"
