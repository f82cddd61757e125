"""The plan's values, at the module path that the data model names."""

from aeon.domain.plan import *  # noqa: F403
from aeon.domain.refinement import *  # noqa: F403
