"""Single mode: the whole task in one direct call."""

from __future__ import annotations

from typing import Any

from aeon.domain.errors import ServerFailed
from aeon.domain.history import Outcome
from aeon.llm.stack.limits import LimitSettings
from tests.kernel.build import TASK, kernel, run, statuses
from tests.support.scripted_model import ScriptedModel, assessment


def direct(answer: Any, working: str | None = None) -> dict[str, Any]:
    return {"working": working, "answer": answer}


def single(model: ScriptedModel, **options: Any) -> Outcome:
    return run(model, mode="single", **{"base_ttl": 25, **options})


def test_it_asks_once_and_ends_with_the_answer() -> None:
    model = ScriptedModel(direct=direct("A pot of tea.", "Boil, then pour."))
    outcome = single(model)
    assert model.calls == ["direct"]
    assert outcome.answer == "A pot of tea."
    assert outcome.termination_reason == "completed"
    assert not outcome.converged
    assert statuses(outcome) == {"answer": "complete"}
    assert outcome.state.ttl_used == 1


def test_the_worker_sees_the_task_and_no_plan() -> None:
    model = ScriptedModel()
    single(model)
    (request,) = model.requests
    assert request.role == "worker"
    (prompt,) = model.prompts("direct")
    assert TASK in prompt
    assert "step" not in prompt


def test_the_working_is_in_the_record_and_not_in_the_answer() -> None:
    outcome = single(ScriptedModel(direct=direct("15", "5 + 10 = 15")))
    assert outcome.answer == "15"
    (output,) = outcome.state.llm_outputs
    assert (output.call, "5 + 10" in output.text) == ("direct", True)


def test_an_answer_of_a_schema_is_its_json() -> None:
    schema = {
        "type": "object",
        "properties": {"cups": {"type": "integer"}},
        "required": ["cups"],
        "additionalProperties": False,
    }
    outcome = single(ScriptedModel(direct=direct({"cups": 2})), answer_schema=schema)
    assert outcome.answer == '{\n  "cups": 2\n}'


def test_a_judge_assesses_the_answer_for_comparison_and_decides_nothing() -> None:
    model = ScriptedModel(convergence=assessment(0.3))
    outcome = single(model, judges_answer=True)
    assert model.calls == ["direct", "convergence"]
    assert outcome.termination_reason == "completed"
    assessed = outcome.history.final_convergence
    assert assessed is not None
    assert assessed.scores.completeness_score == 0.3
    assert outcome.history.passes[-1].complete


def test_a_judge_that_cannot_be_had_leaves_the_answer() -> None:
    outcome = single(ScriptedModel(convergence="no idea"), judges_answer=True)
    assert (outcome.termination_reason, outcome.answer) == ("completed", "The whole answer.")


def test_a_judge_that_the_budget_does_not_allow_is_left_out() -> None:
    model = ScriptedModel()
    outcome = single(model, judges_answer=True, base_ttl=1)
    assert model.calls == ["direct"]
    assert outcome.termination_reason == "completed"


def test_a_call_that_fails_is_the_runs_failure() -> None:
    outcome = single(ScriptedModel(direct=ServerFailed("down", status=500)))
    assert outcome.termination_reason == "failed"
    assert outcome.error is not None


def test_a_cap_of_one_call_suffices() -> None:
    outcome = single(ScriptedModel(), limits=LimitSettings(max_llm_calls=1))
    assert outcome.termination_reason == "completed"


def test_it_is_used_with_the_packaged_components_alone() -> None:
    assert kernel(ScriptedModel(), mode="single").options is not None
