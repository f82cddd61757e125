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
    resume_command,
)
from aeon.report.record import Record
from aeon.report.words import command_of, program, relative_to_here

_LONGEST_TASK, _MOST = 400, 5
_BLANK = '="..."'  # stays as it is: quotes tell that a text belongs there
_TEXTS = ("++convergence.criteria.", "++inputs.")


def find_ways(record: Record, remedies: Iterable[Remedy], *, is_sound: bool) -> Points:
    """What to type next, each with its purpose, at most five: the remedies in their order, without repetition. After a
    recording, the task for a model of one's own; after a run that is sound and needs no remedy, a higher threshold."""
    result = record.result
    if is_replay(result):
        own = [("To run it with a model of your own", command_of([f"task={result.task}"]))]
        return own if len(result.task) <= _LONGEST_TASK else []
    found: dict[str, str] = {}
    for remedy in remedies:
        found.setdefault(remedy.purpose, _command(record, remedy))
    if not found and is_sound:
        return ask_for_more(result, record.directory)
    return list(found.items())[:_MOST]


def _command(record: Record, remedy: Remedy) -> str:
    blanks = [text for text in remedy.overrides if text.endswith(_BLANK)]
    given = [text for text in remedy.overrides if text not in blanks]
    if is_resumable(record.result) and not remedy.anew and not remedy.program:
        start = command_of((f"resume={relative_to_here(record.directory)}", *given))
        return " ".join((start, *blanks))
    changed = {text.partition("=")[0] for text in remedy.overrides}
    left_out: tuple[str, ...] = ("hydra.",)
    if remedy.program or "task" in changed:
        left_out = ("hydra.", "task", "resume=")
    typed = [text for text in typed_overrides(record) if not text.startswith(left_out)]
    kept = [text for text in typed if text.lstrip("+").partition("=")[0] not in changed]
    python = command_of(())
    command = command_of((*kept, *given)).replace(python, f"{python} {remedy.program}".rstrip(), 1)
    return " ".join((command, *blanks))


def command_again(record: Record) -> str:
    """The command that makes the run again with other thresholds, from its stored answers where there are any."""
    if is_resumable(record.result):
        return resume_command(record.directory)
    given = [text for text in typed_overrides(record) if not text.startswith("hydra.")]
    return command_of(
        [text for text in given if not text.startswith("convergence.") or "criteria" in text]
    )


def commands_of_calls(record: Record) -> dict[str, str]:
    """The commands that show a call's prompt again, each after the name of the call, and that replay the run; empty
    where nothing was stored."""
    result, parent = record.result, record.result.parent
    if is_resumable(result):
        where = resume_command(record.directory).removeprefix(f"{program()} ")
        return {
            "render": where,
            "replay": f"{program()} store.mode=replay {where.replace('resume=', 'store.path=')}",
        }
    left_out = ("hydra.", "store", "provider") if is_replay(result) else ("hydra.", "store")
    given = [text for text in typed_overrides(record) if not text.lstrip("+").startswith(left_out)]
    if is_replay(result):  # a prompt needs no key
        given.append("provider=simulated")
    if not any(
        text.startswith(("task=", "task_file=")) for text in given
    ):  # it stood in the recording
        given = [f"task={result.task}", *given]
    return {
        "render": command_of(given).removeprefix(program()).strip(),
        "replay": command_of(typed_overrides(record))
        if is_replay(result) and parent is not None
        else "",
    }


def typed_overrides(record: Record) -> list[str]:
    """What was typed: texts as they are, not as the configuration quotes them, and addresses without their keys."""
    typed = []
    for text in record.overrides:
        key, sign, value = text.partition("=")
        if key.startswith(_TEXTS) and value[:1] == value[-1:] == "'" and len(value) > 1:
            key, value = key.removeprefix("++"), value[1:-1].replace("\\'", "'")
        if key.endswith("base_url") and value:
            value = show_address(value)
        if "observability.sinks" in key:
            value = "..."  # which may be an address with a key in it
        typed.append(f"{key}{sign}{record.result.task if key == 'task' else value}")
    named = ("task", "resume=", "store.mode=replay", "store=replay", "plan_file=")
    if typed and not is_replay(record.result) and not any(text.startswith(named) for text in typed):
        typed.insert(0, f"task={record.result.task}")  # it was given in Python
    return typed
