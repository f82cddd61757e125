"""Finds all problems of a workflow file beyond its form. In a malformed file only the valid parts
are checked, so that one mistake does not hide another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, TypedDict, Unpack

from aeon.domain.errors import PlanError
from aeon.domain.graph import transitive_dependencies
from aeon.domain.plan import PlanStep
from aeon.domain.values import JsonMapping
from aeon.files.located_yaml import LocatedYaml
from aeon.files.text import Place, format_place
from aeon.plan.structural import check_steps
from aeon.plan.workflow.conditions import Named, find_named
from aeon.plan.workflow.inputs import find_schema_problems, find_value_problem, list_types
from aeon.plan.workflow.models import DEFAULT_ITEM, Problem, problem_at
from aeon.plan.workflow.references import BadReference, Reference, find_texts, references
from aeon.plan.workflow.unfolding import find_items_name
from aeon.schema.validators import compile_schema, find_errors

MAX_STEPS = 100
"""Most steps of a plan if nothing else is configured."""
_FIELDS = {"step_id": "id", "dependencies": "depends_on"}
_UNNAMED = "\0"  # starts the ids of steps that have none in the file


class Checks(TypedDict, total=False):
    """What a workflow file is checked against; missing or None entries are not checked. `texts` are
    those of the given inputs. `tool_names` may map each tool to its input schema. `unavailable`
    returns why a configured tool is not registered."""

    tool_names: Collection[str] | None
    input_names: Collection[str] | None
    texts: Mapping[str, str]
    max_steps: int
    one_final_step: bool
    unavailable: Callable[[str], str | None]


def content_problems(document: LocatedYaml, **checks: Unpack[Checks]) -> list[Problem]:
    """Return all problems of a workflow file except those of its form. A plan has at most 100 steps
    by default."""
    checker = _Checker(document, checks)
    checker.check_structure()
    # A plan that is too large would have too many other problems to read.
    if len(checker.steps) <= checks.get("max_steps", MAX_STEPS):
        checker.check_references()
        checker.check_conditions()
        checker.check_workers()
    return checker.problems


class _Checker:
    """Collects the problems of one file. A step without an id is counted, but has no relations."""

    def __init__(self, document: LocatedYaml, checks: Checks) -> None:
        self.document = document
        self.checks = checks
        self.problems: list[Problem] = []
        file = document.value if isinstance(document.value, Mapping) else {}
        listed = file.get("steps")
        declared = file.get("inputs")
        self.inputs: JsonMapping | None = declared if isinstance(declared, Mapping) else None
        steps = listed if isinstance(listed, list) else ()
        self.raw: list[JsonMapping] = [step if isinstance(step, Mapping) else {} for step in steps]
        self.steps = [_read_step(index, raw) for index, raw in enumerate(self.raw)]
        self.before: Mapping[str, Collection[str]] = {}

    def add(
        self, place: Place, message: str, severity: Literal["error", "warning"] = "error"
    ) -> None:
        at_key = place[-1] == "agent" or place[0] == "inputs"
        position = self.document.key_position(place) if at_key else self.document.position(place)
        self.problems.append(problem_at(position, message, severity))

    def check_structure(self) -> None:
        ids = [step.step_id for step in self.steps if not step.step_id.startswith(_UNNAMED)]
        # Without all ids, one final step cannot be checked; an empty list of steps is a problem of
        # form.
        one_final_step = self.checks.get("one_final_step", False) and len(ids) == len(self.steps)
        max_steps = self.checks.get("max_steps", MAX_STEPS)
        if not self.raw:
            return
        for finding in check_steps(self.steps, max_steps=max_steps, one_final_step=one_final_step):
            parts = finding.pointer.split("/")[1:]
            place: Place = tuple(
                int(part) if part.isdigit() else _FIELDS.get(part, part) for part in parts
            )
            is_of_id = place[-1:] == ("id",)
            if is_of_id and self.steps[int(parts[1])].step_id.startswith(_UNNAMED):
                continue  # a missing id is reported as a problem of form
            self.add(place, finding.message + self._suggest_step(parts, ids, finding.step_id))

    def _suggest_step(self, parts: Sequence[str], ids: Sequence[str], own: str | None) -> str:
        """Suggest the step that an unknown dependency may mean; `parts` are those of its
        pointer."""
        if len(parts) <= 3:
            return ""
        dependency = self.steps[int(parts[1])].dependencies[int(parts[3])]
        if dependency in ids:
            return ""
        return _suggest(dependency, [step_id for step_id in ids if step_id != own])

    def check_references(self) -> None:
        self.before = transitive_dependencies(self.steps)
        for name, declared in (self.inputs or {}).items():
            for problem in self._check_declared(str(name), declared):
                self.add(("inputs", str(name)), problem)
        for index, (step, raw) in enumerate(zip(self.steps, self.raw, strict=True)):
            self._check_shown_inputs(("steps", index, "inputs"), raw.get("inputs"))
            for field in ("description", "handoff", "arguments"):
                for place, text in find_texts(raw.get(field), ("steps", index, field)):
                    for found in references(text, _name_item(raw)):
                        problem = self._check_reference(found, step, field)
                        if problem:
                            self.add(place, f"{format_place(place)}: {problem}")

    def _check_shown_inputs(self, place: Place, names: object) -> None:
        """Check that the inputs shown to a step exist."""
        for number, name in enumerate(names if isinstance(names, list) else ()):
            if isinstance(name, str):
                found = Reference(text=f"inputs.{name}", kind="input", name=name)
                if problem := self._check_input(found):
                    self.add((*place, number), f"{format_place(place)}: {problem}")

    def check_conditions(self) -> None:
        """Check that each condition can be parsed and names only what is available by then."""
        for index, (step, raw) in enumerate(zip(self.steps, self.raw, strict=True)):
            self._check_loop_keys(("steps", index), raw)
            for key, find in _EXPRESSIONS.items():
                text = raw.get(key)
                if isinstance(text, str) and text:
                    self._check_expression(("steps", index, key), text, find, step)

    def _check_expression(
        self, place: Place, text: str, find: Callable[[str], list[Named]], step: PlanStep
    ) -> None:
        key = str(place[-1])
        try:
            named = find(text)
        except PlanError as error:
            self.add(place, error.message.replace("`when", f"`{key}"))
            return
        for each in named:
            if key == "repeat_until" and each.kind == "step" and each.name == step.step_id:
                continue
            found = Reference(text=each.text, kind=each.kind, name=each.name)
            problem = self._check_reference(found, step, key)
            if key == "for_each":
                problem = problem or self._check_list(each)
            if problem:
                self.add(place, f"{format_place(place)}: {problem}")

    def _check_list(self, named: Named) -> str:
        """Return why an input can be no list. A text may be one, as JSON."""
        declared = (self.inputs or {}).get(named.name)
        if named.kind != "input" or named.path or not isinstance(declared, Mapping):
            return ""
        types = list_types(declared)
        if not types or {"array", "string"} & set(types):
            return ""
        return f"`{named.text}` is of the type {' or '.join(types)}, and no list"

    def _check_loop_keys(self, place: Place, raw: JsonMapping) -> None:
        """Check for keys that need others, or exclude them."""
        for key, needed in (("as", "for_each"), ("at_most", "repeat_until")):
            if key in raw and needed not in raw:
                self.add((*place, key), f"`{key}` needs `{needed}`")
        if "for_each" in raw and "repeat_until" in raw:
            message = "a step has `for_each` or `repeat_until`, not both: put one into another step"
            self.add((*place, "repeat_until"), message)
        if raw.get("as") in ("inputs", "steps"):
            self.add((*place, "as"), "`as` must be another name than `inputs` and `steps`")

    def _check_declared(self, name: str, declared: object) -> Iterator[str]:
        """Yield the problems of an input: of its schema, and of its given value."""
        schema = declared if isinstance(declared, Mapping) else {}
        if self._is_missing_input(name) and "default" not in schema:
            yield _report_missing_input(name)
        problems = list(find_schema_problems(schema))
        text = self.checks.get("texts", {}).get(name)
        if text is not None and not problems:
            problems += filter(None, [find_value_problem(schema, text)])
        yield from (f"inputs.{name}: {problem}" for problem in problems)

    def _is_missing_input(self, name: str) -> bool:
        names = self.checks.get("input_names")
        return names is not None and name not in names

    def _check_reference(self, found: Reference | BadReference, step: PlanStep, field: str) -> str:
        if not isinstance(found, Reference):
            return str(found)
        if found.kind == "input":
            return self._check_input(found)
        text = f"`{found.text}`"
        if field in ("description", "handoff"):
            return (
                f"{text}: outputs can be named only in arguments; the model gets "
                "those of `depends_on` anyway"
            )
        name = found.name
        if name not in self.before:
            return f"{text}: there is no step '{name}'{_suggest(name, self.before)}"
        if name == step.step_id:
            return f"{text}: a step cannot use its own output"
        if name not in self.before[step.step_id]:
            why = f"does not depend on '{name}', so its output may not exist yet"
            return f"{text}: step '{step.step_id}' {why}: add '{name}' to `depends_on`"
        return ""

    def _check_input(self, found: Reference) -> str:
        name = found.name
        if self.inputs is None:
            return _report_missing_input(name) if self._is_missing_input(name) else ""
        if name in self.inputs:
            return ""
        return f"`{found.text}`: `inputs` has no '{name}'{_suggest(name, self.inputs)}"

    def check_workers(self) -> None:
        """Check tools and agents. A missing one is a warning: the supervisor looks for another
        tool, or the model does the step."""
        for index, (step, raw) in enumerate(zip(self.steps, self.raw, strict=True)):
            place: Place = ("steps", index)
            unnamed = step.step_id.startswith(_UNNAMED)
            name = format_place(place) if unnamed else f"step '{step.step_id}'"
            self._check_own_tools(place, name, raw)
            self._check_output_schema((*place, "output_schema"), name, raw)
            tool = raw.get("tool")
            agent = raw.get("agent")
            if tool and agent:
                message = f"{name} has both `tool` and `agent`: the tool does it; leave one out"
                self.add((*place, "agent"), message, "warning")
            elif raw and not tool and not agent:
                message = (
                    f"{name} has neither `tool` nor `agent`: one will be looked "
                    "for; write `agent: llm`"
                )
                self.add(place, message, "warning")
            if isinstance(tool, str) and tool:
                self._check_tool(place, name, tool, raw.get("arguments"))

    def _check_tool(self, place: Place, name: str, tool: str, arguments: object) -> None:
        tools = self.checks.get("tool_names")
        if tools is None:
            return
        if tool not in tools:
            missing = self._describe_missing(tool, tools)
            message = (
                f"{name} uses the tool '{tool}'{missing}; another is looked for, "
                "or the model does the step"
            )
            self.add((*place, "tool"), message, "warning")
        elif isinstance(tools, Mapping) and isinstance(arguments, Mapping):
            for inner, problem in argument_problems(arguments, tools[tool]):
                at = (*place, "arguments", *inner)
                message = f"{format_place(at)}: the tool '{tool}' will refuse this: {problem}"
                self.add(at, f"{message}; the model will be asked for better", "warning")

    def _check_own_tools(self, place: Place, name: str, raw: JsonMapping) -> None:
        """Check that a step that lists tools for the model to call is done by the model, and that
        they exist."""
        listed = raw.get("tools")
        if not isinstance(listed, list) or not listed:
            return
        if raw.get("agent") != "llm" or raw.get("tool"):
            message = f"{name} has `tools`, which the model calls by itself: write `agent: llm`"
            self.add((*place, "tools"), f"{message}, and no `tool`")
        known = self.checks.get("tool_names")
        if known is None:
            return
        for index, pattern in enumerate(listed):
            if isinstance(pattern, str) and not has_match(pattern, known):
                missing = self._describe_missing(pattern, known)
                self.add((*place, "tools", index), f"{name} names the tool '{pattern}'{missing}")

    def _check_output_schema(self, place: Place, name: str, raw: JsonMapping) -> None:
        schema = raw.get("output_schema")
        if not isinstance(schema, Mapping):
            return
        if raw.get("agent") != "llm" or raw.get("tool"):
            message = f"{name} has `output_schema`, which the model's output is held to"
            self.add(place, f"{message}: write `agent: llm`, and no `tool`")
        for problem in find_schema_problems(schema):
            self.add(place, f"{format_place(place)}: {problem}")

    def _describe_missing(self, tool: str, tools: Collection[str]) -> str:
        if "unavailable" in self.checks and (why := self.checks["unavailable"](tool)):
            return f": {why}"
        known = f"there are: {', '.join(sorted(tools)) or 'none'}"
        return f", which is not registered{_suggest(tool, tools)} ({known})"


_EXPRESSIONS: Mapping[str, Callable[[str], list[Named]]] = {
    "when": find_named,
    "for_each": lambda text: [find_items_name(text)],
    "repeat_until": find_named,
}
"""The keys of a step with an expression, and the functions that find the names in it."""


def _name_item(raw: JsonMapping) -> str:
    """Return the name of the items of a step's list; empty for a step without one."""
    name = raw.get("as")
    if "for_each" not in raw:
        return ""
    return name if isinstance(name, str) else DEFAULT_ITEM


