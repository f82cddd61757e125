"""The jobs of a multirun as rows of overrides: how each is run, shown and ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from aeon.app.run import RunPlace
from aeon.batch.runner import GroupControl, group_endpoints, run_rows
from aeon.batch.summary import FAILED_ENDS
from aeon.cli.job.group_attendance import GroupAttendance
from aeon.cli.job.job import carry_out
from aeon.cli.job.multirun import write_status
from aeon.cli.job.prepare import prepare_job
from aeon.cli.job.sweep_names import name_values
from aeon.cli.progress.rows import RowState, count_states
from aeon.cli.terminal import streams
from aeon.cli.terminal.lines import ending
from aeon.cli.terminal.output import write_answer
from aeon.cli.terminal.status import (
    FAILED,
    INTERRUPTED,
    NOT_CONVERGED,
    USAGE,
    run_guarded,
)
from aeon.config import recording
from aeon.config.compose.hydra_private import name_overrides
from aeon.config.compose.launcher import SweptJob
from aeon.config.compose.literal import quote
from aeon.config.load import settings_from
from aeon.config.settings import Settings
from aeon.domain.errors import ArtefactError, ConfigError, UnstoredAnswer
from aeon.domain.result import RunResult
from aeon.files.secret_forms import mask_files
from aeon.files.text import load_json
from aeon.observability.artefacts import RESULT
from aeon.report.words import command_of, count_noun, relative_to_here


class Sweep:
    """The jobs of a multirun in `directory`, as rows of overrides. `done` are the jobs that are not
    run again, `before` the directories with the answers of those that are."""

    def __init__(self, settings: Settings, directory: Path, constant: Sequence[str]) -> None:
        self.settings = settings
        self._directory = directory
        self._constant = frozenset(constant)
        self.control = GroupControl()
        self.endpoints = group_endpoints(settings.sweep, self.control)
        self._group = GroupAttendance("job", settings, self.control, self._describe)
        self._view = self._group.view
        self._answers: dict[int, Callable[[], None] | None] = {}
        self._next = 0
        self.done: Mapping[int, Path] = {}
        self.before: Mapping[int, Path] = {}

    def words_of(self, overrides: Sequence[str]) -> str:
        """Return on one line the values in which a job differs from the others."""
        return " ".join(name_values(name_overrides(overrides), self._constant))

    def plan(self, jobs: Iterable[Sequence[str]]) -> None:
        """Show jobs, by their overrides, that have not begun."""
        for number, overrides in enumerate(jobs):
            self._view.add(number, self.words_of(overrides))

    @property
    def stopped_by(self) -> str:
        """The setting that stopped the jobs, as the reason names it."""
        named = re.search(r"sweep\.\w+", self.control.reason)
        return named[0] if named else "stopped"

    def carry_out(self, jobs: Iterable[SweptJob]) -> dict[int, float | None]:
        """Run jobs, `sweep.parallel` at once, and return the value of each that began, by its
        number. Raises KeyboardInterrupt when all were stopped."""
        # A person answers the questions of one job at a time.
        asks = self.settings.interaction.kind == "ask"
        with self._group.attend(self._end_now) as display:
            display.print([])  # begins the picture before the first event
            ended = run_rows(
                self._take_pending(jobs),
                self._run,
                endpoints=self.endpoints,
                control=self.control,
                parallel=1 if asks else self.settings.sweep.parallel,
            )
            values = {}
            for number, value in ended:
                values[number] = value
                self._write_answers()
        # Those that waited for jobs that never began.
        for number in sorted(self._answers):
            self._write_answer(number)
        if self.control.stop_requested:
            raise KeyboardInterrupt
        return values

    def _take_pending(self, jobs: Iterable[SweptJob]) -> Iterator[SweptJob]:
        for job in jobs:
            self._view.add(job.number, self.words_of(job.overrides))
            if job.number not in self.done:
                yield job
            else:
                # None: its answer was written then, and the following ones need not wait.
                self._view.end(job.number, "done before")
                self._answers[job.number] = None

    def _run(self, job: SweptJob) -> tuple[int, float | None]:
        """Run one job to any end, with Hydra's callbacks; return its number and its value for the
        sweeper."""
        number = job.number
        errors: list[str] = []
        job.begin()
        status = run_guarded(lambda: self._to_end(job), errors.append)
        # A cap or `fail_fast` stopped it, and not a person.
        if status == INTERRUPTED and self.control.reason:
            status = NOT_CONVERGED
        write_status(job.directory, status)
        if errors:
            self._view.end(number, "failed", *errors)
            self._answers.setdefault(number, None)
        if status in (FAILED, USAGE) and self.settings.sweep.fail_fast:
            self.control.request_stop(f"sweep.fail_fast: job {number} failed")
        value = objective_of(job.directory, self.settings.sweep.objective, status)
        job.end(value)
        return number, value

    def _to_end(self, job: SweptJob) -> int:
        number = job.number
        directory = job.directory
        of = job.composition
        job.save()
        settings = settings_from(job.composed)
        if before := self.before.get(number):
            named = f"resume={quote(str(before))}"
            of = recording.composition(of.with_overrides((*of.overrides, named)))
            settings = settings.model_copy(update={"resume": before})
        aeon, run = prepare_job(settings, of, self.endpoints.open)
        mask_files(directory / ".hydra", "*.yaml")
        words = self._view.rows[number].words
        attendance = self._group.attend_row(number, aeon.settings, words)
        with aeon:
            for text in aeon.warnings:
                attendance.warn(text)
            place = RunPlace(directory=directory, of_multirun=self._directory)
            result, unwritten = carry_out(run, attendance, place)
        self._end(number, result, aeon.settings, directory)
        self._stop_if_unstored(number, result)
        for error in unwritten:
            raise error
        return result.exit_status

    def _stop_if_unstored(self, number: int, result: RunResult) -> None:
        """Stop the other jobs after one whose answer could not be stored: theirs would be paid for
        and lost too."""
        if result.error is not None and result.error.type == UnstoredAnswer.__name__:
            self.control.fail(f"job {number}: {result.error.message}")

    def _end(self, number: int, result: RunResult, settings: Settings, directory: Path) -> None:
        is_again = result.termination_reason in FAILED_ENDS
        # The picture shows the others.
        is_reported = not self._view.live or result.error is not None or bool(result.waits_for)
        report = ending(result, relative_to_here(directory), ways=not is_again)
        self._view.end(number, result.termination_reason, *([report] if is_reported else []))
        markdown = settings.answer.json_schema is None
        self._answers[number] = partial(write_answer, result, settings.output, markdown=markdown)

    def _write_answers(self) -> None:
        """Write the answers whose predecessors are all written, in the order of the jobs."""
        while self._next in self._answers:
            self._write_answer(self._next)
            self._next += 1

    def _write_answer(self, number: int) -> None:
        write = self._answers.pop(number)
        if write is None:
            return
        display = self._view.display
        out = streams.stdout()
        if out is not None and out.isatty():
            self._view.say(f"job {number}  {self._view.rows[number].words}")
        with display.pause() if display else nullcontext():
            try:
                write()
            except ArtefactError as error:
                self.control.fail(error.message)

    def _describe(self, rows: Sequence[RowState]) -> str:
        """Summarise all jobs: how many are in which state, and the calls and cost they really
        took."""
        spent = self.endpoints.meter.spent
        caps = self.settings.sweep
        of_calls = f" of {caps.max_llm_calls} " if caps.max_llm_calls else " "
        texts = [
            count_states(rows),
            f"{count_noun(spent.calls, 'call').replace(' ', of_calls)} made",
        ]
        if spent.cost is not None and (spent.cost or caps.max_cost):
            of_cost = f" of {caps.max_cost:g}" if caps.max_cost else ""
            texts.append(f"cost {spent.cost:.4f}{of_cost}")
        return " · ".join(texts)

    def _end_now(self) -> str:
        go_on = command_of((f"sweep.resume={relative_to_here(self._directory)}",))
        return f"Ended at once. What was written is in {self._directory}\nTo resume: {go_on}"


def objective_of(directory: Path, path: str | None, status: int) -> float | None:
    """Return the number at `path` in a job's result, None where it has none; without a `path`, its
    exit status. Raises ConfigError for a path that no result has."""
    if path is None:
        return status
    if not (directory / RESULT).is_file():
        return None
    found = load_json((directory / RESULT).read_bytes())
    for key in path.split("."):
        if found is None:
            return None
        if not isinstance(found, dict) or key not in found:
            hint = "For example scores.completeness_score, or usage.total.cost."
            raise ConfigError(f"sweep.objective={path}: a result has no such key {key}", hint=hint)
        found = found[key]
    return float(found) if isinstance(found, int | float) else None
