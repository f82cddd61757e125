"""Runs with a planted cause each: what the model answers, the overrides, and what the page has to name first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from aeon import Aeon
from aeon.report.diagnosis.finding import Finding
from aeon.report.diagnosis.next_commands import list_next_commands
from aeon.report.diagnosis.ranking import diagnose
from aeon.report.items import find_critical, list_items
from aeon.report.patterns import find_patterns
from aeon.report.record import Record, load_record

Calls = dict[str, Any]

STEPS = [
    {"step_id": name, "description": f"Do {name}"} for name in ("outline", "facts", "examples")
]
PLAN = {
    "answer": {"goal": "A guide", "steps": [*STEPS, {"step_id": "write", "description": "Write"}]}
}
NOTHING: Calls = {"answer": {"actions": []}}
BLOCKED = {
    "step_output": "",
    "clarity_state": "BLOCKED",
    "clarity_reason": "The sales figures of 2025 are not given.",
}


def judged(completeness: float = 0.97, pairs: str = "consistent", **more: Any) -> Calls:
    """An assessment; the other two scores are 0.95."""
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


def in_pass(number: int, rule: Calls) -> Calls:
    """A rule for one pass."""
    return {"when": {"pass_number": number}, **rule}


def more_work(number: int) -> Calls:
    """A refinement of a pass that adds a step, so that another pass follows."""
    step = {"step_id": f"more-{number}", "description": "Improve it", "dependencies": ["write"]}
    action = {"action_type": "ADD", "new_step": step, "justification": "It is thin."}
    return in_pass(number, {"answer": {"actions": [action]}})


def written(*texts: str) -> Calls:
    """A plan of one step, which is replaced after each pass and writes these texts, pass by pass."""
    steps = [
        in_pass(number, {"answer": {"step_output": text, "clarity_state": "CLEAR"}})
        for number, text in enumerate(texts, 1)
    ]
    plan = {"answer": {"goal": "A guide", "steps": [{"step_id": "write", "description": "Write"}]}}
    return {
        "plan": plan,
        "step": steps,
        "refinement": [in_pass(0, NOTHING), *map(rewrite, range(1, 9))],
    }


def rewrite(number: int) -> Calls:
    """A refinement of a pass that has what was written be written anew."""
    name = f"write-{number}" if number > 1 else "write"
    step = {"step_id": f"write-{number + 1}", "description": "Write it anew"}
    action = {
        "action_type": "REPLACE",
        "target_step_id": name,
        "new_step": step,
        "justification": "It is thin.",
    }
    return in_pass(number, {"answer": {"actions": [action]}})


def issue(**more: Any) -> Calls:
    """A review with one grave issue at the step `facts`."""
    found = {
        "issue_id": "i1",
        "type": "specificity",
        "severity": "HIGH",
        "description": "No figure has a year.",
        "location": {"step_id": "facts", "artifact_reference": None},
    }
    return {"answer": {"issues": [{**found, **more}]}}


MORE_WORK = [in_pass(0, NOTHING), *map(more_work, range(1, 9))]
CRITERION = [{"name": "cited", "met": False, "reason": "No claim names its source."}]
CYCLE = {"step_id": "facts", "description": "Collect", "dependencies": ["facts"]}
CONTRADICTION = {
    "kind": "contradiction",
    "description": "The output of `facts` has 12,000 euros, that of `examples` 21,000.",
    "blocking": True,
}
MANY_SUBPLANS = [
    {"action_type": "SUBPLAN_CREATE", "target_step_id": name, "justification": "It is large."}
    for name in ("outline", "facts", "examples")
]


@dataclass(frozen=True)
class Planted:
    """What the model does, what is typed, and the beginning of the line that has to stand first."""

    calls: Calls
    first: str
    given: list[str] = field(default_factory=list)
    converges: bool = False
    inputs: dict[str, str] | None = None
    plan: list[dict[str, Any]] | None = None  # a person's own


RUNS: dict[str, Planted] = {
    "a noisy judge": Planted(
        written("The guide.", "The guide.", "The guide.")
        | {"convergence": [judged(0.96, issues=[{**CONTRADICTION, "kind": "other"}]), judged(0.7)]},
        "The judge contradicts itself: completeness went from 0.96 to 0.70 from pass 1 to pass 2, "
        "for the same answer",
        ["limits.max_passes=2"],
    ),
    "a step that misses an input": Planted(
        {"step": [{"when": {"step_id": "facts"}, "answer": BLOCKED}], "convergence": judged(0.5)},
        "The step `facts` was BLOCKED in pass 1, and still is",
    ),
    "an endpoint with waits": Planted(
        {
            "step": [{"fail": {"kind": "rate_limit", "retry_after": 0.2}, "times": 2}],
            "convergence": judged(),
        },
        "2 retries after `RateLimited`: ",
        ["execution.max_parallel=1"],
        converges=True,
    ),
    "a model that needs repairs": Planted(
        {
            "step": {"text": "Sure, here it is!"},
            "repair": {"simulated": True},
            "convergence": judged(),
        },
        "4 of 4 answers to `step` broke their schema; ",
        converges=True,
    ),
    "an answer undone": Planted(
        written("The guide.", "The better guide.", "The guide.")
        | {"convergence": [judged(0.6), judged(0.8), judged(0.61)]},
        "The answer went back: in pass 3 it is the text of pass 1 again",
        ["limits.max_passes=3"],
    ),
    "a judge that wavers below the threshold": Planted(
        written("The guide.", "The better guide.", "The guide.")
        | {"convergence": [judged(0.4), judged(0.5), judged(0.68)]},
        "The judge contradicts itself: completeness went from 0.40 to 0.68 from pass 1 to pass 3, "
        "for the same answer",
        ["limits.max_passes=3"],
    ),
    "refinements that break their schema": Planted(
        {
            "refinement": {"text": "Sure, here it is!"},
            "repair": {"text": "Sure."},
            "semantic_validation": issue(),
            "convergence": judged(0.7),
        },
        "All 2 answers to `refinement` broke their schema, 2 of them past repair",
        ["limits.max_passes=3"],
    ),
    "a repeated issue": Planted(
        {
            "semantic_validation": issue(),
            "convergence": judged(0.7),
            "refinement": MORE_WORK,
        },
        "4 reviews found the same issue at `facts`: specificity, in passes 0 to 3",
        ["limits.max_passes=3"],
    ),
    "a pass 0 that eats the budget": Planted(
        {
            "refinement": [in_pass(0, {"answer": {"actions": MANY_SUBPLANS}}), NOTHING],
            "convergence": judged(0.4),
        },
        "Planning (pass 0) took ",
        ["ttl.limit=10"],
    ),
    "contradicting outputs": Planted(
        {"convergence": judged(0.97, issues=[CONTRADICTION]), "refinement": MORE_WORK},
        "Outputs contradict each other in pass 2: it concerns `facts` and `examples`",
        ["limits.max_passes=2"],
    ),
    "a blank input": Planted(
        {"step": [{"when": {"step_id": "facts"}, "answer": BLOCKED}], "convergence": judged(0.5)},
        "The input `brief` is blank",
        inputs={"brief": "  "},
    ),
    "a threshold out of reach": Planted(
        {"convergence": judged(0.93), "refinement": MORE_WORK},
        "Completeness stays at 0.93 in passes 1 and 2; its threshold is 0.99",
        ["convergence.completeness=0.99", "limits.max_passes=2"],
    ),
    "a provider that is down": Planted(
        {"step": {"fail": "connection"}},
        "The provider failed at the call `step ",
        ["provider.retry.attempts=1"],
    ),
    "a missing tool": Planted(
        {"convergence": judged()},
        "`search_web` is not among the tools: `facts` had to do without",
        converges=True,
        plan=[
            {"id": "facts", "description": "Find", "tool": "search_web", "arguments": {}},
            {"id": "write", "description": "Write", "depends_on": ["facts"]},
        ],
    ),
    "a missing tool without which a step is BLOCKED": Planted(
        {"step": [{"when": {"step_id": "facts"}, "answer": BLOCKED}], "convergence": judged(0.5)},
        "`search_web` is not among the tools: `facts` had to do without",
        plan=[
            {"id": "facts", "description": "Find", "tool": "search_web", "arguments": {}},
            {"id": "write", "description": "Write", "depends_on": ["facts"]},
        ],
    ),
    "a criterion": Planted(
        {"convergence": judged(criteria=CRITERION), "refinement": MORE_WORK},
        "The criterion `cited` was not met in passes 1 and 2",
        ["convergence.criteria.cited=Every claim names its source.", "limits.max_passes=2"],
    ),
    "a judge that denies its scores": Planted(
        {"convergence": judged(pairs="inconsistent")},
        "The judge contradicts itself in pass 1: every score is reached",
        converges=True,
    ),
    "a slow step": Planted(
        {"step": [{"when": {"step_id": "facts"}, "latency_seconds": 0.8}], "convergence": judged()},
        "Everything waited 8",
        converges=True,
    ),
    "a refused change": Planted(
        {
            "convergence": judged(0.7),
            "refinement": [
                in_pass(0, NOTHING),
                {
                    "answer": {
                        "actions": [
                            {
                                "action_type": "ADD",
                                "new_step": CYCLE | {"step_id": "more", "dependencies": ["more"]},
                                "justification": "Try it.",
                            }
                        ]
                    }
                },
            ],
        },
        "1 change of the plan was refused: ADD `more`",
    ),
    "a change that the budget refused": Planted(
        {
            "convergence": [in_pass(number, judged(0.4 + 0.05 * number)) for number in range(1, 9)],
            "refinement": MORE_WORK,
        },
        "The TTL ended the run before it was done",
    ),
    "subplans that the budget refused": Planted(
        {
            "refinement": [in_pass(0, {"answer": {"actions": MANY_SUBPLANS}}), NOTHING],
            "convergence": judged(0.4),
        },
        "The TTL of 5 was too small for the plan, which was expected to take 10 cycles",
        ["ttl.limit=5"],
    ),
    "a wasted pass": Planted(
        {
            "convergence": [{"when": {"pass_number": [1, 2]}, **judged(0.7)}, judged()],
            "refinement": MORE_WORK,
        },
        "Pass 2 gained nothing",
        converges=True,
    ),
    "a limit that came too early": Planted(
        {
            "convergence": [in_pass(1, judged(0.5)), judged(0.7)],
            "refinement": MORE_WORK,
        },
        "The limit `limits.max_passes` ended the run before it was done",
        ["limits.max_passes=2"],
    ),
    "an answer that was cut off": Planted(
        {
            "step": [{"when": {"step_id": "facts"}, "fail": "truncated"}],
            "convergence": judged(0.6),
        },
        "The step `facts` failed: Truncated: ",
    ),
    "a plan that is refused": Planted(
        {"plan": {"fail": "refused"}}, "No usable answer to the call `plan` in pass 0"
    ),
    "a judge that is filtered": Planted(
        {"convergence": {"fail": "filtered"}, "refinement": MORE_WORK},
        "No usable answer to the call `judge` in pass 2",
    ),
    "a budget below the plan": Planted(
        {"convergence": judged(0.3)},
        "The TTL of 4 was too small for the plan, which was expected to take 10 cycles",
        ["ttl.limit=4"],
    ),
    "a pass that made it worse": Planted(
        written("A full guide with prices.", "A short guide.")
        | {"convergence": [in_pass(1, judged(0.9)), judged(0.5, explanation="No prices.")]},
        "In pass 2 scores fell: completeness from 0.90 to 0.50",
        ["limits.max_passes=2"],
    ),
    "a better pass, of which a later one made up a little": Planted(
        written("A full guide with prices and dates.", "A short guide.", "A guide.")
        | {"convergence": [judged(0.94), judged(0.5), judged(0.6)]},
        "In pass 2 scores fell: completeness from 0.94 to 0.50",
        ["limits.max_passes=3"],
    ),
    "a tool that fails": Planted(
        {"convergence": judged(0.6)},
        "The step `facts` failed: Tool 'read_file': ",
        ["tools=builtin", "tools.builtin.root=."],
        plan=[
            {
                "id": "facts",
                "description": "Read",
                "tool": "read_file",
                "arguments": {"path": "no-such-file.csv"},
            },
            {"id": "write", "description": "Write", "depends_on": ["facts"]},
        ],
    ),
}


@dataclass(frozen=True)
class Examined:
    """A run with its findings, and the commands that its page offers."""

    record: Record
    findings: list[Finding]
    commands: list[tuple[str, str]]


def play(directory: Path, planted: Planted) -> Path:
    """Make such a run in a new folder; the run's directory."""
    directory.mkdir()
    scenario = directory / "scenario.yaml"
    review = {"answer": {"issues": []}}
    answers = {"plan": PLAN, "semantic_validation": review, "refinement": NOTHING, **planted.calls}
    scenario.write_text(yaml.safe_dump({"calls": answers}), encoding="utf-8")
    given = ["provider=simulated", f"provider.scenario={scenario}", *planted.given]
    if planted.plan:
        own = directory / "plan.yaml"
        own.write_text(yaml.safe_dump({"goal": "A guide", "steps": planted.plan}), encoding="utf-8")
        given.append(f"plan_file={own}")
    with Aeon.from_config(given, environ={}) as aeon:
        aeon.run("write a guide", inputs=planted.inputs, directory=directory / "run")
    return directory / "run"


def examine(directory: Path) -> Examined:
    """What the page of a run finds in it."""
    record = load_record(directory)
    patterns, items = find_patterns(record), list_items(record)
    findings = diagnose(record, patterns, items, find_critical(items))
    commands = list_next_commands(record, patterns, findings)
    return Examined(record, findings, commands)
