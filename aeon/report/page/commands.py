"""The commands on the page of a run in addition to its suggestions: the run again, a call's
prompt."""

from __future__ import annotations

from aeon.report.diagnosis.next_commands import list_typed_overrides
from aeon.report.ending import is_replay, is_resumable, resume_command
from aeon.report.record import Record
from aeon.report.words import command_of, program


def command_again(record: Record) -> str:
    """Return the command that runs again with other thresholds, from stored answers where there are
    any."""
    if is_resumable(record.result):
        return resume_command(record.directory)
    given = [text for text in list_typed_overrides(record) if not text.startswith("hydra.")]
    return command_of(
        [text for text in given if not text.startswith("convergence.") or "criteria" in text]
    )


def commands_of_calls(record: Record) -> dict[str, str]:
    """Return the commands that show a call's prompt again, each after the name of the call, and
    that replay the run; empty where nothing was stored."""
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
