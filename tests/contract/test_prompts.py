"""Equal situations give equal bytes, the most stable text first (RULES 14)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.request import LLMRequest
from aeon.llm.prompts import fence
from tests.integration.artefacts import run
from tests.integration.test_artefacts_of_runs import converging
from tests.support.scripted_model import ScriptedModel, assessment, unfinished

CALLS = (
    "task_profile",
    "plan",
    "semantic_validation",
    "refinement",
    "subplan",
    "step",
    "convergence",
    "repair",
)
OTHERWISE = (
    "convergence.completeness=0.41",
    "convergence.coherence=0.37",
    "convergence.consistency=0.39",
    "limits.max_passes=17",
    "limits.max_tokens=7654321",
    "limits.max_seconds=4321",
    "limits.max_llm_calls=83",
    "ttl.limit=87",
    "ttl.base=13",
    "execution.max_steps=93",
    "execution.grace_seconds=3",
    "execution.max_parallel=3",
    "refinement.max_attempts_total=7",
    "refinement.max_attempts_per_fragment=2",
)


def requests(directory: Path, *overrides: str) -> list[LLMRequest]:
    """Every request of a run, by its place in it."""
    model = converging()
    assert run(directory, "memory.entries.guest=likes milk", *overrides, model=model).converged
    return sorted(model.requests, key=lambda r: (r.site.sequence, r.site.attempt))


@pytest.fixture(scope="module")
def usual(tmp_path_factory: Any) -> list[LLMRequest]:
    return requests(tmp_path_factory.mktemp("usual"))


@pytest.fixture(scope="module")
def otherwise(tmp_path_factory: Any) -> list[LLMRequest]:
    return requests(tmp_path_factory.mktemp("otherwise"), *OTHERWISE)


def test_the_run_makes_every_call(usual: list[LLMRequest]):
    assert {r.call for r in usual} == set(CALLS)


def test_no_prompt_knows_of_thresholds_limits_or_the_budget(
    usual: list[LLMRequest], otherwise: list[LLMRequest]
):
    assert [r.call for r in usual] == [r.call for r in otherwise]
    for one, other in zip(usual, otherwise, strict=True):
        assert one.messages == other.messages, f"{one.call} of pass {one.site.pass_number}"
        assert one.schema == other.schema


def test_a_refinement_is_asked_to_answer_the_issues_that_the_configuration_says(tmp_path: Path):
    sent = requests(tmp_path, "refinement.binding_severity=CRITICAL")
    for request in sent:
        if request.call == "refinement":
            assert "HIGH" not in request.messages[0].content + str(request.schema)
            asks = "severity CRITICAL bind you" in request.messages[1].content
            assert asks == ('"severity":"CRITICAL"' in request.messages[1].content)


def test_no_prompt_holds_a_clock_or_an_identity(tmp_path: Path):
    model = converging()
    result = run(tmp_path, model=model)
    for request in model.requests:
        for message in request.messages:
            assert result.run_id not in message.content
            assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d", message.content)
            assert "validation-" not in message.content


def test_the_systems_words_are_the_same_for_every_request_of_a_call(usual: list[LLMRequest]):
    for call in CALLS:
        assert len({r.messages[0].content for r in usual if r.call == call}) == 1, call


@pytest.mark.parametrize(
    ("call", "labels"),
    [
        ("task_profile", ["task", "input", "profile", "observed"]),
        ("plan", ["task", "input", "memory"]),
        ("semantic_validation", ["task", "input", "memory", "output", "plan"]),
        ("refinement", ["task", "input", "memory", "output", "plan", "issues", "reasons"]),
        ("subplan", ["task", "input", "memory", "plan"]),
        ("step", ["task", "input", "memory", "outline", "previous_output"]),
        ("convergence", ["task", "input", "memory", "output", "plan", "issues"]),
        ("repair", ["schema", "original", "errors"]),
    ],
)
def test_what_changes_least_comes_first(usual: list[LLMRequest], call: str, labels: list[str]):
    seen = set()
    for request in (r for r in usual if r.call == call):
        places = [request.messages[1].content.find(f"\n<{label}") for label in labels]
        first = request.messages[1].content.find(f"<{labels[0]}")
        there = [first, *(place for place in places[1:] if place >= 0)]
        assert there == sorted(there)
        seen |= {
            label for label, place in zip(labels, [first, *places[1:]], strict=True) if place >= 0
        }
    assert seen == set(labels)


def test_the_task_and_its_inputs_open_every_prompt_but_a_repairs(usual: list[LLMRequest]):
    opening = f"{fence('make tea', 'task')}\n{fence('mind the milk', 'input', name='note')}\n"
    for request in usual:
        if request.call not in ("repair", "task_profile"):
            assert request.messages[1].content.startswith(opening), request.call


def test_a_second_assessment_repeats_the_first_ones_opening(tmp_path: Path):
    model = ScriptedModel(
        convergence=[unfinished(), assessment()], refinement=converging()._answers["refinement"][-1]
    )
    run(tmp_path, "refinement.when=always", model=model)
    prompts = model.prompts("convergence")
    openings = {prompt.split("<plan-")[0] for prompt in prompts}
    assert len(openings) == 1
