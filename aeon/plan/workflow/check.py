"""Finds all problems of a workflow file beyond its form, each with line and column. Private to workflows.

Checked are the structure (`check_steps`), the references, and the tools and agents. Only the valid parts of a
malformed file are checked, so that one mistake does not hide another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

from aeon.domain.graph import by_id, transitive_dependencies
from aeon.domain.plan import PlanStep
from aeon.files.located_yaml import LocatedYaml, Place, dotted
from aeon.plan.structural import StructuralFinding, check_steps
from aeon.plan.workflow.arguments import argument_problems
from aeon.plan.workflow.models import Problem, problem_at
from aeon.plan.workflow.references import BadReference, Reference, references

_LONGEST_NAME = 200
_FIELDS = {"step_id": "id", "dependencies": "depends_on"}


@dataclass(frozen=True, slots=True)
class Sound:
    """The valid parts of a step that may be malformed, with its place in the file."""

    index: int
    raw: Mapping[str, Any]
    step: PlanStep
    places: Sequence[int]


Unavailable = Callable[[str], str | None]
"""The reason why a configured tool is unavailable, by its name; None if it is available or not configured."""


class Checks(TypedDict, total=False):
    """What a workflow file is checked against; what is left out, or None, is not checked.

    `tool_names` are the registered tools; where it maps each to its input schema, arguments are checked too. All about
    tools are warnings. `input_names` are the inputs that are given. `unavailable` says why a configured tool is not
    registered. With `one_final_step` the plan must end with exactly one step.
    """

    tool_names: Collection[str] | None
    input_names: Collection[str] | None
    max_steps: int
    one_final_step: bool
    unavailable: Unavailable


def content_problems(document: LocatedYaml, **checks: Unpack[Checks]) -> list[Problem]:
    """All problems of a workflow file except those of its form. A plan has at most 100 steps by default."""
    max_steps, one_final_step = checks.get("max_steps", 100), checks.get("one_final_step", False)
    unavailable = checks.get("unavailable", lambda _: None)
    sound = _sound_steps(document.value)
    if len(sound) > max_steps:
        # What else is wrong with a plan that is too large would take long to find, and be too much to read.
        return [*_repeated_keys(document), *_structural_problems(document, sound, max_steps, one_final_step)]
    return [
        *_repeated_keys(document),
        *_structural_problems(document, sound, max_steps, one_final_step),
        *_reference_problems(document, sound, checks.get("input_names")),
        *_worker_problems(document, sound, checks.get("tool_names"), unavailable),
    ]


def _repeated_keys(document: LocatedYaml) -> Iterator[Problem]:
    for again in document.repeated:
        message = f"{dotted(again.place)}: stands here again, it is on line {again.first_line} already"
        yield problem_at(again.position, message)


def _sound_steps(value: Any) -> list[Sound]:
    raw = value.get("steps") if isinstance(value, Mapping) else None
    listed = raw if isinstance(raw, list) else []
    return [_sound_step(index, step) for index, step in enumerate(listed) if isinstance(step, Mapping)]


def _sound_step(index: int, raw: Mapping[str, Any]) -> Sound:
    step_id, description, tool = raw.get("id"), raw.get("description"), raw.get("tool")
    listed = raw.get("depends_on")
    named = [(n, d) for n, d in enumerate(listed if isinstance(listed, list) else ()) if isinstance(d, str)]
    # Not validated: problems of form are reported elsewhere. A step without an id is counted, but has no relations.
    step = PlanStep.model_construct(
        step_id=step_id if isinstance(step_id, str) and step_id else f"\0{index}",
        description=description if isinstance(description, str) and description else "?",
        dependencies=tuple(dependency for _, dependency in named),
        tool=tool if isinstance(tool, str) else None,
    )
    return Sound(index, raw, step, tuple(n for n, _ in named))


def _structural_problems(
    document: LocatedYaml, sound: Sequence[Sound], max_steps: int, one_final: bool
) -> Iterator[Problem]:
    if not sound:
        return
    steps = [one.step for one in sound]
    # Whether there is one final step cannot be said while ids are missing.
    one_final = one_final and not any(step.step_id.startswith("\0") for step in steps)
    for finding in check_steps(steps, max_steps=max_steps, one_final_step=one_final):
        if finding.step_id is None or not finding.step_id.startswith("\0"):
            place = _place(finding, sound)
            yield problem_at(document.position(place), finding.message + _suggest_id(finding, steps))


def _place(finding: StructuralFinding, sound: Sequence[Sound]) -> Place:
    """The place in the file that a finding is about."""
    _, *parts = finding.pointer.split("/")
    if len(parts) < 2:
        return ("steps",)
    one = sound[int(parts[1])]
    place: Place = ("steps", one.index, *(_FIELDS.get(part, part) for part in parts[2:3]))
    return (*place, one.places[int(parts[3])]) if len(parts) > 3 else place


def _suggest_id(finding: StructuralFinding, steps: Sequence[PlanStep]) -> str:
    """Suggest a known id that resembles an unknown one."""
    _, *parts = finding.pointer.split("/")
    if len(parts) < 4:
        return ""
    step = steps[int(parts[1])]
    named = step.dependencies[int(parts[3])]
    return "" if named in by_id(steps) else _suggest(named, [s.step_id for s in steps if s is not step])


def _reference_problems(
    document: LocatedYaml, sound: Sequence[Sound], input_names: Collection[str] | None
) -> Iterator[Problem]:
    raw = document.value if isinstance(document.value, Mapping) else {}
    declared = raw.get("inputs") if isinstance(raw.get("inputs"), Mapping) else None
    before = transitive_dependencies([one.step for one in sound])
    for field in ("goal", "task"):
        yield from _unread_references(document, (field,), raw)
    for name in declared or ():
        if isinstance(name, str) and input_names is not None and name not in input_names:
            yield problem_at(document.key_position(("inputs", name)), _missing_input(name))
    for one in sound:
        yield from _unread_references(document, ("steps", one.index, "handoff"), one.raw)
        for place, text in _texts(one):
            if "arguments" in place and not _is_unicode(text):
                yield problem_at(document.position(place), f"{dotted(place)}: must be valid Unicode text")
            for found in references(text, before):
                message = _check_reference(found.reference, one, place, before, declared, input_names)
                if message:
                    yield problem_at(document.position(place), f"{dotted(place)}: {message}")


def _check_reference(
    reference: Reference | BadReference,
    one: Sound,
    place: Place,
    before: Mapping[str, Collection[str]],
    declared: Mapping[str, Any] | None,
    given: Collection[str] | None,
) -> str:
    """The problem with a reference; empty if there is none."""
    if isinstance(reference, BadReference):
        return str(reference)
    if reference.kind == "input":
        return _check_input(reference, declared, given)
    if place[2] == "description":
        return (
            f"`{reference.text}`: outputs of steps are named in arguments only; "
            "the model is given those of the steps in `depends_on` anyway"
        )
    own = one.step.step_id
    if reference.name not in before:
        return f"`{reference.text}`: there is no step '{reference.name}'{_suggest(reference.name, before)}"
    if reference.name == own:
        return f"`{reference.text}`: a step cannot use its own output"
    if reference.name not in before.get(own, ()):
        return (
            f"`{reference.text}`: {_name(one)} does not depend on '{reference.name}', so that its output may not be "
            f"there yet: add '{reference.name}' to `depends_on`"
        )
    return ""


def _check_input(reference: Reference, declared: Mapping[str, Any] | None, given: Collection[str] | None) -> str:
    if declared is not None and reference.name not in declared:
        return f"`{reference.text}`: `inputs` has no '{reference.name}'{_suggest(reference.name, declared)}"
    if declared is None and given is not None and reference.name not in given:
        return _missing_input(reference.name)
    return ""


def _name(one: Sound) -> str:
    """A step as messages call it: by its id, or by its place when it has none."""
    step_id = one.step.step_id
    return dotted(("steps", one.index)) if step_id.startswith("\0") else f"step '{step_id}'"


def _missing_input(name: str) -> str:
    return f"the input '{name}' is not given: inputs.{name}=\"...\" or input_files.{name}=path"


def _suggest(name: str, known: Collection[str]) -> str:
    if len(name) > _LONGEST_NAME:
        return ""  # to compare long names takes long
    near = get_close_matches(name, [one for one in map(str, known) if not one.startswith("\0")], n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def _texts(one: Sound) -> Iterator[tuple[Place, str]]:
    """The texts of a step in which references are read, with their places."""
    for field in ("description", "arguments"):
        yield from _texts_in(one.raw.get(field), ("steps", one.index, field))


def _texts_in(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts_in(item, (*place, str(key)))
            if not _is_unicode(str(key)):
                yield (*place, str(key)), str(key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts_in(item, (*place, index))


def _is_unicode(text: str) -> bool:
    """Whether it can be written down; half a surrogate pair cannot, and pydantic lets it pass in JSON values."""
    return not any("\ud800" <= ch <= "\udfff" for ch in text)


def _unread_references(document: LocatedYaml, place: Place, within: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn of references in a text in which none are resolved."""
    text = within.get(str(place[-1]))
    for found in references(text) if isinstance(text, str) else ():
        if isinstance(found.reference, Reference):
            message = f"{dotted(place)}: `{found.reference.text}` is plain text here; {_WHERE}"
            yield problem_at(document.position(place), message, "warning")


