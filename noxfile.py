"""The quick tests with each Python that Aeon supports: `make test-pythons`.

A Python that is not installed is skipped and named.
"""

import nox

nox.options.envdir = ".venv/nox"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"


@nox.session(python=["3.11", "3.12", "3.13", "3.14"], venv_backend="venv")
def tests(session: nox.Session) -> None:
    """Install into the session's environment and run the tests, as `make test` does it for this Python."""
    session.run(
        "make", "test", f"VENV={session.virtualenv.location}", *session.posargs, external=True
    )
