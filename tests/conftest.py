"""Fixtures that every test may use."""

import signal

import hypothesis

pytest_plugins = ["tests.support.fixtures"]


# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")


def pytest_configure() -> None:
    """Ctrl-C is tested even where the shell that started the tests ignores it, as for its background jobs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