_INSTEAD = "another is looked for, or the model does the step"
_WHERE = "references are read in `description` and `arguments`"


def _worker_problems(
    document: LocatedYaml, sound: Sequence[Sound], tool_names: Collection[str] | None, unavailable: Unavailable
) -> Iterator[Problem]:
    """Check the tool and the agent of each step. A missing tool is a warning: the supervisor looks for another, or the
    model does the step."""
    for one in sound:
        place: Place = ("steps", one.index)
        name, tool, agent = _name(one), one.raw.get("tool"), one.raw.get("agent")
        if tool and agent:
            message = f"{name} has both `tool` and `agent`: the tool does it; leave one out"
            yield problem_at(document.key_position((*place, "agent")), message, "warning")
        elif not tool and not agent:
            message = f"{name} has neither `tool` nor `agent`: one will be looked for; write `agent: llm`"
            yield problem_at(document.position(place), message, "warning")
        if one.raw.get("arguments") is not None and not tool:
            message = f"{name} has arguments but no tool: they are not used"
            yield problem_at(document.key_position((*place, "arguments")), message, "warning")
        if isinstance(tool, str) and tool and tool_names is not None:
            yield from _tool_problems(document, one, tool, tool_names, unavailable)


def _tool_problems(
    document: LocatedYaml, one: Sound, tool: str, tools: Collection[str], unavailable: Unavailable
) -> Iterator[Problem]:
    """Warn of a tool that is not registered, or that will refuse the arguments of the step."""
    place: Place = ("steps", one.index)
    name, arguments = _name(one), one.raw.get("arguments")
    if tool not in tools:
        why = unavailable(tool)
        message = f"{name} uses the tool '{tool}': {why}; {_INSTEAD}" if why else _unknown_tool(name, tool, tools)
        yield problem_at(document.position((*place, "tool")), message, "warning")
    elif isinstance(tools, Mapping) and isinstance(arguments, Mapping):
        for inner, said in argument_problems(arguments, tools[tool]):
            within = (*place, "arguments", *inner)
            message = (
                f"{dotted(within)}: the tool '{tool}' will refuse this: {said}; the model will be asked for better"
            )
            yield problem_at(document.position(within), message, "warning")


def _unknown_tool(name: str, tool: str, tool_names: Collection[str]) -> str:
    known = f"there are: {', '.join(sorted(tool_names))}" if tool_names else "there is none: see `tools=`"
    return f"{name} uses the tool '{tool}', which is not registered{_suggest(tool, tool_names)} ({known}): {_INSTEAD}"
