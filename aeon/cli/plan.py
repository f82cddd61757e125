"""`aeon plan task=... [out=FILE]`: make a plan, review it, refine it, and write it down in place of running it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from aeon import config_compose, rehearsal, wiring
from aeon.cli.arguments import parse
from aeon.cli.attended import attended, check
from aeon.cli.dag import draw
from aeon.cli.progress_live import is_utf
from aeon.cli.progress_view import counted
from aeon.cli.show import show
from aeon.cli.status import DONE, INTERRUPTED, NOT_CONVERGED
from aeon.cli.stderr import own_stderr, say
from aeon.cli.streams import answer_alone_on_stdout, put
from aeon.config import Settings, environment, read_inputs, read_task, settings_from
from aeon.errors import ConfigError, LimitReached, StopRequested
from aeon.events import EventStream, RunStarted
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.state import RunState
from aeon.kernel.ttl import TTLExpired
from aeon.llm import findings
from aeon.llm.settings import SimulatedProvider, goes_by
from aeon.plan.graph import layers
from aeon.plan.models import Plan
from aeon.plan.workflow_write import workflow_text
from aeon.resources import resource_root
from aeon.store.session import open_session
from aeon.writing import unwritable

_OUT = "out="
_WIDEST = 120
# The task stands in the plan, and answers that the plan was made from are none to carrying it out.
_OF_THE_MAKING = re.compile(r"\+{0,2}(task|task_file|resume|store|store\.\w+)=")


@dataclass(frozen=True, slots=True)
class _Request:
    """What is to be planned; `out` None is standard output. `arguments` are those that a run of the plan needs too."""

    settings: Settings
    task: str
    inputs: Mapping[str, str]
    out: Path | None
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Made:
    """The plan, if there is one, the state it was left in, whether no model made it, about how many calls
    carrying it out takes, and what cut its making short."""

    plan: Plan | None
    state: RunState
    synthetic: bool
    calls: int = 0
    cut_short: str = ""


def main(arguments: Sequence[str]) -> int:
    """Make the plan and write it. 3 when the budget ended before it was reviewed and refined, 130 when interrupted.

    Raises ConfigError before any model call for what cannot be used, LLMError and ValidationError when no plan could be
    made, ArtefactError when it cannot be written: then it is on standard output.
    """
    outs = [argument.removeprefix(_OUT) for argument in arguments if argument.startswith(_OUT)]
    words = tuple(argument for argument in arguments if not argument.startswith(_OUT))
    given = parse(words)
    if given.shows:
        return show(given)
    if given.flags.multirun:
        raise ConfigError("aeon plan makes one plan, not several: leave --multirun out")
    settings = settings_from(config_compose.compose(given.overrides, given.config_dir, config_name=given.config_name))
    task = read_task(settings)
    if task is None:
        raise ConfigError("plan_file is a plan already", hint="`aeon check` says whether it can be used.")
    request = _Request(
        settings,
        task,
        read_inputs(settings),
        _target(outs),
        tuple(word for word in words if not _OF_THE_MAKING.match(word)),
    )
    try:
        made = _plan(request)
    except StopRequested:
        say("Interrupted.")
        return INTERRUPTED
    if made.plan is None:
        say(f"No plan: {made.cut_short}.\nRaise what ended it: ttl.base, ttl.limit or limits.")
        return NOT_CONVERGED
    _deliver(request, made, made.plan)
    return NOT_CONVERGED if made.cut_short else DONE


def _say_findings(shared: wiring.Process) -> None:
    """What was found out about the provider while the plan was made."""
    for finding in findings.untold(shared.adapter):
        say(f"Warning: {finding}")


def _target(outs: Sequence[str]) -> Path | None:
    """The file to write. ConfigError when it exists already, or its folder does not."""
    if len(outs) > 1:
        raise ConfigError("out is given more than once", hint="Give one file.")
    if not outs or outs[0] == "-":
        return None
    if not outs[0]:
        raise ConfigError("out= names no file", hint="out=plan.yaml")
    path = Path(outs[0]).expanduser()
    if path.exists():
        raise ConfigError(f"out={path}: already there, and is not overwritten", hint="Choose another name, or move it.")
    if not path.parent.is_dir():
        raise ConfigError(f"out={path}: there is no folder {path.parent}")
    return path


def _plan(request: _Request) -> _Made:
    settings = request.settings
    check(settings)
    with own_stderr() as stderr, answer_alone_on_stdout(), ExitStack() as leaving:
        shared = wiring.process(settings, environment())
        leaving.callback(wiring.close, shared)
        leaving.callback(_say_findings, shared)
        rehearsal.check(shared)
        for warning in shared.warnings:
            say(f"Warning: {warning}")
        person = leaving.enter_context(attended(settings, stderr))
        stream, provider = EventStream([person.progress]), goes_by(shared.settings.provider)
        synthetic = isinstance(shared.settings.provider, SimulatedProvider)
        stream.emit(RunStarted(run_id=uuid4().hex[:12], task=request.task, provider=provider, synthetic=synthetic))
        session = open_session(shared.settings.store, directory=None, warn=lambda said: say(f"Warning: {said}"))
        leaving.callback(session.close)
        kernel = wiring.orchestrator(shared, request.inputs, stream, person.control, person.ask, session=session)
        return _made(kernel, request.task, synthetic)


def _made(kernel: Orchestrator, task: str, synthetic: bool) -> _Made:
    """The plan; one that the budget left unreviewed or unrefined is better than none."""
    cut_short = ""
    try:
        kernel.plan(task)
    except LimitReached as end:
        cut_short = end.message
    except TTLExpired:
        cut_short = "the TTL is used up"
    state = kernel.state
    return _Made(state.plan, state, synthetic, kernel.forecast(state.plan) if state.plan else 0, cut_short)


def _deliver(request: _Request, made: _Made, plan: Plan) -> None:
    """Write the file, draw the steps."""
    path = request.out
    text = workflow_text(plan, inputs=_described(request.settings), header=_header(request, made), schema=_schema(path))
    if path is None:
        put(text)
    else:
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            put(text)
            raise unwritable(path, error) from error
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    say(f"\n{draw(plan, width=width, ascii_only=not is_utf(sys.stderr.encoding or 'ascii'))}\n")
    say(_ending(request, made, plan))


def _ending(request: _Request, made: _Made, plan: Plan) -> str:
    facts = (
        f"{counted(len(plan.steps), 'step')} in {counted(len(layers(plan)), 'layer')},"
        f" about {made.calls} calls to the model to carry out."
    )
    written = f"Written to {request.out}. Run it: {_command(request)}" if request.out else ""
    return "\n".join(part for part in (_cut_short(made), facts, written) if part)


def _cut_short(made: _Made) -> str:
    return f"Cut short: {made.cut_short}. The plan may be unreviewed, and is not refined." if made.cut_short else ""


def _header(request: _Request, made: _Made) -> list[str]:
    notes = [advisory.message for advisory in made.state.advisories]
    lines = ["SIMULATED: no model was called, nothing here means anything."] if made.synthetic else []
    lines += ["A plan made by `aeon plan`. Change it as you like; docs/workflows.md explains the format. Run it:"]
    lines += [f"  {_command(request)}"]
    return [
        *lines,
        *([f"Cut short: {made.cut_short}."] if made.cut_short else []),
        *(f"Note: {note}" for note in notes),
    ]


def _command(request: _Request) -> str:
    """What runs the plan with all that it was made with, but for the task and what it was answered from."""
    given = (f"plan_file={request.out or 'plan.yaml'}", *request.arguments)
    return " ".join(("python -m aeon", *map(_word, given)))


def _word(argument: str) -> str:
    """An argument as a shell reads it, on one line; the key of an override is left as it is."""
    key, equals, value = argument.partition("=")
    if not equals or shlex.quote(key) != key:
        key, equals, value = "", "", argument
    if value.isprintable():
        return f"{key}{equals}{shlex.quote(value) if value else ''}"
    escaped = "".join(ch if ch.isprintable() and ch not in "\\'" else _escape(ch) for ch in value)
    return f"{key}{equals}$'{escaped}'"


def _escape(ch: str) -> str:
    return f"\\{ch}" if ch in "\\'" else "".join(f"\\x{byte:02x}" for byte in os.fsencode(ch))


def _described(settings: Settings) -> dict[str, str]:
    files = {name: f"The contents of {path.name}." for name, path in settings.input_files.items()}
    return {**files, **dict.fromkeys(settings.inputs, "A text.")}


def _schema(out: Path | None) -> str | None:
    """Where the format is described, as seen from the file; nothing when it is not known where the file will be."""
    if out is None:
        return None
    return Path(os.path.relpath(resource_root() / "schemas" / "workflow.json", out.resolve().parent)).as_posix()
