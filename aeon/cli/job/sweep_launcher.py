"""Hydra's launcher of jobs side by side in threads of this process, for whichever sweeper plans them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from aeon.domain.errors import ConfigError

CarryOut = Callable[[Sequence[DictConfig], HydraContext], Mapping[int, Any]]


class Threads(Launcher):
    """Composes each job once, in the main thread, and gives all to the task function, a `CarryOut`, which returns the
    value of each that began by its number. What a process has once, as Hydra's own state, is not changed."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra gives a launcher."""
        self._context, self._config, self._carry_out = hydra_context, config, cast(CarryOut, task_function)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs. Raises ConfigError for settings that only a process of its own can have."""
        hydra = self._config.hydra
        if hydra.job.chdir or hydra.job.env_set:
            key = "chdir" if hydra.job.chdir else "env_set"
            hint = "With hydra/launcher=basic jobs run one after the other, each with its own."
            raise ConfigError(f"hydra.job.{key}: the jobs of this launcher share one process", hint=hint)
        configure_log(hydra.job_logging, hydra.verbose)
        jobs = [self._compose(number, list(job)) for number, job in enumerate(job_overrides, initial_job_idx)]
        values = self._carry_out(jobs, self._context)
        return [_returned(job, values.get(job.hydra.job.num)) for job in jobs]

    def _compose(self, number: int, overrides: list[str]) -> DictConfig:
        job = self._context.config_loader.load_sweep_config(self._config, overrides)
        with read_write(job.hydra), open_dict(job.hydra):
            job.hydra.job.id = job.hydra.job.num = number
            job.hydra.sweep.dir = re.sub(r"(\\*)\$\{", r"\1\1\\${", str(self._config.hydra.sweep.dir))
            place = os.path.join(str(job.hydra.sweep.dir), str(job.hydra.sweep.subdir))  # noqa: PTH118
            job.hydra.runtime.output_dir = str(Path(place).absolute())
        return job


def split_job(job: DictConfig) -> tuple[DictConfig, DictConfig]:
    """A job's own configuration, and Hydra's part of it under `hydra`."""
    keys = [str(key) for key in job if key != "hydra"]
    return OmegaConf.masked_copy(job, keys), OmegaConf.masked_copy(job, ["hydra"])


def save_job(job: DictConfig) -> None:
    """Write a job's configuration into its directory, as Hydra does."""
    own, hydra = split_job(job)
    if job.hydra.output_subdir is None:
        return
    folder = Path(job.hydra.runtime.output_dir, job.hydra.output_subdir)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in {"config": own, "hydra": hydra, "overrides": job.hydra.overrides.task}.items():
        (folder / f"{name}.yaml").write_text(OmegaConf.to_yaml(part), encoding="utf-8")


def _returned(job: DictConfig, value: Any) -> JobReturn:
    own, hydra = split_job(job)
    overrides = OmegaConf.to_container(job.hydra.overrides.task, resolve=False)
    made = JobReturn(overrides=overrides, cfg=own, hydra_cfg=hydra, working_dir=str(Path.cwd()))  # type: ignore[arg-type]
    made.task_name, made.status, made.return_value = str(job.hydra.job.name), JobStatus.COMPLETED, value
    return made
