"""What Hydra prints when nothing is run: help, the composed configuration, where it came from, shell completion."""

from __future__ import annotations

import yaml
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from aeon.cli.job.arguments import Arguments
from aeon.cli.terminal.status import DONE
from aeon.config.compose import compose as config_compose
from aeon.config.compose import hydra_private
from aeon.config.compose.problems import composition_error
from aeon.config.compose.reference import check_config_dir


def show(given: Arguments) -> int:
    """Let Hydra print it on standard output; it may leave with status 0. ConfigError for what cannot be composed."""
    flags, own = given.flags, given.config_dir
    check_config_dir(own, given.config_name)
    if own is not None:
        flags.config_path, flags.config_dir = str(own), str(hydra_private.packaged_config_dir())
    try:
        hydra_private.show(flags)
    except (HydraException, OmegaConfBaseException, ValueError, yaml.YAMLError) as error:
        from aeon.config.load import settings_from

        # Validation knows the nearest key, and which keys may be added; Hydra does not.
        plain = config_compose.without_sweeps(given.overrides)
        whole, added = config_compose.compose_adding(plain, own, config_name=given.config_name)
        settings_from(whole)
        if not added:
            raise composition_error(error) from error
        flags.overrides = config_compose.add_unknown_keys(flags.overrides, added)
        hydra_private.show(flags)
    return DONE
