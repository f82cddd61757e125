"""Which hosts a test has looked up."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def record_lookups(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names and addresses that the system is asked for from now on."""
    asked: set[str] = set()
    look_up = socket.getaddrinfo

    def record(host: Any, *arguments: Any, **options: Any) -> Any:
        asked.add(str(host))
        return look_up(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", record)
    return asked
