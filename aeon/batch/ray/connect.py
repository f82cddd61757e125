"""Connects to Ray at `batch.ray.address`, or starts it on this machine."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonObject

_KEY = "batch.ray.address"
_CONNECT_SECONDS = 5.0
_CHECK_SECONDS = 15.0
_HINT = (
    "The batch is started on a node of the cluster, with "
    "its versions of Ray and Python: `ray status` shows it."
)
_ALONE: JsonObject = {
    "include_dashboard": False,
    "object_store_memory": 100_000_000,  # bytes; rows and lines are small
    # Ray runs what it is sent, by whomever.
    "_node_ip_address": "127.0.0.1",
}


def connect(address: str | None) -> Any:
    """Connect to the cluster at HOST:PORT (`auto` for the one on this machine), or start one on
    this machine alone. Returns the module of Ray. Raises ConfigError."""
    # Ray would else report its use to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        hint = "Install the extra: pip install 'aeon-engine[ray]'"
        raise ConfigError("batch.backend=ray: Ray is not installed", hint=hint) from None
    if address is not None:
        _check(address)
    try:
        given = _ALONE if address is None else {}
        ray.init(
            address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **given
        )
    except (Exception, SystemExit) as error:  # Ray exits where it cannot connect
        raise _no_ray(address, str(error).strip().partition("\n")[0]) from None
    return ray


def _check(address: str) -> None:
    """Raise ConfigError when Ray does not answer at an address: Ray itself would try for minutes,
    and then end this process."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or "//" in host:
            raise _no_ray(address, "must be HOST:PORT or auto")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise _no_ray(address, f"no Ray answers: {error}") from None
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        done = subprocess.run(command, timeout=_CHECK_SECONDS, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        raise _no_ray(address, "what answers is no Ray, or too busy") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no Ray answers"]
        raise _no_ray(address, said[-1])


def _no_ray(address: str | None, problem: str) -> ConfigError:
    return ConfigError(f"{_KEY}={address or 'null'}: {problem}", hint=_HINT)
