"""The values of plans, re-exported at the module path that the data model specifies."""

from aeon.domain.plan import *  # noqa: F403
from aeon.domain.refinement import *  # noqa: F403
