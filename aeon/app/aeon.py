"""Aeon from Python: settings in, results out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from aeon.app import process, rehearsal
from aeon.app.attendance import Attendance
from aeon.app.calibration import digest_judge
from aeon.app.job import GivenInput, Job, OwnParts, read_given, require_accepted, resolve_job
from aeon.app.many import Task, run_all, run_awaited
from aeon.app.parent import list_changes, list_held_back
from aeon.app.record import Work
from aeon.app.rehearsal import Rendered
from aeon.app.run import Run, RunPlace
from aeon.checks.selection import CheckSet
from aeon.config import load
from aeon.config.compose.literal import Composition
from aeon.config.environment import environment
from aeon.config.origin import Origin
from aeon.config.own_runs import warn_of_unsealed_runs
from aeon.config.settings import Settings
from aeon.domain.checks import OuterCheck
from aeon.domain.errors import ConfigError, PlanError, TaskTextError
from aeon.domain.events import Subscriber
from aeon.domain.plan import Plan, plan_one_step
from aeon.domain.request import InputFile, LLMAdapter, select_files, show_inputs
from aeon.domain.result import RunResult
from aeon.domain.values import JsonMapping
from aeon.files.text import require_unicode
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.stack.build import Endpoints
from aeon.llm.stack.limits import Spent
from aeon.memory.interface import Memory
from aeon.memory.run_memory import InMemory
from aeon.memory.settings import key_problem
from aeon.plan.workflow.unfolding import settle_inputs
from aeon.refinement.models import Ask
from aeon.refinement.own_components import GivenComponents
from aeon.store.session import DoStep, Keep
from aeon.tools.registry import Approve, Tool

if TYPE_CHECKING:
    from openai import OpenAI

    from aeon.plan.workflow.load import Workflow

_log = logging.getLogger("aeon")


class Aeon:
    """Runs tasks with one configuration; many runs may share it, also at the same time.

    Without `environ` the process environment and `.env` are used. `tools` are added to the
    configured ones. `memory` (or a mapping of its first entries), `adapter` and `client`, an
    `openai.OpenAI` or `openai.AzureOpenAI` that sends the requests of the configured provider,
    replace the configured ones; the caller closes them. `planner`, `validator`, `convergence`,
    `adaptive_depth` and `supervisor` replace components: each is one that all runs share, or a
    class or function that makes one for each run.

    `composition` records how the settings were composed, so that overrides can resume the run. A
    job has been resolved with all of these. `open_endpoints` returns endpoints shared by several
    instances. Raises ConfigError.
    """

    def __init__(
        self,
        settings: Settings | Job | None = None,
        environ: Mapping[str, str] | None = None,
        *,
        tools: Sequence[Tool] = (),
        composition: Composition | None = None,
        memory: Memory | JsonMapping | None = None,
        adapter: LLMAdapter | None = None,
        open_endpoints: process.OpenEndpoints | None = None,
        client: OpenAI | None = None,
        **components: Unpack[GivenComponents],
    ) -> None:
        if settings is None:
            composition = load.composition()
            settings = load.compose_settings(composition)
        if isinstance(settings, Job):
            job = settings
            environ = environ or environment(settings.settings)
        else:
            environ = environment(settings) if environ is None else environ
            own = OwnParts(
                adapter=adapter,
                client=client,
                memory=_as_memory(memory) if isinstance(memory, Mapping) else memory,
                tools=tools,
                components={name: given for name, given in components.items() if given is not None},
            )
            job = resolve_job(settings, environ, composition, own)
        self._process = process.build_process(job, environ, open_endpoints)
        # Servers of tools run by now, and nobody else could close them.
        try:
            rehearsal.check(self._process)
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_config(
        cls,
        overrides: Sequence[str] = (),
        *,
        config_dir: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        tools: Sequence[Tool] = (),
        memory: Memory | JsonMapping | None = None,
        adapter: LLMAdapter | None = None,
        client: OpenAI | None = None,
        **components: Unpack[GivenComponents],
    ) -> Aeon:
        """Compose the configuration with Hydra overrides, as on the command line. Raises
        ConfigError."""
        composition = load.composition(overrides, config_dir)
        return cls(
            load.compose_settings(composition),
            environ,
            tools=tools,
            composition=composition,
            memory=memory,
            adapter=adapter,
            client=client,
            **components,
        )

    @property
    def settings(self) -> Settings:
        """The settings in force, with a definite provider."""
        return self._process.settings

    @property
    def job(self) -> Job:
        """The job that its runs carry out."""
        return self._process.job

    @property
    def synthetic(self) -> bool:
        """Whether no model is called."""
        return self._process.synthetic

    @property
    def spent(self) -> Spent:
        """Usage that all runs so far requested of the provider, without answers from a store."""
        adapter = self._process.adapter
        return adapter.meter.spent if isinstance(adapter, Endpoints) else Spent()

    @property
    def hashes(self) -> Mapping[str, str]:
        """SHA-256, hex, of the configuration, the prompts and the schemas."""
        return self._process.digests

    @property
    def checks(self) -> CheckSet:
        """The checks of a run without a dataset row's: the configured ones and those of a plan
        file's steps."""
        return self._process.checks

    @property
    def judge_digests(self) -> Mapping[str, str]:
        """SHA-256, hex, of each part of the judge's requests."""
        return digest_judge(self._process, self._process.checks.rubrics)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to show before a run: missing tools, changes since the resumed run, settings
        that a cassette may not set, and runs that cannot be sealed."""
        shared = self._process
        changes = list_changes(shared.job, shared.parent, shared.digests) if shared.parent else ()
        return (
            *shared.warnings,
            *warn_of_unsealed_runs(self.settings.store.mode),
            *changes,
            *list_held_back(shared.job),
        )

    @property
    def workflow(self) -> Workflow | None:
        """The plan file in force, if there is one."""
        return self._process.workflow

    def run(
        self,
        task: str | None = None,
        *,
        inputs: Mapping[str, GivenInput] | None = None,
        context: JsonMapping | None = None,
        directory: Path | str | None = None,
        observers: Sequence[Subscriber] = (),
        control: RunControl | None = None,
        ask: Ask | None = None,
        approve: Approve | None = None,
        do_step: DoStep | None = None,
        keep: Keep | None = None,
        on_start: Callable[[Orchestrator], None] | None = None,
        warn: Callable[[str], None] = _log.warning,
    ) -> RunResult:
        """Run a task to its end, whatever that end is; a failing model is the result's `error`.

        Task, inputs and context that are not given come from the settings, else from the run that
        is resumed or replayed. An input is a text, or a file: its path, or its bytes. `observers`
        get every event, each in its own thread; `on_start` gets the kernel. If answers are stored,
        `keep` gets each one before it is used, and the reason when the run's own store failed to
        take it. Raises TaskTextError, ConfigError for a file that the model cannot be given, and
        ArtefactError when `directory` cannot be written.
        """
        attendance = Attendance(
            control=control or RunControl(),
            observers=observers,
            ask=ask,
            approve=approve,
            do_step=do_step,
            warn=warn,
            on_start=on_start,
        )
        place = RunPlace(directory=None if directory is None else Path(directory), keep=keep)
        run = self.prepare_run(task, inputs=inputs, context=context, has_person=do_step is not None)
        return run.to_end(attendance, place)

    def run_many(self, tasks: Iterable[Task], *, max_concurrency: int = 8) -> Iterator[RunResult]:
        """Run at most `max_concurrency` tasks at the same time, and yield each result as its run
        ends.

        A task is its text, or a mapping of arguments of `run`; each is taken from `tasks` when
        there is room for it. When the caller stops iterating, or a run raises what `run` raises,
        the runs under way are asked to stop and waited for. Raises TypeError where `tasks` is a
        single text.
        """
        if isinstance(tasks, str | Mapping):
            raise TypeError("tasks is a single task: run_many takes several, run one")

        control = RunControl()

        def run(task: Task) -> RunResult:
            given = task if isinstance(task, Mapping) else {"task": task}
            return self.run(control=control, **given)

        return run_all(run, tasks, max_concurrency, control)

    async def arun(
        self, task: str | None = None, *, control: RunControl | None = None, **arguments: Any
    ) -> RunResult:
        """Await `run` without blocking the event loop; `arguments` are those of `run`. When the
        caller is cancelled, the run is asked to stop and ends at its next boundary."""
        return await run_awaited(self.run, control or RunControl(), task=task, **arguments)

    def prepare_run(
        self,
        task: str | None = None,
        *,
        inputs: Mapping[str, GivenInput] | None = None,
        context: JsonMapping | None = None,
        checks: Mapping[str, OuterCheck] | None = None,
        row: JsonMapping | None = None,
        has_person: bool = False,
        answer: str | None = None,
    ) -> Run:
        """Return the run that `run` would carry out, not yet begun, so that its directory can be
        claimed first.

        `row` is the row of a dataset that it runs for, `checks` those of that row, if any.
        `has_person`: somebody does the steps for a person, whatever the settings say. Given an
        `answer`, the run only judges it. Raises TaskTextError, and ConfigError for a check that
        cannot be run, for samples that no check can choose among, and for a step for a person where
        nobody can be asked.
        """
        job = self.job
        task = job.task if task is None else task
        inputs = job.inputs if inputs is None else inputs
        context, checks, answer = self._complete_from_origin(context, checks, answer)
        text = self._find_text(task)
        read = read_given(inputs, self.settings)
        given = show_inputs(read)
        self.check_inputs(given)
        given = self.workflow.complete_inputs(given) if self.workflow else given
        files = {**self._find_files(given), **select_files(read)}
        require_accepted(files, self.settings)
        plan = self._find_plan(text, given, answer)
        # The steps of an answer that is there already are done by nobody.
        self.check_interaction(has_person=has_person or answer is not None)
        in_plan = task is None or _is_of_plan(text, job.origin)
        work = Work(
            text,
            given,
            dict(context) if context else None,
            plan,
            task_in_plan=in_plan,
            checks=self._prepare_checks(checks, answer),
            row_checks=checks or {},
            row=row,
            judged=answer,
            files=files,
        )
        return Run(self._process, work)

    def _complete_from_origin(
        self,
        context: JsonMapping | None,
        checks: Mapping[str, OuterCheck] | None,
        answer: str | None,
    ) -> tuple[JsonMapping | None, Mapping[str, OuterCheck] | None, str | None]:
        """Return what a run is given, or in its place what the run had that it resumes or
        replays."""
        origin = self.job.origin
        if origin is None:
            return context, checks, answer
        return (
            origin.context if context is None else context,
            origin.checks if checks is None else checks,
            origin.answer if answer is None else answer,
        )

    def _prepare_checks(
        self, of_row: Mapping[str, OuterCheck] | None, answer: str | None
    ) -> CheckSet | None:
        checks = self._process.check_maker.prepare_row(of_row) if of_row else None
        if answer is None:
            process.refuse_choice_without_checks(self._process, checks)
        return checks

    def _find_files(self, given: Mapping[str, str]) -> dict[str, InputFile]:
        """Find the files behind the inputs that the settings passed on, each as its text."""
        files = self.job.files
        # A text passed under the name of a file replaces it.
        return {name: file for name, file in files.items() if given.get(name) == file.text}

    def check_interaction(self, *, has_person: bool = False) -> None:
        """Raise ConfigError where somebody is needed whom nobody asks, and where a run that waits
        could not be gone on with. `has_person`: somebody does the steps of a person, whatever the
        settings say."""
        settings = self.settings
        kind = settings.interaction.kind
        if kind == "defer" and settings.store.mode == "off":
            raise ConfigError(
                "interaction=defer: store.mode=off stores "
                "no answers, so that the run could not go on",
                hint="Leave store.mode away.",
            )
        mine = self.workflow.find_person_step() if self.workflow else None
        if mine and kind == "none" and not has_person:
            raise ConfigError(
                f"plan_file={settings.plan_file}: step {mine} is left to "
                "a person (agent: person), and interaction=none asks nobody",
                hint="interaction=ask asks at the terminal; interaction=defer ends the run until "
                "`aeon answer` has its output.",
            )

    def _find_plan(self, task: str, inputs: Mapping[str, str], answer: str | None) -> Plan | None:
        if answer is not None:
            return plan_one_step(self.settings.mode.one_step, answer)
        if self.workflow is None:
            return None
        named = f"plan_file={self.settings.plan_file}"
        try:
            values = self.workflow.read_inputs(inputs)
        except ConfigError as error:
            raise ConfigError(f"{named}: {error.message}", hint=error.hint) from None
        plan = self.workflow.plan(task, values)
        # Conditions and lists over inputs alone are settled here, so that one that fails costs no
        # call.
        try:
            settle_inputs(plan, values, self.settings.execution.max_steps)
        except PlanError as error:
            raise ConfigError(f"{named}: {error.message}", hint="Look at the inputs.") from None
        return plan

    def _find_text(self, task: str | None) -> str:
        text = self.workflow.task if task is None and self.workflow is not None else task or ""
        if not require_unicode(text, "task").strip():
            raise TaskTextError("the task is empty", hint="Say what is to be done.")
        return text

    def check_inputs(self, names: Collection[str]) -> None:
        """Raise ConfigError when the plan file needs an input that is not among `names`."""
        needed = self.workflow.needed_inputs if self.workflow else ()
        if missing := [f"inputs.{name}" for name in needed if name not in names]:
            raise ConfigError(
                f"plan_file={self.settings.plan_file}: it needs {', '.join(missing)}",
                hint=f'Give {missing[0]}="..." or '
                f"{missing[0].replace('inputs', 'input_files', 1)}=path.",
            )

    def render(self, call: str, task: str, inputs: Mapping[str, str] | None = None) -> Rendered:
        """Return one call as it would be sent, in a small worked example. Raises ConfigError for an
        unknown call."""
        return rehearsal.render(self._process, call, task, inputs or {})

    def close(self) -> None:
        """Close connections. Not needed at the end of a process."""
        process.close_process(self._process)

    def __enter__(self) -> Aeon:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _as_memory(entries: JsonMapping) -> Memory:
    memory = InMemory()
    for key, value in entries.items():
        if problem := key_problem(key):
            raise ConfigError(f"memory: {problem}")
        try:
            memory.write(key, value)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"memory: {key}: {error}", hint="Values are JSON values.") from None
    return memory


def _is_of_plan(text: str, before: Origin | None) -> bool:
    return before is not None and before.task_in_plan and text == before.task
