"""What judges of finished work find of the faults planted in work_cases.yaml, call by call.

    python benchmarks/judging.py prompts --cases FILE --out DIR      # writes each prompt to DIR/CASE.CALL.txt
    python benchmarks/judging.py score --cases FILE ANSWERS.json     # compares answers with the labels

CALL is `review` (semantic_validation of the work), `assessment` (convergence, after a review that found nothing) or
`assessment-reviewed` (convergence, given the planted fault as an issue of the review; not where nothing is planted).
Where only a draft shows the fault there is no `assessment`: after such a review it is not shown the draft.
A file holds system, user and the schema of the answer in words. ANSWERS.json maps CASE.CALL to the JSON answered.

`prompts` prints how many prompts of each call there are, and their characters. `score` prints for each call, of the
cases with a fault that were answered (`planted`), how many were `found` (the review: at their step; the assessment:
any fault), with their `type`, with the right `blocking` and with `scores` within their bounds; how many without a
fault were left alone (`clean`, of `without_fault`); `false_alarms`: the issues that are not about the fault by place
or number. An answer may be right by these marks and mean another fault: `read` has what was planted beside what was
reported, for a person to read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aeon.app.rehearsal import NotSent, RequestRecorder
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.graph import current_outputs
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.report import SemanticValidationReport
from aeon.domain.request import LLMRequest
from aeon.memory.run_memory import ShownMemory
from aeon.supervisor.structured import StructuredCaller
from aeon.validation.semantic import SemanticValidator

CASES = Path(__file__).with_name("work_cases.yaml")
REVIEW, ASSESSMENT, REVIEWED = CALLS = ("review", "assessment", "assessment-reviewed")
SCORES = ("completeness", "coherence", "consistency")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault of finished work: at which of the steps a review may place it, the first of them in doubt; which types
    a review and which kinds an assessment may give it; whether it blocks the answer; whether a draft alone shows it."""

    description: str
    steps: tuple[str, ...]
    types: tuple[str, ...]
    severity: str
    kinds: tuple[str, ...]
    blocking: bool
    draft_alone: bool


@dataclass(frozen=True, slots=True)
class Case:
    """A finished plan, the fault that was planted in it, if one was, and the bounds of the scores that it earns."""

    name: str
    plan: Plan
    inputs: Mapping[str, str]
    handoffs: Mapping[str, str]
    planted: Planted | None
    scores: Mapping[str, tuple[float, float]]

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls that judge it."""
        if self.planted is None:
            return (REVIEW, ASSESSMENT)
        return (REVIEW, REVIEWED) if self.planted.draft_alone else CALLS


def load_cases(path: Path = CASES) -> list[Case]:
    """The labelled cases of a file, in its order."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [_make_case(name, given) for name, given in document["cases"].items()]


def _make_case(name: str, given: Mapping[str, Any]) -> Case:
    work = given["plan"]
    steps = tuple(
        PlanStep(
            step_id=step_id,
            description=step["does"],
            step_index=index,
            total_steps=len(work),
            dependencies=tuple(step.get("after", ())),
            handoff_to_next=step.get("hand_on"),
            agent="llm",
            status="complete",
            clarity_state="CLEAR",
            step_output=step["output"],
        )
        for index, (step_id, step) in enumerate(work.items(), start=1)
    )
    return Case(
        name=name,
        plan=Plan(goal=given["goal"], task=given["task"], steps=steps),
        inputs=given.get("inputs", {}),
        handoffs={step_id: step["handoff"] for step_id, step in work.items() if "handoff" in step},
        planted=_make_planted(given["planted"]),
        scores={score: (low, high) for score, (low, high) in given["scores"].items()},
    )


def _make_planted(label: Mapping[str, Any] | None) -> Planted | None:
    if label is None:
        return None
    return Planted(
        description=label["description"],
        steps=tuple(label["steps"]),
        types=tuple(label["types"]),
        severity=label["severity"],
        kinds=tuple(label["kinds"]),
        blocking=label["blocking"],
        draft_alone=label.get("draft_alone", False),
    )


def make_request(case: Case, call: str) -> LLMRequest:
    """What a model would be sent when it judges a case in one of the CALLS."""
    recorder = RequestRecorder()
    caller = StructuredCaller(recorder, shared={"inputs": dict(case.inputs)})
    memory = ShownMemory(handoffs=lambda: case.handoffs)
    outputs = current_outputs(case.plan.steps)
    steps = list(case.plan.steps)
    with suppress(NotSent):
        if call == REVIEW:
            validator = SemanticValidator(recorder, structured=caller, memory=memory)
            validator.validate("cross_phase", case.plan, steps, outputs)
        else:
            engine = ConvergenceEngine(
                recorder, structured=caller, memory=memory, shows_drafts=False
            )
            engine.assess(_make_report(case, call), case.plan, steps, outputs)
    return recorder.requests[-1]


def _make_report(case: Case, call: str) -> SemanticValidationReport:
    issues = []
    if call == REVIEWED and case.planted:
        planted = case.planted
        issue = {
            "issue_id": "i1",
            "type": planted.types[0],
            "severity": planted.severity,
            "description": planted.description,
            "location": {"step_id": planted.steps[0]},
        }
        issues.append(issue)
    return SemanticValidationReport.model_validate(
        {"validation_id": "validation-1", "artifact_type": "cross_phase", "issues": issues}
    )


