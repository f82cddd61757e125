"""The plan's values, at the module path that the data model names."""

from aeon.domain.plan import *  # noqa: F403
