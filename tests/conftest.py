"""Fixtures that every test may use."""

import signal

pytest_plugins = ["tests.support.fixtures"]


def pytest_configure() -> None:
    """Ctrl-C is tested even where the shell that started the tests ignores it, as for its background jobs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
