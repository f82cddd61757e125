"""One job: a composed configuration to a run, its answer on standard output, and an exit status."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from aeon.app.aeon import Aeon
from aeon.app.run import Run
from aeon.cli.job.attendance import attend, check
from aeon.cli.job.ending import ending
from aeon.cli.job.forward import resume_command
from aeon.cli.job.material import Material, read_material
from aeon.cli.job.multirun import header, select_swept
from aeon.cli.terminal.output import is_seen, write_answer
from aeon.cli.terminal.status import FAILED, INTERRUPTED, run_guarded, write_status
from aeon.cli.terminal.stderr import own_stderr, report, say
from aeon.cli.terminal.streams import answer_alone_on_stdout, own_stdout
from aeon.cli.terminal.text import one_line
from aeon.config.compose.compose import with_fallbacks
from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.load import environment
from aeon.config.origin import Composition
from aeon.config.settings import Settings
from aeon.domain.errors import ArtefactError
from aeon.domain.result import RunResult
from aeon.store.opening import check_own_store

# Reported even when no progress is shown (Sprint 1 FR-071 to FR-073).
TOOL_WARNINGS = ("unknown_tool", "repaired_step", "fallback_step")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that has been checked as far as that is possible without calling a model."""

    aeon: Aeon
    task: str | None
    inputs: dict[str, str]


def prepare_job(
    cfg: DictConfig, hydra: DictConfig | HydraConf | None = None, material: Material | None = None
) -> Prepared:
    """Check a composed configuration, its texts, provider, prompts and schemas. `hydra` is Hydra's part of the
    configuration, `material` the part that was read already.

    Raises ConfigError.
    """
    composition = composition_of(hydra) if hydra else None
    if composition is not None and material is None:
        cfg = with_fallbacks(cfg, composition.overrides, composition.config_dir)
    material = material or read_material(cfg)
    settings = material.settings
    check(settings)
    check_own_store(settings.store)
    with answer_alone_on_stdout():
        aeon = Aeon(settings, environment(), composition=composition)
    aeon.check_inputs(material.inputs)
    return Prepared(aeon, material.task, material.inputs)


def composition_of(hydra: DictConfig | HydraConf) -> Composition:
    """The overrides and files that a job was composed of, as Hydra's part of its configuration records them."""
    main = next((source.path for source in hydra.runtime.config_sources if source.provider == "main"), None)
    own = Path(main) if main and Path(main) != packaged_config_dir() else None
    given, of_hydra = map(_texts, (hydra.overrides.task, hydra.overrides.hydra))
    return Composition(
        overrides=(*(text for text in of_hydra if text.startswith("hydra.searchpath=")), *given),
        config_dir=own,
        config_name=str(hydra.job.config_name or Composition().config_name),
    )


def _texts(overrides: Any) -> list[str]:
    """Overrides as they were typed, interpolations unresolved."""
    return [str(text) for text in OmegaConf.to_container(overrides, resolve=False) or ()]


def sweep_job(cfg: DictConfig, *, keys: Collection[str] = (), process: int | None = None) -> int:
    """Prepare and run one job of a multirun, perhaps in a process of its own, and write its exit status.

    In the process of that id the job is announced by its overrides of the `keys` that are swept over. Does not raise,
    so that every job gets its turn; only an interruption ends the multirun.
    """
    hydra = HydraConfig.get()
    if process == os.getpid():
        say(header(hydra.job.num, select_swept(_texts(hydra.overrides.task), keys)))
    directory = Path(hydra.runtime.output_dir)
    multirun = Path(hydra.sweep.dir).absolute() if hydra.mode == RunMode.MULTIRUN else None

    def run() -> int:
        job = prepare_job(cfg, hydra)
        return run_job(job, job.aeon.prepared_run(job.task, inputs=job.inputs), directory, multirun)

    status = run_guarded(run)
    write_status(directory, status)
    if status == INTERRUPTED and multirun is not None:
        raise KeyboardInterrupt
    return status


def run_job(job: Prepared, run: Run, directory: Path, of_multirun: Path | None = None) -> int:
    """Carry out the run of a job with its artefacts in `directory`; prints the answer, and on standard error how it
    ended. `of_multirun` is the folder of its multirun, whose jobs share a store."""
    if os.environ.get("HYDRA_FULL_ERROR"):
        logging.getLogger("aeon").setLevel(logging.DEBUG)  # with tracebacks of defects inside a run
    with own_stdout():
        _warn(job.aeon.warnings)
        settings, lost, unwritten = job.aeon.settings, list[str](), list[ArtefactError]()
        with ExitStack() as leaving:
            stderr = leaving.enter_context(own_stderr())
            leaving.enter_context(answer_alone_on_stdout())
            leaving.enter_context(job.aeon)
            person = leaving.enter_context(attend(settings, stderr, directory, resume_command(directory)))
            try:
                result = run.to_end(person.surroundings(directory, lost.append, of_multirun))
            except ArtefactError as error:
                if error.result is None:
                    raise
                result = error.result
                unwritten.append(error)
        _warn(lost)
        if settings.progress.kind == "none":
            _warn(one_line(advisory.message) for advisory in result.advisories if advisory.kind in TOOL_WARNINGS)
        unwritten += _print_result(result, settings, directory, live=person.progress.live)
        for problem in unwritten:
            report(problem)
        return FAILED if unwritten else result.exit_status


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        say(f"Warning: {warning}")


def _print_result(result: RunResult, settings: Settings, directory: Path, *, live: bool) -> list[ArtefactError]:
    """Print the answer and how the run ended; the error when the answer cannot be written."""
    unwritten: list[ArtefactError] = []
    if live:
        from aeon.cli.job.card import card, heading  # slow to load

        if result.answer and settings.output == "answer" and is_seen():
            say(heading("Answer"))
    try:
        write_answer(result, settings.output, markdown=settings.answer.json_schema is None)
    except ArtefactError as error:
        unwritten.append(error)
    say(card(result, directory) if live else ending(result, directory))
    return unwritten
