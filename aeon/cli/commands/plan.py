"""`aeon plan task=... [out=FILE]`: make a plan, review it, refine it, and write it down instead of running it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from aeon.app import artefacts
from aeon.app.directory import claim_run_directory, identify_start, relative_to_here
from aeon.app.run import Run
from aeon.app.surroundings import Planned
from aeon.cli.job.arguments import parse
from aeon.cli.job.attendance import attend
from aeon.cli.job.job import Prepared, prepare_job
from aeon.cli.job.plan_text import command_of, plan_text
from aeon.cli.job.show import show
from aeon.cli.progress.dag import draw
from aeon.cli.terminal.glyphs import is_utf
from aeon.cli.terminal.status import DONE, INTERRUPTED, NOT_CONVERGED
from aeon.cli.terminal.stderr import own_stderr, say
from aeon.cli.terminal.streams import answer_alone_on_stdout, put
from aeon.cli.terminal.text import count_noun
from aeon.config.compose import compose as config_compose
from aeon.domain.errors import AeonError, ConfigError
from aeon.domain.events import CycleStarted, Recorded, Subscriber
from aeon.domain.graph import layers
from aeon.domain.plan import Plan
from aeon.files.writing import unwritable_error

PLAN = "plan.yaml"
"""The file in the run's directory."""
_OUT = "out="
_WIDEST = 120
# A run of the plan needs none of these: the task is in the plan, the others are about how the plan was made.
_FOR_PLANNING = re.compile(r"\+{0,2}(task|task_file|resume|store|store\.\w+|hydra\.run\.dir)=")
_UNDER_WAY = "its making was still under way"


@dataclass(frozen=True, slots=True)
class _Request:
    """A plan to be made. `out` None is standard output; `arguments` are those that a run of the plan needs too."""

    job: Prepared
    directory: Path
    out: Path | None
    arguments: tuple[str, ...]

    def command(self, file: Path) -> str:
        """The command line that runs this plan, saved as `file`."""
        return command_of((f"plan_file={file}", *self.arguments))

    def resuming(self) -> str:
        """The command line that goes on with the making of this plan."""
        return command_of(("plan", f"resume={relative_to_here(self.directory)}"))


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
    identify_start()
    whole = config_compose.compose(given.overrides, given.config_dir, config_name=given.config_name, with_hydra=True)
    job = prepare_job(whole, whole.hydra)
    if job.aeon.workflow is not None:
        raise ConfigError("plan_file is a plan already", hint="`aeon check` says whether it can be used.")
    out = _target(outs)
    run = job.aeon.prepared_run(job.task, inputs=job.inputs)
    directory = claim_run_directory(whole, run)
    # The arguments of a resumed run are recorded in the new directory.
    own = tuple(word for word in words if not _FOR_PLANNING.match(word))
    needed = (f"resume={relative_to_here(directory)}",) if job.aeon.settings.resume else own
    return _carry_out(_Request(job, directory, out, needed), run)


def _carry_out(request: _Request, run: Run) -> int:
    """Make the plan and write it as far as it came; the exit status."""
    try:
        made = _make(request, run)
    except AeonError:
        say(f"To go on from what was answered: {request.resuming()}")
        raise
    if made.plan is None:
        ended = "Interrupted" if made.interrupted else f"No plan: {made.cut_short}"
        raising = "" if made.interrupted else "\nRaise what ended it: ttl.base, ttl.limit or limits."
        say(f"{ended}.{raising}\nTo go on from what was answered: {request.resuming()}")
    else:
        _deliver(request, made, made.plan)
    if made.interrupted:
        return INTERRUPTED
    return NOT_CONVERGED if made.cut_short else DONE


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


def _make(request: _Request, run: Run) -> Planned:
    job = request.job
    for warning in job.aeon.warnings:
        say(f"Warning: {warning}")
    with ExitStack() as leaving:
        stderr = leaving.enter_context(own_stderr())
        leaving.enter_context(answer_alone_on_stdout())
        leaving.enter_context(job.aeon)
        person = leaving.enter_context(attend(job.aeon.settings, stderr, request.directory, request.resuming()))
        around = person.surroundings(request.directory, lambda warning: say(f"Warning: {warning}"))
        return run.plan(replace(around, observers=[*around.observers, _drafts(request)]))


def _drafts(request: _Request) -> Subscriber:
    """A subscriber that saves the plan before each call, in case the program is killed."""
    saved: list[Plan] = []

    def save(recorded: Recorded) -> None:
        plan = recorded.event.plan if isinstance(recorded.event, CycleStarted) else None
        if plan is not None and saved[-1:] != [plan]:
            saved.append(plan)
            _save(request, Planned(plan=plan, synthetic=request.job.aeon.synthetic, cut_short=_UNDER_WAY), plan)

    return save


def _save(request: _Request, made: Planned, plan: Plan) -> None:
    """Write the plan into the run's directory. Raises ArtefactError."""
    path = request.directory / PLAN
    text = plan_text(plan, made, request.job.aeon.settings, path, request.command(relative_to_here(path)))
    artefacts.replace_file(path, text.encode())


def _deliver(request: _Request, made: Planned, plan: Plan) -> None:
    out = request.out
    _save(request, made, plan)
    if out is None or not made.interrupted:
        text = plan_text(plan, made, request.job.aeon.settings, out, request.command(out or Path(PLAN)))
        _write(out, text)
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    say(f"\n{draw(plan, width=width, ascii_only=not is_utf(sys.stderr.encoding or 'ascii'))}\n")
    say(_ending(request, made, plan))


def _write(out: Path | None, text: str) -> None:
    if out is None:
        put(text)
        return
    try:
        with out.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        put(text)
        raise unwritable_error(out, error) from error


def _ending(request: _Request, made: Planned, plan: Plan) -> str:
    steps, layered = count_noun(len(plan.steps), "step"), count_noun(len(layers(plan)), "layer")
    written = relative_to_here(request.directory / PLAN) if made.interrupted or request.out is None else request.out
    lines = [f"{steps} in {layered}, about {made.calls} calls to the model to carry out."]
    lines += [f"Written to {written}. Run it: {request.command(written)}"]
    if made.cut_short:
        lines.insert(0, f"Cut short: {made.cut_short}. The plan may be unreviewed, and is not refined.")
        lines.append(f"To go on from what was answered: {request.resuming()}")
    return "\n".join(lines)
