"""A composed configuration: the queries of the rest of the program, so that only `aeon.config` uses
OmegaConf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.conf import HydraConf
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from aeon.config.compose import hydra_private
from aeon.config.compose.literal import CONFIG_NAME, Composition
from aeon.domain.errors import ConfigError

_LAUNCHER = "aeon.config.compose.launcher.Threads"
"""The `_target_` of `conf/hydra/launcher/aeon.yaml`."""


@dataclass(frozen=True, slots=True)
class Composed:
    """The result of a composition. Only `aeon.config` uses `values`; `added` are the keys that the
    configuration did not have: they are composed too, for validation to report, and Hydra itself
    needs them from `add_unknown_keys`. Hydra's own part can be queried only if it was composed with
    it."""

    values: DictConfig
    composition: Composition
    added: frozenset[str] = frozenset()

    @property
    def is_multirun(self) -> bool:
        """Whether it describes several jobs."""
        return bool(self.values.hydra.mode == RunMode.MULTIRUN)

    @property
    def is_in_threads(self) -> bool:
        """Whether the jobs of a multirun run in threads of this process."""
        return bool(self.values.hydra.launcher.get("_target_") == _LAUNCHER)

    def list_process_keys(self) -> list[str]:
        """Return the keys whose effect a job can have only in its own process."""
        job = self.values.hydra.job
        return [f"hydra.job.{name}" for name in ("chdir", "env_set") if job[name]]

    def list_jobs(self, given: Composition) -> list[list[str]]:
        """Return the overrides of each job of a `given` multirun; none where they are unknown
        before the jobs run. Raises ConfigError."""
        return hydra_private.sweep_jobs(given, self.values)

    def find_directory(self, key: str) -> Path:
        """Return the directory that a key names, absolute. Raises ConfigError for one that cannot
        be resolved."""
        try:
            found = OmegaConf.select(self.values, key, throw_on_missing=True)
        except OmegaConfBaseException as error:
            raise ConfigError(f"{key}: {error.msg or error}") from None
        return Path(str(found)).expanduser().absolute()

    def run_job(self, directory: Path, task: Callable[[], int]) -> int:
        """Run `task` as Hydra's job in a directory. Raises ConfigError."""
        name = self.composition.config_name
        return int(hydra_private.run_composed(self.values, name, directory, lambda _: task()))

    def to_yaml(self, package: str | None, *, resolve: bool) -> str:
        """Return the values, or those of a package, as YAML."""
        part = OmegaConf.select(self.values, package) if package else self.values
        return OmegaConf.to_yaml(part, resolve=resolve)


def read_composition_of(hydra: DictConfig | HydraConf) -> Composition:
    """Return the overrides and files that a job was composed of, as Hydra's part of its
    configuration records them."""
    sources = hydra.runtime.config_sources
    main = next((source.path for source in sources if source.provider == "main"), None)
    own = Path(main) if main and Path(main) != hydra_private.packaged_config_dir() else None
    # As typed, with interpolations unresolved.
    overrides: Any = OmegaConf.to_container(hydra.overrides, resolve=False)
    searched = [text for text in overrides["hydra"] if text.startswith("hydra.searchpath=")]
    name = str(hydra.job.config_name or CONFIG_NAME)
    return Composition(
        overrides=(*searched, *overrides["task"]),
        config_dir=own,
        config_name=name,
        of_project=None,
    )
