"""`aeon serve`: serves runs to other programs over HTTP."""

from __future__ import annotations

import ipaddress
import os
import re
from argparse import Namespace
from contextlib import closing

from aeon.cli.job.prepare import read_settings
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import say, warn
from aeon.config.settings import ServeSettings
from aeon.domain.errors import ConfigError
from aeon.observability.artefacts import allow_files
from aeon.report.words import list_names
from aeon.service.configurations import Configurations
from aeon.service.jobs import Capacity, Jobs

_ONLY_MODEL = "aeon"
"""The name of the configuration where none is named."""
_LEAST_TOKEN = 16


def serve(words: Namespace) -> int:
    """Serve until a signal ends it. Raises ConfigError before serving begins."""
    composition, settings = read_settings(words, "sweep", "batch", "arms")
    served = settings.serve
    token = read_token(served)
    try:
        from aeon.service.http.guard import Access
        from aeon.service.http.server import open_socket
        from aeon.service.http.server import serve as serve_jobs
    except ImportError as error:
        hint = "pip install 'aeon-engine[serve]'"
        raise ConfigError(f"aeon serve needs the extra `serve`: {error}", hint=hint) from error
    configurations = Configurations(composition, served.models or {_ONLY_MODEL: ()})
    capacity = Capacity(parallel=served.parallel, queue=served.queue)
    allow_files(served.parallel)
    access = Access(token, served.max_body_bytes)
    with (
        closing(configurations),
        closing(open_socket(served.host, served.port)) as listening,
        Jobs.open(served.folder, configurations, capacity) as jobs,
    ):
        for name in configurations.names:
            warn(*configurations.find(name).warnings)
        host, port = listening.getsockname()[:2]
        named = f"[{host}]" if ":" in host else host
        models = list_names(list(configurations.names))
        say(f"Serving {models} at http://{named}:{port}/v1, runs at http://{named}:{port}/runs")

        def stop() -> None:
            say("Stopping: runs under way in the background continue with the next start.")
            jobs.close()

        serve_jobs(jobs, access, listening, stop)
    return DONE


def is_on_loopback(host: str) -> bool:
    """Check whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(served: ServeSettings) -> str | None:
    """Return the token that clients need; None where they need none. Raises ConfigError for an
    address that others can reach without a token, and for a token that is too short."""
    name = served.token_env
    token = os.environ.get(name, "")
    hint = f"export {name}=$(openssl rand -hex 32)"
    if not token and not is_on_loopback(served.host):
        problem = f"serve.host={served.host}: others can reach it, and {name} holds no token"
        raise ConfigError(problem, hint=hint)
    if token and (len(token) < _LEAST_TOKEN or not re.fullmatch(r"[!-~]+", token)):
        problem = f"{name}: a token has at least {_LEAST_TOKEN} characters, without blanks"
        raise ConfigError(problem, hint=hint)
    return token or None
