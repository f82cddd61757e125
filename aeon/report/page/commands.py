"""The commands on the page of a run: what to try next, a call's prompt."""

from __future__ import annotations

from collections.abc import Iterable

from aeon.domain.values import show_address
from aeon.report.diagnosis.finding import Remedy
from aeon.report.ending import (
    Points,
    ask_for_more,
    is_replay,
    is_resumable,
    list_ways_to_answer,
    resume_command,
)
from aeon.report.record import Record
from aeon.report.words import command_of, program, relative_to_here

_LONGEST_TASK = 400
_MOST = 5
_BLANK = '="..."'  # stays as it is: quotes tell that a text belongs there
_TEXTS = ("++convergence.criteria.", "++inputs.")


def find_ways(record: Record, remedies: Iterable[Remedy], *, is_sound: bool) -> Points:
    """What to type next, each with its purpose, at most five: the remedies in their order, without
    repetition. After a recording, the task for a model of one's own; after a run that is sound and
    needs no remedy, a higher threshold."""
    result = record.result
    if is_replay(result):
        own = [("To run it with a model of your own", command_of([f"task={result.task}"]))]
        return own if len(result.task) <= _LONGEST_TASK else []
    if result.waits_for:
        return list_ways_to_answer(record.directory)
    found: dict[str, str] = {}
    for remedy in remedies:
        found.setdefault(remedy.purpose, _command(record, remedy))
    if not found and is_sound:
        return ask_for_more(result, record.directory)
    return list(found.items())[:_MOST]


def _command(record: Record, remedy: Remedy) -> str:
    """What is typed for a remedy: to go on with the run where that is possible, else its own
    command line changed."""
    blanks = [text for text in remedy.overrides if text.endswith(_BLANK)]
    given = [text for text in remedy.overrides if not text.endswith(_BLANK)]
    if is_resumable(record.result) and not remedy.anew and not remedy.program:
        start = command_of((f"resume={relative_to_here(record.directory)}", *given))
        return " ".join((start, *blanks))
    python = command_of(())
    command = command_of((*_list_unchanged(record, remedy), *given))
    command = command.replace(python, f"{python} {remedy.program}".rstrip(), 1)
    return " ".join((command, *blanks))


def _list_unchanged(record: Record, remedy: Remedy) -> list[str]:
    """What was typed for the run and stays as it was."""
    changed = {text.partition("=")[0] for text in remedy.overrides}
    has_task = not remedy.program and "task" not in changed
    left_out = ("hydra.",) if has_task else ("hydra.", "task", "resume=")
    return [
        text
        for text in list_typed_overrides(record)
        if not text.startswith(left_out) and text.lstrip("+").partition("=")[0] not in changed
    ]


def command_again(record: Record) -> str:
    """The command that makes the run again with other thresholds, from its stored answers where
    there are any."""
    if is_resumable(record.result):
        return resume_command(record.directory)
    given = [text for text in list_typed_overrides(record) if not text.startswith("hydra.")]
    return command_of(
        [text for text in given if not text.startswith("convergence.") or "criteria" in text]
    )


def commands_of_calls(record: Record) -> dict[str, str]:
    """The commands that show a call's prompt again, each after the name of the call, and that
    replay the run; empty where nothing was stored."""
    result = record.result
    parent = record.result.parent
    if is_resumable(result):
        where = resume_command(record.directory).removeprefix(f"{program()} ")
        return {
            "render": where,
            "replay": f"{program()} store.mode=replay {where.replace('resume=', 'store.path=')}",
        }
    left_out = ("hydra.", "store", "provider") if is_replay(result) else ("hydra.", "store")
    given = [
        text for text in list_typed_overrides(record) if not text.lstrip("+").startswith(left_out)
    ]
    if is_replay(result):  # a prompt needs no key
        given.append("provider=simulated")
    if not any(
        text.startswith(("task=", "task_file=")) for text in given
    ):  # it stood in the recording
        given = [f"task={result.task}", *given]
    return {
        "render": command_of(given).removeprefix(program()).strip(),
        "replay": command_of(list_typed_overrides(record))
        if is_replay(result) and parent is not None
        else "",
    }


def list_typed_overrides(record: Record) -> list[str]:
    """What was typed: texts as they are, not as the configuration quotes them, and addresses
    without their keys."""
    typed = [_as_typed(text, record.result.task) for text in record.overrides]
    named = ("task", "resume=", "store.mode=replay", "store=replay", "plan_file=")
    has_task = any(text.startswith(named) for text in typed)
    if typed and not is_replay(record.result) and not has_task:
        typed.insert(0, f"task={record.result.task}")  # it was given in Python
    return typed


def _as_typed(text: str, task: str) -> str:
    key, sign, value = text.partition("=")
    if key == "task":
        return f"{key}{sign}{task}"
    if "observability.sinks" in key:
        return f"{key}{sign}..."  # which may be an address with a key in it
    if key.endswith("base_url") and value:
        return f"{key}{sign}{show_address(value)}"
    is_quoted = len(value) > 1 and value[0] == value[-1] == "'"
    if key.startswith(_TEXTS) and is_quoted:
        unquoted = value[1:-1].replace("\\'", "'")
        return f"{key.removeprefix('++')}{sign}{unquoted}"
    return text
