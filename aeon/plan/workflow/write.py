"""Writes a plan as a workflow file."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from aeon.domain.graph import transitive_dependencies
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.domain.values import JsonObject
from aeon.files.located_yaml import add_core_schema
from aeon.plan.workflow.references import Reference, change_texts, escape_references


class _OneLineList(list[str]):
    """A list written on one line."""


class _WorkflowDumper(yaml.SafeDumper):
    """Writes every value in full: YAML would write a repeated value as an alias."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        """Never write an alias."""
        return True


def _text(dumper: _WorkflowDumper, text: str) -> yaml.Node:
    # Only double quotes can hold what is not printable.
    style = None if text.replace("\n", "").isprintable() else '"'
    if style is None and "\n" in text and text.strip() == text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_WorkflowDumper.add_representer(str, _text)
_SEQUENCE = "tag:yaml.org,2002:seq"
_WorkflowDumper.add_representer(
    _OneLineList, lambda dumper, row: dumper.represent_sequence(_SEQUENCE, row, flow_style=True)
)
# Text that one YAML version reads as a number or truth value is quoted.
add_core_schema(_WorkflowDumper)


def workflow_text(
    plan: Plan,
    *,
    inputs: Mapping[str, str] | None = None,
    header: Sequence[str] = (),
    schema: str | None = None,
) -> str:
    """Write a plan as YAML that `load_workflow` reads back; `header` and questions become comments.
    `inputs` are names with short descriptions; `schema` says where editors find the format."""
    inputs = inputs or {}
    comments = [f"yaml-language-server: $schema={schema}"] if schema else []
    comments += [*header, *_comment_questions(plan.questions)]
    before = transitive_dependencies(plan.steps)
    top = {"goal": plan.goal, "task": plan.task, "inputs": dict(inputs)}
    entries = [_dump([_step_entry(step, inputs, before[step.step_id])]) for step in plan.steps]
    parts = [
        "".join(map(_comment_line, comments)),
        *(_dump({name: value}) for name, value in top.items() if value),
        "steps:\n" + "\n".join(textwrap.indent(entry, "  ") for entry in entries),
    ]
    return "\n".join(part for part in parts if part)


def _comment_questions(questions: Iterable[FollowUpQuestion]) -> Iterator[str]:
    for question in questions:
        about = f" (step {question.step_id})" if question.step_id else ""
        yield ""
        yield f"Asked{about}: {question.question}"
        if question.answer:
            yield f"Answered: {question.answer}"
        else:
            yield f"Assumed: {question.assumption}"


def _comment_line(text: str) -> str:
    # Non-printable characters could end a comment.
    printable = "".join(ch if ch.isprintable() else " " for ch in text)
    return f"# {printable}".rstrip() + "\n"


def _step_entry(step: PlanStep, inputs: Collection[str], before: Collection[str]) -> JsonObject:
    entry = {
        "id": step.step_id,
        "description": _escape(step.description, inputs, ()),
        "depends_on": _OneLineList(step.dependencies),
        "provides": _OneLineList(step.provides),
        "handoff": step.handoff_to_next and _escape(step.handoff_to_next, inputs, ()),
        "tool": step.tool,
        "agent": None if step.tool else step.agent,
        "output_schema": step.output_schema,
        "when": step.when,
        "for_each": step.for_each and step.for_each.items,
        "as": step.for_each and step.for_each.name,
        "repeat_until": step.repeat and step.repeat.until,
        "at_most": step.repeat and step.repeat.at_most,
    }
    entry = {key: value for key, value in entry.items() if value}
    entry |= _list_names(inputs=step.inputs, tools=step.tools)
    if step.arguments is not None:
        entry["arguments"] = _escape(step.arguments, inputs, before)
    return entry


def _list_names(**lists: Sequence[str] | None) -> dict[str, _OneLineList]:
    """Return the lists that are not None, even empty ones, each to be written on one line."""
    return {name: _OneLineList(names) for name, names in lists.items() if names is not None}


def _escape(value: object, inputs: Collection[str], before: Collection[str]) -> Any:
    """Return a value whose texts are read back unchanged, except for references to these inputs and
    steps."""

    def is_known(found: Reference) -> bool:
        return found.name in (inputs if found.kind == "input" else before)

    return change_texts(value, lambda _, text: escape_references(text, is_known))


def _dump(value: object) -> str:
    return str(
        yaml.dump(value, Dumper=_WorkflowDumper, sort_keys=False, allow_unicode=True, width=110)
    )
