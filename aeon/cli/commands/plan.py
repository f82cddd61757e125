"""`aeon plan task=... [out=FILE]`: makes a plan as a workflow file."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.app.run import Planned, Run, RunPlace
from aeon.cli.job.arguments import read_composition
from aeon.cli.job.attendance import attend_run
from aeon.cli.job.directory import claim_run_directory, identify_start
from aeon.cli.job.prepare import prepare_job
from aeon.cli.progress.dag import draw
from aeon.cli.terminal.status import DONE, INTERRUPTED, NOT_CONVERGED, WAITING
from aeon.cli.terminal.streams import put, say, warn
from aeon.config.compose import compose as config_compose
from aeon.config.load import settings_from
from aeon.config.settings import Settings
from aeon.domain.errors import AeonError, ConfigError
from aeon.domain.events import CycleStarted, Recorded
from aeon.domain.graph import layers
from aeon.domain.history import AdvisoryKind
from aeon.domain.plan import OpenQuestion, Plan
from aeon.execution.settings import UNJUDGED_MODES
from aeon.files.resources import resource_root
from aeon.files.text import IN_RUN, unwritable_error
from aeon.observability.artefacts import replace_file
from aeon.plan.workflow.write import workflow_text
from aeon.report.ending import describe_few_passes
from aeon.report.words import (
    answer_command,
    command_of,
    count_noun,
    is_utf,
    one_line,
    relative_to_here,
)

PLAN = "plan.yaml"
"""The file in the run's directory."""
_LOST: dict[AdvisoryKind, str] = {
    "profile_fallback": "The task could not be profiled",
    "evaluation_unavailable": "This plan could not be reviewed",
    "refinement_unavailable": "This plan could not be refined",
}
# A run of the plan needs none of these: the task is in the plan, the others are about how the plan
# was made.
_FOR_PLANNING = re.compile(r"\+{0,2}(out|task|task_file|resume|store|store\.\w+|hydra\.run\.dir)=")


@dataclass(frozen=True, slots=True)
class _Request:
    """A plan to be made. `out` None is standard output; `arguments` are those that a run of the
    plan also needs, and `way_on` is the command that resumes the planning."""

    settings: Settings
    directory: Path
    out: Path | None
    arguments: tuple[str, ...]
    way_on: str

    def command(self, file: Path) -> str:
        """Return the command line that runs this plan, saved as `file`."""
        return command_of((f"plan_file={relative_to_here(file)}", *self.arguments))

    def text(self, plan: Plan, made: Planned, path: Path | None) -> str:
        """Return the text of a workflow file for `path`, None if its path is unknown."""
        header = (
            ["SIMULATED: no model was called, nothing here means anything."]
            if made.synthetic
            else []
        )
        header += [
            "A plan made by `aeon plan`. Change it as you like; "
            "`aeon docs workflows` explains the format. Run it:",
            f"  {self.command(path or Path(PLAN))}",
        ]
        header += [f"Cut short: {made.cut_short}."] if made.cut_short else []
        header += [f"Note: {advisory.message}" for advisory in made.advisories]
        inputs = {
            name: f"The contents of {file.name}."
            for name, file in self.settings.input_files.items()
        }
        inputs |= dict.fromkeys(self.settings.inputs, "A text.")
        format_file = resource_root() / "schemas" / "workflow.json"
        schema = (
            Path(os.path.relpath(format_file, path.resolve().parent)).as_posix() if path else None
        )
        return workflow_text(plan, inputs=inputs, header=header, schema=schema)

    def save(self, plan: Plan, made: Planned) -> None:
        """Write the plan into the run's directory. Raises ArtefactError."""
        path = self.directory / PLAN
        replace_file(path, self.text(plan, made, path).encode(), IN_RUN)


def plan(given: Namespace) -> int:
    """Make the plan and write it. 3 when the budget ended before it was reviewed and refined, 6
    when a person has to answer first, 130 when interrupted. Raises ConfigError before any model
    call for settings that cannot be used, ArtefactError when the plan cannot be written: then it is
    on standard output."""
    composition = read_composition(given)
    identify_start()
    whole = config_compose.compose(composition, with_hydra=True)
    aeon, run = prepare_job(settings_from(whole), composition)
    if aeon.workflow is not None:
        raise ConfigError(
            "plan_file is a plan already", hint="`aeon check` reports whether it can be used."
        )
    out = _find_target(given.out)
    # Last: a mistake above leaves no directory behind.
    directory = claim_run_directory(whole, run)
    request = _make_request(aeon.settings, directory, out, given.words)
    try:
        made = _make(request, aeon, run)
    except AeonError:
        say(f"To resume from the stored answers: {request.way_on}")
        raise
    if made.plan is not None:
        _deliver(request, made, made.plan)
    elif made.interrupted:
        say("Interrupted.")
    elif not made.waits_for:
        say(f"No plan: {made.cut_short}. Raise ttl.base, ttl.limit or limits.")
    return _end(request, made)


