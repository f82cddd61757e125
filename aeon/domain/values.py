"""The base of every domain value, frozen and closed to unknown fields; and addresses, as they may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, PlainSerializer


def shown_address(address: str) -> str:
    """An address as it may be shown and written down: without a user, and without its query, where a key may be."""
    try:
        url = urlsplit(address)
        return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return address.partition("?")[0].rpartition("@")[2]


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ip_address(host).is_loopback
    except ValueError:
        return False


class Value(BaseModel):
    """An immutable value. A transition returns a new one (`model_copy(update=...)`)."""

    # Deferred: a process needs few of the validators and serializers that all models would make when imported.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


Address = Annotated[str, PlainSerializer(shown_address, when_used="json")]
"""An address; what is written of it as JSON is what may be shown."""


@dataclass(frozen=True, slots=True)
class FromRecording:
    """Whether a settings field may come from the head of a cassette, which anybody may have made: `taken`, as it
    decides what is asked; `unneeded` in a replay; `held`, as it starts, imports, reads or writes something. A field
    without a mark has that of the field around it; the outermost, and paths, are `held`. `options` are those of a group
    that may be chosen nevertheless; None: all."""

    rule: Literal["taken", "unneeded", "held"]
    options: frozenset[str] | None = frozenset()


T = TypeVar("T")
TAKEN, UNNEEDED = FromRecording("taken", None), FromRecording("unneeded")
Taken = Annotated[T, TAKEN]
Unneeded = Annotated[T, UNNEEDED]
