"""What is sent to a server beside the request, and what of it must never be shown: key, headers, address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from aeon.domain.errors import ConfigError
from aeon.domain.values import shown_address
from aeon.llm.openai.endpoint import SHORTEST_SECRET
from aeon.llm.settings import EndpointSettings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_BETWEEN = re.compile(r"[?&=#]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def has_authorization(headers: Mapping[str, str]) -> bool:
    """Whether a header holds a key."""
    return any(name.lower() in ("authorization", "api-key", "x-api-key") for name in headers)


def secrets(key: str | None, headers: Mapping[str, str], address: str = "") -> tuple[str, ...]:
    """What is never shown, longest first: the key, the headers' values, a token that follows a scheme in one, and what
    stands behind an address."""
    query = address.removeprefix(shown_address(address))
    words = [word for value in (*headers.values(), _BETWEEN.sub(" ", query)) for word in value.split()]
    tokens = [word for word in words if len(word) >= SHORTEST_SECRET]
    return tuple(sorted({*filter(None, [key]), *filter(None, headers.values()), *tokens}, key=len, reverse=True))


def check_sendable(settings: EndpointSettings, key: str | None, headers: Mapping[str, str]) -> None:
    """Raise `ConfigError`, never quoting a value, for what an HTTP request cannot carry."""
    address = settings.base_url or DEFAULT_BASE_URL
    if "@" in address:
        raise ConfigError(
            "provider.base_url holds a user or a password",
            hint="Take it out; provider.extra_headers_env.Authorization=NAME names a variable that holds the header.",
        )
    if not _is_address(address):
        raise ConfigError(
            f"provider.base_url is no http address: {shown_address(address)}",
            hint="Write it whole, for example http://localhost:8000/v1.",
        )
    if key is not None and not _sendable(key):
        raise ConfigError(
            f"the key in {settings.api_key_env} holds characters that cannot be sent",
            hint=f"Set {settings.api_key_env} again: a key is plain ASCII, without line breaks.",
        )
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _sendable(value):
            raise ConfigError(
                f"the header {name!r} of provider.extra_headers_env cannot be sent",
                hint="A header's name is letters, digits and dashes; its value is plain ASCII without line breaks.",
            )


def _is_address(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _sendable(value: str) -> bool:
    return value.isascii() and value.isprintable()
