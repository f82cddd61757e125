"""The base of every domain value, frozen and closed to unknown fields; and addresses, as they may be shown."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, PlainSerializer


def shown_address(address: str) -> str:
    """An address as it may be shown and written down: without a user, and without its query, where some servers take a
    key. What is no address is cut off where one would begin."""
    try:
        url = urlsplit(address)
        return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return address.partition("?")[0].rpartition("@")[2]


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Value(BaseModel):
    """An immutable value. A transition returns a new one (`model_copy(update=...)`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Address = Annotated[str, PlainSerializer(shown_address, when_used="json")]
"""An address; what is written of it as JSON is what may be shown."""