def has_match(pattern: str, names: Collection[str]) -> bool:
    """Whether a pattern matches one of these names."""
    return any(fnmatchcase(name, pattern) for name in names)


def argument_problems(arguments: JsonMapping, schema: JsonMapping) -> Iterator[tuple[Place, str]]:
    """Yield place and message of each violation of an input schema; texts with references are
    skipped."""
    for error in find_errors(compile_schema(schema, "input_schema"), arguments):
        value: Any = arguments
        place: Place = ()
        for part in error.pointer.split("/")[1:]:
            key = (
                int(part) if isinstance(value, list) else part.replace("~1", "/").replace("~0", "~")
            )
            value = value[key]
            place = (*place, key)
        if not isinstance(value, str) or "${" not in value:
            yield place, error.message


def _read_step(index: int, raw: JsonMapping) -> PlanStep:
    """Read the structural fields of a step; not validated, because problems of form are reported
    elsewhere."""
    step_id = raw.get("id")
    description = raw.get("description")
    listed = raw.get("depends_on")
    return PlanStep.model_construct(
        step_id=step_id if isinstance(step_id, str) and step_id else f"{_UNNAMED}{index}",
        description=description if isinstance(description, str) and description else "?",
        dependencies=tuple(map(str, listed)) if isinstance(listed, list) else (),
    )


def _report_missing_input(name: str) -> str:
    return f"the input '{name}' is not given: inputs.{name}=\"...\" or input_files.{name}=path"


def _suggest(name: str, known: Collection[str]) -> str:
    near = get_close_matches(
        name[:200], [str(each) for each in known if not str(each).startswith(_UNNAMED)], n=1
    )
    return f" (did you mean '{near[0]}'?)" if near else ""
