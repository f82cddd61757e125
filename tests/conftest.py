"""Fixtures that every test may use."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["tests.support.fixtures"]


# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")


def pytest_configure(config: pytest.Config) -> None:
    """Every machine is the same for the tests: neither CI nor a shell that ignores signals makes a difference."""
    # The display shows less where it is recorded, and unbuffered streams hide what is written at the end.
    for name in ("CI", "JPY_PARENT_PID", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)
    # What a person trusts and which runs are theirs: nothing of it is of the machine, nor goes to it.
    state = tempfile.TemporaryDirectory(prefix="aeon-state-")
    config.add_cleanup(state.cleanup)
    os.environ["AEON_STATE_DIR"] = state.name
    os.environ.pop("AEON_TRUST", None)
    os.environ["XDG_CACHE_HOME"] = str(config.cache.mkdir("home"))  # type: ignore[union-attr]
    # Commands are printed as they can be typed where this Python is the first on the PATH.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
