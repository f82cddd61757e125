"""Hydra's launcher of jobs side by side in threads of this process, for whichever sweeper plans
them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from aeon.cli.job.prepare import composition_of
from aeon.config import recording
from aeon.config.compose.compose import complete

CarryOut = Callable[[Iterable[DictConfig], HydraContext], Mapping[int, Any]]


class Threads(Launcher):
    """Composes each job once, in the main thread, as there is room for it, and gives it to the task
    function, a `CarryOut`, which returns the value of each that began by its number. What a process
    has once, as Hydra's own state, is not changed."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Take what Hydra gives a launcher."""
        self._context, self._config, self._carry_out = (
            hydra_context,
            config,
            cast(CarryOut, task_function),
        )

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs."""
        configure_log(self._config.hydra.job_logging, self._config.hydra.verbose)
        numbered = list(enumerate(map(list, job_overrides), initial_job_idx))
        values = self._carry_out(
            (self._compose(number, job) for number, job in numbered), self._context
        )
        return [job_return(job, values.get(number)) for number, job in numbered]

    def _compose(self, number: int, overrides: list[str]) -> DictConfig:
        job = self._context.config_loader.load_sweep_config(self._config, overrides)
        of = recording.composition(composition_of(job.hydra))
        if of.recorded is not None or job.provider.get("fallbacks"):
            job = complete(job, of)
        with read_write(job.hydra), open_dict(job.hydra):
            job.hydra.job.id, job.hydra.job.num = str(number), number
            job.hydra.sweep.dir = re.sub(
                r"(\\*)\$\{", r"\1\1\\${", str(self._config.hydra.sweep.dir)
            )
            place = os.path.join(str(job.hydra.sweep.dir), str(job.hydra.sweep.subdir))  # noqa: PTH118
            job.hydra.runtime.output_dir = str(Path(place).absolute())
        return job


def save_job(job: DictConfig) -> None:
    """Write a job's configuration into its directory, as Hydra does."""
    if job.hydra.output_subdir is None:
        return
    own = OmegaConf.masked_copy(job, [str(key) for key in job if key != "hydra"])
    parts = {
        "config": own,
        "hydra": OmegaConf.masked_copy(job, ["hydra"]),
        "overrides": job.hydra.overrides.task,
    }
    folder = Path(job.hydra.runtime.output_dir, job.hydra.output_subdir)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        (folder / f"{name}.yaml").write_text(OmegaConf.to_yaml(part), encoding="utf-8")


def job_return(overrides: Sequence[str], value: Any) -> JobReturn:
    """What Hydra is given of a job."""
    made = JobReturn(overrides=overrides, working_dir=str(Path.cwd()), status=JobStatus.COMPLETED)
    made.return_value = value
    return made
