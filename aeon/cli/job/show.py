"""What Hydra shows in place of running: help, the composed configuration, where it came from, shell completion."""

from __future__ import annotations

import argparse

import yaml
from hydra._internal.utils import _run_hydra, get_args_parser
from hydra.errors import HydraException
from hydra.version import setbase
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from aeon.cli.job.arguments import Arguments
from aeon.cli.terminal.status import DONE
from aeon.config.compose import compose as config_compose
from aeon.config.compose import reference as config_reference
from aeon.config.compose.compose import CONFIG_NAME, HYDRA_VERSION_BASE, full_errors, packaged_config_dir
from aeon.config.compose.problems import composition_error
from aeon.config.settings import settings_from


def _nothing(_cfg: DictConfig) -> None:
    """Nothing is run."""


def show(given: Arguments) -> int:
    """Let Hydra show it, on standard output; it may leave with status 0. ConfigError for what cannot be composed."""
    flags, own = given.flags, given.config_dir
    config_reference.check_config_dir(own, given.config_name)
    if own is not None:
        flags.config_path, flags.config_dir = str(own), str(packaged_config_dir())
    try:
        _show(flags)
    except (HydraException, OmegaConfBaseException, ValueError, yaml.YAMLError) as error:
        # Validation knows the nearest key, and which keys may be added; Hydra does not.
        plain = config_compose.without_sweeps(given.overrides)
        whole, added = config_compose.compose_adding(plain, own, config_name=given.config_name)
        settings_from(whole)
        if not added:
            raise composition_error(error) from error
        flags.overrides = config_compose.adding(flags.overrides, added)
        _show(flags)
    return DONE


def _show(flags: argparse.Namespace) -> None:
    setbase(HYDRA_VERSION_BASE)
    with full_errors():
        _run_hydra(
            args=flags,
            args_parser=get_args_parser(),
            task_function=_nothing,
            config_path=str(packaged_config_dir()),
            config_name=CONFIG_NAME,
        )
