"""What passes between Aeon and a language model, at the module path that adapters of one's own import."""

from aeon.domain.request import *  # noqa: F403
