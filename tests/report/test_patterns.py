"""Patterns of runs that were made to have them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml

from aeon import Aeon
from aeon.domain.events import CallAnswered, Recorded
from aeon.domain.request import LLMRequest
from aeon.report.page.build import draw_report
from aeon.report.patterns import Patterns, find_patterns
from aeon.report.record import Record, load_record

Made = tuple[Record, Patterns, list[LLMRequest]]

ROOT = Path(__file__).parents[2]
REWORDED = {
    "step_id": "write",
    "description": "Write the guide, dated",
    "dependencies": ["outline"],
}


def modify(number: int) -> dict[str, object]:
    step = REWORDED | {"description": f"Write the guide, version {number}"}
    changed = {
        "action_type": "MODIFY",
        "target_step_id": "write",
        "new_step": step,
        "justification": "It is vague.",
    }
    return {"answer": {"actions": [changed]}, "times": 1}


def judged(
    completeness: float, *, dated: bool = False, coherence: float = 0.95
) -> dict[str, object]:
    criteria = [{"name": "dated", "met": dated, "reason": "There is no date." if not dated else ""}]
    scores = {
        "completeness_score": completeness,
        "coherence_score": coherence,
        "consistency_score": 0.95,
    }
    return {"answer": {**scores, "criteria": criteria, "issues": []}, "times": 1}


SCENARIO = {
    "calls": {
        "plan": {
            "answer": {
                "goal": "A guide",
                "steps": [
                    {"step_id": "outline", "description": "Outline it"},
                    {"step_id": "write", "description": "Write the guide", "dependencies": ["outline"]},
                ],
            }
        },
        "task_profile": [{"fail": {"kind": "rate_limit", "retry_after": 0.06}, "times": 1}, {"simulated": True}],
        "step": [
            {"when": {"step_id": "outline"}, "answer": {"step_output": "One, two.", "clarity_state": "CLEAR"}},
            {
                "when": {"step_id": "write"},
                "answer": {
                    "step_output": "The guide.",
                    "clarity_state": "BLOCKED",
                    "clarity_reason": "What date is wanted?",
                },
            },
        ],
        "semantic_validation": {"answer": {"issues": []}},
        "convergence": [
            judged(0.5, dated=True),
            judged(0.7) | {"answer": judged(0.7)["answer"] | {"coherence_score": 1.7}},
            judged(0.71, coherence=1.0),
            judged(0.71, coherence=0.7),
            judged(0.97, dated=True),
        ],
        "refinement": [{"answer": {"actions": []}, "times": 1}, modify(1), modify(2), modify(3), modify(4)],
    }
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "scenario.yaml").write_text(yaml.safe_dump(SCENARIO), encoding="utf-8")
    requests: list[LLMRequest] = []

    def collect(recorded: Recorded) -> None:
        if isinstance(recorded.event, CallAnswered):
            requests.append(recorded.event.request)

    overrides = [
        "provider=simulated",
        f"provider.scenario={folder}/scenario.yaml",
        "convergence.criteria.dated=Has it",
    ]
    with Aeon.from_config(overrides, environ={}) as aeon:
        aeon.run("write a guide", directory=folder / "run", observers=[collect])
    record = load_record(folder / "run")
    return (
        record,
        find_patterns(record),
        sorted(requests, key=lambda one: (one.site.sequence, one.site.attempt)),
    )


def test_what_held_convergence_back_is_named_with_its_passes_values_and_words(made: Made) -> None:
    blockers = {blocker.code: blocker for blocker in made[1].blockers}
    assert {code: blocker.passes for code, blocker in blockers.items()} == {
        "incomplete": (1, 2, 3, 4),
        "dated": (2, 3, 4),
        "incoherent": (4,),
    }
    assert not any(blocker.at_end for blocker in blockers.values())
    low = blockers["incomplete"]
    assert (low.kind, low.score, low.threshold, low.best, low.last) == (
        "score",
        "completeness",
        0.95,
        0.97,
        0.97,
    )
    assert (blockers["dated"].kind, blockers["dated"].words) == (
        "criterion",
        ("There is no date.",),
    )
    assert {code: len(blocker.passes) for code, blocker in blockers.items()} == dict(
        made[0].result.history.overall_statistics.convergence_blockers
    )


def test_plateaus_regressions_and_the_best_pass_are_found(made: Made) -> None:
    patterns = made[1]
    assert patterns.best_pass == 5
    assert patterns.plateaus == ((2, 3),)
    assert patterns.without_gain == (3, 4)
    fell = [
        (each.name, each.from_pass, each.to_pass, each.before, each.after)
        for each in patterns.regressions
    ]
    assert fell == [("dated", 1, 2, 1.0, 0.0), ("coherence", 3, 4, 1.0, 0.7)]
    assert patterns.regressions[1].refined == ("write",)


def test_a_judge_that_judges_the_same_work_in_two_ways_is_seen(made: Made) -> None:
    conflicts = [(each.kind, each.name, each.passes) for each in made[1].judge_conflicts]
    assert ("same_work", "coherence", (3, 4)) in conflicts
    assert ("same_work", "dated", (4, 5)) in conflicts
    assert ("pairs", "steps_answer", (5,)) in conflicts
    assert not any(kind == "same_work" and passes == (1, 2) for kind, _, passes in conflicts)


def test_fragments_and_what_each_refinement_gained(made: Made) -> None:
    record, patterns, _ = made
    assert [(each.step_id, each.times, each.passes) for each in patterns.fragments] == [
        ("write", 3, (2, 3, 4))
    ]
    assert (
        patterns.fragments[0].times
        == record.result.history.overall_statistics.fragments_refined["write"]
    )
    planned, *_, last = patterns.refinements
    assert (planned.pass_number, planned.gain) == (0, None)
    assert (last.pass_number, last.to_pass, last.gain) == (
        4,
        5,
        0.17,
    )  # (0.97 + 0.95 - 0.71 - 0.7) / 3
    own = [
        call
        for call in record.calls
        if (call.pass_number, call.phase) == (4, "REFINE") or call.pass_number == 5
    ]
    assert last.tokens == sum(call.usage.total_tokens for call in own)
    assert last.gain_per_1000_tokens == round(0.17 * 1000 / last.tokens, 4)


def test_what_was_spent_adds_up_to_the_usage_of_the_result(made: Made) -> None:
    record, patterns, _ = made
    total = record.result.usage.total
    for spent in (patterns.by_pass, patterns.by_phase, patterns.by_call):
        assert sum(each.tokens for each in spent.values()) == total.total_tokens
        assert sum(each.requests for each in spent.values()) == total.requests
    assert {name: spent.tokens for name, spent in patterns.by_pass.items()} == {
        number: usage.total_tokens for number, usage in record.result.usage.by_pass.items()
    }
    assert set(patterns.by_step) == {"outline", "write"}


def test_repairs_and_waits_are_counted(made: Made) -> None:
    patterns = made[1]
    assert patterns.repairs_by_call["convergence"].model_dump() == {
        "answers": 5,
        "repaired": 1,
        "unrecoverable": 0,
        "rate": 0.2,
    }
    assert patterns.repairs_by_model["simulated"].repaired == 1
    assert patterns.waits["RateLimited"].times == 1
    assert patterns.waits["RateLimited"].seconds >= 0.06


def test_the_share_of_prefixes_is_that_of_the_benchmark(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "prompts.py"), run_name="benchmark")
    assert made[1].prefix.model_dump() == benchmark["repeated_prefixes"](made[2])
    assert made[1].prefix.repeated > 0


def test_a_run_without_journals_and_store_has_the_patterns_of_its_result(
    made: Made, tmp_path: Path
) -> None:
    record, patterns, _ = made
    for name in ("result.json", "history.json"):
        (tmp_path / name).write_bytes((record.directory / name).read_bytes())
    found = find_patterns(load_record(tmp_path))
    assert (found.assessed, found.blockers, found.regressions) == (
        patterns.assessed,
        patterns.blockers,
        patterns.regressions,
    )
    assert {name: spent.tokens for name, spent in found.by_call.items()} == {
        name: spent.tokens for name, spent in patterns.by_call.items()
    }
    assert (found.by_step, found.prefix.share) == ({}, None)


def test_a_run_without_assessments_has_patterns_too(tmp_path: Path) -> None:
    with Aeon.from_config(["provider=simulated", "mode=core"], environ={}) as aeon:
        aeon.run("plan a move", directory=tmp_path / "run")
    patterns = find_patterns(load_record(tmp_path / "run"))
    assert (patterns.assessed, patterns.blockers, patterns.best_pass) == ((), (), None)
    assert patterns.by_step


def test_what_tools_took_is_counted_for_their_steps(tmp_path: Path) -> None:
    (tmp_path / "sum.yaml").write_text(
        "goal: A sum\nsteps:\n  - {id: sum, description: Add, tool: calculator, arguments: {expression: 1 + 1}}\n"
    )
    overrides = [
        "provider=simulated",
        "mode=core",
        "tools=builtin",
        f"plan_file={tmp_path}/sum.yaml",
    ]
    with Aeon.from_config(overrides, environ={}) as aeon:
        aeon.run(directory=tmp_path / "run")
    patterns = find_patterns(load_record(tmp_path / "run"))
    assert (patterns.by_step["sum"].tool_calls, patterns.by_step["sum"].requests) == (1, 0)
    assert patterns.by_call["tool"].seconds == patterns.by_step["sum"].seconds > 0


def test_the_page_shows_them(made: Made) -> None:
    section = (
        draw_report(made[0])
        .decode()
        .partition('<section id="patterns"')[2]
        .partition("</section>")[0]
    )
    text = " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"</?code>", "", section)).split())
    for shown in (
        "incomplete 1, 2, 3, 4 no 0.95 0.97 0.97",
        "Pass 5 came closest, the last one that was judged.",
        "Plateau: from pass 2 to pass 3",
        "Without gain over the pass before: passes 3, 4.",
        "The criterion dated was met in pass 1, and not in pass 2.",
        "coherence fell from 1.00 to 0.70 in pass 4, after changes to write.",
        "write 3 times, passes 2, 3, 4",
        "after pass 4: +0.170 in the mean score",
        "convergence 5 1 0 20 %",
        "simulated 25 1 0 4 %",
        "1 retry after RateLimited: 60 ms waited.",
    ):
        assert shown in text
