"""Runs with a planted cause each: what stands out names it, and says it before all else where it kept the run from
converging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from aeon import Aeon
from aeon.report.page.build import explain_end
from aeon.report.page.calls import find_critical, list_items
from aeon.report.page.causes import Cause, find_causes
from aeon.report.patterns import find_patterns
from aeon.report.record import Call, Record, load_record
from tests.integration.wire import overrides, script
from tests.support import scripted_model
from tests.support.openai_server import Failure, OpenAIServer

STEPS = [
    {"step_id": name, "description": f"Do {name}"} for name in ("outline", "facts", "examples")
]
PLAN = {
    "answer": {"goal": "A guide", "steps": [*STEPS, {"step_id": "write", "description": "Write"}]}
}
NOTHING: dict[str, Any] = {"answer": {"actions": []}}
BLOCKED = {
    "step_output": "",
    "clarity_state": "BLOCKED",
    "clarity_reason": "The sales figures of 2025 are not given.",
}


def judged(
    completeness: float = 0.97, pairs: str = "consistent", **more: object
) -> dict[str, object]:
    status = [
        {"artifacts": pair, "status": pairs, "explanation": ""}
        for pair in ("plan_steps", "steps_answer", "plan_answer")
    ]
    scores = {
        "completeness_score": completeness,
        "coherence_score": 0.95,
        "consistency_score": 0.95,
    }
    return {
        "answer": {**scores, "consistency_status": status, "explanation": "", "issues": [], **more}
    }


def more_work(number: int) -> dict[str, object]:
    """A refinement of a pass that adds a step, so that another pass follows."""
    step = {"step_id": f"more-{number}", "description": "Improve it", "dependencies": ["write"]}
    action = {"action_type": "ADD", "new_step": step, "justification": "It is thin."}
    return {"when": {"pass_number": number}, "answer": {"actions": [action]}}


REFINED = [{"when": {"pass_number": 0}, **NOTHING}, *map(more_work, range(1, 9))]
CRITERION = [{"name": "cited", "met": False, "reason": "No claim names its source."}]
CYCLE = {"step_id": "facts", "description": "Collect", "dependencies": ["facts"]}
PLANTED: dict[str, tuple[dict[str, object], list[str], str, bool]] = {
    "threshold": (
        {"convergence": judged(0.93), "refinement": REFINED},
        ["convergence.completeness=0.99", "limits.max_passes=2"],
        "Completeness ended at 0.93; its threshold is 0.99",
        True,
    ),
    "blocked step": (
        {"step": [{"when": {"step_id": "facts"}, "answer": BLOCKED}], "convergence": judged(0.5)},
        [],
        "The step `facts` was BLOCKED in pass 1, and still is",
        True,
    ),
    "criterion": (
        {"convergence": judged(criteria=CRITERION), "refinement": REFINED},
        ["convergence.criteria.cited=Every claim names its source.", "limits.max_passes=2"],
        "The criterion `cited` was not met in passes 1 and 2",
        True,
    ),
    "judge": (
        {"convergence": judged(pairs="inconsistent")},
        [],
        "The judge contradicts itself in pass 1: every score is reached",
        False,
    ),
    "slow step": (
        {"step": [{"when": {"step_id": "facts"}, "latency_seconds": 0.6}], "convergence": judged()},
        [],
        "Everything waited 6",
        False,
    ),
    "repairs": (
        {
            "step": {"text": "Sure, here it is!"},
            "repair": {"simulated": True},
            "convergence": judged(),
        },
        [],
        "4 of 4 answers to `step` broke their schema and had to be repaired",
        False,
    ),
    "rate limit": (
        {
            "step": [{"fail": {"kind": "rate_limit", "retry_after": 0.2}, "times": 2}],
            "convergence": judged(),
        },
        [],
        "2 retries after `RateLimited`: ",
        False,
    ),
    "refused change": (
        {
            "step": [{"when": {"step_id": "facts"}, "answer": BLOCKED}],
            "convergence": judged(0.7),
            "refinement": [
                REFINED[0],
                {
                    "answer": {
                        "actions": [
                            {
                                "action_type": "MODIFY",
                                "target_step_id": "facts",
                                "new_step": CYCLE,
                                "justification": "Try it.",
                            }
                        ]
                    }
                },
            ],
        },
        [],
        "1 change of the plan was refused: MODIFY `facts`",
        True,
    ),
    "wasted pass": (
        {
            "convergence": [{"when": {"pass_number": [1, 2]}, **judged(0.7)}, judged()],
            "refinement": REFINED,
        },
        [],
        "Pass 2 gained nothing",
        False,
    ),
}


def examine(
    directory: Path, calls: dict[str, object], given: list[str]
) -> tuple[Record, list[Cause]]:
    directory.mkdir()
    scenario = directory / "scenario.yaml"
    review = {"answer": {"issues": []}}
    answers = {"plan": PLAN, "semantic_validation": review, "refinement": NOTHING, **calls}
    scenario.write_text(yaml.safe_dump({"calls": answers}), encoding="utf-8")
    with Aeon.from_config(
        ["provider=simulated", f"provider.scenario={scenario}", *given], environ={}
    ) as aeon:
        aeon.run("write a guide", directory=directory / "run")
    record = load_record(directory / "run")
    items = list_items(record)
    return record, find_causes(record, find_patterns(record), items, find_critical(items))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_cause_is_named(name: str, tmp_path: Path) -> None:
    calls, given, title, is_cause = PLANTED[name]
    record, causes = examine(tmp_path / "case", calls, given)
    assert record.result.converged is not is_cause
    titles = [cause.title for cause in causes if cause.is_cause or not is_cause]
    assert any(title in each for each in titles[:2]), titles


def test_one_sentence_says_why(tmp_path: Path) -> None:
    calls, given, *_ = PLANTED["blocked step"]
    record, _ = examine(tmp_path / "case", calls, given)
    said = explain_end(record.result, find_patterns(record))
    assert said == "After 1 pass, completeness is 0.50, needs 0.95; the step `facts` is BLOCKED."


def test_the_judge_of_the_same_answer_is_told_what_changed_in_the_plan_and_each_fall_stands_once(
    tmp_path: Path,
) -> None:
    step = {
        "step_id": "write",
        "description": "Write, version 2",
        "dependencies": ["outline", "facts", "examples"],
    }
    change = {
        "action_type": "MODIFY",
        "target_step_id": "write",
        "new_step": step,
        "justification": "It is vague.",
    }
    done = {"step_output": "Six hours of sun.", "clarity_state": "CLEAR"}
    blocked = {**done, "clarity_state": "BLOCKED", "clarity_reason": "How large is the balcony?"}
    calls: dict[str, object] = {
        "step": [{"when": {"step_id": "write"}, "times": 2, "answer": blocked}, {"answer": done}],
        "convergence": [
            {"when": {"pass_number": n}, **judged(score)}
            for n, score in ((1, 0.9), (2, 0.7), (3, 0.97))
        ],
        "refinement": [
            {"when": {"pass_number": 1}, "answer": {"actions": [change]}},
            {
                "when": {"pass_number": 2},
                "answer": {
                    "actions": [{**change, "new_step": {**step, "description": "Write, version 3"}}]
                },
            },
            NOTHING,
        ],
    }
    _, causes = examine(tmp_path / "case", calls, [])
    conflict = next(
        cause
        for cause in causes
        if "contradicts itself: completeness went from 0.90 to 0.70" in cause.title
    )
    said = "The answer and the steps' outputs did not change between; the dependencies of `write`, the description of "
    assert conflict.words.startswith(f"{said}`write` did.")
    assert [
        cause.title
        for cause in causes
        if "0.70 in pass 2" in cause.title or "Pass 2 gained" in cause.title
    ] == []


def test_what_follows_from_a_cause_stands_after_it(tmp_path: Path) -> None:
    _, causes = examine(tmp_path / "case", *PLANTED["blocked step"][:2])
    assert [(cause.title, cause.follows) for cause in causes] == [
        ("The step `facts` was BLOCKED in pass 1, and still is", False),
        ("Completeness ended at 0.50; its threshold is 0.95", True),
        ("So nothing changed and no step was ready: the run stalled", True),
    ]


def test_a_threshold_and_a_limit_are_told_with_their_defaults(tmp_path: Path) -> None:
    _, (threshold, limit, *_) = examine(tmp_path / "case", *PLANTED["threshold"][:2])
    assert "`convergence.completeness` was set to 0.99; its default is 0.95." in threshold.change
    assert limit.change == "`limits.max_passes` was set to 2; its default is 20."


def test_a_fallback_leads_to_the_first_call_that_it_answered(tmp_path: Path) -> None:
    plan = scripted_model.plan("outline", "write")
    failing = OpenAIServer(script(plan=plan, step=Failure(500)))
    with failing, OpenAIServer(script(plan=plan)) as spare:
        fallback = f"{{provider: openai, name: spare, model: m, base_url: '{spare.url}', require_key: false}}"
        given = [
            *overrides(failing.url),
            f"provider.fallbacks=[{fallback}]",
            "execution.max_parallel=1",
        ]
        with Aeon.from_config(given, environ={"OPENAI_API_KEY": "k"}) as aeon:
            aeon.run("write a guide", directory=tmp_path)
    record = load_record(tmp_path)
    items = list_items(record)
    (cause,) = find_causes(record, find_patterns(record), items, [])
    assert cause.title.startswith("The endpoint `spare` answered ")
    first = next(
        item for item in items if isinstance(item.source, Call) and item.source.endpoint == "spare"
    )
    assert cause.anchor == first.key
