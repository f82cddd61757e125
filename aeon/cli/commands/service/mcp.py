"""`aeon mcp`: a server of the Model Context Protocol."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO, cast

from aeon.cli.job.arguments import read_composition
from aeon.cli.job.prepare import keep_private
from aeon.cli.progress.words import SIMULATED
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import say, stdout, warn
from aeon.config.load import compose_settings
from aeon.domain.errors import ConfigError

if TYPE_CHECKING:
    from aeon.config.settings import Settings
    from aeon.service.configurations import Configurations


def mcp(given: Namespace) -> int:
    """Serve clients until they have gone, or the process is stopped. Raises ConfigError for a
    configuration that cannot be served, before serving begins."""
    if find_spec("mcp") is None:
        raise ConfigError(
            "aeon mcp needs the package mcp", hint="pip install 'aeon-engine[mcp]' installs it."
        )
    of = read_composition(given)
    # A person is asked through the client, or answers later.
    of = of.with_overrides(("interaction=defer", *of.overrides))
    settings = compose_settings(of)
    _check(settings)
    keep_private(settings)
    from aeon.service.configurations import Configurations
    from aeon.service.jobs import Capacity, Jobs
    from aeon.service.mcp.server import build_server
    from aeon.service.mcp.tools import list_tools
    from aeon.service.mcp.transports import serve_http, serve_stdio

    tools = list_tools(settings.mcp.plans)
    named = {name: tool.list_overrides() for name, tool in tools.items()}
    capacity = Capacity(parallel=settings.mcp.parallel, queue=settings.mcp.queue)
    with (
        closing(Configurations(of, named)) as configurations,
        Jobs.open(settings.mcp.folder, configurations, capacity) as jobs,
    ):
        _warn_before(configurations)
        server = build_server(jobs, tools)
        if settings.mcp.transport == "http":
            serve_http(server, settings.mcp.port, say)
        else:
            serve_stdio(server, _open_output())
    return DONE


def _check(settings: Settings) -> None:
    """Raise ConfigError for settings that suit one run, not a server of many."""
    if settings.plan_file is not None:
        raise ConfigError(
            "plan_file: a server runs many plans",
            hint="mcp.plans=DIR has a tool for each plan file of a folder.",
        )
    if settings.store.mode == "off" and settings.interaction.kind == "defer":
        raise ConfigError(
            "store=off: a run that waits for a person could not be resumed",
            hint="Leave it out, or ask nobody: interaction=none.",
        )


def _warn_before(configurations: Configurations) -> None:
    """Print the warnings to read before the server is used, each once."""
    served = [configurations.find(name) for name in configurations.names]
    warn(*dict.fromkeys(text for aeon in served for text in aeon.warnings))
    if any(aeon.synthetic for aeon in served):
        warn(*SIMULATED)


def _open_output() -> TextIO:
    """Return standard output, reserved for messages of the protocol. Raises ConfigError where it is
    closed."""
    output = stdout()
    if output is None or sys.stdin is None:
        raise ConfigError(
            "mcp.transport=stdio: standard input or output is closed",
            hint="Let the client start this command, or use mcp.transport=http.",
        )
    if sys.stdin.isatty():
        say("Serving MCP on standard input and output: a client has to start this command.")
    # The protocol is UTF-8, whatever the locale.
    cast(io.TextIOWrapper, output).reconfigure(encoding="utf-8", errors="strict")
    return output
