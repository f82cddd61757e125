"""The jobs of a multirun in threads of this process: what they share, what stops them all, and how each ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hydra.types import HydraContext
from omegaconf import DictConfig

from aeon.app.many import run_all
from aeon.app.many_endpoints import CappedMeter, SharedEndpoints
from aeon.app.run import RunPlace
from aeon.cli.job.attendance import attend, show_waits, view_of
from aeon.cli.job.multirun import write_status
from aeon.cli.job.prepare import composition_of, prepare_job
from aeon.cli.job.sweep_launcher import job_return, save_job
from aeon.cli.job.sweep_names import name_values
from aeon.cli.job.sweep_resume import AGAIN
from aeon.cli.job.sweep_view import SweepView
from aeon.cli.progress.plain import Display
from aeon.cli.progress.view import RunView
from aeon.cli.terminal import streams
from aeon.cli.terminal.output import write_answer
from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import (
    FAILED,
    INTERRUPTED,
    NOT_CONVERGED,
    USAGE,
    run_guarded,
)
from aeon.config.compose.hydra_private import name_overrides
from aeon.config.compose.literal import quote
from aeon.config.settings import Settings
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.domain.result import RunResult
from aeon.files.text import load_json
from aeon.kernel.control import RunControl
from aeon.llm.stack.limits import LimitSettings
from aeon.llm.stack.patience import Patience
from aeon.observability.artefacts import RESULT
from aeon.report.ending import ending
from aeon.report.words import command_of, relative_to_here

_PATIENCE = "sweep.patience_seconds"


class Sweep:
    """The jobs of a multirun in `directory`. They share endpoints, one meter and one way to be stopped: `stopped` says
    why all were stopped, `stopped_by` by which setting, `has_failed` that no job could go on, and `interrupted` that a
    person did it. `done` are the jobs that are not run again, and `before` where the answers of those lie that are."""

    def __init__(self, settings: Settings, directory: Path, constant: Sequence[str]) -> None:
        self._settings, self._directory, self._constant = settings, directory, frozenset(constant)
        self.stopped, self.interrupted, self._control = "", False, RunControl()
        self.stopped_by, self.has_failed = "", False
        caps = LimitSettings(
            max_cost=settings.sweep.max_cost, max_llm_calls=settings.sweep.max_llm_calls
        )
        patience = Patience(
            settings.sweep.patience_seconds,
            _PATIENCE,
            for_unreached=True,
            give_up=self._give_up,
        )
        self._endpoints = SharedEndpoints(CappedMeter(caps, self.stop), patience)
        quiet = settings.progress.kind == "none"
        self._view = SweepView(
            lambda: self._endpoints.meter.spent, (caps.max_cost, caps.max_llm_calls), quiet=quiet
        )
        self.done: Mapping[int, Path] = {}
        self.before: Mapping[int, Path] = {}
        self._answers, self._printing, self._next = (
            dict[int, Callable[[], None] | None](),
            threading.RLock(),
            0,
        )
        self._warned = set[str]()

    def words_of(self, overrides: Sequence[str]) -> str:
        """What tells a job from the others, on one line."""
        return " ".join(name_values(name_overrides(overrides), self._constant))

    def plan(self, jobs: Iterable[Sequence[str]]) -> None:
        """Show jobs, by their overrides, that are still to begin."""
        for number, overrides in enumerate(jobs):
            self._view.add(number, self.words_of(overrides))

    def stop(self, why: str, key: str = "") -> None:
        """Ask all jobs to stop, and start no more; `key` is the setting that stops them, else `why` begins with it."""
        self.stopped_by = self.stopped_by or key or why.partition("=")[0].partition(":")[0]
        self.stopped = self.stopped or why
        self._view.stopping = f"Stopping: {self.stopped}. Nothing new is started."
        if not self._control.stop_requested:
            self._view.say(f"Stopping: {why}. Nothing new is started.")
        self._control.request_stop()

    def _give_up(self, why: str) -> None:
        self.has_failed = True
        self.stop(why, _PATIENCE)

    def close(self) -> None:
        """Close the endpoints."""
        self._endpoints.close()

    def carry_out(self, jobs: Iterable[DictConfig], context: HydraContext) -> dict[int, Any]:
        """Run jobs, `sweep.parallel` at once; the value of each that began, by its number. Raises KeyboardInterrupt
        when all were stopped."""
        attending = attend(
            RunView(draw=self._view.draw),
            self._settings.progress.kind,
            stopping=self._interrupt,
            ended_at_once=self._end_now,
            control=self._control,
            asks=at_terminal(),
        )
        with attending as (self._attendance, display), show_waits(display):
            self._view.display = display
            display.print([])
            work = partial(self._run, context=context)
            asks = self._settings.interaction.kind == "ask"
            parallel = 1 if asks else self._settings.sweep.parallel
            values = dict(run_all(lambda job, _: work(job), self._pending(jobs), parallel))
        self._view.display = None
        self._flush()
        if self._control.stop_requested:
            raise KeyboardInterrupt
        return values

    def _pending(self, jobs: Iterable[DictConfig]) -> Iterator[DictConfig]:
        for job in jobs:
            if self._control.stop_requested:
                return
            self._endpoints.wait_until_up(lambda: self._control.stop_requested)
            if self._control.stop_requested:
                return
            number = job.hydra.job.num
            self._view.add(number, self.words_of(job.hydra.overrides.task))
            if number not in self.done:
                yield job
            else:
                self._view.end(number, "done before")
                self._print(number)

    def _interrupt(self, display: Display) -> str:
        self.interrupted = True
        seconds = self._settings.execution.grace_seconds
        said = (
            f"Stopping: nothing new is started. Work that is under way has {seconds:.0f} s to end."
        )
        self._view.stopping = f"{said}\nCtrl-C again ends at once, and waits for nothing."
        return "" if display.live else self._view.stopping

    def _end_now(self) -> str:
        go_on = command_of((f"sweep.resume={relative_to_here(self._directory)}",))
        return f"Ended at once. What was written is in {self._directory}\nTo go on: {go_on}"

    def _run(self, job: DictConfig, context: HydraContext) -> tuple[int, Any]:
        number, directory = job.hydra.job.num, Path(job.hydra.runtime.output_dir)
        told: list[str] = []
        context.callbacks.on_job_start(
            config=job, task_function=partial(self._run, context=context)
        )
        status = run_guarded(lambda: self._to_end(job, number, directory), told.append)
        if status == INTERRUPTED and self.stopped:
            status = NOT_CONVERGED
        write_status(directory, status)
        if told:
            self._view.end(number, "failed", *told)
            self._print(number)
        if status in (FAILED, USAGE) and self._settings.sweep.fail_fast:
            self.stop(f"sweep.fail_fast: job {number} failed")
        value = objective_of(directory, self._settings.sweep.objective, status)
        context.callbacks.on_job_end(
            config=job, job_return=job_return(job.hydra.overrides.task, value)
        )
        return number, value

    def _to_end(self, job: DictConfig, number: int, directory: Path) -> int:
        of = composition_of(job.hydra)
        save_job(job)
        if before := self.before.get(number):
            of = of.with_overrides((*of.overrides, f"resume={quote(str(before))}"))
            job.resume = str(before)
        aeon, run = prepare_job(job, of, self._endpoints.open)
        observe = self._view.begin(number, view_of(aeon.settings))
        asks = aeon.settings.interaction.kind == "ask"
        attendance = replace(
            self._attendance,
            observers=[observe],
            ask=self._attendance.ask if asks else None,
            warn=partial(self._warn, number),
        )
        place = RunPlace(directory=directory, of_multirun=self._directory)
        unwritten = None
        with aeon:
            for text in aeon.warnings:
                self._warn(number, text)
            try:
                result = run.to_end(attendance, place)
            except ArtefactError as error:
                if error.result is None:
                    raise
                result, unwritten = error.result, error
        self._end(number, result, aeon.settings, directory)
        if unwritten is not None:
            raise unwritten
        return result.exit_status

    def _end(self, number: int, result: RunResult, settings: Settings, directory: Path) -> None:
        told = ending(
            result, relative_to_here(directory), ways=result.termination_reason not in AGAIN
        )
        self._view.end(
            number,
            result.termination_reason,
            *([told] if not self._view.live or result.error else []),
        )
        markdown = settings.answer.json_schema is None
        self._print(number, partial(write_answer, result, settings.output, markdown=markdown))

    def _warn(self, number: int, text: str) -> None:
        with self._printing:
            known = text in self._warned
            self._warned.add(text)
        if not known:
            self._view.say(f"Warning: {text}", of=number)

    def _print(self, number: int, write: Callable[[], None] | None = None) -> None:
        """Write the answers that are there on standard output, in the order of the jobs. Raises ArtefactError."""
        with self._printing:
            self._answers.setdefault(number, write)
            while self._next in self._answers:
                self._write(self._next, self._answers.pop(self._next))
                self._next += 1

    def _flush(self) -> None:
        for number in sorted(self._answers):
            self._write(number, self._answers.pop(number))

    def _write(self, number: int, write: Callable[[], None] | None) -> None:
        if write is None:
            return
        display, out = self._view.display, streams.stdout()
        if out is not None and out.isatty() and number in self._view.rows:
            self._view.say(f"job {number}  {self._view.rows[number].words}")
        with display.pause() if display else nullcontext():
            write()


def objective_of(directory: Path, path: str | None, status: int) -> Any:
    """The number at `path` in a job's result, None where it has none; without a `path`, its exit status. Raises
    ConfigError for a path that no result has."""
    if path is None or not (directory / RESULT).is_file():
        return status if path is None else None
    found = load_json((directory / RESULT).read_bytes())
    for key in path.split("."):
        if found is None:
            return None
        if not isinstance(found, dict) or key not in found:
            hint = "For example scores.completeness_score, or usage.total.cost."
            raise ConfigError(f"sweep.objective={path}: a result has no {key} there", hint=hint)
        found = found[key]
    return float(found) if isinstance(found, int | float) else None