def show_prompt(request: LLMRequest) -> str:
    """A request as one text: system, user, and the answer's schema in words."""
    system, user = (message.content for message in request.messages)
    return f"# System\n\n{system}\n\n# User\n\n{user}\n\n# Schema\n\n{request.schema_prompt}\n"


def write_prompts(cases: Sequence[Case], folder: Path) -> dict[str, dict[str, int]]:
    """Write each prompt of the cases to a file; how many there are of each call, and their characters."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {call: Counter[str]() for call in CALLS}
    for case in cases:
        for call in case.calls:
            request = make_request(case, call)
            (folder / f"{case.name}.{call}.txt").write_text(show_prompt(request), encoding="utf-8")
            system, user = (len(message.content) for message in request.messages)
            schema = len(request.schema_prompt)
            written[call].update(prompts=1, system=system, user=user, schema=schema)
    return {call: dict(counts) for call, counts in written.items()}


def score(cases: Sequence[Case], answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The table that the module's docstring describes. Raises ValueError for an answer to no prompt."""
    prompts = {f"{case.name}.{call}": (case, call) for case in cases for call in case.calls}
    if unknown := sorted(answers.keys() - prompts.keys()):
        raise ValueError(f"no prompt of these cases has the name {', '.join(unknown)}")
    table = {call: Counter[str]() for call in CALLS}
    read = {}
    for name, (case, call) in prompts.items():
        if name not in answers:
            table[call]["unanswered"] += 1
            continue
        marks = _mark(case, call, answers[name])
        table[call].update(marks)
        read[name] = {
            "planted": case.planted.description if case.planted else None,
            "not": [mark for mark in _list_possible(case, call) if not marks[mark]],
            "reported": list(_describe(call, answers[name])),
        }
    return {"calls": {call: dict(counts) for call, counts in table.items()}, "read": read}


def _list_possible(case: Case, call: str) -> tuple[str, ...]:
    if case.planted is None:
        return ("clean",)
    return ("found", "type") if call == REVIEW else ("found", "type", "blocking", "scores")


def _mark(case: Case, call: str, answer: Mapping[str, Any]) -> Counter[str]:
    issues = answer["issues"]
    if case.planted is None:
        within = call == REVIEW or _is_within(case.scores, answer)
        clean = within and not issues
        return Counter(without_fault=1, clean=int(clean), false_alarms=len(issues))
    mark = _mark_review if call == REVIEW else _mark_assessment
    marks = mark(case.planted, issues)
    if call != REVIEW:
        marks["scores"] = int(_is_within(case.scores, answer))
    return marks


def _mark_review(planted: Planted, issues: Sequence[Mapping[str, Any]]) -> Counter[str]:
    there = [issue for issue in issues if _step_of(issue) in planted.steps]
    is_typed = any(issue["type"] in planted.types for issue in there)
    return Counter(
        planted=1,
        found=int(bool(there)),
        type=int(is_typed),
        false_alarms=len(issues) - len(there),
    )


def _mark_assessment(planted: Planted, issues: Sequence[Mapping[str, Any]]) -> Counter[str]:
    is_typed = any(issue["kind"] in planted.kinds for issue in issues)
    is_blocking = any(issue["blocking"] for issue in issues)
    return Counter(
        planted=1,
        found=int(bool(issues)),
        type=int(is_typed),
        blocking=int(bool(issues) and is_blocking == planted.blocking),
        false_alarms=max(0, len(issues) - 1),
    )


def _is_within(bounds: Mapping[str, tuple[float, float]], answer: Mapping[str, Any]) -> bool:
    return all(low <= answer[f"{name}_score"] <= high for name, (low, high) in bounds.items())


def _step_of(issue: Mapping[str, Any]) -> str | None:
    location = issue.get("location") or {}
    step: str | None = location.get("step_id")
    return step


def _describe(call: str, answer: Mapping[str, Any]) -> Iterator[str]:
    for issue in answer["issues"]:
        if call == REVIEW:
            head = f"{issue['severity']} {issue['type']} at {_step_of(issue)}"
        else:
            head = f"{'blocking ' if issue['blocking'] else ''}{issue['kind']}"
        yield f"{head}: {issue['description']}"
    if call != REVIEW:
        yield ", ".join(f"{name} {answer[f'{name}_score']}" for name in SCORES)


def main(words: Sequence[str]) -> None:
    """Carry out the command line that the module's docstring describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    prompts = commands.add_parser("prompts", help="write each prompt")
    prompts.add_argument("--out", type=Path, required=True)
    compare = commands.add_parser("score", help="compare answers with the labels")
    compare.add_argument("answers", type=Path)
    for command in (prompts, compare):
        command.add_argument("--cases", type=Path, default=CASES)
    given = parser.parse_args(words)
    cases = load_cases(given.cases)
    if given.command == "prompts":
        result: Mapping[str, Any] = write_prompts(cases, given.out)
    else:
        try:
            result = score(cases, json.loads(given.answers.read_text(encoding="utf-8")))
        except ValueError as error:
            sys.exit(f"{given.answers}: {error}")
        except KeyError as error:
            sys.exit(f"{given.answers}: an answer lacks the field {error}")
    print(json.dumps(result, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
