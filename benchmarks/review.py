"""How well a reader finds the planted faults of review_cases.yaml with today's prompts.

    python benchmarks/review.py ask provider=openai provider.model=...     # asks a model, prints the table
    python benchmarks/review.py write DIR                                  # writes each prompt to DIR/CASE.md
    python benchmarks/review.py score DIR                                  # reads the replies DIR/CASE.json

A reply is the JSON that the prompt asks for. Prints JSON: of the cases with a planted fault how many were found at
their step (`found`), with their type (`type`) and with a fitting severity (`severity`), in all and for each type; of
those without a fault how many were left alone (`clean`); and each case that was missed, with what was reported.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aeon.app.job import resolve_job
from aeon.app.process import build_process, close_process
from aeon.app.rehearsal import NotSent, RequestRecorder
from aeon.config.environment import environment
from aeon.config.load import compose_settings, composition
from aeon.domain.graph import current_outputs
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import LLMAdapter
from aeon.llm.stack.build import run_stack
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.registry import Tool, ToolRegistry
from aeon.validation.semantic import SemanticValidator

CASES = Path(__file__).with_name("review_cases.yaml")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault that a reader should find: at which step (None: any), of which type, with which severities."""

    step: str | None
    type: str
    severities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A plan, carried out or not, and the fault that was planted in it, if one was."""

    name: str
    plan: Plan
    inputs: Mapping[str, str]
    memory: Mapping[str, str]
    tools: tuple[Tool, ...]
    planted: Planted | None


def load_cases() -> list[Case]:
    """The labelled cases, in the order of their file."""
    document = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    tools = {name: _make_tool(name, **given) for name, given in document["tools"].items()}
    return [_make_case(name, given, tools) for name, given in document["cases"].items()]


def _make_tool(name: str, description: str, input: Mapping[str, str]) -> Tool:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in input.items()},
        "required": list(input),
        "additionalProperties": False,
    }
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        output_schema={"type": "string"},
        invoke=lambda _: "",
    )


def _make_case(name: str, given: Mapping[str, Any], tools: Mapping[str, Tool]) -> Case:
    steps = tuple(_make_step(*step) for step in given["plan"])
    plan = Plan(goal="An answer to use as it stands.", task=given["task"], steps=steps)
    planted = None
    if given["planted"]:
        label = given["planted"]
        planted = Planted(label["step"], label["type"], tuple(label["severities"]))
    named = tuple(tools[tool] for tool in given.get("tools", ()))
    return Case(name, plan, given.get("inputs", {}), given.get("memory", {}), named, planted)


def _make_step(step_id: str, description: str, given: Mapping[str, Any]) -> PlanStep:
    tool = given.get("tool")
    output = given.get("output")
    return PlanStep(
        step_id=step_id,
        description=description,
        dependencies=tuple(given.get("after", ())),
        tool=tool,
        arguments=given.get("arguments"),
        agent=None if tool else "llm",
        status="complete" if output else "pending",
        step_output=output,
    )


def review(case: Case, model: LLMAdapter) -> list[dict[str, Any]]:
    """The issues that the model reports for a case: each with type, severity and step."""
    outputs = current_outputs(case.plan.steps)
    registry = ToolRegistry(case.tools) if case.tools else None
    caller = StructuredCaller(model, shared={"inputs": dict(case.inputs)})
    validator = SemanticValidator(model, registry, structured=caller)
    report = validator.validate(
        "cross_phase" if outputs else "plan",
        case.plan,
        list(case.plan.steps),
        outputs,
        dict(case.memory),
    )
    return [issue.model_dump(mode="json") for issue in report.issues]


def write_prompts(folder: Path) -> None:
    """Write the prompt of each case, as a model would be sent it, and the schema of its answer."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in load_cases():
        recorder = RequestRecorder()
        with suppress(NotSent):
            review(case, recorder)
        request = recorder.requests[-1]
        system, user = (message.content for message in request.messages)
        text = f"# System\n\n{system}\n\n# User\n\n{user}\n"
        (folder / f"{case.name}.md").write_text(text, encoding="utf-8")
        schema = json.dumps(request.schema, indent=1)
        (folder / "schema.json").write_text(schema, encoding="utf-8")


def ask_model(overrides: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The issues that the configured model reports for each case."""
    settings = compose_settings(composition(overrides))
    environ = environment()
    shared = build_process(resolve_job(settings, environ), environ)
    try:
        model = run_stack(shared.adapter, limits=settings.limits, provider=settings.provider)
        return {case.name: review(case, model) for case in load_cases()}
    finally:
        close_process(shared)


def read_replies(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The issues of each reply that was written by hand; a case without a reply is left out."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))["issues"]
        for path in sorted(folder.glob("*.json"))
        if path.stem != "schema"
    }


def score(replies: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The table that the module's docstring describes."""
    total: Counter[str] = Counter()
    found_types: dict[str, Counter[str]] = {}
    missed = {}
    for case in load_cases():
        if case.name not in replies:
            continue
        issues = replies[case.name]
        marks = _mark(case.planted, issues)
        total.update(marks)
        if case.planted:
            found_types.setdefault(case.planted.type, Counter()).update(marks)
        if "missed" in marks or any(mark.startswith("wrong") for mark in marks):
            missed[case.name] = [_describe(issue) for issue in issues]
    by_type = {name: dict(counts) for name, counts in found_types.items()}
    return {"total": dict(total), "by_type": by_type, "missed": missed}


def _mark(planted: Planted | None, issues: Sequence[Mapping[str, Any]]) -> list[str]:
    if planted is None:
        return ["wrong: not clean" if issues else "clean"]
    at_step = [issue for issue in issues if planted.step in (None, _step_of(issue))]
    if not at_step:
        return ["missed"]
    of_type = [issue for issue in at_step if issue["type"] == planted.type]
    marks = ["found", "type" if of_type else "wrong type"]
    if of_type:
        fits = any(issue["severity"] in planted.severities for issue in of_type)
        marks.append("severity" if fits else "wrong severity")
    if len(issues) > 1:
        marks.append("with others beside it")
    return marks


def _step_of(issue: Mapping[str, Any]) -> str | None:
    location = issue.get("location") or {}
    step: str | None = location.get("step_id")
    return step


def _describe(issue: Mapping[str, Any]) -> str:
    place = _step_of(issue)
    return f"{issue['severity']} {issue['type']} at {place}: {issue['description'][:120]}"


def main(words: Sequence[str]) -> None:
    """Carry out the command line that the module's docstring describes."""
    match words:
        case ["write", folder]:
            write_prompts(Path(folder))
        case ["score", folder]:
            print(json.dumps(score(read_replies(Path(folder))), indent=2))
        case ["ask", *overrides]:
            print(json.dumps(score(ask_model(overrides)), indent=2))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