def _end(request: _Request, made: Planned) -> int:
    """Print how to resume an unfinished plan, and return the exit status."""
    if made.waits_for:
        _say_what_waits(made.waits_for, request.directory)
    if made.cut_short:
        say(f"To resume from the stored answers: {request.way_on}")
    if made.waits_for:
        return WAITING
    if made.interrupted:
        return INTERRUPTED
    return NOT_CONVERGED if made.cut_short else DONE


def _say_what_waits(questions: Sequence[OpenQuestion], directory: Path) -> None:
    say("Waiting for a person:")
    for question in questions:
        say(f"  {question.id}: {one_line(question.text, 300)}")
    say(f"To answer: {answer_command(directory)}")


def _make_request(
    settings: Settings, directory: Path, out: Path | None, words: Sequence[str]
) -> _Request:
    # The arguments of a resumed run are recorded in the new directory.
    resume = f"resume={relative_to_here(directory)}"
    needed = [resume] if settings.resume else [w for w in words if not _FOR_PLANNING.match(w)]
    return _Request(settings, directory, out, tuple(needed), command_of(("plan", resume)))


def _find_target(text: str | None) -> Path | None:
    """Return the file that the plan is written to; None for standard output. Raises ConfigError for
    one that cannot be created."""
    if text is None or text == "-":
        return None
    path = Path(text).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"out={text}: must name one file, in a folder that exists")
    try:
        path.touch(exist_ok=False)  # tried before calls are paid for
        path.unlink()
    except FileExistsError:
        raise ConfigError(
            f"out={path}: already there", hint="Choose another name, or move it."
        ) from None
    except OSError as error:
        raise ConfigError(
            unwritable_error(path, error).message, hint="Choose another place."
        ) from None
    return path


def _make(request: _Request, aeon: Aeon, run: Run) -> Planned:
    """Make the plan, saving it before each call, in case the program is killed."""

    def save_draft(recorded: Recorded) -> None:
        draft = recorded.event.plan if isinstance(recorded.event, CycleStarted) else None
        if draft is not None:
            why = "its making was still under way"
            request.save(draft, Planned(plan=draft, synthetic=aeon.synthetic, cut_short=why))

    warn(*aeon.warnings)
    with aeon, attend_run(aeon.settings, request.directory, request.way_on) as (attendance, _):
        attendance = replace(attendance, observers=[*attendance.observers, save_draft])
        return run.plan(attendance, RunPlace(directory=request.directory))


def _deliver(request: _Request, made: Planned, plan: Plan) -> None:
    request.save(plan, made)
    out = request.out
    written = request.directory / PLAN
    text = request.text(plan, made, out)
    if out is None:
        put(text)
    elif not made.interrupted:
        written = out
        try:
            with out.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            put(text)
            raise unwritable_error(
                out, error, "Save what is above, or the run's plan.yaml."
            ) from error
    say(f"\n{draw(plan, ascii_only=not is_utf(sys.stderr.encoding or 'ascii'))}\n")
    if made.cut_short:
        say(f"Cut short: {made.cut_short}. The plan may be unreviewed, and is not refined.")
    for kind, consequence in _LOST.items():
        if lost := made.find(kind):
            say(f"{consequence}: {one_line(lost.message)}. To ask for it again: {request.way_on}")
    steps = count_noun(len(plan.steps), "step")
    layered = count_noun(len(layers(plan)), "layer")
    say(f"{steps} in {layered}, about {made.calls} calls to the model to carry out.")
    one_by_one = request.settings.mode.kind in UNJUDGED_MODES
    most = request.settings.limits.max_passes
    if few := describe_few_passes(plan, most, one_by_one=one_by_one):
        say(f"{few[0].upper()}{few[1:]}.")
    say(f"Written to {relative_to_here(written)}. Run it: {request.command(written)}")
