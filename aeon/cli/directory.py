"""The directory of a run or a multirun: made exclusively, before Hydra starts, so that no two runs share one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from aeon.errors import ConfigError


def claimed_run(cfg: DictConfig) -> Path:
    """Make the run's directory and claim it. Raises ConfigError when it cannot be made or already holds a run."""
    return _claimed(cfg, "hydra.run.dir", lambda directory: (directory / ".hydra").mkdir())


def claimed_sweep(cfg: DictConfig) -> Path:
    """The same for the directory of a multirun, in which each job makes its own."""
    return _claimed(cfg, "hydra.sweep.dir", lambda directory: (directory / "multirun.yaml").touch(exist_ok=False))


def _claimed(cfg: DictConfig, key: str, claim: Callable[[Path], None]) -> Path:
    try:
        directory = Path(str(OmegaConf.select(cfg, key, throw_on_missing=True))).expanduser().absolute()
    except OmegaConfBaseException as error:
        raise ConfigError(f"{key}: {error.msg or error}") from None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        claim(directory)
    except OSError as error:
        if isinstance(error, FileExistsError) and directory.is_dir():
            hint = f"Choose another directory ({key}=...), or none: by default each run gets its own."
            raise ConfigError(f"{key}={directory}: this directory already holds a run", hint=hint) from None
        hint = f"Choose a directory that can be written: {key}=..."
        raise ConfigError(f"{key}={directory}: cannot be written: {error.strerror or error}", hint=hint) from None
    return directory
