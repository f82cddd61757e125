"""What stands out in a run and the commands on its page: what to try next, a call's prompt; the settings given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aeon.config.compose.reference import entries_of
from aeon.config.settings import Settings
from aeon.domain.result import RunResult
from aeon.domain.values import shown_address
from aeon.report.ending import (
    Points,
    ask_for_more,
    is_replay,
    is_resumable,
    next_commands,
    resume_command,
)
from aeon.report.page.passes import shorten
from aeon.report.record import Record
from aeon.report.words import command_of, program, relative_to_here

WORDS = 320
"""The most characters of a model's words in what stands out."""
_LONGEST_TASK, _MOST = 400, 5
_BLANKS = ("=NAME", "=WORDS", '="..."')
_NOT_COMPARED = {"provider.models"}  # a table in its file, and empty without it
_TEXTS = ("++convergence.criteria.", "++inputs.")


@dataclass(frozen=True, slots=True)
class Way:
    """What to try next: its purpose, and what is typed for it. It goes on from the stored answers, unless it is asked
    `anew`, or another `program` is run, as doctor."""

    purpose: str
    overrides: tuple[str, ...] = ()
    anew: bool = False
    program: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A sentence about a run, with the model's words or figures on it, what could be changed and the commands for that,
    and the anchor on the page where more stands, with others and their names in `links`. `is_cause`: it kept the run
    from converging; `warns`: what a reader has to know of an answer all the same; `follows`: it comes of what stands
    before it. Names in titles and changes stand between backticks."""

    title: str
    words: str = ""
    change: str = ""
    anchor: str = ""
    links: tuple[tuple[str, str], ...] = ()
    ways: tuple[Way, ...] = ()
    is_cause: bool = False
    warns: bool = False
    follows: bool = False


def name_passes(numbers: Iterable[int]) -> str:
    """`pass 2`, `passes 1 and 3`, `passes 2 to 5`."""
    told = sorted(set(numbers))
    if len(told) > 2 and told == list(range(told[0], told[-1] + 1)):
        return f"passes {told[0]} to {told[-1]}"
    *first, last = map(str, told)
    return f"passes {', '.join(first)} and {last}" if first else f"pass {last}"


def is_short(task: str) -> bool:
    """Whether a task can stand in a command that a person reads."""
    return len(task) <= _LONGEST_TASK


def find_ways(record: Record, ways: Sequence[tuple[Way, bool]]) -> Points:
    """What to type next, each with its purpose: for what kept the run from converging (these `ways` are marked), for
    how it ended, and for all else that stands out; what can be typed as it stands before what has to be filled in.
    After a recording, the task for a model of one's own."""
    result = record.result
    if is_replay(result):
        own = [("To run it with a model of your own", command_of([f"task={result.task}"]))]
        return own if is_short(result.task) else []
    urgent = [(way.purpose, _command(record, way)) for way, is_cause in ways if is_cause]
    others = [(way.purpose, _command(record, way)) for way, is_cause in ways if not is_cause]
    found: dict[str, str] = {}
    for purpose, command in (*urgent, *next_commands(result, record.directory), *others):
        found.setdefault(purpose, command)
    most = sorted(list(found.items())[:_MOST], key=lambda way: way[1].endswith(_BLANKS))
    return most or ask_for_more(result, record.directory)


def _command(record: Record, way: Way) -> str:
    if is_resumable(record.result) and not way.anew and not way.program:
        return command_of((f"resume={relative_to_here(record.directory)}", *way.overrides))
    changed = {text.partition("=")[0] for text in way.overrides}
    left_out = ("hydra.", "task", "resume=") if way.program or "task" in changed else ("hydra.",)
    given = [text for text in typed_overrides(record) if not text.startswith(left_out)]
    kept = [text for text in given if text.lstrip("+").partition("=")[0] not in changed]
    start = command_of(())
    return command_of((*kept, *way.overrides)).replace(start, f"{start} {way.program}".rstrip(), 1)


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
            value = shown_address(value)
        if "observability.sinks" in key:
            value = "..."  # which may be an address with a key in it
        typed.append(f"{key}{sign}{record.result.task if key == 'task' else value}")
    named = ("task", "resume=", "store.mode=replay", "store=replay", "plan_file=")
    if typed and not is_replay(record.result) and not any(text.startswith(named) for text in typed):
        typed.insert(0, f"task={record.result.task}")  # it was given in Python
    return typed


def tell_default(result: RunResult, key: str) -> str:
    """That a setting was given, where it was; else nothing."""
    given = [(value, default) for name, value, default in changed_settings(result) if name == key]
    return "".join(
        f"`{key}` was set to {value}; its default is {default}." for value, default in given
    )


def changed_settings(result: RunResult) -> Iterator[tuple[str, str, str]]:
    """The keys of the configuration that differ from the defaults, with their values and the defaults."""
    kind = result.configuration["provider"]["kind"]
    default = Settings.model_validate({"provider": {"kind": kind}}).model_dump(
        mode="json", by_alias=True
    )
    known = dict(_flat(default)) | {
        one.path: one.default for one in reversed(entries_of("reasoning"))
    }
    for key, value in _flat(
        {name: part for name, part in result.configuration.items() if name in default}
    ):
        if known.get(key) != value and key not in _NOT_COMPARED:
            yield key, shorten(str(value), 400), shorten(str(known.get(key, "")), 400)


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", inner
