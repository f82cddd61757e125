"""Writes a plan as a workflow file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import yaml

from aeon.domain.graph import transitive_dependencies
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.files.located_yaml import add_core_schema
from aeon.plan.workflow.references import Reference, escape_references

_WIDTH = 110
# Breaks that YAML does not give back as they were, unless they are escaped.
_OTHER_BREAKS = frozenset("\r\x85\u2028\u2029")


class _Row(list[str]):
    """A list on one line."""


class _Dumper(yaml.SafeDumper):
    """Long texts as blocks, lists indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write equal values out instead of as YAML aliases."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    # A block that begins with a blank would need an indentation indicator.
    as_block = not text[:1].isspace() and not text[-1:].isspace()
    style = None
    if not _OTHER_BREAKS.isdisjoint(text):
        style = '"'
    elif as_block and "\n" in text:
        style = "|"
    elif as_block and len(text) > _WIDTH - 30:
        style = ">"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    _Row, lambda dumper, row: dumper.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True)
)
# What is text to the one version of YAML and a number or a truth value to the other is quoted.
add_core_schema(_Dumper)


def workflow_text(
    plan: Plan, *, inputs: Mapping[str, str] | None = None, header: Sequence[str] = (), schema: str | None = None
) -> str:
    """Write a plan as YAML that `load_workflow` reads back: goal, task, and the definition of each step.

    `inputs` are the names of what the plan works on, each with a few words; `header` are lines for a comment on top,
    `schema` is where editors find the format. References to those inputs, and to outputs of earlier steps, stay
    references; any other `${` is escaped. What happened to the steps is left out; questions become comments.
    """
    declared = dict(inputs or {})
    top: dict[str, Any] = {"goal": plan.goal, "task": plan.task} if plan.task else {"goal": plan.goal}
    if declared:
        top["inputs"] = declared
    before = transitive_dependencies(plan.steps)
    steps = [textwrap.indent(_dump([_step_entry(step, declared, before)]), "  ") for step in plan.steps]
    comments = [
        *([f"yaml-language-server: $schema={schema}"] if schema else []),
        *header,
        *_question_lines(plan.questions),
    ]
    parts = [_comment(comments), *(_dump({key: value}) for key, value in top.items()), "steps:\n" + "\n".join(steps)]
    return "\n".join(part for part in parts if part)


def _step_entry(step: PlanStep, inputs: Mapping[str, str], before: Mapping[str, set[str]]) -> dict[str, Any]:
    in_text = partial(_is_kept, inputs=inputs, outputs=())
    in_arguments = partial(_is_kept, inputs=inputs, outputs=before[step.step_id])
    entry: dict[str, Any] = {"id": step.step_id, "description": escape_references(step.description, in_text)}
    if step.dependencies:
        entry["depends_on"] = _Row(step.dependencies)
    if step.provides:
        entry["provides"] = _Row(step.provides)
    if step.handoff_to_next:
        entry["handoff"] = step.handoff_to_next
    if step.tool:
        entry["tool"] = step.tool
    elif step.agent:
        entry["agent"] = step.agent
    if step.arguments is not None:
        entry["arguments"] = _escape_value(step.arguments, in_arguments, list(before))
    return entry


def _is_kept(reference: Reference, inputs: Mapping[str, str], outputs: Sequence[str] | set[str]) -> bool:
    return reference.name in (inputs if reference.kind == "input" else outputs)


def _escape_value(value: Any, keep: Any, step_ids: Sequence[str]) -> Any:
    if isinstance(value, str):
        return escape_references(value, keep, step_ids)
    if isinstance(value, Mapping):
        return {key: _escape_value(item, keep, step_ids) for key, item in value.items()}
    return [_escape_value(item, keep, step_ids) for item in value] if isinstance(value, list | tuple) else value


def _question_lines(questions: Sequence[FollowUpQuestion]) -> list[str]:
    lines: list[str] = []
    for question in questions:
        about = f" (step {question.step_id})" if question.step_id else ""
        settled = f"Answered: {question.answer}" if question.answer else f"Assumed: {question.assumption}"
        lines += ["", f"Asked{about}: {question.question}", settled]
    return lines


def _comment(lines: Sequence[str]) -> str:
    """Turn lines into comments; characters that would end a comment are replaced."""
    wrapped = [part for line in lines for part in _wrap(line)]
    return "".join(f"# {line}".rstrip() + "\n" for line in wrapped)


def _wrap(line: str) -> list[str]:
    printable = "".join(ch if ch.isprintable() else " " for ch in line)
    if printable.startswith(("yaml-language-server:", "  ")):
        return [printable]
    return textwrap.wrap(printable, _WIDTH, break_long_words=False, break_on_hyphens=False) or [""]


def _dump(value: Any) -> str:
    return str(
        yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False)
    )
