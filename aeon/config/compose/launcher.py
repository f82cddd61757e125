"""Hydra's launcher of parallel jobs in threads of this process, for any sweeper, and a job as Hydra
has composed it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from aeon.config.compose import hydra_private
from aeon.config.compose.compose import complete
from aeon.config.compose.composed import Composed, read_composition_of
from aeon.config.compose.literal import Composition, RecordedSettings, escape_interpolations


@dataclass(frozen=True, slots=True)
class SweptJob:
    """One job of a multirun, as Hydra composed its `values`; `hydra` is Hydra's own part of them,
    and `callbacks` are those that Hydra calls in the process of its launcher."""

    values: DictConfig
    hydra: Any
    composition: Composition
    callbacks: Any = None

    @classmethod
    def in_process(cls, values: DictConfig, recorded: RecordedSettings | None) -> SweptJob:
        """Return the job that Hydra has set up this process for."""
        hydra = HydraConfig.get()
        return cls(values, hydra, replace(read_composition_of(hydra), recorded=recorded))

    @property
    def number(self) -> int:
        """Its number, from 0."""
        return int(self.hydra.job.num)

    @property
    def overrides(self) -> list[str]:
        """Its overrides, without Hydra's own."""
        return list(self.hydra.overrides.task)

    @property
    def directory(self) -> Path:
        """Its own directory."""
        return Path(self.hydra.runtime.output_dir)

    @property
    def multirun(self) -> Path:
        """The directory of its multirun, absolute."""
        return Path(self.hydra.sweep.dir).absolute()

    @property
    def composed(self) -> Composed:
        """Its configuration."""
        return Composed(self.values, self.composition)

    def complete(self) -> SweptJob:
        """Return the job with its fallbacks, on top of the recorded settings. Raises
        ConfigError."""
        return replace(self, values=complete(self.values, self.composition))

    def begin(self) -> None:
        """Notify Hydra's callbacks that it begins."""
        self.callbacks.on_job_start(config=self.values, task_function=self.complete)

    def end(self, value: float | None) -> None:
        """Notify Hydra's callbacks of its value for the sweeper."""
        ended = _job_return(self.overrides, value)
        self.callbacks.on_job_end(config=self.values, job_return=ended)

    def save(self) -> None:
        """Write its configuration into its directory, as Hydra does."""
        if self.hydra.output_subdir is None:
            return
        names = [str(key) for key in self.values if key != "hydra"]
        parts = {
            "config": OmegaConf.masked_copy(self.values, names),
            "hydra": OmegaConf.masked_copy(self.values, ["hydra"]),
            "overrides": self.hydra.overrides.task,
        }
        folder = self.directory / self.hydra.output_subdir
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            (folder / f"{name}.yaml").write_text(OmegaConf.to_yaml(part), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _InThreads:
    """The task that Hydra hands to the launcher: `carry_out` runs jobs and returns the value of
    each that began, by its number."""

    carry_out: Callable[[Iterable[SweptJob]], Mapping[int, float | None]]
    given: Composition


def start_threads(
    of: Composition, carry_out: Callable[[Iterable[SweptJob]], Mapping[int, float | None]]
) -> None:
    """Hand a multirun over to Hydra; `carry_out` runs its jobs in this process. Raises
    ConfigError."""
    task: Any = _InThreads(carry_out, of)
    hydra_private.start_multirun(of, task, Threads)


class Threads(Launcher):
    """Composes each job once, in the main thread, when there is room for it. Process-wide state,
    such as Hydra's own, is not changed."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Store Hydra's arguments to a launcher."""
        self._context = hydra_context
        self._config = config
        self._task = cast(_InThreads, task_function)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs."""
        configure_log(self._config.hydra.job_logging, self._config.hydra.verbose)
        numbered = list(enumerate(map(list, job_overrides), initial_job_idx))
        values = self._task.carry_out(self._compose(number, job) for number, job in numbered)
        return [_job_return(job, values.get(number)) for number, job in numbered]

    def _compose(self, number: int, overrides: list[str]) -> SweptJob:
        job = self._context.config_loader.load_sweep_config(self._config, overrides)
        recorded = self._task.given.find_recorded(number)
        of = replace(read_composition_of(job.hydra), recorded=recorded)
        if of.recorded is not None or job.provider.get("fallbacks"):
            job = complete(job, of)
        # As Hydra's own basic launcher does before it runs a job.
        with read_write(job.hydra), open_dict(job.hydra):
            job.hydra.job.id = str(number)
            job.hydra.job.num = number
            job.hydra.sweep.dir = escape_interpolations(str(self._config.hydra.sweep.dir))
            place = os.path.join(str(job.hydra.sweep.dir), str(job.hydra.sweep.subdir))  # noqa: PTH118
            job.hydra.runtime.output_dir = str(Path(place).absolute())
        return SweptJob(job, job.hydra, of, self._context.callbacks)


def _job_return(overrides: Sequence[str], value: object) -> JobReturn:
    """Return a job's result in Hydra's form."""
    made = JobReturn(overrides=overrides, working_dir=str(Path.cwd()), status=JobStatus.COMPLETED)
    made.return_value = value
    return made
