"""The run's state and history, at the module path that the data model names."""

from aeon.domain.history import *  # noqa: F403
