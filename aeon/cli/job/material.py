"""The settings, task and inputs of a job, read once from a composed configuration and the files it names."""

from __future__ import annotations

from dataclasses import dataclass

from omegaconf import DictConfig

from aeon.config.load import read_inputs, read_task, settings_from
from aeon.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Material:
    """Validated settings and the texts that they name; `task` is None when a plan file has it."""

    settings: Settings
    task: str | None
    inputs: dict[str, str]


def read_material(cfg: DictConfig) -> Material:
    """Validate a composed configuration and read its texts, each file once: it may be a pipe. Raises ConfigError."""
    settings = settings_from(cfg)
    return Material(settings, read_task(settings), read_inputs(settings))
