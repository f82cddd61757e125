"""What is wrong with a configuration, in words that a person can act on."""

from __future__ import annotations

import pytest
from hydra.errors import MissingConfigException

from aeon.config.compose.problems import composition_error


@pytest.mark.parametrize(
    ("group", "option", "extra"),
    [
        ("hydra/launcher", "joblib", "joblib"),
        ("hydra/launcher", "submitit_slurm", "submitit"),
        ("hydra/launcher", "ray", "ray-launcher"),
        ("hydra/sweeper", "optuna", "optuna"),
    ],
)
def test_a_launcher_without_its_extra_names_the_extra(group: str, option: str, extra: str) -> None:
    missing = MissingConfigException("no", missing_cfg_file=f"{group}/{option}", options=["aeon"])
    error = composition_error(missing)
    assert error.message.startswith(f"{group}={option}: needs the extra {extra}")
    assert error.hint == f"pip install 'aeon-engine[{extra}]'"
