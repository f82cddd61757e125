"""The values between Aeon and a language model, at the module path that custom adapters import."""

from aeon.domain.request import *  # noqa: F403
